"""A graph of torch.fx as a text program of aothost (docs/IR.md, section 4).

    joint graph of AOTAutograd -> leaves (inputs), ports with roles, one line a node -> text

The graph is functional: AOTAutograd has removed mutation and views of inputs. Sizes that are symbols stay symbols;
their hints are the values at tracing. What the text form cannot say raises `Unsupported`, with the node's name.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any, Iterable, Sequence

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import free_symbols


class Unsupported(Exception):
    """A node or value that aothost's text form has no words for."""

    def __init__(self, what: str, node: fx.Node | None = None):
        super().__init__(what)
        self.node = node


DTYPES = {
    torch.uint8: "u8", torch.int8: "i8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64",
    torch.uint16: "u16", torch.uint32: "u32", torch.uint64: "u64",
    torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64",
    torch.complex64: "c64", torch.complex128: "c128", torch.bool: "bool",
}  # fmt: skip
LAYOUTS = {torch.strided: "strided"}
MEMORY_FORMATS = {
    torch.contiguous_format: "contiguous", torch.channels_last: "channels_last",
    torch.channels_last_3d: "channels_last_3d", torch.preserve_format: "preserve",
}  # fmt: skip


# ---- sizes ----


def expression(expr: Any) -> str:
    """A SymPy expression over shape symbols as a dimension of the text form."""
    name = type(expr).__name__
    if expr.is_Integer:
        return str(int(expr))
    if expr.is_Symbol:
        return expr.name
    arguments = [expression(a) for a in expr.args]
    if name in ("Add", "Mul"):
        return "(" + (" + " if name == "Add" else " * ").join(arguments) + ")"
    if name == "Pow" and expr.args[1].is_Integer and int(expr.args[1]) >= 0:
        return f"({arguments[0]} ** {arguments[1]})"
    if name in ("FloorDiv", "CleanDiv", "IntTrueDiv") and name != "IntTrueDiv":
        return f"({arguments[0]} // {arguments[1]})"
    if name in ("Mod", "PythonMod"):
        return f"mod({arguments[0]}, {arguments[1]})"
    if name in ("Max", "Min") and len(arguments) >= 2:
        text = arguments[0]
        for argument in arguments[1:]:
            text = f"{name.lower()}({text}, {argument})"
        return text
    raise Unsupported(f"the size {expr}")


def dim(size: Any) -> str:
    """A size, stride or offset: an int or a torch.SymInt."""
    if isinstance(size, torch.SymInt):
        return expression(size.node.expr)
    return str(int(size))


def dims(sizes: Iterable[Any]) -> str:
    return "[" + ", ".join(map(dim, sizes)) + "]"


def contiguous_strides(sizes: Sequence[Any]) -> list[Any]:
    """Products of the sizes to the right, where a size of 0 counts as 1."""
    strides: list[Any] = []
    stride: Any = 1
    for size in reversed(sizes):
        strides.append(stride)
        stride = stride * (1 if isinstance(size, int) and size == 0 else size)
    return strides[::-1]


def type_text(dtype: torch.dtype, sizes: Sequence[Any], strides: Sequence[Any], where: torch.device) -> str:
    if dtype not in DTYPES:
        raise Unsupported(f"a tensor of dtype {dtype}")
    text = DTYPES[dtype] + dims(sizes)
    lies = dims(strides)
    if lies != dims(contiguous_strides(sizes)):
        text += " strides " + lies
    return text if where.type == "cpu" else text + " " + device(where)


def device(value: torch.device) -> str:
    return value.type if value.index is None else f"{value.type}:{value.index}"


def with_statistics(node: fx.Node, values: Sequence[Any]) -> list[Any]:
    """The results as the CPU's kernel has them: mean and deviation of a half are of its weight's dtype, not of its
    own as PyTorch's fake tensors have it (2.11: torch/_refs, native_layer_norm)."""
    if node.target is not torch.ops.aten.native_layer_norm.default or node.args[2] is None:
        return list(values)
    dtype = node.args[2].meta["val"].dtype
    return [values[0], *(v if v is None else v.to(dtype) for v in values[1:])]


# ---- arguments ----


def number(value: float) -> str:
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    text = repr(value)
    return text if any(c in text for c in ".en") else text + ".0"


@dataclass
class Program:
    """A text program, and how its ports belong to the graph's inputs and outputs."""

    text: str
    parameters: list[int] = field(default_factory=list)  # graph inputs that are leaves p0, p1, ..
    user_inputs: list[int] = field(default_factory=list)  # graph inputs that are given to each call, in order
    constants: list[torch.Tensor] = field(default_factory=list)  # of the graph module; behind the user inputs
    sizes: list[int] = field(default_factory=list)  # graph inputs that are ints
    carried: list[int] = field(default_factory=list)  # of them: sizes of a last user input, of one byte, that has them
    outputs: list[int] = field(default_factory=list)  # graph outputs that are user outputs 0, 1, ..
    input_gradients: list[int | None] = field(default_factory=list)  # by user input: number of the gradient output
    parameter_gradients: list[int | None] = field(default_factory=list)
    tangents: list[int] = field(default_factory=list)  # by tangent of the graph: its user output
    n_nodes: int = 0
    draws: bool = False  # it draws random numbers


