#!/usr/bin/env python3
"""A model with operators of its own, which write what they are given.

Export it for aothost (custom_op/ holds the result; custom_op/mylib.c has the same operators as kernels of a plugin):

    python tools/export_model.py examples/custom_op.py:make examples/custom_op
"""

import torch
from torch import nn

library = torch.library.Library("mylib", "DEF")
library.define("add_one_out(Tensor x, Tensor(a!) out) -> ()")
library.define("split_copy(Tensor x, SymInt[] sizes, Tensor(a!)[] outs) -> ()")
library.define("scale(Tensor x, float by=2.0) -> Tensor")
library.define("clip(Tensor x, float most, Tensor(a!)? clipped=None) -> Tensor")


@torch.library.impl(library, "add_one_out", "CompositeExplicitAutograd")
def add_one_out(x, out):
    out.copy_(x + 1)


@torch.library.impl(library, "split_copy", "CompositeExplicitAutograd")
def split_copy(x, sizes, outs):
    for out, piece in zip(outs, x.split(sizes)):
        out.copy_(piece)


@torch.library.impl(library, "scale", "CompositeExplicitAutograd")
def scale(x, by=2.0):
    return x * by


@torch.library.impl(library, "clip", "CompositeExplicitAutograd")
def clip(x, most, clipped=None):
    """min(x, most); where that changed an element, `clipped` counts one up."""
    if clipped is not None:
        clipped.add_(x > most)
    return x.clamp(max=most)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4))
        self.register_buffer("clipped", torch.zeros(5, 4))

    def forward(self, x):
        ops = torch.ops.mylib
        table = torch.zeros(5, 8)
        ops.add_one_out(x, table[:, 2:6])  # through a view, one of a tensor that is read later
        top, bottom = torch.empty(2, 4), torch.empty(3, 4)
        ops.split_copy(table[:, 2:6], [2, 3], [top, bottom])
        y = ops.clip(ops.scale(x, 3.0), 1.5, self.clipped) + ops.clip(x, 0.5)  # writes a buffer; then nothing
        return (y * self.w).sum() + (top.sum(0) * self.w).sum(), table, bottom


def make():
    return Model(), (torch.randn(5, 4),)
