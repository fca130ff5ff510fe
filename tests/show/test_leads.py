"""Leads of two arms over several studies, the rates to try, signs over a map, accuracy over compute."""

import pytest

from fpt.errors import SpecError
from fpt.results import arms_of, contrast
from fpt.show import PAIRS, Place, by_compute, leads_table, newest, rates_table, signs

LAPTOP = Place("laptop", "digits")
ARMS = {"FP": "frozen", "UP": "all"}


def test_a_lead_names_the_arm_that_leads_or_is_open():
    row = leads_table({"laptop": LAPTOP}, ARMS, 3e-3, "").frame.iloc[0]
    lead = contrast("laptop", "FP", "UP", at=3e-3)
    assert lead.low > 0
    assert row["leads at 3e-3, points"] == f"frozen by {lead.cell}"
    assert row["frozen / all at 3e-3, %"] == f"{lead.first:.1f} / {lead.second:.1f}"
    assert row["leads tuned, points"] == f"open, {contrast('laptop', 'FP', 'UP').cell}"
    other = leads_table({"laptop": LAPTOP}, ARMS, 1e-4, "").frame.iloc[0]
    assert other["leads at 1e-4, points"] == f"all by {(-contrast('laptop', 'FP', 'UP', at=1e-4)).cell}"


def test_an_arm_that_is_not_published_is_said_to_be_missing():
    places, arms = {"new": Place("fresh-minilm", "mnist")}, {"FP": "frozen", "UR": "scratch"}
    row = leads_table(places, arms, 1e-3, "").frame.iloc[0]
    assert row["leads tuned, points"] == "not run yet"
    assert row["frozen / scratch tuned, %"].endswith("\N{EN DASH}")


def test_what_is_to_beat_is_there_without_a_linear_classifier():
    lists = leads_table({"lists": PAIRS["ListOps, tiny-lm, 1,500"]}, ARMS, 1e-3, "").frame.iloc[0]
    assert float(lists["to beat, %"]) > 30  # a guess from one operator


def test_every_pair_has_both_arms():
    for place in PAIRS.values():
        assert set(place.cells("FP", "UP", "FR", "UR")) == {"FP", "UP", "FR", "UR"}


def test_rates_to_try_stand_beside_the_best_ones():
    row = rates_table({"laptop": LAPTOP}, {"FP": 3e-3, "UP": 3e-4}, "").frame.iloc[0]
    assert (row["FP best at"], row["UP best at"]) == ("3e-3", "3e-4")
    assert {"FP at 3e-3, points", "UP usable, decades"} <= set(row.index)


def test_signs_are_those_of_the_contrasts():
    found = signs("laptop", "FP", "UP")
    budgets = arms_of("laptop")["digits", "FP"].budgets
    assert all(len(row) == len(budgets) for row in found.values())
    for rate, row in found.items():
        for budget, sign in zip(budgets[-2:], row[-2:], strict=True):
            each = contrast("laptop", "FP", "UP", at=rate, budget=budget)
            assert sign == ("0" if each.open else "+" if each.mean > 0 else "-")
    with pytest.raises(SpecError, match="UX"):
        signs("laptop", "FP", "UX")


def test_arms_of_several_tasks_or_without_results_are_refused() -> None:
    study = "laptop-rothermel2021"
    with pytest.raises(SpecError, match="name one as `task`"):
        signs(study, "FP", "UP")
    with pytest.raises(SpecError, match="name one as `task`"):
        by_compute(study, {"FP": 0.5, "UP": 1}, "")
    with pytest.raises(SpecError, match="UX"):
        by_compute("laptop", {"UX": 1}, "")


def test_compute_is_counted_in_steps_of_the_arm_that_is_the_unit() -> None:
    shown = by_compute("smollm2", {"FP (layers 4)": 0.5, "UP (layers 4)": 1}, "", task="mnist").figure
    assert shown.axes[0].get_xlabel() == "compute, in steps of unfrozen pretrained (4 layers)"
    assert "frozen pretrained (4 layers) " in shown.get_label()


def test_compute_scales_the_budget():
    data = by_compute("laptop", {"FP": 0.5, "UP": 1}, "").figure.data
    assert data is not None
    frozen = data[data["arm"] == "FP"]
    assert (frozen["compute"] == 0.5 * frozen["budget"]).all()
    assert frozen["accuracy"].between(0, 100).all()


def test_the_newest_result_has_a_day(tmp_path):
    assert newest().split()[-1].isdigit()
    for folder in ("runs", "notebooks"):
        (tmp_path / folder).mkdir()
    assert newest(tmp_path) == ""


def test_budgets_at_which_an_arm_leads_are_those_whose_interval_is_above_0() -> None:
    place = PAIRS["MNIST, tiny-lm, 3,000"]
    frozen, trained = place.leads_at("FP", "UP"), place.leads_at("UP", "FP")
    assert 375 in frozen
    assert 3000 in trained
    assert not {*frozen} & {*trained}
