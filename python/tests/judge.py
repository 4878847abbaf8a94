"""What a model computes, against eager in float64.

Rounding differs between two programs of the same model. Eager's own distance from float64 is the measure: a compiled
model may be as far as a few times that, with a floor for results that eager happens to have exactly.
"""

from __future__ import annotations

import copy
from typing import Any, Sequence

import torch

TIMES = 8.0
FLOOR = 2e-6  # of the largest value: 16 units in the last place of float32


def wide(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        value = value.detach().clone()
        return value.double() if value.dtype == torch.float32 else value
    return value


def own(value: Any, needs_grad: bool) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    value = value.detach().clone()
    return value.requires_grad_(needs_grad and (value.is_floating_point() or value.is_complex()))


def tensors(results: Any) -> list[torch.Tensor]:
    if isinstance(results, torch.Tensor):
        return [results]
    if isinstance(results, dict):
        results = list(results.values())
    return [t for r in results for t in tensors(r)] if isinstance(results, (list, tuple)) else []


def loss_of(results: Any) -> torch.Tensor:
    """A number that every differentiable result contributes to, each element with its own weight."""
    total: Any = 0.0
    for t in tensors(results):
        if t.requires_grad:
            real = torch.view_as_real(t) if t.is_complex() else t
            weights = torch.linspace(0.5, 1.5, real.numel(), dtype=real.dtype).reshape(real.shape)
            total = total + (real * weights).sum()
    return total


def record(model: Any, call: Any, inputs: Sequence[Any], train: bool, steps: int) -> dict[str, torch.Tensor]:
    """Results, gradients and buffers of a few calls, by name."""
    rows: dict[str, torch.Tensor] = {}
    for step in range(steps):
        if not train:
            with torch.no_grad():
                results = call(*inputs)
        else:
            for tensor in (*inputs, *model.parameters()):
                if isinstance(tensor, torch.Tensor):
                    tensor.grad = None
            results = call(*inputs)
            loss_of(results).backward()
        rows |= {f"step {step}: result {i}": t.detach().clone() for i, t in enumerate(tensors(results))}
    if train:
        rows |= {f"gradient of {k}": p.grad.clone() for k, p in model.named_parameters() if p.grad is not None}
        rows |= {
            f"gradient of input {i}": x.grad.clone()
            for i, x in enumerate(inputs)
            if isinstance(x, torch.Tensor) and x.grad is not None
        }
    rows |= {f"buffer {k}": b.clone() for k, b in model.named_buffers()}
    rows |= {f"input {i} afterwards": x.detach().clone() for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)}
    return rows


def distance(a: torch.Tensor, b: torch.Tensor) -> float:
    if a.numel() == 0:
        return 0.0
    kind = torch.complex128 if b.is_complex() else torch.float64
    a, b = a.to(kind), b.to(kind)
    if not torch.equal(torch.isnan(a), torch.isnan(b)):
        return float("inf")
    return float((a - b).abs().nan_to_num(0.0).max())


def judge(
    model: torch.nn.Module,
    inputs: Sequence[Any],
    compile_: Any,
    train: bool = True,
    input_grads: bool = True,
    steps: int = 2,
    floor: float = FLOOR,
) -> Any:
    """Fails unless compile_(model) is as near to eager in float64 as eager in float32 is. Returns it."""
    model.train(train)
    truth, eager = copy.deepcopy(model).double(), copy.deepcopy(model)
    call = compile_(model)
    as_given = [own(x, input_grads and train) for x in inputs]
    theirs = [own(x, input_grads and train) for x in inputs]
    exact = [own(wide(x), input_grads and train) for x in inputs]
    got = record(model, call, as_given, train, steps)
    near = record(eager, eager, theirs, train, steps)
    true = record(truth, truth, exact, train, steps)
    assert got.keys() == near.keys() == true.keys()
    for name, value in got.items():
        assert value.dtype == near[name].dtype and value.shape == near[name].shape, name
        assert value.stride() == near[name].stride() or value.numel() <= 1, f"{name}: strides"
        magnitude = distance(true[name], torch.zeros_like(true[name]))
        allowed = TIMES * distance(near[name], true[name]) + floor * magnitude
        assert distance(value, true[name]) <= allowed, f"{name}: {distance(value, true[name]):g}, allowed {allowed:g}"
    return call
