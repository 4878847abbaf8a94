# in:   OUT_DIR, folders of fixtures (train.pt2, expected.safetensors); PyTorch 2.11
# out:  OUT_DIR/NAME.safetensors: what PyTorch gives for their inputs under torch.autocast("cpu", bfloat16), and
#       OUT_DIR/NAME.f64.safetensors: in float64, and how far the former is from it
# who:  who changes tests/fixtures/autocast, which e2e_autocast_NAME holds against float64 (docs/RUN.md has the keys)
import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file

sys.path.append(str(pathlib.Path(__file__).parents[2] / "tools"))
from float64_records import float64_records, tie_parameters  # noqa: E402


def record(folder):
    module = torch.export.load(folder / "train.pt2").module()
    tie_parameters(module)
    kept = {k: v for k, v in load_file(folder / "expected.safetensors").items() if k.split(".")[0] in ("input", "tangent")}
    inputs = [kept[f"input.{i}"] for i in range(sum(k.startswith("input.") for k in kept))]
    with torch.autocast("cpu", torch.bfloat16):
        out = module(*inputs)
    outputs = [o.float() for o in (out if isinstance(out, (tuple, list)) else [out])]  # a program keeps its outputs' dtypes
    tangents = [(o, kept[f"tangent.{k}"]) for k, o in enumerate(outputs) if f"tangent.{k}" in kept]
    torch.autograd.backward([o for o, _ in tangents], [t for _, t in tangents])
    kept |= {f"output.{k}": o.detach() for k, o in enumerate(outputs)}
    kept |= {f"grad.{n}": p.grad for n, p in module.named_parameters() if p.grad is not None}
    module.zero_grad()
    return kept, float64_records(module, tuple(inputs), {}, 0, kept, n_nudged=0)


torch.set_num_threads(1)
out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
for folder in map(pathlib.Path, sys.argv[2:]):
    for ending, values in zip(("", ".f64"), record(folder)):
        save_file({k: v.contiguous().clone() for k, v in sorted(values.items())}, out / f"{folder.name}{ending}.safetensors")
