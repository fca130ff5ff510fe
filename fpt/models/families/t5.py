"""T5: the encoder alone, whose positions are relative and have no limit."""

from transformers import T5Config, T5EncoderModel

from fpt.models.families.library import Family

FAMILY = Family(
    config=T5Config,
    model=T5EncoderModel,
    load=T5EncoderModel.from_pretrained,
    needs_fpt=True,  # the library's whole model has a decoder
    tiny={"d_model": 16, "d_kv": 8, "d_ff": 32, "num_heads": 2, "num_decoder_layers": 2, "vocab_size": 11},
)
