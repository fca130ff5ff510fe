"""Tables: what they say agrees with the runs; studies and setups stay apart."""

import math
from pathlib import Path

import pandas as pd
import pytest
import synthetic
from made_cells import Made, cell, paper
from made_cells import study as study_of
from made_cells import verdict as made_verdict

from fpt.claims.reading import Part
from fpt.claims.verdicts import SUPPORTED, Verdict
from fpt.papers import papers, table
from fpt.papers.schema import Printed
from fpt.results import StudyCells, load_runs
from fpt.results.attention import attention_maps
from fpt.results.cells import THREE_SEEDS
from fpt.results.runs import SHORT
from fpt.results.stats import Paired, mean_interval, paired
from fpt.show import across_studies, beside_paper, printed_table, summary, verdict_table
from fpt.show.numbers import known_in_words, layers_in_words, ratio_words, row_label
from fpt.show.printed import printed_text
from fpt.show.tables import attention_table
from fpt.sweeps import SweepSpec

TABLE_1 = table("rothermel-table-1")


def test_printed_numbers_with_their_marks() -> None:
    assert printed_text(Printed.model_validate({"is": 98.0, "sem": 0.0})) == "98.0 ± 0.0"
    assert printed_text(Printed.model_validate({"is": 72.1, "mark": "†"})) == "72.1†"
    assert printed_text(Printed.model_validate({"is": [58.1, 57.5]})) == "58.1 / 57.5"
    assert printed_text(Printed.model_validate({"is": 110000})) == "110,000"
    assert printed_text(Printed.model_validate({"is": "never"})) == "never"
    assert printed_text(None) == ""


def test_table_1_as_the_paper_prints_it() -> None:
    shown = printed_table(TABLE_1).frame.set_index("row")
    assert shown.loc["Unfrozen Pretrained", "CIFAR-10 LRA"] == "67.8 ± 0.3"
    assert shown.loc["Frozen Random", "ListOps"] == "38.9 ± 0.3"
    assert "CIFAR-10 LRA" not in printed_table(TABLE_1, without=["cifar10-lra"]).frame
    assert "Tay et al." in printed_table(table("lu-table-1")).caption


def test_ours_is_the_mean_and_its_standard_error(study: Path, runs: pd.DataFrame) -> None:
    arm = runs[runs["label"] == "FP"]
    tuned, at_1e_3 = (arm[arm["learning_rate"] == rate]["test_accuracy"] for rate in (1e-2, 1e-3))
    both = [f"{100 * each.mean():.1f} ± {100 * each.std() / 8**0.5:.1f}" for each in (tuned, at_1e_3)]
    shown = beside_paper(TABLE_1, StudyCells(study))
    assert shown.frame.set_index("row").loc["Frozen Pretrained", "Digits"] == " / ".join(both)
    assert shown.frame.set_index("row").loc["Unfrozen Pretrained", "Digits"].count("±") == 1  # tuned, it is 1e-3
    assert "1e-3" in shown.caption


SHALLOWER = """
paper: lu2021
tables: [lu-section-3-1, lu-table-12]
replace:
  - {where: {backbone: gpt2}, with: {backbone: tiny-lm}}
  - {where: {task: listops}, with: {task: digits}}
  - {where: {task: [mnist, cifar10, cifar10-lra, homology]}, with: null}
  - {where: {layers: 6}, with: null}
  - {where: {layers: 24}, with: {layers: 8}}
defaults: {random_init: matched, compute_type: float32, steps: 400, learning_rates: [1e-3, 1e-2],
           seeds: [0, 1, 2, 3, 4, 5, 6, 7]}
"""


