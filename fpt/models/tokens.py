"""A model's own tokenizer, and what it makes of texts: the files beside config.json in the folder `hub:PATH`, or, of a
backbone of the catalogue, those beside its weights, or inside the GGUF file that holds them.

No torch before texts are read. Nothing of a tokenizer is executed but the library's code.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from fpt import tasks
from fpt.errors import SpecError, WeightsError
from fpt.files import check_sha256, known_sha256
from fpt.models import hub
from fpt.models.catalogue import BACKBONES, Backbone
from fpt.models.families import family
from fpt.models.weights import local_folder, missing, packaged, quiet_library

if TYPE_CHECKING:
    from fpt.tasks.task import Task
    from fpt.tasks.texts import Tokenized, Tokenizer

FILES = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json",
    "vocab.txt", "merges.txt", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "tekken.json",
)  # fmt: skip
LONG = 160  # characters of the library's own messages, which are pages
INSTEAD = "or read bytes: tokenizer bytes"


def files(folder: Path) -> list[Path]:
    """The files of the tokenizer in a folder; none where it has no tokenizer."""
    return [folder / name for name in FILES if (folder / name).is_file()]


def identity(backbone: Backbone) -> str:
    """What the backbone's tokenizer is, wherever it lies: the SHA-256 that its row names, of the tokenizer or of the
    GGUF file that holds it, or of `hub:PATH` that of its files. Empty where it has none."""
    return checksum(backbone.folder) if backbone.folder else backbone.tokenizer or backbone.gguf or ""


def checksum(folder: Path) -> str:
    """SHA-256 (hex) over the names and the contents of these files."""
    total = hashlib.sha256()
    for file in files(folder):
        total.update(f"{file.name} {known_sha256(file)}\n".encode())
    return total.hexdigest()


def check_tokenizer(backbone: Backbone) -> None:
    """Refuse (SpecError) a backbone that has no tokenizer of its own, or reads more than its table of embeddings."""
    folder = backbone.folder
    if folder is None and identity(backbone):
        return
    if folder is None:
        able = ", ".join(name for name, row in BACKBONES.items() if identity(row))
        raise SpecError(
            f"tokenizer own: backbone {backbone.name!r} has no tokenizer that could be read; take {able}, or a "
            f"folder hub:PATH that has one, {INSTEAD}"
        )
    if not files(folder):
        raise SpecError(f"tokenizer own: {folder} has no {FILES[0]}; put it there, {INSTEAD}")
    if family(backbone).symbol_table is None:
        raise SpecError(
            f"tokenizer own: backbone {backbone.name!r} makes more of its tokens than one table of embeddings says; "
            f"take another model, {INSTEAD}"
        )


def load_task(
    name: str,
    backbone: Backbone | str,
    data_dir: str | os.PathLike[str] | None = None,
    variant: str = "paper",
    **options: Any,
) -> "Task":
    """The task `name` as this backbone, or the one of this name, reads it: with option `tokenizer: own` by its own
    tokenizer, and otherwise as fpt.tasks.load does.

    Raises what fpt.tasks.load raises, SpecError for a backbone without a tokenizer, and WeightsError for a tokenizer
    that cannot be read.
    """
    if tasks.own_table(name, options) != tasks.READS:
        return tasks.load(name, data_dir, variant, **options)
    read_by = hub.backbone(backbone) if isinstance(backbone, str) else backbone
    return tasks.load(name, data_dir, variant, reader=reader(read_by), **options)


def reader(backbone: Backbone) -> "Tokenizer":
    """What reads texts as tokens of the backbone's own tokenizer, its special tokens included. What is kept of a text
    fits into the model's window."""
    check_tokenizer(backbone)

    def read(texts: Sequence[str], most: int) -> "Tokenized":
        from fpt.tasks.texts import Tokenized

        tokenizer = _loaded(backbone.folder or (_packaged(backbone) if backbone.gguf else _fetched(backbone)))
        lengths = [len(ids) for ids in _ids(tokenizer, texts)]
        kept = _window(backbone, min(most, max(lengths)))
        if kept <= (special := tokenizer.num_special_tokens_to_add()):
            raise SpecError(
                f"tokenizer own: {kept} tokens of a text are kept, and {special} of them are special ones of "
                f"{backbone.name!r}: give a larger option tokens, {INSTEAD}"
            )
        rows = _ids(tokenizer, texts, truncation=True, max_length=kept)
        vocabulary = max(tokenizer.get_vocab().values()) + 1
        what = f"the model's own tokens ({vocabulary:,} different ones), read by its own embeddings"
        return Tokenized(rows, lengths, vocabulary, what, "tokens")

    return read


