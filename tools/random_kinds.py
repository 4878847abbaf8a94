"""Kinds of random programs beyond plain ones; each derives from Program and says which inputs, templates and calls it has.

| kind      | what is random besides the statements                                                                       |
|-----------|-------------------------------------------------------------------------------------------------------------|
| sizes     | dimensions are symbols, the program branches on sizes; run at three sizes, of which PyTorch may refuse some |
| data      | sizes depend on data: masks, item(), nonzero; run with three sets of data                                   |
| halves    | everything in bfloat16 or float16, tensors large enough for several threads                                 |
| recurrent | recurrent layers, bilinear layers and chained products under torch.autocast                                 |
| alias     | inputs that share memory at run time, in a program that was exported with inputs that do not                |
"""

from __future__ import annotations

import random

import torch
from torch import nn

from random_programs import KINDS, Place, Program, composite, creation, pointwise, reduction, view, write


class SeveralCalls(Program):
    """Parameters and buffers are those of the archive in every call."""

    n_calls = 3

    def state(self) -> dict:
        torch.manual_seed(self.seed)
        return {"p0": torch.randn(4).requires_grad_(), "b0": torch.randn(3), "b1": torch.rand(3) + 0.5}


class Sizes(SeveralCalls):
    """n is the first dimension of x0 and x1, m that of x2."""

    kind = "sizes"

    def tensors(self, call: int = 0) -> dict:
        rng = random.Random(self.seed)
        sizes = [rng.randint(4, 7), rng.randint(2, 9), rng.randint(2, 8)]
        others = [rng.randint(3, 5), rng.randint(2, 6), rng.randint(2, 7)]
        n, m = sizes[call], others[call]
        torch.manual_seed(self.seed + 1)
        shapes = {"x0": (n, rng.choice([1, 3, 4])), "x1": rng.choice([(n,), (n, 4), (n, 1, 3)])}
        if rng.random() < 0.5:
            shapes["x2"] = rng.choice([(m,), (m, 4)])
        made = {name: torch.randn(shape).requires_grad_(rng.random() < 0.6) for name, shape in shapes.items()}
        return made | self.state()

    def prelude(self) -> list[str]:
        second = ["m = x2.shape[0]"] if "x2" in self.tensors() else []
        return super().prelude() + ["n = x0.shape[0]"] + second

    def dynamic_shapes(self):
        return tuple({0: torch.export.Dim.AUTO} for name in self.tensors() if name[0] == "x")


def sized(p: Place) -> str:
    """Statements whose sizes are expressions of n."""
    x, n = p.tensor(lambda t: t.dim() >= 1), p.pick("n", "n", "m" if "m" in p.scope else "n")
    y = p.tensor(lambda t: t.shape[1:] == p.value(x).shape[1:] and t.dim() > 0 and t.dtype == p.value(x).dtype)
    rest = "".join(f", {size}" for size in p.value(x).shape[1:])
    return p.pick(
        f"{x}[: {n} // 2]", f"{x}[{n} // 2 :]", f"{x}[1:]", f"{x}[: {n} - 1]", f"{x}[::2]", f"{x}[-2:]", f"{x}.narrow(0, 1, {n} - 1)",
        f"{x}.narrow(0, {n} // 2, 1)", f"{x}.reshape(-1)", f"{x}.reshape({n}, -1)", f"{x}.view(-1{rest})", f"{x}.view({n} // 2, 2{rest})",
        f"{x}.unsqueeze(0).expand(2, {n}{rest})", f"torch.cat([{x}, {y}])", f"torch.cat([{x}[1:], {y}])", f"{x}.chunk(2)[{p.pick(0, 1)}]",
        f"{x}.split(2)[{p.pick(0, -1)}]", f"{x}.split([1, {n} - 1])[{p.pick(0, 1)}]", f"{x}.tensor_split(2)[{p.pick(0, 1)}]",
        f"torch.arange({n})", f"torch.zeros({n}, 4)", f"torch.full(({n},), 0.5)", f"torch.eye({n}) @ {x}", f"{x}.new_ones({n})", f"{x}.flip(0)",
        f"{x}.roll(1, 0)", f"{x}.cumsum(0)", f"{x}.cumprod(0)", f"{x}.prod(0)", f"F.softmax({x}, 0)", f"{x}.sum() / {n}", f"{x} * {n}", f"{x}.mean(0)",
        f"{x}.std(0)", f"{x}.reshape({n}, -1).t() @ {x}.reshape({n}, -1)", f"{x}.reshape({n}, -1) @ {x}.reshape({n}, -1).t()", f"{x}.transpose(0, -1)",
        f"{x}[torch.arange({n}).flip(0)]", f"{x}[torch.arange({n}) % 2 == 0]", f"F.pad({x}.reshape({n}, -1), (0, 0, 0, 1))", f"{x}.repeat(2{rest and ', 1' * (p.value(x).dim() - 1)})",
        f"{x}.repeat_interleave(2, 0)", f"{x}.unfold(0, 2, 1)", f"{x}.sort(0)[0]", f"{x}.topk(2, 0)[0]", f"{x}.max(0)[0]", f"{x}.amax(0)", f"{x}.select(0, {n} - 1)",
        f"{x}[{n} // 2]", f"F.cross_entropy({x}.reshape({n}, -1), torch.arange({n}) % 1)", f"torch.stack([{x}, {x}], 1)", f"torch.tril({x}.reshape({n}, -1))",
        f"{x} * 2 if {n} % 2 == 0 else {x} + 1", f"{x}.relu() if {n} > 4 else {x}.sin()", f"{x} + 1 if {n} * 2 < 11 else {x} - 1",
        f"{x}.neg() if {x}.numel() % 3 == 0 else {x}", f"{x}.exp() if {x}.shape[0] == x1.shape[0] else {x}.cos()", f"{x} * 3 if {n} // 2 >= 2 else {x}")


