#!/usr/bin/env python3
"""Random PyTorch programs, run by eager PyTorch and by aothost: results, gradients, buffers, inputs after the call.

See --help for use. Needs what tools/requirements-export.txt names.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import warnings

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import export_model

DESCRIPTION = """\
Makes random PyTorch programs, exports each with torch.export, and compares what
`aothost verify` computes on every backend with eager PyTorch: outputs, gradients
of parameters and inputs, buffers and inputs after the call.

A program is a list of statements over inputs, parameters and buffers: views,
writes through views, operators in place, no_grad blocks, composites, losses,
buffers written after losses, ten dtypes, NaN and infinities. Each is tried
eagerly while it is made, so all are valid; writes whose outcome goes by the
order of elements in a kernel are left out. One that disagrees is reduced
statement by statement, and its folder is kept: train.pt2, expected.safetensors,
src.py.

What torch.export itself changes (the exported module, run by PyTorch, differs
from eager) is counted apart: such a program is compared with the exported
module instead, since no reader of the archive could know better.
"""

EPILOG = """\
example
  python tools/random_models.py out --count 500 --seed 1 --aothost build/bin/aothost
  python tools/random_models.py tests/fixtures/random --count 60 --seed 1 --keep    (only make them)

exit status: 0 all agree or were refused with a message, 1 some disagree, 2 bad usage
"""

DTYPES = ["float32"] * 8 + ["float64", "float16", "bfloat16", "int64", "int64", "int32", "uint8", "bool"]
SHAPES = [(), (1,), (3,), (4,), (2, 3), (3, 4), (4, 4), (1, 4), (3, 1), (2, 3, 4), (2, 1, 4), (2, 4, 4), (0, 3), (2, 2, 3, 4)]
NUMBERS = ["2", "-1", "0.5", "1.5", "-0.25", "3"]
STRANGE = ['float("nan")', 'float("inf")', '-float("inf")', "-0.0", "1e-40"]
LARGEST = 1e4  # numbers beyond this make rounding the topic


class Place:
    """What a template may ask while it writes a statement: random choices among the names in scope."""

    def __init__(self, rng: random.Random, scope: dict, strange: bool):
        self.rng, self.scope, self.strange = rng, scope, strange

    def names(self, want=lambda t: True) -> list[str]:
        return [name for name, value in self.scope.items() if isinstance(value, torch.Tensor) and want(value)]

    def tensor(self, want=lambda t: True) -> str:
        names = self.names(want)
        if not names:
            raise LookupError
        late = names[-4:]
        return self.rng.choice(late if self.rng.random() < 0.6 else names)

    def value(self, name: str) -> torch.Tensor:
        return self.scope[name]

    def floating(self, least_rank: int = 0) -> str:
        return self.tensor(lambda t: t.is_floating_point() and t.dim() >= least_rank)

    def like(self, name: str) -> str:
        """A tensor that broadcasts to the named one, or a number."""
        shape = self.value(name).shape
        if self.rng.random() < 0.3:
            return self.number()
        names = self.names(lambda t: broadcasts(t.shape, shape))
        return self.rng.choice(names)

    def number(self) -> str:
        return self.rng.choice(STRANGE if self.strange and self.rng.random() < 0.4 else NUMBERS)

    def dim(self, name: str) -> int:
        rank = self.value(name).dim()
        if rank == 0:
            raise LookupError
        return self.rng.randrange(-rank, rank)

    def size(self, name: str, dim: int) -> int:
        return self.value(name).shape[dim]

    def pick(self, *choices):
        return self.rng.choice(choices)


def broadcasts(small, large) -> bool:
    if len(small) > len(large):
        return False
    return all(a in (1, b) for a, b in zip(reversed(small), reversed(large)))


# ---- statements: each template writes the right side of `v = ..`, or a whole statement without value ----


def factors(rng, count: int) -> list[int]:
    """A random shape of so many elements."""
    shape = []
    while count > 1 and rng.random() < 0.8 and len(shape) < 3:
        parts = [d for d in range(1, count + 1) if count % d == 0]
        shape.append(rng.choice(parts))
        count //= shape[-1]
    return shape + [count]


def view(p: Place) -> str:
    x = p.tensor()
    t = p.value(x)
    rank = t.dim()
    kind = p.pick("view", "reshape", "flatten", "transpose", "permute", "t", "mT", "squeeze", "unsqueeze", "expand", "select", "slice",
                  "narrow", "diagonal", "unfold", "split", "chunk", "unbind", "detach", "ellipsis", "movedim", "view_as", "broadcast_to",
                  "tensor_split", "ravel", "contiguous", "view_dtype", "as_strided", "unflatten", "swapdims", "expand_as", "hsplit")
    d = p.dim(x) if rank else 0
    if kind in ("view", "reshape"):
        return f"{x}.{kind}({factors(p.rng, t.numel()) if t.numel() else [0, 2]})"
    if kind == "flatten":
        return f"{x}.flatten({p.pick(0, -1, 0)})"
    if kind in ("transpose", "swapdims"):
        return f"{x}.{kind}({d}, {p.dim(x)})"
    if kind == "permute":
        order = list(range(rank))
        p.rng.shuffle(order)
        return f"{x}.permute({order})"
    if kind in ("t", "mT", "squeeze", "detach", "ravel", "contiguous"):
        return f"{x}.{kind}" if kind == "mT" else f"{x}.{kind}()"
    if kind == "unsqueeze":
        return f"{x}.unsqueeze({p.rng.randrange(-rank - 1, rank + 1)})"
    if kind in ("expand", "broadcast_to"):
        return f"{x}.{kind}({[p.pick(1, 2)] + [p.pick(2, 3) if s == 1 else s for s in t.shape]})"
    if kind == "select":
        return f"{x}.select({d}, {p.rng.randrange(-p.size(x, d), p.size(x, d))})"
    if kind == "slice":
        a, b = p.rng.randrange(-4, 4), p.rng.randrange(-3, 6)
        return f"{x}[{a}:{b}:{p.pick(1, 1, 2)}]"
    if kind == "ellipsis":
        return f"{x}[..., {p.pick('None', '0', '-1', ':2', '1:', '::2')}]"
    if kind == "narrow":
        return f"{x}.narrow({d}, {p.pick(0, 1)}, {p.pick(1, 2)})"
    if kind == "diagonal":
        return f"{x}.diagonal({p.pick(0, 1, -1)})"
    if kind == "unfold":
        return f"{x}.unfold({d}, 2, {p.pick(1, 2)})"
    if kind in ("split", "chunk", "tensor_split"):
        return f"{x}.{kind}(2, {d})[{p.pick(0, -1)}]"
    if kind == "unbind":
        return f"{x}.unbind({d})[{p.pick(0, -1)}]"
    if kind == "hsplit":
        return f"{x}.hsplit([1])[{p.pick(0, 1)}]"
    if kind == "movedim":
        return f"{x}.movedim({d}, {p.dim(x)})"
    if kind in ("view_as", "expand_as"):
        return f"{x}.{kind}({p.tensor()})"
    if kind == "unflatten":
        return f"{x}.unflatten({d}, (-1, {p.pick(1, 2)}))"
    if kind == "view_dtype":
        if x[0] == "v" and t.is_floating_point():  # the bits of a computed number are not the same everywhere
            raise LookupError
        return f"{x}.view(torch.{p.pick('int32', 'int64', 'float32', 'uint8', 'int16', 'float16', 'float64')})"
    return f"{x}.as_strided(({p.pick(1, 2)}, 2), ({p.pick(1, 2)}, 1), {p.pick(0, 0, 1)})"


def maybe_alias(p: Place) -> str:
    """Operators that give their argument back, or a view of it, or a copy: the call decides."""
    x = p.tensor()
    y = p.tensor()
    return p.pick(
        f"{x}.float()", f"{x}.to(torch.{p.pick('float32', 'float64', 'int64', 'bfloat16', 'bool')})", f"{x}.type_as({y})", f"{x}.to({y})",
        f"torch.broadcast_tensors({x}, {y})[{p.pick(0, 1)}]", f"F.dropout({x}, 0.5, False)", f"F.dropout({x}, 0.0, True)",
        f"torch.atleast_{p.pick(1, 2, 3)}d({x})", f"torch.atleast_2d([{x}, {y}])[{p.pick(0, 1)}]",
        f"torch.meshgrid({x}.reshape(-1), {y}.reshape(-1), indexing='ij')[{p.pick(0, 1)}]",
        f"torch.einsum('{p.pick('ij->ji', 'ij->ij', 'ijk->kij', 'ii->i', 'i->i')}', {x})", f"{x}.sum_to_size({list(p.value(x).shape)})",
        f"torch.cartesian_prod({x}.reshape(-1))", f"{x}.expand_as({x})", f"{x}.reshape({x}.shape)", f"{x}.resolve_conj()",
        f"torch.conj({x})", f"{x}.real" if p.value(x).is_floating_point() else f"{x}.positive()", f"{x}.contiguous()", f"{x}.reshape_as({x})",
        f"torch.squeeze({x}, ({p.pick(0, -1)},))", f"F.alpha_dropout({x}, 0.3, False)", f"{x}.flatten()",
        f"{x}.nan_to_num()", f"torch.ravel({x})", f"torch.block_diag({x})", f"torch.broadcast_to({x}, {list(p.value(x).shape)})",
        f"nn.Identity()({x})", f"F.pad({x}, (0, 0))", f"torch.column_stack(({x}, {x}))", f"{x}.repeat(1)",
        f"torch.chunk({x}, 1)[0]", f"torch.split({x}, 9)[0]", f"{x}.view({list(p.value(x).shape)})", f"torch.clone({x})", f"{x}.view_as({x})")


def pointwise(p: Place) -> str:
    x = p.tensor()
    if p.rng.random() < 0.45:
        y = p.like(x)
        op = p.pick("+", "-", "*", "*", "/", "<", ">", "==", "!=", "<=", "//", "%", "&", "|", "^")
        return f"{x} {op} {y}" if p.rng.random() < 0.8 else f"{y} {op} {x}"
    if p.rng.random() < 0.3:
        y = p.like(x)
        return p.pick(f"torch.maximum({x}, {p.tensor()})", f"torch.minimum({x}, {p.tensor()})", f"torch.where({x} > {p.number()}, {x}, {y})",
                      f"torch.clamp({x}, -1, {p.pick(1, 2)})", f"torch.clamp({x}, min={p.number()})", f"torch.lerp({x}, {p.tensor()}, 0.3)",
                      f"torch.addcmul({x}, {p.tensor()}, {p.tensor()}, value=0.5)", f"torch.fmod({x}, 2)", f"torch.remainder({x}, {p.pick(2, -3)})",
                      f"torch.atan2({x}, {p.tensor()})", f"torch.logaddexp({x}, {p.tensor()})", f"torch.hypot({x}, {p.tensor()})",
                      f"torch.copysign({x}, {p.number()})", f"torch.fmax({x}, {p.tensor()})", f"torch.xlogy({x}, {p.tensor()})",
                      f"torch.pow({x}, {p.pick(2, 3, 0.5, -1, 0, 1.5)})", f"torch.pow(2, {x})", f"{x} ** {p.pick(2, 3, 0.5)}",
                      f"{x}.masked_fill({x} > 0, {p.number()})", f"torch.div({x}, {y}, rounding_mode='{p.pick('floor', 'trunc')}')")
    name = p.pick("neg", "abs", "exp", "sin", "cos", "tanh", "sigmoid", "relu", "sqrt", "log", "square", "rsqrt", "reciprocal", "sign", "floor",
                  "ceil", "round", "erf", "log1p", "expm1", "logical_not", "isnan", "isfinite", "trunc", "frac", "sgn", "log2", "exp2", "atan",
                  "F.gelu", "F.silu", "F.softplus", "F.elu", "F.leaky_relu", "F.hardswish", "F.mish", "F.selu", "F.relu6", "F.logsigmoid",
                  "F.hardtanh", "F.softsign", "F.tanhshrink", "F.celu", "F.hardsigmoid", "F.threshold")
    if name == "F.threshold":
        return f"F.threshold({x}, 0.1, {p.number()})"
    return f"{name}({x})" if name.startswith("F.") else f"torch.{name}({x})"


def reduction(p: Place) -> str:
    x = p.tensor()
    if p.value(x).dim() == 0 or p.rng.random() < 0.2:
        return f"{x}.{p.pick('sum', 'mean', 'amax', 'amin', 'prod', 'max', 'min', 'norm', 'any', 'all', 'std', 'var', 'nansum', 'median')}()"
    d, keep = p.dim(x), p.pick(True, False)
    name = p.pick("sum", "mean", "amax", "amin", "prod", "logsumexp", "std", "var", "norm", "argmax", "argmin", "any", "all", "cumsum", "cumprod",
                  "softmax", "log_softmax", "max", "min", "median", "nansum", "nanmean", "cummax", "logcumsumexp", "softmin", "norm1", "norminf",
                  "count_nonzero", "sort", "topk", "argsort", "kthvalue", "aminmax", "diff", "renorm", "normalize", "unique_consecutive")
    if name in ("cumsum", "cumprod", "logcumsumexp", "argsort"):
        return f"torch.{name}({x}, {d})"
    if name in ("softmax", "log_softmax", "softmin"):
        return f"F.{name}({x}, {d})"
    if name in ("max", "min", "median"):
        return f"torch.{name}({x}, {d}, {keep})[{p.pick(0, 0, 1)}]"
    if name in ("cummax", "sort"):
        return f"torch.{name}({x}, {d})[0]"
    if name == "topk":
        return f"torch.topk({x}, 1, {d})[0]"
    if name == "kthvalue":
        return f"torch.kthvalue({x}, 1, {d}, {keep})[0]"
    if name == "norm":
        return f"{x}.norm(2, {d}, {keep})"
    if name in ("norm1", "norminf"):
        order = "1" if name == "norm1" else "float('inf')"
        return f"{x}.norm({order}, {d}, {keep})"
    if name == "aminmax":
        return f"torch.aminmax({x}, dim={d}, keepdim={keep}).max"
    if name == "diff":
        return f"torch.diff({x}, dim={d})"
    if name == "renorm":
        return f"torch.renorm({x}, 2, {d}, 1.0)"
    if name == "normalize":
        return f"F.normalize({x}, dim={d})"
    if name == "count_nonzero":
        return f"torch.count_nonzero({x}, {d})"
    if name == "unique_consecutive":
        return f"{x}.sum({d})"
    return f"{x}.{name}({d}, {keep})"


def composite(p: Place) -> str:
    x = p.floating(1)
    t = p.value(x)
    last = t.shape[-1]
    y = p.tensor()
    same = p.tensor(lambda u: u.shape == t.shape and u.is_floating_point())
    rows = f"(torch.arange({t.shape[0]}) % {max(t.shape[1], 1) if t.dim() > 1 else 1})"
    return p.pick(
        f"F.layer_norm({x}, ({last},))", f"F.rms_norm({x}, ({last},))", f"F.mse_loss({x}, {same})", f"F.l1_loss({x}, {y})",
        f"F.smooth_l1_loss({x}, {same}, reduction='{p.pick('none', 'sum', 'mean')}')", f"F.huber_loss({x}, {same})",
        f"F.mse_loss({x}, {y}, reduction='{p.pick('none', 'sum')}')", f"F.cross_entropy({x}, {rows})",
        f"F.cross_entropy({x}, F.softmax({same}, 1))", f"F.cross_entropy({x}, {rows}, label_smoothing=0.1, ignore_index=0)",
        f"F.nll_loss(F.log_softmax({x}, 1), {rows}, reduction='{p.pick('none', 'sum', 'mean')}')", f"F.kl_div({x}, {same}, reduction='batchmean')",
        f"F.binary_cross_entropy_with_logits({x}, torch.sigmoid({same}))", f"F.binary_cross_entropy(torch.sigmoid({x}), torch.sigmoid({same}))",
        f"F.cosine_similarity({x}, {same}, dim={p.dim(x)})", f"F.pairwise_distance({x}, {same})", f"torch.cdist({x}, {same})",
        f"torch.matmul({x}, {y})", f"{x} @ {same}.transpose(-1, -2)", f"torch.einsum('ij,kj->ik', {x}, {same})", f"F.linear({x}, {y})",
        f"torch.einsum('bij,bjk->bik', {x}, {y})", f"torch.outer({x}.flatten(), {y}.flatten())", f"torch.addmm({x}, {same}, {y})",
        f"F.scaled_dot_product_attention({x}, {same}, {same}, is_causal={p.pick(True, False)})", f"F.glu({x}, {p.dim(x)})",
        f"F.group_norm({x}, 1)", f"F.instance_norm({x})", f"F.batch_norm({x}, None, None, training=True)", f"F.avg_pool1d({x}, 2)",
        f"F.max_pool1d({x}, 2)", f"F.adaptive_avg_pool1d({x}, 2)", f"F.conv1d({x}, {y})", f"F.interpolate({x}, scale_factor=2)",
        f"F.pad({x}, (1, {p.pick(0, 1, -1)}), mode='{p.pick('constant', 'reflect', 'replicate', 'circular')}')", f"F.one_hot({rows}, 4)",
        f"torch.cat([{x}, {same}], {p.dim(x)})", f"torch.stack([{x}, {same}], {p.dim(x)})", f"torch.hstack([{x}, {y}])",
        f"torch.triu({x}, {p.pick(0, 1)})", f"torch.tril({x})", f"torch.flip({x}, [{p.dim(x)}])", f"torch.roll({x}, 1, {p.dim(x)})",
        f"{x}.repeat_interleave(2, {p.dim(x)})", f"torch.tile({x}, ({p.pick(1, 2)},))", f"torch.gather({x}, {p.dim(x)}, torch.zeros_like({x}, dtype=torch.int64))",
        f"{x}.index_select({p.dim(x)}, torch.tensor([0, 0]))", f"torch.take_along_dim({x}, {x}.argsort({p.dim(x)}), {p.dim(x)})",
        f"{x}[{x} > 0].sum()", f"F.embedding({rows}, {x})", f"torch.trapz({x})", f"torch.logit(torch.sigmoid({x}))", f"torch.kron({x}, {y})",
        f"torch.tensordot({x}, {same}, {p.pick(1, 2)})", f"torch.cross({x}, {same}, dim=-1)", f"torch.heaviside({x}, {same})", f"torch.dist({x}, {same})",
        f"F.triplet_margin_loss({x}, {same}, {y})", f"F.cosine_embedding_loss({x}, {same}, torch.ones({t.shape[0]}))", f"F.soft_margin_loss({x}, {same})",
        f"F.hinge_embedding_loss({x}, torch.sign({same}))", f"F.poisson_nll_loss({x}, {same})", f"F.gaussian_nll_loss({x}, {same}, {same}.abs() + 1)",
        f"F.margin_ranking_loss({x}, {same}, torch.sign({x}).detach())", f"F.multilabel_soft_margin_loss({x}, torch.sigmoid({same}))")


def creation(p: Place) -> str:
    x = p.tensor()
    return p.pick(f"torch.zeros_like({x})", f"torch.ones_like({x})", f"torch.full_like({x}, {p.number()})", f"{x}.new_zeros({list(p.value(x).shape)})",
                  f"torch.arange({p.pick(3, 4)}, dtype=torch.{p.pick('float32', 'int64')})", f"torch.tensor([1.0, {p.number()}, 3.0])", f"{x}.clone()",
                  f"torch.linspace(0, 1, {p.pick(3, 4)})", f"torch.eye({p.pick(3, 4)})")


def write(p: Place) -> str:
    """A statement that writes a tensor and has no value."""
    x = p.tensor()
    y = p.like(x)
    d = p.dim(x) if p.value(x).dim() else 0
    name = p.pick("add_", "sub_", "mul_", "mul_", "div_", "copy_", "fill_", "zero_", "relu_", "sigmoid_", "tanh_", "exp_", "neg_", "abs_", "clamp_",
                  "masked_fill_", "setitem", "setrow", "setmask", "index_add_", "index_copy_", "index_fill_", "scatter_", "t_", "squeeze_", "unsqueeze_",
                  "transpose_", "eq_", "lt_", "logical_not_", "logical_and_", "square_", "sqrt_", "lerp_", "addcmul_", "addcdiv_", "triu_", "tril_",
                  "fill_diagonal_", "cumsum_", "pow_", "swapaxes_", "round_", "floor_", "relu_F", "dropout_F", "bn", "augmented", "out", "bitwise_and_",
                  "silu_F", "elu_", "leaky_relu_F", "hardtanh_", "gt_", "ne_", "clamp_min_", "nan_to_num_", "rsub", "detach_write", "foreach")
    if name in ("add_", "sub_", "mul_", "div_", "copy_", "bitwise_and_"):
        return f"{x}.{name}({p.tensor() if name == 'copy_' else y})"
    if name in ("fill_", "eq_", "lt_", "gt_", "ne_", "clamp_min_"):
        return f"{x}.{name}({p.number()})"
    if name in ("zero_", "relu_", "sigmoid_", "tanh_", "exp_", "neg_", "abs_", "t_", "squeeze_", "logical_not_", "square_", "sqrt_", "triu_", "tril_",
                "round_", "floor_", "nan_to_num_"):
        return f"{x}.{name}()"
    if name == "logical_and_":
        return f"{x}.logical_and_({p.tensor()})"
    if name == "clamp_":
        return f"{x}.clamp_(-1, 1)"
    if name == "masked_fill_":
        return f"{x}.masked_fill_({x} > 0, {p.number()})"
    if name == "setitem":
        return f"{x}[{p.pick('0', '-1', '...', ':1', '::2', '..., 0', '..., 1:', 'None')}] = {p.pick(p.number(), p.tensor())}"
    if name == "setrow":
        return f"{x}.select({d}, 0).{p.pick('add_', 'mul_', 'fill_')}({p.number()})"
    if name == "setmask":
        return f"{x}[{x} {p.pick('>', '<', '!=')} 0] = {p.number()}"
    if name in ("index_add_", "index_copy_"):
        return f"{x}.{name}({d}, torch.tensor([0]), {p.tensor()}.narrow({d}, 0, 1))"
    if name == "index_fill_":
        return f"{x}.index_fill_({d}, torch.tensor([0]), {p.number()})"
    if name == "scatter_":
        return f"{x}.scatter_({d}, torch.zeros_like({x}, dtype=torch.int64).narrow({d}, 0, 1), {p.number()})"
    if name == "unsqueeze_":
        return f"{x}.unsqueeze_({d})"
    if name in ("transpose_", "swapaxes_"):
        return f"{x}.{name}({d}, {p.dim(x)})"
    if name == "lerp_":
        return f"{x}.lerp_({p.tensor()}, 0.25)"
    if name in ("addcmul_", "addcdiv_"):
        return f"{x}.{name}({p.tensor()}, {p.tensor()})"
    if name == "fill_diagonal_":
        return f"{x}.fill_diagonal_({p.number()})"
    if name == "cumsum_":
        return f"{x}.cumsum_({d})"
    if name == "pow_":
        return f"{x}.pow_({p.pick(2, 3)})"
    if name in ("relu_F", "silu_F", "leaky_relu_F"):
        return f"F.{name[:-3].rstrip('_')}({x}, inplace=True)"
    if name == "dropout_F":
        return f"F.dropout({x}, 0.5, False, inplace=True)"
    if name == "elu_":
        return f"F.elu_({x})"
    if name == "hardtanh_":
        return f"F.hardtanh_({x})"
    if name == "bn":
        return f"F.batch_norm({p.floating(2)}, self.b0, self.b1, training=True)"
    if name == "augmented":
        return f"{x} {p.pick('+=', '*=', '-=')} {y}"
    if name == "out":
        return f"torch.{p.pick('add', 'mul', 'sub')}({p.tensor()}, {p.number()}, out={x})"
    if name == "detach_write":
        return f"{x}.detach().{p.pick('add_', 'mul_')}({p.number()})"
    if name == "foreach":
        return f"torch._foreach_{p.pick('add_', 'mul_')}([{x}, {p.tensor()}], {p.number()})"
    return f"torch.rsub({x}, 1)"


KINDS = [(view, 5), (maybe_alias, 4), (pointwise, 6), (reduction, 3), (composite, 5), (creation, 1), (write, 7)]


# ---- programs ----


class Program:
    """Statements over inputs x0.., parameters p0.., buffers b0..; the text is the program."""

    def __init__(self, seed: int):
        self.seed = seed
        self.statements: list[str] = []
        self.returned: list[str] = []

    def tensors(self) -> dict:
        """Fresh inputs, parameters and buffers, the same for the same seed."""
        rng, made = random.Random(self.seed), {}
        torch.manual_seed(self.seed)
        for name in ["x0", "x1", "x2"][: rng.randint(1, 3)] + ["p0", "p1"][: rng.randint(0, 2)] + ["b0", "b1"]:
            floating = name[0] == "p" or name in ("b0", "b1")
            shape = rng.choice(SHAPES) if rng.random() < 0.6 else (3, 4)
            dtype = getattr(torch, rng.choice(DTYPES)) if name[0] == "x" else torch.float32
            if rng.random() < 0.2 and name[0] == "b":
                dtype = getattr(torch, rng.choice(DTYPES))
            data = torch.randn(shape) if floating or dtype.is_floating_point else torch.randint(0, 5, shape)
            if name[0] == "b" and rng.random() < 0.4:
                shape = (3,)
                data = torch.rand(shape) + 0.5
            made[name] = data.to(dtype)
            wants = name[0] == "p" or (name[0] == "x" and rng.random() < 0.6)
            made[name].requires_grad_(wants and made[name].is_floating_point())
        return made

    def source(self) -> str:
        names = [name for name in self.tensors() if name[0] == "x"]
        lines = [f"def forward(self, {', '.join(names)}):"] + ["    " + s for s in self.lines()]
        return "\n".join(lines) + "\n"

    def lines(self) -> list[str]:
        body = []
        for s in self.statements:
            body += s.split("\n")
        return body + [f"return ({', '.join(self.returned)},)"]

    def make(self):
        """The module and its arguments."""
        tensors = self.tensors()
        scope = {"torch": torch, "F": F, "nn": nn}
        exec(compile(self.source(), f"program_{self.seed}", "exec"), scope)
        model = type("Program", (nn.Module,), {"forward": scope["forward"]})()
        for name, value in tensors.items():
            if name[0] == "p":
                model.register_parameter(name, nn.Parameter(value.detach()))
            elif name[0] == "b":
                model.register_buffer(name, value)
        return model.train(), tuple(value for name, value in tensors.items() if name[0] == "x")


def places(t: torch.Tensor) -> list[int]:
    """Where the elements lie in the storage, counted in elements."""
    whole = torch.arange(t.untyped_storage().nbytes() // t.element_size())
    return whole.as_strided(t.shape, t.stride(), t.storage_offset()).flatten().tolist()


class OrderMatters(TorchDispatchMode):
    """Refuses what a kernel leaves by the order in which it takes the elements, which PyTorch does not promise: a write into elements
    that are one in memory, or into some that are read besides, at another place of the operand."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        given = list(zip(func._schema.arguments, args)) + [(a, kwargs[a.name]) for a in func._schema.arguments if a.name in kwargs]
        written = [t for a, t in given if a.alias_info and a.alias_info.is_write and isinstance(t, torch.Tensor)]
        read = [t for _, value in given for t in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(t, torch.Tensor)]
        for t in written if torch.Tag.inplace_view not in func.tags else []:
            ours = places(t)
            if len(set(ours)) < len(ours):
                raise ValueError("one element of the storage is written several times")
            for other in read:
                if other.untyped_storage().data_ptr() != t.untyped_storage().data_ptr() or t.numel() == 0 or other.numel() == 0:
                    continue
                theirs = places(other)
                if other.dtype != t.dtype or (theirs != ours and set(theirs) & set(ours)):
                    raise ValueError("elements that are written are read at other places")
        return func(*args, **kwargs)


