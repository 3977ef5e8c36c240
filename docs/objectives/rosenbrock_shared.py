#!/usr/bin/env python3
"""The negative of the Rosenbrock function as an objective of brood that takes parameters through shared memory."""
import mmap, struct, sys

def read(n):
    data = sys.stdin.buffer.read(n)
    if len(data) < n: sys.exit()                                   # brood has left
    return data

def frame(kind, body):
    sys.stdout.buffer.write(struct.pack("<IB", len(body) + 1, kind) + body)
    sys.stdout.buffer.flush()

def fitness(x):
    return -sum(100 * (x[j+1] - x[j]*x[j])**2 + (1 - x[j])**2 for j in range(len(x) - 1))

memory = None
while True:
    length, kind = struct.unpack("<IB", read(5))
    body = read(length - 1)
    if kind == 1:                                                  # hello: version 1, no metrics, and we wish for 1, memory
        frame(2, struct.pack("<III", 1, 0, 1))
    elif kind == 5:                                                # bytes and path of a file that we may map
        size, n = struct.unpack_from("<QI", body)
        with open(body[12:12+n].decode(), "rb") as f:
            memory = memoryview(mmap.mmap(f.fileno(), size, access=mmap.ACCESS_READ))
    elif kind in (3, 6):                                           # a batch: its rows follow, or lie in the memory
        count, width = struct.unpack_from("<II", body)
        if kind == 6:
            (at,), ids = struct.unpack_from("<Q", body, 8), 16
            rows = memory[at:at + 4*count*width].cast("f")         # numpy.frombuffer(memory, "<f4", count*width, at) likewise
        else:
            ids = 8
            rows = memoryview(body)[8 + 16*count:].cast("f")
        out = struct.pack("<I", count)
        for i in range(count):
            id, seed = struct.unpack_from("<QQ", body, ids + 16*i)
            out += struct.pack("<Qd", id, fitness(rows[i*width:(i+1)*width]))
        frame(4, out)
