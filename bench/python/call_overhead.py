#!/usr/bin/env python3
"""Host cost of a training call of torch.compile: forward and backward of small linear layers, in microseconds.

    bench/python/call_overhead.py [--backends eager,nop,aothost,inductor] [--layers 1,24,100] [--rounds 60]

Processor time of one thread, the least of many short runs. "nop" computes nothing: what every backend under AOTAutograd
pays. A layer has two parameters. The arithmetic, 4 x 8 by 8 x 8 a layer, is in the numbers.
"""

from __future__ import annotations

import argparse
import time

import torch
from torch._dynamo.backends.common import aot_autograd


class Layers(torch.nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(n))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x).relu()
        return x.sum()


def nop(module: torch.fx.GraphModule, inputs):
    """A compiler whose programs return the same zeros at each call."""
    (output,) = [n for n in module.graph.nodes if n.op == "output"]
    places = {n: i for i, n in enumerate(n for n in module.graph.nodes if n.op == "placeholder")}
    results = []  # made at the first call: fake tensors are on while compiling

    def run(arguments):
        if not results:
            for n in output.args[0]:
                is_new = isinstance(n, torch.fx.Node) and n not in places
                results.append(torch.zeros(n.meta["val"].shape, dtype=n.meta["val"].dtype) if is_new else n)
        out = [arguments[places[r]] if isinstance(r, torch.fx.Node) else r for r in results]
        arguments.clear()
        return [r.detach() if isinstance(r, torch.Tensor) else r for r in out]

    run._boxed_call = True
    return run


def compiled(backend: str, model: torch.nn.Module):
    if backend == "eager":
        return model
    if backend == "nop":
        return torch.compile(model, backend=aot_autograd(fw_compiler=nop), fullgraph=True)
    return torch.compile(model, backend=backend, fullgraph=True)


def least(call, rounds: int) -> float:
    for _ in range(30):
        call()
    best = float("inf")
    for _ in range(rounds):
        begin = time.process_time()
        for _ in range(10):
            call()
        best = min(best, (time.process_time() - begin) / 10 * 1e6)
    return best


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--backends", default="eager,nop,aothost,inductor")
    p.add_argument("--layers", default="1,24,100")
    p.add_argument("--rounds", type=int, default=60)
    a = p.parse_args()
    torch.set_num_threads(1)
    backends = a.backends.split(",")
    print(f"{'parameters':>10}  " + "  ".join(f"{b:>10}" for b in backends))
    for n in map(int, a.layers.split(",")):
        row = []
        for backend in backends:
            torch._dynamo.reset()
            torch.manual_seed(0)
            model, x = Layers(n), torch.randn(4, 8)
            call = compiled(backend, model)

            def step():
                call(x).backward()
                for q in model.parameters():
                    q.grad = None

            row.append(least(step, a.rounds))
        print(f"{2 * n:10}  " + "  ".join(f"{us:10.1f}" for us in row), flush=True)


if __name__ == "__main__":
    main()
