#!/usr/bin/env python3
"""PyTorch's own suites of operators and modules through torch.compile, with gradients, against eager in float64.

    bench/python/suites.py ops|modules [--backends aothost,inductor] [--samples 3] [--out F.jsonl] [NAME-PATTERN ..]

ops: OpInfo (torch.testing._internal.common_methods_invocations), float32 on the CPU; modules: ModuleInfo. A sample
passes if each result and gradient is as near to float64 as eager in float32 is (accuracy.py). A row is an operator or
module; each runs in a separate process. Operators that eager itself cannot differentiate run forward alone.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import sys
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import accuracy  # noqa: E402


def wide(value):
    """The sample in float64."""
    import torch

    return torch.utils._pytree.tree_map(
        lambda t: (
            t.detach().to({torch.float32: torch.float64, torch.complex64: torch.complex128}.get(t.dtype, t.dtype))
            if isinstance(t, torch.Tensor)
            else torch.float64 if t is torch.float32 else t
        ),
        value,
    )


def own(value, needs_grad):
    import torch

    return torch.utils._pytree.tree_map(
        lambda t: (
            t.detach().clone().requires_grad_(needs_grad and (t.is_floating_point() or t.is_complex()))
            if isinstance(t, torch.Tensor)
            else t
        ),
        value,
    )


def run(call, arguments, named, needs_grad):
    """{name: tensor}: results, then gradients of every differentiable argument."""
    import torch

    arguments, named = own((arguments, named), needs_grad)
    torch.manual_seed(0)
    results = [r for r in torch.utils._pytree.tree_leaves(call(*arguments, **named)) if isinstance(r, torch.Tensor)]
    rows = {f"output.{i}": r.detach() for i, r in enumerate(results)}
    wanted = [r for r in results if r.requires_grad]
    if not needs_grad or not wanted:
        return rows
    total = 0
    for r in wanted:
        real = torch.view_as_real(r.resolve_conj()) if r.is_complex() else r
        weights = torch.linspace(0.5, 1.5, max(real.numel(), 1), dtype=real.dtype)[: real.numel()].reshape(real.shape)
        total = total + (real * weights).sum()
    total.backward()
    for i, t in enumerate(torch.utils._pytree.tree_leaves((arguments, named))):
        if isinstance(t, torch.Tensor) and t.grad is not None:
            rows[f"grad.{i}"] = t.grad
    return rows


def complex_as_real(rows):
    import torch

    return {k: torch.view_as_real(t.resolve_conj()) if t.is_complex() else t for k, t in rows.items()}


def judge_sample(call, fresh_call, arguments, named, needs_grad, backend):
    """None: eager cannot run it; "": right; else what is wrong."""
    import torch

    try:
        eager = run(call, arguments, named, needs_grad)
        again = run(call, arguments, named, needs_grad)
    except Exception:  # noqa: BLE001 - not differentiable, say
        if not needs_grad:
            return None
        return judge_sample(call, fresh_call, arguments, named, False, backend)
    same = all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(eager.values(), again.values()))
    if not same:
        return None  # random, or what was in memory
    try:
        reference = run(call, *wide((arguments, named)), needs_grad)
    except Exception:  # noqa: BLE001
        reference = {k: t.double() if t.is_floating_point() else t for k, t in eager.items()}
    torch._dynamo.reset()
    try:
        got = run(torch.compile(fresh_call, backend=backend), arguments, named, needs_grad)
    except Exception as e:  # noqa: BLE001
        return f"{type(e).__name__}: {str(e)[-400:]}"
    wrong = accuracy.judge(complex_as_real(got), complex_as_real(eager), complex_as_real(reference))
    return "WRONG " + wrong[0] if wrong else ""


def op_samples(name, n):
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    for k, op in enumerate(op_db):
        if f"{op.full_name}" != name or torch.float32 not in op.supported_dtypes("cpu"):
            continue
        samples = list(op.sample_inputs("cpu", torch.float32, requires_grad=False))
        step = max(1, len(samples) // n)
        for s in samples[::step][:n]:
            call = lambda *a, op=op, **kw: op.op(*a, **kw)  # noqa: E731
            yield call, (s.input, *s.args), dict(s.kwargs), bool(op.supports_autograd)


def module_samples(name, n):
    import copy

    import torch
    from torch.testing._internal.common_modules import module_db

    for info in module_db:
        if info.name != name:
            continue
        for s in list(info.module_inputs_func(info, "cpu", torch.float32, False, True))[:n]:
            try:
                module = info.module_cls(*s.constructor_input.args, **s.constructor_input.kwargs)
            except Exception:  # noqa: BLE001
                continue
            arguments = s.forward_input.args

            def call(p, b, *a, module=module, **kw):
                return torch.func.functional_call(copy.copy(module), (p, b), a, kw)

            state = dict(module.named_parameters()), {k: v.clone() for k, v in module.named_buffers()}
            yield call, (*state, *arguments), dict(s.forward_input.kwargs), True


def run_one(name, backends, kind, n):
    import torch

    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    row = {"model": name}
    for backend in backends:
        results = []
        for call, arguments, named, needs_grad in (op_samples if kind == "ops" else module_samples)(name, n):
            said = judge_sample(call, call, arguments, named, needs_grad, accuracy.backend_of(backend))
            if said is not None:
                results.append(said)
        bad = [r for r in results if r]
        row[backend] = {
            "ok": not bad,
            "samples": len(results),
            "wrong": [r for r in bad if r.startswith("WRONG")],
            "error": bad[0] if bad else "",
        }
    return row


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kind", choices=["ops", "modules"])
    p.add_argument("patterns", nargs="*", default=["*"])
    p.add_argument("--backends", default="aothost")
    p.add_argument("--samples", type=int, default=3)
    p.add_argument("--timeout", type=float, default=300)
    p.add_argument("--out")
    a = p.parse_args()
    import torch._dynamo.backends.common  # noqa: F401 - children have it
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.common_modules import module_db

    names = sorted({op.full_name for op in op_db}) if a.kind == "ops" else [m.name for m in module_db]
    names = [n for n in names if any(fnmatch.fnmatch(n, q) for q in a.patterns)]
    backends = a.backends.split(",")
    out = open(a.out, "a") if a.out else None
    count = {b: {"pass": 0, "wrong": [], "fail": [], "none": 0} for b in backends}
    for k, name in enumerate(names):
        row = accuracy.in_fork(name, a.timeout, lambda name: run_one(name, backends, a.kind, a.samples))
        for b in backends:
            r = row.get(b)
            c = count[b]
            if r is None or r.get("error") and not r["wrong"]:
                c["fail"].append(name)
            elif r["wrong"]:
                c["wrong"].append(name)
            elif r["samples"]:
                c["pass"] += 1
            else:
                c["none"] += 1
            if r is None or not r["ok"]:
                print(
                    f"{k + 1}/{len(names)} {name} {b}: {(r or row).get('error') or row.get('skipped')}"[:400],
                    flush=True,
                )
        if out:
            out.write(json.dumps(row) + "\n")
            out.flush()
    for b, c in count.items():
        print(
            f"{b}: {c['pass']} pass, {len(c['wrong'])} wrong {c['wrong']}, {len(c['fail'])} do not run {c['fail']}, {c['none']} have no sample that can be judged"
        )
    return any(c["wrong"] for c in count.values())


if __name__ == "__main__":
    sys.exit(main())
