#!/usr/bin/env python3
"""Whole training steps of the same archives in eager PyTorch, in torch.compile and in aothost. See --help."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import math
import os
import pathlib
import platform
import selectors
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SIDES = ("eager", "compile", "aothost")
MODELS = ("gpt_bytes", "gpt6", "bert_small", "vit_small", "resnet18", "convnext_tiny", "mobilenet_v3", "unet", "lstm", "moe",
          "dlrm", "mlp200")
GPU_MODELS = ("gpt2", "resnet50", "vit_b16", "convnext_t", "bert_base", "llama_953m")
LOSS_TOLERANCE = {"f32": (1e-4, 1e-2), "bf16": (2e-2, 5e-2)}  # of the first and the last step, relative to at least 1

DESCRIPTION = """\
Train the same exported models in eager PyTorch, in torch.compile (inductor, CPU) and in
aothost, and tell the time of a step, the ratios, peak memory, the time to the first step
and how the losses agree.

Each model of models.py is exported once (tools/export_model.py). For each model, dtype and
number of threads three processes are started, each pinned to the same cores. They are asked
in turn for a block of steps until each has done --steps of them after --warm-up; so what
disturbs the machine disturbs all three. A step is forward, backward and AdamW (PyTorch's
fused one) on one batch, which stays. Caches of compiled code are empty at the start, without --caches.
"""

EPILOG = """\
examples
  python bench/torch/run.py --quick                                 # one small model: does it work?
  python bench/torch/run.py --models resnet18,lstm --threads 1      # two models, f32 and bf16
  python bench/torch/run.py --sides eager,aothost                   # quick: torch.compile takes most of the time
  python bench/torch/run.py --caches /tmp/caches                    # a second run compiles nothing: steps alone
  python bench/torch/run.py --minutes 9 --out /tmp/bench            # as far as nine minutes go
  python bench/torch/run.py --device cuda --dtypes bf16 --models gpt2   # whole steps on a GPU
  python bench/torch/run.py --device cuda --dtypes bf16 --models gpt2 --set vars.objective=memory --set vars.budget=8.85GiB
  python bench/torch/run.py --list                                  # what the models are

columns of the table
  eager, compile, aothost   median milliseconds of a step
  x eager, x compile        how many times as fast as those aothost is; 0.8 takes 1.25 times as long
  peak MiB                  most memory of each process; in brackets without what it had before the
                            model was loaded, which is Python, and for PyTorch its libraries. On a GPU
                            what the card had less when the first step was done, context included; of
                            PyTorch's allocator the most that it held in the steps after the first
  first s                   torch.compile: from torch.compile() to the first loss; aothost: from the
                            archive to the first loss. Both with empty caches, eager not counted
  of limit                  (flops / sgemm rate + bytes / copy rate) / time of aothost's step. The rates
                            are PyTorch's, measured on the same cores just before; flops are those of
                            products and convolutions; bytes are parameters, gradients and AdamW's
                            states as often as a step must touch them, and what eager saves for
                            the backward, written once and read once
  loss                      of the last step; the three must agree, at the first and the last step

