"""Remote homology: TAPE's form against decoding of our own, both variants, and what wrong files get."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fpt.errors import DataError
from fpt.results import baseline_scores
from fpt.tasks import TASKS, load
from fpt.tasks.homology import RESIDUES, plain, wrapped

Records = list[dict[str, Any]]

((*FILES,),) = TASKS["homology"].files

# TAPE's published vocabulary (IUPAC_VOCAB), written out: an oracle that shares no code with ours.
IUPAC = ["<pad>", "<mask>", "<cls>", "<sep>", "<unk>", *"ABCDEFGHIKLMNOPQRSTUVWXYZ"]


def records(folder: Path, part: str) -> Records:
    found: Records = json.loads((folder / "remote_homology" / f"remote_homology_{part}.json").read_text())
    return found


@pytest.fixture
def folder(fixtures: Path, tmp_path: Path) -> Path:
    """A data folder of one's own with the committed proteins."""
    shutil.copytree(fixtures / "remote_homology", tmp_path / "remote_homology")
    return tmp_path


def write(folder: Path, content: object, part: str = "train") -> Path:
    path = folder / "remote_homology" / f"remote_homology_{part}.json"
    path.write_text(json.dumps(content))
    return path


def protein(residues: str, fold: int = 3, **more: object) -> dict[str, Any]:
    return {"primary": residues, "fold_label": fold, **more}


def test_paper_reads_the_last_residue_of_every_protein(fixtures: Path) -> None:
    task = load("homology", fixtures)
    assert (task.tokens, task.vocabulary, task.classes, task.mask_padding) == (1_024, 25, 1_195, True)
    split = task.split(0)
    parts = {"train": split.train_sample(), "valid": split.validation, "test_fold_holdout": split.test}
    for part, examples in parts.items():
        truth = records(fixtures, part)
        assert examples.inputs.shape == (len(truth), 1_024)
        assert examples.inputs.dtype == torch.uint8
        assert examples.targets[:, 0].tolist() == [record["fold_label"] for record in truth]
        assert examples.lengths.tolist() == [record["protein_length"] for record in truth]
        for row, record in zip(examples.inputs.tolist(), truth, strict=True):
            length = record["protein_length"]
            assert "".join(RESIDUES[symbol] for symbol in row[:length]) == record["primary"]
            assert set(row[length:]) <= {0}
    assert torch.equal(task.split(1).validation.inputs, split.validation.inputs)  # TAPE's own validation file


def test_released_wraps_pads_and_tests_on_the_validation_file(fixtures: Path) -> None:
    task = load("homology", fixtures, "released")
    assert (task.tokens, task.vocabulary, task.classes, task.mask_padding) == (1_024, 30, 1_200, False)
    split, truth = task.split(0), records(fixtures, "valid")
    assert split.train_size == len(records(fixtures, "train"))
    found = []
    for examples in (split.validation, split.test):  # a half of the file each
        assert examples.lengths is None
        assert len(examples) == len(truth) / 2
        for row, fold in zip(examples.inputs.tolist(), examples.targets[:, 0].tolist(), strict=True):
            cls, *inner, sep = (IUPAC[symbol] for symbol in row if symbol)
            assert (cls, sep, set(row[len(inner) + 2 :])) == ("<cls>", "<sep>", {0})
            found.append(("".join(inner), fold))
    assert sorted(found) == sorted((record["primary"], record["fold_label"]) for record in truth)
    assert "the test set is the validation file" in task.card["normalisation"]


@given(st.text(RESIDUES, min_size=1, max_size=1_022))
def test_both_encodings_can_be_read_back(residues: str) -> None:
    assert "".join(RESIDUES[symbol] for symbol in plain(residues)) == residues
    cls, *inner, sep = (IUPAC[symbol] for symbol in wrapped(residues))
    assert (cls, "".join(inner), sep) == ("<cls>", residues, "<sep>")


