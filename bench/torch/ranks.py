#!/usr/bin/env python3
"""Whole training steps on several GPUs of one machine: FSDP2 and DDP with torch.compile, and aothost, in one run. See --help."""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import socket
import statistics
import sys
import time

import run as single
from run import HERE, ROOT, SideError, Worker

TORCH_SIDES = ("fsdp2", "ddp")
OUR_SIDES = ("one", "shard", "shard-grad", "replicate", "copies")
ROUNDS = "fsdp2,one,shard/ddp,replicate,shard-grad"  # what sides of llama_953m take alone adds up to less than 80 GB in each
MODELS = ("llama_953m", "gpt2")
DESCRIPTION = """\
Train the same exported models on several GPUs by FSDP2 with torch.compile (bf16 parameters, sums
in f32), by DDP with torch.compile, and by aothost: on one GPU, and on all in the modes shard (as
FSDP2), shard-grad and replicate (as DDP); copies is shard with an NCCL that hands nothing to other ranks (nccl_copies.c): what it
takes less than shard is exposed, and its losses mean nothing. Every side has a process a GPU; those of a round stay, and
train in turns, a block of steps each, on a batch a rank that stays. A step is forward, backward and AdamW.
Writes results.json, table.md, what `aothost plan` predicts, and a log of each rank.
"""
EPILOG = """\
examples
  python bench/torch/ranks.py                                    # two GPUs, llama_953m and gpt2, bf16
  python bench/torch/ranks.py --models gpt2 --sides fsdp2,shard  # one model, two sides by turns
  python bench/torch/ranks.py --sides fsdp2/shard                # one side after the other
  python bench/torch/ranks.py --sides shard,copies               # what of a step is communication that kernels wait for
  python bench/torch/ranks.py --sides one,shard --models tests/fixtures/models/gpt_tiny   # no PyTorch: an archive that is there

columns of the table
  ms            median of a step; a step takes as long as its slowest rank
  of fsdp2      that over fsdp2's; of one: over aothost's on one GPU, which takes a rank's rows
  peak MiB      the most of any rank's card: in use after the first step less before the model was loaded; of PyTorch's
                allocator the most that it held in the steps after the first
  loss          of the first step and the last one

The status is 1 when a side fails or losses differ.
"""
TOLERANCE = {"f32": (1e-4, 1e-2), "bf16": (2e-2, 5e-2)}  # of the first and the last step, relative to at least 1


class Ranks:
    """The processes of a side, which are asked together."""

    def __init__(self, options, name: str, commands: list[list[str]], environment: dict[str, str], folder: pathlib.Path):
        self.name, self.ms, self.first_ms, self.losses, self.peak_bytes, self.error = name, [], math.nan, [], 0, ""
        self.workers = []
        for rank, command in enumerate(commands):
            place = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(len(commands)),
                     "LOCAL_WORLD_SIZE": str(len(commands))}
            self.workers.append(Worker(command, sorted(os.sched_getaffinity(0)), environment | place, folder / f"{name}.{rank}.log"))

    def ask(self, deadline: float, **request) -> list[dict]:
        for worker in self.workers:
            worker.send(**request)
        return [worker.receive(deadline) for worker in self.workers]

    def turns(self, options, deadline: float):
        """Each next() is a turn. What goes wrong ends this side alone."""
        try:
            first = self.ask(deadline, do="start")
            self.first_ms = max(answer["first_ms"] for answer in first)
            self.losses.append(first[0]["loss"])
            yield
            self.ask(deadline, do="steps", n=options.warm_up)
            yield
            while len(self.ms) < options.steps:
                answers = self.ask(deadline, do="steps", n=min(options.block, options.steps - len(self.ms)))
                self.ms += [max(step) for step in zip(*(answer["ms"] for answer in answers))]
                self.losses.append(answers[0]["loss"])
                yield
            self.peak_bytes = max(answer["peak_bytes"] for answer in self.ask(deadline, do="finish"))
        except SideError as error:
            self.error = str(error)
            self.close()

    def close(self) -> None:
        for worker in self.workers:
            worker.close()
        self.workers = []

    @property
    def median(self) -> float:
        return statistics.median(self.ms) if self.ms and not self.error else math.nan


