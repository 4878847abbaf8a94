"""A model with operators of its own, whose schemas its archive brings. Kernels: examples/custom_op/mylib.c. Made anew with

    python tools/export_model.py tests/models/own_operator.py:own_operator tests/models/own_operator
"""

import torch
from torch import nn

library = torch.library.Library("mylib", "DEF")
library.define("scale(Tensor x, float by=2.0) -> Tensor")
library.define("add_one_out(Tensor x, Tensor(a!) out) -> ()")
library.impl("scale", lambda x, by=2.0: x * by, "CompositeExplicitAutograd")
library.impl("add_one_out", lambda x, out: (out.copy_(x + 1), None)[1], "CPU")
library.impl("add_one_out", lambda x, out: None, "Meta")


class OwnOperator(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        one = torch.empty(4)
        torch.ops.mylib.add_one_out(torch.ops.mylib.scale(x[0], 3.0), one)
        return (self.fc(x) * one).square().mean()


def own_operator():
    return OwnOperator(), (torch.randn(3, 4),)
