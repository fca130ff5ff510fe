"""From a request to two studies: what is planned, in which order, and what a second call does not do again."""

import math
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fpt import models
from fpt.advise import studies, work
from fpt.advise.request import PROBE, request, task_and_model
from fpt.advise.studies import finished_arms
from fpt.advise.verdict import advice
from fpt.advise.work import Work
from fpt.errors import DataError, SpecError
from fpt.models import load_task
from fpt.sweeps import SweepSpec, load_study

from .conftest import carried_out, request_of, table


def place_of(said: list[str], words: str) -> int:
    return next(number for number, line in enumerate(said) if words in line)


def test_what_was_read_then_baselines_then_the_probe_then_what_trains_longer(place: Path) -> None:
    table(place / "mine.csv")
    wanted = request_of(place)
    said = carried_out(wanted)
    assert "240 rows, 2 classes (0: 120, 1: 120) of column label" in said[0]
    order = [place_of(said, words) for words in ("linear classifier: ", "the probe: ", "4 steps", "3 fresh seeds")]
    assert order == sorted(order)
    pilot, study = load_study(wanted.pilot), load_study(wanted.study)
    for folder in (wanted.pilot, wanted.study):
        assert f"# {said[0]}" in (folder / "study.yaml").read_text().splitlines()
    assert [spec.arm for spec in study.sweeps] == [PROBE, *wanted.arms]
    assert not {*pilot.sweeps[0].seeds} & {*study.sweeps[0].seeds}
    for spec in study.sweeps:
        assert spec.learning_rates == (studies.chosen(wanted, spec.arm),)
    strength = study.sweeps[0].learning_rates[0]
    assert {spec.probe for spec in study.sweeps[1:]} == {strength}
    written = (wanted.study / "study.yaml").read_bytes()
    again = carried_out(wanted)
    assert any("planned already" in line for line in again)
    assert (wanted.study / "study.yaml").read_bytes() == written
    with pytest.raises(SpecError, match="another request"):
        carried_out(request_of(place, arms="frozen"))


def test_the_probe_is_an_answer_whatever_the_minutes(place: Path) -> None:
    """More minutes go on from it, and keep it."""
    table(place / "mine.csv")
    wanted = request_of(place, minutes=1e-4)
    carried_out(wanted)
    assert {*finished_arms(wanted.study)} == {PROBE}
    found = advice(wanted)
    assert found.advised
    assert {each.arm for each in found.further} == {*wanted.arms}
    assert all(each.minutes >= 1 and math.isnan(each.high) for each in found.further)
    before = (finished_arms(wanted.study)[PROBE].folder / "runs.parquet").stat().st_mtime_ns
    more = replace(wanted, minutes=10.0)
    carried_out(more)
    assert {*finished_arms(wanted.study)} == {PROBE, *wanted.arms}
    assert advice(more).further == ()
    assert (finished_arms(wanted.study)[PROBE].folder / "runs.parquet").stat().st_mtime_ns == before


