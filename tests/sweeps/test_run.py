"""One sweep: a grid that extends, what is asked of its training, and what is written."""

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import torch
from stand_in import Accuracy, Trained, best_at, fleet, spec

from fpt import papers
from fpt.errors import DataError, FptError, SpecError, WeightsError
from fpt.files import read_json, sha256
from fpt.models import weights
from fpt.papers.schema import RULES
from fpt.sweeps import SweepSpec, ledger, provenance, run_sweep
from fpt.sweeps import run as execute
from fpt.sweeps.checks import check_all
from fpt.sweeps.record import RESULT
from fpt.sweeps.run import parquet, prepare
from fpt.sweeps.spec import resolve
from fpt.training import Recipe, checkpoint, compute
from fpt.training.fleet import Fleet

NAN = math.nan


def test_every_rate_is_trained_with_every_seed_and_recorded(trained: Trained, tmp_path: Path) -> None:
    trained.accuracy = best_at(1e-3, 1e-2, 1e-2)
    chosen = spec(seeds=[2, 0, 1], budget_examples=50)
    result = run_sweep(chosen, tmp_path / "sweep")
    assert trained.calls == [{"rates": [1e-3, 1e-2], "seeds": [0, 1, 2], "checkpoints": "0"}]
    assert list(result.runs.columns[:3]) == ["sweep", "learning_rate", "seed"]
    assert result.runs["sweep"].eq(chosen.folder_name).all()
    assert len(result.runs) == 6
    assert list(result.curves.columns[:4]) == ["sweep", "learning_rate", "seed", "step"]
    assert str(result.runs["diverged_at"].dtype) == "Int64"
    text = (tmp_path / "sweep" / "result.json").read_text()
    info = json.loads(text)
    assert info["spec"] == chosen.resolved() | {"arm": "frozen-random"}
    assert (info["hash"], info["protocol"]) == (chosen.hash, 2)
    assert (info["selected_rate"], info["at_edge"], info["eligible"]) == (1e-2, True, [1e-3, 1e-2])
    assert info["grid"] == [1e-3, 1e-2]
    assert info["choices"] == {"0": 1e-2, "1": 1e-3, "2": 1e-3}  # each by the other two; a tie goes to the smaller rate
    assert info["test"] == {
        "drawn_by_seed": True,
        "size": 400,
        "budget": 50,
        "last": 400,
        "collection": 1797,
        "classes": 10,
    }
    assert (info["data_checksum"], info["compute_type"], info["threads"]) == ("sum", "float32", 1)
    assert info["multiplied_in"] == "float32"
    assert (info["fleets"], info["compiled"]) == ([[2, 3]], False)
    assert (info["asks"], info["plan"], info["rules"]) == ({}, [], RULES)
    assert info["wide_products"] is False  # FPT_PRELOAD=0 in tests
    assert {"version", "git", "device", "versions", "wall_seconds"} <= set(info)
    assert info["started_utc"] <= info["finished_utc"]
    assert str(tmp_path) not in text
    files = {path.name for path in (tmp_path / "sweep").iterdir()}
    assert files == {"curves.parquet", "lock", "result.json", "runs.parquet"}


