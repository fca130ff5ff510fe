"""Exhibits that a single page defines for itself, on made-up results."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import synthetic
from bs4 import BeautifulSoup
from made_cells import verdict
from matplotlib.container import ErrorbarContainer
from pages import ROOT, definitions

from fpt.claims.verdicts import ASKED, CHANGED, CONTRADICTED, EDGE, INCONCLUSIVE, SUPPORTED, Verdict
from fpt.models import BACKBONES
from fpt.papers import claims, paper_of, table
from fpt.results import StudyCells
from fpt.results.cells import Cell
from fpt.results.runs import rate_text
from fpt.results.stats import mean_interval, paired
from fpt.show import by_depth, depth_figure, depth_table, setups, text, verdicts_on
from fpt.show.numbers import difference, interval, percent, points
from fpt.show.plot import HUES
from fpt.sweeps import SweepSpec

TABLE_1 = table("rothermel-table-1")
STATUS = definitions("book/status.md")
CLAIMS = definitions("book/claims.md")
SUMMARY = definitions("book/summary.md")
RANDOM_INIT = definitions("book/random-init.md")
MISPRINTS = definitions("book/misprints.md")
MINILM = definitions("book/minilm.md")
BESIDE = definitions("book/beside.md")
LEARNING_RATE = definitions("book/learning-rate.md")
PRACTICE = definitions("book/practice.md")
RERUN = definitions("book/rerun.md")
TASKS = ("listops", "mnist", "cifar10", "cifar10-lra")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete study; tests only read it."""
    return synthetic.finish(synthetic.workspace(tmp_path_factory.mktemp("workspace")))


@pytest.fixture(scope="module")
def whole(study: Path) -> list[Cell]:
    """An arm each, of four layers."""
    return list(text.arms(StudyCells(study), "digits").values())


@pytest.fixture(scope="module")
def shallow(whole: list[Cell]) -> list[Cell]:
    """The same results, as if of two layers."""
    return [replace(cell, spec=cell.spec.changed(backbone_options={"layers": 2})) for cell in whole if cell.spec]


def test_accuracy_over_layers_has_a_line_an_arm(whole: list[Cell], shallow: list[Cell]) -> None:
    found = {"Digits": [*whole, *shallow]}
    figure = depth_figure(found)
    (axes,) = [axes for axes in figure.axes if axes.get_visible()]
    assert axes.get_xticks().tolist() == [2, 4]
    assert "Digits, frozen pretrained, 4 layers: 86" in figure.get_label()
    assert "Digits, unfrozen random, 2 layers: " in figure.get_label()
    row = depth_table(found).frame.set_index("arm").loc["frozen pretrained"]
    accuracy = whole[1].values()
    assert row["2 layers"] == row["4 layers"] == f"{percent(accuracy.mean())} ± {percent(accuracy.sem())}"
    assert list(row.index) == ["task and study", "2 layers", "4 layers"]


def test_bars_over_layers_hold_the_noise_of_a_fixed_test_set(whole: list[Cell], shallow: list[Cell]) -> None:
    def tested_on(cell: Cell, images: int) -> Cell:
        assert cell.tables is not None
        result = cell.tables.result | {"test": {"drawn_by_seed": False, "size": images}}
        return replace(cell, tables=replace(cell.tables, result=result, _known={}))

    cells = [tested_on(cell, 500) for cell in (whole[0], shallow[0])]
    (axes,) = [axes for axes in depth_figure({"Digits": cells}).axes if axes.get_visible()]
    (bars,) = [each for each in axes.containers if isinstance(each, ErrorbarContainer)]
    _, low, high = mean_interval(cells[0].values(), cells[0].test_noise())
    for segment in bars.lines[2][0].get_segments():
        assert segment[:, 1].tolist() == pytest.approx([100 * low, 100 * high])


