"""From a request to two studies: what is planned, in which order, and what a second call does not do again."""

import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import synthetic

from fpt.advise import schedule, work
from fpt.advise.baselines import SECONDS, TREES, baselines
from fpt.advise.request import Request, request
from fpt.advise.schedule import Machine
from fpt.advise.verdict import advice, cells_of
from fpt.advise.work import Work, read_baselines, read_timing, retimed
from fpt.bench.cost import Measurement
from fpt.errors import DataError, SpecError
from fpt.files import read_json, write_json
from fpt.models import load_task
from fpt.results.baselines import LINEAR, MAJORITY
from fpt.results.runs import arms_in
from fpt.sweeps import SweepSpec, load_study
from fpt.sweeps.ledger import sweep_state

from .conftest import request_of, row, table, timed


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Small grids, made-up timings and made-up results; what was called."""
    found: list[str] = []

    def noted(specs: Sequence[SweepSpec], threads: int, compiled: bool = False) -> dict[str, Measurement]:
        found.append("timed compiled" if compiled else "timed")
        return timed(specs, threads)

    def train(study: Path, threads: int, bars: Any) -> None:
        found.append(study.name)
        for spec in load_study(study).sweeps:
            synthetic.write(spec, study / spec.folder_name, wall_seconds=0.01)

    monkeypatch.setattr(work, "timed", noted)
    monkeypatch.setattr(work, "train", train)
    monkeypatch.setattr(work, "product_rate", lambda compute_type: 1e15)
    monkeypatch.setattr(work, "COARSE", (3e-3, 3e-2))
    monkeypatch.setattr(schedule, "SEEDS", (4,))
    monkeypatch.setattr(schedule, "LEAST", 4)
    monkeypatch.setattr(schedule, "LEAST_PILOT", 4)
    return found


def begin(wanted: Request) -> list[str]:
    said: list[str] = []
    Work(wanted, said.append).run()
    return said


def test_the_numbers_to_beat_come_first_then_the_coarse_grid_then_the_fine_one(place: Path, calls: list[str]) -> None:
    table(place / "mine.csv")
    wanted = request_of(place, arms="frozen,full", steps=4)
    said = begin(wanted)
    assert calls == ["timed", "advise-mine-pilot", "advise-mine"]
    assert "240 rows, 2 classes (0, 1) of column label" in said[0]  # what was read, and how
    assert "standardised" in said[1]
    for study in (wanted.study, wanted.pilot):
        assert f"# {said[0]}" in (study / "study.yaml").read_text().splitlines()
    assert said[2].startswith("majority class")
    pilot, fine = load_study(wanted.pilot), load_study(wanted.study)
    assert all(sweep_state(spec, fine.folder).state == "done" for spec in fine.sweeps)
    best = {each.fields["arm"]: each.best_rate() for each in arms_in(pilot, "own").values()}
    assert all(best[spec.arm] in spec.learning_rates for spec in fine.sweeps)
    assert not set(pilot.sweeps[0].seeds) & set(fine.sweeps[0].seeds)
    calls.clear()
    written = (wanted.study / "study.yaml").read_bytes()
    begin(wanted)
    assert calls == ["advise-mine"]  # nothing is timed or planned again
    assert (wanted.study / "study.yaml").read_bytes() == written
    with pytest.raises(SpecError, match="another request"):
        begin(request_of(place, arms="frozen,lora", steps=4))


def planned(place: Path, calls: list[str]) -> Request:
    """A request that was carried out."""
    table(place / "mine.csv")
    wanted = request_of(place, arms="frozen,full", steps=4)
    begin(wanted)
    calls.clear()
    return wanted


def test_what_another_request_measured_is_not_taken_for_this_one(place: Path, calls: list[str]) -> None:
    """Not even its coarse grid, where only the study was removed."""
    wanted = planned(place, calls)
    both = f"remove {wanted.study} and {wanted.pilot}"
    for gone in (False, True):
        if gone:
            shutil.rmtree(wanted.study)
        with pytest.raises(SpecError, match=f"another request.*{both}"):
            begin(replace(wanted, arms=wanted.arms[::-1]))
    with pytest.raises(SpecError, match=f"{wanted.pilot} is of another request"):
        begin(replace(wanted, name="mine-pilot"))
    table(place / "mine.csv", rows=120)
    with pytest.raises(SpecError, match="its files have changed"):
        begin(wanted)
    assert calls == []


def test_a_request_that_was_stopped_before_its_plan_holds_no_name(
    place: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    table(place / "mine.csv")
    wanted = request_of(place, arms="frozen,full", steps=4)
    with monkeypatch.context() as patch:
        patch.setattr(Work, "plan_pilot", stop)
        with pytest.raises(KeyboardInterrupt):
            begin(wanted)
    write_json(wanted.study / work.BASELINES, {work.BY_SEED: {"linear classifier": [0.0] * 99}})
    begin(request_of(place, arms="frozen,scratch", steps=4))
    assert (wanted.study / "study.yaml").is_file()
    assert all(len(scores) == 4 for scores in read_json(wanted.study / work.BASELINES)[work.BY_SEED].values())


def test_two_names_of_one_arm_are_one_arm(place: Path) -> None:
    table(place / "mine.csv")
    assert request_of(place, arms="frozen,scratch,all-random").arms == ("frozen-pretrained", "unfrozen-random")
    with pytest.raises(SpecError, match="two arms or more"):
        request_of(place, arms="frozen,fpt-pretrained")


def test_a_plan_that_is_there_is_kept_and_may_be_changed_by_hand(place: Path, calls: list[str]) -> None:
    wanted = planned(place, calls)
    path = wanted.study / "study.yaml"
    path.write_text(path.read_text().replace("seeds: [0, 1, 2, 3]", "seeds: [4, 5, 6]"))
    said = begin(replace(wanted, minutes=100.0, steps=8))
    assert calls == ["advise-mine"]
    assert any("--minutes" in line and str(wanted.pilot) in line for line in said)
    assert advice(wanted, cells_of(wanted)).seeds == 3  # with baselines of the same


def test_a_coarse_grid_that_was_begun_before_tells_no_overhead(
    place: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[float | None] = []
    retimed = work.retimed

    def recorded(pilot: Path, rows: dict[str, Measurement], machine: Machine, seconds: float | None) -> Machine:
        told.append(seconds)
        return retimed(pilot, rows, machine, seconds)

    monkeypatch.setattr(work, "retimed", recorded)
    wanted = planned(place, calls)
    shutil.rmtree(wanted.study)
    begin(wanted)
    assert [seconds is None for seconds in told] == [False, True]


def test_what_is_planned_for_no_time_is_refused_before_anything_is_fitted(place: Path, calls: list[str]) -> None:
    table(place / "mine.csv")
    wanted = request_of(place, minutes=0.1)
    with pytest.raises(SpecError, match=r"--minutes 0\.1"):
        begin(wanted)
    assert calls == []
    assert not wanted.study.exists()


@pytest.mark.parametrize("dear", ["steps", "baselines"])
def test_what_takes_too_long_is_refused_after_the_baselines_of_one_seed(
    dear: str, place: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is the arms that take long, or the baselines of the seeds to come. Another call has not forgotten."""
    table(place / "mine.csv")
    wanted = request_of(place, arms="frozen,full")
    if dear == "steps":
        monkeypatch.setattr(work, "timed", lambda specs, threads: {each.arm: slow_row(each) for each in specs})
    else:
        monkeypatch.setattr(work, "baselines", lasting(300.0))
    for _ in range(2):
        with pytest.raises(SpecError, match=r"--minutes 10: .* give about"):
            begin(wanted)
        scores = read_json(wanted.study / work.BASELINES)[work.BY_SEED]
        assert {name: len(values) for name, values in scores.items()} == {MAJORITY: 1, LINEAR: 1} | (
            {TREES: 1} if dear == "steps" else {}
        )
        assert not wanted.pilot.exists()


