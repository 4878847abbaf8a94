"""Small models of complex numbers: factories for tools/export_model.py."""
import math

import torch
from torch import nn


class SpectralConv2d(nn.Module):
    """A layer of a Fourier neural operator: low frequencies mixed by complex weights, both signs of the first dimension."""

    def __init__(self, channels, modes):
        super().__init__()
        self.modes = modes
        self.low = nn.Parameter(torch.randn(channels, channels, modes, modes, dtype=torch.complex64) / channels)
        self.high = nn.Parameter(torch.randn(channels, channels, modes, modes, dtype=torch.complex64) / channels)

    def forward(self, x):
        f, m = torch.fft.rfft2(x), self.modes
        out = torch.zeros_like(f)
        out[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", f[:, :, :m, :m], self.low)
        out[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", f[:, :, -m:, :m], self.high)
        return torch.fft.irfft2(out, s=x.shape[-2:])


class Fno2d(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Conv2d(1, 4, 1)
        self.spectral = SpectralConv2d(4, 3)
        self.local = nn.Conv2d(4, 4, 1)
        self.project = nn.Conv2d(4, 1, 1)

    def forward(self, x, y):
        h = self.lift(x)
        h = nn.functional.gelu(self.spectral(h) + self.local(h))
        return nn.functional.mse_loss(self.project(h), y)


def fno_2d():
    torch.manual_seed(0)
    return Fno2d(), (torch.randn(2, 1, 8, 10), torch.randn(2, 1, 8, 10))


class FNet(nn.Module):
    """A block of FNet: the real part of a transform over tokens and channels in attention's place."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.norm1, self.norm2 = nn.LayerNorm(8), nn.LayerNorm(8)
        self.feed = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
        self.head = nn.Linear(8, 11)

    def forward(self, tokens, labels):
        x = self.embed(tokens)
        x = self.norm1(x + torch.fft.fft2(x, dim=(-2, -1)).real)
        x = self.norm2(x + self.feed(x))
        return nn.functional.cross_entropy(self.head(x).flatten(0, 1), labels.flatten())


def fnet():
    torch.manual_seed(0)
    return FNet(), (torch.randint(0, 11, (2, 6)), torch.randint(0, 11, (2, 6)))


class S4D(nn.Module):
    """A diagonal state space model: its convolution kernel from complex exponentials, applied by transforms of twice the length."""

    def __init__(self, channels=4, states=4):
        super().__init__()
        self.log_dt = nn.Parameter(torch.rand(channels) * 2 - 4)
        self.c = nn.Parameter(torch.view_as_real(torch.randn(channels, states, dtype=torch.complex64)))
        self.log_a_real = nn.Parameter(torch.log(0.5 * torch.ones(channels, states)))
        self.a_imag = nn.Parameter(math.pi * torch.arange(states).float().repeat(channels, 1))
        self.d = nn.Parameter(torch.randn(channels))
        self.out = nn.Linear(channels, 1)

    def kernel(self, length):
        dt, c = torch.exp(self.log_dt), torch.view_as_complex(self.c)
        a = -torch.exp(self.log_a_real) + 1j * self.a_imag
        dta = a * dt.unsqueeze(-1)
        k = dta.unsqueeze(-1) * torch.arange(length)
        c = c * (torch.exp(dta) - 1.0) / a
        return 2 * torch.einsum("hn,hnl->hl", c, torch.exp(k)).real

    def forward(self, u, y):
        length = u.size(-1)
        k = self.kernel(length)
        f = torch.fft.rfft(u, n=2 * length) * torch.fft.rfft(k, n=2 * length)
        h = torch.fft.irfft(f, n=2 * length)[..., :length] + u * self.d.unsqueeze(-1)
        return nn.functional.mse_loss(self.out(nn.functional.gelu(h).transpose(-1, -2)), y)


def s4d():
    torch.manual_seed(0)
    return S4D(), (torch.randn(2, 4, 9), torch.randn(2, 9, 1))


class ComplexRotary(nn.Module):
    """Attention whose positions are factors on the unit circle, as Llama 4 and DeepSeek-V2 have them."""

    def __init__(self, dim=16, heads=2):
        super().__init__()
        self.heads, self.head = heads, dim // heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        inverse = 1.0 / (10000 ** (torch.arange(0, self.head, 2).float() / self.head))
        self.register_buffer("inv_freq", inverse, persistent=False)

    def rotated(self, x, circle):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * circle[:, :, None, :]).flatten(3).type_as(x)

    def forward(self, x, y):
        b, n, d = x.shape
        positions = torch.arange(n)[None, :].float()
        angles = (self.inv_freq[None, :, None] @ positions[:, None, :]).transpose(1, 2)
        circle = torch.polar(torch.ones_like(angles), angles)
        q, k, v = (t.view(b, n, self.heads, self.head) for t in self.qkv(x).chunk(3, -1))
        q, k = self.rotated(q, circle), self.rotated(k, circle)
        a = nn.functional.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)), is_causal=True)
        return nn.functional.mse_loss(self.out(a.transpose(1, 2).reshape(b, n, d)), y)


def complex_rotary():
    torch.manual_seed(0)
    return ComplexRotary(), (torch.randn(2, 5, 16), torch.randn(2, 5, 16))


class ComplexLinear(nn.Module):
    """Complex weights, conjugates, magnitudes, phases, products with numbers, an inverse short-time transform."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(5, 5, dtype=torch.complex64))
        self.b = nn.Parameter(torch.randn(5, dtype=torch.complex64))
        self.register_buffer("window", torch.hann_window(8))
        self.register_buffer("turn", torch.tensor([1j, 1 - 2j, 0.5, -1j, 2], dtype=torch.complex64))

    def forward(self, x):
        s = torch.stft(x, 8, 4, window=self.window, return_complex=True)  # [batch, 5, frames]
        z = nn.functional.linear(s.transpose(1, 2), self.w, self.b) * self.turn
        z = z.conj() * (0.5 - 2j) + z.imag
        gate = torch.sigmoid(z.abs()) * torch.exp(1j * z.angle())
        y = torch.istft((s.transpose(1, 2) * gate).transpose(1, 2), 8, 4, window=self.window)
        return (y ** 2).mean() + torch.linalg.vector_norm(self.w @ self.w.mH)


def complex_linear():
    torch.manual_seed(0)
    return ComplexLinear(), (torch.randn(2, 20),)