def test_arms_stand_in_one_order_though_a_panel_lacks_some(whole: list[Cell], shallow: list[Cell]) -> None:
    (legend,) = depth_figure({"One": [whole[-1], shallow[-1]], "All": [*whole, *shallow]}).legends
    assert [each.get_text() for each in legend.get_texts()] == list(HUES)


def test_an_arm_of_one_depth_is_left_out_and_an_absent_depth_is_marked(
    study: Path, whole: list[Cell], shallow: list[Cell]
) -> None:
    assert by_depth(table("ours-arms"), [StudyCells(study)]) == {}
    of_one_arm = SimpleNamespace(name="mine", cells=lambda _: [*whole, shallow[0]])
    assert by_depth(table("ours-arms"), [of_one_arm]) == {"Digits (mine)": [whole[0], shallow[0]]}
    assert list(depth_table({"Digits": [*whole[:2], shallow[0]]}).frame["2 layers"])[1:] == ["–"]


def test_published_sweeps_lead_to_their_notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = synthetic.finish(synthetic.workspace(tmp_path), "published", skip=("frozen-random",))
    monkeypatch.chdir(study)
    for folder in (study / "published").iterdir():
        (folder / "notebook.ipynb").touch()
    links = [link for link in STATUS.status_table("laptop").links if link]
    assert len(links) == 4
    assert all((study / "published" / link).is_file() for link in (each.split("published/")[1] for each in links))
    assert links[0].startswith("../runs/laptop/published/digits.")


def test_no_oddity_is_missing_and_each_has_its_arithmetic_or_its_quotation() -> None:
    found = {**MISPRINTS.without_runs("lu2021"), **MISPRINTS.without_runs("rothermel2021")}
    odd = {name: verdict for name, verdict in found.items() if name.startswith("O-")}
    assert list(odd) == [name for name in claims() if name.startswith("O-")]
    shown = MISPRINTS.slips_table(odd)
    for name, row, link in zip(odd, shown.frame.to_dict("records"), shown.links, strict=True):
        assert (row["id"], link) == (name, f"claims.html#{name.lower()}")
        if row["what shows it"].startswith("read: "):
            assert row["quotation"], name
        else:
            assert re.search(r"\d", row["what shows it"]), name


def test_what_counting_contradicts_and_what_is_only_read() -> None:
    found = {**MISPRINTS.without_runs("lu2021"), **MISPRINTS.without_runs("rothermel2021")}
    wrong = [name for name, verdict in found.items() if verdict.word == CONTRADICTED]
    assert wrong == ["L-19", "L-29", "L-30", "L-51", "R-24"]
    read = {name: verdict for name, verdict in found.items() if claims()[name].documentary}
    assert list(read) == [name for name, each in claims().items() if each.documentary]
    assert MISPRINTS.slips_table(read).frame["what shows it"].str.startswith("read: ").all()


def test_usable_ranges_and_ratios_of_rates(study: Path) -> None:
    """Frozen arms lose 8 points a decade, unfrozen ones 40; their best rates are a decade apart."""
    found = setups([StudyCells(study)])
    widths = LEARNING_RATE.usable_table(found, "").frame.set_index("within")
    assert [float(widths.loc["5 points", arm][:4]) for arm in ("FP", "UP")] == pytest.approx([1.25, 0.25], abs=0.1)
    ratios = LEARNING_RATE.ratio_table(found, "").frame.set_index("arms")
    assert ratios.loc["UP / FP", "after N"] == "0.1 (0.1 to 0.1)"
    assert [name for name in ratios if name.startswith("after")] == [
        f"after N/{2**k}" if k else "after N" for k in (5, 4, 3, 2, 1, 0)
    ]
    assert len(setups([])) == len(LEARNING_RATE.usable_table({}, "").frame) == 0


