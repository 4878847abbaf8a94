"""Models for check_export_model.sh: inputs and outputs of every kind, symbolic sizes, modes, and what torch.export loses."""

import collections
import dataclasses

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))
        self.register_buffer("mean", torch.zeros(4))


class Halves(Linear):
    def forward(self, x):
        a, b = x.reshape(2, -1, 4).unbind(0)
        return ((a @ self.weight) * b).sum()


class Batch(Linear):
    def forward(self, batch):
        return (batch["x"] @ self.weight * batch["more"][0]).sum() + batch["more"][1].float().sum()


class Named(Linear):
    def forward(self, x, *, mask, scale=1.0):
        return ((x @ self.weight) * mask * scale).sum()


class Any(Linear):
    def forward(self, *args):
        return (args[0] @ self.weight * args[1]).sum()


class FirstAndAny(Linear):
    def forward(self, x, *args, bias):
        return (x @ self.weight * args[0] + args[1] * bias).sum()


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x)

    @staticmethod
    def backward(ctx, g):
        return g


class Rounded(Linear):
    def forward(self, x):
        return (Round.apply(x * self.weight) * x).sum()


class Reassigned(Linear):
    def forward(self, x):
        h = x @ self.weight
        self.mean = self.mean * 0.9 + h.detach().mean(0) * 0.1
        return (h - self.mean).pow(2).sum()


class Hidden(Linear):
    def forward(self, x):
        h = x @ self.weight
        self.mean.data = self.mean * 0.9 + h.detach().mean(0) * 0.1
        return (h - self.mean).pow(2).sum()


class Checkpointed(Linear):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        return checkpoint(lambda y: self.norm(y @ self.weight).pow(3).sum(), x, use_reentrant=False)


class Kept(Linear):
    def forward(self, x):
        h = x @ self.weight
        self.mean.mul_(0.9).add_(h.detach().mean(0), alpha=0.1)
        return (h - self.mean).pow(2).sum()


class Regularised(Linear):
    def __init__(self):
        super().__init__()
        self.norm, self.drop = nn.BatchNorm1d(4), nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.norm(x @ self.weight)).pow(2).sum()


class Sparse(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.Embedding(8, 4, sparse=True)

    def forward(self, at):
        return self.rows(at).pow(2).sum()


class Reentrant(Linear):
    def forward(self, x):
        return checkpoint(lambda y: (y @ self.weight).tanh(), x, use_reentrant=True).sum()


class Constants(Linear):
    def __init__(self):
        super().__init__()
        self.register_buffer("nothing", None)

    def forward(self, nothing, x, factor, pair, *, mask, name="a"):
        y, power = pair
        x.add_(1)
        return 7, ((x @ self.weight) * y * mask["m"] * factor).pow(power).sum(), None, x.argmax(), name


@dataclasses.dataclass
class Scores:
    loss: torch.Tensor
    scores: torch.Tensor
    count: int = 3


Pair = collections.namedtuple("Pair", "loss rest")


class Dataclasses(Linear):
    def forward(self, batch):
        y = batch.scores @ self.weight * batch.count
        return Scores(y.sum(), y)


class Named2(Linear):
    def forward(self, x):
        return Pair((x @ self.weight).sum(), None)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows, self.head = nn.Embedding(6, 4), nn.Linear(4, 6, bias=False)
        self.head.weight = self.rows.weight

    def forward(self, at):
        return self.head(self.rows(at)).logsumexp(-1).sum()


class Single(Linear):
    """Casts and dtypes by name: in float64 they are float64."""

    def forward(self, x):
        h = (x @ self.weight).float() * torch.arange(4, dtype=torch.float32)
        return torch.softmax(h, -1, dtype=torch.float32).to(x.dtype).pow(2).sum()


class Chosen(Linear):
    """Which number is the largest is another question in float64."""

    def forward(self, x):
        tie = torch.tensor([1.0, 1 + 1e-12], dtype=torch.float32) * 1.0
        return (x @ self.weight).sum(), (torch.full((2,), 1e-9).cumsum(0) + 1).argmax() + (tie + self.weight[0, :2] * 0).argmax()


def x(rows=6):
    return torch.randn(rows, 4)


def halves():
    return Halves(), (x(),)


def batch():
    return Batch(), ({"x": x(), "more": [x(), torch.ones(3, dtype=torch.int64)]},)


def named():
    return Named(), (x(),), {"mask": x(), "scale": 0.5}


def any_number():
    return Any(), (x(), x())


def first_and_any():
    return FirstAndAny(), (x(), x(), x()), {"bias": x()}


def rounded():
    return Rounded(), (x(4),)


def reassigned():
    return Reassigned(), (x(),)


def hidden():
    return Hidden(), (x(),)


def checkpointed():
    return Checkpointed(), (x(),)


def kept():
    return Kept(), (x(),)


def regularised():
    return Regularised(), (x(),)


def evaluated():
    return Regularised().eval(), (x(),)


def sparse():
    return Sparse(), (torch.tensor([1, 2, 1]),)


def reentrant():
    return Reentrant(), (x().requires_grad_(),)


def constants():
    return Constants(), (None, x(), 0.5, (x().requires_grad_(), 2)), {"mask": {"m": x()}, "name": "b"}


def dataclass():
    return Dataclasses(), (Scores(x(), x(), 2),)


def named_tuple():
    return Named2(), (x(),)


def tied():
    return Tied(), (torch.tensor([1, 2]),)


def single():
    return Single(), (x(),)


def chosen():
    return Chosen(), (x(),)
