#!/usr/bin/env python3
"""Writes the calls of channels_last_cases.txt, which unit_infer reads: what PyTorch's operators make of tensors that lie channels
last, with the strides of their results. Needs PyTorch.

    make_layout_cases.py OUT"""

from __future__ import annotations

import sys

import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from make_infer_cases import number, quoted, tensor

NAMES = {torch.float32: "f32", torch.int64: "i64", torch.bool: "bool"}
FORMATS = {torch.contiguous_format: 1, torch.channels_last: 2, torch.channels_last_3d: 3, torch.preserve_format: 4}
aten = torch.ops.aten


def written(x) -> str:
    if x is None:
        return "-"
    if isinstance(x, torch.Tensor):
        return tensor(NAMES[x.dtype], list(x.shape), list(x.stride()), x.storage_offset())
    if isinstance(x, (list, tuple)):
        if any(e is None or isinstance(e, torch.Tensor) for e in x):
            return "{%s}" % ";".join(map(written, x))
        return "[%s]" % ",".join(map(number, x))
    if isinstance(x, torch.dtype):
        return "@" + NAMES[x]
    if isinstance(x, torch.memory_format):
        return "%%%d" % FORMATS[x]
    return quoted(x) if isinstance(x, str) else number(x)


class Recorder(TorchDispatchMode):
    """Calls as they reach the dispatcher, composites taken apart."""

    def __init__(self):
        super().__init__()
        self.lines: list[str] = []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        result = op(*args, **(kwargs or {}))
        if self.reads_layout(args):
            words = [written(a) for a in args] + [f"{name}={written(a)}" for name, a in (kwargs or {}).items()]
            results = [written(r) for r in (result if isinstance(result, (list, tuple)) else [result])]
            self.lines.append(" ".join([str(op), *words, "->", *results]))
        return result

    @staticmethod
    def reads_layout(args) -> bool:
        flat = [t for a in args for t in (a if isinstance(a, (list, tuple)) else [a])]
        return any(isinstance(t, torch.Tensor) and not t.is_contiguous() for t in flat)


def pools(x, dims: str):
    space, call = int(dims[0]), lambda name: getattr(aten, name.replace("#", dims))
    window, flat = [3] * space, [1] * space
    args = (window, [2] * space, flat, flat, False)
    y, places = call("max_pool#_with_indices")(x, *args)
    call("max_pool#_with_indices_backward")(y, x, *args, places)
    call("max_pool#_with_indices_backward")(y.contiguous(), x, *args, places.contiguous())
    mean = call("avg_pool#")(x, window, [2] * space, flat)
    call("avg_pool#_backward")(mean, x, window, [2] * space, flat, False, True, None)
    for size in ([2] * space, flat):
        y = call("_adaptive_avg_pool#")(x, size)
        call("_adaptive_avg_pool#_backward")(y, x)
        y, places = call("adaptive_max_pool#")(x, size)
        call("adaptive_max_pool#_backward")(y, x, places)


def resampling(x, dims: str):
    sizes = [2 * n for n in x.shape[2:]]
    y = getattr(aten, f"upsample_nearest{dims}")(x, sizes)
    getattr(aten, f"upsample_nearest{dims}_backward")(y, sizes, list(x.shape))
    if dims == "2d":
        y = aten.upsample_bilinear2d(x, sizes, False)
        aten.upsample_bilinear2d_backward(y, sizes, list(x.shape), False)
        aten.upsample_bicubic2d(x, sizes, False)
    else:
        y = aten.upsample_trilinear3d(x, sizes, False)
        aten.upsample_trilinear3d_backward(y, sizes, list(x.shape), False)


def norms(x):
    n, channels, rest = x.shape[0], x.shape[1], x[0, 0].numel()
    zeros, ones = torch.zeros(channels), torch.ones(channels)
    aten.native_batch_norm(x, ones, zeros, zeros, ones, True, 0.1, 1e-5)
    aten.native_batch_norm(x, ones, zeros, zeros, ones, False, 0.1, 1e-5)
    for g in (x, x.contiguous()):
        aten.native_batch_norm_backward(g, x, ones, None, None, zeros, ones, True, 1e-5, [True] * 3)
    y, mean, rstd = aten.native_group_norm(x, ones, zeros, n, channels, rest, 2, 1e-5)
    for g in (y, y.contiguous()):
        aten.native_group_norm_backward(g, x, mean, rstd, ones, n, channels, rest, 2, [True] * 3)
    F.local_response_norm(x, 2)
    F.layer_norm(x, x.shape[1:])


