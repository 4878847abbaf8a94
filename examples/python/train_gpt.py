#!/usr/bin/env python3
"""Trains the byte-level GPT of ../gpt_bytes.py in PyTorch's own loop, compiled by aothost.

    python examples/python/train_gpt.py --steps 200
    python examples/python/train_gpt.py --backend eager           # the same batches without a compiler
    python examples/python/train_gpt.py --budget 0.5              # save half as much for the backward
"""

from __future__ import annotations

import argparse
import math
import pathlib
import sys
import time

import torch

EXAMPLES = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(EXAMPLES))
from gpt_bytes import GPT, Config, batches  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--backend", default="aothost", help="of torch.compile")
    parser.add_argument("--budget", help="what a forward may save for its backward: 64MiB, or a share such as 0.5")
    given = parser.parse_args()

    torch.manual_seed(0)
    config = Config()
    model = GPT(config)
    options = {"budget": given.budget} if given.budget else None
    compiled = torch.compile(model, backend=given.backend, options=options)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    text = torch.frombuffer(bytearray((EXAMPLES / "data/opticks.txt").read_bytes()), dtype=torch.uint8)

    start = time.perf_counter()
    for step, (tokens, targets) in zip(range(1, given.steps + 1), batches(text, config.length, given.batch, seed=1)):
        optimizer.zero_grad()
        loss = compiled(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step == 1:
            print(f"first step {time.perf_counter() - start:.1f} s, with compilation", flush=True)
            start = time.perf_counter()
        elif step % 50 == 0 or step == given.steps:
            each = 1e3 * (time.perf_counter() - start) / (step - 1)
            bits = loss.item() / math.log(2)
            print(f"step {step}: loss {loss.item():.4f} ({bits:.2f} bits a byte), {each:.1f} ms a step", flush=True)


if __name__ == "__main__":
    main()
