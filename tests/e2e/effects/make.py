"""Makes the archives of this folder: python make.py (PyTorch 2.11).

tokens.pt2     prints, an assertion on a tensor, one on a size; decomposed, so that prints stand as with_effects, with tokens as
               input and output of the graph
branches.pt2   cond with a print in each branch and in-place operators on what a branch made; branches.safetensors: what PyTorch
               computes
custom.pt2     a custom operator with an effect (example::note), decomposed: known to no operator set here
"""
import torch
from safetensors.torch import save_file
from torch._higher_order_ops.effects import _EffectType, _register_effectful_op


@torch.library.custom_op("example::note", mutates_args=())
def note(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@note.register_fake
def _(x):
    return torch.empty_like(x)


_register_effectful_op(torch.ops.example.note.default, _EffectType.ORDERED)


class Tokens(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.arange(4.0))

    def forward(self, x):
        torch.ops.aten._print(". one")
        y = self.w * x
        torch.ops.aten._assert_async.msg((x == x).all(), "x is x")
        torch._check(x.shape[0] > 1)
        torch.ops.aten._print(". two")
        return torch.tanh(y).sum()


class Branches(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.arange(4.0))

    def forward(self, x):
        def yes(a):
            torch.ops.aten._print(". yes")
            b = a.sin()
            b[0].mul_(2)
            return b + 1

        def no(a):
            torch.ops.aten._print(". no")
            b = a.clone()
            b.neg_()
            return b + 1

        y = torch.cond((x == x).all(), yes, no, (self.w * x,))
        return y.sum()


class Custom(torch.nn.Module):
    def forward(self, x):
        return torch.ops.example.note(x) + 1


def export(name, model, dynamic=None, decompose=True):
    program = torch.export.export(model, (torch.ones(3, 4),), strict=False, dynamic_shapes=dynamic)
    if decompose:
        program = program.run_decompositions({})
    for graph in program.graph_module.modules():
        for node in graph.graph.nodes if hasattr(graph, "graph") else ():
            node.meta.pop("stack_trace", None)
    torch.export.save(program, name)


def record(name, model):
    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    y = model(x)
    y.backward()
    save_file({"input.0": x, "output.0": y.detach(), "tangent.0": torch.ones(()), "grad.w": model.w.grad}, name)


if __name__ == "__main__":
    export("tokens.pt2", Tokens(), dynamic=({0: torch.export.Dim("n", min=2, max=64)},))
    export("branches.pt2", Branches(), decompose=False)
    record("branches.safetensors", Branches())
    export("custom.pt2", Custom())