def test_what_the_study_asks_is_recorded_with_the_hash_of_its_rule(trained: Trained, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "mine"
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(json.dumps({"asks": ["R-01", "L-04"], "plan": ["FP - UP is above 0."]}))
    info = run_sweep(spec(), folder / spec().folder_name).info
    assert info["asks"] == {name: papers.rule_hash(papers.claim(name)) for name in ("R-01", "L-04")}
    assert len(set(info["asks"].values())) == 2
    assert info["plan"] == ["FP - UP is above 0."]


def test_what_is_edited_while_a_sweep_trains_was_not_asked_before_it(trained: Trained, tmp_path: Path) -> None:
    """Nor where it is killed and goes on after the edit."""
    folder = tmp_path / "runs" / "mine"
    folder.mkdir(parents=True)

    def ask(*names: str) -> None:
        (folder / "study.yaml").write_text(json.dumps({"asks": list(names)}))

    def killed() -> None:
        ask("R-01", "L-04")
        raise KeyboardInterrupt

    ask("R-01")
    trained.meanwhile = killed
    with pytest.raises(KeyboardInterrupt):
        run_sweep(spec(), folder / spec().folder_name)
    trained.meanwhile = lambda: ask("L-04")
    shutil.rmtree(folder / spec().folder_name / execute.CHECKPOINTS)
    assert set(run_sweep(spec(), folder / spec().folder_name).info["asks"]) == {"R-01"}


def test_a_done_folder_is_read_and_an_unfinished_one_starts_over(trained: Trained, tmp_path: Path) -> None:
    first = run_sweep(spec(), tmp_path)
    again = run_sweep(spec(), tmp_path)
    assert len(trained.calls) == 1
    pd.testing.assert_frame_equal(first.runs, again.runs)
    (tmp_path / "result.json").unlink()
    (tmp_path / "runs.parquet").write_bytes(b"half")
    pd.testing.assert_frame_equal(run_sweep(spec(), tmp_path).runs, first.runs)
    assert len(trained.calls) == 2


LOW = [1e-5, 1e-4, 1e-3]
EXTENSIONS = [  # peaks of seeds, grid, extend; rates that are added fleet by fleet, the best rate, whether at an end
    ([1e-2], LOW, 3, [[3e-3], [1e-2], [3e-2]], 1e-2, False),  # upwards until the best rate is inside
    ([1.0], LOW, 2, [[3e-3], [1e-2]], 1e-2, True),  # at most so many rates at an end
    # both ends at once, each as far as it needs: each of two seeds chooses the peak of the other
    ([3e-4, 1e-1], [1e-3, 3e-3, 1e-2], 3, [[3e-4, 3e-2], [1e-4, 1e-1], [3e-1]], 3e-4, False),
    ([1e-5], [1e-3, 1e-2], 1, [[3e-4]], 3e-4, True),  # downwards
    ([1.0], [1e-4, 1e-3], 0, [], 1e-3, True),  # not where the study says so
    ([1.0], [1e-3], 3, [], 1e-3, False),  # one rate is no grid
]


class TestExtension:
    """A grid grows by half a decade where a tuned rate is its end."""

    def test_later_fleets_have_the_number_type_and_the_threads_of_the_first(
        self, trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A sweep that was killed may go on elsewhere, and its record names one of each."""
        seen: list[tuple[str, int]] = []

        def train(task: Any, template: Any, recipe: Recipe, *rest: Any, **named: Any) -> Any:
            seen.append((recipe.compute_type, torch.get_num_threads()))
            return trained(task, template, recipe, *rest, **named)

        monkeypatch.setattr(execute.training, "train_fleet", train)
        trained.accuracy = best_at(1e-2, 1e-2)
        with compute.computing(2):
            run_sweep(spec(compute_type="auto", learning_rates=[1e-4, 1e-3], extend=2), tmp_path / "sweep")
        assert seen[0] == ("auto", 2)
        assert set(seen[1:]) == {("float32", 1)}

    def grid(self, trained: Trained, folder: Path, accuracy: Accuracy, **change: Any) -> list[list[float]]:
        """The rates of each call of the training."""
        trained.accuracy = accuracy
        result = run_sweep(spec(**{"extend": 3} | change), folder)
        assert result.info["grid"] == sorted(rate for rates in trained.rates for rate in rates)
        assert set(result.runs["learning_rate"]) == set(result.curves["learning_rate"]) == set(result.info["grid"])
        assert result.info["fleets"] == [[len(rates), 2] for rates in trained.rates]
        return trained.rates

    @pytest.mark.parametrize("case", EXTENSIONS)
    def test_at_the_ends_that_seeds_choose(self, case: tuple[Any, ...], trained: Trained, tmp_path: Path) -> None:
        peaks, rates, extend, added, best, at_edge = case
        assert self.grid(trained, tmp_path, best_at(*peaks), learning_rates=rates, extend=extend) == [rates, *added]
        info = read_json(tmp_path / RESULT) or {}
        assert (info["selected_rate"], info["at_edge"]) == (best, at_edge)

    def test_one_seed_is_enough(self, trained: Trained, tmp_path: Path) -> None:
        """The best rate over all seeds is inside, one seed's choice is not."""
        heights = {1e-4: (0.5, 0.2), 1e-3: (0.9, 0.6), 1e-2: (0.1, 0.7), 3e-2: (0.1, 0.2)}
        rates = self.grid(trained, tmp_path, lambda rate, seed: heights[rate][seed], learning_rates=[1e-4, 1e-3, 1e-2])
        assert rates[1:] == [[3e-2]]
        assert (read_json(tmp_path / RESULT) or {})["selected_rate"] == 1e-3

    @pytest.mark.parametrize("seed_that_diverged", [0, 1])
    def test_not_past_a_rate_that_diverged(self, seed_that_diverged: int, trained: Trained, tmp_path: Path) -> None:
        def accuracy(rate: float, seed: int) -> float:
            return NAN if rate >= 1e-2 and seed == seed_that_diverged else best_at(1.0)(rate, seed)

        assert self.grid(trained, tmp_path, accuracy, learning_rates=[1e-4, 3e-4, 1e-3])[1:] == [[3e-3], [1e-2]]

    def test_where_every_rate_diverged_nothing_lies_beyond_and_no_weights_are_kept(
        self, trained: Trained, tmp_path: Path
    ) -> None:
        assert self.grid(trained, tmp_path, lambda rate, seed: NAN, measures=["weights"]) == [[1e-3, 1e-2]]
        info = read_json(tmp_path / RESULT) or {}
        assert info["choices"] == {"0": None, "1": None}
        assert (info["selected_rate"], info["at_edge"], info["eligible"]) == (None, False, [])
        assert not (tmp_path / ledger.KEPT_WEIGHTS).exists()

    def test_each_fleet_has_its_own_checkpoints_and_all_seeds(self, trained: Trained, tmp_path: Path) -> None:
        self.grid(trained, tmp_path, best_at(1e-2), learning_rates=LOW)
        assert [call["checkpoints"] for call in trained.calls] == ["0", "1", "2", "3"]
        assert all(call["seeds"] == [0, 1] for call in trained.calls)
        assert not (tmp_path / execute.CHECKPOINTS).exists()

    def test_kept_weights_are_of_the_first_seed_at_the_best_rate(self, trained: Trained, tmp_path: Path) -> None:
        self.grid(trained, tmp_path, best_at(1e-2, 1e-2), learning_rates=[1e-4, 1e-3], measures=["weights"])
        assert (tmp_path / ledger.KEPT_WEIGHTS).read_text() == "seed 0 at 0.01"

    def test_progress_is_counted_in_run_steps(
        self, trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: list[dict[str, Any]] = []
        write = execute.write_json

        def spy(path: Path, content: dict[str, Any]) -> None:
            write(path, content)
            seen.extend([content] if path.name == ledger.PROGRESS else [])

        monkeypatch.setattr(execute, "write_json", spy)
        self.grid(trained, tmp_path, best_at(1e-2), learning_rates=[1e-4, 1e-3], steps=4)
        assert [content["grid"] for content in seen] == ["as planned"] * 2 + ["extension"] * 6
        assert [content["step"] for content in seen] == [0, 4] * 4
        counts = [(content["run_steps"], content["run_steps_total"]) for content in seen]
        assert counts == [(0, 16), (16, 16), (16, 24), (24, 24), (24, 32), (32, 32), (32, 40), (40, 40)]


def test_progress_of_a_fleet_in_parts_never_falls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are trained one after the other; the callback gets the run-steps of all of them."""
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(execute, "write_json", lambda path, content: seen.append(content))
    before: Any = [fleet([1e-3, 1e-2], [0, 1], 5, best_at(1e-3))]
    for earlier in ([], before):
        seen.clear()
        progress = execute._progress(spec(5), tmp_path, earlier, [1e-1], provenance.Beginning(tmp_path), None)
        for step in range(1, 16):
            progress(step, 15)
        shares = [content["run_steps"] / content["run_steps_total"] for content in seen]
        assert shares == sorted(shares)
        assert (shares[0], shares[-1]) == ((0 if not earlier else 4 / 6), 1)
        assert max(content["step"] for content in seen) == 5
        assert {content["run_steps_total"] for content in seen} == {5 * (len(earlier) and 4) + 5 * 2}


REAL: dict[str, Any] = {
    "evaluations": 1, "evaluation_examples": 20, "budget_examples": 20, "test_examples": 20, "compute_type": "float32",
    "backbone_options": {"layers": 1}, "extend": 1,
}  # fmt: skip


def test_a_sweep_that_is_killed_in_an_extension_goes_on_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real: SweepSpec = spec(5, **REAL)
    step, steps = Fleet.step, []

    def spy(fleet: Fleet, number: int, *batch: Any) -> Any:
        steps.append((fleet.rates, number))
        if killed_at == len(steps):
            raise KeyboardInterrupt
        return step(fleet, number, *batch)

    monkeypatch.setattr(checkpoint, "EVERY", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", 1e9)  # one after every step
    monkeypatch.setattr(Fleet, "step", spy)
    killed_at = 0
    whole = run_sweep(real, tmp_path / "whole").folder
    grid = [*real.learning_rates]
    assert [rates for rates, _ in steps[:5]] == [grid] * 5
    assert len(steps) >= 10, "a grid of two rates has no inside: it was extended"
    killed_at, expected, steps = 8, steps, []
    with pytest.raises(KeyboardInterrupt):
        run_sweep(real, tmp_path / "killed")
    killed_at, before, steps = 0, steps, []
    again = run_sweep(real, tmp_path / "killed").folder
    assert before[:-1] + steps == expected  # no step is done twice
    for name in ("runs.parquet", "curves.parquet"):
        assert (again / name).read_bytes() == (whole / name).read_bytes()


def test_a_fresh_temporary_folder_if_none_is_named(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folders = {run_sweep(spec()).folder for _ in range(2)}
    assert len(folders) == 2
    assert {folder.parent.parent for folder in folders} == {tmp_path}


def test_equal_tables_are_equal_bytes(tmp_path: Path) -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from stand_in import fleet; from fpt.sweeps.run import parquet\n"
        "diverging = lambda rate, seed: float('nan') if rate == 1e-2 else 0.8\n"
        "sys.stdout.buffer.write(parquet(fleet([1e-3, 1e-2], [0, 1], 3, diverging).runs))"
    )
    here = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", program, here]
    elsewhere = subprocess.run(command, capture_output=True, check=True, cwd=Path(__file__).parents[2]).stdout
    runs = fleet([1e-3, 1e-2], [0, 1], 3, lambda rate, seed: NAN if rate == 1e-2 else 0.8).runs
    assert runs["diverged_at"].tolist() == [pd.NA, pd.NA, 1, 1]
    assert parquet(runs) == elsewhere


def test_what_was_prepared_is_not_loaded_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loads: list[str] = []
    load, build = execute.models.load_task, execute.models.build
    monkeypatch.setattr(
        execute.models, "load_task", lambda *about, **how: (loads.append("data"), load(*about, **how))[1]
    )
    monkeypatch.setattr(execute.models, "build", lambda *about, **how: (loads.append("model"), build(*about, **how))[1])
    small = spec(**REAL | {"extend": 0})
    prepared = execute.prepare(small)
    assert loads == ["data", "model"]
    handed = run_sweep(small, tmp_path / "handed", prepared=prepared)
    assert loads == ["data", "model"]
    loaded = run_sweep(small, tmp_path / "loaded")
    assert loads == ["data", "model"] * 2
    pd.testing.assert_frame_equal(handed.runs, loaded.runs)
    run_sweep(small, tmp_path / "loaded")  # it is done, and read
    assert loads == ["data", "model"] * 2


def test_what_was_prepared_for_another_sweep_is_refused(tmp_path: Path) -> None:
    prepared, other = execute.prepare(spec(**REAL)), spec(**REAL | {"random_gain": 2.0})
    with pytest.raises(SpecError, match=rf"{prepared.spec.folder_name}.*{other.folder_name}"):
        run_sweep(other, tmp_path / "sweep", prepared=prepared)
    assert not (tmp_path / "sweep").exists()


def test_a_sweep_that_is_refused_leaves_no_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(SpecError):
        run_sweep(spec(**REAL | {"task": "bit-xor", "data_fraction": 0.5}))
    assert not list(tmp_path.iterdir())


def test_what_a_process_leaves_that_is_killed_after_its_result_is_removed(trained: Trained, tmp_path: Path) -> None:
    run_sweep(spec(), tmp_path)
    (tmp_path / execute.CHECKPOINTS / "0").mkdir(parents=True)
    (tmp_path / ledger.PROGRESS).write_text("{}")
    run_sweep(spec(), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"curves.parquet", "lock", "result.json", "runs.parquet"}
    assert len(trained.calls) == 1


class TestOwnDataThatChange:
    """Nothing is recorded under the hash of other data than those that were trained on."""

    @pytest.fixture(autouse=True)
    def _table(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        self.write(1)

    def write(self, unit: int) -> None:
        Path("mine.csv").write_text(
            "a,target\n" + "".join(f"{(row * 37 % 61) ** 2 * unit},{row % 2}\n" for row in range(60))
        )

    def test_while_the_sweep_is_trained(self, monkeypatch: pytest.MonkeyPatch) -> None:
        small = spec(**REAL | {"task": "csv:mine.csv", "extend": 0})
        name, train = small.folder_name, execute.training.train_fleet

        def changing(*arguments: Any, **how: Any) -> Any:
            found = train(*arguments, **how)
            self.write(12)
            return found

        with monkeypatch.context() as patch:
            patch.setattr(execute.training, "train_fleet", changing)
            with pytest.raises(DataError, match=r"csv:mine\.csv.*changed"):
                run_sweep(small, name)
        assert not (Path(name) / RESULT).exists()
        anew = resolve(dict(small))
        assert anew.folder_name != name == small.folder_name
        again = run_sweep(anew, anew.folder_name)
        assert again.info["data_checksum"] == sha256("mine.csv")

    def test_before_they_are_read(self) -> None:
        small = spec(**REAL | {"task": "csv:mine.csv"})
        self.write(12)
        with pytest.raises(DataError, match="changed"):
            run_sweep(small, "sweep")
        assert not Path("sweep").exists()

    def test_after_they_were_prepared(self) -> None:
        small = spec(**REAL | {"task": "csv:mine.csv"})
        prepared = execute.prepare(small)
        self.write(12)
        with pytest.raises(DataError, match="changed"):
            run_sweep(small, "sweep", prepared=prepared)
        assert not Path("sweep").exists()


class TestData:
    """What a spec says of the data reaches the task that is trained."""

    def test_what_a_task_does_not_admit_is_refused_before_training(self, tmp_path: Path) -> None:
        refused, words = (
            spec(task="bit-xor", data_fraction=0.5, compute_type="float32"),
            "data_fraction = 0.5: .*no fixed",
        )
        with pytest.raises(SpecError, match=words):
            run_sweep(refused, tmp_path / "sweep")
        assert not (tmp_path / "sweep").exists()
        with pytest.raises(SpecError, match=f"{words}.*sweep {refused.folder_name}"):
            check_all([refused, spec(compute_type="float32")], tmp_path)  # of those alike the last one is checked

    def test_it_is_trained_on_a_part_of_the_data_and_on_shuffled_tokens(self) -> None:
        changes = {"data_fraction": 0.25, "shuffle_tokens": True}
        task = execute.prepare(spec(**REAL | changes)).task
        assert task.changes == changes


class TestChecksBeforeTraining:
    def test_weights(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        def missing(backbone: str) -> str:
            raise WeightsError(f"no weights for {backbone}")

        monkeypatch.setattr(weights, "find", missing)
        with pytest.raises(WeightsError, match="tiny-lm"):
            check_all([spec(), spec(arm="frozen-pretrained")], tmp_path)
        check_all([spec(compute_type="float32")], tmp_path)  # random arms need none

    def test_data_and_disk(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("FPT_DATA", str(tmp_path))
        (tmp_path / "mnist.npz").write_bytes(b"PK half of it")
        with pytest.raises(DataError, match="mnist"):
            check_all([spec(), spec(task="mnist")], tmp_path)
        with pytest.raises(FptError, match="cannot be written"):
            check_all([spec()], tmp_path / "missing")

    def test_other_data_than_those_of_a_finished_sweep(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its arms would not be compared."""
        monkeypatch.setenv("FPT_DATA", str(Path(__file__).parents[1] / "data"))
        images, done = spec(task="mnist"), tmp_path / "mnist.frozen-random-0a1b2c3d" / "result.json"
        done.parent.mkdir()
        task, record = prepare(images).task, {"spec": images.resolved()}
        done.write_text(json.dumps(record | {"data_checksum": task.checksum}))
        check_all([images], tmp_path)
        done.write_text(json.dumps(record | {"data_checksum": "0" * 64}))
        check_all([spec()], tmp_path)
        with pytest.raises(DataError, match=r"trained on other data .*FPT_DATA"):
            check_all([images], tmp_path)

    def test_memory_with_and_without_dropout(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[float] = []
        monkeypatch.setattr(execute.training, "check_room", lambda template, recipe, *_: asked.append(recipe.dropout))
        check_all([spec(dropout=0.1), spec(dropout=0.0), spec(dropout=0.0, evaluations=7)], tmp_path)
        assert asked == [0.1, 0.0]

    def test_checkpoints_of_other_sweeps_are_no_room(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("shutil.disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 1000))
        begun, other = spec(compute_type="float32"), spec(compute_type="float32", arm="unfrozen-random")
        (tmp_path / begun.folder_name).mkdir()
        (tmp_path / begun.folder_name / "part-0.safetensors").write_bytes(bytes(2 * 10**6))
        check_all([begun], tmp_path)
        with pytest.raises(FptError, match=f"are free at .*{other.folder_name}"):
            check_all([begun, other], tmp_path)

    def test_room_for_the_weights_of_every_rate_that_there_may_be(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[int] = []
        monkeypatch.setattr(checkpoint, "check_disk", lambda *given: asked.append(given[-1]))
        keeper = spec(measures=["weights"], learning_rates=[1e-3, 1e-2], extend=2)
        check_all([spec(), keeper, keeper.changed(extend=0)], tmp_path)
        assert asked == [0, 2 + 2 * 2, 2]


PACKAGE = Path(provenance.__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("answers", "state"),
    [
        (["/somewhere/else\n"], None),  # somebody else's checkout
        ([f"{PACKAGE}\n", "abc\n", " M README.md\n"], {"commit": "abc", "dirty": True}),
    ],
)
def test_the_state_of_git_is_that_of_our_own_checkout(
    answers: list[str], state: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = iter(answers)
    monkeypatch.setattr(provenance.subprocess, "run", lambda *_, **__: SimpleNamespace(stdout=next(given)))
    assert provenance.git_state() == state


def test_a_new_file_of_the_package_is_a_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=tmp_path, check=True)

    module = tmp_path / "fpt" / "sweeps" / "provenance.py"
    module.parent.mkdir(parents=True)
    module.touch()
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    monkeypatch.setattr(provenance, "__file__", str(module))
    (tmp_path / "notes.txt").touch()  # decides nothing
    assert provenance.git_state()["dirty"] is False  # type: ignore[index]
    (tmp_path / "fpt" / "new_task.py").touch()
    assert provenance.git_state()["dirty"] is True  # type: ignore[index]


def test_without_git_there_is_no_state_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert provenance.git_state() is None
