"""The models of bench/torch: each function gives (module, inputs of one training step), for tools/export_model.py.

Weights are random, dropout is off (so that losses can be compared), and every module returns its loss. Sizes are such that a step
takes 20 ms to 0.5 s on one core. They come from torchvision and transformers, or stand here where neither has them.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


class Loss(nn.Module):
    """A classifier and its cross entropy."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, x, labels):
        y = self.model(x)
        return F.cross_entropy(y if isinstance(y, torch.Tensor) else y.logits, labels)


def images(batch: int, size: int, classes: int):
    return torch.randn(batch, 3, size, size), torch.randint(0, classes, (batch,))


def tokens(batch: int, length: int, vocabulary: int):
    text = torch.randint(0, vocabulary, (batch, length + 1))
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()


# ---- transformers ------------------------------------------------------------------------------------------------------------


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(width, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class FeedForward(nn.Sequential):
    def __init__(self, width: int):
        super().__init__(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))


class Experts(nn.Module):
    """Every token goes to its two best of n experts, each of which has room for capacity tokens (GShard)."""

    def __init__(self, width: int, experts: int, capacity: int):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, 4 * width) * width**-0.5)
        self.down = nn.Parameter(torch.randn(experts, 4 * width, width) * (4 * width) ** -0.5)
        self.experts, self.capacity = experts, capacity

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        weight, chosen = F.softmax(self.gate(flat), dim=-1).topk(2, dim=-1)
        to = F.one_hot(chosen, self.experts).float()  # token, choice, expert
        place = (to.flatten(0, 1).cumsum(0) - 1).view_as(to)
        room = to * (place < self.capacity)
        slot = F.one_hot((place * room).sum(-1).long().clamp(0, self.capacity - 1), self.capacity).float()
        combine = torch.einsum("tk,tke,tkc->tec", weight, room, slot)
        dispatch = (combine > 0).to(x.dtype)
        h = F.gelu(torch.bmm(torch.einsum("tec,td->ecd", dispatch, flat), self.up))
        return torch.einsum("tec,ecd->td", combine, torch.bmm(h, self.down)).view_as(x)


class Block(nn.Module):
    def __init__(self, width: int, heads: int, feed_forward: nn.Module):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.feed_forward = Attention(width, heads), feed_forward

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class Decoder(nn.Module):
    """A language model: embeddings, blocks, logits, cross entropy."""

    def __init__(self, vocabulary: int, length: int, width: int, blocks: list[nn.Module]):
        super().__init__()
        self.token, self.place = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks, self.norm = nn.Sequential(*blocks), nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.register_buffer("places", torch.arange(length))

    def forward(self, x, labels):
        y = self.head(self.norm(self.blocks(self.token(x) + self.place(self.places))))
        return F.cross_entropy(y.flatten(0, 1), labels.flatten())


def gpt_bytes():
    """examples/gpt_bytes.py: 4 layers, width 128, 64 bytes, batch 16."""
    import importlib.util
    import pathlib
    import sys
    path = pathlib.Path(__file__).parents[2] / "examples/gpt_bytes.py"
    specification = importlib.util.spec_from_file_location("gpt_bytes", path)
    module = sys.modules["gpt_bytes"] = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.make()


def gpt6():
    """6 layers, width 384, 6 heads, 256 bytes, batch 4."""
    return Decoder(256, 256, 384, [Block(384, 6, FeedForward(384)) for _ in range(6)]), tokens(4, 256, 256)


def moe():
    """4 layers, width 192, 8 experts in each, two a token, 128 bytes, batch 4."""
    blocks = [Block(192, 6, Experts(192, 8, 160)) for _ in range(4)]
    return Decoder(256, 128, 192, blocks), tokens(4, 128, 256)


def bert_small():
    """transformers' BERT: 4 layers, width 512, vocabulary 30522, masked language model, 128 tokens, batch 4."""
    from transformers import BertConfig, BertForMaskedLM

    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = BertForMaskedLM(BertConfig(
                hidden_size=512, num_hidden_layers=4, num_attention_heads=8, intermediate_size=2048,
                hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))

        def forward(self, ids, labels):
            return self.bert(input_ids=ids, labels=labels).loss

    ids = torch.randint(0, 30522, (4, 128))
    return Masked(), (ids, torch.where(torch.rand(4, 128) < 0.15, ids, -100))


def vit_small():
    """transformers' ViT: 12 layers, width 384, patches of 16, 224 x 224, batch 2."""
    from transformers import ViTConfig, ViTForImageClassification
    config = ViTConfig(hidden_size=384, num_hidden_layers=12, num_attention_heads=6, intermediate_size=1536,
                       hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=1000)
    return Loss(ViTForImageClassification(config)), images(2, 224, 1000)


# ---- convolutions ------------------------------------------------------------------------------------------------------------


def torchvision_model(name: str, **options):
    import torchvision
    return Loss(getattr(torchvision.models, name)(weights=None, **options))


def resnet18():
    """torchvision's, 128 x 128, batch 4."""
    return torchvision_model("resnet18"), images(4, 128, 1000)


def convnext_tiny():
    """torchvision's without stochastic depth, 128 x 128, batch 2."""
    return torchvision_model("convnext_tiny", stochastic_depth_prob=0.0), images(2, 128, 1000)


def mobilenet_v3():
    """torchvision's large one without dropout, 128 x 128, batch 8."""
    return torchvision_model("mobilenet_v3_large", dropout=0.0), images(8, 128, 1000)


