"""Language models with experts, of transformers: small, random weights, one layer.

Made anew with, for each factory NAME below (transformers 5, offline), and stack traces taken out of the archive:

    python tools/export_model.py tests/models/experts_models.py:NAME tests/models/NAME
"""

import torch
import transformers
from torch import nn

COMMON = dict(vocab_size=32, hidden_size=8, intermediate_size=12, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
              max_position_embeddings=16, num_local_experts=3, num_experts_per_tok=2, pad_token_id=0, bos_token_id=1, eos_token_id=2)


class WithLoss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens, labels):
        return self.model(input_ids=tokens, labels=labels, use_cache=False).loss


def make(name, **config):
    model = getattr(transformers, name + "ForCausalLM")(getattr(transformers, name + "Config")(**COMMON, **config))
    return WithLoss(model), (torch.randint(0, 32, (2, 5)), torch.randint(0, 32, (2, 5)))


def experts_mixtral():
    """transformers.grouped_mm_fallback, the rows of an expert in one stretch."""
    return make("Mixtral")


def experts_gpt_oss():
    """Experts with biases and a clamped gate; attention sinks and a sliding window."""
    return make("GptOss", head_dim=4, sliding_window=3, layer_types=["sliding_attention"])


def dynamic_experts():
    """JetMoE: split_with_sizes by counts that a run tells, whose sum the archive asserts."""
    return make("JetMoe", kv_channels=4)