def slow_row(spec: SweepSpec) -> Measurement:
    return row(spec).model_copy(update={"seconds": 100.0})


def lasting(seconds: float) -> Any:
    """In the place of work.baselines: each takes so long, or says so."""

    def instead(task: Any, seeds: Sequence[int], *how: Any) -> pd.DataFrame:
        found = baselines(task, seeds, *how)
        found.attrs[SECONDS] = dict.fromkeys(found, seconds)
        return found

    return instead


def test_a_baseline_that_takes_more_than_an_arm_of_the_coarse_grid_is_left_out(
    place: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table(place / "mine.csv")
    monkeypatch.setattr(work, "baselines", lasting(20.0))  # of 4 seeds 80, where an arm has less than 60
    wanted = request_of(place, arms="frozen,full", steps=4)
    said = begin(wanted)
    assert any("left out" in line and TREES in line for line in said)
    assert {*read_baselines(wanted.study, range(4))} == {MAJORITY, LINEAR}


def test_every_wait_is_said_before_it_begins(place: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    table(place / "mine.csv")
    said: list[str] = []
    before: dict[str, list[str]] = {}

    def noting(name: str) -> None:
        does = getattr(work, name)

        def instead(*given: Any, **named: Any) -> Any:
            before.setdefault(name, []).append(said[-1])
            return does(*given, **named)

        monkeypatch.setattr(work, name, instead)

    monkeypatch.setattr(work, "_is_compiled", lambda template, spec: True)
    noting("baselines")
    noting("timed")
    Work(request_of(place, arms="frozen,full", steps=4), said.append).run()
    assert [line[-1] for line in before["baselines"]] == list("0123")  # a line a seed
    assert all("timing" in line for line in before["timed"])
    assert len(before["timed"]) == 2


def test_where_the_coarse_grid_took_too_long_the_fine_one_has_the_fewest_steps(
    place: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table(place / "mine.csv")
    wanted = request_of(place, arms="frozen,full")
    said: list[str] = []
    job = Work(wanted, said.append)
    train = work.train

    def slowly(study: Path, *how: Any) -> None:
        train(study, *how)
        job.began -= 3600  # the machine was busy, or slept

    monkeypatch.setattr(work, "train", slowly)
    job.run()
    assert load_study(wanted.study).sweeps[0].steps == schedule.LEAST
    assert any("late" in line for line in said)


@pytest.mark.parametrize("done", [1, 2])
def test_a_coarse_grid_that_is_there_is_not_gone_on_from_in_too_few_minutes(
    done: int, place: Path, calls: list[str]
) -> None:
    wanted = planned(place, calls)
    shutil.rmtree(wanted.study)
    for folder in sorted(path for path in wanted.pilot.iterdir() if path.is_dir())[done:]:
        shutil.rmtree(folder)
    with pytest.raises(SpecError, match=r"--minutes 0\.2: 0 steps .* give about"):
        begin(replace(wanted, minutes=0.2, steps=None))
    assert calls == []
    begin(replace(wanted, minutes=10.0, steps=None))
    assert load_study(wanted.study).sweeps[0].steps > schedule.LEAST


def test_arms_that_will_be_compiled_are_timed_so(
    place: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table(place / "mine.csv")
    monkeypatch.setattr(work, "_is_compiled", lambda template, spec: True)
    begin(request_of(place, arms="frozen,full", steps=4))
    assert calls == ["timed", "advise-mine-pilot", "timed compiled", "advise-mine"]


def test_what_compiling_saved_in_the_coarse_grid_is_not_counted_again(
    place: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table(place / "mine.csv")
    monkeypatch.setattr(work, "_is_compiled", lambda template, spec: True)
    train, timed, asked = work.train, work.timed, []

    def compiled(study: Path, *how: Any) -> None:
        train(study, *how)
        for path in study.glob("*.frozen-*/result.json"):
            write_json(path, read_json(path) | {"compiled": True})

    def noted(specs: Sequence[SweepSpec], *how: Any, **kinds: bool) -> dict[str, Measurement]:
        asked.append([spec.arm for spec in specs])
        return timed(specs, *how, **kinds)

    monkeypatch.setattr(work, "train", compiled)
    monkeypatch.setattr(work, "timed", noted)
    begin(request_of(place, arms="frozen,full", steps=4))
    assert asked == [["frozen-pretrained", "unfrozen-pretrained"], ["unfrozen-pretrained"]]


def test_the_coarse_grid_says_how_fast_the_machine_is(wanted: Request) -> None:
    study = load_study(wanted.study)
    rows = {spec.arm: row(spec) for spec in study.sweeps}
    walls = {each.fields["arm"]: each.result["wall_seconds"] for each in arms_in(study, "own").values()}
    machine = retimed(wanted.study, rows, Machine(slots=1, threads=1), None)
    for spec in study.sweeps:
        assert machine.seconds(spec, rows[spec.arm]) == pytest.approx(walls[spec.arm])
    assert machine.overhead == schedule.OVERHEAD
    timed = retimed(wanted.study, rows, Machine(slots=1, threads=1), sum(walls.values()) + 30)
    assert timed.overhead == pytest.approx(30 / len(walls))


def test_timings_that_are_damaged_are_named(tmp_path: Path) -> None:
    for content in ("", "{}", '{"rows": {"frozen-pretrained": {}}}', '{"rows": 3}'):
        (tmp_path / work.TIMING).write_text(content)
        with pytest.raises(DataError, match="start again"):
            read_timing(tmp_path)


def test_a_plan_that_is_there_is_not_refused_for_its_time(
    place: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = planned(place, calls)
    monkeypatch.setattr(work, "product_rate", lambda compute_type: 1.0)  # years for a new plan
    begin(replace(wanted, minutes=1.0))
    assert calls == ["advise-mine"]


def test_the_baselines_of_a_seed_are_counted_once(
    place: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table(place / "mine.csv")
    wanted = request_of(place, arms="frozen,full", steps=4)
    counted: list[int] = []
    count = work.baselines

    def noted(task: Any, seeds: Sequence[int], *how: Any) -> Any:
        counted.extend(seeds)
        return count(task, seeds, *how)

    monkeypatch.setattr(work, "baselines", noted)
    task = load_task(wanted.task, wanted.backbone, **wanted.options)
    for seeds in (2, 5, 3):
        Work(wanted, lambda line: None).count_baselines(task, seeds)
    assert counted == [0, 1, 2, 3, 4]
    at_once = count(task, range(5), 1000)
    assert read_baselines(wanted.study, range(5)).equals(at_once.rename_axis(None))


def test_any_character_may_name_a_column(place: Path, calls: list[str]) -> None:
    target = "Preis \N{MONEY BAG}"
    table(place / "mine.csv")
    pd.read_csv("mine.csv").rename(columns={"label": target}).to_csv("mine.csv", index=False)
    wanted = request("mine.csv", "tiny-lm", "frozen,full", root=place, options={"target": target}, steps=4)
    begin(wanted)
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
    assert wanted.one_run(wanted.arms[0], "float32").task_options == {"white": 16}


@pytest.mark.parametrize("given", [{"minutes": math.nan}, {"tolerance": math.nan}, {"minutes": math.inf}])
def test_a_number_that_is_not_finite_is_refused(given: dict[str, float], place: Path) -> None:
    table(place / "mine.csv")
    with pytest.raises(SpecError, match=f"--{next(iter(given))} .*finite"):
        request("mine.csv", "tiny-lm", None, root=place, **given)


def test_a_model_that_adds_no_positions_has_a_bias_in_its_input_layer(place: Path) -> None:
    table(place / "mine.csv")
    wanted = request_of(place, "frozen,full", backbone="smollm2")
    specs = [wanted.spec(arm, [1e-3], [0], 4, "float32") for arm in wanted.arms]
    work.write_study(wanted, wanted.study, specs, [], {})
    assert list(load_study(wanted.study).sweeps) == specs
    assert [spec.input_init for spec in specs] == ["biased", "biased"]
    assert request_of(place).one_run("frozen-pretrained", "float32").input_init == "orthogonal"
