#!/usr/bin/env python3
"""Hugging Face's Trainer with aothost: the model is compiled in place before the Trainer has it.

    pip install transformers accelerate
    python examples/python/hf_trainer.py

A small GPT-2 of random weights over bytes; nothing is downloaded. TrainingArguments(torch_compile_backend="aothost") is
refused by accelerate (1.15), which has a list of the backends that it allows.
"""

from __future__ import annotations

import argparse
import pathlib
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

TEXT = pathlib.Path(__file__).resolve().parents[1] / "data/opticks.txt"


class Bytes(Dataset):
    """Pieces of a text as tokens, each its own label (the model shifts them)."""

    def __init__(self, path: pathlib.Path, length: int):
        text = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8).long()
        self.pieces = text[: len(text) // length * length].view(-1, length)

    def __len__(self) -> int:
        return len(self.pieces)

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.pieces[i], "labels": self.pieces[i]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    given = parser.parse_args()

    config = GPT2Config(vocab_size=256, n_positions=64, n_embd=96, n_layer=3, n_head=4, bos_token_id=0, eos_token_id=0)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=given.steps,
            per_device_train_batch_size=16,
            learning_rate=2e-3,
            logging_steps=20,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            seed=0,
        )
        model = GPT2LMHeadModel(config)
        model.compile(backend="aothost")
        trainer = Trainer(model=model, args=arguments, train_dataset=Bytes(TEXT, config.n_positions))
        result = trainer.train()
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    print(f"losses {losses}; {result.metrics['train_steps_per_second']:.1f} steps a second, with compilation")


if __name__ == "__main__":
    main()