def test_rows_and_captions_say_the_layers_that_were_trained(tmp_path: Path) -> None:
    folder = synthetic.workspace(tmp_path, "shallower", SHALLOWER)
    found = StudyCells(synthetic.finish(folder, accuracy=lambda *_: 0.5))
    of_lu = beside_paper(table("lu-section-3-1"), found)
    assert of_lu.frame["row"].tolist()[:2] == ["full (here 4 layers)", "full, 3 layers"]
    deep = beside_paper(table("lu-table-12"), found)
    assert deep.frame["row"].tolist()[:-1] == [
        "1 layer",
        "3 layers",
        "6 layers: not tested at this scale",
        "output only, no dropout (here 4 layers)",
        "output only, no dropout, random (here 4 layers)",
        "24 layers, random (here 8 layers)",
    ]
    assert (
        "Layers: 4 in the place of the paper's 12 (shallower), 8 in the place of the paper's 24 (shallower)."
        in deep.caption
    )


def test_where_no_row_names_layers_the_caption_alone_says_them(study: Path) -> None:
    found = StudyCells(study)
    arms = found.by_task(TABLE_1)["digits"]
    assert [row_label([cell]) for cell in arms.values()] == [cell.label for cell in arms.values()]
    shown = across_studies(TABLE_1, [found])
    assert "Layers: 4 in the place of the paper's 12 (laptop)." in shown.caption
    assert layers_in_words(found.by_task(table("ours-arms"))["digits"].values()) == ""  # of this study's own tables


def test_a_ratio_that_an_end_of_a_grid_leaves_open_says_so() -> None:
    ratios = [
        (0.1, 0.03, 1.0),
        (1e-4 / 3e-3, 0.01, 1e-3 / 3e-3),
        (0.1, 0.0, 0.1),
        (10.0, 10.0, math.inf),
        (1.0, 0.0, math.inf),
        (math.nan, 0.0, math.inf),
    ]
    said = ["0.1 (0.03 to 1)", "0.03 (0.01 to 0.3)", "0.1 (0.1 or less)", "10 (10 or more)", "1 (no bound)", "-"]
    assert [ratio_words(*each) for each in ratios] == said


def test_setups_are_never_averaged(tmp_path: Path) -> None:
    """400 and 800 steps of one arm on one task are two lines, not one mean."""

    def better(spec: SweepSpec, rate: float, seed: int) -> float:
        return min(1.0, synthetic.accuracy(spec, rate, seed) + (0.1 if spec.steps == 800 else 0.0))

    found = []
    for steps in (400, 800):
        text = synthetic.STUDY.replace("steps: 400", f"steps: {steps}")
        folder = synthetic.workspace(tmp_path, f"steps-{steps}", text)
        found.append(StudyCells(synthetic.finish(folder, accuracy=better)))
    column = across_studies(TABLE_1, found).frame.set_index("task and study")["Frozen Pretrained"]
    short, long = (float(column[f"Digits (steps-{steps})"].partition(" ")[0]) for steps in (400, 800))
    assert long - short == pytest.approx(10, abs=1)
    assert column["ListOps (paper)"] == "46.1 ± 0.3"


def test_three_seeds_choose_their_rate_and_are_reported(study: Path, runs: pd.DataFrame) -> None:
    """The protocol of Rothermel et al., from the same runs."""
    cells = StudyCells(study)
    three = runs[(runs["label"] == "UP") & (runs["learning_rate"] == 1e-3) & runs["seed"].isin([0, 1, 2])]
    expected = f"{100 * three['test_accuracy'].mean():.1f} ± {100 * three['test_accuracy'].sem():.1f}"
    shown = across_studies(TABLE_1, [cells], (THREE_SEEDS,))
    assert shown.frame.set_index("task and study").loc["Digits (laptop)", "Unfrozen Pretrained"] == expected
    assert "Tuned" not in shown.caption
    values = cells.by_task(TABLE_1)["digits"]["UP"].values(THREE_SEEDS)
    assert values.index.tolist() == [0, 1, 2]


