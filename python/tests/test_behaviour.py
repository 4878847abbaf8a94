"""What PyTorch's users rely on around a compiled model: randomness, sizes, breaks, errors."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import aothost
from aothost.options import Options
from conftest import compiled
from judge import judge
from test_models import Function

# ---- randomness ----


def test_dropout_repeats_with_the_seed() -> None:
    call = compiled(lambda x: F.dropout(x, 0.25))
    x = torch.ones(4000)
    torch.manual_seed(7)
    first, second = call(x), call(x)
    torch.manual_seed(7)
    assert torch.equal(call(x), first)
    assert not torch.equal(second, first)
    assert set(first.unique().tolist()) == {0.0, float(torch.tensor(1 / 0.75))}
    assert abs(float((first == 0).float().mean()) - 0.25) < 0.03


def test_backward_has_the_mask_of_its_forward() -> None:
    """Also with another call of the same graph between the two."""
    call = compiled(lambda x: F.dropout(x * 2, 0.5))
    x, other = torch.ones(500, requires_grad=True), torch.ones(500, requires_grad=True)
    y = call(x)
    call(other)
    y.sum().backward()
    assert torch.equal(x.grad, 2 * y.detach() / 2)


@pytest.mark.parametrize("reentrant", [False])
def test_checkpoint_with_dropout(reentrant: bool) -> None:
    """The region that is run again draws what its first run drew: the gradient of a product is the mask's."""
    weight = nn.Parameter(torch.ones(300))

    def region(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x * weight, 0.5).sin()

    def call(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(region, x, use_reentrant=reentrant)

    x = torch.full((300,), 0.3, requires_grad=True)
    y = compiled(call)(x)
    y.sum().backward()
    mask = (y.detach() != 0).float() * 2
    assert 0.3 < float((mask == 0).float().mean()) < 0.7
    expected = mask * torch.cos(mask * 0.3)
    torch.testing.assert_close(x.grad, expected)
    torch.testing.assert_close(weight.grad, expected * 0.3)


# ---- sizes and breaks ----


def test_dynamic_sizes() -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Softmax(-1))
    call = compiled(model, dynamic=True)
    judge(model, [torch.randn(5, 6)], lambda _: call, steps=1)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for rows in (3, 17):
            judge(model, [torch.randn(rows, 6)], lambda _: call, steps=1)


def test_marked_dynamic_size() -> None:
    x = torch.randn(7, 6)
    torch._dynamo.mark_dynamic(x, 0)
    call = compiled(lambda x: (x.cumsum(0), x.mean(0) * x.shape[0]))
    for a, b in zip(call(x), (x.cumsum(0), x.mean(0) * 7)):
        torch.testing.assert_close(a, b)
    y = torch.randn(4, 6)
    torch.testing.assert_close(call(y)[1], y.mean(0) * 4)


class Breaks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(5, 5), nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.a(x).relu()
        torch._dynamo.graph_break()
        return self.b(y) * float(y.detach().sum() > -1)


def test_graph_breaks() -> None:
    judge(Breaks(), [torch.randn(3, 5)], lambda m: compiled(m, fullgraph=False))


def test_no_grad_and_train_share_a_model() -> None:
    model = nn.Linear(4, 2)
    call = compiled(model)
    x = torch.randn(3, 4)
    with torch.no_grad():
        assert not call(x).requires_grad
    assert call(x).requires_grad
    torch.testing.assert_close(call(x), model(x))


def test_parameters_that_are_replaced_are_read() -> None:
    """An optimizer writes in place; load_state_dict(assign=True) and `.data =` bring other memory."""
    model = nn.Linear(4, 2)
    call = compiled(model)
    x = torch.randn(3, 4)
    call(x)
    with torch.no_grad():
        model.weight.add_(1)
    torch.testing.assert_close(call(x), model(x))
    model.weight.data = torch.randn(2, 4)
    torch.testing.assert_close(call(x), model(x))


def test_training_as_eager_does() -> None:
    """Twenty steps of Adam: the losses are eager's."""

    def losses(compile_: Any) -> list[float]:
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
        x, y = torch.randn(32, 6), torch.randn(32, 1)
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        call = compile_(model)
        rows = []
        for _ in range(20):
            optimizer.zero_grad()
            loss = F.mse_loss(call(x), y)
            loss.backward()
            optimizer.step()
            rows.append(loss.item())
        return rows

    ours, theirs = losses(compiled), losses(lambda m: m)
    assert ours == pytest.approx(theirs, rel=1e-4)
    assert ours[-1] < ours[0]


# ---- autograd's rules ----


def test_retain_graph() -> None:
    x = torch.randn(6, requires_grad=True)
    y = compiled(lambda x: (x.exp() * x).sum())(x)
    y.backward(retain_graph=True)
    once = x.grad.clone()
    y.backward()
    torch.testing.assert_close(x.grad, 2 * once)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_parameter_modified_between_forward_and_backward() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    y = compiled(model)(torch.randn(3, 4, requires_grad=True))
    with torch.no_grad():
        model[1].weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_double_backward_raises() -> None:
    """A gradient that were taken for a constant would train something else without a word (a gradient penalty)."""
    x = torch.randn(5, requires_grad=True)
    y = compiled(lambda x: x.sin().sum())(x)
    (gradient,) = torch.autograd.grad(y, x, create_graph=True)
    assert gradient.requires_grad
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        (y + gradient.square().sum()).backward()


