"""Every claim that is decided by arithmetic: its verdict on what is printed, and another on one altered number."""

from typing import Any

import pytest

from fpt import papers
from fpt.claims import arithmetic
from fpt.claims.arithmetic import CIFAR10_BATCHES, FUNCTIONS, computed
from fpt.claims.counted import count, counted, new_positions_learn
from fpt.errors import SpecError
from fpt.papers import claim as claim_of
from fpt.papers import claims, table
from fpt.papers.schema import Claim, Printed
from fpt.tasks import load

MISPRINTED = {"L-19", "L-29", "L-30", "L-51", "R-24"}  # what is printed does not hold
# claim -> one number, in a claim or in a table, with which the verdict is the other one
IN_CLAIMS: dict[str, tuple[str, str, Any]] = {
    "L-50": ("L-50", "large", [36, 1281, 20]),
    "O-01": ("L-30", "layer_norm", 36685),
    "O-02": ("L-30", "input", 12288),
    "O-03": ("O-03", "section_2_2_M", 117),
    "O-04": ("L-51", "cifar10", "64x48"),
    "O-05": ("L-51", "mnist", "64x16 (28x28)"),
    "O-06": ("L-51", "bit_memory", "100x50"),
    "O-13": ("B-03", "accuracy", [11.0, 17.5]),
    "R-21": ("R-21", "symbols", [15, 17]),
    "R-25": ("R-25", "val", 6000),
    "L-51": ("L-51", "cifar10", "64x48"),
}
IN_TABLES: dict[str, tuple[str, str, str, Any]] = {
    "O-07": ("lu-table-8", "FPT, large", "cifar10", 70.0),
    "O-08": ("lu-table-1", "full", "listops", 36),
    "O-10": ("lu-table-5", "frozen LSTM + residual", "mnist", 71.0),
    "O-12": ("lu-table-10", "read-out", "listops", 15),
    "O-14": ("lu-table-18", "output + input", "cifar10", 61.5),
    "O-15": ("lu-table-2", "random", "homology", 7.0),
    "O-16": ("lu-table-7", "FPT", "cifar10-lra", [38.7, 38.6]),
    "O-17": ("lu-table-21", "random", "listops", 34),
    "O-19": ("lu-table-18", "output + input", "bit-memory", 93),
    "O-20": ("rothermel-table-4", "UP", "mnist", {"is": 99.0, "sem": 0.1}),
    "O-21": ("rothermel-table-1", "FR", "cifar10-lra", 63.0),
    "O-22": ("rothermel-table-2", "UP", "listops", 180000),
    "O-23": ("rothermel-table-4", "UR", "mnist", 98.5),
    "O-24": ("rothermel-table-3", "FR", "cifar10", [62.9, 61.1, 1.8]),
    "O-32": ("lu-table-17", "T5", "listops", 37.0),
    "O-34": ("rothermel-table-1", "UP", "listops", {"is": 57.8, "sem": 0.9}),
    "O-31": ("lu-table-9", "statistics", "cifar10-lra", 40),
}
COUNTED = {"L-19", "L-29", "L-30", "L-52", "R-24", "R-29", "O-26"}  # tested below
DECIDED = {name: claim for name, claim in claims().items() if claim.arithmetic or claim.printed}


def test_every_claim_has_its_function_and_every_function_its_claim() -> None:
    assert {name for name, claim in DECIDED.items() if claim.arithmetic} == set(FUNCTIONS)
    assert set(DECIDED) == {*IN_CLAIMS, *IN_TABLES, *COUNTED}


@pytest.mark.parametrize("name", sorted(DECIDED))
def test_the_verdict_on_what_is_printed(name: str) -> None:
    holds, note = computed(DECIDED[name])
    assert holds is (name not in MISPRINTED), note
    assert note


