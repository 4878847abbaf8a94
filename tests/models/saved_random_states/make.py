"""What a partitioner of PyTorch leaves for a random operator that runs again: run_and_save_rng_state, run_with_rng_state, and
graphsafe_run_with_rng_state, put by hand into an exported graph (torch 2.11), as torch.export writes them.

    python make.py       # model.pt2, expected.safetensors

output.0 is the first draw minus the draw from its saved state: 0. output.1 is the first draw minus one of the next: not 0, and not
in the expectations.
"""

import operator

import torch
from safetensors.torch import save_file
from torch._prims import rng_prims


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(64))

    def forward(self, x):
        y = x * self.w
        first = torch.rand_like(y, dtype=torch.float32)
        return first - y, first + y


x = torch.zeros(64)
exported = torch.export.export(Model(), (x,))
graph = exported.graph
draw = next(n for n in graph.nodes if n.target is torch.ops.aten.rand_like.default)
value = draw.meta["val"]
with value.fake_mode:
    state_value = torch.empty(5056, dtype=torch.uint8)


def add(target, args, meta, kwargs=None):
    node = graph.call_function(target, args, kwargs or {})
    node.meta["val"] = meta
    return node


with graph.inserting_before(draw):
    save = add(rng_prims.run_and_save_rng_state, (draw.target, *draw.args), (state_value, value), draw.kwargs)
    state = add(operator.getitem, (save, 0), state_value)
    first = add(operator.getitem, (save, 1), value)
    other = add(rng_prims.graphsafe_run_with_rng_state, (draw.target, *draw.args), value, {"rng_state": None, **draw.kwargs})
    again = add(rng_prims.run_with_rng_state, (state, draw.target, *draw.args), value, draw.kwargs)
for node in list(graph.nodes):
    if node.target is torch.ops.aten.sub.Tensor:
        node.args = (first, again)
    if node.target is torch.ops.aten.add.Tensor:
        node.target, node.args = torch.ops.aten.sub.Tensor, (first, other)
graph.erase_node(draw)
graph.eliminate_dead_code()
for node in graph.nodes:
    node.meta.pop("stack_trace", None)  # it names files of this machine
graph.lint()
exported.graph_module.recompile()
torch.export.save(exported, "model.pt2")
save_file({"input.0": x, "output.0": torch.zeros(64)}, "expected.safetensors")
