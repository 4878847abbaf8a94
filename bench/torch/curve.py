#!/usr/bin/env python3
"""A GPT trained on text for many steps, by PyTorch and by aothost, on the same batches: do their losses go the same way? See --help."""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import pathlib
import random
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BATCH, LENGTH, RATE, SEED = 8, 512, 3e-4, 7
SIZES = {"small": (128, 4, 4), "gpt2": (768, 12, 12)}  # width, layers, heads

DESCRIPTION = """\
Train a GPT on the bytes of a text, once by aothost and once or twice by PyTorch, each in a process
of its own, from the same weights on the same batches: 8 times 512 bytes drawn with a fixed seed.
Prints the losses side by side, and what each process holds after a tenth of the steps and at the end.
eager and compile are PyTorch's own two ways to compute the same: their distance is the noise that
ours is to be seen beside. The status is 1 when the mean loss of the last tenth differs from eager's
by more than 2 % or by more than three times what compile's does, or when memory has grown.

examples
  python bench/torch/curve.py --size small --steps 50 --device cpu      # does it work?
  python bench/torch/curve.py --aothost /tmp/a/bin/aothost              # GPT-2 on the first GPU, 1,000 steps, bf16
"""


def small():
    return make("small")


def gpt2():
    return make("gpt2")


def make(size: str):
    """(module, inputs) for tools/export_model.py. Bytes are tokens, of GPT-2's vocabulary with its own size."""
    from torch import nn
    from models import Block, Decoder, FeedForward, tokens
    width, layers, heads = SIZES[size]
    model = Decoder(50304 if size == "gpt2" else 256, LENGTH, width, [Block(width, heads, FeedForward(width)) for _ in range(layers)])
    model.head.weight = model.token.weight
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.02)
    return model, tokens(BATCH, LENGTH, 256)


def batches(text: bytes, n: int):
    draw = random.Random(SEED)
    for _ in range(n):
        at = [draw.randrange(len(text) - LENGTH) for _ in range(BATCH)]
        yield [[list(text[k + shift:k + shift + LENGTH]) for k in at] for shift in (0, 1)]


def torch_steps(side: str, options):
    import torch
    from torch_side import load
    model, _ = load(str(options.archive), options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, fused=True)
    run = torch.compile(model) if side == "compile" else model
    for batch in batches(options.text.read_bytes(), options.steps):
        x, labels = (torch.tensor(part, device=options.device) for part in batch)
        with torch.autocast(options.device, torch.bfloat16, enabled=options.dtype == "bf16"):
            loss = run(x, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss.item()


def aothost_steps(options):
    from aothost_side import Tensor, Training
    from run import find_library
    library, plugins = find_library(options.aothost)
    training = Training(str(library), str(plugins), str(options.archive), str(options.threads), options.dtype, options.device)
    sizes = (ctypes.c_int64 * 2)(BATCH, LENGTH)
    for batch in batches(options.text.read_bytes(), options.steps):
        inputs = (Tensor * 2)()
        data = [(ctypes.c_int64 * (BATCH * LENGTH))(*sum(part, [])) for part in batch]
        for tensor, values in zip(inputs, data):
            tensor.data, tensor.nbytes = ctypes.cast(values, ctypes.c_void_p), ctypes.sizeof(values)
            tensor.dtype, tensor.rank, tensor.sizes = 5, 2, sizes  # i64
        yield training.step(inputs, RATE)


def train(side: str, options) -> None:
    """A line of JSON: losses, and bytes held after a tenth of the steps and at the end."""
    from worker import Card, resident
    card = Card() if options.device == "cuda" else None
    losses, held = [], []
    for loss in aothost_steps(options) if side == "aothost" else torch_steps(side, options):
        losses.append(loss)
        if len(losses) in (options.steps // 10, options.steps):
            held.append({"host": resident("VmRSS"), "card": card.used() if card else 0})
    json.dump({"losses": losses, "held": held}, options.result.open("w"))


def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


def compare(options, results: dict) -> int:
    tenth = max(1, options.steps // 10)
    print("| steps | " + " | ".join(results) + " |\n|" + "---|" * (len(results) + 1))
    for begin in range(0, options.steps, tenth):
        rows = [mean(r["losses"][begin:begin + tenth]) for r in results.values()]
        print(f"| {begin + 1} to {min(begin + tenth, options.steps)} | " + " | ".join(f"{loss:.4f}" for loss in rows) + " |")
    last = {side: mean(r["losses"][-tenth:]) for side, r in results.items()}
    print("\nlast step: " + ", ".join(f"{side} {r['losses'][-1]:.4f}" for side, r in results.items()))
    for side, r in results.items():
        grown = [f"{what} {r['held'][0][what] / 2**20:.0f} then {r['held'][1][what] / 2**20:.0f} MiB" for what in r["held"][0]]
        print(f"{side} holds: {', '.join(grown)}")
    bad = []
    if "eager" in last:
        distance, noise = abs(last["aothost"] - last["eager"]), abs(last.get("compile", last["eager"]) - last["eager"])
        bad += [f"loss differs by {distance:.4f}"] if distance > max(0.02 * last["eager"], 3 * noise) else []
    ours = results["aothost"]["held"]
    bad += [f"{what} has grown" for what in ours[0] if ours[1][what] > 1.02 * ours[0][what] + (16 << 20)]
    print("\n".join(bad) or "the curves agree, and nothing grows")
    return 1 if bad else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="gpt2", help="small: width 128, 4 layers (default gpt2: 124M)")
    parser.add_argument("--steps", type=int, default=1000, metavar="N", help="default 1000")
    parser.add_argument("--sides", default="eager,compile,aothost", metavar="A,B", help="default eager,compile,aothost")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--dtype", choices=("f32", "bf16"), default="bf16")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="of aothost on a CPU (default 2)")
    parser.add_argument("--text", type=pathlib.Path, default=ROOT / "examples/data/opticks.txt", metavar="FILE")
    parser.add_argument("--aothost", type=pathlib.Path, default=ROOT / "build/bin/aothost", metavar="FILE")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/bench-torch/curve", metavar="DIR", help="for archive, logs and losses")
    parser.add_argument("--side", help=argparse.SUPPRESS)  # of the process that trains
    options = parser.parse_args()
    options.archive = options.work / options.size / "train.pt2"
    if options.side:
        options.result = options.work / f"{options.side}.json"
        train(options.side, options)
        return 0
    if not options.archive.exists():
        subprocess.run([sys.executable, ROOT / "tools/export_model.py", f"{HERE}/curve.py:{options.size}", options.archive.parent,
                        "--no-expected"], check=True, cwd=ROOT, stdout=subprocess.DEVNULL,
                       env=os.environ | {"PYTHONPATH": str(HERE)})
    results = {}
    for side in options.sides.split(","):
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--side", side], check=True)
        results[side] = json.load((options.work / f"{side}.json").open())
    return compare(options, results)


if __name__ == "__main__":
    sys.exit(main())
