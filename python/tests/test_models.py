"""Small models in training and inference: results, gradients, buffers and inputs against eager in float64."""

from __future__ import annotations

from typing import Any, Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from conftest import compiled
from judge import judge


class Function(nn.Module):
    """A function of tensors as a model without parameters."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


class Block(nn.Module):
    """A transformer block with causal attention."""

    def __init__(self, width: int = 16, heads: int = 2):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, c = x.shape
        q, k, v = self.qkv(self.first(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.second(x))


class Tied(nn.Module):
    """An embedding that is the last layer, too."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(11, 8)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits = self.head(self.tokens(tokens).tanh())
        return F.cross_entropy(logits.flatten(0, 1), tokens.flatten())


class Frozen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 3)
        self.a.weight.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(self.a(x).relu())


class Square(torch.autograd.Function):
    """Its gradient is not that of its forward, so that a compiler that derives its own is seen."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return gradient * x * 7


def several(x: torch.Tensor, y: torch.Tensor) -> Any:
    total = x + y
    return {"sum": total, "pair": (total.sin(), y.argmax(-1)), "view": total.t(), "input": x.view(-1)}


def mutated(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    table.add_(x.detach() * 2)
    table[0] = 1.0
    return (x * table).sum(-1)


def convnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, groups=2),
        nn.GroupNorm(2, 8), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4),
    )  # fmt: skip


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], list[Any]]]] = {
    "mlp": (lambda: nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)), lambda: [torch.randn(5, 8)]),
    "batch_norm": (convnet, lambda: [torch.randn(4, 3, 12, 12)]),
    "block": (Block, lambda: [torch.randn(2, 6, 16)]),
    "tied": (Tied, lambda: [torch.randint(0, 11, (3, 5))]),
    "frozen": (Frozen, lambda: [torch.randn(4, 6)]),
    "lstm_cell": (lambda: nn.LSTMCell(5, 7), lambda: [torch.randn(3, 5)]),
    "autograd_function": (lambda: Function(lambda x: Square.apply(x)), lambda: [torch.randn(4, 3)]),
    "several_outputs": (lambda: Function(several), lambda: [torch.randn(4, 3), torch.randn(4, 3)]),
    "complex": (
        lambda: Function(lambda x, y: (torch.complex(x, y) * 2).exp().abs()),
        lambda: [torch.randn(6), torch.randn(6)],
    ),
    "complex_output": (
        lambda: Function(lambda z: z * z.conj() + z.sin()),
        lambda: [torch.randn(5, dtype=torch.complex64)],
    ),
    "integers": (
        lambda: Function(lambda x, n: (x.topk(2).indices, n // 3, (n > 2) & (n < 9), x.gather(1, n))),
        lambda: [torch.randn(3, 6), torch.tensor([[0, 5], [2, 4], [3, 1]])],
    ),
    "views": (
        lambda: Function(lambda x: (x[:, ::2].t().contiguous(), x.as_strided((2, 2), (1, 3)) * 2, x.unbind(0)[1] + 1)),
        lambda: [torch.randn(4, 6)],
    ),
    "empty": (lambda: nn.Linear(4, 3), lambda: [torch.randn(0, 4)]),
    "number": (lambda: Function(lambda x, k: x * k + k), lambda: [torch.randn(3), 3]),
    "channels_last": (convnet, lambda: [torch.randn(2, 3, 12, 12).to(memory_format=torch.channels_last)]),
    "transposed_input": (lambda: nn.Linear(4, 3), lambda: [torch.randn(4, 5).t()]),
    "expanded_input": (lambda: nn.Linear(4, 3), lambda: [torch.randn(1, 4).expand(5, 4)]),
}


@pytest.mark.parametrize("train", [True, False], ids=["train", "infer"])
@pytest.mark.parametrize("name", MODELS)
def test_model(name: str, train: bool) -> None:
    make, inputs = MODELS[name]
    judge(make(), inputs(), compiled, train)


def test_mutated_input() -> None:
    judge(Function(mutated), [torch.randn(4, 3), torch.randn(4, 3)], compiled, train=False)
    x, table = torch.randn(4, 3, requires_grad=True), torch.ones(4, 3)
    y, other = x.detach().clone().requires_grad_(), table.clone()
    compiled(mutated)(x, table).sum().backward()
    mutated(y, other).sum().backward()
    torch.testing.assert_close(table, other)
    torch.testing.assert_close(x.grad, y.grad)


@pytest.mark.parametrize("train", [True, False], ids=["train", "infer"])
def test_autocast(train: bool) -> None:
    """bfloat16 where autocast has it: dtypes are eager's, values within a few units of bfloat16."""
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)).train(train)
    x = torch.randn(5, 8)

    def run(call: Any) -> list[torch.Tensor]:
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16), torch.set_grad_enabled(train):
            y = call(x)
        if train:
            y.float().square().mean().backward()
        return [y.detach(), *(p.grad.clone() for p in model.parameters() if train)]

    theirs, ours = run(model), run(compiled(model))
    for a, b in zip(ours, theirs):
        assert a.dtype == b.dtype
        torch.testing.assert_close(a.float(), b.float(), rtol=0.03, atol=0.03 * float(b.float().abs().max()))
