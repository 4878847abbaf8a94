#!/usr/bin/env python3
"""Records what PyTorch makes of numbers in 8 bits: codes_FORMAT.safetensors, compared with by codes.yaml.

    record_codes.py OUT.safetensors e4m3|e5m2|int8|empty        (needs torch)

It holds, for one format, every number that it has, the numbers halfway between neighbours, and numbers near them; its largest
magnitude is the largest of the format, so that the scale is 1. The gradient is the number rounded to the format and read again.
`empty` holds no number at all.
"""
import json
import struct
import sys

import torch

FORMATS = {"e4m3": (torch.float8_e4m3fn, 448.0), "e5m2": (torch.float8_e5m2, 57344.0), "int8": (torch.int8, 127.0)}


def row(dtype, largest):
    if dtype is torch.int8:
        codes = torch.arange(-127, 128).float()
    else:
        codes = torch.arange(256).to(torch.uint8).view(dtype).float()
        codes = codes[codes.abs() <= largest]
    codes = codes.sort().values
    middle = (codes[1:] + codes[:-1]) / 2
    near = torch.cat([codes, middle])
    below, above = (torch.nextafter(near, torch.tensor(s)) for s in (-torch.inf, torch.inf))
    torch.manual_seed(0)
    spread = torch.randn(500) * 2.0 ** torch.randint(-20, 6, (500,))
    x = torch.cat([near, below, above, spread]).clamp(-largest, largest)
    return torch.cat([x, torch.tensor([0.0, -0.0, largest])])


def rounded(x, dtype):
    return x.round() if dtype is torch.int8 else x.to(dtype).float()


def save(path, tensors):
    head, at, blobs = {}, 0, []
    for name, t in tensors.items():
        blob = t.contiguous().numpy().tobytes()
        head[name] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


name = sys.argv[2]
dtype, largest = FORMATS.get(name, FORMATS["int8"])
x = torch.zeros(0) if name == "empty" else row(dtype, largest)
save(sys.argv[1], {"input.0": torch.zeros_like(x), "input.1": x, "tangent.0": torch.tensor(1.0), "grad.input.0": rounded(x, dtype)})