def test_how_often_fewer_rates_and_seeds_agree(study: Path) -> None:
    found = setups([StudyCells(study)])
    assert {name: list(cells) for name, cells in found.items()} == {"Digits (laptop)": ["FR", "FP", "UR", "UP"]}
    figure = LEARNING_RATE.agreement_figure(found)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [f"{arms}, fewer {of}" for arms in ("UP - FP", "UR - FP") for of in ("rates", "seeds")]
    assert "Digits (laptop), UP - FP, seeds: 100% with 3" in figure.get_label()
    assert "no results" in LEARNING_RATE.agreement_figure({}).get_label()
    (words,) = LEARNING_RATE.agreement_words(found).parts
    assert "all rates and seeds together decide for UP. One shared rate decides for UP in 25% of" in plain(words)
    assert "and for FP in 75%. With one seed less (7), 100% of the choices decide for UP too." in plain(words)


def test_what_one_rate_decides_where_all_leave_it_open(tmp_path: Path) -> None:
    """Tuned, both pretrained arms come to 86%; above 1e-3 the frozen one leads, below it loses."""
    cliff = {"unfrozen-pretrained": {1e-4: 0.6, 1e-3: 0.86, 1e-2: 0.3, 1e-1: 0.2}}
    slope = {1e-4: 0.5, 1e-3: 0.7, 1e-2: 0.86, 1e-1: 0.8}

    def level(spec: SweepSpec, rate: float, seed: int) -> float:
        return cliff.get(spec.arm, slope)[rate] + 0.002 * np.sin(seed + len(spec.arm))

    found = setups([StudyCells(synthetic.finish(synthetic.workspace(tmp_path), accuracy=level))])
    (words,) = LEARNING_RATE.agreement_words(found).parts
    assert "all rates and seeds together leave it open. One shared rate decides for UP in 50% of" in plain(words)
    assert "and for FP in 50%. With one seed less (7), 100% of the choices leave it open too." in plain(words)
    figure = LEARNING_RATE.agreement_figure(
        {name: {arm: cells[arm] for arm in ("UP", "FP")} for name, cells in found.items()}
    )
    shown = figure.data.set_index(["of", "kept", "says"])["share"]
    assert shown["rates", 1, "decided otherwise"] == 1


def test_what_to_take_from_this_counts_what_its_tables_show(study: Path) -> None:
    found = setups([StudyCells(study)])
    words, rates = PRACTICE.first_rates(found).parts
    assert "best at 1e-2, the model" in BeautifulSoup(words, "html.parser").get_text()
    assert "trained in full is clearly lower in 1 of 1 setups." in words
    (row,) = rates.frame.to_dict("records")
    assert (row["FP"], row["UP"], row["UP / FP"]) == ("1e-2", "1e-3", "0.1 (0.1 to 0.1)")
    words, start = PRACTICE.comparisons(found, [("FP", "FR")], "", ("It is", "worse", "better")).parts
    assert "It is better in 1 of 1 setups." in words
    assert [*start.frame] == ["setup", "model", "steps", "FP - FR"]
    assert start.frame["setup"].tolist() == ["Digits (laptop)"]
    assert PRACTICE.first_rates({}) == PRACTICE.comparisons({}, [("FP", "FR")], "", ("", "", "")) == PRACTICE.NOTHING
    assert [PRACTICE.sign_of(*each) for each in ((1.1, 1.2), (0.2, 0.9), (0.9, 1.1))] == [1, -1, 0]
    assert PRACTICE.scale_table(StudyCells(study)).frame[["setup", "row"]].to_numpy().tolist() == [
        ["Digits (laptop)", "FR fixed"]
    ]
    assert "results of the study laptop" in PRACTICE.backbone_table(StudyCells(study)).parts[0]


def test_what_is_counted_what_is_not_and_what_it_has_in_common(study: Path) -> None:
    (cells,) = setups([StudyCells(study)]).values()
    few = {"FP": SimpleNamespace(**dict.fromkeys(("spec", "task", "study")), is_exploratory=True)}
    found = {"one": cells, "two": cells, "three": few, "four": cells}
    assert PRACTICE.counted({"one": 0, "two": -1, "three": 1}, found, "low", "high") == (
        "low in 1 and undecided in 1 of 2 setups. They are not independent: of these 2, 2 are tiny-lm on Digits, 2 "
        "come from the study laptop and 2 are on Digits with the same seeds, and so with the same examples. Not "
        "counted (fewer than 8 seeds): three. Not run with both arms: four."
    )
    assert PRACTICE.counted({"one": 1}, {"one": cells}, "low", "high") == "high in 1 of 1 setups."


