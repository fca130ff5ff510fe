"""What the verdicts say, as pages show it: rows of the table of verdicts, and nothing that is not there."""

import math
import re

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from fpt.claims.verdicts import COLUMNS, FLOORED, ROBUSTNESS, SPEAKS
from fpt.errors import SpecError
from fpt.papers import claims, findings, printed_ranges
from fpt.show import cards, word
from fpt.show.findings import evidence_table, pairs_on, rule_words, verdict_rows, verdicts_by_id
from fpt.show.pages.pretraining import counted, forest, forest_figure
from fpt.show.said import said

ID = "train-all"
FOREST = "pretraining-full"


def _row(pair: str, role: str, estimate: float, **other: object) -> dict[str, object]:
    fields = {
        "finding": ID,
        "pair": pair,
        "role": role,
        "estimate": estimate,
        "low": estimate - 1,
        "high": estimate + 1,
    }
    text = {
        "study": "made",
        "backbone": "tiny-lm",
        "task": "digits",
        "contrast": "UP - FP",
        "word": "for",
        "unit": "points",
    }
    return dict.fromkeys(COLUMNS, "") | text | fields | other


@pytest.fixture(scope="module")
def made() -> pd.DataFrame:
    """Three pairs that are counted (one planned), robustness, a floor, and the summaries of everything."""
    names = [{"claim": name} for name in claims()] + [{"finding": name} for name in findings()]
    summaries = [dict.fromkeys(COLUMNS, "") | each | {"word": "holds here", "note": "3 for"} for each in names]
    shown = [
        _row("tiny-lm/digits", SPEAKS, 2.0, planned="planned"),
        _row("tiny-lm/mnist", SPEAKS, 5.0, task="mnist"),
        _row("minilm/mnist", SPEAKS, -4.0, task="mnist", backbone="minilm"),
        _row("tiny-lm/digits", ROBUSTNESS, 9.0, study="other"),
        _row("tiny-lm/listops-short", FLOORED, 0.5, task="listops-short"),
    ]
    return pd.DataFrame([*summaries, *shown]).replace({"estimate": {"": None}, "low": {"": None}, "high": {"": None}})


def test_a_forest_has_a_row_a_counted_pair_by_effect(made: pd.DataFrame) -> None:
    assert list(counted(findings()[ID], made)["estimate"]) == [5.0, 2.0, -4.0]


def test_filled_where_planned_hollow_where_not_and_the_printed_range_as_a_band() -> None:
    rows = verdict_rows()
    shown = counted(findings()[FOREST], rows)
    axes = forest_figure(findings()[FOREST], rows).axes[0]
    filled = [bar.lines[0].get_markerfacecolor() != "none" for bar in axes.containers]
    assert filled == list(shown["planned"] == "planned")
    assert 0 < sum(filled) < len(filled)
    ((low, high),) = printed_ranges(findings()[FOREST]).values()
    band = axes.patches[0].get_bbox()
    assert (band.x0, band.x1) == (low, high)
    assert forest(FOREST, "What to see.").figure.get_label()


def test_a_word_goes_into_prose(made: pd.DataFrame) -> None:
    found = verdicts_by_id(made)[ID]
    assert (str(found), found.word, found.counts) == ("holds here (3 for)", "holds here", "3 for")
    assert said("w", found) == {"w": "holds here (3 for)", "w.word": "holds here", "w.counts": "3 for"}
    assert verdicts_by_id(made)["R-03"].word == "holds here"


def test_the_pairs_on_a_side_are_those_that_a_word_counts() -> None:
    for name in ("train-all", "R-03"):
        on_sides = ", ".join(f"{len(pairs_on(name, side))} {side}" for side in ("for", "against", "open"))
        assert on_sides == word(name).counts


