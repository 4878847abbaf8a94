"""Records what is compiled inside a `with noting()`: for explain.py and ab.py."""

from __future__ import annotations

import contextlib
import contextvars
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Iterator

if TYPE_CHECKING:
    from .fallback import Eager
    from .program import CompiledGraph


@dataclass
class Notes:
    """Graphs in the order in which they are compiled."""

    graphs: list["CompiledGraph"] = field(default_factory=list)
    eager: list["Eager"] = field(default_factory=list)  # of graphs that run partly in eager


_current: contextvars.ContextVar[Notes | None] = contextvars.ContextVar("aothost_notes", default=None)


@contextlib.contextmanager
def noting() -> Iterator[Notes]:
    notes = Notes()
    token = _current.set(notes)
    try:
        yield notes
    finally:
        _current.reset(token)


def current() -> Notes | None:
    """The notes of the innermost `with noting()`; None: there is none."""
    return _current.get()