def test_a_setup_without_the_unfrozen_arm_is_shown_where_it_has_a_pair(study: Path) -> None:
    ((name, cells),) = setups([StudyCells(study)]).items()
    bare = {arm: cells[arm] for arm in ("FP", "FR", "UR")}
    found = {name: cells, "bare": bare}
    _, rates = PRACTICE.first_rates(found).parts
    words, shown = PRACTICE.comparisons(
        found, [("UP", "FP"), ("UR", "FP")], "", ("It is", "worse", "better"), PRACTICE.from_when
    ).parts
    assert len(rates.frame) == 1
    assert "It is better in 1 of 1 setups. Not run with both arms: bare." in plain(words)
    assert shown.frame["UP - FP"].tolist()[1:] == shown.frame["UP against FP"].tolist()[1:] == ["-"]
    assert shown.frame["UR - FP"].tolist()[0] == shown.frame["UR - FP"].tolist()[1] != "-"
    told = plain(PRACTICE.shown_and_left_out(found | {"no": {"UR": cells["UR"]}, "seen": cells}, found))
    assert ": laptop. Left out, because there is no such model: no. Left out, because training shows all" in told
    assert told.endswith(": seen.")


def plain(markup: str) -> str:
    return BeautifulSoup(markup, "html.parser").get_text()


def card(name: str, found: list[Verdict], other: list[Verdict] | None = None, **places: list[str]) -> BeautifulSoup:
    return BeautifulSoup(CLAIMS.card(name, found, other or [], places), "html.parser")


def test_a_card_names_every_study_with_its_word() -> None:
    asked = replace(verdict("R-01", SUPPORTED, "a"), asked=ASKED)
    other = replace(verdict("R-01", CONTRADICTED, "b"), note="half of it")
    shown = card("R-01", [asked, other], [verdict("R-01", SUPPORTED, "a")], **{"R-01": ["here"]})
    assert shown.details is not None
    assert shown.details["id"] == "r-01"
    assert (shown.details["data-verdict"], shown.details["data-scale"]) == ("studies disagree", "reduced")
    assert [line.get_text() for line in shown.select("dd li")] == [
        "a: supported, reduced scale, tiny-lm, 400 steps, asked before the runs",
        "b: contradicted, reduced scale, tiny-lm, 400 steps (half of it)",
        "At the paper's learning rate: supported, at reduced scale (tiny-lm, 400 steps)",
    ]
    heads = [head.get_text() for head in shown.select("dt")]
    assert heads == ["The paper says", "Where", "Remark", "The rule", "We find", "Shown in"]


def test_a_card_says_how_its_claim_is_decided() -> None:
    several = card("L-05", [])
    assert [line.get_text()[:33] for line in several.select("dd ol li")] == [
        "“FPT” is above “LSTM” by more tha", "“full” is above “LSTM” by more th"
    ]  # fmt: skip
    assert "Read, not computed. what the text says" in card("L-09", [Verdict("L-09", "documentary")]).get_text()
    assert "Computed without runs. 1 = 1" in card("O-02", [Verdict("O-02", SUPPORTED, note="1 = 1")]).get_text()


