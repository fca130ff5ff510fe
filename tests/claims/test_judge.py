"""Verdicts as data: which study speaks, what counts, every word on made-up data; and runs/verdicts.csv as committed."""

import math
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import synthetic
from made_cells import Made, claim, paper, study
from typer.testing import CliRunner

from fpt.claims import judge, verdicts, words
from fpt.claims.asked import CHANGED, EXPLORATORY, PLANNED
from fpt.claims.judge import Judge
from fpt.claims.verdicts import FILE, FLOORED, ROBUSTNESS, SPEAKS
from fpt.cli import app
from fpt.errors import DataError
from fpt.papers import rule_hash
from fpt.papers.schema import Claim
from fpt.results.contrasts import rounded
from fpt.results.pairs import Pairs, pairs

ROWS = ("FP", "UP")
HIGH, LOW, WIDE = Made(85.0), Made(80.0), Made(80.5, sd=4.0)
PAIRS = ("digits", "digits-lra", "listops-short")
FINE = {"drawn_by_seed": False, "size": 200, "budget": 100, "last": 200}  # a test set so small that its noise is large
COLUMNS_THAT_ARE_EXACT = ("claim", "finding", "pair", "role", "study", "task", "word", "scale", "planned")


def made(monkeypatch, rows, name="made"):
    """A study of two arms on some tasks."""
    toy = paper(ROWS)
    found = study(monkeypatch, toy, *[(task, dict(zip(ROWS, both, strict=True))) for task, both in rows.items()])
    cells = [cell for by_row in found.tasks.values() for cell in by_row.values()]
    results = {f"{cell.task} {cell.row}": cell.tables for cell in cells if cell.tables}
    found.name, found.results = name, results
    return found


