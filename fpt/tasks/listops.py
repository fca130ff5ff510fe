"""ListOps by Long Range Arena's rules (Nangia and Bowman 2018; Tay et al. 2021): generated here, or its
own files.

Symbols: 0 padding, 1 .. 10 the digits 0 .. 9, 11 .. 14 the operators with their opening bracket, 15 the
closing one.
"""

import csv
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from fpt.errors import DataError
from fpt.files import check_sha256, replaced, sha256, write_atomically
from fpt.seeds import stream
from fpt.tasks.arrays import Examples, Finite, digest, hold_out, in_rows, last_rows
from fpt.tasks.catalogue import TASKS
from fpt.tasks.task import Task
from fpt.tasks.trees import CLOSE as CLOSE
from fpt.tasks.trees import DIGIT, OPERATOR, TreeRules, trees

# symbol -> name, value of a list, and what a list is worth to a reader who does not look inside it
OPERATORS: dict[int, tuple[str, Callable[[list[int]], int], int]] = {
    OPERATOR: ("MIN", min, 0),
    OPERATOR + 1: ("MAX", max, 9),
    OPERATOR + 2: ("MED", lambda values: int(median(values)), 5),
    OPERATOR + 3: ("SM", lambda values: (values[0] + sum(values[1:])) % 10, 0),
}
WORDS = ("", *"0123456789", *(f"[{name}" for name, _, _ in OPERATORS.values()), "]")  # as they are written
SYMBOLS = {word: symbol for symbol, word in enumerate(WORDS) if word}
LONG = TreeRules(max_depth=10, max_args=10, min_length=500, max_length=2_000)
SHORT = TreeRules(max_depth=4, max_args=10, min_length=12, max_length=64)  # chosen for a ladder like the long one's
# source and licence
GENERATED = (
    "generated here by the rules of Long Range Arena (google-research/long-range-arena)",
    "none needed: generated",
)
LRA_FILES = ("Long Range Arena's own lists: basic_train, basic_val and basic_test.tsv", "Apache 2.0")
CUT = 512  # the released code's longest sequence


class Corpus(NamedTuple):
    """tokens (sum of lengths,) uint8, one example after the other; lengths (n,) int64; answers (n,) uint8."""

    tokens: NDArray[np.uint8]
    lengths: NDArray[np.int64]
    answers: NDArray[np.uint8]


def evaluate(written: Iterable[int], exact: int = 99) -> int:
    """The value of a list, read left to right with a stack; lists nested `exact` deep or deeper count as
    typical ones. Raises ValueError or IndexError unless it is one value whose lists are closed and not empty."""
    stack: list[tuple[int, list[int]]] = []
    values: list[int] = []
    for symbol in written:
        if symbol < OPERATOR:
            values.append(symbol - DIGIT)
        elif symbol < CLOSE:
            stack.append((symbol, values))
            values = []
        else:
            operator, outer = stack.pop()
            _, apply, typical = OPERATORS[operator]
            outer.append(apply(values) if len(stack) < exact else typical)
            values = outer
    if stack:
        raise ValueError("a list is not closed")
    (value,) = values
    return value


def generate(rules: TreeRules, count: int, name: str) -> Corpus:
    """`count` different examples, equal on every machine."""
    source = np.random.PCG64(stream(0, name))
    found: dict[bytes, int] = {}
    with tqdm(total=count, desc=f"generating {name}", disable=None, leave=False) as bar:
        while len(found) < count:
            found |= {text: evaluate(text) for text in trees(rules, source)}
            bar.update(min(len(found), count) - bar.n)
    return corpus_of(list(found.items())[:count])


def cached(folder: Path, name: str, make: Callable[[], Corpus]) -> Corpus:
    """The corpus `name` in `folder`, made there if it is not; its file's SHA-256 lies beside it and is
    verified.

    Raises DataError if the file was altered or cannot be written. Nothing half-written is ever read.
    """
    path, record = folder / f"{name}.npz", folder / f"{name}.sha256"
    try:
        if not (path.is_file() and record.is_file()):
            corpus = make()
            folder.mkdir(parents=True, exist_ok=True)
            with replaced(path) as part, part.open("wb") as file:
                np.savez(file, **corpus._asdict())
            write_atomically(record, f"{sha256(path)}\n".encode())
            return corpus
        expected = record.read_text().strip()
    except OSError as error:
        raise DataError(f"{name}: {folder} cannot be used ({error}); FPT_DATA names another folder.") from error
    check_sha256(path, expected, "delete it, and it is made again")
    with np.load(path, allow_pickle=False) as arrays:
        return Corpus(**arrays)


def corpus_of(lists: Sequence[tuple[bytes, int]]) -> Corpus:
    """Lists as strings of symbols, one byte each, and their answers."""
    tokens = np.frombuffer(b"".join(text for text, _ in lists), np.uint8)
    lengths = np.array([len(text) for text, _ in lists], np.int64)
    return Corpus(tokens, lengths, np.array([answer for _, answer in lists], np.uint8))


