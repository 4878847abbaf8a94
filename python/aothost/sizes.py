"""Sizes of a graph's values at run time: from the inputs of a call to sizes, strides and ints of its outputs.

A graph without symbols has constants. Of others a function is compiled once: each symbol is read from the first input
that has it, and each size is its expression in Python.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

import torch
from torch.utils._sympy.printers import PythonPrinter

Layout = tuple[tuple[int, ...], tuple[int, ...], torch.dtype, torch.device]


class Sizes:
    """The layouts of some values: `of(inputs)` has one for each, an int for an int, None for None."""

    def __init__(self, inputs: Sequence[Any], values: Sequence[Any]):
        self._constant: list[Any] | None = (
            [layout(v, int) for v in values] if not any(map(is_symbolic, values)) else None
        )
        self._function = None if self._constant is not None else compile_function(inputs, values)

    def of(self, inputs: Sequence[Any]) -> list[Any]:
        return self._constant if self._constant is not None else self._function(inputs)  # type: ignore[misc]


def is_symbolic(value: Any) -> bool:
    if isinstance(value, torch.SymInt):
        return True
    if not isinstance(value, torch.Tensor):
        return False
    return any(isinstance(s, torch.SymInt) for s in (*value.shape, *value.stride()))


def layout(value: Any, number: Callable[[Any], Any]) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return tuple(map(number, value.shape)), tuple(map(number, value.stride())), value.dtype, value.device


def compile_function(inputs: Sequence[Any], values: Sequence[Any]) -> Callable[[Sequence[Any]], list[Any]]:
    printer = PythonPrinter()
    source: dict[str, str] = {}

    def symbols_of(size: Any, place: str) -> None:
        if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
            source.setdefault(size.node.expr.name, place)

    for i, value in enumerate(inputs):
        if isinstance(value, torch.Tensor):
            for d, size in enumerate(value.shape):
                symbols_of(size, f"inputs[{i}].shape[{d}]")
        else:
            symbols_of(value, f"inputs[{i}]")
    for i, value in enumerate(inputs):
        if isinstance(value, torch.Tensor):
            for d, stride in enumerate(value.stride()):
                symbols_of(stride, f"inputs[{i}].stride({d})")

    constants: dict[str, Any] = {"torch": torch}
    used: set[str] = set()

    def text(size: Any) -> str:
        if not isinstance(size, torch.SymInt):
            return str(int(size))
        used.update(s.name for s in size.node.expr.free_symbols)
        return printer.doprint(size.node.expr)

    rows = []
    for i, value in enumerate(values):
        if isinstance(value, torch.Tensor):
            shape, stride = ("".join(text(s) + ", " for s in part) for part in (value.shape, value.stride()))
            constants[f"d{i}"], constants[f"v{i}"] = value.dtype, value.device
            rows.append(f"(({shape}), ({stride}), d{i}, v{i})")
        elif isinstance(value, torch.SymInt):
            rows.append(text(value))
        else:
            constants[f"k{i}"] = value
            rows.append(f"k{i}")
    missing = used - source.keys()
    if missing:
        from .graph_text import Unsupported

        raise Unsupported(f"the size {sorted(missing)[0]}, which no input has")
    lines = (
        ["def sizes(inputs):"]
        + [f"  {name} = {source[name]}" for name in sorted(used)]
        + [f"  return [{', '.join(rows)}]"]
    )
    import math

    constants["math"] = math
    exec("\n".join(lines), constants)  # the names are those of symbols, the expressions SymPy's
    return constants["sizes"]


def allocate(layouts: Sequence[Any]) -> list[Any]:
    """Tensors of the layouts; what is no layout stays what it is."""
    empty = torch.empty_strided
    return [empty(v[0], v[1], dtype=v[2], device=v[3]) if type(v) is tuple else v for v in layouts]
