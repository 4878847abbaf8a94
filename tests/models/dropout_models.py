"""Small models with dropout, exported in training mode. What PyTorch draws is not what aothost draws, so no results are kept.

Made anew with, for each factory NAME below:

    python tools/export_model.py tests/models/dropout_models.py:NAME tests/models/dropout_NAME --core --no-expected

and inputs.safetensors of each by `python tests/models/dropout_models.py`.
"""

from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width, heads, dropout, causal):
        super().__init__()
        self.heads, self.dropout, self.causal = heads, dropout, causal
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, mask=None):
        q, k, v = (y.view(*x.shape[:2], self.heads, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal, dropout_p=self.dropout)
        return self.out(y.transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    """Dropout in attention, behind it, inside and behind the feed-forward layers. post: norms behind the sums, as in BERT."""

    def __init__(self, width, heads, dropout, causal=False, post=False):
        super().__init__()
        self.post = post
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, dropout, causal)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.drop1, self.drop2, self.drop3 = nn.Dropout(dropout), nn.Dropout(dropout), nn.Dropout(dropout)

    def feed(self, x):
        return self.drop3(self.down(self.drop2(F.gelu(self.up(x)))))

    def forward(self, x, mask=None):
        if self.post:
            x = self.norm1(x + self.drop1(self.attention(x, mask)))
            return self.norm2(x + self.feed(x))
        x = x + self.drop1(self.attention(self.norm1(x), mask))
        return x + self.feed(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, words=32, length=8, width=16, dropout=0.1):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, 2, dropout, causal=True) for _ in range(2))
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens, targets):
        x = self.drop(self.words(tokens) + self.places.weight)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())


class Vit(nn.Module):
    """Patches, a class token, stochastic depth by bernoulli_, dropout of channels."""

    def __init__(self, width=16, dropout=0.1, classes=5):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 4, stride=4)
        self.channels = nn.Dropout2d(dropout)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(0.02 * torch.randn(1, 5, width))
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, 2, dropout) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, images, labels):
        x = self.channels(self.patch(images)).flatten(2).transpose(1, 2)
        x = self.drop(torch.cat([self.first.expand(x.shape[0], -1, -1), x], dim=1) + self.places)
        for block in self.blocks:
            keep = x.new_empty(x.shape[0], 1, 1).bernoulli_(0.9)
            x = x + (block(x) - x) * keep / 0.9
        return F.cross_entropy(self.head(self.norm(x[:, 0])), labels)


class Bert(nn.Module):
    """A mask of padding, norms behind the sums, a loss over masked words."""

    def __init__(self, words=32, length=8, width=16, dropout=0.1):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width, padding_idx=0), nn.Embedding(length, width)
        self.norm, self.drop = nn.LayerNorm(width), nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, 2, dropout, post=True) for _ in range(2))
        self.head = nn.Linear(width, words)

    def forward(self, tokens, labels):
        mask = (tokens != 0)[:, None, None, :]
        x = self.drop(self.norm(self.words(tokens) + self.places.weight))
        for block in self.blocks:
            x = block(x, mask)
        return F.cross_entropy(self.head(x).flatten(0, 1), labels.flatten(), ignore_index=-100)


def gpt():
    text = torch.randint(0, 32, (4, 9))
    return Gpt(), (text[:, :-1].contiguous(), text[:, 1:].contiguous())


def vit():
    return Vit(), (torch.randn(4, 3, 8, 8), torch.randint(0, 5, (4,)))


def bert():
    tokens = torch.randint(1, 32, (4, 8))
    labels = torch.where(torch.rand(4, 8) < 0.3, tokens, torch.tensor(-100))
    tokens[:, 6:] = 0
    return Bert(), (tokens, labels)


if __name__ == "__main__":
    for make in gpt, vit, bert:
        torch.manual_seed(1)
        inputs = {f"input.{k}": x for k, x in enumerate(make()[1])}
        save_file(inputs, Path(__file__).parent / f"dropout_{make.__name__}" / "inputs.safetensors")
