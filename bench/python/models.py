"""Models for bench/python: {name: () -> (module, inputs, loss)}. Small sizes: what counts is the graph.

Families: transformers from configurations of two layers, timm and torchvision at small images, and hand-written ones.
"""

from __future__ import annotations

import functools
from typing import Any, Callable

import torch
from torch import nn

Case = Callable[[], tuple[nn.Module, tuple[Any, ...]]]


# ---- transformers ----


class Outputs(nn.Module):
    """A Hugging Face model as a function of tensors: a loss of all float outputs, or the model's own."""

    def __init__(self, model: nn.Module, keys: tuple[str, ...], labels: bool):
        super().__init__()
        self.model, self.keys, self.labels = model, keys, labels

    def forward(self, *inputs: torch.Tensor) -> Any:
        given = dict(zip(self.keys, inputs))
        out = self.model(**given)
        if getattr(out, "loss", None) is not None:
            return out.loss
        return out[0]


COMMON = dict(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    vocab_size=99,
    max_position_embeddings=64,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    dropout=0.0,
    attention_dropout=0.0,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    use_cache=False,
)
LLAMA = dict(COMMON, num_key_value_heads=2, head_dim=8)
BART = dict(
    COMMON,
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=64,
    decoder_ffn_dim=64,
    activation_dropout=0.0,
    decoder_start_token_id=2,
    max_source_positions=64,
    max_target_positions=64,
)
T5 = dict(
    vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0.0, decoder_start_token_id=0
)
GPT = dict(
    vocab_size=99,
    n_positions=64,
    n_embd=32,
    n_layer=2,
    n_head=4,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
    use_cache=False,
)
VISION = dict(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    image_size=32,
    patch_size=8,
    num_channels=3,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    num_labels=5,
)

