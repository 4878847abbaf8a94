"""aothost.ab(model, x, partition=["partition-mincut", "mine"]): A/B tests of plugins and options on a live model.

Every combination of the listed options is an arm. Arms take turns, so that a change of the machine's speed meets all of
them; times are medians with the interval that half of the runs lie in.
"""

from __future__ import annotations

import functools
import itertools
import statistics
import time
from dataclasses import dataclass, field
from typing import Any, Callable

import torch

from .dynamo import backend
from .explain import own_gradients, size
from .notes import noting


@dataclass
class Arm:
    """options: what distinguishes it. difference: of the first result from the first arm's, relative to its largest."""

    options: dict[str, Any]
    seconds: list[float] = field(default_factory=list)
    compile_seconds: float = 0.0
    saved_bytes: int = 0
    difference: float = 0.0

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


@dataclass
class Comparison:
    """Printed, it is a table; ratios are to the first arm."""

    arms: list[Arm]

    def __str__(self) -> str:
        names = [", ".join(f"{k}={v}" for k, v in arm.options.items()) or "default" for arm in self.arms]
        width = max(map(len, names))
        lines = [
            f"{'arm':{width}}  {'step':>10}  {'half of them':>20}  {'ratio':>6}  {'saved':>10}  {'first call':>10}  difference"
        ]
        for name, arm in zip(names, self.arms):
            low, _, high = statistics.quantiles(arm.seconds, n=4) if len(arm.seconds) > 1 else [arm.median] * 3
            lines.append(
                f"{name:{width}}  {1e3 * arm.median:7.3f} ms  {1e3 * low:8.3f} .. {1e3 * high:8.3f}  "
                f"{arm.median / self.arms[0].median:6.3f}  {size(arm.saved_bytes):>10}  {arm.compile_seconds:8.2f} s  "
                f"{arm.difference:.1e}"
            )
        return "\n".join(lines)


def ab(model: Any, *inputs: Any, steps: int = 20, options: Any = None, **listed: Any) -> Comparison:
    """Runs forward and backward of the model in each arm. listed: an option's values, e.g. partition=[..], budget=[..];
    options: what all arms have in common. Gradients that the parameters have are as before; buffers are not."""
    values = [v if isinstance(v, (list, tuple)) else [v] for v in listed.values()]
    arms = [Arm(dict(zip(listed, combination))) for combination in itertools.product(*values)]
    runs: list[Callable[[], torch.Tensor]] = []
    with own_gradients(model):
        reference = None
        for arm in arms:
            compiled = torch.compile(
                model, backend=functools.partial(backend, options={**(options or {}), **arm.options})
            )
            runs.append(functools.partial(step, model, compiled, inputs))
            begin = time.perf_counter()
            with noting() as notes:
                value = runs[-1]()
            arm.compile_seconds = time.perf_counter() - begin
            arm.saved_bytes = sum(graph.last_saved_bytes or 0 for graph in notes.graphs)
            reference = value if reference is None else reference
            scale = reference.abs().max().clamp(min=1e-30)
            arm.difference = float((value - reference).abs().max() / scale)
        for _ in range(steps):
            for arm, run in zip(arms, runs):
                begin = time.perf_counter()
                run()
                arm.seconds.append(time.perf_counter() - begin)
    return Comparison(arms)


def step(model: Any, compiled: Callable[..., Any], inputs: tuple[Any, ...]) -> torch.Tensor:
    """A forward and its backward; the first float result."""
    if isinstance(model, torch.nn.Module):
        model.zero_grad(set_to_none=True)
    torch.manual_seed(0)
    results = [r for r in torch.utils._pytree.tree_leaves(compiled(*inputs)) if isinstance(r, torch.Tensor)]
    differentiable = [r for r in results if r.requires_grad]
    if differentiable:
        differentiable[0].sum().backward()
    return next(r for r in results if r.is_floating_point()).detach()
