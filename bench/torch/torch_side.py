"""PyTorch's sides of bench/torch, run by run.py.

torch_side.py eager|compile ARCHIVE THREADS DTYPE DEVICE    a worker (worker.py): trains the archive with fused AdamW
torch_side.py describe ARCHIVE INPUTS DTYPE DEVICE          writes the archive's example inputs; prints what a step must do
torch_side.py rates THREADS DEVICE                          prints what this machine copies and multiplies
"""

from __future__ import annotations

import inspect
import json
import sys
import time
import warnings

import torch
import torch.export.passes

from worker import NoAllocator, serve

RATE = 1e-4


def load(archive: str, device: str):
    """The exported program as a module that trains, and the inputs that it was exported with. On a GPU as its users have it:
    channels last, products of f32 as they come (no TF32)."""
    warnings.filterwarnings("ignore")
    program = torch.export.load(archive)
    if device != "cpu":
        program = torch.export.passes.move_to_device_pass(program, device)
    takes_guards = "check_guards" in inspect.signature(program.module).parameters
    model = program.module(check_guards=False) if takes_guards else program.module()
    args, kwargs = program.example_inputs
    assert not kwargs
    for part in model.modules():  # regions are modules of their own
        if isinstance(part, torch.fx.GraphModule):  # asserts say what dtypes export saw, and autocast gives others
            for node in part.graph.find_nodes(op="call_function", target=torch.ops.aten._assert_tensor_metadata.default):
                part.graph.erase_node(node)
            part.recompile()
    if device == "cuda":
        torch.backends.cudnn.benchmark = True
        model = model.to(memory_format=torch.channels_last)
        args = tuple(x.cuda().to(memory_format=torch.channels_last) if x.dim() == 4 else x.cuda() for x in args)
    return model, args


class Allocator(NoAllocator):
    """PyTorch's, of a GPU."""

    def held(self) -> int:
        return torch.cuda.memory_reserved()

    def most_held(self) -> int:
        return torch.cuda.max_memory_reserved()

    def forget_most(self) -> None:
        torch.cuda.reset_peak_memory_stats()


def step(run, inputs, optimizer, dtype: str, device: str) -> float:
    """Trains by one step; answers the loss."""
    with torch.autocast(device, torch.bfloat16, enabled=dtype == "bf16"):
        loss = run(*inputs)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def train(side: str, archive: str, threads: int, dtype: str, device: str) -> None:
    torch.set_num_threads(threads)
    run, inputs, optimizer = None, None, None

    def prepare():
        nonlocal run, inputs, optimizer
        run, inputs = load(archive, device)
        optimizer = torch.optim.AdamW(run.parameters(), lr=RATE, fused=True)

    def start():
        nonlocal run
        if side == "compile":
            run = torch.compile(run)

    serve(prepare, start, lambda: step(run, inputs, optimizer, dtype, device), device,
          Allocator() if device == "cuda" else NoAllocator())


def describe(archive: str, inputs_path: str, dtype: str, device: str) -> None:
    from safetensors.torch import save_file
    from torch.utils.flop_counter import FlopCounterMode

    model, inputs = load(archive, device)
    save_file({f"input.{k}": x.cpu().contiguous() for k, x in enumerate(inputs)}, inputs_path)
    given = {x.untyped_storage().data_ptr() for x in (*model.parameters(), *model.buffers(), *inputs)}
    saved = {}

    def save(x: torch.Tensor) -> torch.Tensor:
        storage = x.untyped_storage()
        if storage.data_ptr() not in given:
            saved[storage.data_ptr()] = storage.nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(save, lambda x: x):
        with torch.autocast(device, torch.bfloat16, enabled=dtype == "bf16"), FlopCounterMode(display=False) as counter:
            loss = model(*inputs)
        loss.backward()
    parameters = [p for p in model.parameters() if p.grad is not None]  # a name more of a tied one has none
    print(json.dumps({
        "flops": 3 * counter.get_total_flops(),  # a product's backward is two of its size; the counter's takes no groups
        "parameter_tensors": len(parameters),
        "parameter_bytes": sum(p.nbytes for p in parameters),
        "saved_bytes": sum(saved.values()),
    }))


def best_seconds(call, device: str, runs: int = 7) -> float:
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return min(times)


def rates(threads: int, device: str) -> None:
    torch.set_num_threads(threads)
    n = 8192 if device == "cuda" else 1536
    found = {}
    for name, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        a, b, c = (torch.randn(n, n, device=device).to(dtype) for _ in range(3))
        found[f"gflops_{name}"] = 2 * n**3 / best_seconds(lambda: torch.mm(a, b, out=c), device) / 1e9
    x = torch.randn(256 << 20 if device == "cuda" else 32 << 20, device=device)  # 1 GiB, 128 MiB: beyond caches
    y = torch.empty_like(x)
    found["copy_gbs"] = 2 * x.nbytes / best_seconds(lambda: y.copy_(x), device) / 1e9  # read and written
    print(json.dumps(found))


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "describe":
        describe(*rest)
    elif what == "rates":
        rates(int(rest[0]), rest[1])
    else:
        train(what, rest[0], int(rest[1]), *rest[2:])
