#!/usr/bin/env python3
"""Record ATen calls and their gradients as cases for `aothost ops --cases`.

See --help for use. Needs what tools/requirements-export.txt names, and expecttest for the samples of PyTorch.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import json
import pathlib
import random
import runpy
import sys
import warnings
import zlib

try:
    import torch
    from safetensors.torch import load_file, save_file
    from torch.utils._python_dispatch import TorchDispatchMode
except ImportError as missing:
    torch = None
    TorchDispatchMode = object
    WHY_NO_TORCH = str(missing)

DTYPES = ("float32", "float64", "bfloat16", "float16", "int8", "int16", "int32", "int64", "uint8", "bool")
COMPLEX = "complex64"  # on request; safetensors has no complex128

DESCRIPTION = """\
Record ATen calls and their gradients as cases for `aothost ops --cases`.

The samples are those by which PyTorch tests itself (its OpInfo database). They run
under a mode that sees the calls below autograd and below composite operators, so
that a sample of `linear` records `aten.addmm.default`. Every recorded call runs
once more by itself: one whose results then differ is dropped.

Files written to OUT_DIR
  cases.json        a list of {id, op, args, kwargs, outputs, shares, out_meta, tangents, grads};
                    docs/PIPELINE.md has the format
  data.safetensors  the tensors that it names
"""

EPILOG = """\
example
  python tools/export_ops.py --out out/add --ops 'aten.add.*' --dtypes int8 uint8
  aothost ops --cases out/add/cases.json --backend backend-ref

  aothost ops --json table.json
  python tools/export_ops.py --out out/half --table table.json --dtypes float16 --gradients

which calls are kept
  Of an operator and one combination of tensor dtypes, --cases-per-op: first calls that differ in ranks,
  in layout, in emptiness or in which arguments are there, then others. Calls that write an
  argument, random ones, complex, quantized and sparse tensors, and tensors of more
  than --elements elements are left out, and so is what PyTorch leaves undefined:
    a NaN, an infinity or a value out of range cast to an integer
    integer division and remainder of the smallest number by -1
    shifts by a negative amount, or by the width or more

own calls (--calls FILE)
  A Python file whose list `calls` has (operator, args, kwargs), as in
    import torch
    calls = [("aten.add.Tensor", (torch.ones(3, dtype=torch.int8), 300), {}),
             ("aten.sum.dim_IntList", (torch.ones(2, 0), [-1]), {"keepdim": True})]
  They are kept whole and come first; with --calls and no --ops and no --table, alone.

edge numbers (--edges)
  A sample's call is kept three times, a third of its floats replaced: by NaN, by infinities, by
  zeros of both signs and denormals; as it is, where one of its tensors is empty. Own calls are
  kept as they are.

who shares memory (shares)
  For each result the path of the argument whose storage it uses: "0", "0.2" in a list, a keyword; null: a
  storage of its own; "": it has no elements. With --shares FILE the calls of an existing cases.json are run
  again for nothing but that, and FILE is written anew; calls that cannot run here get no answer.

gradients (--gradients)
  Every float32 and complex64 tensor argument requires one at once; the cotangents are random. A call that
  PyTorch cannot differentiate says why in no_grad_because.

exit status: 0 done, 1 nothing was recorded, 2 bad usage
"""


class UsageError(Exception):
    """The command line, or what it names, is wrong."""


# ---- calls -------------------------------------------------------------------------------


def operator_name(func) -> str:
    return f"{func.namespace}.{func._schema.name.split('::')[1]}.{func._overloadname}"


def tensors_of(value):
    """Every tensor of an argument: itself, or those of its list."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for element in value:
            yield from tensors_of(element)


def storage_of(t):
    """The whole storage as a 1-d tensor."""
    n = t.untyped_storage().nbytes() // t.element_size()
    return torch.empty(0, dtype=t.dtype).set_(t.untyped_storage(), 0, (n,), (1,))


def is_plain(t) -> bool:
    """Dense, and all of its storage: its elements in order are all there is to say."""
    return t.is_contiguous() and storage_of(t.detach()).numel() == t.numel()


def copied(value):
    """The argument on storage of its own, strides and offset kept."""
    if isinstance(value, torch.Tensor):
        if is_plain(value):
            return value.detach().clone(memory_format=torch.contiguous_format)
        return storage_of(value.detach()).clone().as_strided(value.shape, value.stride(), value.storage_offset())
    if isinstance(value, (list, tuple)):
        return [copied(element) for element in value]
    return value