class Writer:
    """Writes one graph. `names` has the label of each node, or of each of its results."""

    def __init__(self, module: fx.GraphModule):
        self.module = module
        self.lines: list[str] = []
        self.names: dict[fx.Node, str | list[str | None]] = {}
        self.symbols: dict[str, Any] = {}
        # Of gradients: the sizes of their inputs, which may be written simpler.
        self.sizes: dict[fx.Node, Sequence[Any]] = {}
        self.types: dict[Any, str] = {}  # of tensors without symbols
        self.draws = False

    def label(self, node: fx.Node) -> str:
        label = self.names.get(node)
        if not isinstance(label, str):
            raise Unsupported(f"{node.name} as an argument")
        return "%" + label

    def argument(self, value: Any) -> str:
        if isinstance(value, fx.Node):
            meta = value.meta.get("val")
            if isinstance(meta, torch.SymInt):
                return dim(meta)
            if isinstance(meta, (int, bool)) and not isinstance(meta, torch.Tensor):
                return self.argument(meta)
            return self.label(value)
        if value is None:
            return "none"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (int, torch.SymInt)):
            return dim(value)
        if isinstance(value, float):
            return number(value)
        if isinstance(value, str):
            return json.dumps(value)
        if isinstance(value, torch.dtype) and value in DTYPES:
            return DTYPES[value]
        if isinstance(value, torch.device):
            return device(value)
        if isinstance(value, torch.layout) and value in LAYOUTS:
            return LAYOUTS[value]
        if isinstance(value, torch.memory_format) and value in MEMORY_FORMATS:
            return MEMORY_FORMATS[value]
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(map(self.argument, value)) + "]"
        raise Unsupported(f"an argument of {type(value).__name__}")

    def arguments(self, node: fx.Node) -> str:
        """All in the schema's order; of keyword-only ones those that are given."""
        if not isinstance(node.target, torch._ops.OpOverload):
            raise Unsupported(f"the call of {node.target}")
        texts = [self.argument(a) for a in node.args]
        texts += [f"{k}={self.argument(a)}" for k, a in node.kwargs.items()]
        return ", ".join(texts)

    def call(self, node: fx.Node, flags: str) -> None:
        value = node.meta.get("val")
        arguments = self.arguments(node)
        if isinstance(value, (tuple, list)):
            labels = [f"{node.name}_r{i}" for i in range(len(value))]
            self.names[node] = labels
            types = map(self.type_of, with_statistics(node, value))
            results = ", ".join(f"%{label} : {type_}" for label, type_ in zip(labels, types))
        else:
            self.names[node] = node.name
            results = f"%{node.name} : {self.type_of(value, self.sizes.get(node))}"
        target = node.target
        if torch.Tag.nondeterministic_seeded in target.tags:
            self.draws = True
        self.lines.append(f"  {results} = {target} {arguments}{flags}")

    def type_of(self, value: Any, sizes: Sequence[Any] | None = None) -> str:
        """The type of a node's value: that of its fake tensor. Symbols are noted. sizes: an equal form of its sizes."""
        if value is None:
            return "none"
        if not isinstance(value, torch.Tensor):
            raise Unsupported(f"a value of {type(value).__name__}")
        strides = value.stride()
        key = (value.dtype, value.shape, strides, value.device)
        sizes = value.shape if sizes is None else sizes
        try:
            found = self.types.get(key)
        except TypeError:  # symbols have no hash
            self.note_symbols(value)
            return type_text(value.dtype, sizes, strides, value.device)
        if found is None:
            if value.layout != torch.strided or value.is_quantized:
                raise Unsupported(f"a tensor of layout {value.layout}")
            found = self.types[key] = type_text(*key)
        return found

    def note_symbols(self, value: torch.Tensor | torch.SymInt) -> None:
        for symbol in free_symbols(value):
            self.symbols.setdefault(symbol.name, (symbol, value))

    def declare_symbols(self) -> list[str]:
        lines = []
        for name, (symbol, value) in sorted(self.symbols.items()):
            env = shape_env_of(value)
            low, high = 0, "inf"
            interval = env.var_to_range.get(symbol)
            if interval is not None:
                low = max(0, int(interval.lower)) if interval.lower.is_Integer else 0
                if interval.upper.is_Integer and int(interval.upper) < 2**31:
                    high = str(int(interval.upper))
            hint = getattr(env, "backed_var_to_val", None)
            hint = (env.var_to_val if hint is None else hint).get(symbol)
            if hint is None:
                raise Unsupported(f"the size {name}, which depends on data")
            lines.append(f"symbol {name} in [{low}, {high}] hint {int(hint)}")
        return lines + self.equalities()

    def equalities(self) -> list[str]:
        """Guards of the trace that equate sizes: the program's expressions are equal where PyTorch knew that they
        are."""
        lines: list[str] = []
        for _, value in list(self.symbols.values())[:1]:
            for guard in shape_env_of(value).guards:
                if type(guard.expr).__name__ != "Equality" or any(
                    symbol.name not in self.symbols for symbol in guard.expr.free_symbols
                ):
                    continue
                try:
                    left, right = map(expression, guard.expr.args)
                except Unsupported:
                    continue
                lines.append(f"guard {left} == {right} {json.dumps(str(guard.expr))}")
        return lines


