"""Small models that use torchvision's operators. Made anew with, for each factory NAME below:

    python tools/export_model.py plugins/torchvision-ops/tests/vision_models.py:NAME plugins/torchvision-ops/tests/models/NAME
"""

import torch
import torchvision
from torch import nn
from torchvision import ops


def regions(count: int, images: int, size: float) -> torch.Tensor:
    """Boxes inside, across and outside the border, empty and inverted ones among them."""
    corners = torch.rand(count, 2) * size * 1.2 - 0.1 * size
    boxes = torch.cat([torch.randint(0, images, (count, 1)).float(), corners, corners + torch.rand(count, 2) * size * 0.7], 1)
    boxes[0, 3:] = boxes[0, 1:3]
    boxes[1, 1:3], boxes[1, 3:] = boxes[1, 3:].clone(), boxes[1, 1:3].clone()
    return boxes


class Align(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x, boxes):
        x = self.conv(x)
        a = ops.roi_align(x, boxes, (3, 2), spatial_scale=0.5, sampling_ratio=2, aligned=True)
        b = ops.roi_align(x, boxes, 2, spatial_scale=0.5, sampling_ratio=-1, aligned=False)
        return a.square().mean() + b.sin().mean(), a, b


class Pool(Align):
    def forward(self, x, boxes):
        a = ops.roi_pool(self.conv(x), boxes, (2, 3), spatial_scale=0.5)
        return a.square().mean(), a


class PositionSensitive(Align):
    def forward(self, x, boxes):
        x = self.conv(x)
        a = ops.ps_roi_align(x, boxes, 2, spatial_scale=0.5, sampling_ratio=2)
        b = ops.ps_roi_pool(x, boxes.clamp(max=12), (2, 1), spatial_scale=0.5)  # beyond that see README, "Where torchvision errs"
        c = ops.ps_roi_align(x, boxes[2:], (1, 2), spatial_scale=0.5)
        return a.square().mean() + b.square().mean() + c.square().mean(), a, b, c


class Deform(nn.Module):
    """Modulated with two groups and two offset groups, then plain with stride and dilation."""

    def __init__(self):
        super().__init__()
        self.offset = nn.Conv2d(4, 2 * 2 * 9, 3, padding=1)
        self.mask = nn.Conv2d(4, 2 * 9, 3, padding=1)
        self.first = ops.DeformConv2d(4, 6, 3, padding=1, groups=2)
        self.second = ops.DeformConv2d(6, 2, (2, 3), stride=(2, 1), padding=(1, 2), dilation=2, bias=False)
        self.move = nn.Parameter(torch.randn(2, 2 * 2 * 3, 3, 5))

    def forward(self, x):
        y = self.first(x, self.offset(x), torch.sigmoid(self.mask(x)))
        z = self.second(y, self.move)
        return z.square().mean(), z


class Suppress(nn.Module):
    """Scores of boxes, the best of those that overlap: a size that only the run tells."""

    def __init__(self):
        super().__init__()
        self.score = nn.Linear(4, 1)

    def forward(self, boxes):
        scores = self.score(boxes).squeeze(1)
        kept = ops.nms(boxes, scores, 0.3)
        return (boxes[kept] * torch.sigmoid(scores[kept]).unsqueeze(1)).sum(), kept


def align():
    return Align(), (torch.randn(2, 3, 9, 10), regions(6, 2, 20.0))


def pool():
    return Pool(), (torch.randn(2, 3, 9, 10), regions(6, 2, 20.0))


def position_sensitive():
    return PositionSensitive(), (torch.randn(2, 3, 9, 10), regions(6, 2, 20.0))


def deform():
    return Deform(), (torch.randn(2, 4, 6, 5, requires_grad=True),)


def suppress():
    boxes = torch.rand(12, 4)
    boxes[:, 2:] += boxes[:, :2]
    return Suppress(), (boxes,)
