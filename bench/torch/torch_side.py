"""PyTorch's sides of bench/torch, run by run.py.

torch_side.py eager|compile ARCHIVE THREADS DTYPE    a worker (worker.py): trains the archive with fused AdamW
torch_side.py describe ARCHIVE INPUTS DTYPE          writes the archive's example inputs; prints what a step must do
torch_side.py rates THREADS                          prints what this machine copies and multiplies
"""

from __future__ import annotations

import inspect
import json
import sys
import time
import warnings

import torch

from worker import serve

RATE = 1e-4


def load(archive: str):
    """The exported program as a module that trains, and the inputs that it was exported with."""
    warnings.filterwarnings("ignore")
    program = torch.export.load(archive)
    takes_guards = "check_guards" in inspect.signature(program.module).parameters
    model = program.module(check_guards=False) if takes_guards else program.module()
    args, kwargs = program.example_inputs
    assert not kwargs
    return model, args


def train(side: str, archive: str, threads: int, dtype: str) -> None:
    torch.set_num_threads(threads)
    run, inputs, optimizer = None, None, None

    def prepare():
        nonlocal run, inputs, optimizer
        run, inputs = load(archive)
        optimizer = torch.optim.AdamW(run.parameters(), lr=RATE, fused=True)

    def start():
        nonlocal run
        if side == "compile":
            run = torch.compile(run)

    def step() -> float:
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bf16"):
            loss = run(*inputs)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    serve(prepare, start, step)


def describe(archive: str, inputs_path: str, dtype: str) -> None:
    from safetensors.torch import save_file
    from torch.utils.flop_counter import FlopCounterMode

    model, inputs = load(archive)
    save_file({f"input.{k}": x.contiguous() for k, x in enumerate(inputs)}, inputs_path)
    given = {x.untyped_storage().data_ptr() for x in (*model.parameters(), *model.buffers(), *inputs)}
    saved = {}

    def save(x: torch.Tensor) -> torch.Tensor:
        storage = x.untyped_storage()
        if storage.data_ptr() not in given:
            saved[storage.data_ptr()] = storage.nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(save, lambda x: x):
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bf16"), FlopCounterMode(display=False) as counter:
            loss = model(*inputs)
        loss.backward()
    parameters = [p for p in model.parameters() if p.grad is not None]  # a name more of a tied one has none
    print(json.dumps({
        "flops": 3 * counter.get_total_flops(),  # a product's backward is two of its size; the counter's takes no groups
        "parameter_tensors": len(parameters),
        "parameter_bytes": sum(p.nbytes for p in parameters),
        "saved_bytes": sum(saved.values()),
    }))


def best_seconds(call, runs: int = 7) -> float:
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def rates(threads: int) -> None:
    torch.set_num_threads(threads)
    n = 1536
    found = {}
    for name, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        a, b, c = (torch.randn(n, n).to(dtype) for _ in range(3))
        found[f"gflops_{name}"] = 2 * n**3 / best_seconds(lambda: torch.mm(a, b, out=c)) / 1e9
    x = torch.randn(32 << 20)  # 128 MiB, beyond caches
    y = torch.empty_like(x)
    found["copy_gbs"] = 2 * x.nbytes / best_seconds(lambda: y.copy_(x)) / 1e9  # read and written
    print(json.dumps(found))


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "describe":
        describe(*rest)
    elif what == "rates":
        rates(int(rest[0]))
    else:
        train(what, rest[0], int(rest[1]), rest[2])