def is_ordinary(t, most: int, dtypes) -> bool:
    name = str(t.dtype).removeprefix("torch.")
    return (type(t) in (torch.Tensor, torch.nn.Parameter) and t.layout == torch.strided and t.device.type == "cpu"
            and (name in DTYPES or name == "uint64" or (name == COMPLEX and COMPLEX in dtypes))
            and not t.is_quantized and not t.is_neg() and not t.is_conj() and t.numel() <= most and storage_of(t.detach()).numel() <= 2 * most)


def shape_class(value) -> str:
    """What makes one call unlike another of the same operator and dtypes."""
    if isinstance(value, torch.Tensor):
        marks = (("e", value.numel() == 0), ("s", not is_plain(value)), ("1", 1 in value.shape))
        return str(value.dim()) + "".join(mark for mark, holds in marks if holds)
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(shape_class(element) for element in value) + "]"
    return type(value).__name__ if not isinstance(value, (bool, str)) else str(value)


class Call:
    """One call of one overload, its arguments copied before it ran."""

    def __init__(self, func, args, kwargs):
        self.func = func
        self.args = [copied(a) for a in args]
        self.kwargs = {k: copied(v) for k, v in kwargs.items()}

    def values(self):
        return [*self.args, *self.kwargs.values()]

    def numel(self) -> int:
        return sum(t.numel() for v in self.values() for t in tensors_of(v))

    def dtypes(self) -> str:
        return ",".join(str(t.dtype) for v in self.values() for t in tensors_of(v))

    def key(self) -> str:
        return ";".join(shape_class(v) for v in self.args) + ";" + ";".join(
            f"{k}={shape_class(v)}" for k, v in sorted(self.kwargs.items()))

    def run(self):
        return self.func(*copied(self.args), **{k: copied(v) for k, v in self.kwargs.items()})


# Numbers where kernels differ: each set stands alone in a call, so that a failure tells which. 1e-40 is denormal in float32.
EDGES = {"nan": (float("nan"),), "infinite": (float("inf"), float("-inf")), "small": (-0.0, 0.0, 1e-40, -1e-40)}


def sprinkled(value, edges, dice):
    """A third of the floats, and at least one of a tensor, are edge numbers; values of an argument."""
    if isinstance(value, (list, tuple)):
        return [sprinkled(element, edges, dice) for element in value]
    if not isinstance(value, torch.Tensor) or not value.is_floating_point() or value.numel() == 0:
        return copied(value)
    edged = copied(value)
    storage = storage_of(edged)
    sure = edged.storage_offset()
    for i in range(storage.numel()):
        if i == sure or dice.random() < 1 / 3:
            storage[i] = dice.choice(edges)
    return edged


def edge_calls(call: Call, seed: int):
    """The call with each set of edge numbers in its floats; itself, where a tensor of it is empty."""
    tensors = [t for v in call.values() for t in tensors_of(v)]
    if any(t.numel() == 0 for t in tensors):
        yield call
    elif any(t.is_floating_point() for t in tensors):
        for name, edges in EDGES.items():
            dice = random.Random(f"{seed} {operator_name(call.func)} {name}")
            yield Call(call.func, sprinkled(call.args, edges, dice), {k: sprinkled(v, edges, dice) for k, v in call.kwargs.items()})


def flat(result):
    """Results as a list, bits of conjugation and sign worked in."""
    results = list(result) if isinstance(result, (list, tuple)) else [result]
    return [r.resolve_conj().resolve_neg() if isinstance(r, torch.Tensor) else r for r in results]


# ---- what PyTorch leaves undefined --------------------------------------------------------


def is_whole(dtype) -> bool:
    return not dtype.is_floating_point and not dtype.is_complex


def integer_range_leaves(t, dtype) -> bool:
    if not t.dtype.is_floating_point or not is_whole(dtype) or dtype == torch.bool or t.numel() == 0:
        return False
    info, wide = torch.iinfo(dtype), t.double()
    return not bool((torch.isfinite(wide) & (wide.trunc() >= info.min) & (wide.trunc() < float(info.max) + 1)).all())


