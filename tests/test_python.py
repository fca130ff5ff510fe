"""What one public function returns, another one takes; an arm, a study and a task are named in one way everywhere."""

from pathlib import Path

import pytest
import synthetic

import fpt
from fpt.errors import SpecError
from fpt.models import ARMS, SHORT
from fpt.results import StudyCells, arms_of, contrast, find_study, level, load_runs
from fpt.show import learning_rate_figure
from fpt.sweeps import load_study
from fpt.sweeps.spec import resolve

SPEC = {
    "task": "digits", "backbone_options": {"layers": 1}, "steps": 2, "evaluations": 1, "evaluation_examples": 20,
    "budget_examples": 20, "test_examples": 20, "learning_rates": [1e-3, 1e-2], "seeds": [0, 1, 2], "extend": 0,
    "compute_type": "float32",
}  # fmt: skip


@pytest.mark.parametrize("arm", ARMS)
def test_an_arm_has_one_entry_by_each_of_its_names(arm: str) -> None:
    names = [arm, ARMS[arm].letters, *(short for short, whole in SHORT.items() if whole == arm)]
    assert all(fpt.models.arm(name) == ARMS[arm] for name in names)
    sweeps = [resolve(SPEC | {"arm": name}) for name in names]
    assert {spec.folder_name for spec in sweeps} == {sweeps[0].folder_name}


def test_names_of_arms_are_names_of_one_arm() -> None:
    names = [*ARMS, *SHORT, *(entry.letters for entry in ARMS.values())]
    assert len(set(names)) == len(names)


def test_a_contrast_reads_an_arm_by_any_name() -> None:
    by_letters = contrast("plane-digits", "FP", "UP")
    assert contrast("plane-digits", "frozen-pretrained", "full") == by_letters
    assert level("plane-digits", "frozen") == level("plane-digits", "FP")
    assert contrast("smollm2", "frozen", "full") == contrast("smollm2", "FP (layers 4)", "UP (layers 4)")
    with pytest.raises(SpecError, match=r"several arms.*FP \(bfloat16\)"):
        contrast("precision", "frozen", "full")


def test_ones_own_runs_are_read_as_published_ones_are(tmp_path: Path) -> None:
    study = synthetic.finish(synthetic.workspace(tmp_path))
    root = study.parents[1]
    with pytest.raises(SpecError, match="no published results"):
        contrast(study.name, "FP", "UP", root=root)
    found = contrast(study.name, "FP", "UP", root=root, origin="own")
    runs = load_runs(study)
    tuned = runs[runs["selected"]].groupby("label")["test_accuracy"].mean()
    assert found.mean == pytest.approx(100 * (tuned["FP"] - tuned["UP"]))
    assert level(study.name, "FP", root=root, origin="own").mean == pytest.approx(100 * tuned["FP"])
    assert StudyCells(study).results


def test_a_study_is_read_by_its_name_and_by_its_folder() -> None:
    assert load_runs("alpha").equals(load_runs(find_study("alpha")))
    with pytest.raises(SpecError, match="alpha"):
        load_runs("alpa")


def test_runs_of_a_sweep_and_of_a_fleet_are_drawn_as_they_are_returned(tmp_path: Path) -> None:
    spec = resolve(SPEC | {"arm": "FR"})
    result = fpt.sweeps.run_sweep(spec, tmp_path / "sweep")
    template = fpt.models.build("digits", "tiny-lm", arm="frozen", layers=1)
    task = fpt.tasks.load("digits")
    fleet = fpt.training.train_fleet(task, template, spec.recipe, [1e-3], [0, 1])
    for runs in (result.runs, fleet.runs):
        drawn = learning_rate_figure(runs)
        assert len(drawn.data) == len(runs)
        assert drawn.data["accuracy"].between(0, 100).all()


def test_completion_lists_what_there_is() -> None:
    assert set(fpt.__all__) <= set(dir(fpt))
    assert "train_fleet" in dir(fpt.training)


def test_a_contrast_takes_a_study_as_it_was_found_or_read() -> None:
    arms = ("LP", "LP (alpha 8.0)")
    found = find_study("alpha")
    assert contrast("alpha", *arms) == contrast(found, *arms) == contrast(load_study(found), *arms)
    assert arms_of("alpha").keys() == arms_of(find_study("alpha")).keys()


def test_what_is_shown_of_a_task_a_model_and_an_arm_is_a_line() -> None:
    task = fpt.tasks.load("digits")
    template = fpt.models.build(task, "tiny-lm", arm="FP")
    named = {
        repr(task): ("digits", "10 classes"),
        repr(template): ("tiny-lm", "digits", "frozen-pretrained", f"{template.sizes[0]:,}"),
        repr(arms_of("laptop")["digits", "FP"]): ("FP", "laptop", "6 seeds"),
    }
    for shown, words in named.items():
        assert all(word in shown for word in words)
        assert len(shown) < 120