def read_lra(path: Path) -> Corpus:
    """One of Long Range Arena's files: columns Source and Target, separated by tabs; the parentheses of its binary
    trees are dropped.

    Raises DataError naming the line for what is none of Long Range Arena's lists, with its answer: no checksum of the
    files is known.
    """
    found: list[tuple[bytes, int]] = []
    line = 1
    try:
        with open(path, encoding="utf-8", newline="") as file:
            reader = csv.reader(file, delimiter="\t")
            if (heads := next(reader, [])) != ["Source", "Target"]:
                raise ValueError(f"its columns are {heads}, but must be Source and Target")
            for row in filter(None, reader):
                line = reader.line_num
                source, target = row
                text = _symbols(source)
                value = evaluate(text)
                found.append((text, value))
                if target != str(value):
                    raise ValueError(f"expected the answer {value}, found {target}")
    except (OSError, csv.Error, KeyError, IndexError, ValueError) as error:
        raise DataError(f"{path}, line {line}, is none of Long Range Arena's: {error}") from error
    return corpus_of(found)


def _symbols(written: str) -> bytes:
    """A list in symbols. Raises KeyError for a foreign word, and ValueError for a list that is too long."""
    symbols = bytes(SYMBOLS[word] for word in written.split() if word not in ("(", ")"))
    if len(symbols) >= LONG.max_length:
        raise ValueError(f"{len(symbols):,} tokens; there are fewer than {LONG.max_length:,}")
    return symbols


def lra(path: Path, count: int) -> Corpus:
    """The lists of one of Long Range Arena's files, which is read once, then cached.

    Raises DataError as `read_lra` does, and for a file that is missing, or has more or fewer than `count` lists: it may
    be cut off at the end of a line.
    """
    if not path.is_file():
        raise DataError(f"{path} is missing. {TASKS['listops'].advice}")
    corpus = cached(path.parent, f"{path.stem}-{sha256(path)[:12]}", lambda: read_lra(path))
    if (found := len(corpus.answers)) != count:
        raise DataError(f"{path}: expected {count:,} lists (options train and heldout), found {found:,}.")
    return corpus


def decode(written: Iterable[int]) -> str:
    """Symbols as Long Range Arena writes them, without parentheses: [MAX 2 9 [MIN 4 7 ] 0 ]."""
    return " ".join(WORDS[symbol] for symbol in written if symbol)


def listops(data_dir: Path, variant: str, train: int, heldout: int) -> Task:
    """500 to 2,000 tokens; the seed draws which examples are for what.

    `paper`: brackets kept, read at the last real token. `released`: brackets dropped, cut to 512 tokens, read at
    position 512 (mostly a padding or a middle token), and tested, as the released code does, on the `heldout` examples
    for validation: on half of them, while the other half stops and selects, for which that code has nothing.
    `lra` and `lra-released`: the same of Long Range Arena's own files, each list for what its file says.
    """
    if variant.startswith("lra"):
        files = zip(TASKS["listops"].files[0], (train, heldout, heldout), strict=True)
        parts = [lra(data_dir / name, count) for name, count in files]
        return _task(Corpus(*map(np.concatenate, zip(*parts, strict=True))), variant, heldout, LONG)
    count = train + 2 * heldout
    made = cached(data_dir / "listops", f"listops-{count}", lambda: generate(LONG, count, "listops"))
    return _task(made, variant, heldout, LONG)


def short(data_dir: Path, variant: str, train: int, heldout: int) -> Task:
    """Up to 63 tokens, nested at most 3 deep: the ladder of partial solutions is close to the long
    version's."""
    return _task(generate(SHORT, train + 2 * heldout, "listops-short"), variant, heldout, SHORT)


def _task(corpus: Corpus, variant: str, heldout: int, rules: TreeRules) -> Task:
    whole = variant in ("paper", "lra")
    if whole:
        width, lengths = rules.max_length, torch.from_numpy(corpus.lengths)
        rows = in_rows(corpus.tokens, corpus.lengths, width)
    else:
        width, lengths = CUT, None
        rows = in_rows(*_without_brackets(corpus), width)
    data = Examples(rows, torch.from_numpy(corpus.answers.astype(np.int64))[:, None], lengths)
    source, licence = LRA_FILES if variant.startswith("lra") else GENERATED
    return Task(
        data=_parts(data, variant, heldout),
        vocabulary=16 if whole else 15,
        classes=10,
        mask_padding=whole,
        checksum=digest(rows, data.targets),
        source=source,
        licence=licence,
        scaling="none: symbols" if whole else f"none: symbols; brackets dropped, cut to {CUT} tokens",
    )


def _without_brackets(corpus: Corpus) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The tokens but for the closing brackets, which the released code drops; and how many each example keeps."""
    keep, starts = corpus.tokens != CLOSE, corpus.lengths.cumsum() - corpus.lengths
    return corpus.tokens[keep], np.add.reduceat(keep, starts, dtype=np.int64)


def _parts(data: Examples, variant: str, heldout: int) -> Finite:
    """`data`: training, validation and test examples, one after the other."""
    known = {
        "paper": Finite(data, heldout, partial(hold_out, count=heldout)),
        "released": Finite(data[:-heldout], heldout, None),
        "lra": Finite(data[:-heldout], data[-heldout:], partial(last_rows, count=heldout)),
        "lra-released": Finite(data[: -2 * heldout], data[-2 * heldout : -heldout], None),
    }
    return known[variant]
