#!/usr/bin/env python3
"""A GPT over bytes, small enough to train on two CPU cores in a minute.

Export it for aothost (gpt_bytes/ holds the result):

    python tools/export_model.py examples/gpt_bytes.py:make examples/gpt_bytes

Or train it with PyTorch alone, for comparison:

    python examples/gpt_bytes.py examples/data/opticks.txt --steps 250

make_dropout is a smaller one with dropout in attention, behind it and behind the feed-forward layers (gpt_dropout/).
"""

from __future__ import annotations

import argparse
import dataclasses
import time

import torch
from torch import nn
from torch.nn import functional as F


@dataclasses.dataclass(frozen=True)
class Config:
    vocabulary: int = 256
    length: int = 64
    layers: int = 4
    heads: int = 4
    width: int = 128
    tied: bool = False  # one matrix for the token embedding and the output layer
    dropout: float = 0.0


class Attention(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.heads = config.heads
        self.dropout = config.dropout
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(width, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout if self.training else 0.0)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.norm1 = nn.LayerNorm(config.width)
        self.attention = Attention(config)
        self.norm2 = nn.LayerNorm(config.width)
        self.up = nn.Linear(config.width, 4 * config.width)
        self.down = nn.Linear(4 * config.width, config.width)
        self.drop = nn.Dropout(config.dropout) if config.dropout else nn.Identity()

    def forward(self, x):
        x = x + self.drop(self.attention(self.norm1(x)))
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")))


class GPT(nn.Module):
    def __init__(self, config: Config = Config()):
        super().__init__()
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.positions = nn.Embedding(config.length, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        start_small(self, config)
        if config.tied:
            self.head.weight = self.tokens.weight

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def start_small(model: GPT, config: Config) -> None:
    """Small weights, smaller ones where a block adds to its input; the first loss is about ln 256 = 5.55."""
    for name, parameter in model.named_parameters():
        if name.endswith(("attention.out.weight", "down.weight")):
            nn.init.normal_(parameter, std=0.05 / (2 * config.layers) ** 0.5)
        elif name == "head.weight":
            nn.init.normal_(parameter, std=0.02)
        elif parameter.dim() == 2:
            nn.init.normal_(parameter, std=0.05)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)


def make(config: Config = Config(), batch: int = 16):
    """The model and one example batch, as tools/export_model.py wants them."""
    text = torch.randint(0, config.vocabulary, (batch, config.length + 1))
    return GPT(config), (text[:, :-1].contiguous(), text[:, 1:].contiguous())


def make_tied():
    return make(Config(tied=True))


def make_dropout():
    return make(Config(layers=2, width=64, dropout=0.1))


def batches(text: torch.Tensor, length: int, batch: int, seed: int):
    """Random windows of the text, without end."""
    pick = torch.Generator().manual_seed(seed)
    offsets = torch.arange(length + 1)
    while True:
        starts = torch.randint(0, len(text) - length, (batch, 1), generator=pick)
        window = text[starts + offsets].long()
        yield window[:, :-1].contiguous(), window[:, 1:].contiguous()


def train(model: nn.Module, source, steps: int, rate: float) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    start = time.perf_counter()
    for step, (tokens, targets) in zip(range(1, steps + 1), source):
        loss = model(tokens, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 1 or step % 25 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}  {time.perf_counter() - start:.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the byte GPT with eager PyTorch, for comparison with aothost.")
    parser.add_argument("text", help="a file of bytes, one token each")
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    config = Config()
    with open(options.text, "rb") as file:
        text = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
    train(GPT(config), batches(text, config.length, options.batch, options.seed), options.steps, options.lr)


if __name__ == "__main__":
    main()
