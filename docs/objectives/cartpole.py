#!/usr/bin/env python3
"""Cart-pole as an objective of brood: four weights steer; the fitness is how many of 500 steps the pole stays up."""
import math, random, struct, sys

def read(n):
    data = sys.stdin.buffer.read(n)
    if len(data) < n: sys.exit()                                   # brood has left
    return data

def frame(kind, body):
    sys.stdout.buffer.write(struct.pack("<IB", len(body) + 1, kind) + body)
    sys.stdout.buffer.flush()

def fitness(w, seed):
    rng = random.Random(seed)                                      # the seed decides where it begins, and nothing else does
    x, v, a, s = (rng.uniform(-0.05, 0.05) for _ in range(4))
    for step in range(500):
        force = 10 if w[0]*x + w[1]*v + w[2]*a + w[3]*s > 0 else -10
        push = (force + 0.05 * s*s * math.sin(a)) / 1.1
        turn = (9.8 * math.sin(a) - math.cos(a) * push) / (0.5 * (4/3 - 0.1 * math.cos(a)**2 / 1.1))
        x, v, a, s = x + 0.02*v, v + 0.02 * (push - 0.05 * turn * math.cos(a) / 1.1), a + 0.02*s, s + 0.02*turn
        if abs(x) > 2.4 or abs(a) > 0.209: return step
    return 500

while True:
    length, kind = struct.unpack("<IB", read(5))
    body = read(length - 1)
    if kind == 1:                                                  # hello: we speak version 1
        frame(2, struct.pack("<I", 1))
    elif kind == 3:                                                # a batch: count, width, (id, seed) each, then the rows
        count, width = struct.unpack_from("<II", body)
        out = struct.pack("<I", count)
        for i in range(count):
            id, seed = struct.unpack_from("<QQ", body, 8 + 16*i)
            row = struct.unpack_from(f"<{width}f", body, 8 + 16*count + 4*width*i)
            out += struct.pack("<Qd", id, fitness(row, seed))
        frame(4, out)