@pytest.mark.parametrize("name", sorted(IN_CLAIMS))
def test_another_number_in_the_text_gives_another_verdict(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, key, number = IN_CLAIMS[name]
    before = computed(DECIDED[name])[0]
    other = claim_of(where).model_copy(deep=True)
    other.numbers[key] = number
    monkeypatch.setattr(arithmetic, "claim", lambda wanted: other if wanted == where else claim_of(wanted))
    assert {before, computed(other if name == where else DECIDED[name])[0]} == {True, False}


@pytest.mark.parametrize("name", sorted(IN_TABLES))
def test_another_number_in_a_table_gives_another_verdict(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, row, task, number = IN_TABLES[name]
    other = table(where).model_copy(deep=True)
    other.rows[row].printed[task] = Printed.model_validate(number)
    for module in (arithmetic, papers):
        monkeypatch.setattr(module, "table", lambda wanted: other if wanted == where else table(wanted))
    assert computed(DECIDED[name])[0] is False


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("L-29", {"total_M": [124.4, 354.8, 774.0]}, {"trained_K": [106, 190, 310]}),
        ("L-30", {"layer_norm": 36864, "positions": 49152}, {"percent_xl": 0.03}),
    ],
)
def test_counts_that_are_printed_right_are_supported(name: str, right: dict[str, Any], wrong: dict[str, Any]) -> None:
    printed = claim_of(name).model_copy(deep=True)
    for numbers, answer in ((right, True), (wrong, False)):
        printed.numbers.update(numbers)
        assert computed(printed)[0] is answer


@pytest.mark.parametrize(
    ("name", "part", "other"),
    [
        ("L-19", "trained", {"gpt2": 100_000, "lstm": 100_000, "lstm-released": 110_000}),
        ("L-52", "tokens_mix", {"fpt": True}),
        ("R-29", "new_positions_learn", {"frozen-random": False}),
    ],
)
def test_another_count_gives_another_verdict(
    name: str, part: str, other: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = counted() | {part: counted()[part] | other}
    monkeypatch.setattr(arithmetic, "counted", lambda: found)
    assert computed(DECIDED[name])[0] is (name in MISPRINTED)


def test_what_is_counted_is_in_the_file() -> None:
    """Where it fails, run `python -m fpt.claims.counted` and read the diff."""
    assert count() == counted()


def test_positions_learn_where_they_train() -> None:
    assert not new_positions_learn("pretrained", ["input", "output", "layer_norm"])


def test_balanced_batches_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arithmetic, "CIFAR10_BATCHES", [[1000] * 10] * 5)
    assert computed(DECIDED["R-24"])[0] is True
    assert computed(DECIDED["O-26"])[0] is False


@pytest.mark.data
def test_the_batches_are_those_of_the_data() -> None:
    data: Any = load("cifar10").data
    labels = data.train.targets[:, 0]
    batches = [labels[at : at + 10_000].bincount(minlength=10).tolist() for at in range(0, 50_000, 10_000)]
    assert batches == [list(batch) for batch in CIFAR10_BATCHES]


def test_a_claim_without_its_function_is_named() -> None:
    claim = Claim(id="O-022", says="so", where="there", arithmetic=True)
    with pytest.raises(SpecError, match=r"claim with a function in fpt.claims.arithmetic 'O-022'"):
        computed(claim)


def comparison(relation: str, row: str, other: str, **fields: Any) -> Claim:
    places = [{"table": "lu-table-2", "row": name} for name in (row, other)]  # cifar10: FPT 68.2, random 61.7
    entry = {"relation": relation, "of": places, "tasks": ["cifar10"], **fields}
    return Claim.model_validate({"says": "so", "where": "there", "printed": [entry]})


@pytest.mark.parametrize(
    ("relation", "row", "other", "by", "holds"),
    [
        ("equal", "FPT", "random", 6.5, True),
        ("equal", "FPT", "random", 6.4, False),
        ("differ", "FPT", "random", 6.4, True),
        ("differ", "FPT", "random", 6.5, False),
        ("below", "random", "FPT", 0, True),
        ("below", "FPT", "FPT", 0, False),
        ("below", "FPT", "random", 0, False),
    ],
)
def test_relations_of_printed_numbers(relation: str, row: str, other: str, by: float, holds: bool | None) -> None:
    assert computed(comparison(relation, row, other, by=by))[0] is holds


def test_the_note_names_the_rows_their_tables_and_the_tasks() -> None:
    _, note = computed(comparison("differ", "FPT", "random", by=6.4))
    assert note == "FPT (Table 2) against random (Table 2): CIFAR-10 68.2 and 61.7"
    _, note = computed(DECIDED["O-21"])
    assert note.startswith("R-09 against Unfrozen Pretrained less the best of Frozen Pretrained, Frozen Random, ")


def test_a_number_that_no_table_prints_is_named() -> None:
    with pytest.raises(SpecError, match=r"row of lu-table-2 on cifar10 'randon'.*Did you mean 'random'"):
        computed(comparison("equal", "FPT", "randon"))