OWN, PRINTED = "each at its own learning rate.", "all at the rate that the paper prints."
IN_WORDS = {
    "L-21": "More steps to reach the threshold than “FPT”, 4 to 9 times as many: “pretrained on Bit Memory”. Read in "
    f"section 3.4, Table 6, on Bit XOR, {PRINTED} Only the paper's own models on its own tasks decide it.",
    "R-08": "The best learning rate of “Unfrozen Pretrained” is at most 1/3 of that of “Frozen Pretrained”. Read in "
    "Table 1, on most of the tasks that have these rows.",
    "L-38": "At the paper's learning rate “+ attention” loses more than 10 points against its own rate, or diverges. "
    "Read in section 3.11, Table 13, on at least one of MNIST, CIFAR-10 and CIFAR-10 LRA.",
    "R-03": "“Unfrozen Pretrained” is above “Frozen Pretrained” and “Frozen Random” by more than 5 points. Read in "
    f"Table 1, on ListOps, CIFAR-10 and CIFAR-10 LRA, {OWN}",
    "P-03": "“Frozen Pretrained” is above “Unfrozen Pretrained” and “Unfrozen Random”. Read on every task that has "
    f"these rows, {PRINTED}",
    "L-49": "From the paper's learning rate to 1e-3, “FPT” loses more than 0 points. Read in section 3.2, Table 2, on "
    "Homology.",
    "B-04": "The computed score is the printed number: outermost operator. Read on ListOps.",
}


@pytest.mark.parametrize(("name", "words"), IN_WORDS.items())
def test_a_rule_in_words(name: str, words: str) -> None:
    assert CLAIMS.rule_words(claims()[name].rule[0]) == words


def test_every_rule_has_words_with_its_rows_and_numbers() -> None:
    for name, each in claims().items():
        for rule in each.rule:
            words = CLAIMS.rule_words(rule)
            assert "{" not in words, name
            labels = [paper_of(each.paper).label(row) for row in rule.rows]
            assert all(f"“{label}”" in words for label in labels), name
            assert not rule.by or f"{rule.by:g}" in words, name


def test_the_comparisons_of_a_card_can_be_opened(study: Path) -> None:
    found = verdicts_on(["R-02"], [StudyCells(study)])
    table = card("R-02", found).select_one("details details table")
    assert table is not None
    assert difference(found[0].parts[0]) in table.get_text()
    assert "claim" not in [head.get_text() for head in table.select("th")]


def test_sections_that_show_a_claim_or_its_table(tmp_path: Path) -> None:
    page = """# A page\n```{code-cell} ipython3\nclaims("R-01")\n```\n## A section, here\n
```{code-cell} ipython3\nexhibit("lu-table-2", study)\n```\nText on "R-02".\n"""
    (tmp_path / "one.md").write_text(page)
    (tmp_path / "claims.md").write_text(page)
    links = {
        "R-01": '<a href="one.html">A page</a>',
        "lu-table-2": '<a href="one.html#a-section-here">A page: A section, here</a>',
    }
    assert {name: list(found) for name, found in CLAIMS.places(tmp_path).items()} == {n: [v] for n, v in links.items()}


def test_a_claim_that_runs_decide_is_shown_in_some_section() -> None:
    at = CLAIMS.places(ROOT / "book")
    lost = [
        n
        for n, each in claims().items()
        if each.rule and not any(at.get(p) for p in (n, *(r.table for r in each.rule)))
    ]
    assert [name for name in lost if not name.startswith("B-")] == []


def test_the_score_counts_every_claim_once() -> None:
    found = {"R-01": [verdict("R-01", SUPPORTED, "a")], "R-02": [], "O-02": [Verdict("O-02", SUPPORTED)]}
    found["R-03"] = [verdict("R-03", EDGE, "a")]
    rows = SUMMARY.score_table(found).frame.set_index("verdict")
    by_runs, without, ours = "by runs, reduced", "without runs", "X, O, B"
    assert rows.loc["supported"].to_dict() == {by_runs: "1", ours: "1", without: ""}
    assert rows.loc["inconclusive"].to_dict() == {by_runs: "1", ours: "", without: ""}
    assert rows.loc["not tested"].to_dict() == {by_runs: "", ours: "", without: "1"}