The status is 1 when losses differ or a side fails. What --minutes leaves no time for is listed as left out.
"""


# ---- one worker process --------------------------------------------------------------------------------------------------------


class SideError(Exception):
    pass


class Worker:
    """A process that answers requests (worker.py), pinned to cpus."""

    def __init__(self, command: list[str], cpus: list[int], environment: dict[str, str], log: pathlib.Path):
        self.log = log
        with open(log, "w") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=HERE, text=True, bufsize=1,
                env=os.environ | environment, preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        self.ready = selectors.DefaultSelector()
        self.ready.register(self.process.stdout, selectors.EVENT_READ)

    def ask(self, deadline: float, **request) -> dict:
        self.send(**request)
        return self.receive(deadline)

    def send(self, **request) -> None:
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
        except BrokenPipeError:
            raise SideError(self.last_words()) from None

    def receive(self, deadline: float) -> dict:
        if not self.ready.select(max(1.0, deadline - time.monotonic())):
            raise SideError("out of time")
        line = self.process.stdout.readline()
        if not line:
            raise SideError(self.last_words())
        return json.loads(line)

    def last_words(self) -> str:
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return "\n".join(lines[-6:]) or f"status {self.process.wait()}"

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.stop()
        self.process.communicate()


# ---- one model, dtype and number of threads --------------------------------------------------------------------------------


@dataclasses.dataclass
class Side:
    ms: list[float] = dataclasses.field(default_factory=list)
    first_ms: float = math.nan
    first_loss: float = math.nan
    last_loss: float = math.nan
    peak_bytes: int = 0
    library_bytes: int = 0
    error: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.ms) if self.ms and not self.error else math.nan


def turns(worker: Worker, side: Side, options, deadline: float):
    """The requests of one side: each next() is a turn. What goes wrong ends this side alone."""
    try:
        first = worker.ask(deadline, do="start")
        side.first_ms, side.first_loss = first["first_ms"], first["loss"]
        yield
        worker.ask(deadline, do="steps", n=options.warm_up)
        yield
        while len(side.ms) < options.steps:
            answer = worker.ask(deadline, do="steps", n=min(options.block, options.steps - len(side.ms)))
            side.ms += answer["ms"]
            side.last_loss = answer["loss"]
            yield
        memory = worker.ask(deadline, do="finish")
        side.peak_bytes, side.library_bytes = memory["peak_bytes"], memory["library_bytes"]
    except SideError as error:
        side.error = str(error)
        worker.stop()  # what it may still do takes time and memory of the others


def commands(options, folder: pathlib.Path, threads: int, dtype: str) -> dict[str, list[str]]:
    archive = str(folder / "train.pt2")
    torch_side = [options.python, str(HERE / "torch_side.py")]
    return {
        "eager": torch_side + ["eager", archive, str(threads), dtype, options.device],
        "compile": torch_side + ["compile", archive, str(threads), dtype, options.device],
        "aothost": [options.python, str(HERE / "aothost_side.py"), str(options.library), str(options.plugins), archive,
                    str(folder / "inputs.safetensors"), str(threads), dtype, options.device, *options.set],
    }


def measure(options, folder: pathlib.Path, threads: int, dtype: str, deadline: float) -> dict[str, Side]:
    sides = {name: Side() for name in SIDES}
    workers = []
    caches = options.caches or pathlib.Path(tempfile.mkdtemp(prefix="bench-torch-"))  # empty: first steps are cold
    environment = {"AOT_CACHE_DIR": str(caches), "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
                   "OMP_NUM_THREADS": str(threads)}
    try:
        waiting = []
        for name, command in commands(options, folder, threads, dtype).items():
            if name not in options.sides:
                continue
            more = our_libraries(options) if name == "aothost" else {}
            worker = Worker(command, options.cpus[:threads], environment | more, folder / f"{name}-{dtype}-{threads}.log")
            workers.append(worker)
            waiting.append(turns(worker, sides[name], options, deadline))
        while waiting:
            waiting = [turn for turn in waiting if next(turn, "done") != "done"]
    finally:
        for worker in workers:
            worker.close()
        if not options.caches:
            shutil.rmtree(caches, ignore_errors=True)
    if options.caches:
        for side in sides.values():
            side.first_ms = math.nan  # may have been warm
    return sides


def losses_agree(sides: dict[str, Side], dtype: str) -> bool:
    first, last = LOSS_TOLERANCE[dtype]

    def close(a: float, b: float, tolerance: float) -> bool:
        return abs(a - b) <= tolerance * max(1.0, abs(b))

    ran = [side for side in sides.values() if side.ms and not side.error]
    return all(close(s.first_loss, ran[0].first_loss, first) and close(s.last_loss, ran[0].last_loss, last) for s in ran)


def limit_ms(facts: dict, rates: dict, dtype: str) -> float:
    """The step's products at the rate of products, and after them its bytes at the rate of copies."""
    moved = 10 * facts["parameter_bytes"] + 2 * facts["saved_bytes"]
    return (facts["flops"] / (rates[f"gflops_{dtype}"] * 1e9) + moved / (rates["copy_gbs"] * 1e9)) * 1e3