def judged(studies, rule=None, alone=False):
    """The rows of a claim; the first is its summary."""
    rows = Judge(studies, alone).of_claim(claim(rule or {"beats": list(ROWS)}))
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("pairs", "word"),
    [
        ([(HIGH, LOW)] * 3, words.HOLDS),
        ([(LOW, HIGH)] * 3, words.HOLDS_NOT),
        ([(HIGH, LOW), (LOW, HIGH), (HIGH, LOW)], words.MIXED),
        ([(WIDE, LOW)] * 3, words.TOO_CLOSE),
        ([(Made(8.0), Made(5.0))], words.AT_FLOOR),
        ([(HIGH, Made(missing=True))], words.NOT_RUN),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_word_of_a_claim_over_its_pairs(pairs, word, monkeypatch):
    found = judged([made(monkeypatch, dict(zip(PAIRS, pairs, strict=False)))])
    assert found["word"][0] == word
    assert (found["pair"][1:] != "").all()


def test_a_likeness_that_the_test_set_hides(monkeypatch):
    noisy = Made(80.0, result={"test": FINE})
    rule = {"comparable": list(ROWS)}
    assert judged([made(monkeypatch, {"digits": (noisy, noisy)})], rule)["word"][0] == words.NOT_SHOWABLE
    exact = Made(80.0, sd=0.1)
    assert judged([made(monkeypatch, {"digits": (exact, exact)})], rule)["word"][0] == words.ONE_FOR


def test_a_claim_about_the_papers_own_scale_says_so(monkeypatch):
    """Reduced runs neither decide it nor leave its summary without a reason."""
    summary = judged([made(monkeypatch, {"digits": (HIGH, LOW)})], {"beats": list(ROWS), "only_paper_scale": True})
    assert list(summary["word"]) == [words.NOT_RUN]
    assert summary["note"][0] == judge.ITS_OWN_SCALE


def test_the_summary_of_a_claim_without_runs_names_the_study_that_would_decide(monkeypatch):
    monkeypatch.setattr(judge, "pairs", lambda: Pairs(pairs={}))
    found = judged([made(monkeypatch, {"digits": (HIGH, Made(missing=True))}, "planned")])
    assert list(found["word"]) == [words.NOT_RUN]
    assert "planned" in found["note"][0]
    assert judged([made(monkeypatch, {})])["note"][0] == judge.NO_STUDY


def test_a_row_has_its_numbers_in_points(monkeypatch):
    row = judged([made(monkeypatch, {"digits": (HIGH, LOW)})]).iloc[1]
    assert (row["pair"], row["role"], row["word"], row["unit"]) == ("tiny-lm/digits", SPEAKS, words.FOR, "points")
    assert row["low"] < row["estimate"] < row["high"]
    assert row["estimate"] == pytest.approx(5, abs=1)
    assert (row["steps"], row["seeds"], row["at"]) == (400, 8, "tuned")


def test_the_first_study_of_the_list_speaks_and_names_what_moves_with_the_steps(monkeypatch):
    longer = {"fields": {"steps": 800}}
    one = made(monkeypatch, {"digits": (replace(HIGH, **longer), replace(LOW, **longer))}, "long")
    other = made(monkeypatch, {"digits": (LOW, HIGH)}, "short")
    unlisted = made(monkeypatch, {"digits": (HIGH, LOW)}, "unlisted")
    found = judged([other, unlisted, one])
    assert found["word"][0] == words.ONE_FOR
    roles = dict(zip(found["study"][1:], found["role"][1:], strict=True))
    assert roles == {"long": SPEAKS, "short": ROBUSTNESS, "unlisted": ROBUSTNESS}
    notes = dict(zip(found["study"][1:], found["note"][1:], strict=True))
    assert notes["long"] == "depends on steps: against after 400 in short"
    assert "depends" not in notes["short"]


def test_what_is_read_at_every_rate_is_read_where_there_is_a_grid(monkeypatch):
    pair = pairs().pairs["tiny-lm/digits"].model_copy(update={"speaks": ("long",), "every_rate": ("short",)})
    monkeypatch.setattr(judge, "pairs", lambda: Pairs(pairs={"tiny-lm/digits": pair}))
    both = [made(monkeypatch, {"digits": (HIGH, LOW)}, name) for name in ("long", "short")]
    plane = {"function": "plane", "rows": list(ROWS), "words": "so"}
    for rule, speaks in ((None, "long"), (plane, "short")):
        found = judged(both, rule)
        assert {study for study, role in zip(found["study"], found["role"], strict=True) if role == SPEAKS} == {speaks}


@pytest.mark.parametrize(
    "less",
    [
        {"seeds": 6},
        {"fields": {"schedule": "cosine"}},
        {"fields": {"weight_decay": 0.1}},
        {"fields": {"warmup": 0.1}},
        {"fields": {"clip": None}},
        {"fields": {"dropout": 0.0}},
        {"fields": {"report": "last"}},
        {"fields": {"data_fraction": 0.1}},
        {"fields": {"shuffle_tokens": True}},
    ],
    ids=lambda less: next(iter(less.get("fields", less))),
)
def test_what_is_robustness_alone(less, monkeypatch):
    found = judged([made(monkeypatch, {"digits": (replace(HIGH, **less), replace(LOW, **less))})])
    assert list(found["role"][1:]) == [ROBUSTNESS]
    assert found["word"][0] == words.NOT_RUN


def test_a_pair_that_is_not_listed_is_robustness(monkeypatch):
    monkeypatch.setattr(judge, "pairs", lambda: Pairs(pairs={}))
    rows = {"digits": (HIGH, LOW)}
    assert list(judged([made(monkeypatch, rows)])["role"][1:]) == [ROBUSTNESS]
    assert list(judged([made(monkeypatch, rows)], alone=True)["role"][1:]) == [SPEAKS]


def test_a_pair_at_floor_is_shown_and_not_counted(monkeypatch):
    found = judged([made(monkeypatch, {"digits": (Made(8.0), Made(5.0)), "digits-lra": (HIGH, LOW)})])
    assert sorted(found["role"][1:]) == [FLOORED, SPEAKS]
    assert found["word"][0] == words.ONE_FOR
    assert "1 at floor" in found["note"][0]


@pytest.mark.parametrize("other", [{"UR": Made(missing=True)}, {}], ids=["not run", "not planned"])
def test_nothing_is_for_a_pair_while_a_contrast_is_missing(other, monkeypatch):
    """A rule of which nothing is planned there does not count."""
    found = study(monkeypatch, paper(("FP", "UP", "UR")), {"FP": HIGH, "UP": LOW} | other)
    found.results = {}
    monkeypatch.setattr(judge, "at_floor", lambda *_: False)
    assert judged([found], {"beats": ["FP", "UP", "UR"]})["word"][0] == words.TOO_CLOSE
    assert judged([found], {"beats": ["UP", "FP", "UR"]})["word"][0] == words.ONE_AGAINST
    apart = claim({"beats": ["FP", "UP"]}, {"beats": ["FP", "UR"]})
    assert Judge([found]).of_claim(apart)[0]["word"] == (words.TOO_CLOSE if other else words.ONE_FOR)


@pytest.mark.parametrize("count", [1, 3])
def test_primary_claims_are_corrected_together(count, monkeypatch):
    runs = made(monkeypatch, {"digits": (Made(80.6, sd=0.4), LOW)})
    one = claim({"beats": list(ROWS)})
    alone = Judge([runs]).of_claim(one)[0]
    primary = [one.model_copy(update={"id": f"T-{k:02}", "primary": True}) for k in range(1, count + 1)]
    toy = paper(ROWS).model_copy(update={"claims": {each.id: each for each in primary}})
    monkeypatch.setattr("fpt.papers.papers", lambda: {"toy": toy})
    monkeypatch.setattr(judge, "papers", lambda: {"toy": toy})
    summaries = Judge([runs]).table().query("pair == ''")
    assert list(summaries["p"]) == pytest.approx([count * alone["p"]] * count)
    assert ["; p =" in note for note in summaries["note"]] == [count > 1] * count  # corrected, as it says


@pytest.mark.parametrize(
    ("name", "holds", "said"),
    [
        ("L-19", True, words.CONSISTENT), ("L-19", False, words.SLIP),
        ("O-01", True, words.SLIP), ("O-01", False, words.CONSISTENT),
        ("L-19", None, words.READ),
    ],
)  # fmt: skip
def test_words_without_runs(name, holds, said):
    given = Claim(id=name, says="so", where="there", documentary="read")
    assert judge.in_print(given, holds) == said


@pytest.mark.parametrize(
    ("asks", "seeds", "word"),
    [
        ({"T-01": "today"}, 8, PLANNED), ({"T-01": "today"}, 7, EXPLORATORY),
        ({"T-01": "another"}, 8, CHANGED), ({}, 8, EXPLORATORY),
    ],
)  # fmt: skip
def test_whether_runs_were_made_for_a_claim_stands_beside_it(asks, seeds, word, monkeypatch):
    made(monkeypatch, {"digits": (HIGH, LOW)})
    today = {"today": rule_hash(claim({"beats": list(ROWS)}))}
    result = {"asks": {name: today.get(given, given) for name, given in asks.items()}}
    both = [replace(each, seeds=seeds, result=result) for each in (HIGH, LOW)]
    assert judged([made(monkeypatch, {"digits": both})])["planned"][1] == word


def test_a_readers_own_study(study, tmp_path):
    """`fpt judge STUDY` writes beside the runs, and another digest where they changed."""
    root = tmp_path / "workspace"
    shutil.copytree(study.parents[1], root)
    result = CliRunner().invoke(app, ["judge", study.name, "--root", str(root)])
    assert result.exit_code == 0, result.output
    table = verdicts.read(root / "runs" / study.name / FILE)
    assert not (root / "runs" / FILE).exists()
    assert set(table["study"]) <= {"", study.name}
    assert table["digest"][0] == verdicts.digest_of_runs(root, study.name)
    with (root / "runs" / study.name / "study.yaml").open("a") as file:
        file.write("# changed\n")
    assert table["digest"][0] != verdicts.digest_of_runs(root, study.name)


def test_a_digest_that_does_not_fit_is_refused(study, tmp_path):
    root = tmp_path / "workspace"
    shutil.copytree(study.parents[1], root)
    with pytest.raises(DataError, match="fpt judge"):
        verdicts.check_digest(root)
    table = pd.DataFrame([dict.fromkeys(verdicts.COLUMNS, "")])
    verdicts.write(table, root / "runs" / FILE, verdicts.digest_of_runs(root))
    verdicts.check_digest(root)
    verdicts.write(table, root / "runs" / FILE, "0" * 16)
    with pytest.raises(DataError, match="other results"):
        verdicts.check_digest(root)


def test_what_is_committed_follows_from_what_is_published(root):
    """Words exactly, numbers to what processors differ in. Where it fails, run `fpt judge` and read the diff."""
    verdicts.check_digest(root)
    kept = verdicts.read(root / "runs" / FILE)
    made_now = judge.judge(root).map(verdicts.as_text)
    assert len(kept) == len(made_now)
    for name in COLUMNS_THAT_ARE_EXACT:
        assert list(kept[name]) == list(made_now[name]), name
    notes = (table.loc[table["pair"] == "", "note"].str.partition("; p =")[0] for table in (kept, made_now))
    assert len(set(map(tuple, notes))) == 1  # a study that nobody ran changes nothing else
    for name in verdicts.NUMBERS:
        numbers = pd.to_numeric(made_now[name]).to_numpy(float)
        np.testing.assert_allclose(kept[name].to_numpy(float), numbers, rtol=1e-6, atol=1e-9, err_msg=name)


def test_a_study_that_is_not_published_changes_no_digest(tmp_path):
    published = synthetic.finish(synthetic.workspace(tmp_path), "published")
    before = verdicts.digest_of_runs(tmp_path)
    synthetic.workspace(tmp_path, "mine")
    assert verdicts.digest_of_runs(tmp_path) == before
    with (published / "study.yaml").open("a") as file:
        file.write("# changed\n")
    assert verdicts.digest_of_runs(tmp_path) != before


def test_of_the_claims_of_a_finding_those_that_ask_its_contrast_make_it_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made(monkeypatch, {"digits": (HIGH, LOW)})
    same, ordered = claim({"matches": ["FP", "UP"]}), claim({"order": ["UP", "FP"]})
    opposite, at_one_rate = claim({"beats": ["UP", "FP"]}), claim({"beats": ["FP", "UP"], "at": "paper"})
    (rule,) = claim({"beats": ["FP", "UP"]}).rule
    asked = judge.Asked("", "better", (rule,), (same, opposite, ordered, at_one_rate))
    assert asked.of_contrast(rule) == [same, ordered]


def test_a_row_of_a_plane_has_the_rate_and_the_budget_of_its_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = made(monkeypatch, {"digits": (HIGH, LOW)})
    for row in judged([runs], {"plane": list(ROWS)})[1:].to_dict("records"):
        assert row["contrast"].endswith(f" at {row['at']} after {int(row['budget'])} steps")
    (row,) = judged([runs], {"crossing": list(ROWS)})[1:].to_dict("records")
    assert f"tuned, after {int(row['budget'])} steps" in row["contrast"]
    assert row["at"] == "tuned"


def test_one_seed_is_not_at_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    one = {"digits": (replace(HIGH, seeds=1), replace(LOW, seeds=1))}
    assert FLOORED not in list(judged([made(monkeypatch, one)], alone=True)["role"])


def written(folder, number, **fields):
    """The file of one row, with this number wherever there is one."""
    row = dict.fromkeys(verdicts.COLUMNS, "") | dict.fromkeys(verdicts.NUMBERS, number) | fields
    verdicts.write(pd.DataFrame([row]), folder / FILE, "0")
    return folder / FILE


def test_numbers_are_rounded_where_they_are_printed_and_not_in_the_file(tmp_path) -> None:
    """Rounded to four digits in between, 74.546 would be printed as 74.6."""
    kept = verdicts.read(written(tmp_path, 74.546, steps=15625, budget=11719)).iloc[0]
    assert (kept["steps"], kept["budget"], kept["estimate"]) == (15625, 11719, 74.546)
    assert rounded(kept["estimate"], 1) == "74.5"


def test_text_that_looks_like_a_missing_value_stays_text(tmp_path) -> None:
    kept = verdicts.read(written(tmp_path, math.nan, study="null", note="NA")).iloc[0]
    assert (kept["study"], kept["note"], kept["claim"]) == ("null", "NA", "")
    assert math.isnan(kept["estimate"])


@pytest.mark.parametrize(
    "spoil",
    [lambda text: text.replace("pair", "pear", 1), lambda text: text.splitlines()[0], lambda text: "claim\n"],
    ids=["another column", "no rows", "one column"],
)
def test_verdicts_of_another_form_are_refused(spoil, tmp_path) -> None:
    path = written(tmp_path, 1.0)
    path.write_text(spoil(path.read_text()))
    with pytest.raises(DataError, match="fpt judge"):
        verdicts.read(path)