def test_gaps_have_an_interval(study: Path) -> None:
    shown = beside_paper(table("rothermel-table-3"), StudyCells(study)).frame.set_index("row")
    assert shown.loc["Frozen Pretrained", "Digits: training - test (95% interval)"] == "+0.0 (-0.0 to +0.0)"
    assert shown.loc["Unfrozen Pretrained", "Digits: test"].startswith("9")
    line = across_studies(table("rothermel-table-3"), [StudyCells(study)]).frame.set_index("task and study")
    assert line.loc["MNIST (paper)", "Unfrozen Random"] == "99.9 / 98.6 / 1.3"
    train, test, difference = line.loc["Digits (laptop)", "Unfrozen Pretrained"].split(" / ")
    assert train == test == shown.loc["Unfrozen Pretrained", "Digits: test"]
    assert difference == "+0.0 (-0.0 to +0.0)"


def test_steps_say_what_can_be_resolved(study: Path) -> None:
    caption = beside_paper(table("rothermel-table-2"), StudyCells(study)).caption
    assert "Goals: Frozen Pretrained after its last step." in caption
    assert "Budgets are a factor of two apart; after a tenth, validations at most " in caption


@pytest.mark.parametrize("skip", list(SHORT))
@pytest.mark.parametrize("name", ["rothermel-table-1", "rothermel-table-2", "rothermel-table-3"])
def test_a_table_of_a_study_that_lacks_an_arm_has_the_others(tmp_path: Path, name: str, skip: str) -> None:
    half = StudyCells(synthetic.finish(synthetic.workspace(tmp_path), skip=(skip,)))
    line = across_studies(table(name), [half]).frame.set_index("task and study").loc["Digits (laptop)"]
    arms = line.drop("Baselines", errors="ignore")
    missing = table(name).kind == "steps" and SHORT[skip] == "FP"  # which is what the others are to reach
    assert list(arms.eq("not run yet")) == [SHORT[skip] == row for row in table(name).rows]
    assert list(arms.eq("no goal")) == [missing and row != "FP" for row in table(name).rows]


def test_a_table_that_was_not_run_says_so(tmp_path: Path) -> None:
    frame = beside_paper(TABLE_1, StudyCells(synthetic.workspace(tmp_path))).frame
    *rows, baselines = frame["Digits"]
    assert set(rows) == {"not run yet"}
    assert baselines.startswith("chance 10.0, majority class")


@pytest.mark.parametrize("name", [name for paper in papers().values() for name in paper.tables])
def test_every_table_of_accuracies_ends_with_its_baselines(name: str) -> None:
    frame = printed_table(table(name)).frame
    last = frame.iloc[-1] if len(frame) else {"row": ""}
    accuracies = table(name).kind in ("accuracy", "gap") and len(frame) > 0
    assert (last["row"] == "Baselines") == accuracies
    assert not accuracies or all("chance" in str(cell) for cell in last[1:])


def test_baselines_are_those_of_the_data_that_the_paper_trains_on() -> None:
    lu, rothermel = (printed_table(table(name)).frame.set_index("row").loc["Baselines"] for name in
                     ("lu-table-2", "rothermel-table-1"))  # fmt: skip
    assert "exact to depth 1" in rothermel["ListOps"]
    assert "exact" not in lu["ListOps"]  # without brackets nothing can be evaluated
    assert "linear classifier" in lu["MNIST"]
    assert "copy the visible bits 75.0" in lu["Bit Memory"]


def test_baselines_stand_below_ours(study: Path) -> None:
    frame = beside_paper(TABLE_1, StudyCells(study)).frame.set_index("row")
    assert frame.loc["Baselines", "Digits"] == known_in_words("digits")


def test_summary_and_divergence(tmp_path: Path) -> None:
    def never(spec: SweepSpec, rate: float, seed: int) -> float:
        return float("nan") if spec.trainable == "all" else synthetic.accuracy(spec, rate, seed)

    rows = summary(load_runs(synthetic.finish(synthetic.workspace(tmp_path), accuracy=never))).set_index("arm")
    assert rows.loc["UP", "learning rate"] == "none eligible"
    assert rows.loc["UP", "test accuracy (95% interval)"] == "-"
    assert rows.loc["FP", "diverged runs"] == 0
    assert rows.loc["FP", "learning rate"] == "1e-2"


