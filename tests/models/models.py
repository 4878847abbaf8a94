"""Small models whose exports stand in this folder, beyond those of the fixtures.

Made anew with, for each factory NAME below:

    python tools/export_model.py tests/models/models.py:NAME tests/models/NAME --core
"""

import torch
from torch import nn
from torch.nn import functional as F


class ConvGroupNorm(nn.Module):
    """Strided, grouped and pointwise convolutions, group norm, silu, a residual, adaptive pooling."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm1 = nn.GroupNorm(2, 8)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False)
        self.norm2 = nn.GroupNorm(4, 8)
        self.pointwise = nn.Conv2d(8, 16, 1)
        self.shortcut = nn.Conv2d(8, 16, 1, bias=False)
        self.head = nn.Linear(16 * 4, 10)

    def forward(self, images, labels):
        x = F.silu(self.norm1(self.stem(images)))
        x = self.pointwise(F.silu(self.norm2(self.depthwise(x)))) + self.shortcut(x)
        x = F.adaptive_avg_pool2d(F.silu(x), 2).flatten(1)
        return F.cross_entropy(self.head(x), labels)


class SwigluAttention(nn.Module):
    """One block with attention written out (matmul, triu, masked_fill, softmax), RMS norm and SwiGLU."""

    def __init__(self, width=24, heads=3, hidden=40, classes=16):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.RMSNorm(width, eps=1e-6)
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, width, bias=False)
        self.v = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.norm2 = nn.RMSNorm(width, eps=1e-6)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)
        self.head = nn.Linear(width, classes, bias=False)

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def attend(self, x):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = torch.matmul(q, k.transpose(-2, -1)) / q.shape[-1] ** 0.5
        future = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), diagonal=1)
        weights = torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1)
        return self.out(torch.matmul(weights, v).transpose(1, 2).reshape(x.shape))

    def forward(self, x, labels):
        x = x + self.attend(self.norm1(x))
        y = self.norm2(x)
        x = x + self.down(F.silu(self.gate(y)) * self.up(y))
        return F.cross_entropy(self.head(x).flatten(0, 1), labels.flatten())


class GatedPooling(nn.Module):
    """Tokens with padding (id 0) and side features, gated, pooled by masked mean and sum, regressed."""

    def __init__(self, words=30, width=12, features=4):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.mix = nn.Linear(width + features, 2 * width)
        self.scale = nn.Parameter(torch.ones(width))
        self.out = nn.Linear(2 * width, 1)

    def forward(self, tokens, features, targets):
        x = torch.cat([self.words(tokens), features], dim=-1)
        value, gate = self.mix(x).chunk(2, dim=-1)
        x = value * torch.sigmoid(gate) * self.scale
        present = (tokens != 0).unsqueeze(-1)
        x = torch.where(present, x, torch.zeros_like(x))
        count = present.sum(dim=1).clamp(min=1)
        pooled = torch.cat([x.sum(dim=1) / count, x.mean(dim=1)], dim=1)
        prediction = self.out(pooled).squeeze(-1).clamp(-2.0, 2.0)
        return F.mse_loss(prediction, targets) + 0.01 * x.abs().mean()


class DynamicMask(nn.Module):
    """A head over the rows that a mask keeps, as masked language models have it; outputs of sizes that the data tell."""

    def __init__(self, words=20, width=8):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.scale = nn.Parameter(torch.randn(width))
        self.head = nn.Linear(width, words)

    def forward(self, tokens, labels):
        x = self.words(tokens) * self.scale
        keep = labels >= 0
        kept = x[keep]
        large = torch.masked_select(x, x > 0.5)
        scaled = x.clone()
        scaled[keep] = kept * kept
        loss = F.cross_entropy(self.head(kept), labels[keep]) + (large * large).sum() + scaled.mean()
        return loss, kept * 2, torch.nonzero(keep), kept.t()


class DynamicRows(nn.Module):
    """Rows repeated, counted and made unique; a number read from a tensor that is a size, and one that is a factor."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 3))

    def forward(self, x, groups, count):
        n = count.item()
        torch._check(n >= 1)
        torch._check(n <= x.shape[0])
        factor = x.mean().item()
        y = x @ self.weight
        repeated = torch.repeat_interleave(y, groups, dim=0)
        values, inverse, counts = torch.unique(groups, return_inverse=True, return_counts=True)
        slices = torch.unique(x > 0, dim=0)
        first = y[:n] * (factor * 2.0 + n / 2)
        loss = (repeated * repeated).sum() + first.sum() + torch.softmax(first, -1)[:, 0].sum()
        return loss, values, inverse, counts, slices, torch.bincount(groups), torch.argwhere(x[:, 0] > 0), torch.zeros(2 * n + 1)