class UNet(nn.Module):
    """Four levels of two convolutions with batch norm, pooled down, upsampled and concatenated."""

    def __init__(self, widths=(24, 48, 96, 192), classes: int = 8):
        super().__init__()
        self.down = nn.ModuleList(self.pair(a, b) for a, b in zip((3,) + widths, widths))
        self.up = nn.ModuleList(self.pair(a + b, a) for a, b in zip(widths, widths[1:]))
        self.head = nn.Conv2d(widths[0], classes, 1)

    @staticmethod
    def pair(inside: int, outside: int) -> nn.Module:
        def one(a, b):
            return nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True)
        return nn.Sequential(*one(inside, outside), *one(outside, outside))

    def forward(self, x, labels):
        levels = []
        for pair in self.down:
            x = pair(x if not levels else F.max_pool2d(x, 2))
            levels.append(x)
        for pair, level in zip(reversed(self.up), reversed(levels[:-1])):
            x = pair(torch.cat((F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False), level), dim=1))
        return F.cross_entropy(self.head(x), labels)


def unet():
    """Own, widths 24 to 192, 128 x 128, batch 2."""
    return UNet(), (torch.randn(2, 3, 128, 128), torch.randint(0, 8, (2, 128, 128)))


# ---- others ------------------------------------------------------------------------------------------------------------------


class LstmModel(nn.Module):
    def __init__(self, vocabulary: int, width: int, layers: int):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, x, labels):
        y, _ = self.lstm(self.token(x))
        return F.cross_entropy(self.head(y).flatten(0, 1), labels.flatten())


def lstm():
    """2 layers, width 256, vocabulary 2000, 48 tokens, batch 16."""
    return LstmModel(2000, 256, 2), tokens(16, 48, 2000)


class Dlrm(nn.Module):
    """Bags of sparse features and a dense part, their dot products, a click."""

    def __init__(self, tables: int, rows: int, width: int):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(13, 256), nn.ReLU(), nn.Linear(256, width), nn.ReLU())
        pairs = tables * (tables + 1) // 2
        self.top = nn.Sequential(nn.Linear(width + pairs, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 1))
        self.register_buffer("rows", torch.tril_indices(tables + 1, tables + 1, -1)[0])
        self.register_buffer("columns", torch.tril_indices(tables + 1, tables + 1, -1)[1])

    def forward(self, dense, sparse, clicked):
        dense = self.bottom(dense)
        features = torch.stack([dense] + [bag(sparse[k]) for k, bag in enumerate(self.bags)], dim=1)
        dots = torch.bmm(features, features.transpose(1, 2))[:, self.rows, self.columns]
        click = self.top(torch.cat((dense, dots), dim=1)).squeeze(1)
        return F.binary_cross_entropy_with_logits(click, clicked)


def dlrm():
    """8 tables of 5000 x 64, bags of 10, batch 256."""
    return Dlrm(8, 5000, 64), (torch.randn(256, 13), torch.randint(0, 5000, (8, 256, 10)), (torch.rand(256) < 0.3).float())


class DeepMlp(nn.Module):
    def __init__(self, width: int, layers: int):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x, labels):
        for layer in self.layers[:-1]:
            x = x + F.relu(layer(x)) * 0.1
        return F.cross_entropy(self.layers[-1](x), labels)


def mlp200():
    """100 layers of width 128, 200 tensors for the optimizer, batch 32."""
    return DeepMlp(128, 100), (torch.randn(32, 128), torch.randint(0, 128, (32,)))


# ---- large ones, for a GPU --------------------------------------------------------------------------------------------------


def gpt2():
    """For a GPU: 124M, 12 layers, width 768, 12 heads, 1024 tokens, vocabulary 50304, tied head, batch 32."""
    model = Decoder(50304, 1024, 768, [Block(768, 12, FeedForward(768)) for _ in range(12)])
    model.head.weight = model.token.weight
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.02)
    return model, tokens(32, 1024, 50257)


def resnet50():
    """For a GPU: torchvision's, 224 x 224, batch 128."""
    return torchvision_model("resnet50"), images(128, 224, 1000)


def vit_b16():
    """For a GPU: torchvision's, 224 x 224, batch 64."""
    return torchvision_model("vit_b_16"), images(64, 224, 1000)


def convnext_t():
    """For a GPU: torchvision's tiny one without stochastic depth, 224 x 224, batch 64."""
    return torchvision_model("convnext_tiny", stochastic_depth_prob=0.0), images(64, 224, 1000)


class OwnLoss(nn.Module):
    """A model of transformers that computes its own loss."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, ids, labels):
        return self.model(input_ids=ids, labels=labels).loss


def bert_base():
    """For a GPU: transformers' BERT with dropout, masked language model, 512 tokens, batch 32."""
    from transformers import BertConfig, BertForMaskedLM
    ids = torch.randint(0, 30000, (32, 512))
    return OwnLoss(BertForMaskedLM(BertConfig())).train(), (ids, ids.clone())


def llama_953m():
    """For a GPU: transformers' Llama, 16 layers, width 2048, 2048 tokens, vocabulary 32000, batch 4."""
    from transformers import LlamaConfig, LlamaForCausalLM
    ids = torch.randint(0, 32000, (4, 2048))
    return OwnLoss(LlamaForCausalLM(LlamaConfig(
        hidden_size=2048, intermediate_size=5632, num_hidden_layers=16, num_attention_heads=16, num_key_value_heads=16,
        vocab_size=32000, use_cache=False))), (ids, ids.clone())