def convolutions(x, w, last):
    space, channels = x.dim() - 2, x.shape[1]
    one, zero = [1] * space, [0] * space
    for a, b in ((x, w), (x.contiguous(), w.to(memory_format=last)), (x, w.to(memory_format=last))):
        for transposed in (False, True):
            aten.convolution(a, b, None, one, one, one, transposed, zero, 1)
        y = aten.convolution(a, b, None, one, zero, one, False, zero, 1)
        for g in (y, y.contiguous()):
            aten.convolution_backward(g, a, b, [0], one, zero, one, False, zero, 1, [True, True, False])
    aten.convolution(x, w[:, :1].contiguous(), None, one, one, one, False, zero, channels)
    aten.convolution(x, w[:, : channels // 2].contiguous(), None, one, one, one, False, zero, 2)


def elementwise(x):
    gate = torch.randn(*x.shape[:2], *[1] * (x.dim() - 2))
    for y in (aten.relu, aten.gelu, aten.sigmoid, aten.hardswish, aten.clone, aten.zeros_like, aten.rand_like):
        y(x)
    for a, b in ((x, x), (x, x.contiguous()), (x.contiguous(), x), (gate, x), (x, gate)):
        aten.add(a, b)
        aten.mul(a, b)
    aten.where(x > 0, x, torch.zeros_like(x))
    aten.threshold_backward(x, x.contiguous(), 0)
    aten.threshold_backward(x.contiguous(), x, 0)
    aten._prelu_kernel(x, torch.randn(x.shape[1]).view(1, -1, *[1] * (x.dim() - 2)))
    aten.native_dropout(x, 0.5, True)
    aten.glu(x, 1)
    aten._to_copy(x, dtype=torch.float32)
    aten._softmax(x, 1, False)
    aten._log_softmax(x, 1, False)


def movement(x):
    space = x.dim() - 2
    aten.cat([x, x], 1)
    aten.cat([x, x.contiguous()], 1)
    aten.constant_pad_nd(x, [1, 1] * space)
    aten.constant_pad_nd(x, [-1, -1])
    getattr(aten, f"reflection_pad{space}d")(x, [1] * 2 * space)
    getattr(aten, f"replication_pad{space}d")(x, [1] * 2 * space)
    aten.flip(x, [3])
    aten.roll(x, [1], [2])
    aten.slice_scatter(x, x[:1], 0, 0, 1)
    aten.select_scatter(x, x[:, 0], 1, 0)
    aten.index_select(x, 0, torch.tensor([0]))
    aten.gather(x, 1, torch.zeros_like(x, dtype=torch.int64))
    aten.masked_fill(x, x > 0, 0.0)
    aten.repeat(x, [1, 2] + [1] * space)
    aten.cumsum(x, 2)
    aten.slice_backward(x, [2 * x.shape[0], *x.shape[1:]], 0, 0, x.shape[0], 1)
    if space == 2:
        aten.pixel_shuffle(aten.cat([x, x], 1), 2)
        aten.pixel_unshuffle(x, 2)
        aten.channel_shuffle(x, 2)


def reductions(x):
    for keep in (False, True):
        aten.sum(x, [1], keep)
        aten.mean(x, [2, 3], keep)
        aten.sum(x, [0, 2, 3], keep)
        aten.amax(x, [1], keep)
        aten.max(x, 1, keep)
        aten.var_mean(x, [0, 2, 3], correction=0, keepdim=keep)


def main(out: str) -> None:
    torch.manual_seed(0)
    image = torch.randn(2, 4, 6, 8).to(memory_format=torch.channels_last)
    volume = torch.randn(2, 4, 4, 6, 8).to(memory_format=torch.channels_last_3d)
    recorder = Recorder()
    with recorder:
        for x, dims, last in ((image, "2d", torch.channels_last), (volume, "3d", torch.channels_last_3d)):
            pools(x, dims)
            resampling(x, dims)
            norms(x)
            convolutions(x, torch.randn(4, 4, *[3] * (x.dim() - 2)), last)
            elementwise(x)
            movement(x)
            reductions(x)
    with open(out, "w") as f:
        f.writelines(line + "\n" for line in dict.fromkeys(recorder.lines))


if __name__ == "__main__":
    main(sys.argv[1])
