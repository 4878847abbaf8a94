#!/usr/bin/env python3
"""The relative difference of the gradients in two files of `aothost run --grads --outputs F`.

    compare_gradients.py A.safetensors B.safetensors

Prints norm(A - B) / norm(A) over all f32 gradients, and the largest such number of one gradient.
"""
import array
import json
import math
import struct
import sys


def gradients(path):
    with open(path, "rb") as f:
        data = f.read()
    size = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name.startswith("grad.") and entry["dtype"] == "F32":
            begin, end = (8 + size + at for at in entry["data_offsets"])
            out[name] = array.array("f", data[begin:end])
    return out


def square(x):
    return math.fsum(v * v for v in x)


a, b = gradients(sys.argv[1]), gradients(sys.argv[2])
apart = {k: square(x - y for x, y in zip(a[k], b[k])) for k in a}
total = sum(square(v) for v in a.values())
worst = max(a, key=lambda k: apart[k] / (square(a[k]) or 1e-60))
print(f"all {math.sqrt(sum(apart.values()) / total):.2g}, worst {math.sqrt(apart[worst] / (square(a[worst]) or 1e-60)):.2g} ({worst})")
