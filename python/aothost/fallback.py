"""Graphs with operators that aothost refuses: those run in eager, the rest in compiled segments.

    graph -> split at the refused nodes -> segment, eager nodes, segment, ..       (in the graph's order)

The refused nodes are found by trying: what the library says of a graph names the node or the operator.
"""

from __future__ import annotations

import collections
import logging
import re
from typing import Any, Callable, Sequence

import torch
from torch import fx
from torch.fx.passes.split_module import split_module

from . import _aothost
from .graph_text import Unsupported, is_size
from .notes import current
from .options import Options
from .program import CompiledGraph

log = logging.getLogger("aothost")
MAX_TRIES = 16  # of one segment, each of which refuses more operators
MIN_NODES = 2  # a segment of fewer nodes runs in eager: a call of the library costs as much


def refused_by(error: Exception, module: fx.GraphModule) -> set[fx.Node]:
    """The nodes that an error names, by their own name or their operator's. Empty: it names none."""
    calls = [n for n in module.graph.nodes if n.op == "call_function"]
    if isinstance(error, Unsupported):
        return {n for n in calls if n is error.node} if error.node is not None else set()
    text = str(error)
    operators = set(re.findall(r"\w+\.\w+\.\w+", text))
    found = {n for n in calls if str(n.target) in operators}
    if found:
        return found
    names = set(re.findall(r"^\s*%([\w.]+)", text, re.MULTILINE))  # the lines that messages show begin with results
    targets = {n.target for n in calls if n.name in names}
    return {n for n in calls if n.target in targets}  # all nodes of an operator fare alike


class Eager:
    """How many nodes of which operators run in eager, and why."""

    def __init__(self) -> None:
        self.count: collections.Counter[str] = collections.Counter()
        self.why: dict[str, str] = {}
        self.n_nodes = 0

    def add(self, nodes: Sequence[fx.Node], why: str) -> None:
        for node in nodes:
            self.count[str(node.target)] += 1
            self.why.setdefault(str(node.target), why)

    def __str__(self) -> str:
        rows = ", ".join(f"{name} ({n})" for name, n in self.count.most_common())
        return f"{sum(self.count.values())} of {self.n_nodes} nodes run in eager: {rows}"


def compile_or_split(module: fx.GraphModule, options: Options, static: Sequence[int]) -> Callable[[Sequence[Any]], Any]:
    """A whole graph as one program, or as compiled segments with eager nodes between them."""
    refused: set[fx.Node] = set()
    eager = Eager()
    eager.n_nodes = sum(n.op == "call_function" and not is_size(n) for n in module.graph.nodes)
    for _ in range(MAX_TRIES):
        try:
            run = (
                CompiledGraph(module, options, None, static) if not refused else Split(module, options, refused, eager)
            )
            break
        except (Unsupported, _aothost.Error) as error:
            found = refused_by(error, module) - refused
            if options.strict or not found:
                raise
            eager.add(sorted(found, key=lambda n: n.name), str(error))
            refused |= found
    else:
        raise RuntimeError(f"aothost refuses too many operators of one graph: {eager}")
    if refused:
        if (notes := current()) is not None:
            notes.eager.append(eager)
        log.warning("%s", eager)
        for name, why in eager.why.items():
            log.info("%s: %s", name, why.strip())
    return run


class Split:
    """The graph as segments in its own order; a segment is compiled, or runs in eager."""

    def __init__(self, module: fx.GraphModule, options: Options, refused: set[fx.Node], eager: Eager):
        part_of, kinds = divide_nodes(module, refused)
        self.module = split_module(module, module, lambda node: part_of[node], keep_original_order=True)
        for name, part in list(self.module.named_children()):
            number = int(name.removeprefix("submod_")) if name.startswith("submod_") else -1
            if number < 0 or not kinds[number]:
                continue
            compiled = CompiledGraph(returning_list(part), options)
            setattr(self.module, name, Segment(compiled, part))
        self.n_inputs = sum(n.op == "placeholder" for n in module.graph.nodes)

    def __call__(self, inputs: Sequence[Any]) -> Any:
        return self.module(*inputs)


class Segment(torch.nn.Module):
    """A compiled segment in the place of its graph."""

    def __init__(self, compiled: CompiledGraph, part: fx.GraphModule):
        super().__init__()
        self.compiled = compiled
        (output,) = [n for n in part.graph.nodes if n.op == "output"]
        self.is_single = not isinstance(output.args[0], (list, tuple))

    def forward(self, *inputs: Any) -> Any:
        results = self.compiled(inputs)
        return results[0] if self.is_single else tuple(results)


def returning_list(part: fx.GraphModule) -> fx.GraphModule:
    """split_module returns a single output as itself."""
    graph = fx.Graph()
    result = graph.graph_copy(part.graph, {})
    flat = list(result) if isinstance(result, (list, tuple)) else [result]
    graph.output(flat)
    return fx.GraphModule(part, graph)


def divide_nodes(module: fx.GraphModule, refused: set[fx.Node]) -> tuple[dict[fx.Node, int], dict[int, bool]]:
    """By node: its segment; by segment: whether it is compiled. getitem nodes go with the node that they index."""
    part_of: dict[fx.Node, int] = {}
    kinds: dict[int, bool] = {}
    counts: collections.Counter[int] = collections.Counter()
    part = -1
    for node in module.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        is_item = getattr(node.target, "__name__", "") == "getitem" and isinstance(node.args[0], fx.Node)
        if is_item and node.args[0] in part_of:
            part_of[node] = part_of[node.args[0]]
            continue
        compiled = node not in refused
        if part < 0 or kinds[part] != compiled:
            part += 1
            kinds[part] = compiled
        part_of[node] = part
        counts[part] += node.op == "call_function"
    for number in kinds:
        kinds[number] = kinds[number] and counts[number] >= MIN_NODES
    return part_of, kinds
