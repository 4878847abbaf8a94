"""Random PyTorch programs: templates of statements, and the generator of plain programs.

A statement is tried eagerly while the program is made, so every program is valid. random_kinds.py has further kinds of programs,
random_models.py the command.
"""

from __future__ import annotations

import contextlib
import random
import warnings

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

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


write.writes = True  # a statement of its own; the other templates are the right side of an assignment
KINDS = [(view, 5), (maybe_alias, 4), (pointwise, 6), (reduction, 3), (composite, 5), (creation, 1), (write, 7)]


# ---- programs ----


class Program:
    """Statements over inputs x0.., parameters p0.., buffers b0..; the text is the program. Other kinds of programs derive from it."""

    kind = "plain"
    templates = KINDS
    largest = 400  # elements of a tensor
    n_calls = 1  # sets of inputs that the program is run with

    def __init__(self, seed: int):
        self.seed = seed
        self.statements: list[str] = []
        self.returned: list[str] = []

    def tensors(self, call: int = 0) -> dict:
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

    def modules(self) -> dict[str, nn.Module]:
        """Modules that statements call as self.NAME, the same for the same seed."""
        return {}

    def prelude(self) -> list[str]:
        return [f"{name} = self.{name}" for name in self.tensors() if name[0] in "pb"]

    def results(self, scope: dict) -> list[str]:
        """Names that may be returned."""
        return [name for name in scope if name[0] == "v" and isinstance(scope[name], torch.Tensor)] or ["x0"]

    def context(self):
        """What eager PyTorch runs the program in."""
        return contextlib.nullcontext()

    def dynamic_shapes(self):
        """torch.export's dynamic_shapes."""
        return None

    def source(self) -> str:
        names = [name for name in self.tensors() if name[0] == "x"]
        lines = [f"def forward(self, {', '.join(names)}):"] + ["    " + s for s in self.lines()]
        return "\n".join(lines) + "\n"

    def lines(self) -> list[str]:
        body = []
        for s in self.statements:
            body += s.split("\n")
        return body + [f"return ({', '.join(self.returned)},)"]

    def make(self, call: int = 0):
        """The module and its arguments."""
        tensors = self.tensors(call)
        scope = {"torch": torch, "F": F, "nn": nn}
        exec(compile(self.source(), f"program_{self.seed}", "exec"), scope)
        model = type("Program", (nn.Module,), {"forward": scope["forward"]})()
        for name, value in tensors.items():
            if name[0] == "p":
                model.register_parameter(name, nn.Parameter(value.detach()))
            elif name[0] == "b":
                model.register_buffer(name, value)
        for name, module in self.modules().items():
            model.add_module(name, module)
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
    for name, module in program.modules().items():
        setattr(holder, name, module)
    with OrderMatters(), program.context():
        for statement in statements:
            exec(statement, scope)
    return {name: value for name, value in scope.items() if name not in ("torch", "F", "nn", "self", "__builtins__")}


def acceptable(value, strange: bool, largest: int) -> bool:
    if isinstance(value, int):  # a size
        return True
    if not isinstance(value, torch.Tensor) or value.numel() > largest or value.dim() > 5:
        return False
    if strange or not value.is_floating_point() or value.numel() == 0:
        return True
    return bool(value.isfinite().all()) and float(value.detach().abs().max()) < LARGEST


def generate(program: Program) -> Program:
    """Fills in the statements and results of an empty program."""
    rng = random.Random(program.seed * 7919 + 1)
    strange = rng.random() < 0.2
    statements, count = program.prelude(), 0
    wanted, tries = rng.randint(3, 12), 0
    scope = run_eagerly(program, statements)
    while count < wanted and tries < 200:
        tries += 1
        template = rng.choices([k for k, _ in program.templates], [w for _, w in program.templates])[0]
        try:
            text = template(Place(rng, scope, strange))
        except (LookupError, ValueError, IndexError):
            continue
        name = f"v{count}"
        statement = text if getattr(template, "writes", False) else f"{name} = {text}"
        if rng.random() < 0.12:
            statement = f"with torch.no_grad():\n    {statement}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                after = run_eagerly(program, statements + [statement])
                fits = all(acceptable(value, strange, program.largest) for value in after.values())
        except Exception:  # what PyTorch refuses is no program
            continue
        if not fits:
            continue
        statements.append(statement)
        scope, count = after, count + 1
    program.statements = statements
    names = program.results(scope)
    program.returned = rng.sample(names, min(len(names), rng.randint(1, 4)))
    if rng.random() < 0.15:
        program.returned.append(rng.choice([name for name in scope if isinstance(scope[name], torch.Tensor)]))
    return program