def is_undefined(call: Call, outputs) -> bool:
    name = call.func._schema.name.split("::")[1]
    tensors = [t for v in call.values() for t in tensors_of(v)]
    result = outputs[0] if outputs and isinstance(outputs[0], torch.Tensor) else None
    if name in ("_to_copy", "copy", "sum", "prod", "cumsum", "cumprod", "full", "full_like", "new_full"):
        return result is not None and any(integer_range_leaves(t, result.dtype) for t in tensors)
    if name in ("div", "floor_divide", "remainder", "fmod") and result is not None and is_whole(result.dtype):
        divisor = call.args[1]
        if isinstance(divisor, torch.Tensor):
            whole = [t for t in tensors if not t.dtype.is_floating_point and t.dtype not in (torch.bool, torch.uint8)]
            smallest = any(bool((t == torch.iinfo(t.dtype).min).any()) for t in whole)
            return bool((divisor == 0).any()) or (smallest and bool((divisor == -1).any()))
        return divisor == 0
    if "shift" in name and not name.startswith("fft_") and result is not None:
        amounts = call.args[1] if isinstance(call.args[1], torch.Tensor) else torch.tensor(call.args[1])
        return bool(((amounts < 0) | (amounts >= 8 * result.element_size())).any())
    return False


# ---- recording ------------------------------------------------------------------------------


class Recorder(TorchDispatchMode):
    """Keeps the calls that are wanted, up to `limit` of an operator with the same dtypes."""

    def __init__(self, wanted, options):
        super().__init__()
        self.wanted, self.limit, self.most = wanted, options.cases_per_op, options.elements
        self.smallest, self.seed, self.dtypes = options.smallest, options.seed, options.dtypes
        self.first = collections.defaultdict(dict)  # (operator, dtypes) -> shape class -> call
        self.more = collections.defaultdict(list)

    def is_kept(self, func, args, kwargs) -> bool:
        if func.namespace != "aten" or func._schema.is_mutable or not self.wanted(operator_name(func)):
            return False
        if torch.Tag.nondeterministic_seeded in func.tags or any(isinstance(a, torch.Generator) for a in args):
            return False
        values = [*args, *kwargs.values()]
        if any(isinstance(v, complex) for v in values):
            return False
        return all(is_ordinary(t, self.most, self.dtypes) for v in values for t in tensors_of(v))

    def add(self, func, args, kwargs):
        call = Call(func, args, kwargs)
        group, key = (operator_name(func), call.dtypes()), call.key()
        if self.smallest:
            known = self.first[group].get(key)
            if known is None or call.numel() < known.numel():
                self.first[group][key] = call
            return
        if key not in self.first[group] and len(self.first[group]) < self.limit:
            self.first[group][key] = call
        elif len(self.more[group]) < self.limit:
            self.more[group].append(call)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if isinstance(func, torch._ops.OpOverload) and self.is_kept(func, args, kwargs):
            self.add(func, args, kwargs)
        return func(*args, **kwargs)

    def calls(self):
        """In the order of names and dtypes; within a group the unlike ones first."""
        for group in sorted(self.first):
            unlike = list(self.first[group].values())
            if self.smallest:  # any of the kinds, so that all occur over the whole table
                random.Random(f"{self.seed} {group}").shuffle(unlike)
                unlike.sort(key=lambda call: call.numel() > 64)
            yield from [*unlike, *self.more[group]][: self.limit]


def seed_all(seed: int, what: str):
    mixed = (seed * 1000003 + zlib.crc32(what.encode())) % (1 << 31)
    torch.manual_seed(mixed)
    random.seed(mixed)
    try:
        import numpy
        numpy.random.seed(mixed)
    except ImportError:
        pass


def samples_of(info, dtype, options):
    """OpInfo's samples, each also on strided storage; then the reference samples: mixed dtypes, odd values."""
    sources = [info.sample_inputs] + ([info.reference_inputs] if options.reference else [])
    for source in sources:
        n = 0
        try:
            for sample in source("cpu", dtype, requires_grad=False):
                if n >= options.samples:
                    break
                n += 1
                yield sample
                if source == info.sample_inputs:
                    yield sample.noncontiguous()
        except Exception as error:  # PyTorch's generators refuse some dtypes only when asked
            if options.verbose:
                print(f"samples of {info.name} for {dtype}: {type(error).__name__}: {str(error)[:100]}", file=sys.stderr)


