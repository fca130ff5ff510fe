"""Long Range Arena's files of ListOps, with lists of our generator, as its own program writes them."""

import csv
from pathlib import Path

import numpy as np

from fpt.tasks import listops


def written(text: str) -> str:
    """A list as Long Range Arena writes it: a binary tree with parentheses around every application to one argument."""
    words, stack = text.split(), list[list[str]]()
    for word in words:
        stack.append([word] if word.startswith("[") or not stack else [*stack.pop(), word])
        if word == "]":
            operator, *arguments, close = stack.pop()
            tree = operator
            for part in [*arguments, close]:
                tree = f"( {tree} {part} )"
            stack.append([*stack.pop(), tree] if stack else [tree])
    ((tree,),) = stack
    return tree


def write(folder: Path, train: int, heldout: int) -> None:
    """The three files, in the data folder `folder`."""
    corpus = listops.generate(listops.LONG, train + 2 * heldout, "listops")
    lists = np.split(corpus.tokens, corpus.lengths.cumsum()[:-1])
    texts = [written(listops.decode(part.tolist())) for part in lists]
    rows = [[text, int(value)] for text, value in zip(texts, corpus.answers, strict=True)]
    (folder / "listops").mkdir()
    parts = {"train": rows[:train], "val": rows[train:-heldout], "test": rows[-heldout:]}
    for part, some in parts.items():
        with open(folder / "listops" / f"basic_{part}.tsv", "w", newline="") as file:
            csv.writer(file, delimiter="\t").writerows([["Source", "Target"], *some])