# ---- preparation -------------------------------------------------------------------------------------------------------------


def our_libraries(options) -> dict[str, str]:
    """Of a pack, the libraries that stand beside ours. Not for PyTorch, which brings its own."""
    return {"LD_LIBRARY_PATH": ":".join(filter(None, (str(options.library.parent), os.environ.get("LD_LIBRARY_PATH"))))}


def ask_once(command: list, cpus: list[int] | None = None, environment: dict[str, str] = {}) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=ROOT, env=os.environ | environment,
                          preexec_fn=cpus and (lambda: os.sched_setaffinity(0, cpus)))
    if done.returncode:
        raise SideError("\n".join(done.stderr.strip().splitlines()[-6:]))
    return done.stdout


def export(options, model: str) -> pathlib.Path:
    folder = options.work / model
    archive = folder / "train.pt2"
    if not archive.exists() or archive.stat().st_mtime < (HERE / "models.py").stat().st_mtime:
        ask_once([options.python, ROOT / "tools/export_model.py", HERE / f"models.py:{model}", folder, "--no-expected"])
    return folder


def describe(options, folder: pathlib.Path, dtype: str) -> dict:
    """What a step must do, kept beside the archive; and its example inputs as a file."""
    archive, kept = folder / "train.pt2", folder / f"facts-{dtype}-{options.device}.json"
    if not kept.exists() or kept.stat().st_mtime < archive.stat().st_mtime:
        kept.write_text(ask_once([options.python, HERE / "torch_side.py", "describe", archive, folder / "inputs.safetensors", dtype,
                                  options.device]))
    return json.loads(kept.read_text())


def one_cpu_a_core() -> list[int]:
    """Processors that we may use, those that share a core with an earlier one last."""
    allowed, first, others = sorted(os.sched_getaffinity(0)), [], []
    cores = set()
    for cpu in allowed:
        try:
            core = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text()
        except OSError:
            core = str(cpu)
        (others if core in cores else first).append(cpu)
        cores.add(core)
    return first + others