def record_samples(recorder: Recorder, options, skipped):
    try:
        from torch.testing._internal.common_methods_invocations import op_db
    except ImportError as missing:
        raise UsageError(f"the samples of PyTorch need a package that is not there ({missing}); pip install expecttest")
    for info in op_db:
        if info.name in skipped or info.name.startswith("_refs"):
            continue
        if info.name.startswith("fft.") and COMPLEX not in options.dtypes:
            continue
        for name in options.dtypes:
            dtype = getattr(torch, name)
            if not info.supports_dtype(dtype, "cpu"):
                continue
            seed_all(options.seed, f"{info.full_name} {name}")
            for sample in samples_of(info, dtype, options):
                try:
                    with recorder:
                        info(sample.input, *sample.args, **sample.kwargs)
                except Exception as error:  # a sample that PyTorch itself refuses
                    if options.verbose:
                        print(f"{info.full_name} {name}: {type(error).__name__}: {str(error)[:100]}", file=sys.stderr)


def own_calls(path: str):
    try:
        listed = runpy.run_path(path)["calls"]
    except (OSError, KeyError) as error:
        raise UsageError(f"{path}: {'no list named calls' if isinstance(error, KeyError) else error}")
    for entry in listed:
        name, args, kwargs = entry
        parts = name.split(".")
        packet = getattr(getattr(torch.ops, parts[0]), parts[1], None)
        if len(parts) != 3 or packet is None or parts[2] not in packet.overloads():
            raise UsageError(f"{path}: '{name}' is no overload; they are written as aten.add.Tensor")
        yield Call(getattr(packet, parts[2]), args, kwargs)


# ---- who shares memory ----------------------------------------------------------------------


def paths_of(arguments: dict):
    """Every tensor argument with its path."""
    for path, value in arguments.items():
        if isinstance(value, torch.Tensor):
            yield path, value
        elif isinstance(value, (list, tuple)):
            yield from ((f"{path}.{i}", e) for i, e in enumerate(value) if isinstance(e, torch.Tensor))


def shares(func, args, kwargs) -> list:
    """By result: the path of the argument whose storage it uses. The arguments may be written."""
    arguments = {str(i): a for i, a in enumerate(args)} | kwargs
    owners = {t.untyped_storage().data_ptr(): path for path, t in reversed(list(paths_of(arguments))) if t.numel()}
    result = func(*args, **kwargs)
    return [None if not isinstance(r, torch.Tensor) else owners.get(r.untyped_storage().data_ptr()) if r.numel() else ""
            for r in ([] if result is None else flat(result))]


class Reader:
    """Arguments of recorded cases; storages are copied for every call."""

    def __init__(self, path: pathlib.Path):
        self.tensors = load_file(path)

    def value(self, v):
        if v is None:
            return None
        if "t" in v:
            whole = self.tensors[v["t"]].clone()
            return whole.flatten().as_strided(v["shape"], v["stride"], v.get("offset", 0)) if "stride" in v else whole
        if "l" in v:
            return [self.value(e) for e in v["l"]]
        (kind, what), = v.items()
        if kind in ("dtype", "layout", "memory_format"):
            return getattr(torch, what)
        return torch.device(what) if kind == "device" else float(what) if kind == "f" else what


def add_shares(path: pathlib.Path) -> int:
    text = path.read_text()
    cases, reader, fates = json.loads(text), Reader(path.with_name("data.safetensors")), collections.Counter()
    for case in cases:
        space, name, overload = case["op"].split(".")
        try:
            func = getattr(getattr(getattr(torch.ops, space), name), overload)
            args = [reader.value(a) for a in case["args"]]
            told = shares(func, args, {k: reader.value(a) for k, a in case.get("kwargs", {}).items()})
        except Exception:  # an operator of another device, or of a group of processes
            fates["cannot run"] += 1
            continue
        fates["shares" if any(told) else "own memory"] += 1
        case["shares"] = told
    dense = [json.dumps(c, separators=(",", ":")) for c in cases]
    path.write_text("[\n" + ",\n".join(dense) + "\n]\n" if text.startswith("[\n") else "[" + ",".join(dense) + "]")
    print(f"{path}: " + ", ".join(f"{n} {word}" for word, n in sorted(fates.items())))
    return 0


# ---- writing --------------------------------------------------------------------------------


