#!/usr/bin/env python3
"""Record calls that are there as cases once more, in half precision and with the truth beside.

See --help for use. Needs what tools/requirements-export.txt names.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import json
import pathlib
import sys
import warnings

import export_ops as ops
from export_ops import torch

DESCRIPTION = """\
Record calls that are there as cases once more, in half precision and with the truth beside.

Of every case with float32 tensors, those are rounded to the dtype; then PyTorch runs the call, and its gradients, in
that dtype and once more in float64 on the same rounded numbers. The first are `outputs` and `grads`, the second `exact`
and `exact_grads`: `aothost ops --cases` wants results that are about as near to these as PyTorch's (docs/PIPELINE.md).
"""

EPILOG = """\
example
  python tools/export_halves.py --out out/halves tests/fixtures/ops/cases.json
  aothost ops --cases out/halves/cases.json --backend backend-cpu

exit status: 0 done, 1 nothing was recorded, 2 bad usage
"""


def mapped(value, tensor, dtype):
    """The argument with every tensor, and every dtype, replaced."""
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if isinstance(value, torch.dtype):
        return dtype(value)
    return [mapped(e, tensor, dtype) for e in value] if isinstance(value, (list, tuple)) else value


def rounded(t, dtype):
    """In another dtype, strides and offset kept."""
    if ops.is_plain(t):
        return t.to(dtype)
    return ops.storage_of(t).to(dtype).as_strided(t.shape, t.stride(), t.storage_offset())


def in_dtype(call: ops.Call, of, dtype) -> ops.Call:
    """The call with its tensors of dtypes `of` in another."""
    def convert(v):
        return mapped(v, lambda t: rounded(t, dtype) if t.dtype in of else t, lambda d: dtype if d in of else d)
    return ops.Call(call.func, [convert(a) for a in call.args], {k: convert(v) for k, v in call.kwargs.items()})


def differentiated(call: ops.Call, dtype):
    """Results, and by path those arguments that require a gradient: all of the dtype."""
    args, leaves = [ops.copied(a) for a in call.args], {}
    for i, a in enumerate(args):
        if isinstance(a, torch.Tensor) and a.dtype == dtype:
            args[i] = leaves[str(i)] = a.requires_grad_()
        for k, e in enumerate(a if isinstance(a, list) else []):
            if isinstance(e, torch.Tensor) and e.dtype == dtype:
                a[k] = leaves[f"{i}.{k}"] = e.requires_grad_()
    results = ops.flat(call.func(*args, **{k: ops.copied(v) for k, v in call.kwargs.items()}))
    return results, leaves


def gradients(call: ops.Call, dtype, tangents):
    """By path; tangents {number of a result: tensor}."""
    results, leaves = differentiated(call, dtype)
    chosen = [results[int(k)] for k in tangents]
    given = [t.to(r.dtype) for t, r in zip(tangents.values(), chosen)]
    return dict(zip(leaves, torch.autograd.grad(chosen, list(leaves.values()), given, allow_unused=True)))


def draw_tangents(call: ops.Call, dtype):
    results, leaves = differentiated(call, dtype)
    return {str(k): torch.randn(r.shape).to(dtype) for k, r in enumerate(results)
            if leaves and isinstance(r, torch.Tensor) and r.requires_grad and r.dtype == dtype}


def exact(writer: ops.Writer, key: str, narrow, wide):
    """The truth of a result, in float32; None for what is compared as it was recorded."""
    if not isinstance(narrow, torch.Tensor) or not narrow.dtype.is_floating_point or not isinstance(wide, torch.Tensor):
        return None
    return writer.tensor(key, wide.to(torch.float32).contiguous())


def fit(narrow, wide) -> bool:
    return len(narrow) == len(wide) and all(
        a.shape == b.shape for a, b in zip(narrow, wide) if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor))


def record_gradients(writer: ops.Writer, case: dict, half: ops.Call, double: ops.Call, dtype):
    try:
        tangents = draw_tangents(half, dtype)
        if not tangents:
            return
        ours, truth = gradients(half, dtype, tangents), gradients(double, torch.float64, tangents)
    except Exception as error:
        case["no_grad_because"] = str(error).split("\n")[0][:200]
        return
    if list(ours) != list(truth):  # float64 arguments that were there
        return
    if any(g is not None and g.layout != torch.strided for g in ours.values()):
        return
    case["tangents"] = {k: writer.tensor(f"{case['id']}.t{k}", t) for k, t in tangents.items()}
    case["grads"] = {p: None if g is None else writer.tensor(f"{case['id']}.g{p}", g.contiguous()) for p, g in ours.items()}
    case["exact_grads"] = {p: None if g is None else exact(writer, f"{case['id']}.x{p}", g, truth[p]) for p, g in ours.items()}


def write_call(writer: ops.Writer, name: str, call: ops.Call, has_gradients: bool, dtype) -> str:
    half = in_dtype(call, (torch.float32, torch.bfloat16, torch.float16), dtype)
    double = in_dtype(half, (dtype,), torch.float64)
    if not any(t.dtype == dtype and t.numel() for v in half.values() for t in ops.tensors_of(v)):
        return "without floats"
    try:
        outputs, again = ops.flat(half.run()), ops.flat(half.run())
        truth, undefined = ops.flat(double.run()), ops.is_undefined(half, outputs)
    except Exception:
        return "refused by PyTorch"
    if not all(ops.same(a, b) for a, b in zip(outputs, again)) or not fit(outputs, truth):
        return "not determined"
    if undefined:
        return "undefined"
    if all(isinstance(o, torch.Tensor) and o.numel() == 0 for o in outputs):
        return "nothing to compare"
    case = {"id": name, "op": ops.operator_name(call.func)}
    try:
        case["args"] = [writer.value(f"{name}.a{i}", a) for i, a in enumerate(half.args)]
        case["kwargs"] = {k: writer.value(f"{name}.k.{k}", v) for k, v in half.kwargs.items()}
        case["outputs"] = [writer.value(f"{name}.o{i}", o.contiguous() if isinstance(o, torch.Tensor) else o)
                           for i, o in enumerate(outputs)]
    except TypeError:
        writer.tensors = {k: t for k, t in writer.tensors.items() if not k.startswith(name + ".")}
        return "an argument without a form"
    case["exact"] = [exact(writer, f"{name}.x.{i}", a, b) for i, (a, b) in enumerate(zip(outputs, truth))]
    if has_gradients:
        record_gradients(writer, case, half, double, dtype)
    writer.cases.append(case)
    return "recorded"


def calls_of(path: pathlib.Path):
    """(id, Call, whether it has gradients) of a file of cases, or of own calls; not those that write, or draw."""
    if path.suffix == ".py":
        yield from ((f"h{i}", call, True) for i, call in enumerate(ops.own_calls(str(path))))
        return
    reader = ops.Reader(path.with_name("data.safetensors"))
    for case in json.loads(path.read_text()):
        space, name, overload = case["op"].split(".")
        func = getattr(getattr(getattr(torch.ops, space), name, None), overload, None)
        if func is None or func._schema.is_mutable or torch.Tag.nondeterministic_seeded in func.tags:
            continue
        yield case["id"], ops.Call(func, [reader.value(a) for a in case["args"]],
                                   {k: reader.value(a) for k, a in case.get("kwargs", {}).items()}), bool(case.get("grads"))


def exceptions_of(path: pathlib.Path, prefix: str, names: set):
    """Lines of the exceptions.txt beside the cases that speak of cases or operators that were recorded."""
    listed = path.with_name("exceptions.txt")
    for line in listed.read_text().splitlines() if listed.exists() else []:
        who, _, rest = line.partition(" ")
        if who in names or prefix + who in names:
            yield f"{who if who in names else prefix + who} {rest.strip()}"


def export(options) -> int:
    writer, fates, dtype = ops.Writer(), collections.Counter(), getattr(torch, options.dtype)
    ops.seed_all(options.seed, "halves")
    kept, exceptions = collections.Counter(), []
    for path in options.cases:
        prefix = f"{path.parent.name}_" if len(options.cases) > 1 else ""
        for name, call, has_gradients in calls_of(path):
            op = ops.operator_name(call.func)
            if (options.cases_per_op and kept[op] == options.cases_per_op) or call.numel() > options.elements:
                continue
            if not any(fnmatch.fnmatchcase(op, p) for p in options.ops or ["*"]):
                continue
            fate = write_call(writer, prefix + name, call, has_gradients, dtype)
            kept[op] += fate == "recorded"
            fates[fate] += 1
        exceptions += exceptions_of(path, prefix, {c["id"] for c in writer.cases} | set(kept))
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    ops.save_file(dict(sorted(writer.tensors.items())), out / "data.safetensors")
    lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in writer.cases)
    (out / "cases.json").write_text(f"[\n{lines}\n]\n")
    exceptions += options.exceptions.read_text().splitlines() if options.exceptions else []
    (out / "exceptions.txt").write_text("".join(f"{line}\n" for line in exceptions))
    print(f"{len(writer.cases)} cases of {len({c['op'] for c in writer.cases})} operators, "
          f"{sum('grads' in c for c in writer.cases)} with gradients"
          + "".join(f"; {n} {word}" for word, n in sorted(fates.items()) if word != "recorded"))
    return 0 if writer.cases else 1


def parse(argv):
    p = argparse.ArgumentParser(description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cases", metavar="CASES", nargs="+", type=pathlib.Path,
                   help="a cases.json, its data.safetensors beside it; or a Python file of own calls (export_ops.py)")
    p.add_argument("--out", metavar="OUT_DIR", required=True, help="folder to write, made when missing")
    p.add_argument("--dtype", choices=("bfloat16", "float16"), default="bfloat16", help="bfloat16 when left out")
    p.add_argument("--ops", nargs="+", metavar="PATTERN", help="only overloads that fit, as 'aten.add.*'; * is any text")
    p.add_argument("--cases-per-op", type=int, default=0, metavar="N", help="the first ones of an overload (0: all)")
    p.add_argument("--elements", type=int, default=1 << 20, metavar="N", help="only calls with at most so many (all)")
    p.add_argument("--exceptions", metavar="FILE", type=pathlib.Path, help="lines to add to exceptions.txt (docs/PIPELINE.md)")
    p.add_argument("--seed", type=int, default=0, metavar="N", help="the same seed gives the same files (0)")
    return p.parse_args(argv)


def main(argv) -> int:
    options = parse(argv)
    if torch is None:
        print(f"export_halves.py: {ops.WHY_NO_TORCH}; pip install -r tools/requirements-export.txt", file=sys.stderr)
        return 2
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    try:
        return export(options)
    except OSError as error:
        print(f"export_halves.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
