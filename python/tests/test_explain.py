"""aothost.explain and aothost.ab: what they say of a model, against what is known of it."""

import torch
from torch import nn

import aothost


@torch.library.custom_op("aothost_explain::scale", mutates_args=())
def scale(x: torch.Tensor) -> torch.Tensor:
    return x * 3


@scale.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


class Broken(nn.Module):
    """Two graphs: a print between them; an operator that aothost does not have in the second."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x).tanh()
        torch._dynamo.graph_break()
        return self.second(x + scale(x.detach()))


def test_explain_lists_graphs_breaks_and_eager_operators():
    model = Broken()
    model.first.weight.grad = torch.ones(8, 8)
    found = aothost.explain(model, torch.randn(4, 8))
    assert sum(found.breaks.values()) == 1
    assert found.eager["aothost_explain.scale.default"] == 1
    joint = [g for g in found.graphs if g.saved_bytes is not None]
    assert joint and joint[0].parameters == 2 and joint[0].inputs == 1
    assert joint[0].saved_bytes >= 4 * 8 * 4  # tanh's result at least
    assert "in eager: aothost_explain.scale.default (1 nodes)" in str(found)
    assert torch.equal(model.first.weight.grad, torch.ones(8, 8)) and model.second.weight.grad is None


def test_ab_compares_partitions():
    model = nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(32, 32), nn.GELU())])
    found = aothost.ab(model, torch.randn(64, 32), partition=["partition-mincut", "partition-default"], steps=3)
    cut, everything = found.arms
    assert cut.options == {"partition": "partition-mincut"} and len(cut.seconds) == 3
    assert cut.saved_bytes < everything.saved_bytes  # gelu's input alone is kept
    assert everything.difference < 1e-5
    assert len(str(found).splitlines()) == 3
    assert all(p.grad is None for p in model.parameters())