def test_which_arms_reach_a_linear_classifier(study: Path) -> None:
    whole = text.whole([StudyCells(study)])
    words = "{} of {} tuned image models {} the accuracy of a linear classifier on the pixels."
    assert SUMMARY.as_good_as_linear(whole) == words.format(0, 4, "reach")
    said = SUMMARY.not_this(BACKBONES["tiny-lm"], whole)
    assert "4 layers of width 128" in said
    assert "train for 400 to 400 steps of 8 examples" in said
    assert "few steps" in SUMMARY.not_this(BACKBONES["tiny-lm"], {})
    arms = dict(whole["Digits, laptop"])
    arms["UP"] = SimpleNamespace(task="digits", values=lambda: pd.Series([0.95, 0.98]))
    assert SUMMARY.as_good_as_linear({"Digits, laptop": arms}) == words.format(1, 4, "reaches")
    assert SUMMARY.as_good_as_linear({}) == words.format(0, 0, "reach")
    elsewhere = {arm: SimpleNamespace(task="cifar10-lra", values=lambda: pd.Series([0.9])) for arm in arms}
    lists = {"UP": SimpleNamespace(task="listops")}  # no such classifier was fitted to lists
    assert SUMMARY.as_good_as_linear({"a": elsewhere, "b": lists}) == words.format(4, 4, "reach")


def test_the_summary_says_what_each_study_says(study: Path) -> None:
    cells = StudyCells(study)
    table = SUMMARY.by_study(["P-05", "L-01", "L-04"], [cells])
    assert table.caption == "At reduced scale."
    assert SUMMARY.design(cells) == "laptop: tiny-lm on digits, 400 steps, 8 seeds."
    rows = table.frame.to_dict("records")
    assert [row["claim"] for row in rows] == ["P-05", "L-01", "L-04"]
    assert (rows[0]["verdict"], rows[0]["laptop"]) == ("supported", "supported")
    assert rows[2]["laptop"].partition(",")[0].endswith(" (1 of 7 tasks)")
    assert table.links[1] == "claims.html#l-01"


def test_the_answer_of_the_summary(study: Path) -> None:
    cells = StudyCells(study)
    open_, no = verdict("P-02", INCONCLUSIVE, "a"), verdict("P-02", CONTRADICTED, "b")
    whole, found = text.whole([cells]), {"P-01": [verdict("P-01", SUPPORTED, "a")], "P-02": [open_, no]}
    tuned, one_rate, both = SUMMARY.answer_of(whole, [cells], found)
    assert "clearly better than freezing in 1 of 1 setups after" in tuned
    assert one_rate == SUMMARY.one_rate_answer(whole.values())
    assert both == (
        "With one rate for both, each leads at some rate and budget in 1 of 1 studies (P-01). Each tuned, training all "
        "weights leads at some budget, and freezing at none later, in 0 of 2 studies (inconclusive in 1, contradicted "
        "in 1) (P-02)."
    )


def test_the_summary_counts_the_setups_of_the_page_for_practitioners(study: Path) -> None:
    cells = {f"{name} (laptop)": arms for name, arms in text.whole([StudyCells(study)]).items()}
    words = ("it is", "clearly worse", "clearly better")
    said = PRACTICE.comparisons(cells, [("UP", "FP")], "", words)._repr_html_()
    assert "clearly better in 1 of 1 setups" in said
    assert "clearly better than freezing in 1 of 1 setups" in SUMMARY.tuned_answer(cells.values())


def test_a_row_of_a_plane_has_its_two_differences(study: Path) -> None:
    arms = text.whole([StudyCells(study)])["Digits, laptop"]
    (row,) = SUMMARY.gains({"a": arms}).frame.to_dict("records")
    verb, test = text.gain(arms["FP"], arms["UP"])
    assert verb == "loses"
    assert row["tuned"] == f"{points(test.mean)} ({interval(test)})"
    assert row["setup"] == "Digits, tiny-lm, 400 steps"
    at_one = paired(arms["FP"].values(1e-3), arms["UP"].values(1e-3))
    assert row["at 1e-3"] == f"{points(at_one.mean)} ({interval(at_one)})"


