"""A small causal language model of any batch and length: every layer joins its causal mask or window and the padding to a mask of
its own, `a & b`, whose strides PyTorch records as powers of the length.

    python tools/export_model.py tests/models/masked_models.py:masked_lengths tests/models/masked_lengths \\
        --dynamic 0:0=batch:1:64,0:1=length:3:16,1:0=batch,1:1=length
    python tests/models/masked_models.py tests/models/masked_lengths        (results at further sizes)
"""

import sys

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.q, self.kv, self.o = nn.Linear(d, d), nn.Linear(d, 2 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x, mask):
        b, t, d = x.shape
        y = self.n1(x)
        q = self.q(y).view(b, t, self.h, -1).transpose(1, 2)
        k, v = (z.view(b, t, self.h, -1).transpose(1, 2) for z in self.kv(y).chunk(2, -1))
        a = (q @ k.transpose(-1, -2) * 0.35)
        a = torch.where(mask, a, -1e9).softmax(-1)
        x = x + self.o((a @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class MaskedLm(nn.Module):
    def __init__(self, layers=3, d=8, h=2, vocab=16):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.pos = nn.Embedding(16, d)
        self.layers = nn.ModuleList(Block(d, h) for _ in range(layers))
        self.head = nn.Linear(d, vocab, bias=False)

    def forward(self, tokens, keep):
        b, t = tokens.shape
        i = torch.arange(t)
        x = self.emb(tokens) + self.pos(i)
        for k, layer in enumerate(self.layers):
            causal = i[None, :] <= i[:, None]
            window = i[None, :] > i[:, None] - (4 if k % 2 else 16)
            seen = (causal & window)[None, None].expand(b, 1, t, t)
            mask = seen & (keep[:, None, None, :] | torch.eye(t, dtype=torch.bool)[None, None]).expand(b, 1, t, t)
            x = layer(x, mask)
        logits = self.head(x)[:, :-1]
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1))


def inputs(batch, length, kept):
    tokens = torch.randint(0, 16, (batch, length))
    return tokens, torch.arange(length)[None] < kept


def masked_lengths():
    torch.manual_seed(0)
    return MaskedLm(), inputs(3, 8, torch.tensor([[8], [5], [6]]))


def main():
    model, _ = masked_lengths()
    for number, (batch, length) in enumerate([(1, 3), (5, 16), (2, 4)], 1):
        torch.manual_seed(number)
        tokens, keep = inputs(batch, length, torch.randint(1, length + 1, (batch, 1)))
        model.zero_grad()
        loss = model(tokens, keep)
        loss.backward()
        record = {"input.0": tokens, "input.1": keep, "output.0": loss.detach(), "tangent.0": torch.ones(())}
        record |= {f"grad.{name}": p.grad.contiguous() for name, p in model.named_parameters()}
        save_file(record, f"{sys.argv[1]}/expected.{number}.safetensors")


if __name__ == "__main__":
    main()