def _window(backbone: Backbone, most: int) -> int:
    """How many tokens, up to `most`, the backbone reads at once."""
    from fpt.models.foreign import longest

    if backbone.is_foreign:
        return longest(backbone, most)
    return min(most, int(family(backbone).configuration(backbone).max_position_embeddings))


def _fetched(backbone: Backbone) -> Path:
    """The folder of a row's tokenizer: that of its weights here, else the hub's cache. WeightsError where it cannot be
    had, or is another one."""
    from huggingface_hub import hf_hub_download

    folder = local_folder(backbone)
    if folder is None or not (folder / FILES[0]).is_file():
        try:
            for name in ("tokenizer_config.json", hub.CONFIG, FILES[0]):
                folder = Path(hf_hub_download(str(backbone.hub), name, revision=backbone.revision)).parent
        except hub.failures() as error:
            raise WeightsError(
                missing(backbone, f"{FILES[0]} could not be downloaded from {backbone.hub}: {error}")
            ) from error
    place = Path(folder or "")
    needed = f"that of backbone {backbone.name!r} is needed here"
    check_sha256(place / FILES[0], str(backbone.tokenizer), needed, WeightsError)
    return place


def _packaged(backbone: Backbone) -> Path:
    """The GGUF file of the backbone's package. WeightsError where the package is missing, or holds another file."""
    if (file := packaged(backbone)) is None:
        raise WeightsError(missing(backbone, "its tokenizer is read from the GGUF file of its package"))
    check_sha256(file, str(backbone.gguf), "install its package again", WeightsError)
    return file


def _loaded(place: Path) -> Any:
    """The library's tokenizer of a folder, or of a GGUF file. WeightsError for files that are damaged, and where the
    vocabulary is missing."""
    from transformers import AutoTokenizer

    from fpt.models.families.library import BROKEN

    folder, how = (place.parent, {"gguf_file": place.name}) if place.is_file() else (place, {})
    try:
        with quiet_library():
            tokenizer: Any = AutoTokenizer.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False, **how
            )
    except Exception as error:
        if type(error) is not Exception and not isinstance(error, BROKEN):  # the compiled part raises the very type
            raise
        said = shorten(str(error), LONG)
        why = f"it has no {said}" if isinstance(error, KeyError) else said or type(error).__name__
        raise WeightsError(
            f"the tokenizer in {place} cannot be read: {why}. Save it again by its save_pretrained, {INSTEAD}"
        ) from error
    if {*tokenizer.get_vocab().values()} <= {*tokenizer.all_special_ids}:
        raise WeightsError(f"the tokenizer in {place} has no vocabulary: put its {FILES[0]} there, {INSTEAD}")
    tokenizer.truncation_side = "right"
    return tokenizer


def _ids(tokenizer: Any, texts: Sequence[str], **how: Any) -> list[list[int]]:
    """Ids of each text. Quietly: the library warns of texts that are longer than its model_max_length."""
    found: list[list[int]] = tokenizer(
        list(texts), return_attention_mask=False, return_token_type_ids=False, verbose=False, **how
    )["input_ids"]
    return found
