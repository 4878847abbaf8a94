"""A model with dropout, also inside attention, exported with its backward (torch 2.11): native_dropout and its masks are in the graph.

    python make.py       # joint.pt2
"""

import torch
from torch import nn
from torch.export.experimental import _export_forward_backward
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 3)
        self.drop = nn.Dropout(0.25)

    def forward(self, x, labels):
        h = self.drop(torch.relu(self.first(x)))
        q = h[None]
        y = F.scaled_dot_product_attention(q, q, q, dropout_p=0.1)[0]
        return (F.cross_entropy(self.second(self.drop(h + y)), labels),)


torch.manual_seed(0)
exported = torch.export.export(Model().train(), (torch.randn(5, 6), torch.randint(0, 3, (5,))), strict=False)
joint = _export_forward_backward(exported)
for node in joint.graph.nodes:
    node.meta.pop("stack_trace", None)  # it names files of this machine
torch.export.save(joint, "joint.pt2")