class Writer:
    """cases.json and data.safetensors, filled case by case."""

    def __init__(self):
        self.cases, self.tensors = [], {}

    def tensor(self, key: str, t):
        if is_plain(t):
            self.tensors[key] = t.detach().clone(memory_format=torch.contiguous_format)
            return {"t": key}
        self.tensors[key] = storage_of(t.detach()).clone()
        return {"t": key, "shape": list(t.shape), "stride": list(t.stride()), "offset": t.storage_offset()}

    def value(self, key: str, v):
        if v is None:
            return None
        if isinstance(v, torch.Tensor):
            return self.tensor(key, v)
        if isinstance(v, (list, tuple)):
            return {"l": [self.value(f"{key}.{i}", e) for i, e in enumerate(v)]}
        if isinstance(v, float):
            return {"f": v if v - v == 0 else "nan" if v != v else "inf" if v > 0 else "-inf"}
        for word, kind in (("b", bool), ("i", int), ("s", str)):
            if isinstance(v, kind):
                return {word: v}
        for word, kind in (("dtype", torch.dtype), ("layout", torch.layout), ("device", torch.device),
                           ("memory_format", torch.memory_format)):
            if isinstance(v, kind):
                return {word: str(v).removeprefix("torch.")}
        raise TypeError(f"an argument of type {type(v).__name__}")


def same(a, b) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a.nan_to_num(), b.nan_to_num()) and torch.equal(
            a.isnan(), b.isnan())
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or a != a)


def meta(t):
    if not isinstance(t, torch.Tensor):
        return None
    return {"shape": list(t.shape), "stride": list(t.stride()), "dtype": str(t.dtype).removeprefix("torch.")}


def differentiated(options):
    return (torch.float32, torch.complex64) + ((torch.bfloat16, torch.float16) if options.half_gradients else ())


def record_gradients(writer: Writer, case: dict, call: Call, dtypes):
    args, leaves = [copied(a) for a in call.args], {}
    for i, a in enumerate(args):
        for path, t in [(str(i), a)] if isinstance(a, torch.Tensor) else [
                (f"{i}.{k}", e) for k, e in enumerate(a)] if isinstance(a, list) else []:
            if isinstance(t, torch.Tensor) and t.dtype in dtypes:
                leaves[path] = t.detach().requires_grad_()
                if "." in path:
                    a[int(path.split(".")[1])] = leaves[path]
                else:
                    args[i] = leaves[path]
    if not leaves:
        return
    try:
        results = flat(call.func(*args, **{k: copied(v) for k, v in call.kwargs.items()}))
        chosen = {str(k): r for k, r in enumerate(results)
                  if isinstance(r, torch.Tensor) and r.requires_grad and r.dtype in dtypes}
        if not chosen:
            return
        tangents = {k: torch.randn(r.shape, dtype=r.dtype) for k, r in chosen.items()}
        grads = torch.autograd.grad(list(chosen.values()), list(leaves.values()), list(tangents.values()), allow_unused=True)
    except (RuntimeError, NotImplementedError) as error:
        case["no_grad_because"] = str(error).split("\n")[0][:200]
        return
    case["tangents"] = {k: writer.tensor(f"{case['id']}.t{k}", t) for k, t in tangents.items()}
    case["grads"] = {p: None if g is None else writer.tensor(f"{case['id']}.g{p}", g.contiguous().resolve_conj())
                     for p, g in zip(leaves, grads)}


def write_call(writer: Writer, call: Call, options) -> str:
    """A word on what became of it."""
    try:
        outputs, again = flat(call.run()), flat(call.run())
    except Exception:
        return "refused by PyTorch"
    if not all(same(a, b) for a, b in zip(outputs, again)):
        return "not deterministic"
    if any(isinstance(o, torch.Tensor) and not is_ordinary(o, 4 * options.elements, options.dtypes) for o in outputs):
        return "result too large or not plain"
    if is_undefined(call, outputs):
        return "undefined"
    case = {"id": f"c{len(writer.cases)}", "op": operator_name(call.func)}
    try:
        case["args"] = [writer.value(f"{case['id']}.a{i}", a) for i, a in enumerate(call.args)]
        case["kwargs"] = {k: writer.value(f"{case['id']}.k.{k}", v) for k, v in call.kwargs.items()}
        case["outputs"] = [writer.value(f"{case['id']}.o{i}", o.contiguous() if isinstance(o, torch.Tensor) else o)
                           for i, o in enumerate(outputs)]
    except TypeError:
        writer.tensors = {k: t for k, t in writer.tensors.items() if not k.startswith(case["id"] + ".")}
        return "an argument without a form"
    case["shares"] = shares(call.func, copied(call.args), {k: copied(v) for k, v in call.kwargs.items()})
    if options.tolerance is not None:
        case["tolerance"] = options.tolerance
    if not options.no_meta:
        case["out_meta"] = [meta(o) for o in outputs]
    if options.gradients:
        record_gradients(writer, case, call, differentiated(options))
    writer.cases.append(case)
    return "recorded"


