"""ListOps: the generator against evaluators of our own, the cache, the variants, the ladder."""

import re
import shutil
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import lra_files
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fpt.errors import DataError
from fpt.tasks import listops, load
from fpt.tasks.arrays import Examples
from fpt.tasks.task import Task
from fpt.tasks.trees import OPERATOR, TreeRules, grow, trees


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def paper(folder: Path) -> Task:
    return load("listops", folder, train=600, heldout=200)


def stored(task: Task) -> Examples:
    """All examples, in the order in which they were generated."""
    return task.data.train


def parse(text: str) -> int:
    """The value of a written list by recursive descent and Python's median: it shares no code with ours."""

    def read(words: Iterator[str]) -> int | None:
        word = next(words)
        if word == "]":
            return None
        if not word.startswith("["):
            return int(word)
        values = []
        while (value := read(words)) is not None:
            values.append(value)
        rules = {"[MIN": min, "[MAX": max, "[MED": statistics.median, "[SM": lambda v: sum(v) % 10}
        return int(rules[word](values))

    value = read(iter(text.split()))
    assert value is not None
    return value


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), depth=st.integers(2, 6), args=st.integers(2, 10), shortest=st.integers(3, 20))
def test_every_tree_obeys_the_rules_and_has_its_value(seed: int, depth: int, args: int, shortest: int) -> None:
    rules = TreeRules(depth, args, shortest, shortest + 60)
    for text in trees(rules, np.random.PCG64(seed))[:20]:
        written = listops.decode(text)
        assert parse(written) == listops.evaluate(text)
        assert rules.min_length < len(text) < rules.max_length
        deepest = level = 0
        for word in written.split():
            level += word.startswith("[") - (word == "]")
            deepest = max(deepest, level)
        assert level == 0
        assert deepest < depth  # at max_depth there are digits only
        for inner in re.findall(r"\[[A-Z]+ ([0-9 ]+) \]", written):
            assert 2 <= len(inner.split()) <= args


def test_nodes_are_drawn_with_the_probabilities_of_long_range_arena() -> None:
    levels = grow(listops.LONG, np.random.PCG64(0))
    below = torch.from_numpy(np.concatenate([level.symbol for level in levels[1:-1]]))
    operators = below[below >= OPERATOR]
    assert abs(len(operators) / len(below) - 0.25) < 0.005
    assert operators.bincount(minlength=15)[11:].float().div(len(operators)).sub(0.25).abs().max() < 0.01
    digits = below[below < OPERATOR].bincount(minlength=11)[1:]
    assert digits.float().div(int(digits.sum())).sub(0.1).abs().max() < 0.005
    args = torch.from_numpy(np.concatenate([level.args for level in levels])).bincount(minlength=11)[2:]
    assert len(args) == 9
    assert args.float().div(int(args.sum())).sub(1 / 9).abs().max() < 0.01
    assert (levels[-1].symbol < OPERATOR).all()
    assert len(levels) == 10


def test_the_examples_are_the_same_on_every_machine() -> None:
    corpus = listops.generate(listops.SHORT, 3, "listops-short")
    first = corpus.tokens[: corpus.lengths[0]].tolist()
    assert listops.decode(first) == "[SM 6 9 [MIN 2 3 2 [MIN 8 2 6 3 4 5 8 ] 9 6 8 [MED 5 0 6 7 9 ] ] 5 8 ]"
    assert load("listops-short").checksum == "6a3b822ba4cc754d0a1e84464c71170ef7221869cb72a810d1eb156ef02af0fe"


def test_examples_are_unique_and_every_one_is_used_once(paper: Task) -> None:
    split = paper.split(0)
    parts = [split.train_sample(None), split.validation, split.test]
    assert [len(part) for part in parts] == [600, 200, 200]
    rows = torch.cat([part.inputs for part in parts])
    assert len({row.numpy().tobytes() for row in rows}) == 1_000
    assert not torch.equal(paper.split(1).test.inputs, split.test.inputs)
    assert sorted(rows.tolist()) == sorted(stored(paper).inputs.tolist())


def test_paper_keeps_brackets_and_says_where_the_padding_starts(paper: Task) -> None:
    assert (paper.tokens, paper.vocabulary, paper.classes, paper.mask_padding) == (2_000, 16, 10, True)
    test = paper.split(0).test
    for row, length, target in zip(test.inputs, test.lengths.tolist(), test.targets[:, 0].tolist(), strict=True):
        assert 500 < length < 2_000
        assert (row[:length] > 0).all()
        assert (row[length:] == 0).all()
        assert row[length - 1] == 15
        assert parse(listops.decode(row.tolist())) == target


def test_released_drops_brackets_and_cuts(paper: Task, folder: Path) -> None:
    task = load("listops", folder, "released", train=600, heldout=200)
    assert (task.tokens, task.vocabulary, task.mask_padding) == (512, 15, False)
    ours, whole = stored(task), stored(paper)[:800]
    assert ours.lengths is None
    assert torch.equal(ours.targets, whole.targets)
    assert len(ours) == 800  # the last 200 are its test file, which it does not read
    for row, full in zip(ours.inputs.tolist(), whole.inputs.tolist(), strict=True):
        bare = [symbol for symbol in full if 0 < symbol < 15][:512]
        assert row == bare + [0] * (512 - len(bare))