def test_what_still_trains_when_the_minutes_are_over_is_stopped_and_goes_on(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table(place / "mine.csv")
    wanted, said = request_of(place, arms="full"), list[str]()
    job = Work(wanted, said.append)
    plan = Work.plan

    def slowly(job: Work, strength: float) -> None:
        plan(job, strength)
        job.began -= 3600  # the machine was busy, or slept

    with monkeypatch.context() as patch:
        patch.setattr(Work, "plan", slowly)
        job.run()
    assert any("minutes are over" in line for line in said)
    assert {*finished_arms(wanted.pilot)} == {PROBE}
    carried_out(wanted)
    assert {*finished_arms(wanted.study)} == {PROBE, *wanted.arms}


def test_an_arm_that_the_model_cannot_have_is_left_out_unless_it_was_named(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_adapters(spec: SweepSpec, *task: Any) -> Any:
        if models.adapted(spec.trainable):
            raise SpecError("no matrices that adapters are for")
        return task_and_model(spec, *task)

    monkeypatch.setattr(work, "task_and_model", without_adapters)
    table(place / "mine.csv")
    usual = request_of(place, arms=None)
    assert any(line.startswith("left out: LoRA") for line in carried_out(usual))
    assert {*finished_arms(usual.study)} == {PROBE, "unfrozen-pretrained"}
    with pytest.raises(SpecError, match="no matrices"):
        carried_out(request_of(place, arms="lora", name="other"))


def test_what_another_request_measured_is_not_taken_for_this_one(place: Path) -> None:
    """Not even its tuning seeds, where only the study was removed."""
    table(place / "mine.csv")
    wanted = request_of(place, minutes=1e-4)
    carried_out(wanted)
    both = f"remove {wanted.study} and {wanted.pilot}"
    for gone in (False, True):
        if gone:
            shutil.rmtree(wanted.study)
        with pytest.raises(SpecError, match=f"another request.*{both}"):
            carried_out(replace(wanted, arms=wanted.arms[::-1]))
    with pytest.raises(SpecError, match=f"{wanted.pilot} is of another request"):
        carried_out(replace(wanted, name="mine-pilot"))
    table(place / "mine.csv", rows=120)
    with pytest.raises(SpecError, match="its files have changed"):
        carried_out(wanted)


def test_a_request_that_was_stopped_before_its_probe_holds_no_name(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    table(place / "mine.csv")
    wanted = request_of(place, minutes=1e-4)
    with monkeypatch.context() as patch:
        patch.setattr(Work, "probe", stop)
        with pytest.raises(KeyboardInterrupt):
            carried_out(wanted)
    (wanted.study / studies.BASELINES).write_bytes(b"of another request")
    other = request_of(place, arms="frozen", minutes=1e-4)
    carried_out(other)
    assert len(studies.read_baselines(other.study)["seed"].unique()) == other.seeds


def test_no_wait_is_without_a_word(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = list[str]()
    monkeypatch.setattr(work, "SAID_EVERY", 0.02)
    table(place / "mine.csv")
    with work.beating(Work(request_of(place), said.append)):
        time.sleep(0.5)
    assert len(said) > 1


def test_baselines_that_are_damaged_are_named(tmp_path: Path) -> None:
    (tmp_path / studies.BASELINES).write_bytes(b"no table")
    with pytest.raises(DataError, match="remove it"):
        studies.read_baselines(tmp_path)


def test_two_names_of_one_arm_are_one_arm(place: Path) -> None:
    table(place / "mine.csv")
    assert request_of(place, arms="frozen,scratch,all-random,probe").arms == ("frozen-pretrained", "unfrozen-random")


def test_a_batch_is_no_larger_than_the_training_examples(place: Path) -> None:
    table(place / "mine.csv", rows=40)
    wanted = request_of(place, arms="full", batch_size=64)
    carried_out(wanted)
    assert load_study(wanted.study).sweeps[1].batch_size == load_task(wanted.task, "tiny-lm").split(0).train_size


def test_any_character_may_name_a_column(place: Path) -> None:
    target = "Preis \N{MONEY BAG}"
    table(place / "mine.csv")
    pd.read_csv("mine.csv").rename(columns={"label": target}).to_csv("mine.csv", index=False)
    wanted = request_of(place, options={"target": target}, minutes=1e-4)
    carried_out(wanted)
    assert {spec.task_options["target"] for spec in load_study(wanted.study).sweeps} == {target}


def test_a_path_is_taken_from_the_working_directory(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "inside").mkdir()
    monkeypatch.chdir(place / "inside")
    table(Path("mine.csv"))
    for data in ("mine.csv", "csv:mine.csv", f"csv:{Path('mine.csv').absolute()}"):
        assert request(data, "tiny-lm", None, root=place).task == "csv:inside/mine.csv"


def test_a_workspace_may_be_named_by_a_link(place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    link = tmp_path_factory.mktemp("elsewhere") / "deep" / "link"
    link.parent.mkdir()
    link.symlink_to(place)
    table(place / "mine.csv")
    assert request(str(place / "mine.csv"), "tiny-lm", None, root=link).task == "csv:mine.csv"


def test_examples_in_test_and_in_training_are_counted(place: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(1, 50, (40, 6)), np.arange(40) % 2
    unseen = rng.integers(50, 99, (7, 6))
    for repeats in (0, 3):
        twice, labels = np.concatenate([x[:repeats], unseen]), y[: repeats + 7]
        np.savez("mine.npz", x_train=x, y_train=y, x_test=twice, y_test=labels)
        assert work.leaked(load_task("npz:mine.npz", "tiny-lm")) == repeats
        np.savez("mine.npz", x_train=np.concatenate([x, twice]), y_train=np.concatenate([y, labels]))
        assert work.leaked(load_task("npz:mine.npz", "tiny-lm")) == repeats  # whatever the seeds draw
    assert work.leaked(load_task("bit-xor", "tiny-lm")) == 0


def test_the_white_of_a_folder_is_an_option_of_the_command(place: Path) -> None:
    for label in ("a", "b"):
        (place / "mine" / label).mkdir(parents=True)
    wanted = request("mine", "tiny-lm", None, root=place, options={"white": 4095})
    assert wanted.options == {"white": 4095}


def test_arrays_are_read_as_the_command_says(place: Path) -> None:
    images, labels = np.full((40, 8, 8), 16, np.uint8), np.arange(40) % 2
    np.savez("mine.npz", x_train=images, y_train=labels)
    wanted = request("mine.npz", "tiny-lm", None, root=place, options={"white": 16})
    assert wanted.probe([1.0], [0]).task_options == {"white": 16}


def test_a_model_that_adds_no_positions_has_a_bias_in_its_input_layer(place: Path) -> None:
    table(place / "mine.csv")
    wanted = request_of(place, "frozen,full", backbone="smollm2")
    specs = [
        wanted.trained(arm, 0.1, 4, learning_rates=[1e-3], seeds=[0], compute_type="float32") for arm in wanted.arms
    ]
    studies.write_study(wanted, wanted.study, specs, "")
    assert list(load_study(wanted.study).sweeps) == specs
    assert [spec.input_init for spec in specs] == ["biased", "biased"]
    assert request_of(place).probe([1.0], [0]).input_init == "orthogonal"
