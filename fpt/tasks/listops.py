"""ListOps by Long Range Arena's rules (Nangia and Bowman 2018; Tay et al. 2021), generated here.

Symbols: 0 padding, 1 .. 10 the digits 0 .. 9, 11 .. 14 the operators with their opening bracket, 15 the
closing one.
"""

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from fpt.errors import DataError
from fpt.seeds import stream
from fpt.tasks import npz_checksum
from fpt.tasks.arrays import Examples, Finite, digest, hold_out, in_rows, symbols
from fpt.tasks.task import Task
from fpt.tasks.trees import Rules, trees

# symbol -> name, value of a list, and what a list is worth to a reader who does not look inside it
OPERATORS: dict[int, tuple[str, Callable[[list[int]], int], int]] = {
    11: ("MIN", min, 0),
    12: ("MAX", max, 9),
    13: ("MED", lambda values: int(median(values)), 5),
    14: ("SM", lambda values: sum(values) % 10, 0),
}
CLOSE = 15
LONG = Rules(max_depth=10, max_args=10, min_length=500, max_length=2_000)
SHORT = Rules(max_depth=4, max_args=10, min_length=12, max_length=64)  # chosen for a ladder like the long one's
CUT = 512  # the released code's longest sequence


class Corpus(NamedTuple):
    """tokens (sum of lengths,) uint8, one example after the other; lengths (n,) int64; answers (n,) uint8."""

    tokens: NDArray[np.uint8]
    lengths: NDArray[np.int64]
    answers: NDArray[np.uint8]


def evaluate(symbols: list[int], exact: int = 99) -> int:
    """The value of a list, read left to right with a stack; lists nested `exact` deep or deeper count as
    typical ones."""
    stack: list[tuple[int, list[int]]] = []
    values: list[int] = []
    for symbol in symbols:
        if symbol < 11:
            values.append(symbol - 1)
        elif symbol < CLOSE:
            stack.append((symbol, values))
            values = []
        else:
            operator, outer = stack.pop()
            _, apply, typical = OPERATORS[operator]
            outer.append(apply(values) if len(stack) < exact else typical)
            values = outer
    return values[0]


def generate(rules: Rules, count: int, name: str) -> Corpus:
    """`count` different examples, equal on every machine; each answer is checked by `evaluate`."""
    source = np.random.PCG64(stream(0, name))
    found: dict[bytes, int] = {}
    with tqdm(total=count, desc=f"generating {name}", disable=None, leave=False) as bar:
        while len(found) < count:
            for text, value in zip(*trees(rules, source), strict=True):
                if evaluate(list(text)) != value:
                    raise DataError(f"{name}: generator and evaluator disagree on {decode(text)}.")
                found.setdefault(text, value)
            bar.update(min(len(found), count) - bar.n)
    texts = list(found)[:count]
    lengths = np.fromiter(map(len, texts), np.int64, count)
    answers = np.fromiter(found.values(), np.uint8, count)
    return Corpus(np.frombuffer(b"".join(texts), np.uint8), lengths, answers)


def cached(folder: Path, rules: Rules, count: int, name: str) -> Corpus:
    """The corpus in `folder`, generated there if it is not; its file's SHA-256 lies beside it and is
    verified.

    Raises DataError if the file was altered or cannot be written. Nothing half-written is ever read.
    """
    path, record = folder / f"{name}-{count}.npz", folder / f"{name}-{count}.sha256"
    try:
        if not (path.is_file() and record.is_file()):
            corpus = generate(rules, count, name)
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                np.savez(Path(scratch) / path.name, **corpus._asdict())
                found = npz_checksum(Path(scratch) / path.name)
                (Path(scratch) / record.name).write_text(found + "\n")
                os.replace(Path(scratch) / path.name, path)
                os.replace(Path(scratch) / record.name, record)
            return corpus
        expected = record.read_text().strip()
    except OSError as error:
        raise DataError(f"{name}: {folder} cannot be used ({error}); FPT_DATA names another folder.") from error
    found = npz_checksum(path)
    if found != expected:
        raise DataError(
            f"{path} was altered: expected SHA-256 {expected}, found {found}. Delete it to generate it again."
        )
    with np.load(path, allow_pickle=False) as arrays:
        return Corpus(arrays["tokens"], arrays["lengths"], arrays["answers"])