def test_the_rates_that_seeds_choose_for_each_other(study: Path) -> None:
    runs = load_runs(study)
    arm = runs[runs["label"] == "FP"]
    other = arm["seed"].isin([0, 1]) & (arm["learning_rate"] == 1e-3)
    kept = ~arm["seed"].isin([0, 1]) & (arm["learning_rate"] == 1e-2)
    (row,) = summary(arm.assign(selected=other | kept)).to_dict("records")
    assert row["learning rate"] == "1e-3 (2 seeds), 1e-2 (6 seeds)"


def test_a_fixed_test_set_widens_the_interval(study: Path) -> None:
    arm = load_runs(study).query("label == 'FP'")
    (own,), (wider,) = (summary(arm.assign(sampled_from=images)).to_dict("records") for images in (math.nan, 1000))
    spread = "test accuracy (95% interval)"
    values = arm.loc[arm["selected"], "test_accuracy"]
    mean, low, high = mean_interval(values, values.mean() * (1 - values.mean()) / 1000)
    assert wider[spread] == f"{100 * mean:.1f} ({100 * low:.1f} to {100 * high:.1f})" != own[spread]


def test_tables_of_no_runs(tmp_path: Path) -> None:
    study = synthetic.workspace(tmp_path)
    assert summary(load_runs(study)).empty


def test_a_row_a_comparison_and_one_for_what_nobody_tried() -> None:
    found = [made_verdict("R-01", SUPPORTED, "laptop"), Verdict("R-18", "not tested"), Verdict("R-20", "not tested")]
    frame = verdict_table(found).frame
    assert frame["claim"].tolist() == ["R-01", "R-18, R-20"]
    assert frame["difference (95% interval)"].tolist()[0].startswith("+11.0 (")
    assert frame["verdict"].tolist() == [SUPPORTED, "not tested"]


def test_a_wide_interval_says_how_many_seeds_a_narrow_one_takes() -> None:
    narrow, wide = (paired(pd.Series([mean - sd, mean, mean + sd]), 0.0) for mean, sd in ((0.1, 0.001), (0.2, 0.05)))
    assert [round(100 * test.half_width, 1) for test in (narrow, wide)] == [0.2, 12.4]
    parts = tuple(Part("digits", "FP - UP", test, SUPPORTED) for test in (narrow, wide, Paired(0)))
    frame = verdict_table([Verdict("R-01", SUPPORTED, "laptop", parts=parts)]).frame
    assert frame["half-width"].tolist() == ["0.2", "12.4", ""]
    assert frame["note"].tolist() == ["", "seeds for a half-width of 1 point: 99", ""]


def test_steps_are_those_of_the_mean_with_their_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = paper(["a", "b", "c"], "steps", until="a")
    rows = {"a": Made(arrives=[200]), "b": Made(arrives=[100]), "c": Made(top=50)}
    made = study_of(monkeypatch, toy, rows)
    shown = beside_paper(toy.tables["toy-table"], made).frame.set_index("row")["Digits"]  # type: ignore[arg-type]
    assert shown["a"].startswith("200 (100 to 200), validation ")
    assert shown["b"].startswith("100 (50 to 100), validation ")
    assert shown["c"].startswith("> 400, validation ")


def test_a_table_of_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = paper(["a", "b", "c"], "attention")
    monkeypatch.setattr("fpt.papers.papers", lambda: {"toy": toy})
    rows = {"a": Made(attention=(80, 30, 33)), "b": Made(), "c": Made(missing=True)}
    cells = {row: cell(toy.tables["toy-table"], row, made) for row, made in rows.items()}
    shown = attention_table(cells, "Attention").frame.set_index("weights")
    assert shown.loc["a", "tuned"].startswith("80.")
    assert shown.loc["a", "at 1e-3"] == shown.loc["a", "tuned"]
    assert shown.loc["a", "untrained"].startswith(("29.", "30."))
    assert shown.loc["a", "even spread"] == "33.0"
    assert list(shown.loc[["b", "c"], "tuned"]) == ["not measured", "not run yet"]
    assert list(attention_maps(cells.values())) == ["a"]
