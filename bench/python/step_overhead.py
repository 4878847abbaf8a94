"""Host cost of a training step: compile_step and eager PyTorch, by number of parameters.

    OMP_NUM_THREADS=1 python bench/python/step_overhead.py [--parameters 2,48,200] [--optimizer adamw]

The model is a chain of linear layers of width 8, batch 4, so that kernels cost next to nothing. Each number is the
least of many steps, in microseconds of processor time (one thread); `library` is the call of aothost_step alone.
"""

from __future__ import annotations

import argparse
import time
from typing import Callable

import torch
from torch import nn

import aothost

F = nn.functional
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=1e-3),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3),
}


def least(call: Callable[[], object], steps: int) -> float:
    """Microseconds of processor time."""
    for _ in range(3):
        call()
    best = float("inf")
    for _ in range(steps):
        begin = time.thread_time_ns()
        call()
        best = min(best, time.thread_time_ns() - begin)
    return best / 1000


def measure(n_parameters: int, make: Callable, steps: int) -> tuple[float, float, float]:
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(n_parameters // 2)])
    x, y = torch.randn(4, 8), torch.randn(4, 8)
    optimizer = make(model.parameters())

    def eager() -> None:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()

    in_eager = least(eager, steps)
    step = aothost.compile_step(model, F.mse_loss, make(model.parameters()))
    compiled = least(lambda: step(x, y), steps)
    program, loss = step.last[1].program, torch.empty(())
    library = least(lambda: program.step([x, y], loss, 1e-3, -1), steps)
    return in_eager, compiled, library


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parameters", default="2,48,200")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="adamw")
    parser.add_argument("--steps", type=int, default=300)
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'parameters':>10} {'eager':>10} {'compile_step':>13} {'library':>9}   us a step, {given.optimizer}")
    for n in map(int, given.parameters.split(",")):
        eager, compiled, library = measure(n, OPTIMIZERS[given.optimizer], given.steps)
        print(f"{n:>10} {eager:>10.1f} {compiled:>13.1f} {library:>9.1f}", flush=True)


if __name__ == "__main__":
    main()
