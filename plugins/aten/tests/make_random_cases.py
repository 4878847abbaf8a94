#!/usr/bin/env python3
"""Writes random_cases.txt, calls of operators that draw and the metadata of what PyTorch gives, as unit_infer reads them.

    python plugins/aten/tests/make_random_cases.py        (needs PyTorch)

Every operator is called with a contiguous, a permuted, an empty and a 0-dim tensor, whichever it takes, in several dtypes."""
import pathlib

import torch

from make_infer_cases import DTYPES, FORMATS, number, tensor

HERE = pathlib.Path(__file__).resolve().parent


def operands(dtypes):
    for size in [(2, 3, 4), (0, 3), ()]:
        yield torch.full(size, 0.5)
    yield torch.full((2, 3, 4, 5), 0.5).permute(0, 2, 3, 1)
    yield torch.full((2, 3, 4, 5), 0.5)[:, ::2]
    for dtype in dtypes:
        yield torch.full((4, 3), 0.5, dtype=dtype).t()


def text(a):
    if a is None:
        return "-"
    if isinstance(a, torch.Tensor):
        return tensor(DTYPES[str(a.dtype)[6:]], list(a.shape), list(a.stride()), a.storage_offset())
    if isinstance(a, torch.dtype):
        return "@" + DTYPES[str(a)[6:]]
    if isinstance(a, torch.memory_format):
        return "%%%d" % FORMATS[str(a)[6:]]
    if isinstance(a, (list, tuple)):
        return "[%s]" % ",".join(text(x) for x in a)
    return number(a)


def calls():
    """(operator, arguments, keywords)"""
    for x in operands([torch.float64, torch.bfloat16]):
        floats = x.to(torch.float32)
        for name in ("bernoulli.default", "uniform.default", "normal_functional.default", "cauchy.default", "exponential.default",
                     "log_normal.default", "random.default", "rand_like.default", "randn_like.default", "poisson.default"):
            yield name, (x,), {}
        yield "bernoulli.p", (x, 0.5), {}
        yield "bernoulli.Tensor", (x, floats), {}
        yield "bernoulli.Tensor", (x.to(torch.int64), floats), {}
        yield "geometric.default", (x, 0.5), {}
        yield "geometric.default", (x.to(torch.int64), 0.5), {}
        yield "random.from", (x, 1, 7), {}
        yield "random.to", (x.to(torch.int32), 7), {}
        yield "random.default", (x.to(torch.int64),), {}
        yield "normal.Tensor_float", (x, 2.0), {}
        yield "normal.float_Tensor", (2.0, x), {}
        yield "normal.Tensor_Tensor", (x, x), {}
        yield "rand_like.generator", (x,), {"generator": None, "dtype": torch.float64}
        yield "randn_like.generator", (x,), {"generator": None}
        yield "rand_like.default", (x,), {"dtype": torch.float16, "memory_format": torch.contiguous_format}
        yield "randint_like.default", (x, 9), {}
        yield "randint_like.default", (x, 9), {"dtype": torch.int64}
        yield "randint_like.generator", (x, 9), {"generator": None}
        yield "randint_like.low_dtype", (x, 2, 9), {"dtype": torch.int32}
        yield "randint_like.low_generator_dtype", (x, 2, 9), {"generator": None}
        yield "randint_like.Tensor", (x, torch.tensor(9)), {}
        yield "randint_like.Tensor_generator", (x, torch.tensor(9)), {"generator": None, "dtype": torch.int64}
        yield "rrelu_with_noise_functional.default", (x, torch.empty_like(x)), {}
        yield "rrelu_with_noise_functional.default", (x, torch.empty_like(x), 0.1, 0.3, True), {}
    for x in operands([torch.float64]):
        yield "binomial.default", (x, x), {}
        yield "_standard_gamma.default", (x,), {}
        if x.dim():
            yield "_sample_dirichlet.default", (x,), {}
    yield "normal.Tensor_Tensor", (torch.ones(3, 1), torch.ones(2, 1, 4)), {}
    yield "normal.Tensor_Tensor", (torch.ones(3, 4, dtype=torch.float64), torch.ones(3, 4)), {}
    yield "normal.Tensor_Tensor", (torch.ones(3, 4), torch.ones(3, 4, dtype=torch.float64)), {}
    for dtype in (None, torch.float64, torch.float16):
        yield "normal.float_float", (1.0, 2.0, [2, 3]), {"dtype": dtype}
        for name in ("rand.default", "randn.default"):
            yield name, ([2, 0, 3],), {"dtype": dtype}
        for name in ("rand.generator", "randn.generator"):
            yield name, ([2, 3],), {"generator": None, "dtype": dtype}
    for name in ("rand", "randn"):
        yield name + ".names", ([2, 3],), {"names": None}
        yield name + ".generator_with_names", ([2, 3],), {"generator": None, "names": None}
    for dtype in (None, torch.int32, torch.float32):
        kw = {} if dtype is None else {"dtype": dtype}
        yield "randint.default", (9, [2, 3]), kw
        yield "randint.low", (2, 9, [2, 3]), kw
        yield "randint.generator", (9, [2, 3]), {"generator": None, **kw}
        yield "randint.low_generator", (2, 9, [2, 3]), {"generator": None, **kw}
        yield "randperm.default", (5,), kw
        yield "randperm.generator", (0,), {"generator": None, **kw}
    for x in (torch.ones(4), torch.ones(3, 4, dtype=torch.float64), torch.ones(0, 4), torch.ones(4, 3).t()):
        yield "multinomial.default", (x, 2), {}
        yield "multinomial.default", (x, 7, True), {}


def main():
    lines = []
    for name, args, kwargs in calls():
        op, overload = name.split(".")
        got = getattr(getattr(torch.ops.aten, op), overload)(*args, **kwargs)
        got = got if isinstance(got, (list, tuple)) else [got]
        given = [text(a) for a in args] + ["%s=%s" % (k, text(v)) for k, v in kwargs.items()]
        lines.append("aten.%s %s -> %s" % (name, " ".join(given), " ".join(text(g) for g in got)))
    lines = list(dict.fromkeys(lines))
    (HERE / "random_cases.txt").write_text("\n".join(lines) + "\n")
    print("%d calls" % len(lines))


if __name__ == "__main__":
    main()
