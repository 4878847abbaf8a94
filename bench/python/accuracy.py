#!/usr/bin/env python3
"""Training accuracy of backends of torch.compile: loss, gradients and buffers against eager in float64.

    bench/python/accuracy.py [--backends aothost,inductor] [--out F.jsonl] [--timeout S] [NAME-PATTERN ..]

Each model runs in a separate process. A backend passes if each tensor is as near to float64 as eager in float32 is:
rms(got - f64) <= 4 rms(eager - f64) + 2e-5 rms(f64) + 1e-7 of the largest gradient. Prints a row a model, a summary
last; status 1 if a backend gave a wrong result. Models are those of models.py, without dropout.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import logging
import os
import select
import signal
import sys
import time
import warnings


def without_dropout(module):
    for m in module.modules():
        for name in ("p", "drop_prob", "drop_path", "dropout"):
            if isinstance(getattr(m, name, None), float) and ("drop" in type(m).__name__.lower() or name != "p"):
                setattr(m, name, 0.0)
    return module


def results(module, inputs, run):
    """{name: tensor} of a step: outputs, gradients of parameters and float inputs, buffers after it."""
    import torch

    torch.manual_seed(1)
    out = run(*inputs)
    flat = [o for o in torch.utils._pytree.tree_leaves(out) if isinstance(o, torch.Tensor)]
    found = {f"output.{i}": o.detach() for i, o in enumerate(flat)}
    loss = (
        sum((o * o.detach().cos()).sum() for o in flat if o.is_floating_point() and o.requires_grad)
        if not (len(flat) == 1 and flat[0].ndim == 0)
        else flat[0]
    )
    loss.backward()
    for name, p in module.named_parameters():
        if p.grad is not None:
            found["grad." + name] = p.grad
    for i, x in enumerate(inputs):
        if x.requires_grad:
            found[f"grad.input.{i}"] = x.grad
    for name, b in module.named_buffers():
        found["buffer." + name] = b.detach().clone()
    return found


def rms(t):
    return t.abs().double().square().mean().sqrt().item() if t.numel() else 0.0


def judge(got, eager, reference):
    """What is wrong, worst first; empty: nothing."""
    import torch

    largest = max((rms(t) for name, t in reference.items() if name.startswith("grad.")), default=0.0)
    wrong = []
    for name, wanted in reference.items():
        if name not in got:
            wrong.append((float("inf"), f"{name} is missing"))
            continue
        a, b = got[name], eager[name]
        if a.shape != wanted.shape or a.dtype != b.dtype:
            wrong.append((float("inf"), f"{name}: {a.dtype} {list(a.shape)}, wanted {b.dtype} {list(wanted.shape)}"))
            continue
        if not wanted.is_floating_point() and not wanted.is_complex():
            if not torch.equal(a, b):
                wrong.append((float("inf"), f"{name}: other integers"))
            continue
        bad = torch.isfinite(a) != torch.isfinite(b)
        keep = torch.isfinite(wanted) & torch.isfinite(b)
        error = rms((a.double() - wanted)[keep])
        allowed = 4 * rms((b.double() - wanted)[keep]) + 2e-5 * rms(wanted[keep]) + 1e-7 * largest + 1e-12
        if bad.any() or not error <= allowed:
            wrong.append(
                (error / allowed, f"{name}: error {error:.2e}, allowed {allowed:.2e}, rms {rms(wanted[keep]):.2e}")
            )
    return [text for _, text in sorted(wrong, reverse=True)]


def run_one(name, backends):
    """One model, in this process: a row for the report."""
    import copy

    import torch

    warnings.filterwarnings("ignore")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from models import models

    messages = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    logging.getLogger("aothost").addHandler(handler)
    torch.manual_seed(0)
    module, inputs = models()[name]()
    module = without_dropout(module).train()
    prepare = (
        lambda t, d: t.detach()
        .clone()
        .to(d if t.is_floating_point() else t.dtype)
        .requires_grad_(t.is_floating_point())
    )
    fresh = lambda d: (copy.deepcopy(module).to(d), tuple(prepare(t, d) for t in inputs))
    m, x = fresh(torch.float64)
    reference = results(m, x, m)
    m, x = fresh(torch.float32)
    eager = results(m, x, m)
    row = {"model": name, "nodes_in_eager": None}
    for backend in backends:
        torch._dynamo.reset()
        messages.clear()
        m, x = fresh(torch.float32)
        begin = time.time()
        try:
            got = results(m, x, torch.compile(m, backend=backend_of(backend)))
            wrong = judge(got, eager, reference)
            row[backend] = {"ok": not wrong, "wrong": wrong[:5], "s": round(time.time() - begin, 1)}
        except Exception as e:  # noqa: BLE001 - a failure is a row
            row[backend] = {
                "ok": False,
                "error": f"{type(e).__name__}: {e}"[-1500:],
                "s": round(time.time() - begin, 1),
            }
        if backend.startswith("aothost"):
            row["nodes_in_eager"] = [t for t in messages if "run in eager" in t]
            row["breaks"] = sum(torch._dynamo.utils.counters["graph_break"].values())
            row["graphs"] = torch._dynamo.utils.counters["stats"].get("unique_graphs", 0)
    return row


def backend_of(name):
    if name == "aothost":
        from aothost.dynamo import backend

        return backend
    return name


def in_fork(name, timeout, run):
    """run(name) in a child that has all imports: a crash or a hang is a row, too."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            row = run(name)
        except BaseException as e:  # noqa: BLE001
            row = {"model": name, "skipped": f"{type(e).__name__}: {e}"[-800:]}
        with os.fdopen(write, "w") as f:
            f.write(json.dumps(row))
        os._exit(0)
    os.close(write)
    text, end = b"", time.time() + timeout
    while (left := end - time.time()) > 0 and select.select([read], [], [], left)[0]:
        part = os.read(read, 65536)
        if not part:
            break
        text += part
    else:
        os.kill(child, signal.SIGKILL)
    os.close(read)
    status = os.waitpid(child, 0)[1]
    return json.loads(text) if text else {"model": name, "skipped": f"ended with status {status}"}


