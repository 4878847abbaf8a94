#!/usr/bin/env python3
"""Random PyTorch programs, run by eager PyTorch and by aothost: results, gradients, buffers, inputs after the call.

See --help for use. Needs what tools/requirements-export.txt names.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import copy
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from typing import NamedTuple

import torch
from safetensors.torch import load_file, save_file

import eager_step
import export_model
from random_kinds import KINDS_OF_PROGRAMS, Alias, Halves, Recurrent
from random_programs import Program, generate

DESCRIPTION = """\
Makes random PyTorch programs, exports each with torch.export, and compares what
`aothost verify` computes on every backend with eager PyTorch: outputs, gradients
of parameters and inputs, buffers and inputs after the call.

A program is a list of statements over inputs, parameters and buffers: views,
writes through views, operators in place, no_grad blocks, composites, losses,
buffers written after losses, ten dtypes, NaN and infinities. Each is tried
eagerly while it is made, so all are valid; writes whose outcome goes by the
order of elements in a kernel are left out. One that disagrees is reduced
statement by statement, and its folder is kept: train.pt2, expected.safetensors,
src.py.

Kinds of programs (--kinds): plain; sizes (symbols, branches on sizes, three sizes, of
which PyTorch's module may refuse some, which we must refuse, too); data (sizes that
depend on data, three sets of data); halves (bfloat16 or float16 on 1, 2 and 4 threads);
recurrent (recurrent and bilinear layers against torch.autocast); alias (inputs that
share memory when the program runs).

What torch.export itself changes (the exported module, run by PyTorch, differs
from eager) is counted apart: such a program is compared with the exported
module instead, since no reader of the archive could know better.
"""

EPILOG = """\
example
  python tools/random_models.py out --count 500 --seed 1 --aothost build/bin/aothost
  python tools/random_models.py out --count 9000 --jobs 16 --kinds sizes,data,halves --aothost build/bin/aothost
  python tools/random_models.py tests/fixtures/random --kinds plain --count 60 --seed 1 --keep    (only make them)

