# in:   recorded operator calls (tests/fixtures/ops*/cases.json), PyTorch 2.11
# out:  lists/cpu.ir, lists/cuda.ir: one node a call of each operator that autocast has on a list on that device, and of
#       each composite; above it the dtypes of its results under autocast in bfloat16 (for CUDA of tensors without contents,
#       which needs no GPU). Operands as recorded, then in bfloat16, then by turns
# who:  check_lists.sh; make again when plugins/aten/autocast.def changes
import contextlib
import json
import math
import pathlib
import warnings

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from safetensors.torch import load_file

warnings.filterwarnings("ignore")
here = pathlib.Path(__file__).parent
root = here.parent.parent.parent
SHORT = {
    torch.float32: "f32", torch.float64: "f64", torch.bfloat16: "bf16", torch.float16: "f16", torch.int64: "i64",
    torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "bool",
    torch.complex64: "c64", torch.complex128: "c128",
}
BEFORE = {"bf16": "bf16", "mixed": "f32"}
has = torch._C._dispatch_has_kernel_for_dispatch_key
folders = ("ops", "ops_composites")


def on_a_list(name):
    return has(name, {"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}[device])


@contextlib.contextmanager
def autocast():
    """torch.autocast, but for devices that are not there."""
    before = torch.is_autocast_enabled(device)
    torch.set_autocast_enabled(device, True)
    torch.set_autocast_dtype(device, torch.bfloat16)
    torch.autocast_increment_nesting()
    try:
        with FakeTensorMode() if device == "cuda" else contextlib.nullcontext() as mode:
            yield (lambda t: mode.from_tensor(t).to("cuda")) if mode else (lambda t: t)
    finally:
        if torch.autocast_decrement_nesting() == 0:
            torch.clear_autocast_cache()
        torch.set_autocast_enabled(device, before)


def there(v, move):
    if isinstance(v, torch.Tensor):
        return move(v)
    return [there(x, move) for x in v] if isinstance(v, list) else v


def wanted(op):
    ns, base, overload = op.split(".")
    if ns != "aten" or base.endswith("_") or "out" in overload:
        return False
    name = f"aten::{base}" + ("" if overload == "default" else f".{overload}")
    try:
        return on_a_list(name) or has(name, "CompositeImplicitAutograd")
    except RuntimeError:
        return False


class Turn:
    """Floats as they are, in bfloat16, or by turns."""

    def __init__(self, kind):
        self.kind, self.n = kind, 0

    def __call__(self, t):
        if t.dtype != torch.float32:
            return t
        self.n += 1
        return t.bfloat16() if self.kind == "bf16" or (self.kind == "mixed" and self.n % 2) else t


def value(v, tensors, turn):
    if v is None:
        return None
    if "t" in v:
        t = tensors[v["t"]]
        if "shape" in v:
            t = torch.as_strided(t, v["shape"], v["stride"], v["offset"])
        return turn(t)
    if "l" in v:
        return [value(x, tensors, turn) for x in v["l"]]
    if "dtype" in v:
        return getattr(torch, v["dtype"])
    if "f" in v:
        return float(v["f"])
    for k in ("i", "b", "s"):
        if k in v:
            return v[k]
    raise KeyError(str(v))


class Text:
    def __init__(self):
        self.leaves, self.inputs, self.nodes = [], [], []

    def kind(self, t, dtype=None):
        strides = "" if t.is_contiguous() else f" strides {list(t.stride())}"
        return f"{dtype if dtype and t.dtype.is_floating_point else SHORT[t.dtype]}{list(t.shape)}{strides}"

    def leaf(self, t):
        at, kind = len(self.leaves), self.kind(t)
        self.leaves.append(f"leaf {at} user_input {at} : {kind}")
        self.inputs.append(f"  in %v{at} = user_input {at} : {kind}")
        return f"%v{at}"

    def arg(self, v):
        if isinstance(v, torch.Tensor):
            return self.leaf(v)
        if isinstance(v, (list, tuple)):
            return "[" + ", ".join(self.arg(x) for x in v) + "]"
        if v is None:
            return "none"
        if isinstance(v, bool):
            return str(v).lower()
        if isinstance(v, torch.dtype):
            return SHORT[v]
        if isinstance(v, str):
            return json.dumps(v)
        return repr(float(v)) if isinstance(v, float) and math.isfinite(v) else str(v)


def main():
    text, seen, n = Text(), set(), 0
    dropped = []
    for folder in folders:
        path = root / "tests/fixtures" / folder
        tensors = load_file(path / "data.safetensors")
        for case in json.loads((path / "cases.json").read_text()):
            op = case["op"]
            ns, base, overload = op.split(".")
            if op in seen or not wanted(op):
                continue
            name = f"aten::{base}" + ("" if overload == "default" else f".{overload}")
            for kind in ("f32", "bf16", "mixed") if on_a_list(name) else ("f32",):
                turn = Turn(kind)
                try:
                    args = [value(a, tensors, turn) for a in case["args"]]
                    kwargs = {k: value(a, tensors, turn) for k, a in case["kwargs"].items()}
                    if turn.n == 0 or (kind == "mixed" and turn.n == 1):
                        continue
                    f = getattr(getattr(torch.ops.aten, base), overload)
                    with autocast() as move:
                        out = f(*there(args, move), **{k: there(a, move) for k, a in kwargs.items()})
                except (RuntimeError, KeyError, TypeError, NotImplementedError, IndexError, AssertionError) as why:
                    dropped.append((op, kind, str(why).split("\n")[0][:90]))
                    continue
                results = torch.utils._pytree.tree_leaves(out)
                if not results or not all(isinstance(r, torch.Tensor) for r in results):
                    continue
                seen.add(op)
                names = [f"%n{n}_{i}" for i in range(len(results))]
                told = " ".join(f"{a}:{SHORT[r.dtype]}" for a, r in zip(names, results))
                # such operands may not go together without casts: the line has to say what the results were
                types = [f"{a} : {text.kind(r, BEFORE[kind])}" if kind in BEFORE else a for a, r in zip(names, results)]
                words = [text.arg(a) for a in args] + [f"{k}={text.arg(a)}" for k, a in kwargs.items()]
                text.nodes.append(f"; {told}\n  {', '.join(types)} = {op} {', '.join(words)}".rstrip())
                n += 1
    with open(here / f"lists/{device}.ir", "w") as f:
        f.write("; written by make_lists.py\naot 1\nproperties imported functional\n")
        at = len(text.leaves)
        f.write("\n".join(text.leaves) + f"\nleaf {at} parameter \"w\" : f32[] grad\n")
        f.write("graph @main forward {\n" + "\n".join(text.inputs) + f"\n  in %w = parameter {at} : f32[] grad\n")
        f.write("\n".join(text.nodes) + "\n}\n")
    print(n, "calls of", len(seen), "operators")
    for d in dropped:
        print("PyTorch refuses", *d)


for device in ("cpu", "cuda"):
    main()