def shape_env_of(value: Any) -> Any:
    if isinstance(value, torch.SymInt):
        return value.node.shape_env
    for part in (*value.shape, *value.stride()):
        if isinstance(part, torch.SymInt):
            return part.node.shape_env
    raise Unsupported("a symbol without an environment")


def is_size(node: fx.Node) -> bool:
    """A node whose value is an int, symbolic or not: it has no line of its own."""
    return isinstance(node.meta.get("val"), (int, torch.SymInt))


def backward_nodes(graph: fx.Graph, tangents: Sequence[fx.Node]) -> set[fx.Node]:
    """Everything that depends on a tangent."""
    found = set(tangents)
    for node in graph.nodes:
        if node.op == "call_function" and any(i in found for i in node.all_input_nodes):
            found.add(node)
    return found


def flags_of(node: fx.Node, backward: set[fx.Node]) -> str:
    """Flags of a node: in the backward; what an activation checkpoint says of it (torch.utils.checkpoint)."""
    flags = ["backward"] if node in backward else []
    policy = getattr(node.meta.get("recompute"), "name", None)
    if policy in ("MUST_SAVE", "PREFER_SAVE", "MUST_RECOMPUTE", "PREFER_RECOMPUTE"):
        flags.append(policy.lower())
    text = " {" + " ".join(flags) + "}" if flags else ""
    region = node.meta.get("ac_graph_id")
    return text + (f" region {int(region)}" if policy and isinstance(region, int) and region > 0 else "")


