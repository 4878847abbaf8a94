# in:   the folder of a model fixture (train.pt2, expected.safetensors), PyTorch 2.11
# out:  the losses that check_optimizers.sh expects of clipped and accumulated steps
# who:  who changes those lines
import sys

import torch
from safetensors.torch import load_file


def last_loss(folder, make, steps, accumulate=1, clip=None):
    model = torch.export.load(folder + "/train.pt2").module()
    recorded = load_file(folder + "/expected.safetensors")
    inputs = [recorded[f"input.{i}"] for i in range(sum(k.startswith("input.") for k in recorded))]
    optimizer = make(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        total = 0.0
        for _ in range(accumulate):
            out = model(*inputs)
            loss = (out[0] if isinstance(out, (tuple, list)) else out) / accumulate
            loss.backward()
            total += loss.item()
        if clip:
            torch.nn.utils.clip_grad_norm_(list(model.parameters()), clip)
        optimizer.step()
    return total


sgd = lambda p: torch.optim.SGD(p, lr=0.05)
adamw = lambda p: torch.optim.AdamW(p, lr=0.05)
print("sgd, clip-norm 0.5:", last_loss(sys.argv[1], sgd, 30, clip=0.5))
print("sgd, accumulate 2:", last_loss(sys.argv[1], sgd, 30, accumulate=2))
print("adamw, accumulate 3, clip-norm 0.1:", last_loss(sys.argv[1], adamw, 4, accumulate=3, clip=0.1))