@pytest.mark.parametrize(
    ("variant", "limit", "kept"), [("paper", "1,024", [1_024, 1_023, 1_022]), ("released", "1,022", [1_022])]
)
def test_too_long_sequences_are_dropped_one_by_one(folder: Path, variant: str, limit: str, kept: list[int]) -> None:
    write(folder, [protein("ACDEFGHIKL" * 200), *(protein("W" * length) for length in (1_024, 1_023, 1_022))])
    task = load("homology", folder, variant)
    split = task.split(0)
    train = split.train_sample()
    held = split.validation if variant == "paper" else [*split.validation.targets, *split.test.targets]
    assert len(held) == len(records(folder, "valid"))  # the boundary moves with what is dropped
    assert f"dropped as longer than {limit} residues: {4 - len(kept)} of 4, 0 of 12" in task.scaling
    assert (train.inputs > 0).sum(1).tolist() == (kept if variant == "paper" else [1_024])  # with <cls> and <sep>
    assert variant == "released" or train.lengths.tolist() == kept


def test_fields_that_nothing_reads_change_nothing(folder: Path, fixtures: Path) -> None:
    more = {"evolutionary": [[0.1, 2]], "class_label": 0, "nested": {"primary": "?"}, "secondary_structure": [1]}
    write(folder, [{**record, **more} for record in records(fixtures, "train")])
    assert load("homology", folder).checksum == load("homology", fixtures).checksum


def test_the_checksum_sees_what_the_symbols_alone_do_not(folder: Path) -> None:
    """The padding of `paper` is also the number of A, so a protein that ends in A differs by its length only."""
    found = set()
    for residues in ("WA", "W"):
        write(folder, [protein(residues)])
        found.add(load("homology", folder).checksum)
    train, validation = records(folder, "train"), records(folder, "valid")
    write(folder, [*train, validation[0]])
    write(folder, validation[1:], "valid")
    found.add(load("homology", folder).checksum)
    assert len(found) == 3


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"fold_label": 1}, "1.primary = None"),
        (protein("ACD", 1_195), "1.fold_label = 1195: .* 1195"),
        ({"primary": "ACD", "fold_label": True}, "1.fold_label = True"),
        (protein("ACJD"), "1.primary = 'ACJD': .*ABCDEFGHIKLMNOPQRSTUVWXYZ"),
        (protein("ACD", protein_length=4), "1: .*4, but primary has 3 residues"),
        ("ACD", "1 = 'ACD'"),
    ],
)
def test_wrong_records_are_named(record: object, message: str, folder: Path) -> None:
    path = write(folder, [protein("ACD"), record])
    with pytest.raises(DataError, match=rf"{path.name}, records counted from 0: {message}"):
        load("homology", folder)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-40], " is missing, truncated, altered or no JSON"),
        (lambda data: b"\xff" + data, " is missing, truncated, altered or no JSON"),
        (lambda data: b"[" * 100_000, " is missing, truncated, altered or no JSON"),
        (lambda data: b"[]", ", .*at least one"),
        (lambda data: json.dumps(protein("ACD")).encode(), ", .*list"),
        (lambda data: b"null", ", .*list"),
        (lambda data: json.dumps([protein("A" * 1_025)]).encode(), ": none of its sequences has at most 1,024"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_and_stays(
    damage: Callable[[bytes], bytes], message: str, folder: Path
) -> None:
    path = folder / FILES[1]
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    with pytest.raises(DataError, match=path.name + message):
        load("homology", folder)
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named_with_where_it_comes_from(name: str, folder: Path) -> None:
    path = folder / name
    path.unlink()
    with pytest.raises(DataError, match=rf"{path.name} is missing.*data_raw_pytorch.*FPT_DATA"):
        load("homology", folder)


def test_released_does_not_read_the_file_of_held_out_folds(folder: Path) -> None:
    (folder / "remote_homology" / "remote_homology_test_fold_holdout.json").unlink()
    assert load("homology", folder, "released").card["test"] == 6


def test_its_baseline(fixtures: Path) -> None:
    folds = [record["fold_label"] for record in records(fixtures, "train")]
    commonest = max(sorted(set(folds)), key=folds.count)
    share = [record["fold_label"] for record in records(fixtures, "test_fold_holdout")].count(commonest) / 12
    assert baseline_scores("homology", data_dir=fixtures)["majority class"].share == pytest.approx(share)