exit status: 0 all agree or were refused with a message, 1 some disagree, 2 bad usage
"""

# ---- comparison ----


class Outcome:
    AGREE, REFUSED, EXPORT_REFUSES, EXPORT_LOSES = "agree", "refused", "export refuses", "export loses"
    DIFFERS, ACCEPTS, FAILED = "differs", "accepts what PyTorch refuses", "failed"
    BAD = (DIFFERS, ACCEPTS, FAILED)


def close(a: dict, b: dict, loose: bool) -> bool:
    rtol, atol = (5e-2, 5e-2) if loose else (1e-4, 1e-5)
    return a.keys() == b.keys() and all(
        x.shape == y.shape and x.dtype == y.dtype and torch.allclose(x, y, rtol=rtol, atol=atol, equal_nan=True)
        for x, y in ((a[key], b[key]) for key in a)
    )


def has_half(values: dict, program: Program) -> bool:
    text = program.source()
    return "float16" in text or "half" in text or any(v.dtype in (torch.float16, torch.bfloat16) for v in values.values())


def step(model, args: tuple, program: Program) -> dict:
    """One eager step with its gradients, in what the kind of program runs in."""
    with program.context():
        return eager_step.drop_unchanged_inputs(eager_step.run_step(model, args, {}, 0))


def aliased_step(model, program: Alias) -> tuple[dict, dict]:
    """One eager step on inputs that share a storage: values and the metadata that name the geometry (docs/RUN.md, section 2)."""
    storage, others = program.storage(), program.make()[1][2:]
    values, metadata = {"storage.0": storage.clone()}, {}
    for k, (sizes, strides, offset) in enumerate(program.geometry()):
        metadata[f"alias.input.{k}"] = f"storage.0 {list(sizes)} strides {strides} offset {offset}"
    given = [storage.as_strided(*geometry) for geometry in program.geometry()]
    if program.geometry()[0] == program.geometry()[1]:
        given[1] = given[0]
    given += [x.clone() for x in others]
    values |= {f"input.{k + 2}": x.clone() for k, x in enumerate(others)}
    outputs = [y for y in model(*given)]
    tangents = {k: eager_step.tangent_for(y) for k, y in enumerate(outputs) if eager_step.is_differentiable(y)}
    if tangents:
        torch.autograd.backward([outputs[k] for k in tangents], list(tangents.values()))
    values |= {f"output.{k}": eager_step.stored(y) for k, y in enumerate(outputs)}
    values |= {f"tangent.{k}": eager_step.stored(t) for k, t in tangents.items()}
    values |= {f"input_after.{k}": eager_step.stored(x) for k, x in enumerate(given)}
    values |= {f"grad.{name}": eager_step.stored(p.grad) for name, p in model.named_parameters() if p.grad is not None}
    return values | {f"buffer_after.{name}": eager_step.stored(b) for name, b in model.named_buffers()}, metadata


class Call(NamedTuple):
    """One set of inputs: what PyTorch gives for it, or that the exported module refuses it."""

    values: dict
    metadata: dict
    refused: bool


class Recorded(NamedTuple):
    outcome: str
    why: str
    calls: list[Call]


def record_call(program: Program, exported, call: int) -> tuple[Call | None, bool]:
    """(the call, whether the exported module differs from eager); None: eager PyTorch does not run it."""
    try:
        if isinstance(program, Alias):
            return Call(*aliased_step(program.make()[0], program), False), False
        values = step(*program.make(call), program)
    except Exception:  # at these sizes, or with this data, the program is none
        return None, False
    if isinstance(program, Recurrent):  # exported outside of autocast: it asserts float32
        return Call(values, {}, False), False
    inputs = {key: value for key, value in values.items() if key.startswith("input.")}
    try:
        copy.deepcopy(exported.module())(*[x.detach().clone() for x in program.make(call)[1]])  # it writes its buffers
    except Exception:
        return Call(inputs, {}, True), False
    again = step(export_model.module_of(exported), program.make(call)[1], program)
    again = {key: value for key, value in again.items() if not key.startswith("buffer_after.lifted_tensor")}
    lost = not close(values, again, has_half(values, program) or isinstance(program, Recurrent))
    return Call(again if lost else values, {}, False), lost


def write_folder(program: Program, folder: pathlib.Path) -> Recorded:
    """Exports and records; an outcome other than AGREE where PyTorch itself is in the way."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "src.py").write_text(program.source())
    said = io.StringIO()  # torch.export prints the graphs that it refuses
    with warnings.catch_warnings(), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        warnings.simplefilter("ignore")
        try:
            step(*program.make(), program)
        except RuntimeError as error:  # a gradient that PyTorch has no way to
            return Recorded(Outcome.EXPORT_REFUSES, f"eager PyTorch: {error}", [])
        try:
            exported = torch.export.export(*program.make(), dynamic_shapes=program.dynamic_shapes(), strict=False)
            torch.export.save(exported, str(folder / "train.pt2"))
        except Exception as error:
            return Recorded(Outcome.EXPORT_REFUSES, str(error), [])
        try:
            recorded = [record_call(program, exported, call) for call in range(program.n_calls)]
        except Exception as error:
            return Recorded(Outcome.EXPORT_REFUSES, f"the exported module does not run: {error}", [])
    calls = [call for call, _ in recorded if call]
    if not calls or calls[0].refused:
        return Recorded(Outcome.EXPORT_REFUSES, "the exported module does not run with its own inputs", [])
    for k, call in enumerate(calls):
        save_file(call.values, str(folder / expected_name(k)), metadata=call.metadata or None)
    return Recorded(Outcome.EXPORT_LOSES if any(lost for _, lost in recorded) else Outcome.AGREE, "", calls)


def expected_name(k: int) -> str:
    return f"expected.{k}.safetensors" if k else "expected.safetensors"


def run_verify(options, pipeline: str, folder: pathlib.Path, calls: list[int], settings: list[str]) -> tuple[int, str]:
    command = [str(options.aothost), "verify", str(options.pipelines / pipeline), "--no-cache", "--model", str(folder / "train.pt2")]
    command += [word for k in calls for word in ("--expect", str(folder / expected_name(k)))] + settings
    environment = os.environ | {"MALLOC_PERTURB_": "170"}  # memory that is read before it is written shows
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    except subprocess.TimeoutExpired:
        return 99, "timed out"
    return done.returncode, done.stdout + done.stderr


def far(a: torch.Tensor, b: torch.Tensor) -> float:
    """Euclidean distance relative to b."""
    a, b = a.double(), b.double()
    return float((a - b).norm() / b.norm().clamp_min(1e-6))


NEAR = 0.7  # of the distance of float32: equal casts leave differences in the order of sums alone


