"""What a reader has: a CSV of labelled texts, and a folder with a small model and a tokenizer that is trained here."""

import json
from pathlib import Path

import pandas as pd
from small_models import save_model
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]
TOKENS, ROWS = 60, 64  # of the tokenizer, and of the model's table
SIZES = {
    "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40, "vocab_size": ROWS,
    "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "max_position_embeddings": 80,
}  # fmt: skip


def texts(rows: int = 60) -> pd.DataFrame:
    """Short and long texts; the first word says the class."""
    ends = [" and cats" * (row % 5) for row in range(rows)]
    found = [f"{'good' if row % 2 else 'bad'} film about dogs{end}" for row, end in enumerate(ends)]
    return pd.DataFrame({"text": found, "label": [row % 2 for row in range(rows)]})


def save_tokenizer(folder: Path, tokens: int = TOKENS) -> None:
    """As the library saves one that was trained on the texts; it puts <s> before a text and </s> after it."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(
        texts()["text"], trainers.BpeTrainer(vocab_size=tokens, special_tokens=SPECIAL, show_progress=False)
    )
    more = [f"<{number}>" for number in range(tokens - tokenizer.get_vocab_size())]
    tokenizer.add_tokens(more)
    ends = [(name, tokenizer.token_to_id(name)) for name in ("<s>", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    names = dict(zip(("pad_token", "unk_token", "bos_token", "eos_token"), SPECIAL, strict=True))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)


def save(folder: Path, model_type: str = "llama", **changes: object) -> None:
    """A model of these sizes, or of changed ones, and its tokenizer."""
    save_model(folder, model_type, **{**SIZES, **changes})
    save_tokenizer(folder)


def spoil(folder: Path, **changes: object) -> None:
    """Other contents in tokenizer.json."""
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def no_vocabulary(folder: Path) -> None:
    """What the library takes for a tokenizer of special tokens alone."""
    for file in folder.glob("token*"):
        file.unlink()
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')


def own_code(folder: Path) -> None:
    """A tokenizer that is a program of its author's."""
    changes = {"tokenizer_class": "Mine", "auto_map": {"AutoTokenizer": ["mine.Mine", None]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(changes))