# Class of the model, settings of its configuration.
CAUSAL = {
    "GPT2LMHeadModel": GPT,
    "GPTNeoForCausalLM": dict(
        COMMON,
        num_layers=2,
        num_heads=4,
        attention_types=[[["global", "local"], 1]],
        resid_dropout=0.0,
        embed_dropout=0.0,
        window_size=8,
    ),
    "GPTJForCausalLM": dict(GPT, rotary_dim=4),
    "GPTBigCodeForCausalLM": GPT,
    "GPTNeoXForCausalLM": COMMON,
    "OpenAIGPTLMHeadModel": GPT,
    "CodeGenForCausalLM": dict(GPT, rotary_dim=4),
    "LlamaForCausalLM": LLAMA,
    "MistralForCausalLM": dict(LLAMA, sliding_window=8),
    "Qwen2ForCausalLM": LLAMA,
    "Qwen3ForCausalLM": LLAMA,
    "GemmaForCausalLM": LLAMA,
    "Gemma2ForCausalLM": dict(LLAMA, sliding_window=8, query_pre_attn_scalar=8),
    "Gemma3ForCausalLM": dict(LLAMA, sliding_window=8, query_pre_attn_scalar=8),
    "PhiForCausalLM": dict(COMMON, resid_pdrop=0.0, embd_pdrop=0.0, partial_rotary_factor=0.5),
    "Phi3ForCausalLM": dict(LLAMA, resid_pdrop=0.0, embd_pdrop=0.0),
    "StableLmForCausalLM": LLAMA,
    "OlmoForCausalLM": LLAMA,
    "Olmo2ForCausalLM": LLAMA,
    "CohereForCausalLM": LLAMA,
    "GraniteForCausalLM": LLAMA,
    "FalconForCausalLM": dict(COMMON, multi_query=True),
    "BloomForCausalLM": dict(COMMON, n_layer=2, n_head=4, hidden_dropout=0.0),
    "OPTForCausalLM": dict(COMMON, ffn_dim=64, word_embed_proj_dim=32),
    "MptForCausalLM": dict(vocab_size=99, d_model=32, n_heads=4, n_layers=2, max_seq_len=64, use_cache=False),
    "BioGptForCausalLM": dict(COMMON, activation_dropout=0.0, layerdrop=0.0),
    "Starcoder2ForCausalLM": dict(LLAMA, residual_dropout=0.0, embedding_dropout=0.0),
    "NemotronForCausalLM": LLAMA,
    "PersimmonForCausalLM": dict(COMMON, hidden_dropout=0.0),
    "HeliumForCausalLM": LLAMA,
    "SmolLM3ForCausalLM": LLAMA,
    "Glm4ForCausalLM": LLAMA,
    "GlmForCausalLM": LLAMA,
    "ErnieForCausalLM": COMMON,
    "BertLMHeadModel": dict(COMMON, is_decoder=True),
    "RobertaForCausalLM": dict(COMMON, is_decoder=True),
    "ElectraForCausalLM": dict(COMMON, embedding_size=32, is_decoder=True),
    "MambaForCausalLM": dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, state_size=8, use_cache=False),
    "RwkvForCausalLM": dict(
        vocab_size=99, hidden_size=32, attention_hidden_size=32, num_hidden_layers=2, context_length=64, use_cache=False
    ),
    "CTRLLMHeadModel": dict(
        vocab_size=99,
        n_positions=64,
        n_embd=32,
        n_layer=2,
        n_head=4,
        dff=64,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        use_cache=False,
    ),
}
MASKED = {
    "BertForMaskedLM": COMMON,
    "RobertaForMaskedLM": COMMON,
    "DistilBertForMaskedLM": dict(
        vocab_size=99,
        dim=32,
        n_layers=2,
        n_heads=4,
        hidden_dim=64,
        dropout=0.0,
        attention_dropout=0.0,
        max_position_embeddings=64,
    ),
    "AlbertForMaskedLM": dict(COMMON, embedding_size=16),
    "ElectraForMaskedLM": dict(COMMON, embedding_size=16),
    "MPNetForMaskedLM": COMMON,
    "CamembertForMaskedLM": COMMON,
    "DebertaForMaskedLM": dict(COMMON, relative_attention=True, pos_att_type=["c2p", "p2c"], max_relative_positions=16),
    "DebertaV2ForMaskedLM": dict(
        COMMON, relative_attention=True, pos_att_type=["c2p", "p2c"], max_relative_positions=16
    ),
    "FNetForMaskedLM": COMMON,
    "LayoutLMForMaskedLM": COMMON,
    "MobileBertForMaskedLM": dict(COMMON, embedding_size=16, true_hidden_size=32, intra_bottleneck_size=32),
    "SqueezeBertForMaskedLM": dict(COMMON, embedding_size=32),
    "XLMRobertaForMaskedLM": COMMON,
    "RoFormerForMaskedLM": dict(COMMON, embedding_size=32),
    "YosoForMaskedLM": COMMON,
    "ConvBertForMaskedLM": dict(COMMON, embedding_size=32, head_ratio=2),
    "FunnelForMaskedLM": dict(
        vocab_size=99,
        d_model=32,
        n_head=4,
        d_head=8,
        d_inner=64,
        block_sizes=[1, 1],
        hidden_dropout=0.0,
        attention_dropout=0.0,
    ),
    "ModernBertForMaskedLM": dict(
        COMMON, embedding_dropout=0.0, mlp_dropout=0.0, attention_dropout=0.0, reference_compile=False
    ),
    "EsmForMaskedLM": dict(COMMON, mask_token_id=3, token_dropout=False),
    "MegatronBertForMaskedLM": COMMON,
    "Data2VecTextForMaskedLM": COMMON,
    "RemBertForMaskedLM": dict(COMMON, input_embedding_size=32, output_embedding_size=32, classifier_dropout_prob=0.0),
    "IBertForMaskedLM": COMMON,
    "XLMWithLMHeadModel": dict(
        vocab_size=99, emb_dim=32, n_layers=2, n_heads=4, dropout=0.0, attention_dropout=0.0, max_position_embeddings=64
    ),
}
SEQ2SEQ = {
    "T5ForConditionalGeneration": T5,
    "MT5ForConditionalGeneration": T5,
    "UMT5ForConditionalGeneration": T5,
    "BartForConditionalGeneration": BART,
    "MBartForConditionalGeneration": BART,
    "PegasusForConditionalGeneration": BART,
    "BlenderbotForConditionalGeneration": BART,
    "BlenderbotSmallForConditionalGeneration": BART,
    "MarianMTModel": BART,
    "M2M100ForConditionalGeneration": BART,
    "PLBartForConditionalGeneration": BART,
    "LEDForConditionalGeneration": dict(
        BART, attention_window=8, max_encoder_position_embeddings=64, max_decoder_position_embeddings=64
    ),
    "ProphetNetForConditionalGeneration": dict(
        vocab_size=99,
        hidden_size=32,
        encoder_ffn_dim=64,
        num_encoder_layers=2,
        num_encoder_attention_heads=4,
        decoder_ffn_dim=64,
        num_decoder_layers=2,
        num_decoder_attention_heads=4,
        attention_dropout=0.0,
        dropout=0.0,
        activation_dropout=0.0,
        max_position_embeddings=64,
        decoder_start_token_id=1,
    ),
    "SwitchTransformersForConditionalGeneration": dict(
        T5, num_experts=2, num_sparse_encoder_layers=1, num_sparse_decoder_layers=1, num_decoder_layers=2
    ),
}
IMAGES = {
    "ViTForImageClassification": VISION,
    "DeiTForImageClassification": VISION,
    "BeitForImageClassification": VISION,
    "ViTMSNForImageClassification": VISION,
    "Dinov2ForImageClassification": VISION,
    "Data2VecVisionForImageClassification": VISION,
    "SwinForImageClassification": dict(
        image_size=32, patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[2, 4], window_size=4, num_labels=5
    ),
    "Swinv2ForImageClassification": dict(
        image_size=32, patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[2, 4], window_size=4, num_labels=5
    ),
    "ConvNextForImageClassification": dict(hidden_sizes=[16, 32], depths=[1, 1], num_stages=2, num_labels=5),
    "ConvNextV2ForImageClassification": dict(hidden_sizes=[16, 32], depths=[1, 1], num_stages=2, num_labels=5),
    "ResNetForImageClassification": dict(
        embedding_size=8, hidden_sizes=[16, 32], depths=[1, 1], layer_type="basic", num_labels=5
    ),
    "RegNetForImageClassification": dict(
        embedding_size=8, hidden_sizes=[16, 32], depths=[1, 1], groups_width=8, num_labels=5
    ),
    "MobileNetV2ForImageClassification": dict(image_size=32, num_labels=5),
    "MobileNetV1ForImageClassification": dict(image_size=32, num_labels=5),
    "PoolFormerForImageClassification": dict(
        hidden_sizes=[16, 32],
        depths=[1, 1],
        num_encoder_blocks=2,
        patch_sizes=[7, 3],
        strides=[4, 2],
        padding=[2, 1],
        mlp_ratio=2,
        num_labels=5,
    ),
    "SegformerForImageClassification": dict(
        num_encoder_blocks=2,
        depths=[1, 1],
        sr_ratios=[4, 1],
        hidden_sizes=[16, 32],
        patch_sizes=[7, 3],
        strides=[4, 2],
        num_attention_heads=[1, 2],
        mlp_ratios=[2, 2],
        num_labels=5,
        hidden_dropout_prob=0.0,
        drop_path_rate=0.0,
        classifier_dropout_prob=0.0,
    ),
    "PvtForImageClassification": dict(
        image_size=32,
        num_encoder_blocks=2,
        depths=[1, 1],
        sequence_reduction_ratios=[4, 1],
        hidden_sizes=[16, 32],
        patch_sizes=[4, 2],
        strides=[4, 2],
        num_attention_heads=[1, 2],
        mlp_ratios=[2, 2],
        num_labels=5,
        drop_path_rate=0.0,
    ),
    "LevitForImageClassification": dict(
        image_size=64,
        hidden_sizes=[16, 32, 48],
        num_attention_heads=[2, 2, 2],
        depths=[1, 1, 1],
        key_dim=[8, 8, 8],
        num_labels=5,
    ),
    "FocalNetForImageClassification": dict(
        image_size=32,
        patch_size=4,
        embed_dim=16,
        depths=[1, 1],
        focal_levels=[1, 1],
        focal_windows=[3, 3],
        num_labels=5,
    ),
    "BitForImageClassification": dict(embedding_size=32, hidden_sizes=[32, 64], depths=[1, 1], num_labels=5),
    "CvtForImageClassification": dict(
        num_labels=5,
        embed_dim=[16, 32],
        depth=[1, 1],
        num_heads=[1, 2],
        patch_sizes=[7, 3],
        patch_stride=[4, 2],
        patch_padding=[2, 1],
        mlp_ratio=[2.0, 2.0],
        attention_drop_rate=[0.0, 0.0],
        drop_rate=[0.0, 0.0],
        drop_path_rate=[0.0, 0.0],
        qkv_bias=[True, True],
        cls_token=[False, True],
        qkv_projection_method=["dw_bn", "dw_bn"],
        kernel_qkv=[3, 3],
        padding_kv=[1, 1],
        stride_kv=[2, 2],
        padding_q=[1, 1],
        stride_q=[1, 1],
    ),
}


