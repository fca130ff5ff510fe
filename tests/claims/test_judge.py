"""Verdicts as data: which study speaks, what counts, every word on made-up data; and the files as
committed."""

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
from fpt.claims.arithmetic import in_print
from fpt.claims.asked import CHANGED, EXPLORATORY, PLANNED, claims_that_ask
from fpt.claims.verdicts import CLAIMS, CONTRASTS, FLOORED, ROBUSTNESS, SPEAKS
from fpt.cli import app
from fpt.errors import DataError
from fpt.papers import rule_hash
from fpt.papers.schema import Claim
from fpt.results.estimate import rounded
from fpt.results.pairs import Pairs, pairs

ROWS = ("FP", "UP")
HIGH, LOW, WIDE = Made(85.0), Made(80.0), Made(80.5, sd=4.0)
PAIRS = ("digits", "digits-lra", "listops-short")
FINE = {"drawn_by_seed": False, "size": 200, "budget": 100, "last": 200}  # a test set so small that its noise is large


def made(monkeypatch, rows, name="made"):
    """A study of two arms on some tasks."""
    toy = paper(ROWS)
    found = study(monkeypatch, toy, *[(task, dict(zip(ROWS, both, strict=True))) for task, both in rows.items()])
    found.name = name
    return found


def judged(studies, rule=None, alone=False):
    """The rows of a claim; the first is its summary."""
    return judge.judged(studies, [claim(rule or {"beats": list(ROWS)})], alone)


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


def test_a_likeness_that_the_test_set_hides_is_too_close_to_call(monkeypatch):
    noisy = Made(80.0, result={"test": FINE})
    rule = {"comparable": list(ROWS)}
    assert judged([made(monkeypatch, {"digits": (noisy, noisy)})], rule)["word"][0] == words.TOO_CLOSE
    exact = Made(80.0, sd=0.1)
    assert judged([made(monkeypatch, {"digits": (exact, exact)})], rule)["word"][0] == words.HOLDS


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
    assert found["word"][0] == words.HOLDS
    roles = dict(zip(found["study"][1:], found["role"][1:], strict=True))
    assert roles == {"long": SPEAKS, "short": ROBUSTNESS, "unlisted": ROBUSTNESS}
    told = dict(zip(found["study"][1:], found["other_steps"][1:], strict=True))
    assert told == {"long": "against after 400 in short", "short": "", "unlisted": ""}


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
    assert found["word"][0] == words.HOLDS
    assert "1 at floor" in found["note"][0]


@pytest.mark.parametrize("other", [{"UR": Made(missing=True)}, {}], ids=["not run", "not planned"])
def test_nothing_is_for_a_pair_while_a_contrast_is_missing(other, monkeypatch):
    """A rule of which nothing is planned there does not count."""
    found = study(monkeypatch, paper(("FP", "UP", "UR")), {"FP": HIGH, "UP": LOW} | other)
    monkeypatch.setattr(judge, "at_floor", lambda *_: False)
    assert judged([found], {"beats": ["FP", "UP", "UR"]})["word"][0] == words.TOO_CLOSE
    assert judged([found], {"beats": ["UP", "FP", "UR"]})["word"][0] == words.HOLDS_NOT
    apart = claim({"beats": ["FP", "UP"]}, {"beats": ["FP", "UR"]})
    assert judge.judged([found], [apart])["word"][0] == (words.TOO_CLOSE if other else words.HOLDS)


@pytest.mark.parametrize(
    ("name", "holds", "said"),
    [
        ("L-19", True, words.CONSISTENT), ("L-19", False, words.SLIP),
        ("O-01", True, words.SLIP), ("O-01", False, words.CONSISTENT),
    ],
)  # fmt: skip
def test_words_without_runs(name, holds, said):
    given = Claim(id=name, says="so", where="there", documentary="read")
    assert in_print(given, holds) == said


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
    table = verdicts.read(root / "runs" / study.name)
    assert not (root / "runs" / CLAIMS).exists()
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
    verdicts.write(one_row(1.0), root / "runs", verdicts.digest_of_runs(root))
    verdicts.check_digest(root)
    verdicts.write(one_row(1.0), root / "runs", "0" * 16)
    with pytest.raises(DataError, match="other results"):
        verdicts.check_digest(root)


