#!/usr/bin/env python3
"""Prints the records of a brood session, one JSON object each: python3 read_log.py SESSION-DIRECTORY

The format is in docs/session-format.md, which says what frames of zstd take."""
import contextlib
import glob
import importlib
import json
import shutil
import struct
import subprocess
import sys

KINDS = dict(enumerate("config plan edit commit points evaluation alert checkpoint state accepted machines".split(), 1))
FLOATS = {2: ">e", 4: ">f", 8: ">d"}


def cbor(b, i):
    """Decodes the item at byte i of the deterministic CBOR that brood writes, and gives it with the byte behind it."""
    major, n, size = b[i] >> 5, b[i] & 31, {24: 1, 25: 2, 26: 4, 27: 8}.get(b[i] & 31, 0)
    raw, i = b[i + 1:i + 1 + size], i + 1 + size
    if major == 7:
        return (struct.unpack(FLOATS[size], raw)[0] if size else {20: False, 21: True, 22: None}[n]), i
    n = int.from_bytes(raw, "big") if size else n
    if major < 2:
        return (-1 - n if major else n), i
    if major < 4:
        return (b[i:i + n].decode("utf-8", "replace") if major == 3 else b[i:i + n].hex()), i + n
    items = []
    for _ in range(n * (major - 3)):  # a map is its keys and values in turn
        x, i = cbor(b, i)
        items.append(x)
    return (items if major == 4 else dict(zip(items[::2], items[1::2]))), i


def plain(b):
    """Decompresses a frame of zstd by what is there."""
    for name in ("compression.zstd", "pyzstd", "zstandard"):
        with contextlib.suppress(ImportError):
            module = importlib.import_module(name)
            return (module.ZstdDecompressor().decompressobj() if name == "zstandard" else module).decompress(b)
    if not shutil.which("zstd"):
        sys.exit("read_log.py: this log has frames of zstd: pip install zstandard, or install the program zstd")
    return subprocess.run(["zstd", "-dc"], input=b, stdout=subprocess.PIPE, check=True).stdout


for path in sys.argv[1:] and sorted(glob.glob(sys.argv[1] + "/log-*.brood")) or sys.exit("give a session's directory"):
    b, at = open(path, "rb").read(), 32
    while b[at:at + 4] == b"BRFR":
        flags, count, _, stored = struct.unpack_from("<HHII", b, at + 4)
        payload, at = b[at + 36:at + 36 + stored], at + 36 + stored
        if count == 0 or len(payload) < stored:
            continue  # a keyframe, or one that is being written or was cut off
        payload, i = plain(payload) if flags & 1 else payload, 0
        for _ in range(count):
            n = struct.unpack_from("<I", payload, i)[0]
            record, i = cbor(payload[i + 4:i + 4 + n], 0)[0], i + 4 + n
            kind = next(k for k in record if k)
            print(json.dumps({"at": record[0], "kind": KINDS.get(kind, str(kind)), "record": record[kind]}))
