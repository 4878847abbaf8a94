#!/usr/bin/env python3
"""What PyTorch computes in float64 for a recorded training step: the judge of `aothost verify --against f64`.

    python tools/float64_records.py FOLDER..

records it for archives that exist: FOLDER holds train.pt2 and expected.safetensors, and gets expected.f64.safetensors.
tools/export_model.py does the same for the module that it exports. docs/RUN.md, section 6, has the keys and the rule.
"""

from __future__ import annotations

import contextlib
import copy
import pathlib
import sys

import torch
import torch.utils._pytree as pytree
from torch.overrides import TorchFunctionMode

from eager_step import run_step

WIDE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}
CASTS = {
    torch.Tensor.float: torch.Tensor.double,
    torch.Tensor.half: torch.Tensor.double,
    torch.Tensor.bfloat16: torch.Tensor.double,
    torch.Tensor.cfloat: torch.Tensor.cdouble,
    torch.Tensor.chalf: torch.Tensor.cdouble,
}
N_NUDGED = 2  # further runs in the model's own precision, each parameter's numbers moved to ones beside them


class Float64Error(Exception):
    """The step cannot be run in float64, or is another step there."""


class Wide(TorchFunctionMode):
    """Every dtype that a model asks for by name is a wide one, and so is what comes from NumPy."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        args, kwargs = pytree.tree_map(lambda x: WIDE.get(x, x) if isinstance(x, torch.dtype) else x, (args, kwargs or {}))
        result = CASTS.get(func, func)(*args, **kwargs)
        return widened(result) if func in (torch.from_numpy, torch.as_tensor, torch.frombuffer) else result


@contextlib.contextmanager
def float64_by_default():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with Wide():
            yield
    finally:
        torch.set_default_dtype(before)


def widened(value):
    if not isinstance(value, torch.Tensor) or value.dtype not in WIDE:
        return value
    return value.detach().to(WIDE[value.dtype]).requires_grad_(value.requires_grad)


def widened_model(model):
    """A copy of the model whose parameters, buffers and other tensors of its modules are wide."""
    model = copy.deepcopy(model)
    model._apply(lambda t: t.to(WIDE.get(t.dtype, t.dtype)))
    for module in model.modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, torch.Tensor):
                setattr(module, name, widened(value))
    return model


def nudge(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Each number moved to one beside it, up or down; zeros stay."""
    if not tensor.is_floating_point() and not tensor.is_complex():
        return tensor
    signs = torch.randint(0, 2, tensor.shape, generator=generator) * 2 - 1
    return (tensor * (1 + signs.to(tensor.dtype) * torch.finfo(tensor.dtype).eps)).to(tensor.dtype)


def nudged_step(model, args: tuple, kwargs: dict, seed: int, tangents: dict, number: int) -> dict:
    generator = torch.Generator().manual_seed(number)
    model = copy.deepcopy(model)
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.copy_(nudge(tensor, generator))
    return run_step(model, *pytree.tree_map(lambda x: nudged_input(x, generator), (args, kwargs)), seed, tangents=tangents,
                    every_name=True)


def nudged_input(value, generator: torch.Generator):
    """Data may be masks and indices, which are exact; what is differentiated is none of these."""
    if not isinstance(value, torch.Tensor) or not value.requires_grad:
        return value
    return nudge(value.detach(), generator).requires_grad_()


def distance(a: torch.Tensor, exact: torch.Tensor) -> float:
    """The Euclidean one, of what is finite in both."""
    off = a.to(exact.dtype) - exact
    return float(torch.linalg.vector_norm(off[off.isfinite()]))


def is_exact(tensor: torch.Tensor) -> bool:
    return not tensor.is_floating_point() and not tensor.is_complex()


def check_choices(values: dict, exact: dict) -> None:
    """Integers and booleans are choices (an index, a mask): where they differ, float64 is another step."""
    for key, value in values.items():
        if key in exact and is_exact(value) and not torch.equal(value, exact[key]):
            raise Float64Error(f"{key}, which is {value.dtype}, is another one in float64")


def float64_records(model, args: tuple, kwargs: dict, seed: int, values: dict, n_nudged: int = N_NUDGED) -> dict:
    """`values` are of run_step, or of the same step under autocast; returns what the file beside theirs holds.

    A complex number is two of float64, in a last dimension: safetensors has no complex128.
    """
    tangents = {int(key.removeprefix("tangent.")): value for key, value in values.items() if key.startswith("tangent.")}
    wide_args, wide_kwargs = pytree.tree_map(widened, (args, kwargs))
    wide_tangents = {k: widened(t) for k, t in tangents.items()}
    try:
        with float64_by_default():
            exact = run_step(widened_model(model), wide_args, wide_kwargs, seed, tangents=wide_tangents, every_name=True)
    except Exception as error:
        raise Float64Error(f"the step does not run in float64: {type(error).__name__}: {error}") from error
    check_choices(values, exact)
    records = {k: exact[k] for k, v in values.items() if k in exact and exact[k].shape == v.shape and exact[k].dtype not in WIDE}
    runs = [values, *(nudged_step(model, args, kwargs, seed, tangents, n) for n in range(n_nudged))]
    runs = [run for run in runs if all(torch.equal(run[k], v) for k, v in records.items() if is_exact(v) and k in run)]
    for key, value in list(records.items()):
        if not is_exact(value) and not key.startswith(("input.", "tangent.")):
            far = max(distance(run[key], value) for run in runs if key in run)
            records[f"distance.{key}"] = torch.tensor(far, dtype=torch.float64)
    return {key: torch.view_as_real(value).clone() if value.is_complex() else value for key, value in records.items()}


def path_beside(expected: pathlib.Path) -> pathlib.Path:
    return expected.with_name(expected.name.removesuffix(".safetensors") + ".f64.safetensors")


# ---- of an archive -------------------------------------------------------------------------


def inputs_of(program, values: dict) -> tuple[tuple, dict]:
    """The example inputs of the archive with the recorded tensors in them."""
    keys = sorted((k for k in values if k.startswith("input.")), key=lambda k: int(k.removeprefix("input.")))
    recorded = iter(keys)

    def fill(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        key = next(recorded)
        return values[key].requires_grad_(f"grad.{key}" in values)

    return pytree.tree_map(fill, program.example_inputs)


def tie_parameters(module) -> None:
    """An archive has a tied parameter under each of its names, as parameters over one memory: they are one again."""
    first = {}
    for name, parameter in list(module.named_parameters()):
        place = (parameter.data_ptr(), parameter.dtype, parameter.shape, parameter.stride())
        holder, _, leaf = name.rpartition(".")
        setattr(module.get_submodule(holder), leaf, first.setdefault(place, parameter))


def record_archive(folder: pathlib.Path) -> None:
    from safetensors.torch import load_file, save_file

    values = load_file(folder / "expected.safetensors")
    program = torch.export.load(folder / "train.pt2")
    args, kwargs = inputs_of(program, values)
    module = program.module(check_guards=False)
    tie_parameters(module)
    records = float64_records(module, args, kwargs, 0, values)
    save_file(records, path_beside(folder / "expected.safetensors"))


def main(folders) -> int:
    failed = 0
    for folder in map(pathlib.Path, folders):
        try:
            record_archive(folder)
        except (Float64Error, OSError, RuntimeError) as error:
            print(f"float64_records: error: {folder}: {error}", file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