def write(module: fx.GraphModule, n_forward_outputs: int | None = None, static: Iterable[int] = ()) -> Program:
    """The graph as a text program.

    n_forward_outputs  of a joint graph; the outputs behind them are gradients of the inputs, in order. None: there is
    no backward.
    static             inputs whose memory stays the same from call to call: they become leaves that are bound once.
    """
    graph = module.graph
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    (output,) = [n for n in graph.nodes if n.op == "output"]
    flat: list[Any] = list(output.args[0])
    is_joint = n_forward_outputs is not None
    tangents = [n for n in placeholders if is_joint and n.name.startswith("tangents_")]
    primals = [n for n in placeholders if n not in set(tangents)]
    n_forward = n_forward_outputs if is_joint else len(flat)
    gradients = flat[n_forward:] if is_joint else [None] * len(primals)
    if len(gradients) != len(primals):
        raise Unsupported(f"{len(gradients)} gradients of {len(primals)} inputs")

    w, result = Writer(module), Program("")
    static = set(static) - updated_inputs(primals, output.meta.get("desc") or ())
    leaves: list[str] = []
    ports: list[str] = []
    leaf_of: dict[int, int] = {}

    def leaf(role: str, node: fx.Node, name: str, grad: bool) -> int:
        type_ = w.type_of(node.meta["val"]) + (" grad" if grad else "")
        k = len(leaves)
        leaves.append(f'leaf {k} {role} "{name}" : {type_}')
        w.names[node] = node.name
        ports.append(f"  in %{node.name} = {role.split()[0]} {k} : {type_}")
        return k

    for i, node in enumerate(primals):
        if is_size(node):
            result.sizes.append(i)
            continue
        has_gradient = gradients[i] is not None
        if i in static and not free_symbols(node.meta["val"]):
            leaf_of[i] = leaf("parameter", node, f"p{len(result.parameters)}", has_gradient)
            result.parameters.append(i)
            result.parameter_gradients.append(i if has_gradient else None)
        else:
            leaf_of[i] = leaf(
                f"user_input {len(result.user_inputs)}", node, f"x{len(result.user_inputs)}", has_gradient
            )
            result.user_inputs.append(i)
            result.input_gradients.append(i if has_gradient else None)

    for node in graph.nodes:
        if node.op == "get_attr":
            value = getattr(module, node.target, None)
            if not isinstance(value, torch.Tensor):
                continue  # the graph of a higher-order operator
            node.meta.setdefault("val", value)
            leaf(
                f"user_input {len(result.user_inputs) + len(result.constants)}",
                node,
                f"c{len(result.constants)}",
                False,
            )
            result.constants.append(value)

    outputs = output.meta.get("desc") or [None] * len(flat)
    for k, node in enumerate(tangents):
        result.tangents.append(tangent_of(node, outputs[:n_forward], flat[:n_forward], k, result.tangents))
        w.names[node] = node.name
        ports.append(f"  in %{node.name} = tangent {result.tangents[k]} : {w.type_of(node.meta['val'])}")

    for node, gradient in zip(primals, gradients):
        if isinstance(gradient, fx.Node) and gradient.op == "call_function":
            w.sizes[gradient] = node.meta["val"].shape
    backward = backward_nodes(graph, tangents)
    for node in graph.nodes:
        if node.op == "call_function":
            convert(w, node, backward)
            result.n_nodes += 1
        elif node.op not in ("placeholder", "output", "get_attr"):
            raise Unsupported(f"{node.op} {node.name}")

    for k in range(n_forward):
        if isinstance(flat[k], fx.Node) and not is_size(flat[k]):
            label = w.label(flat[k])
            w.lines.append(f"  out user_output {len(result.outputs)} = {label}")
            result.outputs.append(k)
    for i in range(len(primals)):
        if gradients[i] is not None:
            w.lines.append(f"  out gradient {leaf_of[i]} = {w.label(gradients[i])}")

    missing = sorted(set(w.symbols) - sizes_of_tensors(primals))
    if missing:
        numbers = {str(primals[i].meta["val"]): i for i in result.sizes}
        for name in missing:
            if name not in numbers:
                raise Unsupported(f"the size {name}, which no input has")
        result.carried = [numbers[name] for name in missing]
        k = len(leaves)
        type_ = f"u8[{', '.join(missing)}] strides [{', '.join('0' for _ in missing)}]"
        leaves.append(f'leaf {k} user_input {len(result.user_inputs) + len(result.constants)} "sizes" : {type_}')
        ports.append(f"  in %sizes_of_inputs = user_input {k} : {type_}")
    properties = "imported functional" + (" joint" if is_joint else "")
    kind = "joint" if is_joint else "forward"
    head = ["aot 1", f"properties {properties}", "", *w.declare_symbols(), "", *leaves, "", f"graph @{kind} {kind} {{"]
    result.text = "\n".join([*head, *ports, *w.lines, "}", ""])
    result.draws = w.draws
    return result


def sizes_of_tensors(inputs: Sequence[fx.Node]) -> set[str]:
    """Symbols that are a size of an input: a call knows their value from it."""
    found = set()
    for node in inputs:
        if isinstance(node.meta.get("val"), torch.Tensor):
            for size in node.meta["val"].shape:
                if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                    found.add(size.node.expr.name)
    return found


def updated_inputs(inputs: Sequence[fx.Node], outputs: Sequence[Any]) -> set[int]:
    """Inputs that AOTAutograd writes behind the forward. The backward reads them as they were: they are given to each
    call, which has a copy, not bound once."""
    written = {getattr(d, "mutated_input", None) for d in outputs} - {None}
    return {i for i, node in enumerate(inputs) if node.meta.get("desc") in written}


def tangent_of(node: fx.Node, descriptors: Sequence[Any], outputs: Sequence[Any], k: int, taken: list[int]) -> int:
    """The user output that a tangent belongs to: by AOTAutograd's descriptor, else the k-th float output of its
    shape."""
    wanted = getattr(node.meta.get("desc"), "output", None)
    tensors = [i for i, n in enumerate(outputs) if isinstance(n, fx.Node) and not is_size(n)]
    for number_, i in enumerate(tensors):
        if wanted is not None and descriptors[i] == wanted:
            return number_
    raise Unsupported(f"the tangent {node.name}, of no output")


def convert(w: Writer, node: fx.Node, backward: set[fx.Node]) -> None:
    if is_size(node):
        if isinstance(node.meta["val"], torch.SymInt):
            w.note_symbols(node.meta["val"])
        return
    if getattr(node.target, "__name__", "") == "getitem" and isinstance(node.args[0], fx.Node):
        labels = w.names.get(node.args[0])
        if not isinstance(labels, list):
            raise Unsupported(f"{node.name}: an element of {node.args[0].name}", node)
        w.names[node] = labels[node.args[1]]
        return
    try:
        w.call(node, flags_of(node, backward))
    except Unsupported as e:
        raise Unsupported(f"{node.name} ({node.target}): {e}", node) from None
