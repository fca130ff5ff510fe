"""What the studies of labelled texts took from their tuning seeds is what these seeds chose."""

from pathlib import Path

import pytest

from fpt.results.arm import Arm
from fpt.results.runs import arms_in, find_study
from fpt.results.texts import chosen
from fpt.sweeps import load_study
from fpt.sweeps.spec import SweepSpec

COMPARED_AT = 1e-3  # that of Lu et al., at which every arm of `intents` is read too


@pytest.fixture(scope="module")
def tuning(root: Path) -> list[Arm]:
    """The published sweeps of the tuning seeds."""
    return list(arms_in(find_study("intents-rates", root), "published").values())


@pytest.fixture(scope="module")
def strengths(tuning: list[Arm]) -> dict[int | None, float]:
    """By labels a class, the strength that the probe's tuning seeds chose."""
    return {arm.fields["task_options"].get("labels"): chosen(arm) for arm in tuning if arm.recipe.solver == "logistic"}


@pytest.mark.parametrize("study", ["intents-rates", "intents"])
def test_heads_start_from_the_strength_that_the_tuning_seeds_of_the_probe_chose(
    study: str, strengths: dict[int | None, float], root: Path
) -> None:
    assert set(strengths) == {None, 10}
    started = [spec for spec in load_study(find_study(study, root)).sweeps if spec.probe is not None]
    assert started
    assert all(spec.probe == strengths[spec.task_options.get("labels")] for spec in started)


def test_fresh_seeds_train_at_the_rate_that_the_tuning_seeds_chose(tuning: list[Arm], root: Path) -> None:
    fresh = [spec for spec in load_study(find_study("intents", root)).sweeps if spec.recipe.schedule == "cosine"]
    rates = {_setting(spec): set(spec.learning_rates) for spec in fresh}
    known = {_setting(arm.spec): chosen(arm) for arm in tuning if arm.recipe.solver != "logistic"}
    assert set(known) <= set(rates)
    assert all(rates[setting] == {COMPARED_AT, rate} for setting, rate in known.items())
    assert all(rates[setting] == {COMPARED_AT} for setting in set(rates) - set(known))


def test_fresh_probes_take_the_strength_that_the_tuning_seeds_chose(
    strengths: dict[int | None, float], root: Path
) -> None:
    fresh = [spec for spec in load_study(find_study("intents", root)).sweeps if spec.recipe.solver == "logistic"]
    assert {spec.task_options.get("labels"): [*spec.learning_rates] for spec in fresh} == {
        labels: [strength] for labels, strength in strengths.items()
    }


def _setting(spec: SweepSpec) -> tuple[object, ...]:
    return spec.arm, spec.task_options.get("labels"), spec.recipe.steps, spec.probe
