"""Writes ops_out*.def and ops_in_place.def: PyTorch's out= and in-place forms of the operators that stand in the other tables.

    python plugins/aten/tests/make_derived_rows.py        (needs PyTorch; run it after adding operators)

A form is listed when its schema is the one that derive.c makes of the functional operator's. Another form needs a row of its own.
"""
import pathlib
import re

import torch

HERE = pathlib.Path(__file__).resolve().parent.parent
DERIVED = ("ops_out", "ops_in_place")
FACTORY = ("dtype", "layout", "device", "pin_memory")
# not strided tensors in host memory, or old names that nothing calls
LEFT_OUT = re.compile(r"aten\.(_?sparse|_?nested|_?quantize|_mkldnn|rename|_resize)|[dD]imname|aten\.set_?\.")


def rows_by_hand():
    """Full name -> id, does it write, of every row that is written by hand."""
    found = {}
    for path in sorted(HERE.glob("ops_*.def")):
        if path.name.startswith(DERIVED):
            continue
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        for row_id, name, rest in re.findall(r'\b(?:OP|EACH|PRIM)\(\s*(\w+),\s*"([^"]+)",([^)]*[)][^)]*)', text):
            found[name] = (row_id, "!)" in rest)
    return found


def schemas():
    """Full name -> schema of everything registered under aten."""
    return {s.name.replace("::", ".") + "." + (s.overload_name or "default"): s
            for s in torch._C._jit_get_all_schemas() if s.name.startswith("aten::")}


def written(a):
    return a.alias_info is not None and a.alias_info.is_write


def signature(arguments):
    return [(a.name, str(a.type)) for a in arguments]


def without_factory(arguments):
    names = {a.name for a in arguments}
    if not set(FACTORY) <= names:
        return list(arguments)
    return [a for a in arguments if a.name not in FACTORY]


def out_of(schema, functional):
    """The functional operator's names of outs, when `schema` is its out= form."""
    outs = [a for a in schema.arguments if written(a)]
    if not outs or not all(a.kwarg_only for a in outs) or len(outs) != len(functional.returns):
        return None
    rest = [a for a in schema.arguments if not written(a)]
    if signature(rest) != signature(without_factory(functional.arguments)):
        return None
    if list(schema.arguments)[-len(outs):] != outs and [a.name for a in schema.arguments][-len(outs):] != [a.name for a in outs]:
        return None
    return " ".join(a.name for a in outs)


def is_in_place_of(schema, functional):
    """Are the first arguments written, as many as the functional operator has results, and nothing else?"""
    marks = [written(a) for a in schema.arguments]
    n = len(functional.returns)
    if n == 0 or marks[:n] != [True] * n or any(marks[n:]) or schema.arguments[0].kwarg_only:
        return False
    if signature(schema.arguments) != signature(functional.arguments):
        return False
    if any(a.has_default_value() != b.has_default_value() for a, b in zip(schema.arguments, functional.arguments)):
        return False
    is_list = str(schema.arguments[0].type).startswith("List")
    return len(schema.returns) == (0 if is_list else 1)


def row_id(name):
    _, op, overload = name.split(".")
    return op if overload == "default" else op + "_" + overload


def derive():
    by_hand, known = rows_by_hand(), schemas()
    by_op = {}
    for name, s in known.items():
        by_op.setdefault(name.split(".")[1], []).append((name, s))
    outs, in_place = [], []
    used = {i for i, _ in by_hand.values()}
    for name, s in sorted(known.items()):
        if name in by_hand or LEFT_OUT.search(name) or not any(written(a) for a in s.arguments):
            continue
        op = name.split(".")[1]
        of = [(n, f) for n, f in by_op.get(op, []) + by_op.get(op.rstrip("_"), [])
              if n in by_hand and not by_hand[n][1] and not any(a.alias_info for a in list(f.arguments) + list(f.returns))]
        new_id = row_id(name)
        new_id += "_" if new_id in used else ""
        for n, f in of:
            names = out_of(s, f)
            if names and n.split(".")[1] == op:
                outs.append((new_id, name, by_hand[n][0], names))
                break
            if op == n.split(".")[1] + "_" and is_in_place_of(s, f):
                in_place.append((new_id, name, by_hand[n][0]))
                break
        else:
            continue
        used.add(new_id)
    return outs, in_place


def write(path, head, lines):
    (HERE / path).write_text(head + "".join(line + "\n" for line in lines))


def main():
    outs, in_place = derive()
    made = "written by tests/make_derived_rows.py"
    parts = {"ops_out_a_l.def": lambda op: op[0] in "abcdefghijkl", "ops_out_m_z.def": lambda op: op[0] in "mnopqrstuvwxyz",
             "ops_out_private.def": lambda op: op[0] == "_"}
    for path, belongs in parts.items():
        rows = [f'OUT({i}, "{n}", {t}, "{w}")' for i, n, t, w in outs if belongs(n.split(".")[1])]
        write(path, f"/* OUT(id, full name, functional operator, written arguments): results go into given tensors. This table is {made}. */\n",
              rows)
    write("ops_in_place.def", f"/* IN_PLACE(id, full name, functional operator): its first arguments are written. This table is {made}. */\n",
          [f'IN_PLACE({i}, "{n}", {t})' for i, n, t in in_place])
    print(len(outs), "out,", len(in_place), "in place")


main()