def test_the_answer_over_setups_and_planes(study: Path) -> None:
    arms = text.arms(StudyCells(study), "digits")
    swapped = arms | {"FP": arms["UP"], "UP": arms["FP"]}
    setups = [arms, swapped, arms, arms | {"UP": arms["FP"]}, {"FP": arms["FP"]}]
    assert SUMMARY.tuned_answer(setups) == (
        "Each with its own learning rate, training all weights of the pretrained model is clearly better than freezing "
        "in 2 of 4 setups after the last step (2 after correction over budgets), clearly worse in 1, and undecided in "
        "1; at some budget, freezing leads in 1. (Clearly: the 95% interval excludes 0. Setups are a model, a task and "
        "a study; not independent.)"
    )
    one = SUMMARY.one_rate_answer([arms])
    leads = [rate for rate in arms["FP"].rates if text.gain(arms["FP"], arms["UP"], rate)[0] == "gains"]
    assert leads
    assert f"after the last step, freezing clearly leads at {', '.join(map(rate_text, sorted(leads)))}, and" in one
    assert one.endswith(", in each of the 1 planes. At 1e-3, the rate of Lu et al., it loses in 1.")
    assert "clearly leads at none, and clearly trails at none, in each of the 2 planes." in SUMMARY.one_rate_answer(
        [arms, swapped]
    )


def test_a_study_is_marked_by_how_it_came_to_the_claim() -> None:
    found = [
        Verdict("P-01", SUPPORTED, "before", asked=ASKED),
        Verdict("P-01", SUPPORTED, "changed", asked=CHANGED),
        Verdict("P-01", INCONCLUSIVE, "besides"),
        Verdict("P-01", "not run yet", "later"),
    ]
    assert SUMMARY.what_studies_say(found) == {
        "before": "supported, asked",
        "changed": "supported, rule changed since",
        "besides": "inconclusive",
    }
    part = replace(verdict("P-05", CONTRADICTED, "a").parts[0], word=INCONCLUSIVE)
    one = replace(verdict("P-05", CONTRADICTED, "a"), covered=" (2 of 7 tasks)")
    one = replace(one, parts=(replace(one.parts[0], task="bit-memory"), part))
    assert SUMMARY.what_studies_say([one]) == {"a": "contradicted on Bit Memory (2 of 7 tasks)"}
    few = [replace(found[0], exploratory=True)]
    assert SUMMARY.what_studies_say(few) == {"before": "supported, asked, exploratory"}
    assert SUMMARY.what_studies_say([*few, found[2]]) == {"besides": "inconclusive"}


def test_a_claim_that_one_task_decides_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verdict("P-05", CONTRADICTED, "a")
    (part,) = found.parts
    both = replace(found, parts=(replace(part, task="bit-memory"), replace(part, word=INCONCLUSIVE)))
    monkeypatch.setitem(RANDOM_INIT.by_task.__globals__, "verdicts_on", lambda *_: [both])
    assert RANDOM_INIT.by_task("P-05", []) == "By task, P-05 is contradicted on Bit Memory; inconclusive on Digits."
    monkeypatch.setitem(RANDOM_INIT.by_task.__globals__, "verdicts_on", lambda *_: [found])
    assert RANDOM_INIT.by_task("P-05", []) == ""


def warm_runs(plain: float, warm: float, spread: float = 0.01) -> pd.DataFrame:
    """UP: 90% at 1e-4, and so much at 1e-3 without and with a warm-up."""
    rows, source = [], np.random.default_rng(1)
    for warmup, rate, mean in ((0.0, 1e-4, 0.9), (0.0, 1e-3, plain), (0.1, 1e-4, 0.9), (0.1, 1e-3, warm)):
        arm = ("mnist", "unfrozen-pretrained", warmup, rate, rate == 1e-4)
        rows += [(*arm, seed, source.normal(mean, spread)) for seed in range(6)]
    columns = ["task", "arm", "warmup", "learning_rate", "selected", "seed", "test_accuracy"]
    return pd.DataFrame(rows, columns=columns)