def test_a_word_that_depends_on_steps_carries_a_badge(made: pd.DataFrame) -> None:
    told = "open after 400 in short"
    moved = made.assign(other_steps=made["other_steps"].where(made["study"] != "made", told))
    evidence = evidence_table(moved[moved["pair"] != ""])
    assert set(evidence.frame["other studies"]) == {f"depends on steps: {told}", ""}
    (badge, *_) = BeautifulSoup(evidence._repr_html_(), "html.parser").select("abbr.fpt-badge")
    assert badge["title"]
    page = BeautifulSoup(cards()._repr_html_(), "html.parser")
    rows = verdict_rows()
    noted = rows[rows["other_steps"] != ""]
    badged = {str(card["id"]).upper() for card in page.select("details.claim") if card.select("summary .fpt-badge")}
    assert badged == set(noted["claim"]) - {""}
    heads = {str(badge.parent.parent["id"]) for badge in page.select("section > p > .fpt-badge")}
    assert heads == {f"finding-{name}" for name in noted.loc[noted["claim"] == "", "finding"]}


def test_every_claim_has_one_card_below_its_finding() -> None:
    page = BeautifulSoup(cards()._repr_html_(), "html.parser")
    ids = [card["id"] for card in page.select("details.claim")]
    assert sorted(ids) == sorted(name.lower() for name in claims())
    for card in page.select("details.claim"):
        section = card.find_parent("section")
        assert section is not None
        assert str(card["id"]).upper() in findings()[str(section["id"]).removeprefix("finding-")].claims
        assert card["data-verdict"] == word(str(card["id"]).upper()).word
    everything = [element["id"] for element in page.select("[id]")]
    assert len(everything) == len(set(everything))


@pytest.mark.parametrize("name", [name for name, claim in claims().items() if claim.rule])
def test_every_rule_has_words_without_a_gap(name: str) -> None:
    for rule in claims()[name].rule:
        words = rule_words(rule)
        assert "{" not in words
        assert bool(words) == (rule.kind != "baseline")


def test_a_card_says_nothing_twice() -> None:
    page = BeautifulSoup(cards()._repr_html_(), "html.parser")
    for card in page.select("details.claim"):
        said = [entry.get_text(" ", strip=True) for entry in card.select("dl > dd") if not entry.select("table")]
        sentences = [each for entry in said for each in re.split(r"(?<=[.;]) ", entry)]
        assert len(sentences) == len(set(sentences)), card["id"]


def test_where_contrasts_are_joined_the_word_of_the_pair_stands_beside_theirs() -> None:
    """Of P-04 on CIFAR-10 one contrast is against it and the pair is open, by the correction over two contrasts."""
    rows = verdict_rows().query("claim == 'P-04' and pair == 'minilm/cifar10'")
    assert list(evidence_table(rows).frame["word"]) == ["open", "against (pair: open)"]


def test_a_rule_with_two_bounds_names_both() -> None:
    bounded = {name: [rule for rule in claims()[name].rule if math.isfinite(rule.to)] for name in ("L-21", "L-46")}
    assert [", 4 to 9 times as many" in rule_words(rule) for rule in bounded["L-21"]] == [True]
    assert [" by 5 to 9 points" in rule_words(rule) for rule in bounded["L-46"]] == [True, True]


def test_unknown_names_are_refused() -> None:
    for ask in (lambda: forest("nothing", ""), lambda: word("Z-99")):
        with pytest.raises(SpecError, match="unknown"):
            ask()


def test_a_table_of_nats_counts_as_a_page_does() -> None:
    """The file has four digits of what a page prints in full: halves go away from zero in both."""
    of_nats = [_row("tiny-lm/digits", SPEAKS, 0.1465, unit="nats", low=0.05, high=0.2)]
    (shown,) = evidence_table(pd.DataFrame(of_nats)).frame["estimate (95% interval)"]
    assert shown.startswith("0.147 nats")


def test_a_ratio_is_shown_as_times(made: pd.DataFrame) -> None:
    ratios = made.assign(unit=made["unit"].replace("points", "decades"))
    ratios["low"] = ratios["low"].mask(ratios["estimate"] == 5.0, float("-inf"))
    shown = evidence_table(ratios[ratios["pair"] != ""]).frame["estimate (95% interval)"]
    assert list(shown[:2]) == ["100 times (10 to 1,000)", "100,000 times (0 to 1,000,000)"]
