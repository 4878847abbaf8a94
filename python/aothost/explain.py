"""aothost.explain(model, x): what torch.compile and aothost make of a model.

graphs           one for each piece of code that Dynamo traces whole, with its nodes and saved bytes
breaks           where Dynamo ends a graph, and why
eager            operators that run in eager between compiled segments, and what aothost says of them
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._dynamo.utils import counters

from .dynamo import backend
from .notes import noting


@dataclass
class Graph:
    """One compiled graph. saved_bytes: what its forward keeps for its backward, in the last call; None: no backward."""

    nodes: int
    inputs: int
    parameters: int
    saved_bytes: int | None


@dataclass
class Explanation:
    """Printed, it is a page; its fields are for programs."""

    graphs: list[Graph] = field(default_factory=list)
    breaks: dict[str, int] = field(default_factory=dict)  # reason: how often
    eager: dict[str, int] = field(default_factory=dict)  # operator: nodes
    why: dict[str, str] = field(default_factory=dict)  # operator: what aothost says of it

    def __str__(self) -> str:
        lines = [f"{len(self.graphs)} compiled graphs, {sum(self.breaks.values())} graph breaks"]
        for k, g in enumerate(self.graphs):
            saved = "inference" if g.saved_bytes is None else f"saves {size(g.saved_bytes)} for its backward"
            lines.append(f"  graph {k}: {g.nodes} nodes, {g.parameters} parameters, {g.inputs} other inputs, {saved}")
        for reason, n in self.breaks.items():
            lines.append(f"  break ({n}): {reason.splitlines()[0]}")
        for name, n in self.eager.items():
            lines.append(f"  in eager: {name} ({n} nodes): {first_line(self.why.get(name, ''))}")
        return "\n".join(lines)


def explain(model: Any, *inputs: Any, options: Any = None, **named: Any) -> Explanation:
    """Compiles the model as torch.compile(model, backend="aothost", options=options) does and runs it once, with its
    backward where a result has one. Gradients that the parameters have are as before."""
    before = dict(counters["graph_break"])
    found = Explanation()
    with noting() as notes, own_gradients(model):
        compiled = torch.compile(model, backend=functools.partial(backend, options=options))
        results = torch.utils._pytree.tree_leaves(compiled(*inputs, **named))
        frames = [graph.last_saved_bytes for graph in notes.graphs]
        total = [r.sum() for r in results if isinstance(r, torch.Tensor) and r.requires_grad]
        if total:
            sum(total).backward()  # type: ignore[union-attr]  # compiles what is compiled for the backward alone
    for k, graph in enumerate(notes.graphs):
        saved = frames[k] if k < len(frames) else None
        found.graphs.append(Graph(graph.n_nodes, len(graph.text.user_inputs), len(graph.text.parameters), saved))
    for reason, n in counters["graph_break"].items():
        if n > before.get(reason, 0):
            found.breaks[reason] = n - before.get(reason, 0)
    for eager in notes.eager:
        for name, n in eager.count.items():
            found.eager[name] = found.eager.get(name, 0) + n
        found.why.update(eager.why)
    return found


class own_gradients:
    """Gradients that are made inside are dropped; those from before are there again."""

    def __init__(self, model: Any):
        self.parameters = list(model.parameters()) if isinstance(model, torch.nn.Module) else []

    def __enter__(self) -> None:
        self.before = [p.grad for p in self.parameters]
        for p in self.parameters:
            p.grad = None

    def __exit__(self, *unused: Any) -> None:
        for p, grad in zip(self.parameters, self.before):
            p.grad = grad


def size(nbytes: int) -> str:
    number = float(nbytes)
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.2f} GiB"


def first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
