#!/usr/bin/env python3
"""Reads the log of a brood session with the standard library alone: python3 read_log.py SESSION-DIRECTORY

Prints one JSON object a record. Frames that are compressed with zstd are skipped and counted, as the standard library of
Python below 3.14 has no zstd. The format is docs/session-format.md, the keys of the kinds are there too."""

import glob
import json
import os
import struct
import sys

KINDS = {1: "config", 2: "plan", 3: "edit", 4: "commit", 5: "points", 6: "evaluation", 7: "alert", 8: "checkpoint", 9: "state", 10: "accepted"}

try:
    from compression import zstd
except ImportError:
    zstd = None


def cbor(b, i):
    """Decodes the item at byte i of the deterministic CBOR that brood writes, and gives it with the byte behind it."""
    major, small = b[i] >> 5, b[i] & 31
    i += 1
    size = {24: 1, 25: 2, 26: 4, 27: 8}.get(small, 0)
    raw, i = b[i:i + size], i + size
    n = int.from_bytes(raw, "big") if size else small
    if major == 0:
        return n, i
    if major == 1:
        return -1 - n, i
    if major == 2:
        return b[i:i + n].hex(), i + n
    if major == 3:
        return b[i:i + n].decode("utf-8", "replace"), i + n
    if major == 4:
        out = []
        for _ in range(n):
            x, i = cbor(b, i)
            out.append(x)
        return out, i
    if major == 5:
        out = {}
        for _ in range(n):
            k, i = cbor(b, i)
            out[k], i = cbor(b, i)
        return out, i
    if major == 7 and size in (2, 4, 8):
        return struct.unpack({2: ">e", 4: ">f", 8: ">d"}[size], raw)[0], i
    if major == 7 and small in (20, 21, 22):
        return {20: False, 21: True, 22: None}[small], i
    raise ValueError("no CBOR that brood writes")


def frames(path):
    """Yields flags, number of records and payload of the whole frames of a segment."""
    b = open(path, "rb").read()
    if b[:8] != b"BROODLOG":
        raise SystemExit(path + " is no segment of a log")
    i = 32
    while b[i:i + 4] == b"BRFR":
        flags, count, _, stored = struct.unpack_from("<HHII", b, i + 4)
        payload = b[i + 36:i + 36 + stored]
        if len(payload) < stored:
            return  # it is being written, or was cut off
        yield flags, count, payload
        i += 36 + stored


def main(directory):
    skipped = 0
    for path in sorted(glob.glob(os.path.join(directory, "log-*.brood"))):
        for flags, count, payload in frames(path):
            if flags & 1 and count:
                if zstd is None:
                    skipped += count
                    continue
                payload = zstd.decompress(payload)
            i = 0
            for _ in range(count):  # 0 of a keyframe
                n = struct.unpack_from("<I", payload, i)[0]
                record, _ = cbor(payload[i + 4:i + 4 + n], 0)
                kind = next(k for k in record if k != 0)
                print(json.dumps({"at": record[0], "kind": KINDS.get(kind, str(kind)), "record": record[kind]}))
                i += 4 + n
    if skipped:
        print(f"{skipped} records are in frames of zstd, which Python 3.14 reads", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
