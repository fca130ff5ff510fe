"""Families of backbones: the library's classes, and what transfer takes out of them and puts in."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    AutoModel,
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2Model,
    LongformerConfig,
    LongformerModel,
    T5Config,
    T5EncoderModel,
    ViTConfig,
    ViTModel,
)
from transformers.models.longformer.modeling_longformer import LongformerSelfAttention
from transformers.models.t5.modeling_t5 import T5Attention
from transformers.models.vit.modeling_vit import ViTAttention

from fpt.models import forwards, lstm
from fpt.models.forwards import Rows, causal_mask, padding_mask
from fpt.models.layers import give_dropout


def prepare_longformer(model: nn.Module, tokens: int) -> None:
    """Dropout of our own; the scale of the scores, which the library applies to the queries."""
    give_dropout(model, LongformerSelfAttention)
    for module in model.modules():
        if isinstance(module, LongformerSelfAttention):
            module.scaling = module.head_dim**-0.5


def prepare_vit(model: Any, tokens: int) -> None:
    """Dropout of our own, and a position table of our own: the library's is for a grid of patches and a CLS token."""
    give_dropout(model, ViTAttention)
    model.embeddings.position_embeddings = nn.Parameter(torch.zeros(tokens, model.config.hidden_size))


@dataclass(frozen=True, kw_only=True)
class Family:
    """What differs between architectures; one row of FAMILIES each.

    A family may have no position table, and its config no attention heads.
    """

    config: Callable[..., Any]  # the library's config class, or one like it: `hidden_size`, maybe heads
    model: Callable[[Any], nn.Module]  # config -> the part of the library's model that is used
    depth: str  # config field: number of layers
    mask: Callable[[Tensor, Tensor | None], Tensor | None]  # embedded, lengths -> what `run` takes
    run: Callable[[Any, Tensor, Any, Rows], Tensor]  # model, embedded, mask, rows -> hidden at the read-out positions
    replaced: tuple[str, ...]  # modules and parameters that `model` has and the input layer replaces
    unused: tuple[str, ...]  # the same of `whole`, and everything else that is not in `model`
    fixed: dict[str, Any] = field(default_factory=dict)  # config fields set here
    context: str | None = None  # config field: rows of the position table
    positions: str | None = None  # parameter name of the position table, inside the library model; None: has none
    first_position: int = 0  # row of the first token's position
    new_positions: bool = False  # a table of ours, which starts from zeros where the rest is pretrained
    initial_value: Callable[..., Tensor] | None = None  # random values, where the rules are not GPT-2's
    prepare: Callable[[Any, int], None] | None = None  # model, tokens: other changes, before our layers go in
    reach: Callable[[Any, int], int] = lambda config, tokens: tokens  # how many tokens one attends to
    whole: Callable[[Any], nn.Module] = AutoModel.from_config  # config -> the model that its authors published
    load: Callable[..., Any] = AutoModel.from_pretrained  # a folder -> the pretrained model, `output_loading_info`


BERT_REPLACED = ("embeddings.word_embeddings",)

FAMILIES = {
    "gpt2": Family(
        config=GPT2Config,
        model=GPT2Model,
        depth="n_layer",
        mask=causal_mask,
        run=forwards.run_gpt2,
        replaced=("wte",),
        unused=("wte",),
        # gelu_pytorch_tanh is gelu_new in one kernel
        fixed={"activation_function": "gelu_pytorch_tanh", "use_cache": False, "vocab_size": 1},
        context="n_positions",
        positions="wpe.weight",
    ),
    "bert": Family(
        config=BertConfig,
        model=lambda config: BertModel(config, add_pooling_layer=False),
        depth="num_hidden_layers",
        mask=padding_mask,
        run=forwards.run_bert,
        replaced=BERT_REPLACED,
        unused=(*BERT_REPLACED, "pooler"),
        fixed={"use_cache": False, "vocab_size": 1},
        context="max_position_embeddings",
        positions="embeddings.position_embeddings.weight",
    ),
    "t5": Family(
        config=T5Config,
        model=T5EncoderModel,
        depth="num_layers",
        mask=padding_mask,
        run=forwards.run_t5,
        replaced=("shared", "encoder.embed_tokens"),
        unused=("shared", "decoder"),  # lm_head is the token table once more
        fixed={"vocab_size": 1},
        prepare=lambda model, tokens: give_dropout(model, T5Attention),
        load=T5EncoderModel.from_pretrained,
    ),
    "longformer": Family(
        config=LongformerConfig,
        model=lambda config: LongformerModel(config, add_pooling_layer=False),
        depth="num_hidden_layers",
        mask=padding_mask,
        run=forwards.run_longformer,
        replaced=BERT_REPLACED,
        unused=(*BERT_REPLACED, "pooler"),
        fixed={"vocab_size": 1, "sep_token_id": None},
        context="max_position_embeddings",
        positions="embeddings.position_embeddings.weight",
        first_position=2,  # as in RoBERTa: the padding token has id 1, and positions count from the next one
        prepare=prepare_longformer,
        reach=lambda config, tokens: min(tokens, 3 * max(config.attention_window) // 2),
    ),
    "vit": Family(
        config=ViTConfig,
        model=lambda config: ViTModel(config, add_pooling_layer=False),
        depth="num_hidden_layers",
        mask=padding_mask,
        run=forwards.run_vit,
        replaced=("embeddings.patch_embeddings", "embeddings.cls_token"),
        unused=(
            "embeddings.patch_embeddings",
            "embeddings.cls_token",
            "embeddings.position_embeddings",
            "pooler",
        ),
        positions="embeddings.position_embeddings",
        new_positions=True,
        prepare=prepare_vit,
    ),
    "lstm": Family(
        config=lstm.LSTMConfig,
        model=lstm.LSTM,
        depth="layers",
        mask=lstm.no_mask,
        run=lstm.run_lstm,
        replaced=(),
        unused=(),
        context="tokens",
        positions="positions.weight",
        initial_value=lstm.initial_value,
    ),
}