def test_forward_without_backward_frees_its_frame() -> None:
    from aothost._aothost import frame_of

    y = compiled(lambda x: x.exp() * x)(torch.randn(50, requires_grad=True))
    number = y.grad_fn.saved_tensors[-1].detach().clone()  # of the frame; the handle itself keeps it
    assert frame_of(number) is not None
    del y
    with pytest.raises(RuntimeError, match="its forward's handle is gone"):
        frame_of(number)


# ---- what aothost lacks ----


@torch.library.custom_op("aothost_tests::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


twice.register_autograd(lambda ctx, gradient: twice(gradient))


def with_custom_operator(x: torch.Tensor) -> torch.Tensor:
    return twice(x.sin() + 1).exp().sum() + twice(x).square().sum()


def test_unknown_operator_runs_in_eager(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "aothost"):
        judge(Function(with_custom_operator), [torch.randn(4, 3)], lambda m: compiled(m, strict=False))
    lines = [r.getMessage() for r in caplog.records]
    assert any("run in eager: aothost_tests.twice.default (2)" in line for line in lines), lines


@pytest.mark.parametrize("train", [True, False], ids=["train", "infer"])
def test_strict_refuses_by_name(train: bool) -> None:
    with pytest.raises(Exception, match="aothost_tests.twice.default"), torch.set_grad_enabled(train):
        compiled(with_custom_operator, strict=True)(torch.randn(4, 3, requires_grad=train))


# ---- options and plugins ----


def test_unknown_option_names_the_nearest() -> None:
    with pytest.raises(Exception, match="no option 'budgett'; did you mean 'budget'"):
        compiled(torch.sin, budgett="1GiB")(torch.ones(2))


@pytest.mark.parametrize("given, message", [({"strict": "yes"}, "True or False"), ({"budget": [1]}, "is a text")])
def test_option_of_a_wrong_kind(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Options.of(given)


def test_unknown_stage_names_the_nearest() -> None:
    with pytest.raises(Exception, match="partition-mincut"):
        compiled(torch.sin, partition="partition-mincutt")(torch.ones(2, requires_grad=True))


def test_plugin_that_fails_to_load(tmp_path: Path) -> None:
    (tmp_path / "broken.so").write_bytes(b"\x7fELF, but nothing of it follows")
    with pytest.raises(Exception, match="broken.so") as caught:
        compiled(torch.sin, plugins=[str(tmp_path)], partition="broken")(torch.ones(2, requires_grad=True))
    assert "broken" in str(caught.value)
    torch._dynamo.reset()
    torch.testing.assert_close(compiled(torch.sin)(torch.ones(2)), torch.ones(2).sin())  # the interpreter goes on


def test_infeasible_budget_says_the_least() -> None:
    model = nn.Sequential(*(nn.Sequential(nn.Linear(32, 32), nn.GELU()) for _ in range(4)))
    with pytest.raises(Exception, match=r"budget") as caught:
        compiled(model, budget="16B")(torch.randn(64, 32, requires_grad=True))
    assert any(word in str(caught.value) for word in ("least", "smallest", "minimum")), str(caught.value)


def test_budget_keeps_the_results() -> None:
    model = nn.Sequential(*(nn.Sequential(nn.Linear(32, 32), nn.GELU()) for _ in range(4)))
    judge(model, [torch.randn(64, 32)], lambda m: compiled(m, budget="0.8"))


def test_error_has_a_status() -> None:
    from aothost import _aothost

    with pytest.raises(aothost.Error) as caught:
        _aothost.Program("aot: 1\nmodel: {import: ir}\nstages: []\n", b"nonsense", "nonsense.ir", [], [], 0)
    assert caught.value.status != 0 and "nonsense.ir" in str(caught.value)


# ---- the compile cache ----

SCRIPT = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
loss = torch.compile(model, backend="aothost", options={"strict": True})(torch.ones(3, 6)).square().sum()
loss.backward()
print(loss.item())
"""


def test_second_process_compiles_nothing(tmp_path: Path) -> None:
    """A compiler that counts its calls, and the entries of aothost's cache: the second process adds to neither."""
    real = shutil.which("cc")
    if real is None:
        pytest.skip("no C compiler")
    counter, cache = tmp_path / "bin/cc", tmp_path / "cache"
    counter.parent.mkdir()
    counter.write_text(f'#!/bin/sh\necho call >> "{tmp_path}/calls"\nexec "{real}" "$@"\n')
    counter.chmod(0o755)
    environment = os.environ | {"PATH": f"{counter.parent}:{os.environ['PATH']}", "AOT_CACHE_DIR": str(cache)}

    def run() -> tuple[str, int, set[str]]:
        command = [sys.executable, "-c", SCRIPT]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        entries = {str(p) for p in cache.rglob("*") if p.is_file()}
        return done.stdout, len((tmp_path / "calls").read_text().splitlines()), entries

    first, second = run(), run()
    assert first[1] > 0 and first[2]
    assert second == first