def hugging_face(name: str, settings: dict[str, Any], kind: str) -> tuple[nn.Module, tuple[Any, ...]]:
    import transformers

    cls = getattr(transformers, name)
    config = cls.config_class(**settings)
    model = cls(config)
    ids = torch.randint(4, 90, (2, 16))
    if kind == "image":
        size = getattr(config, "image_size", 32) or 32
        size = size if isinstance(size, int) else 32
        keys, inputs = ("pixel_values", "labels"), (
            torch.randn(2, 3, max(size, 32), max(size, 32)),
            torch.tensor([1, 3]),
        )
    elif kind == "seq2seq":
        keys, inputs = ("input_ids", "decoder_input_ids", "labels"), (
            ids,
            ids.flip(1).contiguous(),
            ids.roll(1, 1).contiguous(),
        )
    else:
        keys, inputs = ("input_ids", "labels"), (ids, ids.roll(1, 1).contiguous())
    return Outputs(model, keys, True), inputs


# ---- timm and torchvision ----


class Classified(nn.Module):
    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = self.model(x)
        out = out if isinstance(out, torch.Tensor) else out[0]
        return nn.functional.cross_entropy(out.flatten(1), y)


TIMM = """test_byobnet test_convnext test_convnext2 test_convnext3 test_efficientnet test_efficientnet_gn test_efficientnet_ln
test_efficientnet_evos test_mambaout test_nfnet test_resnet test_vit test_vit2 test_vit3 test_vit4
resnet10t resnext26ts seresnext26ts gcresnext26ts eca_resnext26ts lcnet_050 mobilenetv3_small_050 tinynet_e ghostnet_050
mnasnet_small hardcorenas_a edgenext_xx_small mobilevit_xxs mobilevitv2_050 efficientformerv2_s0 fastvit_t8 repvgg_a0
convnext_atto convnextv2_atto regnetx_002 regnety_002 dla46_c xcit_nano_12_p16_224 levit_128s pit_ti_224 cait_xxs24_224
crossvit_tiny_240 poolformer_s12 visformer_tiny tiny_vit_5m_224 efficientvit_b0 efficientvit_m0 repvit_m0_9 hgnetv2_b0
gmixer_12_224 resmlp_12_224 mixer_s32_224 gmlp_ti16_224 coat_lite_tiny nest_tiny twins_pcpvt_small botnet26t_256
halonet26t lambda_resnet26t skresnet18 selecsls42 spnasnet_100 semnasnet_075 densenet121 dpn48b darknet17 cs3darknet_s
vovnet39a ese_vovnet19b_dw inception_next_atto starnet_s1 rexnet_100 sequencer2d_s res2net50_14w_8s""".split()
TORCHVISION = """alexnet vgg11_bn resnet18 resnet50 resnext50_32x4d wide_resnet50_2 squeezenet1_1 shufflenet_v2_x0_5
shufflenet_v2_x1_0 mobilenet_v2 mobilenet_v3_small mnasnet0_5 efficientnet_b0 regnet_y_400mf regnet_x_400mf convnext_tiny
swin_t swin_v2_t vit_b_16 maxvit_t densenet121 googlenet inception_v3""".split()