def test_what_is_committed_follows_from_what_is_published(root, tmp_path):
    """Words exactly, numbers to what processors differ in. Where it fails, run `fpt judge` and read the diff."""
    verdicts.check_digest(root)
    table = judge.judge(root)
    verdicts.write(table, tmp_path, "")
    for name in (CONTRASTS, CLAIMS):
        kept, made_now = (pd.read_csv(folder / name, dtype=str).fillna("") for folder in (root / "runs", tmp_path))
        for column in kept.drop(columns=verdicts.DIGEST):
            if column in verdicts.NUMBERS:
                numbers = (pd.to_numeric(each[column]).to_numpy(float) for each in (kept, made_now))
                np.testing.assert_allclose(*numbers, rtol=1e-6, atol=1e-9, err_msg=column)
            else:
                assert list(kept[column]) == list(made_now[column]), column
    of_runs = [name for name in verdicts.OF_CONTRASTS if name not in ("id", "planned")]
    shown = verdicts.turned(table[table["id"] != ""])[["id", *of_runs]].map(verdicts.as_text)
    assert len(shown.drop_duplicates()) == shown["id"].nunique()  # one contrast is the same for every claim


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
    assert claims_that_ask(rule, (same, opposite, ordered, at_one_rate)) == [same, ordered]


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


def one_row(number, **fields):
    """A table of one contrast, with this number wherever there is one."""
    numbers = dict.fromkeys(verdicts.NUMBERS, number) | {"sign": 1.0}
    planned = {"id": "0123abcd", "planned": PLANNED}
    return pd.DataFrame([dict.fromkeys(verdicts.COLUMNS, "") | numbers | planned | fields])


def kept(folder, table):
    """The only row of a table that was written and read."""
    verdicts.write(table, folder, "0")
    return verdicts.read(folder).iloc[0]


def test_numbers_are_rounded_where_they_are_printed_and_not_in_the_file(tmp_path) -> None:
    """Rounded to four digits in between, 74.546 would be printed as 74.6."""
    row = kept(tmp_path, one_row(74.546, steps=15625, budget=11719))
    assert (row["steps"], row["budget"], row["estimate"]) == (15625, 11719, 74.546)
    assert rounded(row["estimate"], 1) == "74.5"


def test_text_that_looks_like_a_missing_value_stays_text(tmp_path) -> None:
    row = kept(tmp_path, one_row(math.nan, study="null", note="NA"))
    assert (row["study"], row["note"], row["claim"]) == ("null", "NA", "")
    assert math.isnan(row["estimate"])


def test_a_contrast_stands_once_in_the_file_whichever_way_a_claim_reads_it(tmp_path) -> None:
    sides = {"level_first": 6.0, "level_second": 5.0, "first": "a", "second": "b"}
    one = one_row(0.5, claim="P-01", estimate=1.0, low=-1.0, high=3.0, planned=CHANGED, **sides)
    turned = {"level_first": 5.0, "level_second": 6.0, "first": "b", "second": "a", "sign": -1.0}
    other = one_row(0.5, claim="P-02", estimate=-1.0, low=-3.0, high=1.0, **turned)
    both = pd.concat([one, other], ignore_index=True)
    verdicts.write(both, tmp_path, "0")
    (line,) = pd.read_csv(tmp_path / CONTRASTS).to_dict("records")
    assert (line["first"], line["estimate"], line["low"], line["planned"]) == ("a", 1.0, -1.0, PLANNED)
    numbers = ["estimate", "low", "high", "level_first", "level_second"]
    assert verdicts.read(tmp_path)[numbers].to_numpy().tolist() == both[numbers].to_numpy().tolist()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace("id", "ID", 1), lambda text: text.splitlines()[0], lambda text: "claim\n",
        lambda text: text.replace("0123abcd", "another"), lambda text: text.replace(",0\n", ",1\n"),
    ],
    ids=["another column", "no rows", "one column", "another contrast", "another digest"],
)  # fmt: skip
@pytest.mark.parametrize("name", [CONTRASTS, CLAIMS])
def test_verdicts_of_another_form_are_refused(spoil, name, tmp_path) -> None:
    kept(tmp_path, one_row(1.0))
    path = tmp_path / name
    path.write_text(spoil(path.read_text()))
    with pytest.raises(DataError, match="fpt judge"):
        verdicts.read(tmp_path)