def find_library(binary: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """libaothost.so and the folder of plugins that belong to a binary: of a build, an installation or a pack."""
    for folder in ("lib", "lib/plugins", "lib64"):
        library = binary.resolve().parents[1] / folder / "libaothost.so"
        if library.exists():
            return library, library.parent / "aothost"
    sys.exit(f"run.py: no libaothost.so beside {binary}; build it, or name another with --aothost")


def machine(options) -> dict:
    with open("/proc/cpuinfo") as cpuinfo:
        name = next((line.split(":", 1)[1].strip() for line in cpuinfo if line.startswith("model name")), "unknown")
    versions = ask_once([options.python, "-c", "import torch; print(torch.__version__)"]).strip()
    return {"date": datetime.date.today().isoformat(), "processor": name, "cores": os.cpu_count(), "cpus": options.cpus,
            "load": os.getloadavg()[0], "python": platform.python_version(), "torch": versions,
            "aothost": ask_once([options.aothost.resolve(), "--version"], environment=our_libraries(options)).strip()}


# ---- the table ---------------------------------------------------------------------------------------------------------------


def mib(side: Side) -> str:
    if side.error or not side.peak_bytes:
        return "-"
    return f"{side.peak_bytes / 2**20:.0f} ({(side.peak_bytes - side.library_bytes) / 2**20:.0f})"


def number(value: float, digits: int = 2) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def table_row(row: dict) -> str:
    sides: dict[str, Side] = row["sides"]
    ms = {name: side.median for name, side in sides.items()}
    cells = [row["model"]] + [number(ms[name], 1) for name in SIDES]
    cells += [number(ms["eager"] / ms["aothost"]), number(ms["compile"] / ms["aothost"])]
    cells += [mib(sides[name]) for name in SIDES]
    cells += [number(sides[name].first_ms / 1e3) for name in ("compile", "aothost")]
    cells += [number(row["limit_ms"] / ms["aothost"])]
    cells += [" ".join(number(sides[name].last_loss, 4) for name in SIDES) + ("" if row["agree"] else " **differ**")]
    return "| " + " | ".join(cells) + " |"


def mean(values: list[float]) -> str:
    values = [value for value in values if not math.isnan(value)]
    return f"{statistics.geometric_mean(values):.2f}" if values else "-"


def table(rows: list[dict]) -> str:
    """Markdown: one table for each dtype and number of threads."""
    lines = []
    for dtype, threads in dict.fromkeys((row["dtype"], row["threads"]) for row in rows):
        part = [row for row in rows if (row["dtype"], row["threads"]) == (dtype, threads)]
        rates = part[0]["rates"]
        lines += ["", f"{dtype}, {threads} thread{'s' * (threads > 1)}: {rates[f'gflops_{dtype}']:.0f} GFLOP/s in products, "
                      f"{rates['copy_gbs']:.1f} GB/s in copies", "",
                  "| model | eager | compile | aothost | x eager | x compile | peak MiB eager | compile | aothost "
                  "| first s compile | aothost | of limit | loss |", "|" + "---|" * 13]
        lines += [table_row(row) for row in part]
        speeds = [[row["sides"][name].median / row["sides"]["aothost"].median for row in part] for name in ("eager", "compile")]
        lines += [f"| **geometric mean** | | | | **{mean(speeds[0])}** | **{mean(speeds[1])}** | | | | | | | |"]
    return "\n".join(lines[1:])


def as_json(row: dict) -> dict:
    sides = {name: dataclasses.asdict(side) | {"median_ms": side.median} for name, side in row["sides"].items()}
    return row | {"sides": sides}


def read_rows(path: pathlib.Path) -> list[dict]:
    """The rows of a results.json, as they were when it was written."""
    rows = json.loads(path.read_text())["rows"]
    for row in rows:
        row["sides"] = {name: Side(**{key: value for key, value in side.items() if key != "median_ms"})
                        for name, side in row["sides"].items()}
    return rows


def write_results(options, about: dict, rows: list[dict], left_out: list[str]) -> None:
    options.out.mkdir(parents=True, exist_ok=True)
    content = {"machine": about, "rows": [as_json(row) for row in rows], "left_out": left_out}
    (options.out / "results.json").write_text(json.dumps(content, indent=1) + "\n")
    (options.out / "table.md").write_text(table(rows) + "\n")


# ---- the command line --------------------------------------------------------------------------------------------------------


def parse_options() -> argparse.Namespace:
    def names(known):
        def parse(text: str) -> list[str]:
            wrong = [word for word in text.split(",") if word not in known]
            if wrong:
                raise argparse.ArgumentTypeError(f"no such name: {', '.join(wrong)}; there are {', '.join(known)}")
            return text.split(",")
        return parse

    def numbers(text: str) -> list[int]:
        return [int(word) for word in text.split(",")]

    parser = argparse.ArgumentParser(description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=names(MODELS + GPU_MODELS), metavar="A,B",
                        help="which (default the small ones, with --device cuda the large ones)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu",
                        help="cuda: the first GPU, all sides on it (default cpu)")
    parser.add_argument("--dtypes", type=names(LOSS_TOLERANCE), default=list(LOSS_TOLERANCE), metavar="f32,bf16",
                        help="bf16: torch.autocast, run.train.precision (default both)")
    parser.add_argument("--threads", type=numbers, metavar="1,2",
                        help="threads of each side (default 1,2; with --device cuda 8)")
    parser.add_argument("--sides", type=names(SIDES), default=list(SIDES), metavar="A,B",
                        help="eager, compile, aothost (default all three)")
    parser.add_argument("--steps", type=int, default=20, metavar="N", help="steps that are measured, of each side (default 20)")
    parser.add_argument("--warm-up", type=int, default=3, metavar="N",
                        help="steps after the first one and before them (default 3)")
    parser.add_argument("--block", type=int, default=5, metavar="N", help="steps of one side in a row (default 5)")
    parser.add_argument("--minutes", type=float, default=120, metavar="M", help="begin nothing after so long (default 120)")
    parser.add_argument("--cpus", type=numbers, metavar="0,1",
                        help="processors to pin to, the first THREADS of them (default one a core)")
    parser.add_argument("--set", action="append", default=[], metavar="K=V",
                        help="a setting of train.yaml for aothost's side, as `aothost run --set` takes it; may repeat")
    parser.add_argument("--aothost", type=pathlib.Path, default=ROOT / "build/bin/aothost", metavar="FILE",
                        help="the command, with its library beside it (default build/bin/aothost)")
    parser.add_argument("--python", default=sys.executable, metavar="FILE", help="a Python with torch, torchvision, transformers")
    parser.add_argument("--caches", type=pathlib.Path, metavar="DIR",
                        help="keep compiled code there from run to run, and tell no first steps (default: empty caches)")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/bench-torch", metavar="DIR",
                        help="archives and logs, kept (default build/bench-torch)")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR", help="for results.json and table.md (default: WORK)")
    parser.add_argument("--quick", action="store_true", help="gpt_bytes, f32, 1 thread, 5 steps")
    parser.add_argument("--table", type=pathlib.Path, nargs="+", metavar="FILE",
                        help="print the table of these results.json, and end")
    parser.add_argument("--list", action="store_true", help="tell what the models are, and end")
    options = parser.parse_args()
    if options.quick:
        options.models, options.dtypes, options.threads, options.steps = ["gpt_bytes"], ["f32"], [1], 5
    options.threads = options.threads or ([min(8, os.cpu_count())] if options.device == "cuda" else [1, 2])
    options.models = options.models or list(GPU_MODELS if options.device == "cuda" else MODELS)
    options.work = options.work.resolve()
    options.out = (options.out or options.work).resolve()
    options.caches = options.caches and options.caches.resolve()
    options.cpus = options.cpus or one_cpu_a_core()
    if max(options.threads) > len(options.cpus):
        parser.error(f"{max(options.threads)} threads need as many processors, and there are {len(options.cpus)}")
    return options