def test_whether_a_loss_is_the_rate_or_the_warm_up_that_is_missing() -> None:
    assert MINILM.warm_up(warm_runs(0.5, 0.52)).endswith("so most of the loss is the rate.")
    assert MINILM.warm_up(warm_runs(0.5, 0.88)).endswith("so most of the loss is the warm-up that is missing.")
    assert MINILM.warm_up(warm_runs(0.5, 0.7)).endswith("which leaves open what the loss is.")
    assert "so nothing is lost at this rate" in MINILM.warm_up(warm_runs(0.9, 0.7))
    words = MINILM.warm_up(warm_runs(0.5, 0.88, spread=1e-5))
    assert "At 1e-3 and without a warm-up, unfrozen-pretrained is -40.0 points from where it is tuned (the" in words
    assert "a warm-up changes that by +38.0 (+38.0 to +38.0), so" in words
    lost = warm_runs(0.5, 0.52, spread=1e-5)
    lost.loc[(lost["warmup"] == 0) & (lost["learning_rate"] == 1e-3), "test_accuracy"] = np.nan  # never finite: 10%
    assert "is -80.0 points from where it is tuned" in MINILM.warm_up(lost)
    runs = warm_runs(0.5, 0.9)
    for part in (runs[runs["warmup"] == 0], runs[:0]):
        assert MINILM.warm_up(part) == "No run of MiniLM can tell yet."


def test_a_study_says_what_it_needs_beside_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    images, labels = np.zeros((20, 8, 8), np.uint8), np.arange(20) % 2
    np.savez("mine.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    fields = "learning_rates: [1e-3], seeds: [0], arm: frozen-random, compute_type: float32"
    text = f"name: mine\ndefaults: {{{fields}}}\nsweeps:\n"
    synthetic.workspace(tmp_path, "mine", f"{text}  - {{task: ['npz:mine.npz', mnist, digits]}}\n")
    synthetic.workspace(tmp_path, "less", f"{text}  - {{task: digits}}\n")
    line = RERUN.line("mine")
    assert (line["sweeps"], line["needs"], line["time"]) == (3, "npz:mine.npz, MNIST", "see fpt plan mine")
    assert RERUN.line("less")["needs"] == "nothing"


def test_nothing_is_beside_nothing(tmp_path: Path) -> None:
    assert BESIDE.beside_published(synthetic.workspace(tmp_path)).empty


def test_yours_beside_the_published(tmp_path: Path) -> None:
    study = synthetic.finish(synthetic.workspace(tmp_path), inside="published")
    assert set(BESIDE.beside_published(study)["your accuracy"]) == {"-"}

    def lower(spec: SweepSpec, rate: float, seed: int) -> float:
        return synthetic.accuracy(spec, rate, seed) - 0.02

    synthetic.finish(study, accuracy=lower)
    frame = BESIDE.beside_published(study)
    assert set(frame["difference"]) == {"-2.0"}
    assert set(frame["equal seeds"]) == {"0 of 8"}
    assert list(frame["your rate"]) == list(frame["published rate"])


def test_runs_that_equal_the_published_are_counted(tmp_path: Path) -> None:
    study = synthetic.finish(synthetic.workspace(tmp_path), inside="published")

    def half(spec: SweepSpec, rate: float, seed: int) -> float:
        return synthetic.accuracy(spec, rate, seed) + 0.01 * (seed % 2)

    synthetic.finish(study, accuracy=half)
    frame = BESIDE.beside_published(study)
    assert set(frame["equal seeds"]) == {"4 of 8"}
    assert set(frame["difference"]) == {"+0.5"}


def test_equal_results_have_no_interval(tmp_path: Path) -> None:
    study = synthetic.finish(synthetic.workspace(tmp_path), inside="published")
    frame = BESIDE.beside_published(synthetic.finish(study))
    assert set(zip(frame["difference"], frame["95% interval"], frame["equal seeds"], strict=True)) == {
        ("+0.0", "-", "8 of 8")
    }
