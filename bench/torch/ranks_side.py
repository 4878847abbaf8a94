"""A rank of a side of bench/torch/ranks.py. RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT are set, as torchrun does.

ranks_side.py ours LIBRARY PLUGINS ARCHIVE INPUTS DTYPE MODE RENDEZVOUS [SETTING ..]
    trains the archive with ranks.yaml, its values replaced by settings
ranks_side.py fsdp2|ddp MODEL ARCHIVE DTYPE DEVICE COMPILED
    trains the function MODEL of models.py with the archive's weights
"""

from __future__ import annotations

import os
import sys

from worker import Card, NoAllocator, serve

LOCAL = int(os.environ["LOCAL_RANK"])


def device_of_counter() -> str:
    """The card's memory counts where there is one; else, when the script is tried, the process's."""
    try:
        Card(LOCAL)
        return "cuda"
    except OSError:
        return "cpu"


def ours(library: str, plugins: str, archive: str, inputs_path: str, dtype: str, mode: str, rendezvous: str,
         *settings: str) -> None:
    from aothost_side import Training, read_inputs
    inputs, memory = read_inputs(inputs_path)
    training, given = [], [inputs]

    def start() -> None:
        more = (f"vars.mode={mode}", f"run.ranks-with.rendezvous={rendezvous}", "run.ranks-with.patience=300", *settings)
        training.append(Training(library, plugins, archive, "1", dtype, "cuda", "ranks.yaml", more))

    serve(lambda: None, start, lambda: training[0].step(given.pop() if given else None), device_of_counter(), number=LOCAL)


def blocks_of(model):
    """The longest list of modules of one class: the layers of a Transformer."""
    from torch import nn
    lists = [m for m in model.modules() if isinstance(m, (nn.ModuleList, nn.Sequential)) and len({type(x) for x in m}) == 1]
    return max(lists, key=len, default=[])


def train_by_torch(side: str, model: str, archive: str, dtype: str, device: str, is_compiled: str) -> None:
    import torch
    import torch.distributed as dist
    import models
    from torch_side import RATE, Allocator, step
    half = torch.bfloat16 if dtype == "bf16" else torch.float32
    run, inputs, optimizer = None, None, None

    def load() -> None:
        nonlocal run, inputs
        if device == "cuda":
            torch.cuda.set_device(LOCAL)
        dist.init_process_group("nccl" if device == "cuda" else "gloo")
        program = torch.export.load(archive)
        run = getattr(models, model)()[0].train()
        run.load_state_dict(program.state_dict, strict=False)
        run, inputs = run.to(device), [x.to(device) for x in program.example_inputs[0]]

    def start() -> None:
        nonlocal run, optimizer
        if side == "fsdp2":
            from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
            policy = MixedPrecisionPolicy(param_dtype=half, reduce_dtype=torch.float32)
            for block in blocks_of(run):
                fully_shard(block, mp_policy=policy)
            fully_shard(run, mp_policy=policy)
        else:
            run = torch.nn.parallel.DistributedDataParallel(run, device_ids=[LOCAL] if device == "cuda" else None,
                                                            gradient_as_bucket_view=True)
        optimizer = torch.optim.AdamW(run.parameters(), lr=RATE, fused=True)
        if is_compiled == "1":
            run = torch.compile(run)

    counter = device_of_counter() if device == "cuda" else "cpu"
    serve(load, start, lambda: step(run, inputs, optimizer, dtype, device), counter,
          Allocator() if counter == "cuda" else NoAllocator(), number=LOCAL)


if __name__ == "__main__":
    if sys.argv[1] == "ours":
        ours(*sys.argv[2:])
    else:
        train_by_torch(*sys.argv[1:])
