"""Small models whose joint graphs show what the large ones do not: random draws, masks, experts, recurrence, checkpoint tags, mixed
dtypes, long and crossing chains. tools/export_joint.py bench/partition/small_models.py bench/partition/small"""

import functools

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads, self.dropout = heads, dropout

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.dropout((q @ k.transpose(-1, -2) * 0.125).softmax(-1), self.dropout, self.training)
        x = x + F.dropout(self.out((a @ v).transpose(1, 2).reshape(b, t, d)), self.dropout, self.training)
        return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)))), self.dropout, self.training)


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * self.weight


class LlamaBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        linear = lambda a, b: nn.Linear(a, b, bias=False)
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.q, self.k, self.v, self.o = (linear(width, width) for _ in range(4))
        self.gate, self.up, self.down = linear(width, 3 * width), linear(width, 3 * width), linear(3 * width, width)
        self.heads = heads

    def rotate(self, x):
        t, d = x.shape[-2:]
        angle = torch.outer(torch.arange(t), 1 / 10000 ** (torch.arange(0, d, 2) / d))
        a, b, c, s = x[..., ::2], x[..., 1::2], angle.cos(), angle.sin()
        return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)

    def forward(self, x):
        b, t, d = x.shape
        y = self.norm1(x)
        q, k, v = (f(y).view(b, t, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = F.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, d))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Checkpointed(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return x


def save_products(ctx, op, *args, **kwargs):
    products = (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)
    return CheckpointPolicy.MUST_SAVE if op in products else CheckpointPolicy.PREFER_RECOMPUTE


class Selective(nn.Module):
    """Products are saved, also those that the backward does not read; the rest is computed again."""

    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        contexts = functools.partial(create_selective_checkpoint_contexts, save_products)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False, context_fn=contexts)
        return x


class MaskedBlock(nn.Module):
    """Every layer makes its mask anew, as models that are traced do: causal or sliding window, and the padding of the batch; two
    heads of queries share one of keys, logits are capped."""

    def __init__(self, width, heads, window, dropout):
        super().__init__()
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.q, self.kv = nn.Linear(width, width), nn.Linear(width, width)
        self.out, self.up, self.down = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.heads, self.window, self.dropout = heads, window, dropout

    def mask(self, is_token):
        t = is_token.shape[1]
        i, j = torch.arange(t)[:, None], torch.arange(t)[None, :]
        seen = (j <= i) & (j > i - self.window) if self.window else j <= i
        return seen[None, None] & is_token[:, None, None, :].bool()

    def forward(self, x, is_token):
        b, t, d = x.shape
        y = self.norm1(x)
        q = self.q(y).view(b, t, self.heads, -1).transpose(1, 2)
        k, v = self.kv(y).view(b, t, 2, self.heads // 2, -1).permute(2, 0, 3, 1, 4).repeat_interleave(2, 2)
        logits = 30 * torch.tanh(q @ k.transpose(-1, -2) * 0.125 / 30)
        a = logits.masked_fill(~self.mask(is_token), -1e9).softmax(-1)
        x = x + self.out((F.dropout(a, self.dropout) @ v).transpose(1, 2).reshape(b, t, d))
        return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")), self.dropout)


class Masked(nn.Module):
    def __init__(self, dropout=0.0, checkpointed=False):
        super().__init__()
        self.layers = nn.ModuleList(MaskedBlock(64, 4, window, dropout) for window in (16, 0, 16))
        self.checkpointed = checkpointed

    def forward(self, x, is_token):
        for layer in self.layers:
            x = checkpoint(layer, x, is_token, use_reentrant=False) if self.checkpointed else layer(x, is_token)
        return x * is_token[:, :, None]


class Experts(nn.Module):
    """Two of four experts a token, chosen by a softmax; what the others would give is masked."""

    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))
                                     for _ in range(4))

    def forward(self, x):
        weight, chosen = self.gate(x).softmax(-1).topk(2, -1)
        weight = weight / weight.sum(-1, keepdim=True)
        y = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            y = y + expert(x) * torch.where(chosen == i, weight, 0.0).sum(-1, keepdim=True)
        return x + y