def of_timm(name: str) -> tuple[nn.Module, tuple[Any, ...]]:
    import timm

    size = {"crossvit_tiny_240": 240}.get(name)
    try:
        model = timm.create_model(name, num_classes=5, drop_rate=0.0)
    except TypeError:
        model = timm.create_model(name, num_classes=5)
    wanted = (
        model.default_cfg.get("input_size", (3, 96, 96))[1] if model.default_cfg.get("fixed_input_size") else size or 96
    )
    return Classified(model), (torch.randn(2, 3, wanted, wanted), torch.tensor([1, 3]))


def of_torchvision(name: str) -> tuple[nn.Module, tuple[Any, ...]]:
    import torchvision

    extra = dict(aux_logits=False, init_weights=False) if name in ("googlenet", "inception_v3") else {}
    model = getattr(torchvision.models, name)(num_classes=5, **extra)
    size = {"inception_v3": 96, "vit_b_16": 224, "maxvit_t": 224}.get(name, 64)
    return Classified(model), (torch.randn(2, 3, size, size), torch.tensor([1, 3]))


# ---- hand-written ----


class Recurrent(nn.Module):
    def __init__(self, cell: type[nn.Module]):
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(50, 16), cell(16, 24, 2, batch_first=True), nn.Linear(24, 50)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, _ = self.cell(self.embed(x))
        return nn.functional.cross_entropy(self.head(h[:, :-1]).flatten(0, 1), x[:, 1:].flatten())


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2 = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1, stride=2)
        self.norm, self.up, self.out = nn.GroupNorm(4, 16), nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.down1(x).relu()
        b = self.norm(self.down2(a)).relu()
        return self.out(torch.cat([a, self.up(b)], 1)).sigmoid().mean()