def decode(symbols: bytes | list[int]) -> str:
    """Symbols as Long Range Arena writes them: [MAX 2 9 [MIN 4 7 ] 0 ]."""
    words = ["", *"0123456789", *(f"[{name}" for name, _, _ in OPERATORS.values()), "]"]
    return " ".join(words[symbol] for symbol in symbols if symbol)


def listops(data_dir: Path, variant: str, train: int, heldout: int) -> Task:
    """500 to 2,000 tokens; the seed draws which examples are for what.

    `paper`: brackets kept, read at the last real token. `released`: brackets dropped, cut to 512 tokens, read at
    position 512 (mostly a padding or a middle token), and tested, as the released code does, on the `heldout` examples
    for validation: on half of them, while the other half stops and selects, for which that code has nothing.
    """
    corpus = cached(data_dir / "listops", LONG, train + 2 * heldout, "listops")
    return _task(corpus, variant, heldout, LONG)


def short(data_dir: Path, variant: str, train: int, heldout: int) -> Task:
    """Up to 63 tokens, nested at most 3 deep: the ladder of partial solutions is close to the long
    version's."""
    return _task(generate(SHORT, train + 2 * heldout, "listops-short"), variant, heldout, SHORT)


def _task(corpus: Corpus, variant: str, heldout: int, rules: Rules) -> Task:
    tokens, lengths, answers = corpus
    paper, width, real = variant == "paper", rules.max_length, torch.from_numpy(lengths)
    if not paper:
        starts, keep, width = lengths.cumsum() - lengths, tokens != CLOSE, CUT
        tokens, lengths = tokens[keep], np.add.reduceat(keep, starts, dtype=np.int64)
    rows = in_rows(tokens, lengths, width)
    data = Examples(rows, torch.from_numpy(answers.astype(np.int64))[:, None], real if paper else None)
    divided = Finite(data, heldout, partial(hold_out, count=heldout))
    return Task(
        data=divided if paper else Finite(data[:-heldout], heldout, None),
        encode=symbols,
        tokens=width,
        vocabulary=16 if paper else 15,
        classes=10,
        mask_padding=paper,
        checksum=digest(rows, data.targets),
        source="generated here by the rules of Long Range Arena (google-research/long-range-arena)",
        licence="none needed: generated",
        scaling="none: symbols" if paper else f"none: symbols; brackets dropped, cut to {CUT} tokens",
    )


def listops_ladder(task: Task) -> dict[str, float]:
    """Accuracy on the test examples of seed 0 of exact readers that understand more and more of the list.

    `majority class` and `root operator only` take the commonest answer of the training set; the others
    evaluate the outermost levels exactly and count deeper lists as typical ones. They need brackets: `released`
    has the first two only.
    """
    split = task.split(0)
    train, test = split.train_sample(None), split.test
    seen, answers = train.targets[:, 0], test.targets[:, 0]
    by_root = torch.zeros(CLOSE, dtype=torch.int64)
    for operator in OPERATORS:
        by_root[operator] = seen[train.inputs[:, 0] == operator].bincount(minlength=10).argmax()
    guesses = {
        "majority class": seen.bincount().argmax().expand_as(answers),
        "root operator only": by_root[test.inputs[:, 0].long()],
    }
    if test.lengths is not None:
        rows = [row[:n].tolist() for row, n in zip(test.inputs, test.lengths.tolist(), strict=True)]
        for depth, name in enumerate(("one level", "two levels", "three levels"), start=1):
            guesses[name] = torch.tensor([evaluate(row, depth) for row in rows])
    return {name: float((guess == answers).double().mean()) for name, guess in guesses.items()}
