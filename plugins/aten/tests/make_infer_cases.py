#!/usr/bin/env python3
"""Writes the cases that unit_infer reads: calls of operators with the metadata of arguments and results, nothing else.

    make_infer_cases.py OUT cases.json data.safetensors      recorded operator calls
    make_infer_cases.py OUT model.pt2 [model.pt2 ...]        nodes of torch.export archives, with their TensorMeta

One call a line:  operator argument.. -> result..
    f32(2,3)            tensor, contiguous            f32(2,3)(1,2)5     with strides and offset
    i4 d0.5 b1 "text"   numbers, bool, string         -                  None
    [1,2] [d0.5,d1]     lists of numbers              {f32(2);-}         list of tensors
    @f32 ^7 #0 %1       dtype, layout, device, memory format             name=argument
A result that is no tensor is `?`."""
import json
import struct
import sys
import zipfile

DTYPES = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
          "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "bool", "complex64": "c64", "complex128": "c128",
          "uint16": "u16", "uint32": "u32", "uint64": "u64"}
ST_DTYPES = {"F32": "f32", "F64": "f64", "F16": "f16", "BF16": "bf16", "I64": "i64", "I32": "i32", "I16": "i16",
             "I8": "i8", "U8": "u8", "BOOL": "bool", "U16": "u16", "U32": "u32", "U64": "u64"}
ARCHIVE_DTYPES = {1: "u8", 2: "i8", 3: "i16", 4: "i32", 5: "i64", 6: "f16", 7: "f32", 8: "f64", 10: "c64", 11: "c128",
                  12: "bool", 13: "bf16"}
FORMATS = {"contiguous_format": 1, "channels_last": 2, "channels_last_3d": 3, "preserve_format": 4}


class Skip(Exception):
    pass


def contiguous(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return strides


def tensor(dtype, shape, strides=None, offset=0):
    text = "%s(%s)" % (dtype, ",".join(map(str, shape)))
    if strides is not None and (list(strides) != contiguous(shape) or offset):
        text += "(%s)%d" % (",".join(map(str, strides)), offset)
    return text


def number(x):
    if isinstance(x, bool):
        return "b%d" % x
    if isinstance(x, int):
        return "i%d" % x
    return "d%s" % (x if isinstance(x, str) else repr(x))


def quoted(s):
    if any(c in s for c in ' "\n'):
        raise Skip("string")
    return '"%s"' % s


# ---- recorded calls ----

def case_arg(a, header):
    if a is None:
        return "-"
    if "t" in a:
        meta = header[a["t"]]
        shape = a.get("shape", meta["shape"])
        return tensor(ST_DTYPES[meta["dtype"]], shape, a.get("stride"), a.get("offset", 0))
    if "i" in a:
        return number(a["i"])
    if "f" in a:
        return number(a["f"]) if isinstance(a["f"], str) else number(float(a["f"]))
    if "b" in a:
        return number(bool(a["b"]))
    if "s" in a:
        return quoted(a["s"])
    if "dtype" in a:
        return "@" + DTYPES[a["dtype"].replace("torch.", "")]
    if "device" in a:
        return "#0"
    if "layout" in a:
        return "^7"
    if "memory_format" in a:
        return "%%%d" % FORMATS[a["memory_format"].replace("torch.", "")]
    items = a["l"]
    if any(x is None or "t" in x for x in items):
        return "{%s}" % ";".join(case_arg(x, header) for x in items)
    return "[%s]" % ",".join(case_arg(x, header) for x in items)


def recorded(cases_path, data_path):
    with open(data_path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(size))
    for case in json.load(open(cases_path)):
        try:
            args = [case_arg(a, header) for a in case["args"]]
            args += ["%s=%s" % (k, case_arg(a, header)) for k, a in case["kwargs"].items()]
        except Skip:
            continue
        outs = ["?" if m is None else tensor(DTYPES[m["dtype"]], m["shape"], m["stride"]) for m in case["out_meta"]]
        yield "%s %s -> %s" % (case["op"], " ".join(args), " ".join(outs))


# ---- archives ----

def ints(items):
    out = []
    for x in items:
        x = x.get("as_int", x) if isinstance(x, dict) else x
        if not isinstance(x, int):
            raise Skip("symbolic")
        out.append(x)
    return out


def meta_text(meta, with_offset):
    offset = ints([meta["storage_offset"]])[0] if with_offset else 0
    return tensor(ARCHIVE_DTYPES[meta["dtype"]], ints(meta["sizes"]), ints(meta["strides"]), offset)


def archive_arg(a, metas):
    (kind, v), = a.items()
    if kind == "as_none":
        return "-"
    if kind == "as_tensor":
        return meta_text(metas[v["name"]], True)
    if kind in ("as_tensors", "as_optional_tensors"):
        items = []
        for x in v:
            if "as_tensor" in x:
                x = x["as_tensor"]
            items.append("-" if "name" not in x else meta_text(metas[x["name"]], True))
        return "{%s}" % ";".join(items)
    if kind in ("as_int", "as_float", "as_bool"):
        return number(v)
    if kind in ("as_ints", "as_floats", "as_bools"):
        return "[%s]" % ",".join(number(x) for x in v)
    if kind == "as_sym_int" and "as_int" in v:
        return number(v["as_int"])
    if kind == "as_sym_ints":
        return "[%s]" % ",".join(number(x) for x in ints(v))
    if kind == "as_string":
        return quoted(v)
    if kind == "as_scalar_type":
        return "@" + ARCHIVE_DTYPES[v]
    if kind == "as_memory_format":
        return "%%%d" % v
    if kind == "as_layout":
        return "^%d" % v
    if kind == "as_device":
        return "#0"
    raise Skip(kind)


def graphs(graph):
    yield graph
    for node in graph["nodes"]:
        for i in node["inputs"]:
            (kind, v), = i["arg"].items()
            if kind == "as_graph":
                yield from graphs(v["graph"])


def archived(path):
    with zipfile.ZipFile(path) as z:
        name = [n for n in z.namelist() if n.endswith("models/model.json")][0]
        program = json.loads(z.read(name))
    for graph in graphs(program["graph_module"]["graph"]):
        metas = graph["tensor_values"]
        for node in graph["nodes"]:
            if not node["target"].startswith("torch.ops.aten."):
                continue
            try:
                args = ["%s=%s" % (i["name"], archive_arg(i["arg"], metas)) for i in node["inputs"]]
                outs = []
                for o in node["outputs"]:
                    (kind, v), = o.items()
                    for x in v if kind == "as_tensors" else [v]:
                        outs.append(meta_text(metas[x["name"]], True) if kind in ("as_tensor", "as_tensors") else "?")
            except Skip:
                continue
            yield "%s %s -> %s" % (node["target"][len("torch.ops."):], " ".join(args), " ".join(outs))


def main():
    out, inputs = sys.argv[1], sys.argv[2:]
    if inputs[0].endswith(".json"):
        lines = list(recorded(inputs[0], inputs[1]))
    else:
        lines = [line for path in inputs for line in archived(path)]
    seen = list(dict.fromkeys(lines))
    with open(out, "w") as f:
        f.write("\n".join(seen) + "\n")
    print("%d calls, %d bytes" % (len(seen), sum(len(s) + 1 for s in seen)))


if __name__ == "__main__":
    main()