def write_sized(p: Place) -> str:
    x = p.tensor(lambda t: t.dim() >= 1)
    mask = f"{x} > {p.pick('0', '0.5')}"
    return p.pick(f"{x}[: n // 2] = {p.number()}", f"{x}[n // 2 :] *= 2", f"{x}[{mask}] = {p.number()}", f"{x}[{mask}] = {x}[{mask}] * 2",
                  f"{x}[1:].add_(1)", f"{x}.narrow(0, 0, 1).zero_()", f"{x}.copy_({x}.flip(0))", f"{x}.index_add_(0, torch.arange(n), {x}[:n] * 2)")


write_sized.writes = True
Sizes.templates = [(sized, 9), (pointwise, 3), (reduction, 2), (composite, 1), (write_sized, 2), (write, 1)]


class Data(SeveralCalls):
    """u and w are sizes read from the input xi, xm is a mask; u + w = 6."""

    kind = "data"

    def tensors(self, call: int = 0) -> dict:
        rng = random.Random(self.seed)
        u = [rng.randint(2, 4), rng.randint(0, 6), rng.choice([0, 1, 5, 6])][call]
        torch.manual_seed(self.seed + 1)
        made = {"x0": torch.randn(6, rng.choice([3, 4])), "x1": torch.randn(rng.choice([(6,), (6, 4)]))}
        made = {name: value.requires_grad_(rng.random() < 0.7) for name, value in made.items()}
        made["xi"] = torch.tensor([u, 6 - u])
        made["xm"] = torch.rand(6, generator=torch.Generator().manual_seed(self.seed + call)) > [0.5, 0.3, rng.choice([-1.0, 2.0, 0.8])][call]
        return made | self.state()

    def prelude(self) -> list[str]:
        checks = [f"torch._check({name} {bound})" for name in "uw" for bound in (">= 0", "<= 6")]
        return super().prelude() + ["u, w = xi.tolist()"] + checks + ["torch._check(u + w == 6)"]


