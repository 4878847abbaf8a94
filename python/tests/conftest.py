"""Tests of the package as a user has it: through torch.compile(.., backend="aothost")."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Each test compiles its own graphs, from the same seed."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def compiled(function: Any, *, dynamic: bool | None = None, fullgraph: bool = True, **options: Any) -> Any:
    """torch.compile with our backend; strict unless a test says otherwise."""
    options.setdefault("strict", True)
    return torch.compile(function, backend="aothost", dynamic=dynamic, fullgraph=fullgraph, options=options)