def list_models() -> None:
    import ast
    for function in ast.parse((HERE / "models.py").read_text()).body:
        if isinstance(function, ast.FunctionDef) and function.name in MODELS + GPU_MODELS:
            print(f"{function.name:14} {ast.get_docstring(function)}")


def main() -> int:
    options = parse_options()
    if options.list:
        list_models()
        return 0
    if options.table:
        print(table([row for path in options.table for row in read_rows(path)]))
        return 0
    end = time.monotonic() + options.minutes * 60
    options.library, options.plugins = find_library(options.aothost)
    about = machine(options)
    print(", ".join(f"{key} {value}" for key, value in about.items()), flush=True)
    rates = {n: json.loads(ask_once([options.python, HERE / "torch_side.py", "rates", n, options.device], options.cpus[:n]))
             for n in options.threads}
    rows, left_out, failed = [], [], False
    for threads, dtype in ((threads, dtype) for dtype in options.dtypes for threads in options.threads):
        for model in options.models:
            what = f"{model} {dtype} {threads}"
            if time.monotonic() > end:
                left_out.append(what)
                continue
            try:
                folder = export(options, model)
                facts = describe(options, folder, dtype)
            except SideError as error:
                print(f"{what}: cannot be exported: {error}", flush=True)
                failed = True
                continue
            sides = measure(options, folder, threads, dtype, end + 60)
            row = {"model": model, "dtype": dtype, "threads": threads, "rates": rates[threads], "facts": facts,
                   "limit_ms": limit_ms(facts, rates[threads], dtype), "agree": losses_agree(sides, dtype), "sides": sides}
            rows.append(row)
            print(f"{dtype} {threads} {table_row(row)}", flush=True)
            for name, side in sides.items():
                if side.error:
                    print(f"{what}: {name}: {side.error}", flush=True)
            failed |= not row["agree"] or any(side.error for side in sides.values())
            write_results(options, about, rows, left_out)
    write_results(options, about, rows, left_out)
    print("\n" + table(rows))
    if left_out:
        print("\nleft out: " + ", ".join(left_out))
    print(f"\n{options.out}/results.json, {options.out}/table.md")
    return failed


if __name__ == "__main__":
    sys.exit(main())