def free_port() -> str:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def archive_of(options, model: str) -> tuple[pathlib.Path, pathlib.Path]:
    """train.pt2 and its inputs: of a folder that has both, or exported."""
    if "/" in model:
        folder = pathlib.Path(model).resolve()  # workers stand elsewhere
        return folder / "train.pt2", folder / "expected.safetensors"
    folder = single.export(options, model)
    if not (folder / "inputs.safetensors").exists():
        single.ask_once([options.python, HERE / "torch_side.py", "describe", folder / "train.pt2", folder / "inputs.safetensors",
                         options.dtype, options.torch_device])
    return folder / "train.pt2", folder / "inputs.safetensors"


def our_environment(options) -> dict[str, str]:
    """Libraries beside ours, then those that the caller names, then the NCCL of PyTorch's wheels."""
    folders = single.our_libraries(options)["LD_LIBRARY_PATH"]
    try:
        wheel = single.ask_once([options.python, "-c", "import nvidia.nccl; print(nvidia.nccl.__path__[0] + '/lib')"]).strip()
    except SideError:
        return {"LD_LIBRARY_PATH": folders}
    return {"LD_LIBRARY_PATH": f"{folders}:{wheel}"}


def start_sides(options, model: str, folder: pathlib.Path, names: list[str]) -> list[Ranks]:
    archive, inputs = archive_of(options, model)
    program = [options.python, str(HERE / "ranks_side.py")]
    caches = {"AOT_CACHE_DIR": str(options.work / "cache"), "TORCHINDUCTOR_CACHE_DIR": str(options.work / "inductor")}
    ours, sides = our_environment(options), []
    for name in names:
        if name in TORCH_SIDES:
            command = program + [name, model, str(archive), options.dtype, options.torch_device, str(int(not options.no_compile))]
            environment = caches | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
            sides.append(Ranks(options, name, [command] * options.ranks, environment, folder))
        else:
            mode = "shard" if name in ("one", "copies") else name
            library = options.library.parent / "nccl_copies.so"
            copies = [f"run.ranks-with.library={library}", "run.ranks-with.windows=false"] if name == "copies" else []
            command = program + ["ours", str(options.library), str(options.plugins), str(archive), str(inputs), options.dtype, mode,
                                 f"/dev/shm/aothost-ranks-{os.getpid()}-{name}", *copies, *options.set]
            n = 1 if name == "one" else options.ranks
            sides.append(Ranks(options, name, [command] * n, caches | ours, folder))
    return sides


def train_in_turns(sides: list[Ranks], options, deadline: float) -> None:
    try:
        waiting = [side.turns(options, deadline) for side in sides]
        while waiting:
            waiting = [turn for turn in waiting if next(turn, "done") != "done"]
    finally:
        for side in sides:
            side.close()


def predict(options, model: str, folder: pathlib.Path) -> dict[str, float]:
    """Milliseconds of a step by mode, as `aothost plan` has them; its table and JSON stay in the folder."""
    archive, _ = archive_of(options, model)
    modes = [name for names in options.sides for name in names if name in OUR_SIDES[1:-1]] or ["shard"]
    command = [options.aothost.resolve(), "plan", HERE / "ranks.yaml", "--world", f"1,{options.ranks}", "--modes", ",".join(modes),
               "--machine", ROOT / "examples/machines/h200.yaml", "--set", f"model.path={archive.resolve()}", "--set", "run.ranks=none",
               "--set", f"run.train.precision={options.dtype}", "--json", folder / "plan.json"]
    try:
        (folder / "plan.txt").write_text(single.ask_once(command, environment=single.our_libraries(options)))
    except SideError as error:
        (folder / "plan.txt").write_text(str(error))
        return {}
    plans = json.loads((folder / "plan.json").read_text())["plans"]
    return {("one" if plan["ranks"] == 1 else plan.get("mode", modes[0])): plan["step_s"] * 1e3 for plan in plans}


def agree(sides: list[Ranks], dtype: str) -> bool:
    ran = [side.losses for side in sides if side.losses and not side.error and side.name != "copies"]
    return all(abs(losses[at] - ran[0][at]) <= tolerance * max(1.0, abs(ran[0][at]))
               for losses in ran for at, tolerance in zip((0, -1), TOLERANCE[dtype]))