class Buffers(nn.Module):
    """A step counter, a moving average and batch norm: buffers that the forward updates."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.lin = nn.BatchNorm1d(8), nn.Linear(8, 8)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.steps.add_(1)
        self.mean.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
        return self.norm(self.lin(x - self.mean)).square().mean() * (1 + 0 * self.steps)


class Mixed(nn.Module):
    """Gathers, scatters, cumulative sums, sorts and a masked softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(12, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.lin(x)
        top, index = h.topk(4, -1)
        out = torch.zeros_like(h).scatter_add(-1, index, top.cumsum(-1))
        mask = torch.ones(12, 12, dtype=torch.bool).tril()
        scores = (out.unsqueeze(-1) * h.unsqueeze(-2)).masked_fill(~mask, float("-inf"))
        return (scores.softmax(-1) @ h.sort(-1).values.unsqueeze(-1)).logsumexp(1).mean()


HAND = {
    "mlp": lambda: (nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1)), (torch.randn(6, 8),)),
    "lstm": lambda: (Recurrent(nn.LSTM), (torch.randint(0, 50, (3, 9)),)),
    "gru": lambda: (Recurrent(nn.GRU), (torch.randint(0, 50, (3, 9)),)),
    "rnn": lambda: (Recurrent(nn.RNN), (torch.randint(0, 50, (3, 9)),)),
    "unet": lambda: (UNet(), (torch.randn(2, 3, 16, 16),)),
    "buffers": lambda: (Buffers(), (torch.randn(6, 8),)),
    "mixed": lambda: (Mixed(), (torch.randn(3, 12),)),
    "encoder": lambda: (nn.TransformerEncoderLayer(16, 4, 32, 0.0, batch_first=True), (torch.randn(2, 5, 16),)),
    "decoder": lambda: (
        nn.TransformerDecoderLayer(16, 4, 32, 0.0, batch_first=True),
        (torch.randn(2, 5, 16), torch.randn(2, 7, 16)),
    ),
    "conv1d": lambda: (
        nn.Sequential(nn.Conv1d(4, 8, 3, padding=1), nn.BatchNorm1d(8), nn.ReLU(), nn.AdaptiveAvgPool1d(1)),
        (torch.randn(2, 4, 11),),
    ),
    "conv3d": lambda: (
        nn.Sequential(nn.Conv3d(2, 4, 3), nn.InstanceNorm3d(4), nn.MaxPool3d(2)),
        (torch.randn(2, 2, 8, 8, 8),),
    ),
    "bag": lambda: (nn.EmbeddingBag(20, 8, mode="sum"), (torch.randint(0, 20, (3, 5)),)),
}


def models() -> dict[str, Case]:
    table: dict[str, Case] = dict(HAND)
    for kind, rows in (("causal", CAUSAL), ("masked", MASKED), ("seq2seq", SEQ2SEQ), ("image", IMAGES)):
        for name, settings in rows.items():
            table[name] = functools.partial(hugging_face, name, settings, kind)
    for name in TIMM:
        table["timm/" + name] = functools.partial(of_timm, name)
    for name in TORCHVISION:
        table["torchvision/" + name] = functools.partial(of_torchvision, name)
    return table
