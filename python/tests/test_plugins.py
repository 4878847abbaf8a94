"""The examples for vendors and researchers, built with the installed headers' copies and used from torch.compile."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from torch import nn

from conftest import ROOT, compiled
from judge import judge


def build(source: Path, name: str, folder: Path) -> str:
    """One C file as a plugin, as examples/*/README.md say. Returns its folder."""
    compiler = os.environ.get("CC") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    subprocess.run(
        [compiler, "-std=c11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{ROOT / 'plugin-api'}",
         str(source), "-o", str(folder / f"{name}.so"), "-lm"],
        check=True,
    )  # fmt: skip
    return str(folder)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 3))


def test_partitioner(tmp_path: Path) -> None:
    folder = build(ROOT / "examples/partitioner/save_heavy.c", "example.save-heavy", tmp_path)
    judge(mlp(), [torch.randn(5, 6)], lambda m: compiled(m, plugins=[folder], partition="example.save-heavy"))


@pytest.mark.parametrize("train", [True, False], ids=["train", "infer"])
def test_vendor_backend(tmp_path: Path, train: bool) -> None:
    folder = build(ROOT / "examples/vendor_backend/npu.c", "example.npu", tmp_path)
    judge(mlp(), [torch.randn(5, 6)], lambda m: compiled(m, plugins=[folder], backend="example.npu"), train)


def test_backend_without_its_plugin() -> None:
    with pytest.raises(Exception, match="example.npu"):
        compiled(mlp(), backend="example.npu")(torch.randn(5, 6))