def test_the_cache_is_used_and_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = partial(load, "listops", tmp_path, train=20, heldout=5)
    first = few().checksum
    path = tmp_path / "listops" / "listops-30.npz"
    assert sorted(file.name for file in path.parent.iterdir()) == ["listops-30.npz", "listops-30.sha256"]
    with monkeypatch.context() as patch:
        patch.delattr(listops, "generate")
        assert few().checksum == first
    whole = path.read_bytes()
    for damaged in (whole[:-10], whole[:500] + b"?" + whole[501:]):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"altered or .*: expected SHA-256 [0-9a-f]{64}, found [0-9a-f]{64}"):
            few()
        assert path.read_bytes() == damaged
    for lost in (path, path.with_suffix(".sha256")):  # the second: killed between the two
        lost.unlink()
        assert few().checksum == first


# --- Long Range Arena's own files

LRA = {"train": 30, "heldout": 10}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lra")
    lra_files.write(folder, **LRA)
    return folder


def test_long_range_arenas_files_are_read(theirs: Path) -> None:
    task, ours = load("listops", theirs, "lra", **LRA), load("listops", theirs, **LRA)
    assert (task.tokens, task.vocabulary, task.mask_padding, task.test_drawn_by_seed) == (2_000, 16, True, False)
    assert task.checksum == ours.checksum  # the same lists, in the same order
    split, all_ours = task.split(3), stored(ours)
    assert torch.equal(split.train_sample(None).inputs, all_ours.inputs[:30])
    assert torch.equal(split.validation.inputs, all_ours.inputs[30:40])
    assert torch.equal(split.test.targets, all_ours.targets[40:])
    assert "basic_train" in task.card["source"]
    with pytest.raises(DataError, match=r"basic_train.tsv: expected 96,000 lists .*, found 30"):
        load("listops", theirs, "lra")
    released, generated = (load("listops", theirs, name, **LRA) for name in ("lra-released", "released"))
    assert (released.tokens, released.vocabulary, released.mask_padding) == (512, 15, False)
    halves = [released.split(1), generated.split(1)]
    assert [(each.train_size, len(each.validation), len(each.test)) for each in halves] == [(30, 5, 5)] * 2
    tested = {row.numpy().tobytes() for part in (halves[0].validation, halves[0].test) for row in part.inputs}
    assert tested == {row.numpy().tobytes() for row in stored(generated).inputs[30:40]}


def test_long_range_arenas_files_are_parsed_once(theirs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = load("listops", theirs, "lra", **LRA).checksum
    monkeypatch.delattr(listops, "read_lra")
    assert load("listops", theirs, "lra", **LRA).checksum == before


HEAD = b"Source\tTarget\n"


def as_line_2(row: str) -> Callable[[bytes], bytes]:
    return lambda content: b"\n".join([HEAD.strip(), row.encode(), *content.splitlines()[2:]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (as_line_2("( ( [MAX 2 ) ] )\t3"), r", line 2, .* expected the answer 2, found 3"),
        (as_line_2("( ( [MAX 2 ) 9\t9"), r", line 2, .* not closed"),
        (as_line_2("[MAX ]\t2"), r", line 2, "),
        (as_line_2("3 4\t3"), r", line 2, "),
        (as_line_2("[AVG 2 4 ]\t3"), r", line 2, .*'\[AVG'"),
        (as_line_2(f"[MAX {'1 ' * 1998}]\t1"), r", line 2, .* 2,000 tokens; .* fewer than 2,000"),
        (as_line_2("[MAX 1 ]"), r", line 2, "),
        (lambda content: b"Text\tLabel\n", r".* columns are \['Text', 'Label'\], but must be Source and Target"),
        (lambda content: b"\xff\xfe", ", line 1, .*utf-8"),
        (lambda content: HEAD, r": expected 10 lists .*, found 0"),
        (lambda content: None, r" is missing.*listops-1000.*FPT_DATA"),
    ],
)
def test_a_file_that_is_wrong_is_named_with_its_line(
    change: Callable[[bytes], bytes | None], message: str, theirs: Path, tmp_path: Path
) -> None:
    shutil.copytree(theirs / "listops", tmp_path / "listops", ignore=shutil.ignore_patterns("*.npz", "*.sha256"))
    file = tmp_path / "listops" / "basic_val.tsv"
    changed = change(file.read_bytes())
    file.unlink() if changed is None else file.write_bytes(changed)
    with pytest.raises(DataError, match="basic_val.tsv" + message):
        load("listops", tmp_path, "lra", **LRA)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"file.*FPT_DATA"):
        load("listops", tmp_path / "file", train=20, heldout=5)


def test_partial_readers() -> None:
    def value(text: str, exact: int) -> int:
        return listops.evaluate([listops.SYMBOLS[word] for word in text.split()], exact)

    text = "[MAX 2 [MED 1 [SM 9 9 ] 9 ] [MIN 4 6 ] ]"
    assert [value(text, exact) for exact in (1, 2, 3)] == [5, 4, 8]
    assert parse(text) == 8
    assert value("[MED 3 4 ]", 1) == parse("[MED 3 4 ]") == 3  # the median is cut to a whole number