def judge_autocast(options, program: Recurrent, folder: pathlib.Path, recorded: dict, backend: str) -> tuple[str, str]:
    """Results in bfloat16 are nearer to those of torch.autocast than float32's are."""
    program_in_float = eager_step.run_step(*program.make(), {}, 0)
    command = [str(options.aothost), "run", str(options.pipelines.parent / "tests/e2e/autocast.yaml"), "--no-cache", "--set", f"vars.backend={backend}"]
    command += ["--model", str(folder / "train.pt2"), "--inputs", str(folder / expected_name(0)), "--outputs", str(folder / "ours.safetensors")]
    command += ["--grads"] if any(key.startswith("grad.") for key in recorded) else []
    command += ["--set", "run.device=cuda"] if backend == "backend-cuda" else []
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        return (Outcome.REFUSED if done.returncode == 2 else Outcome.FAILED), f"{backend}, status {done.returncode}\n{done.stdout}{done.stderr}"
    ours = load_file(str(folder / "ours.safetensors"))
    for key in recorded:
        if key.startswith(("output.", "grad.")) and recorded[key].numel():
            off, float_off = far(ours[key], recorded[key]), far(program_in_float[key], recorded[key])
            if off > NEAR * float_off + 2e-3:
                return Outcome.DIFFERS, f"{backend}: {key} differs: {off:.2e} from torch.autocast, float32 {float_off:.2e}"
    return Outcome.AGREE, ""


def arrangements(options, program: Program, differentiates: bool):
    """(pipeline, settings) of each way that a program is compiled."""
    pipeline = "verify.yaml" if differentiates else "inference.yaml"
    made = []
    for backend in options.backends:
        threads = [[]]
        if isinstance(program, Halves) and backend == "backend-cpu":
            threads = [["--set", f"stages.backend-cpu.threads={n}"] for n in (1, 2, 4)]
        for partition in options.partitions if differentiates else options.partitions[:1]:
            chosen = ["--set", f"vars.partition={partition}"] if differentiates else []
            device = ["--set", "run.device=cuda"] if backend == "backend-cuda" else []
            made += [(pipeline, ["--set", f"vars.backend={backend}"] + device + chosen + count) for count in threads]
    return made


def judge(options, program: Program, folder: pathlib.Path) -> tuple[str, str]:
    outcome, why, calls = write_folder(program, folder)
    if outcome == Outcome.EXPORT_REFUSES or not options.aothost:
        return outcome, why
    if isinstance(program, Recurrent):
        tried = [judge_autocast(options, program, folder, calls[0].values, backend) for backend in options.backends]
        return next((pair for pair in tried if pair[0] != Outcome.AGREE), (outcome, ""))
    differentiates = any(key.startswith("grad.") for call in calls for key in call.values)
    loose = any(has_half(call.values, program) for call in calls)
    tolerance = ["--rtol", "5e-2", "--atol", "5e-2"] if loose else []
    agreeing = [k for k, call in enumerate(calls) if not call.refused]
    refusal = None
    for pipeline, settings in arrangements(options, program, differentiates):
        where = f"{pipeline} {' '.join(settings)}"
        status, text = run_verify(options, pipeline, folder, agreeing, settings + tolerance)
        if status == 2:
            refusal = text
        elif status != 0:
            return (Outcome.DIFFERS if status == 1 else Outcome.FAILED), f"{where}, status {status}\n{text}"
        for k in (k for k, call in enumerate(calls) if call.refused and status == 0):
            status, text = run_verify(options, pipeline, folder, [k], settings)
            if status != 2:
                return Outcome.ACCEPTS, f"{where}, {expected_name(k)}: PyTorch's exported module refuses it, status {status}\n{text}"
    return (Outcome.REFUSED, refusal) if refusal else (outcome, "")


def reduced(options, program: Program, outcome: str) -> Program:
    """Removes statements and results as long as the outcome stays."""
    changed = True
    while changed:
        changed = False
        smaller = []
        for k in reversed(range(len(program.prelude()), len(program.statements))):
            smaller.append((program.statements[:k] + program.statements[k + 1 :], program.returned))
        for k in range(len(program.returned)):
            smaller.append((program.statements, program.returned[:k] + program.returned[k + 1 :]))
        for statements, returned in smaller:
            trial = type(program)(program.seed)
            trial.statements, trial.returned = statements, returned
            if not returned:
                continue
            try:
                step(*trial.make(), trial)
            except Exception:
                continue
            with tempfile.TemporaryDirectory() as folder:
                if judge(options, trial, pathlib.Path(folder))[0] == outcome:
                    program, changed = trial, True
                    break
    return program


