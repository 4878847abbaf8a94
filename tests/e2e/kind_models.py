"""Small networks of the kinds of bench/torch/models.py, one step of each: what they are made of must not run in reference kernels.

tests/fixtures/kinds has their graphs as text, which e2e_kinds runs; made of each by

    python tools/export_model.py tests/e2e/kind_models.py:NAME OUT && aothost opt OUT/train.pt2 -o tests/fixtures/kinds/NAME.ir
"""

import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/torch"))
import models


def decoder():
    blocks = [models.Block(16, 2, models.FeedForward(16))]
    return models.Decoder(24, 12, 16, blocks), models.tokens(2, 12, 24)


def moe():
    return models.Decoder(24, 8, 16, [models.Block(16, 2, models.Experts(16, 4, 8))]), models.tokens(2, 8, 24)


def unet():
    return models.UNet((4, 6, 8), 3), (torch.randn(2, 3, 16, 16), torch.randint(0, 3, (2, 16, 16)))


def lstm():
    return models.LstmModel(20, 8, 2), models.tokens(3, 6, 20)


def dlrm():
    dense, sparse = torch.randn(6, 13), torch.randint(0, 20, (3, 6, 4))
    return models.Dlrm(3, 20, 4), (dense, sparse, (torch.rand(6) < 0.3).float())


def deep_mlp():
    return models.DeepMlp(12, 6), (torch.randn(5, 12), torch.randint(0, 12, (5,)))


def resnet():
    from torchvision.models.resnet import BasicBlock, conv1x1
    from torch import nn

    class Small(nn.Sequential):
        def __init__(self):
            down = nn.Sequential(conv1x1(6, 8, 2), nn.BatchNorm2d(8))
            super().__init__(
                nn.Conv2d(3, 6, 7, 2, 3, bias=False), nn.BatchNorm2d(6), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1),
                BasicBlock(6, 6), BasicBlock(6, 8, 2, down), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))
    return models.Loss(Small()), models.images(2, 24, 5)


def convnext():
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt
    settings = [CNBlockConfig(6, 8, 1), CNBlockConfig(8, None, 1)]
    return models.Loss(ConvNeXt(settings, num_classes=5)), models.images(2, 32, 5)


def mobilenet():
    from functools import partial
    from torchvision.models.mobilenetv3 import InvertedResidualConfig, MobileNetV3
    one = partial(InvertedResidualConfig, width_mult=1.0)
    settings = [one(8, 3, 16, 8, True, "RE", 2, 1), one(8, 5, 16, 8, True, "HS", 1, 1)]
    return models.Loss(MobileNetV3(settings, 12, num_classes=5, dropout=0.0)), models.images(2, 32, 5)


def bert():
    from transformers import BertConfig, BertForMaskedLM
    from torch import nn

    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = BertForMaskedLM(BertConfig(
                vocab_size=30, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
                max_position_embeddings=12, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))

        def forward(self, ids, labels):
            return self.bert(input_ids=ids, labels=labels).loss

    ids = torch.randint(0, 30, (2, 8))
    return Masked(), (ids, torch.where(torch.rand(2, 8) < 0.3, ids, -100))


def vit():
    from transformers import ViTConfig, ViTForImageClassification
    config = ViTConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, image_size=16,
                       patch_size=4, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=5)
    return models.Loss(ViTForImageClassification(config)), models.images(2, 16, 5)
