"""Models with regions whose exports stand in this folder; PyTorch 2.11. Made anew with

    python tools/export_model.py tests/models/region_models.py:checkpointed tests/models/checkpointed --core --strict
    python tools/export_model.py tests/models/region_models.py:repeated_regions tests/models/repeated_regions \\
        --dynamic 0:0=batch:1:9,0:1=length:2:9
"""

from functools import partial

import torch
from torch import nn
from torch.fx.traceback import annotate
from torch.nn import functional as F
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts


@torch.compiler.nested_compile_region
def half_block(x, weight):
    return torch.tanh(x @ weight) + x


@torch.compiler.nested_compile_region
def attention_block(x, weight, scale):
    q = half_block(F.layer_norm(x, x.shape[-1:], scale), weight)
    weights = torch.softmax(q @ q.transpose(-1, -2), -1)
    return x + F.gelu(weights @ q), weights.argmax(-1), weights.sum(-1).square()


class RepeatedRegions(nn.Module):
    """A region called once a layer, with several results, one of integers; a region within it. The first x has no gradient."""

    def __init__(self, width=8, layers=3):
        super().__init__()
        self.weights = nn.ParameterList(nn.Parameter(torch.randn(width, width) / 3) for _ in range(layers))
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        penalty = 0
        for weight in self.weights:
            x, best, squares = attention_block(x, weight, self.scale)
            penalty = penalty + squares.mean()
        return x.square().mean() + penalty, best


def repeated_regions():
    return RepeatedRegions(), (torch.randn(2, 5, 8),)


def recompute_all(ctx, op, *args, **kwargs):
    return CheckpointPolicy.PREFER_RECOMPUTE


class Checkpointed(nn.Module):
    """Activation checkpoints: two regions one after the other, a third by annotations, of which one value is kept."""

    def __init__(self, width=8):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(6))

    def block(self, first, second, x):
        return x + torch.sin(second(F.gelu(first(x))))

    def forward(self, x):
        a, b, c, d, e, f = self.layers
        again = partial(create_selective_checkpoint_contexts, recompute_all)
        x = checkpoint(partial(self.block, a, b), x, use_reentrant=False, context_fn=again)
        x = checkpoint(partial(self.block, c, d), x, use_reentrant=False, context_fn=again)
        with annotate({"recompute": "MUST_RECOMPUTE", "ac_graph_id": 3}):
            x = torch.tanh(e(x)) * torch.cos(x)
        with annotate({"recompute": "MUST_SAVE", "ac_graph_id": 3}):
            x = torch.exp(x)
        return f(x).square().mean()


def checkpointed():
    return Checkpointed(), (torch.randn(5, 8),)