def run_eagerly(program: Program, statements: list[str]) -> dict:
    """The scope after the statements; raises what PyTorch raises, and where the order of elements matters."""
    tensors = program.tensors()
    holder = nn.Module()
    scope = {"torch": torch, "F": F, "nn": nn, "self": holder}
    for name, value in tensors.items():
        scope[name] = value.clone() if value.requires_grad and name[0] == "x" else value
        if name[0] in "pb":
            value = nn.Parameter(value.detach()) if name[0] == "p" else value
            setattr(holder, name, value)
            scope[name] = value
    with OrderMatters():
        for statement in statements:
            exec(statement, scope)
    return {name: value for name, value in scope.items() if name not in ("torch", "F", "nn", "self", "__builtins__")}


def acceptable(value, strange: bool) -> bool:
    if not isinstance(value, torch.Tensor) or value.numel() > 400:
        return False
    if strange or not value.is_floating_point() or value.numel() == 0:
        return value.dim() <= 5
    return value.dim() <= 5 and bool(value.isfinite().all()) and float(value.detach().abs().max()) < LARGEST


def generate(seed: int) -> Program:
    rng = random.Random(seed * 7919 + 1)
    program = Program(seed)
    strange = rng.random() < 0.2
    bind = [f"{name} = self.{name}" for name in program.tensors() if name[0] in "pb"]
    statements, count = list(bind), 0
    wanted, tries = rng.randint(3, 12), 0
    scope = run_eagerly(program, statements)
    while count < wanted and tries < 200:
        tries += 1
        template = rng.choices([k for k, _ in KINDS], [w for _, w in KINDS])[0]
        try:
            text = template(Place(rng, scope, strange))
        except (LookupError, ValueError, IndexError):
            continue
        name = f"v{count}"
        statement = text if template is write else f"{name} = {text}"
        if rng.random() < 0.12:
            statement = f"with torch.no_grad():\n    {statement}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                after = run_eagerly(program, statements + [statement])
                fits = all(acceptable(value, strange) for value in after.values())
        except Exception:  # what PyTorch refuses is no program
            continue
        if not fits:
            continue
        statements.append(statement)
        scope, count = after, count + 1
    program.statements = statements
    names = [name for name in scope if name[0] == "v"] or ["x0"]
    program.returned = rng.sample(names, min(len(names), rng.randint(1, 4)))
    if rng.random() < 0.15:
        program.returned.append(rng.choice(list(scope)))
    return program


