"""Writes tests/fixtures/ops_families: PyTorch's results for forms of operators that tests/fixtures/ops does not have.

    python plugins/aten/tests/make_family_cases.py BIN/aothost [--all DIR]      (needs PyTorch)

Out= and in-place forms take the arguments of a recorded case of their functional operator; lists, optimizer steps and prims take
small tensors from here. A form that PyTorch itself refuses for these arguments is left out. --all writes every form that derives,
not a few of each family.
"""
import argparse
import hashlib
import json
import pathlib
import struct
import subprocess
import tempfile

import torch
import torch._prims
import torch.distributed._functional_collectives
import torch.distributed.fsdp._fully_shard._fsdp_collectives

ROOT = pathlib.Path(__file__).resolve().parents[3]
DTYPES = {"F32": torch.float32, "F64": torch.float64, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
          "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool}
# by chance, of a size that depends on the data, recorded elsewhere in this file, or less exact in PyTorch than here
WITHOUT_VALUES = ("rand", "empty", "normal", "uniform", "dropout", "bernoulli", "multinomial", "rrelu", "nonzero", "masked_select",
                  "foreach", "polygamma")
NAMES = {v: k for k, v in DTYPES.items()}


def read_tensors(path):
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    index = json.loads(data[8:8 + size])
    out = {}
    for name, row in index.items():
        if name == "__metadata__" or row["dtype"] not in DTYPES:
            continue
        begin, end = (8 + size + o for o in row["data_offsets"])
        raw = bytearray(data[begin:end])
        dtype = DTYPES[row["dtype"]]
        out[name] = (torch.frombuffer(raw, dtype=dtype) if raw else torch.empty(0, dtype=dtype)).reshape(row["shape"])
    return out


def tensors_of(written):
    return [t for w in written for t in (w if isinstance(w, list) else [w])]


class Writer:
    """Cases and the tensors that they name; equal tensors stand once."""

    def __init__(self):
        self.cases, self.tensors, self.names = [], {}, {}

    def tensor(self, t):
        t = t.detach().contiguous()
        raw = t.reshape(-1).view(torch.uint8).numpy().tobytes() if t.numel() else b""
        digest = hashlib.sha1(raw + str((t.dtype, tuple(t.shape))).encode()).hexdigest()
        if digest not in self.names:
            self.names[digest] = f"t{len(self.names)}"
            self.tensors[self.names[digest]] = (NAMES[t.dtype], list(t.shape), raw)
        return {"t": self.names[digest]}

    def argument(self, x):
        if x is None:
            return None
        if isinstance(x, torch.Tensor):
            if x.is_contiguous():
                return self.tensor(x)
            flat = torch.as_strided(x, (x.untyped_storage().nbytes() // x.element_size(),), (1,), 0)
            return {**self.tensor(flat), "shape": list(x.shape), "stride": list(x.stride()), "offset": x.storage_offset()}
        if isinstance(x, bool):
            return {"b": x}
        if isinstance(x, int):
            return {"i": x}
        if isinstance(x, float):
            return {"f": x if abs(x) != float("inf") and x == x else str(x).replace("nan", "nan")}
        if isinstance(x, str):
            return {"s": x}
        if isinstance(x, torch.dtype):
            return {"dtype": str(x).replace("torch.", "")}
        if isinstance(x, torch.device):
            return {"device": str(x)}
        if isinstance(x, torch.memory_format):
            return {"memory_format": str(x).replace("torch.", "")}
        if isinstance(x, torch.layout):
            return {"layout": str(x).replace("torch.", "")}
        return {"l": [self.argument(e) for e in x]}

    def call(self, name, args, kwargs=None, written=()):
        """Records one call. `written`: the lists or tensors whose contents afterwards are results, for calls that return none."""
        kwargs = kwargs or {}
        namespace, op, overload = name.split(".")
        entry = {"id": f"{name.replace('.', '_')}_{len(self.cases)}", "op": name, "args": [self.argument(a) for a in args],
                 "kwargs": {k: self.argument(v) for k, v in kwargs.items()}}
        shapes = [tuple(t.shape) for t in tensors_of(written)]
        results = getattr(getattr(getattr(torch.ops, namespace), op), overload)(*args, **kwargs)
        if [tuple(t.shape) for t in tensors_of(written)] != shapes:
            raise ValueError("an out tensor of another shape")
        flat = []
        for r in results if isinstance(results, (tuple, list)) else [results]:
            flat += r if isinstance(r, (tuple, list)) else [r]
        flat = [r for r in flat if r is not None] or tensors_of(written)
        if namespace == "_c10d_functional":
            flat = [torch.ops._c10d_functional.wait_tensor(r) for r in flat]
        entry["outputs"] = [self.tensor(r) for r in flat]
        entry["tangents"], entry["grads"] = {}, {}
        self.cases.append(entry)

    def differentiate(self, name, args):
        """Gradients of the call that was recorded last, for a call of tensors, lists of them and numbers, all by place."""
        leaves = {}
        for i, a in enumerate(args):
            for k, t in enumerate(a if isinstance(a, list) else [a]):
                if isinstance(t, torch.Tensor):
                    leaves[f"{i}.{k}" if isinstance(a, list) else str(i)] = t.clone().requires_grad_()
        live = [[leaves.get(f"{i}.{k}", t) for k, t in enumerate(a)] if isinstance(a, list) else leaves.get(str(i), a)
                for i, a in enumerate(args)]
        namespace, op, overload = name.split(".")
        results = getattr(getattr(getattr(torch.ops, namespace), op), overload)(*live)
        tangents = [values(tuple(r.shape), 900 + i, r.dtype) for i, r in enumerate(results)]
        grads = torch.autograd.grad(results, list(leaves.values()), tangents, allow_unused=True)
        self.cases[-1]["tangents"] = {str(i): self.tensor(t) for i, t in enumerate(tangents)}
        self.cases[-1]["grads"] = {k: None if g is None else self.tensor(g) for k, g in zip(leaves, grads)}

    def save(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        index, blob = {}, b""
        for name, (dtype, shape, raw) in self.tensors.items():
            index[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(blob), len(blob) + len(raw)]}
            blob += raw
        head = json.dumps(index, separators=(",", ":")).encode()
        head += b" " * (-len(head) % 8)
        (folder / "data.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + blob)
        rows = ",\n".join(json.dumps(c, separators=(",", ":")) for c in self.cases)
        (folder / "cases.json").write_text("[\n" + rows + "\n]\n")
        return len(blob)


# ---- forms that derive: arguments of recorded cases ----

def live_argument(node, tensors):
    if node is None:
        return None
    if "t" in node:
        t = tensors[node["t"]].clone()
        if "stride" in node:
            t = torch.as_strided(t.reshape(-1), node["shape"], node["stride"], node["offset"])
        return t
    for key in ("i", "b", "s"):
        if key in node:
            return node[key]
    if "f" in node:
        return float(node["f"])
    if "dtype" in node:
        return getattr(torch, node["dtype"])
    if "device" in node:
        return torch.device(node["device"])
    if "memory_format" in node:
        return getattr(torch, node["memory_format"].replace("torch.", ""))
    if "layout" in node:
        return torch.strided
    return [live_argument(e, tensors) for e in node["l"]]


def derived_rows():
    import re
    ids = {}
    rows = []
    for path in sorted((ROOT / "plugins/aten").glob("ops_*.def")):
        text = path.read_text()
        ids.update({i: n for i, n in re.findall(r'\b(?:OP|EACH|PRIM)\(\s*(\w+),\s*"([^"]+)"', text)})
        rows += [(n, of, outs.split()) for n, of, outs in re.findall(r'\bOUT\(\w+, "([^"]+)", (\w+), "([^"]+)"\)', text)]
        rows += [(n, of, None) for n, of in re.findall(r'\bIN_PLACE\(\w+, "([^"]+)", (\w+)\)', text)]
    return [(n, ids[of], outs) for n, of, outs in rows]


def record_derived(w, every):
    tensors = read_tensors(ROOT / "tests/fixtures/ops/data.safetensors")
    by_op, refused = {}, []
    for case in json.loads((ROOT / "tests/fixtures/ops/cases.json").read_text()):
        by_op.setdefault(case["op"], []).append(case)
    for k, (name, functional, outs) in enumerate(derived_rows()):
        if any(word in name for word in WITHOUT_VALUES):
            continue
        if not every and k % 6:
            continue
        for case in by_op.get(functional, [])[:3 if every else 1]:
            try:
                record_one_derived(w, name, functional, outs, case, tensors)
            except (RuntimeError, KeyError, TypeError, ValueError, IndexError, NotImplementedError) as error:
                refused.append((name, str(error).split("\n")[0]))
    return refused


def record_one_derived(w, name, functional, outs, case, tensors):
    namespace, op, overload = name.split(".")
    schema = getattr(getattr(torch.ops.aten, op), overload)._schema
    _, f_op, f_overload = functional.split(".")
    f_schema = getattr(getattr(torch.ops.aten, f_op), f_overload)._schema
    values = {a.name: v for a, v in zip(f_schema.arguments, case["args"])}
    values.update(case["kwargs"])
    args, kwargs, written = [], {}, []
    outputs = iter([tensors[o["t"]] for o in case["outputs"]])
    for a in schema.arguments:
        if a.alias_info is not None and a.alias_info.is_write and a.kwarg_only:
            is_list = str(a.type).startswith("List")
            kwargs[a.name] = [torch.zeros_like(o) for o in outputs] if is_list else torch.zeros_like(next(outputs))
            written.append(kwargs[a.name])
        elif a.name in values:
            v = live_argument(values[a.name], tensors)
            if a.kwarg_only:
                kwargs[a.name] = v
            else:
                args.append(v)
        elif not a.kwarg_only:
            args.append(a.default_value)
    while args and len(args) > 1 and args[-1] is None:
        args.pop()
    if any(isinstance(a, torch.Tensor) and a.is_complex() for a in args):
        return
    w.call(name, args, kwargs, written or [args[0]])


# ---- lists ----

def values(shape, seed, dtype=torch.float32, low=0.1, high=0.9):
    g = torch.Generator().manual_seed(seed)
    return (torch.rand(shape, generator=g, dtype=torch.float64) * (high - low) + low).to(dtype)


def lists(seed, dtype=torch.float32):
    return [values(s, seed + i, dtype) for i, s in enumerate(((2, 3), (4,), (), (0, 2)))]


def foreach_arguments(schema, seed, dtype):
    args, kwargs = [], {}
    for i, a in enumerate(schema.arguments):
        kind = str(a.type)
        if kind == "List[Tensor]":
            value = lists(seed + 10 * i, dtype)
        elif kind == "List[number]":
            value = [0.5, 1.5, 2.0, 0.25]
        elif kind == "Tensor":
            value = torch.tensor([0.5, 1.5, 2.0, 0.25], dtype=dtype) if a.name == "scalars" else torch.tensor(0.75, dtype=dtype)
        elif a.name == "alpha" or a.name == "value":
            value = 2
        elif kind in ("number", "Scalar"):
            value = 2 if a.name == "ord" else 0.5
        else:
            continue
        (kwargs.__setitem__(a.name, value) if a.kwarg_only else args.append(value))
    return args, kwargs


def record_foreach(w):
    seed = 0
    for schema in sorted(torch._C._jit_get_all_schemas(), key=str):
        op = schema.name.split("::")[1]
        overload = schema.overload_name or "default"
        if not op.startswith("_foreach_") or op.startswith("_foreach_powsum"):
            continue
        seed += 100
        dtype = torch.bfloat16 if seed % 700 == 0 and "norm" not in op else torch.float32
        args, kwargs = foreach_arguments(schema, seed, dtype)
        if op == "_foreach_max":
            args[0] = args[0][:3]
        out_names = [a.name for a in schema.arguments if a.kwarg_only and a.alias_info]
        if out_names:
            if seed % 300:
                continue
            functional = getattr(getattr(torch.ops.aten, op), {"out": "default"}.get(overload, overload.replace("_out", "")))
            plain_kwargs = {k: v for k, v in kwargs.items() if k not in out_names}
            kwargs[out_names[0]] = [torch.zeros_like(t) for t in functional(*args, **plain_kwargs)]
        w.call(f"aten.{op}.{overload}", args, kwargs, 
               [kwargs[out_names[0]]] if out_names else args[:1] if op.endswith("_") else [])
        if not out_names and not op.endswith("_") and not kwargs and dtype == torch.float32:
            try:
                w.differentiate(f"aten.{op}.{overload}", args)
            except (RuntimeError, IndexError) as error:
                print("PyTorch does not differentiate", op, str(error).split("\n")[0])


def record_optimizers(w):
    number = torch.tensor
    shapes = ((2, 3), (4,))
    step = lambda: [number(3.0), number(7.0)]
    state = lambda seed, dtype=torch.float32: [values(s, seed + i, dtype) for i, s in enumerate(shapes)]
    for variant in range(4):
        adam = {"lr": 0.01, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1 * (variant % 2), "eps": 1e-8,
                "amsgrad": variant >= 2, "maximize": variant == 1}
        sgd = {"weight_decay": 0.1, "momentum": 0.9 * (variant > 0), "lr": 0.05, "dampening": 0.1, "nesterov": False,
               "maximize": variant == 1, "is_first_step": variant == 2}
        if variant == 3:
            sgd.update(nesterov=True, dampening=0.0)
        adagrad = {"lr": 0.02, "lr_decay": 0.01, "weight_decay": 0.1, "eps": 1e-10, "maximize": variant == 1}
        scaling = {} if variant < 2 else {"grad_scale": number(4.0), "found_inf": number(float(variant == 3))}
        for op, lists_, options in (("_fused_adam", 4, adam), ("_fused_adamw", 4, adam), ("_fused_sgd", 3, sgd),
                                    ("_fused_adagrad", 3, adagrad)):
            for suffix in ("", "_"):
                for overload in ("default", "tensor_lr"):
                    given = {**options, **scaling}
                    if overload == "tensor_lr":
                        given["lr"] = number(options["lr"])
                    args = [state(variant * 10 + 3 * k) for k in range(lists_)]
                    if lists_ == 4:
                        args.append(state(77) if adam["amsgrad"] else [])
                    if op == "_fused_sgd" and variant == 0:
                        args[2] = []
                    if op != "_fused_sgd":
                        args.append(step())
                    try:
                        w.call(f"aten.{op}{suffix}.{overload}", args, given, args[:lists_ + (lists_ == 4)])
                    except NotImplementedError:
                        print("PyTorch has no CPU kernel:", op + suffix, overload)
    bad = values((3,), 5)
    bad[1] = float("inf")
    for found in (False, True):
        grads = [values((2, 2), 4), bad if found else values((3,), 5)]
        flags = number([0.0])
        w.call("aten._amp_foreach_non_finite_check_and_unscale.default", [grads, flags, number(0.5)])
        w.call("aten._amp_foreach_non_finite_check_and_unscale_.default", [grads, flags, number(0.5)], {}, [*grads, flags])
        for tracker in (0, 1):
            args = [number(8.0), number(tracker, dtype=torch.int32), number([float(found)]).reshape(()), 2.0, 0.5, 2]
            w.call("aten._amp_update_scale.default", args)
            w.call("aten._amp_update_scale_.default", args)


# ---- prims ----

def record_prims(w):
    names = json.loads(pathlib.Path(w.listing).read_text())["operators"]
    cpu = torch.device("cpu")
    x, y = values((2, 3), 1), values((2, 3), 2)
    ints, more = torch.arange(6).reshape(2, 3) + 1, torch.tensor([[1, 2, 1], [2, 1, 2]])
    integral = {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "gcd", "shift_left", "shift_right_arithmetic"}
    for row in names:
        op = row["name"].split(".")[1]
        if not row["name"].startswith("prims.") or not hasattr(torch.ops.prims, op):
            continue
        if row["schema"] == "(Tensor self) -> Tensor":
            base = values((2, 3), 1, low=1.1, high=2.0) if op == "acosh" else x
            w.call(row["name"], [ints if op in integral else base])
        elif row["schema"] == "(Tensor self, Tensor other) -> Tensor":
            w.call(row["name"], [ints, more] if op in integral else [x, values((2, 3), 2, low=1.1, high=2.0) if op == "zeta" else y])
    made = {"dtype": torch.float32, "device": cpu, "requires_grad": False}
    cube, some = values((2, 3, 4), 3), {"dims": [0, 2]}
    calls = [
        ("div", [ints, more], {}), ("add", [x, torch.tensor(0.5)], {}), ("frexp", [x], {}), ("clone", [cube.permute(2, 0, 1)], {}),
        ("fill", [x, 3.0], {}), ("broadcast_in_dim", [x, [2, 5, 3], [0, 2]], {}), ("broadcast_in_dim", [x[:1], [4, 3], [0, 1]], {}),
        ("broadcast_in_dim", [torch.tensor(2.0), [3], []], {}), ("as_strided", [cube, [3, 2], [4, 1], 2], {}),
        ("collapse_view", [cube, 0, 1], {}), ("collapse", [cube.transpose(0, 1), 0, 1], {}), ("split_dim", [cube, 2, 2], {}),
        ("squeeze", [cube[:1, :, :1], [0, 2]], {}), ("transpose", [cube, [2, 0, 1]], {}), ("view_of", [x], {}),
        ("view_of_dtype", [x, torch.int32], {}), ("as_strided_scatter", [torch.zeros(6), values((2, 2), 4), [2, 2], [3, 1], 1], {}),
        ("cat", [[x, y, x[:, :1]], 1], {}), ("cat", [[x, y], 0], {}), ("reshape", [cube, [4, 6]], {}), ("rev", [cube, [0, 2]], {}),
        ("where", [x > 0.5, x, y], {}), ("convert_element_type", [cube.permute(2, 0, 1), torch.bfloat16], {}),
        ("convert_element_type", [x * 5, torch.int64], {}), ("device_put", [x, cpu], {}), ("copy_to", [x.clone(), y], {}),
        ("iota", [5], {"start": 3, "step": -2, "dtype": torch.int64, "device": cpu, "requires_grad": False}),
        ("iota", [0], {"start": 0, "step": 1, "dtype": torch.int32, "device": cpu, "requires_grad": False}),
        ("full", [[2, 2], 7.5], made), ("full_like", [x, 2], {**made, "dtype": torch.int64}), ("scalar_tensor", [2.5], {"dtype": torch.float64, "device": cpu}),
        ("sum", [cube, [0, 1, 2]], {}), ("sum", [cube, [1]], {}), ("prod", [cube, [0, 2]], {}), ("amax", [cube, [0, 2]], {}), ("amin", [cube, [0, 1, 2]], {}), ("var", [cube, [0, 2]], {}),
        ("var", [cube, [1], 0.0], {}), ("sum", [values((0, 3), 1), [0]], {}),
    ]
    for op, args, kwargs in calls:
        try:
            w.call(f"prims.{op}.default", args, kwargs)
        except (TypeError, RuntimeError) as error:
            print("PyTorch cannot run", op, str(error).split("\n")[0])


# ---- collectives of one rank, FSDP's copies ----

def record_collectives(w):
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    group = torch.distributed.group.WORLD.group_name
    x, y = values((4, 3), 1), values((2,), 2)
    calls = [
        ("_c10d_functional.all_gather_into_tensor", [x, 1, group], {}), ("_c10d_functional.wait_tensor", [x], {}),
        ("_c10d_functional.reduce_scatter_tensor", [x, "sum", 1, group], {}),
        ("_c10d_functional.reduce_scatter_tensor", [x, "avg", 1, group], {}),
        ("_c10d_functional.all_gather_into_tensor_coalesced", [[x, y], 1, group], {}),
        ("_c10d_functional.reduce_scatter_tensor_coalesced", [[x, y], "sum", 1, group], {}),
        ("_c10d_functional.all_gather_into_tensor_out", [x, 1, group], {"out": torch.zeros(4, 3)}),
        ("_c10d_functional.reduce_scatter_tensor_out", [x, "sum", 1, group], {"out": torch.zeros(4, 3)}),
        ("fsdp.all_gather_copy_in", [[x.reshape(-1), y], values((28,), 3), [12, 2], 14, 1], {}),
        ("fsdp.all_gather_copy_in", [[y], values((2,), 3), [2], 2, 0], {}),
        ("fsdp.split_with_sizes_copy", [x, [1, 2], 1], {"out": [torch.zeros(4, 1), torch.zeros(4, 2)]}),
        ("fsdp.chunk_cat", [[x, values((3, 2), 4)], 0, 2], {"out": torch.zeros(2, 10)}),
        ("fsdp.copy_", [x.clone(), values((4, 3), 5)], {}),
    ]
    for name, args, kwargs in calls:
        try:
            out = kwargs.get("out")
            w.call(name + ".default", args, kwargs, [out] if out is not None else args[:1] if name.endswith("_") else [])
        except (RuntimeError, NotImplementedError, ValueError) as error:
            print("PyTorch cannot run", name, str(error).split("\n")[0])
    torch.distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("aothost")
    parser.add_argument("--all", type=pathlib.Path)
    options = parser.parse_args()
    w = Writer()
    with tempfile.TemporaryDirectory() as folder:
        w.listing = folder + "/ops.json"
        subprocess.run([options.aothost, "ops", "--json", w.listing], check=True, stdout=subprocess.DEVNULL)
        refused = record_derived(w, options.all is not None)
        record_foreach(w)
        record_optimizers(w)
        record_prims(w)
        record_collectives(w)
    size = w.save(options.all or ROOT / "tests/fixtures/ops_families")
    for name, why in refused if options.all else ():
        print("PyTorch refuses", name, why)
    print(len(w.cases), "cases,", size, "bytes of tensors")


main()