def counted(p: Place) -> str:
    """Statements whose sizes depend on data."""
    x = p.tensor(lambda t: t.dim() >= 1 and t.is_floating_point())
    y = p.tensor(lambda t: t.shape[1:] == p.value(x).shape[1:] and t.dim() > 0 and t.dtype == p.value(x).dtype)
    u = p.pick("u", "w")
    return p.pick(
        f"{x}[:{u}]", f"{x}[{u}:]", f"{x}[-{u}:]", f"{x}[:-{u}]", f"{x}[:u][:1]", f"{x}.narrow(0, 0, {u})", f"{x}.narrow(0, u, w)", f"{x}.select(0, {u})", f"{x}[{u}]",
        f"{x}[{u} - 1]", f"torch.split({x}, [u, w])[{p.pick(0, 1)}]", f"{x}.split([u, w])[{p.pick(0, 1)}] * 2", f"torch.cat([{x}[u:], {x}[:u]])",
        f"torch.cat([{x}.narrow(0, 0, u), {y}])", f"torch.zeros({u}, 4)", f"torch.full(({u},), 0.5)", f"torch.ones({u}, {u})", f"torch.arange({u})", f"{x}[xm]", f"{x}[~xm]",
        f"{x}[{x} > 0]", f"{x}.masked_select({x} < 0)", f"torch.nonzero(xm)", f"torch.nonzero({x} > 0.5)", f"{x}[xm.nonzero().squeeze(1)]", f"{x}[xm].sum()", f"{x}[xm].mean()",
        f"{x}[:u].sum(0)", f"{x}.unsqueeze(0).expand({u}, *{x}.shape)", f"{x}.repeat_interleave(xi.clamp(1).new_tensor([1] * 6) + xm.long(), 0)", f"{x}[:u].reshape(-1)",
        f"{x}[:u].t()", f"{x}[:u] @ {x}[:u].t()", f"{x}[:u].t() @ {x}[:u]", f"F.softmax({x}[:u], -1)", f"F.softmax({x}[xm], 0)", f"F.layer_norm({x}[xm], {x}.shape[1:])",
        f"F.linear({x}[xm], p0)", f"F.cross_entropy({x}[xm], xm.nonzero().squeeze(1) % 3)", f"F.embedding(xm.nonzero().squeeze(1), {x})", f"F.one_hot(xi, 7)", f"{x} * {u}", f"{x}.sum() / ({u} + 1)",
        f"torch.zeros_like({x}).index_add(0, xm.nonzero().squeeze(1), {x}[xm])", f"F.pad({x}[:u], (0, 1))", f"torch.stack([{x}[:u], {x}[:u]])", f"{x}[:u].cumsum(0)", f"{x}[xm].sort(0)[0]")


def write_counted(p: Place) -> str:
    x = p.tensor(lambda t: t.dim() >= 1)
    return p.pick(f"{x}[:u] = {p.number()}", f"{x}[u:] *= 2", f"{x}[xm] = {p.number()}", f"{x}[xm] = {x}[xm] * 2", f"{x}.narrow(0, u, w).add_(1)", f"{x}[{x} > 0] = 0.5",
                  f"{x}[-w:] = 1", f"{x}[:u].copy_({x}[:u] * 3)")


write_counted.writes = True
Data.templates = [(counted, 9), (pointwise, 3), (reduction, 1), (write_counted, 2)]


class Halves(Program):
    """One half precision, tensors of some thousand elements; a few numbers of a wider type."""

    kind = "halves"
    largest = 60000

    def tensors(self, call: int = 0) -> dict:
        rng = random.Random(self.seed)
        dtype = rng.choice([torch.bfloat16, torch.bfloat16, torch.float16])
        torch.manual_seed(self.seed)
        shapes = [(64, 96), (96,), (1, 96), (64, 1), (128, 64), (32, 96), (4, 16, 96), (96, 96), (8, 8, 64)]
        made = {}
        for name in ["x0", "x1", "x2"][: rng.randint(2, 3)] + ["p0", "p1"][: rng.randint(0, 2)]:
            made[name] = (0.5 * torch.randn(rng.choice(shapes))).to(dtype).requires_grad_(name[0] == "p" or rng.random() < 0.6)
        if rng.random() < 0.4:
            made["x3"] = torch.tensor(0.75, dtype=rng.choice([torch.float32, torch.float64, dtype]))
        return made | {"b0": torch.randn(96).to(dtype), "b1": torch.rand(96).to(dtype) + 0.5}


Halves.templates = [(view, 3), (pointwise, 7), (reduction, 3), (composite, 4), (creation, 1), (write, 4)]