# ---- comparison ----


class Outcome:
    AGREE, REFUSED, EXPORT_REFUSES, EXPORT_LOSES, DIFFERS, FAILED = "agree", "refused", "export refuses", "export loses", "differs", "failed"


def close(a: dict, b: dict, loose: bool) -> bool:
    rtol, atol = (5e-2, 5e-2) if loose else (1e-4, 1e-5)
    return a.keys() == b.keys() and all(
        x.shape == y.shape and x.dtype == y.dtype and torch.allclose(x, y, rtol=rtol, atol=atol, equal_nan=True)
        for x, y in ((a[key], b[key]) for key in a)
    )


def has_half(values: dict, program: Program) -> bool:
    text = program.source()
    return "float16" in text or "half" in text or any(v.dtype in (torch.float16, torch.bfloat16) for v in values.values())


def write_folder(program: Program, folder: pathlib.Path) -> tuple[str, dict]:
    """Exports and records; an outcome other than AGREE where PyTorch itself is in the way."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "src.py").write_text(program.source())
    model, args = program.make()
    said = io.StringIO()  # torch.export prints the graphs that it refuses
    with warnings.catch_warnings(), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        warnings.simplefilter("ignore")
        try:
            values = export_model.drop_unchanged_inputs(export_model.run_step(model, args, {}, 0))
        except RuntimeError as error:  # a gradient that PyTorch has no way to
            return Outcome.EXPORT_REFUSES, {"why": f"eager PyTorch: {error}"}
        try:
            exported = torch.export.export(model, args, strict=False)
            torch.export.save(exported, str(folder / "train.pt2"))
        except Exception as error:
            return Outcome.EXPORT_REFUSES, {"why": str(error)}
        try:
            again = export_model.drop_unchanged_inputs(export_model.run_step(export_model.module_of(exported), program.make()[1], {}, 0))
        except Exception as error:
            return Outcome.EXPORT_REFUSES, {"why": f"the exported module does not run: {error}"}
    again = {key: value for key, value in again.items() if not key.startswith("buffer_after.lifted_tensor")}
    lost = not close(values, again, has_half(values, program))
    values = again if lost else values
    save_file(values, str(folder / "expected.safetensors"))
    return Outcome.EXPORT_LOSES if lost else Outcome.AGREE, values


def verify(options, folder: pathlib.Path, backend: str, partition: str, differentiates: bool, loose: bool) -> tuple[int, str]:
    pipeline = options.pipelines / ("verify.yaml" if differentiates else "inference.yaml")
    command = [str(options.aothost), "verify", str(pipeline), "--no-cache", "--model", str(folder / "train.pt2"), "--expect",
               str(folder / "expected.safetensors"), "--set", f"vars.backend={backend}"]
    command += ["--set", f"vars.partition={partition}"] if differentiates else []
    command += ["--rtol", "5e-2", "--atol", "5e-2"] if loose else []
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return 99, "timed out"
    return done.returncode, done.stdout + done.stderr


def judge(options, program: Program, folder: pathlib.Path) -> tuple[str, str]:
    outcome, values = write_folder(program, folder)
    if outcome == Outcome.EXPORT_REFUSES:
        return outcome, values["why"]
    if not options.aothost:
        return outcome, ""
    differentiates = any(key.startswith("grad.") for key in values)
    refused = None
    for backend in options.backends:
        for partition in options.partitions if differentiates else options.partitions[:1]:
            status, text = verify(options, folder, backend, partition, differentiates, has_half(values, program))
            if status == 2:
                refused = text
            elif status != 0:
                return (Outcome.DIFFERS if status == 1 else Outcome.FAILED), f"{backend}, {partition}, status {status}\n{text}"
    return (Outcome.REFUSED, refused) if refused else (outcome, "")


def reduced(options, program: Program, outcome: str) -> Program:
    """Takes statements and results away as long as the outcome stays."""
    changed = True
    while changed:
        changed = False
        smaller = []
        for k in reversed(range(len(program.statements))):
            smaller.append((program.statements[:k] + program.statements[k + 1 :], program.returned))
        for k in range(len(program.returned)):
            smaller.append((program.statements, program.returned[:k] + program.returned[k + 1 :]))
        for statements, returned in smaller:
            trial = Program(program.seed)
            trial.statements, trial.returned = statements, returned
            if not returned:
                continue
            try:
                trial.make()[0](*[x.clone() if x.requires_grad else x for x in trial.make()[1]])
            except Exception:
                continue
            with tempfile.TemporaryDirectory() as folder:
                if judge(options, trial, pathlib.Path(folder))[0] == outcome:
                    program, changed = trial, True
                    break
    return program


def first_line(text: str) -> str:
    lines = [line for line in text.splitlines() if "error" in line or "differs" in line or "missing" in line] or text.splitlines() or [""]
    return lines[0][:160]


def parse_options(argv) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="random_models.py", description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out_dir", metavar="OUT_DIR", type=pathlib.Path, help="folder for the programs that are kept")
    parser.add_argument("--count", type=int, default=100, metavar="N", help="how many programs (default 100)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the first; the next ones follow (default 1)")
    parser.add_argument("--aothost", type=pathlib.Path, metavar="F", help="the command; without it programs are only made")
    parser.add_argument("--pipelines", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "pipelines", metavar="DIR")
    parser.add_argument("--backends", default="backend-ref,backend-cpu", help="comma-separated")
    parser.add_argument("--partitions", default="partition-default,partition-mincut", help="comma-separated")
    parser.add_argument("--keep", action="store_true", help="keep every program's folder, not only those that disagree")
    parser.add_argument("--reduce", action="store_true", help="make programs that disagree smaller before they are kept")
    options = parser.parse_args(argv)
    options.backends, options.partitions = options.backends.split(","), options.partitions.split(",")
    return options


def main(argv=None) -> int:
    options = parse_options(argv)
    counts, refusals = collections.Counter(), collections.Counter()
    for seed in range(options.seed, options.seed + options.count):
        program = generate(seed)
        folder = options.out_dir / str(seed)
        outcome, text = judge(options, program, folder)
        counts[outcome] += 1
        if sys.stderr.isatty():
            print(f"\r{seed - options.seed + 1} of {options.count}", end="", file=sys.stderr, flush=True)
        if outcome == Outcome.REFUSED:
            refusals[first_line(text)] += 1
        bad = outcome in (Outcome.DIFFERS, Outcome.FAILED)
        if bad and options.reduce:
            program = reduced(options, program, outcome)
            text = judge(options, program, folder)[1]
        if bad:
            print(f"seed {seed}: {outcome}: {first_line(text)}\n{program.source()}", flush=True)
            (folder / "report.txt").write_text(text)
        if not bad and not (options.keep and outcome == Outcome.AGREE) and outcome != Outcome.REFUSED:
            shutil.rmtree(folder, ignore_errors=True)
    print("; ".join(f"{name} {number}" for name, number in counts.most_common()))
    for line, number in refusals.most_common(30):
        print(f"  {number} refused: {line}")
    return 1 if counts[Outcome.DIFFERS] + counts[Outcome.FAILED] else 0


if __name__ == "__main__":
    sys.exit(main())
