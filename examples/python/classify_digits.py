#!/usr/bin/env python3
"""An image classifier: scikit-learn's 1,797 handwritten digits of 8 by 8; convolutions, BatchNorm and dropout.

    pip install scikit-learn
    python examples/python/classify_digits.py

Training and evaluation are two graphs of the same model; the last batch of an epoch is smaller, so that sizes become
dynamic on their own.
"""

from __future__ import annotations

import argparse
import time

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(32 * 16, 10),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--backend", default="aothost", help="of torch.compile")
    given = parser.parse_args()

    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    data = TensorDataset(images, torch.tensor(digits.target))
    training, held_out = random_split(data, [1400, len(data) - 1400])

    model = network()
    compiled = torch.compile(model, backend=given.backend)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, given.epochs)
    for epoch in range(given.epochs):
        start, total = time.perf_counter(), 0.0
        model.train()
        for x, y in DataLoader(training, batch_size=64, shuffle=True):
            optimizer.zero_grad()
            loss = F.cross_entropy(compiled(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        schedule.step()
        model.eval()
        with torch.no_grad():
            right = sum(int((compiled(x).argmax(1) == y).sum()) for x, y in DataLoader(held_out, batch_size=128))
        print(
            f"epoch {epoch + 1}: loss {total / len(training):.4f}, "
            f"{100 * right / len(held_out):.1f} % of held-out digits, {time.perf_counter() - start:.1f} s"
        )


if __name__ == "__main__":
    main()