class DynamicRanges(nn.Module):
    """Tensors out of nothing whose sizes are a number that was read, or as many as rows were chosen, none of them perhaps."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3))
        self.places = nn.Parameter(torch.randn(9))

    def forward(self, x, keys, count):
        n = count.item()
        torch._check(n >= 1)
        torch._check(n <= 8)
        y = x @ self.weight
        numbers = torch.arange(n)
        ranges = torch.arange(2 * n, 0, -3, dtype=torch.float32).sum() + torch.arange(-n, n + 1).sum() + torch.arange(1, n + 2, 2).sum()
        grid = torch.eye(n, n + 1) + torch.full((n, n + 1), x.amax().item()).triu(1) + torch.full((n, 1), n) + torch.ones(n, 1)
        rows = y.new_zeros(n, 3).index_add(0, numbers, y.new_full((n, 3), 0.5)) + self.places[numbers][:, None]
        chosen = torch.nonzero(keys > 2).squeeze(1)
        taken = y[chosen] * torch.arange(chosen.numel())[:, None]
        loss = (rows * rows).sum() * y.mean() + taken.sum() + (grid.sum() + ranges) * y.sum()
        return loss, numbers, grid, torch.linspace(0, 1, 5) * n, torch.zeros_like(rows), torch.full((2,), n / 2)


class LastStates(nn.Module):
    """An LSTM of two layers and directions; what counts are its last states, of which PyTorch 2.11 records one dimension too much."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(5, 3)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        return self.head(h[-1]).sin().sum() + (h[-2] * c[-2]).sum() + y.mean(), h


class UniquePlaces(nn.Module):
    """Numbers with a point made unique: PyTorch records the places and counts with their dtype, and gives integers."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 3)

    def forward(self, x):
        values, inverse, counts = torch.unique(x[:, 0].round(), return_inverse=True, return_counts=True)
        runs, run_of = torch.unique_consecutive(x[:, 1].round(), return_inverse=True)
        return self.head(x).square().mean() + values.sum() * runs.sum(), inverse, counts, run_of


def conv_group_norm():
    return ConvGroupNorm(), (torch.randn(3, 3, 16, 16), torch.randint(0, 10, (3,)))


def swiglu_attention():
    return SwigluAttention(), (torch.randn(2, 7, 24), torch.randint(0, 16, (2, 7)))


def gated_pooling():
    tokens = torch.randint(1, 30, (4, 9)) * (torch.arange(9) < torch.tensor([[9], [5], [1], [0]]))
    return GatedPooling(), (tokens, torch.randn(4, 9, 4), torch.tensor([0.5, -3.0, 1.0, 0.0]))


def dynamic_mask():
    labels = torch.randint(0, 20, (3, 7)) * (torch.arange(21).reshape(3, 7) % 3 > 0) - 1
    return DynamicMask(), (torch.randint(0, 20, (3, 7)), labels)


class PooledTokens(nn.Module):
    """Tokens that are averaged as an image: the gradient that comes back is declared channels last and may lie otherwise, and
    the linear layer's bias sums it up where the norm's derivative goes along rows."""

    def __init__(self):
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x):
        x = x + self.linear(self.norm(x))
        return F.adaptive_avg_pool2d(x.transpose(1, 2).reshape(-1, 8, 2, 2), 1).flatten(1)


class CountedRoots(nn.Module):
    """Floats of integers alone, which are float32 whatever the model's are: roots and quotients of counts."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 4)

    def forward(self, x, counts):
        return ((self.linear(x) / counts.sqrt()[:, None]).tanh() * (counts / 3)[:, None]).sum(1)


class ResizedRows(nn.Module):
    """Rows of any length resized to the length of others, and by a factor."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Conv1d(3, 3, 1)

    def forward(self, x, like):
        x = self.mix(x)
        y = F.interpolate(x, size=like.shape[2:], mode="linear") * like
        z = F.interpolate(x, scale_factor=1.5, mode="linear").square()
        return y.sum(-1) + z.mean(-1) + F.interpolate(x, scale_factor=2.0).mean(-1)


def dynamic_rows():
    return DynamicRows(), (torch.randn(4, 5), torch.tensor([2, 0, 3, 2]), torch.tensor(3))


def dynamic_ranges():
    return DynamicRanges(), (torch.randn(8, 4), torch.tensor([3, 1, 4, 1, 5, 2, 0, 2]), torch.tensor(4))


def last_states():
    return LastStates(), (torch.randn(3, 4, 6),)


def unique_places():
    return UniquePlaces(), (torch.tensor([[1.0, 2.0, 3.0], [0.0, 2.0, 1.0], [1.0, 5.0, 6.0], [7.0, 2.0, 2.0]]),)


def pooled_tokens():
    return PooledTokens(), (torch.randn(2, 4, 8).requires_grad_(),)


def counted_roots():
    return CountedRoots(), (torch.randn(3, 5), torch.tensor([2, 5, 3]))


def resized_rows(length=6, like=9):
    """--dynamic 0:2=length:2:40,1:2=like:2:40; expected.1 is of lengths 13 and 4, which resized_rows_shorter makes."""
    return ResizedRows(), (torch.randn(2, 3, length).requires_grad_(), torch.randn(2, 3, like).requires_grad_())


def resized_rows_shorter():
    return resized_rows(13, 4)