class Recurrent(Program):
    """Layers under torch.autocast("cpu", torch.bfloat16)."""

    kind = "recurrent"
    largest = 4000

    def tensors(self, call: int = 0) -> dict:
        rng = random.Random(self.seed)
        torch.manual_seed(self.seed)
        made = {"x0": torch.randn(5, 3, 8), "x1": torch.randn(3, 8), "x2": torch.randn(8, 8)}
        return {name: value.requires_grad_(rng.random() < 0.5) for name, value in made.items()}

    def modules(self) -> dict[str, nn.Module]:
        rng = random.Random(self.seed)
        torch.manual_seed(self.seed)
        both, layers, first, bias = rng.random() < 0.4, rng.choice([1, 1, 2]), rng.random() < 0.4, rng.random() < 0.8
        shape = {"num_layers": layers, "bidirectional": both, "batch_first": first, "bias": bias}
        projected = {"proj_size": 4} if rng.random() < 0.3 else {}
        return {"gru": nn.GRU(8, 8, **shape), "lstm": nn.LSTM(8, 8, **shape, **projected), "rnn": nn.RNN(8, 8, nonlinearity=rng.choice(["tanh", "relu"]), **shape),
                "gru_cell": nn.GRUCell(8, 8, bias), "lstm_cell": nn.LSTMCell(8, 8, bias), "rnn_cell": nn.RNNCell(8, 8, bias), "bilinear": nn.Bilinear(8, 8, 8, bias),
                "linear": nn.Linear(8, 8, bias), "norm": nn.LayerNorm(8), "attention": nn.MultiheadAttention(8, 2, batch_first=first)}

    def lines(self) -> list[str]:
        results = ", ".join(f"{name}.float()" for name in self.returned)  # a program keeps its outputs' dtypes
        return super().lines()[:-1] + [f"return ({results},)"]

    def context(self):
        return torch.autocast("cpu", torch.bfloat16)


def layer(p: Place) -> str:
    sequence = p.tensor(lambda t: t.dim() == 3 and t.shape[-1] == 8 and t.is_floating_point())
    rows = p.tensor(lambda t: t.dim() == 2 and t.shape == (3, 8) and t.is_floating_point())
    square = p.tensor(lambda t: t.shape == (8, 8) and t.is_floating_point())
    return p.pick(
        f"self.gru({sequence})[0]", f"self.gru({sequence})[1]", f"self.lstm({sequence})[0]", f"self.lstm({sequence})[1][{p.pick(0, 1)}]", f"self.rnn({sequence})[0]",
        f"self.gru_cell({rows})", f"self.gru_cell({rows}, {rows})", f"self.lstm_cell({rows})[{p.pick(0, 1)}]", f"self.rnn_cell({rows}, {rows})", f"self.bilinear({rows}, {rows})",
        f"self.bilinear({sequence}, {sequence})", f"torch.linalg.multi_dot([{rows}, {square}, {square}])", f"torch.linalg.multi_dot([{rows}, {square}, {square}, {square}])",
        f"self.linear({sequence})", f"self.norm({sequence})", f"self.attention({sequence}, {sequence}, {sequence}, need_weights={p.pick(True, False)})[0]",
        f"torch.einsum('bi,ij->bj', {rows}, {square})", f"torch.chain_matmul({rows}, {square}, {square})", f"torch.tensordot({rows}, {square}, 1)",
        f"F.gelu({sequence})", f"F.softmax({rows}, -1)", f"{rows} @ {square}", f"torch.addmm({rows}, {rows}, {square})", f"{sequence}.mean(0)", f"{sequence}.transpose(0, 1)[:3]")


Recurrent.templates = [(layer, 1)]


class Alias(SeveralCalls):
    """x0 and x1 are views of one storage at run time."""

    kind = "alias"
    n_calls = 1
    GEOMETRIES = [((12,), (12,)), ((12,), (3, 4)), ((8,), (8,)), ((3, 4), (3, 4)), ((2, 3), (6,)), ((4,), (4,)), ((6,), (2, 3))]

    def geometry(self) -> list[tuple]:
        """(sizes, strides, offset) of x0 and x1 over a storage of 24 elements."""
        rng = random.Random(self.seed)
        made = []
        for sizes in rng.choice(self.GEOMETRIES):
            step = rng.choice([1, 1, 2])
            strides = [step * (sizes[-1] if k < len(sizes) - 1 else 1) for k in range(len(sizes))]
            least = sum((s - 1) * d for s, d in zip(sizes, strides)) + 1
            made.append((sizes, strides, rng.choice([0, 0, 1, 24 - least])))
        return made if rng.random() < 0.8 else [made[0], made[0]]

    def tensors(self, call: int = 0) -> dict:
        rng = random.Random(self.seed)
        torch.manual_seed(self.seed)
        storage = torch.randn(24)
        made = {f"x{k}": storage.as_strided(*geometry).clone() for k, geometry in enumerate(self.geometry())}
        made |= {"x2": torch.randn(4)} if rng.random() < 0.5 else {}
        return made | self.state()

    def storage(self) -> torch.Tensor:
        torch.manual_seed(self.seed)
        return torch.randn(24)


KINDS_OF_PROGRAMS = {kind.kind: kind for kind in (Program, Sizes, Data, Halves, Recurrent, Alias)}