def summary(row, backend):
    """One backend of a row in a few words."""
    found = row.get(backend, {})
    if found.get("ok"):
        return "ok"
    return (found.get("wrong") or [str(found.get("error", row.get("skipped", "")))[-200:]])[0]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("patterns", nargs="*", default=["*"])
    p.add_argument("--backends", default="aothost")
    p.add_argument("--out")
    p.add_argument("--timeout", type=float, default=600)
    a = p.parse_args()
    backends = a.backends.split(",")
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import timm  # noqa: F401 - children have it
    import torch._dynamo.backends.common  # noqa: F401
    import transformers  # noqa: F401
    from models import models

    names = [n for n in models() if any(fnmatch.fnmatch(n, q) for q in a.patterns)]
    out = open(a.out, "a") if a.out else None
    passed = {b: 0 for b in backends}
    wrong = {b: [] for b in backends}
    failed = {b: [] for b in backends}
    for k, name in enumerate(names):
        row = in_fork(name, a.timeout, lambda name: run_one(name, backends))
        for b in backends:
            r = row.get(b, {})
            passed[b] += bool(r.get("ok"))
            if r.get("wrong"):
                wrong[b].append(name)
            if "error" in r or not r:
                failed[b].append(name)
        if out:
            out.write(json.dumps(row) + "\n")
            out.flush()
        text = "  ".join(f"{b}: {summary(row, b)}" for b in backends)
        print(f"{k + 1}/{len(names)} {name}  {text}  {row.get('nodes_in_eager') or ''}", flush=True)
    for b in backends:
        print(
            f"{b}: {passed[b]} of {len(names)} pass, {len(wrong[b])} wrong {wrong[b]}, {len(failed[b])} do not run {failed[b]}"
        )
    return any(wrong.values())


if __name__ == "__main__":
    sys.exit(main())
