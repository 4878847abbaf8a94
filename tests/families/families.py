"""One layer each of what bench/torch measures and tests/fixtures/models has not: as Hugging Face and torchvision write it.

    tools/export_model.py tests/families/families.py:NAME tests/families/NAME --no-expected
"""
import torch


class OwnLoss(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, labels):
        return self.model(input_ids=ids, labels=labels).loss


class Loss(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, target):
        return torch.nn.functional.cross_entropy(self.model(x), target)


def bert():
    from transformers import BertConfig, BertForMaskedLM
    ids = torch.randint(0, 60, (3, 40))
    config = BertConfig(vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
                        max_position_embeddings=40, hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    return OwnLoss(BertForMaskedLM(config)).train(), (ids, ids.clone())


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    ids = torch.randint(0, 60, (3, 40))
    config = LlamaConfig(vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
                         num_key_value_heads=1, use_cache=False)
    return OwnLoss(LlamaForCausalLM(config)).train(), (ids, ids.clone())


def convnext():
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt
    model = ConvNeXt([CNBlockConfig(8, 16, 1), CNBlockConfig(16, None, 1)], num_classes=10, stochastic_depth_prob=0.0)
    return Loss(model).train(), (torch.randn(2, 3, 32, 32), torch.randint(0, 10, (2,)))
