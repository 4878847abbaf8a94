"""One training step of a module in eager PyTorch, and everything that an expectation file holds of it (docs/RUN.md, verify)."""

from __future__ import annotations

import copy
import dataclasses

import torch
import torch.utils._pytree as pytree


def is_differentiable(value) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def stored(tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous, dense copy that shares nothing."""
    tensor = tensor.detach()
    dense = tensor.to_dense() if tensor.layout is not torch.strided else tensor
    return dense.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)


def tangent_for(output: torch.Tensor) -> torch.Tensor:
    if output.dim() == 0:
        return torch.ones_like(output)
    ramp = 1 + 0.1 * torch.arange(output.numel(), dtype=torch.float64)
    return ramp.reshape(output.shape).to(output.dtype)


def copy_input(leaf):
    """Returns (leaf, what the call gets): the call may write its inputs, a leaf may not be written."""
    if not isinstance(leaf, torch.Tensor):
        return leaf, leaf
    fresh = leaf.detach().clone().requires_grad_(leaf.requires_grad)
    return fresh, fresh.clone() if leaf.requires_grad else fresh


def is_named_tuple(value) -> bool:
    return isinstance(value, tuple) and type(value).__bases__ == (tuple,) and hasattr(type(value), "_fields")


def leaves_of(value) -> list:
    """As torch.export flattens it. Dataclasses and named tuples are made known to PyTorch, which otherwise refuses or cannot save them."""
    kinds = {}
    leaves = pytree.tree_leaves(value, is_leaf=lambda part: kinds.setdefault(type(part), part) is None)
    unknown = [kind for kind, part in kinds.items() if dataclasses.is_dataclass(kind) and any(leaf is part for leaf in leaves)]
    for kind, part in kinds.items():
        name = f"{kind.__module__}.{kind.__qualname__}"
        if kind in unknown:
            torch.export.register_dataclass(kind, serialized_type_name=name)
        elif is_named_tuple(part) and name not in pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE:
            pytree._register_namedtuple(kind, serialized_type_name=name)
    return leaves_of(value) if unknown else leaves


def tensors_of(leaves) -> list:
    """input.K counts the tensors alone: numbers, None and texts are constants of the exported program."""
    return [x for x in leaves if isinstance(x, torch.Tensor)]


def run_step(model, args: tuple, kwargs: dict, seed: int, notes: dict | None = None, tangents: dict | None = None,
             every_name: bool = False) -> dict:
    """One eager training step on copies; everything that the expectation file holds.

    notes: receives what explains differences of an export. tangents: cotangents by output, else tangent_for each output.
    every_name: a tied parameter's gradient has each of its names, not the first alone.
    """
    model = copy.deepcopy(model)
    before = dict(model.named_buffers())
    leaves_of((args, kwargs))
    leaves, tree = pytree.tree_flatten((args, kwargs))
    inputs, given = zip(*map(copy_input, leaves)) if leaves else ((), ())
    values = {f"input.{k}": stored(x) for k, x in enumerate(tensors_of(inputs))}
    torch.manual_seed(seed)
    given_args, given_kwargs = pytree.tree_unflatten(list(given), tree)
    outputs = leaves_of(model(*given_args, **given_kwargs))
    outputs = [y if isinstance(y, torch.Tensor) else None for y in outputs]
    if tangents is None:
        tangents = {k: tangent_for(y) for k, y in enumerate(outputs) if is_differentiable(y)}
    if notes is not None:
        after = dict(model.named_buffers())
        notes["functions"] = own_backwards([outputs[k] for k in tangents])
        notes["forward_buffers"] = {name: stored(b) for name, b in after.items()}
        notes["reassigned"] = {name for name in after if after[name] is not before.get(name)}
    if tangents:
        torch.autograd.backward([outputs[k] for k in tangents], list(tangents.values()))
    values |= {f"output.{k}": stored(y) for k, y in enumerate(outputs) if y is not None}
    values |= {f"tangent.{k}": stored(t) for k, t in tangents.items()}
    values |= {f"input_after.{k}": stored(x) for k, x in enumerate(tensors_of(given))}
    values |= gradients(model, tensors_of(inputs), every_name)
    values |= {f"buffer_after.{name}": stored(b) for name, b in model.named_buffers()}
    return values


def own_backwards(outputs: list) -> list[str]:
    """Names of the autograd.Functions in the history of the outputs."""
    names, seen, waiting = set(), set(), [y.grad_fn for y in outputs]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            names.add(type(node).__name__.removesuffix("Backward"))
        waiting += [follower for follower, _ in node.next_functions]
    return sorted(names)


def gradients(model, inputs: list, every_name: bool) -> dict:
    parameters = model.named_parameters(remove_duplicate=not every_name)
    values = {f"grad.{name}": stored(p.grad) for name, p in parameters if p.grad is not None}
    for k, x in enumerate(inputs):
        if is_differentiable(x) and x.grad is not None:
            values[f"grad.input.{k}"] = stored(x.grad)
    return values


def drop_unchanged_inputs(values: dict) -> dict:
    """input_after.K says nothing when no input changed."""
    after = {key: key.replace("input_after.", "input.") for key in values if key.startswith("input_after.")}
    if any(not same(values[key], values[before]) for key, before in after.items()):
        return values
    return {key: value for key, value in values.items() if key not in after}


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and torch.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True)