class Recurrent(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.cell, self.norm = nn.LSTMCell(width, width), nn.LayerNorm(width)

    def forward(self, x):
        h, c, outs = x.new_zeros(x.shape[0], x.shape[2]), x.new_zeros(x.shape[0], x.shape[2]), []
        for step in x.unbind(1):
            h, c = self.cell(step, (h, c))
            outs.append(self.norm(h))
        return torch.stack(outs, 1)


class DroppedConvolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(8, 8, 3, padding=1) for _ in range(4)])
        self.norms = nn.ModuleList([nn.BatchNorm2d(8) if i % 2 else nn.GroupNorm(2, 8) for i in range(4)])

    def forward(self, x):
        for conv, norm in zip(self.convs, self.norms):
            x = x + F.dropout2d(F.hardswish(norm(conv(x))), 0.2)
            x = F.dropout(x, 0.1)
        return F.adaptive_avg_pool2d(x, 2)


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(8, 8, 3, padding=1) for _ in range(6)])
        self.norms = nn.ModuleList([nn.BatchNorm2d(8) for _ in range(6)])

    def forward(self, x):
        for conv, norm in zip(self.convs, self.norms):
            x = x + F.silu(norm(conv(x)))
        return F.max_pool2d(x, 2) * torch.sigmoid(x.mean())


class Chains(nn.Module):
    """Eight chains that read each other, and everything reads x."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(64, 64))

    def forward(self, x):
        x = x @ self.weight
        chains = [x * i for i in range(8)]
        for k in range(40):
            pairs = list(zip(chains, chains[1:] + chains[:1]))
            chains = [(a * b + x).sin() if (k + i) % 3 else (a + b).cos() for i, (a, b) in enumerate(pairs)]
        return sum(chains) @ self.weight


class LongChain(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(32))

    def forward(self, x):
        y = x * self.weight
        for i in range(160):
            y = y.sin() if i % 2 else y * 1.01
        return y


def models():
    tokens = lambda: (torch.randn(2, 64, 64),)
    padded = lambda: (torch.randn(2, 64, 64), (torch.arange(64)[None] < torch.tensor([[64], [48]])).long())
    blocks = lambda dropout=0.0: [Block(64, 4, dropout) for _ in range(3)]
    llamas = lambda: [LlamaBlock(64, 4) for _ in range(3)]
    half = torch.bfloat16
    return {
        "dropout": (lambda: (nn.Sequential(*blocks(0.1)), tokens()), None),
        "dropout_bf16": (lambda: (nn.Sequential(*blocks(0.1)), tokens()), half),
        "llama": (lambda: (nn.Sequential(*llamas()), tokens()), None),
        "llama_bf16": (lambda: (nn.Sequential(*llamas()), tokens()), half),
        "checkpointed": (lambda: (Checkpointed(blocks()), tokens()), None),
        "checkpointed_llama": (lambda: (Checkpointed(llamas()), tokens()), None),
        "selective": (lambda: (Selective(blocks(0.1)), tokens()), None),
        "convolutions": (lambda: (Convolutions(), (torch.randn(2, 8, 16, 16),)), None),
        "chains": (lambda: (Chains(), (torch.randn(64, 64),)), None),
        "masked": (lambda: (Masked(), padded()), None),
        "masked_dropout": (lambda: (Masked(0.1), padded()), None),
        "masked_bf16": (lambda: (Masked(0.1), padded()), half),
        "masked_checkpointed": (lambda: (Masked(0.1, checkpointed=True), padded()), None),
        "experts": (lambda: (nn.Sequential(*[Experts(32) for _ in range(3)]), (torch.randn(4, 16, 32),)), None),
        "recurrent": (lambda: (Recurrent(32), (torch.randn(4, 12, 32),)), None),
        "dropped_convolutions": (lambda: (DroppedConvolutions(), (torch.randn(2, 8, 16, 16),)), None),
        "long_chain": (lambda: (LongChain(), (torch.randn(16, 32),)), None),
    }