def number(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def table(model: str, sides: list[Ranks], predicted: dict[str, float]) -> str:
    by_name = {side.name: side for side in sides}
    base, one = by_name.get("fsdp2"), by_name.get("one")
    lines = [model, "", "| side | ms | of fsdp2 | of one | predicted ms | peak MiB | of fsdp2 | first s | loss |", "|" + "---|" * 9]
    for side in sides:
        ratio = side.median / base.median if base else math.nan
        memory = side.peak_bytes / base.peak_bytes if base and base.peak_bytes else math.nan
        losses = f"{side.losses[0]:.4f} {side.losses[-1]:.4f}" if side.losses else "-"
        lines.append(f"| {side.name} | {number(side.median, 1)} | {number(ratio, 2)} | "
                     f"{number(side.median / one.median if one else math.nan, 2)} | {number(predicted.get(side.name, math.nan), 1)} | "
                     f"{side.peak_bytes / 2**20:.0f} | {number(memory, 2)} | {number(side.first_ms / 1e3, 1)} | "
                     f"{side.error.splitlines()[-1] if side.error else losses} |")
    return "\n".join(lines)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)

    def names(text: str) -> list[str]:
        return text.split(",")

    parser.add_argument("--models", type=names, default=list(MODELS), metavar="A,B",
                        help="of models.py, or folders with train.pt2 and expected.safetensors (default llama_953m,gpt2)")
    parser.add_argument("--sides", default=ROUNDS, metavar="A,B/C",
                        help=f"by turns those with a comma between them, / begins another round (default {ROUNDS})")
    parser.add_argument("--ranks", type=int, default=2, metavar="N", help="GPUs (default 2)")
    parser.add_argument("--dtype", choices=tuple(TOLERANCE), default="bf16")
    parser.add_argument("--steps", type=int, default=20, metavar="N", help="steps that are measured, of each side (default 20)")
    parser.add_argument("--warm-up", type=int, default=5, metavar="N", help="steps after the first one and before them (default 5)")
    parser.add_argument("--block", type=int, default=5, metavar="N", help="steps of one side in a row (default 5)")
    parser.add_argument("--minutes", type=float, default=30, metavar="M", help="of a model (default 30)")
    parser.add_argument("--no-compile", action="store_true", help="FSDP2 and DDP without torch.compile")
    parser.add_argument("--set", action="append", default=[], metavar="K=V",
                        help="a setting of ranks.yaml for aothost's sides, as `aothost run --set` takes it; may repeat")
    parser.add_argument("--torch-device", choices=("cuda", "cpu"), default="cuda", help="cpu: to try PyTorch's sides without a GPU")
    parser.add_argument("--aothost", type=pathlib.Path, default=ROOT / "build/bin/aothost", metavar="FILE")
    parser.add_argument("--python", default=sys.executable, metavar="FILE", help="a Python with torch, transformers")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/bench-ranks", metavar="DIR", help="archives, caches, logs")
    options = parser.parse_args()
    options.sides = [names(text) for text in options.sides.split("/")]
    wrong = [name for row in options.sides for name in row if name not in TORCH_SIDES + OUR_SIDES]
    if wrong:
        parser.error(f"no side {', '.join(wrong)}; there are {', '.join(TORCH_SIDES + OUR_SIDES)}")
    options.work = options.work.resolve()
    options.device = options.torch_device
    return options


def main() -> int:
    options = parse_options()
    options.library, options.plugins = single.find_library(options.aothost)
    rows, tables, failed = [], [], False
    for model in options.models:
        folder = options.work / "logs" / model.strip("/").replace("/", "_")
        folder.mkdir(parents=True, exist_ok=True)
        sides = []
        try:
            predicted = predict(options, model, folder)
            deadline = time.monotonic() + options.minutes * 60
            for names in options.sides:
                sides += start_sides(options, model, folder, names)
                train_in_turns(sides[-len(names):], options, deadline)
        except SideError as error:
            print(f"{model}: {error}", flush=True)
            failed = True
            continue
        does_agree = agree(sides, options.dtype)
        failed |= not does_agree or any(side.error for side in sides)
        tables.append(table(model, sides, predicted) + ("" if does_agree else "\n\n**losses differ**"))
        print(tables[-1] + "\n", flush=True)
        for side in sides:
            if side.error:
                print(f"{model}: {side.name}: {side.error}\n", flush=True)
            rows.append({"model": model, "side": side.name, "ms": side.ms, "median_ms": side.median, "first_ms": side.first_ms,
                         "losses": side.losses, "peak_bytes": side.peak_bytes, "predicted_ms": predicted.get(side.name),
                         "error": side.error})
        (options.work / "results.json").write_text(json.dumps(rows, indent=1) + "\n")
        (options.work / "table.md").write_text("\n\n".join(tables) + "\n")
    print(f"{options.work}/results.json, table.md, logs/")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
