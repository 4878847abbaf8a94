# in:   the folder of a model fixture (train.pt2, expected.safetensors), PyTorch 2.11
# out:  the losses that check_optimizers.sh expects of clipped and accumulated steps
# who:  who changes those lines; run with tests/fixtures/models/mlp, gpt_tiny for those of mixed precision
import sys

import torch
from safetensors.torch import load_file


def last_loss(folder, make, steps, accumulate=1, clip=None, precision=None, archive="train.pt2", scale=None):
    """The loss of the last step; with the settings of a GradScaler also its scale and how many steps it skipped."""
    model = torch.export.load(f"{folder}/{archive}").module()
    recorded = load_file(folder + "/expected.safetensors")
    inputs = [recorded[f"input.{i}"] for i in range(sum(k.startswith("input.") for k in recorded))]
    optimizer = make(model.parameters())
    scaler = torch.amp.GradScaler("cpu", enabled=scale is not None, **(scale or {}))
    skipped = 0
    for _ in range(steps):
        optimizer.zero_grad()
        total = 0.0
        for _ in range(accumulate):
            with torch.autocast("cpu", precision, enabled=precision is not None):
                out = model(*inputs)
                loss = (out[0] if isinstance(out, (tuple, list)) else out) / accumulate
            scaler.scale(loss).backward()
            total += loss.item()
        scaler.unscale_(optimizer)
        if clip:
            torch.nn.utils.clip_grad_norm_(list(model.parameters()), clip)
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        skipped += scaler.get_scale() < before
    return (total, scaler.get_scale(), skipped) if scale is not None else total


sgd = lambda p: torch.optim.SGD(p, lr=0.05)
adamw = lambda p: torch.optim.AdamW(p, lr=0.05)
print("sgd, clip-norm 0.5:", last_loss(sys.argv[1], sgd, 30, clip=0.5))
print("sgd, accumulate 2:", last_loss(sys.argv[1], sgd, 30, accumulate=2))
print("adamw, accumulate 3, clip-norm 0.1:", last_loss(sys.argv[1], adamw, 4, accumulate=3, clip=0.1))
for precision in (torch.bfloat16, torch.float16):
    for archive in ("train.pt2", "core.pt2"):  # as exported, and decomposed: PyTorch's own spread
        last = last_loss(sys.argv[1], sgd, 6, accumulate=4, clip=1.0, precision=precision, archive=archive)
        print(f"sgd, accumulate 4, clip-norm 1.0, {precision}, {archive}:", last)
scales = (
    {},
    {"init_scale": 2.0**34, "growth_interval": 3},
    {"init_scale": 3e9, "backoff_factor": 0.3, "growth_factor": 1.7, "growth_interval": 2},
)
for name, make in (("sgd", sgd), ("adamw, lr 0.01", lambda p: torch.optim.AdamW(p, lr=0.01))):
    for scale in scales:
        last = last_loss(sys.argv[1], make, 12, 4, 1.0, torch.float16, scale=scale)
        print(f"{name}, accumulate 4, clip-norm 1.0, float16, {scale}, 12 steps: loss, scale, skipped", *last)