def first_line(text: str) -> str:
    lines = [line for line in text.splitlines() if "error" in line or "differs" in line or "missing" in line] or text.splitlines() or [""]
    return lines[0][:160]


def parse_options(argv) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="random_models.py", description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out_dir", metavar="OUT_DIR", type=pathlib.Path, help="folder for the programs that are kept")
    parser.add_argument("--count", type=int, default=100, metavar="N", help="how many programs (default 100)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the first; the next ones follow (default 1)")
    parser.add_argument("--kinds", default=",".join(KINDS_OF_PROGRAMS), help="comma-separated, by turns (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="programs at once (default 1)")
    parser.add_argument("--seconds", type=float, metavar="S", help="begin no program after S seconds")
    parser.add_argument("--aothost", type=pathlib.Path, metavar="F", help="the command; without it programs are only made")
    parser.add_argument("--pipelines", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "pipelines", metavar="DIR")
    parser.add_argument("--backends", default="backend-ref,backend-cpu", help="comma-separated")
    parser.add_argument("--partitions", default="partition-default,partition-mincut", help="comma-separated")
    parser.add_argument("--keep", action="store_true", help="keep every program's folder, not only those that disagree")
    parser.add_argument("--reduce", action="store_true", help="make programs that disagree smaller before they are kept")
    options = parser.parse_args(argv)
    options.backends, options.partitions = options.backends.split(","), options.partitions.split(",")
    options.kinds = options.kinds.split(",")
    for kind in options.kinds:
        if kind not in KINDS_OF_PROGRAMS:
            parser.error(f"no kind of programs '{kind}'; there are {', '.join(KINDS_OF_PROGRAMS)}")
    return options


class Tried(NamedTuple):
    seed: int
    kind: str
    outcome: str
    text: str
    source: str


def try_seed(options, seed: int) -> Tried:
    """Makes one program, runs it, and keeps its folder where that is wanted."""
    kind = options.kinds[seed % len(options.kinds)]
    program = generate(KINDS_OF_PROGRAMS[kind](seed))
    folder = options.out_dir / str(seed)
    outcome, text = judge(options, program, folder)
    bad = outcome in Outcome.BAD
    if bad and options.reduce:
        program = reduced(options, program, outcome)
        text = judge(options, program, folder)[1]
    if bad:
        (folder / "report.txt").write_text(text)
    if not bad and not (options.keep and outcome == Outcome.AGREE) and outcome != Outcome.REFUSED:
        shutil.rmtree(folder, ignore_errors=True)
    return Tried(seed, kind, outcome, text, program.source())


def try_all(options):
    """Yields what became of each program, in any order."""
    torch.set_num_threads(1)
    deadline = time.monotonic() + options.seconds if options.seconds else float("inf")
    seeds = iter(range(options.seed, options.seed + options.count))
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        waiting = {pool.submit(try_seed, options, seed) for seed, _ in zip(seeds, range(2 * options.jobs))}
        while waiting:
            done, waiting = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                yield future.result()
                seed = next(seeds, None) if time.monotonic() < deadline else None
                if seed is not None:
                    waiting.add(pool.submit(try_seed, options, seed))


def main(argv=None) -> int:
    options = parse_options(argv)
    counts, refusals = collections.defaultdict(collections.Counter), collections.Counter()
    for n, tried in enumerate(try_all(options), 1):
        counts[tried.kind][tried.outcome] += 1
        if sys.stderr.isatty():
            print(f"\r{n} of {options.count}", end="", file=sys.stderr, flush=True)
        if tried.outcome == Outcome.REFUSED:
            refusals[first_line(tried.text)] += 1
        if tried.outcome in Outcome.BAD:
            print(f"seed {tried.seed}, {tried.kind}: {tried.outcome}: {first_line(tried.text)}\n{tried.source}", flush=True)
    total = sum(counts.values(), collections.Counter())
    for kind, outcomes in counts.items():
        print(f"{kind}: " + "; ".join(f"{name} {number}" for name, number in outcomes.most_common()))
    print(f"all {total.total()}: " + "; ".join(f"{name} {number}" for name, number in total.most_common()))
    for line, number in refusals.most_common(30):
        print(f"  {number} refused: {line}")
    return 1 if any(total[outcome] for outcome in Outcome.BAD) else 0


if __name__ == "__main__":
    sys.exit(main())
