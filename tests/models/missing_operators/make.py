"""Makes model.pt2 beside this file: a model that uses operators which no opset has, for check_missing_operators.sh. Needs
torch and nothing else:  python tests/models/missing_operators/make.py"""

import pathlib

import torch
from torch import nn


@torch.library.custom_op("mylib::squash", mutates_args=())
def squash(x: torch.Tensor, strength: float) -> torch.Tensor:
    return torch.tanh(x * strength)


@squash.register_fake
def _(x, strength):
    return torch.empty_like(x)


class Eigenvalues(nn.Module):
    def forward(self, x):
        return torch.linalg.eigvals(x).abs()


class MissingOperators(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(8))
        self.first = Eigenvalues()
        self.second = Eigenvalues()

    def forward(self, x):
        x = squash(x @ self.weight, 0.5)
        a = self.first(x)
        b = self.second(torch.relu(x))
        return squash(a + b, 2.0).sum()


if __name__ == "__main__":
    path = pathlib.Path(__file__).resolve().with_name("model.pt2")
    program = torch.export.export(MissingOperators(), (torch.randn(8, 8),), strict=False).run_decompositions()
    for node in program.graph.nodes:  # source files by name alone
        if node.meta.get("stack_trace"):
            node.meta["stack_trace"] = node.meta["stack_trace"].replace(f"{path.parent}/", "")
    torch.export.save(program, path)
