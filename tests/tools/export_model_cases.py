"""Models for check_export_model.sh: inputs of every kind with symbolic sizes, and what torch.export loses."""

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
