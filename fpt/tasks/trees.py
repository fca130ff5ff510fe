"""Random ListOps trees, many at a time: level by level instead of node by node."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ROOTS = 4_096  # trees grown at a time; part of the definition of the data, as the seed is
DIGIT, OPERATOR, CLOSE = 1, 11, 15  # the symbols of digit 0, of MIN, and of the closing bracket

Ints = NDArray[np.int64]


class TreeRules(NamedTuple):
    """Long Range Arena's parameters: kept are trees with min_length < tokens < max_length."""

    max_depth: int
    max_args: int
    min_length: int
    max_length: int


class Nodes(NamedTuple):
    """All nodes at one depth, siblings side by side. symbol, tree: (nodes,); args: (operators,), their
    children."""

    symbol: Ints
    tree: Ints
    args: Ints


def grow(rules: TreeRules, source: np.random.PCG64) -> list[Nodes]:
    """ROOTS trees: below the root (always an operator: a digit alone is too short) a node is an operator with
    probability 1/4, of four kinds, with 2 .. max_args arguments, or a digit; at max_depth always a digit."""
    tree, levels = np.arange(ROOTS), list[Nodes]()
    for depth in range(1, rules.max_depth + 1):
        # bits of the raw stream, not Generator's methods: NumPy may change these between versions
        raw = np.atleast_1d(np.asarray(source.random_raw(len(tree)))) if len(tree) else np.zeros(0, np.uint64)
        low, high = (raw & 0xFFFFFFFF).astype(np.int64), (raw >> np.uint64(32)).astype(np.int64)
        split = (low & 3 == 0) & (depth < rules.max_depth) | (depth == 1)
        symbol = np.where(split, OPERATOR + (low >> 2 & 3), DIGIT + ((low >> 4) * 10 >> 28))
        args = 2 + (high[split] * (rules.max_args - 1) >> 32)
        levels.append(Nodes(symbol, tree, args))
        tree = np.repeat(tree[split], args)
    return levels


def trim(levels: list[Nodes], rules: TreeRules) -> list[Nodes]:
    """Only the trees of an allowed length, numbered anew."""
    lengths = sizes_of(levels)[0]
    keep = (lengths > rules.min_length) & (lengths < rules.max_length)
    number = keep.cumsum() - 1
    kept = []
    for symbol, tree, args in levels:
        stays = keep[tree]
        kept.append(Nodes(symbol[stays], number[tree[stays]], args[stays[symbol >= OPERATOR]]))
    return kept


def sizes_of(levels: list[Nodes]) -> list[Ints]:
    """Bottom up: the tokens below and with every node, level by level."""
    sizes = [np.zeros(0, np.int64)]
    for symbol, _, args in reversed(levels):
        size = np.ones_like(symbol)
        if len(args):
            size[symbol >= OPERATOR] = 2 + np.add.reduceat(sizes[0], args.cumsum() - args)
        sizes.insert(0, size)
    return sizes


def trees(rules: TreeRules, source: np.random.PCG64) -> list[bytes]:
    """The next trees as strings of symbols, one byte each."""
    levels = trim(grow(rules, source), rules)
    sizes = sizes_of(levels)
    text = np.zeros(sizes[0].sum(), np.uint8)
    place = ends = sizes[0].cumsum() - sizes[0]
    for depth, (symbol, _, args) in enumerate(levels):
        split = symbol >= OPERATOR
        text[place] = symbol
        text[(place + sizes[depth] - 1)[split]] = CLOSE
        if len(args):
            before = sizes[depth + 1].cumsum() - sizes[depth + 1]
            first = args.cumsum() - args
            place = np.repeat(place[split] + 1 - before[first], args) + before
    flat = text.tobytes()
    return [flat[a:b] for a, b in zip(ends, ends + sizes[0], strict=True)]
