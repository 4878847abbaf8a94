"""Models of quantization-aware training, as torch.ao.quantization prepares them.

Made anew with, for each factory NAME below:

    python tools/export_model.py tests/models/quantized_models.py:NAME tests/models/NAME
"""

import torch
import torch.ao.quantization as quantization
import torch.ao.quantization.fx._decomposed  # noqa: F401 (registers quantized_decomposed)
from torch import nn
from torch.nn import functional as F


class Observed(nn.Module):
    """Activations on one grid, weights on one a channel; ranges are observed. Batch norm is folded into the convolution."""

    def __init__(self):
        super().__init__()
        self.quant = quantization.QuantStub()
        self.conv = nn.Conv2d(1, 3, 3)
        self.norm = nn.BatchNorm2d(3)
        self.relu = nn.ReLU()

    def forward(self, images, labels):
        x = self.relu(self.norm(self.conv(self.quant(images))))
        return F.cross_entropy(x.mean((2, 3)), labels)


def observed_quantized():
    torch.manual_seed(0)
    model = quantization.fuse_modules_qat(Observed().train(), [["conv", "norm", "relu"]])
    model.qconfig = quantization.get_default_qat_qconfig("x86")
    model = quantization.prepare_qat(model)
    args = torch.randn(4, 1, 4, 4), torch.tensor([0, 2, 1, 1])
    model(*args)  # the observers of channels have no shape before
    return model, (torch.randn(4, 1, 4, 4) * 2, args[1])


class ByToken(nn.Module):
    """Rows on grids of their own against weights on a grid a channel."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(6, 8)
        self.head = nn.Linear(8, 3)
        self.register_buffer("scales", self.head.weight.detach().abs().amax(1) / 7)
        self.register_buffer("zeros", torch.zeros(3, dtype=torch.int32))

    def forward(self, rows, wanted):
        own = torch.ops.quantized_decomposed
        grids = (own.choose_qparams_per_token, own.choose_qparams_per_token_asymmetric)
        weight = own.fake_quant_per_channel(self.head.weight, self.scales, self.zeros, 0, -6, 6)
        x, loss = torch.relu(self.embed(rows)), 0.0
        for choose in grids:
            scale, zero = choose(x.detach(), torch.int8)
            codes = own.quantize_per_token(x.detach(), scale, zero, -128, 127, torch.int8)
            y = own.dequantize_per_token(codes, scale, zero, -128, 127, torch.int8, torch.float32)
            y = own.convert_element_type.no_fuse(y, torch.float32) + x - x.detach()  # straight through
            loss = loss + F.mse_loss(F.linear(y, weight, self.head.bias), wanted)
        return loss


def quantized_by_token():
    torch.manual_seed(0)
    return ByToken(), (torch.randn(5, 6), torch.randn(5, 3))