def export(options) -> int:
    names = None
    if options.table:
        names = {o["name"] for o in json.load(open(options.table))["operators"]}
    skipped = set()
    if options.skip:
        skipped = {line.split("#")[0].strip() for line in open(options.skip)} - {""}

    def wanted(name: str) -> bool:
        return ((names is None or name in names) and name not in skipped
                and any(fnmatch.fnmatchcase(name, p) for p in options.ops or ["*"]))

    recorder = Recorder(wanted, options)
    calls = list(own_calls(options.calls)) if options.calls else []
    if not options.calls or options.ops or options.table:
        record_samples(recorder, options, skipped)
        calls += [c for call in recorder.calls() for c in (edge_calls(call, options.seed) if options.edges else [call])]
    writer, fates = Writer(), collections.Counter()
    seed_all(options.seed, "cotangents")
    for call in calls:
        fates[write_call(writer, call, options)] += 1
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    save_file(dict(sorted(writer.tensors.items())), out / "data.safetensors")
    lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in writer.cases)
    (out / "cases.json").write_text(f"[\n{lines}\n]\n")
    print(f"{len(writer.cases)} cases of {len({c['op'] for c in writer.cases})} operators, "
          f"{sum('grads' in c for c in writer.cases)} with gradients"
          + "".join(f"; {n} {word}" for word, n in sorted(fates.items()) if word != "recorded"))
    return 0 if writer.cases else 1


def parse(argv):
    p = argparse.ArgumentParser(description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", metavar="OUT_DIR", help="folder to write, made when missing")
    p.add_argument("--shares", metavar="FILE", type=pathlib.Path, help="a cases.json that exists: see below; alone")
    p.add_argument("--ops", nargs="+", metavar="PATTERN", help="only overloads that fit, as 'aten.add.*'; * is any text")
    p.add_argument("--table", metavar="FILE", help="only overloads of this table, from `aothost ops --json FILE`")
    p.add_argument("--dtypes", nargs="+", choices=(*DTYPES, COMPLEX), default=list(DTYPES), metavar="DTYPE",
                   help=f"of the samples; {' '.join(DTYPES)}: all of them when left out; {COMPLEX}: complex calls, fft")
    p.add_argument("--cases-per-op", type=int, default=4, metavar="N", help="of an overload and dtypes (4)")
    p.add_argument("--samples", type=int, default=40, metavar="N", help="of one OpInfo and dtype that are run (40)")
    p.add_argument("--elements", type=int, default=4096, metavar="N", help="the most of a tensor (4096)")
    p.add_argument("--smallest", action="store_true", help="the smallest of like calls: a small but broad set")
    p.add_argument("--reference", action="store_true", help="reference samples too: mixed dtypes, NaN, infinity; slow")
    p.add_argument("--gradients", action="store_true", help="of calls with float32 arguments")
    p.add_argument("--half-gradients", action="store_true", help="and of those with bfloat16 and float16 arguments")
    p.add_argument("--edges", action="store_true", help="with NaN, infinities, signed zeros and denormals among the floats")
    p.add_argument("--tolerance", type=float, metavar="T", help="of the cases, in place of their dtypes' tolerances")
    p.add_argument("--no-meta", action="store_true", help="leave out_meta, the strides that PyTorch gives results, away")
    p.add_argument("--seed", type=int, default=0, metavar="N", help="the same seed gives the same files (0)")
    p.add_argument("--skip", metavar="FILE", help="overloads or OpInfo names to leave out, a line each, # begins a remark")
    p.add_argument("--calls", metavar="FILE", help="own calls, see below")
    p.add_argument("--verbose", action="store_true", help="say which samples PyTorch refuses")
    options = p.parse_args(argv)
    if bool(options.out) == bool(options.shares):
        p.error("one of --out and --shares is needed")
    return options


def main(argv) -> int:
    options = parse(argv)
    if torch is None:
        print(f"export_ops.py: {WHY_NO_TORCH}; pip install -r tools/requirements-export.txt", file=sys.stderr)
        return 2
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    try:
        return add_shares(options.shares) if options.shares else export(options)
    except (UsageError, OSError) as error:
        print(f"export_ops.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
