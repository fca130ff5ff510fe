"""One sweep: two stages, what is asked of each, and what is written."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from stand_in import fleet, spec

from fpt.errors import DataError, FptError, LockedError, SpecError, WeightsError
from fpt.sweeps import ledger, provenance, run_sweep
from fpt.sweeps import run as execute
from fpt.sweeps.run import check_all, parquet

Calls = list[dict[str, Any]]


def test_selection_then_confirmation_on_fresh_seeds(trained: Calls, tmp_path: Path) -> None:
    chosen = spec(reference_rates=[1e-2], confirmation_seeds=[10, 11], evaluation_examples=50)
    result = run_sweep(chosen, tmp_path / "sweep")
    assert trained == [
        {"rates": [1e-3, 1e-2], "seeds": [0], "test_examples": 50},
        {"rates": [1e-3, 1e-2], "seeds": [10, 11], "test_examples": None},
    ]
    assert result.selected_rate == 1e-3
    assert list(result.runs.columns[:4]) == ["sweep", "stage", "learning_rate", "seed"]
    assert result.runs["sweep"].eq(chosen.folder_name).all()
    assert result.runs["stage"].tolist() == ["selection"] * 2 + ["confirmation"] * 4
    assert list(result.curves.columns[:5]) == ["sweep", "stage", "learning_rate", "seed", "step"]
    assert str(result.runs["diverged_at"].dtype) == "Int64"


def test_result_json_has_spec_and_provenance_and_no_place(trained: Calls, tmp_path: Path) -> None:
    run_sweep(spec(), tmp_path / "sweep")
    text = (tmp_path / "sweep" / "result.json").read_text()
    info = json.loads(text)
    assert info["spec"] == spec().resolved() | {"arm": "frozen-random"}
    assert info["hash"] == spec().hash
    assert (info["selected_rate"], info["at_edge"], info["eligible"]) == (1e-3, True, [1e-3, 1e-2])
    assert (info["data_checksum"], info["compute_type"], info["threads"]) == ("sum", "float32", 1)
    assert info["fleets"] == {"selection": [[2, 1]], "confirmation": [[1, 1]]}
    assert info["compiled"] == {"selection": False, "confirmation": False}
    assert {"protocol", "version", "git", "device", "versions", "wall_seconds"} <= set(info)
    assert info["started_utc"] <= info["finished_utc"]
    assert str(tmp_path) not in text
    assert sorted(path.name for path in (tmp_path / "sweep").iterdir()) == [
        "curves.parquet",
        "lock",
        "result.json",
        "runs.parquet",
    ]


def test_a_done_folder_is_read_and_an_unfinished_one_starts_over(trained: Calls, tmp_path: Path) -> None:
    first = run_sweep(spec(), tmp_path)
    again = run_sweep(spec(), tmp_path)
    assert len(trained) == 2
    pd.testing.assert_frame_equal(first.runs, again.runs)
    (tmp_path / "result.json").unlink()
    (tmp_path / "runs.parquet").write_bytes(b"half")
    pd.testing.assert_frame_equal(run_sweep(spec(), tmp_path).runs, first.runs)
    assert len(trained) == 4


def test_another_spec_is_refused_and_nothing_changes(trained: Calls, tmp_path: Path) -> None:
    run_sweep(spec(), tmp_path)
    before = (tmp_path / "result.json").read_bytes()
    with pytest.raises(LockedError, match="holds another sweep"):
        run_sweep(spec(steps=4), tmp_path)
    assert (tmp_path / "result.json").read_bytes() == before
    assert len(trained) == 2


def test_without_confirmation_seeds_a_sweep_is_exploratory(trained: Calls, tmp_path: Path) -> None:
    result = run_sweep(spec(confirmation_seeds=[], reference_rates=[1e-3]), tmp_path)
    assert set(result.runs["stage"]) == {"selection"}
    assert len(trained) == 1


@pytest.mark.parametrize("references", [[], [1e-2]])
def test_if_every_rate_diverged_only_the_references_are_confirmed(
    trained: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, references: list[float]
) -> None:
    rates: list[Any] = []

    def diverging(task: Any, template: Any, recipe: Any, grid: Any, seeds: Any, **_: Any) -> Any:
        rates.append(list(grid))
        result = fleet(grid, seeds, recipe.steps)
        result.runs["diverged_at"] = 2
        return result

    monkeypatch.setattr(execute.training, "train_fleet", diverging)
    result = run_sweep(spec(reference_rates=references), tmp_path)
    assert result.selected_rate is None
    assert rates[1:] == ([references] if references else [])


def test_a_fresh_temporary_folder_if_none_is_named(
    trained: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folders = {run_sweep(spec()).folder for _ in range(2)}
    assert len(folders) == 2
    assert {folder.parent.parent for folder in folders} == {tmp_path}


def test_progress_is_counted_in_run_steps(trained: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []
    write = execute.write_json

    def spy(path: Path, content: dict[str, Any]) -> None:
        write(path, content)
        seen.extend([content] if path.name == ledger.PROGRESS else [])

    monkeypatch.setattr(execute, "write_json", spy)
    run_sweep(spec(steps=4, confirmation_seeds=[10, 11]), tmp_path)
    shares = [content["run_steps"] / content["run_steps_total"] for content in seen]
    assert [content["stage"] for content in seen] == ["selection"] * 2 + ["confirmation"] * 2
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] == 1


def test_an_interrupted_sweep_leaves_no_result(trained: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(execute.training, "train_fleet", stop)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(spec(), tmp_path)
    assert not (tmp_path / "result.json").exists()


def test_bad_specs_write_nothing(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"batch.*2000"):
        run_sweep(spec(batch_size=2000), tmp_path / "sweep")
    assert not (tmp_path / "sweep").exists()


def test_equal_tables_are_equal_bytes(tmp_path: Path) -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from stand_in import fleet; from fpt.sweeps.run import parquet\n"
        "sys.stdout.buffer.write(parquet(fleet([1e-3, 1e-2], [0, 1], 3, diverged=1e-2).runs))"
    )
    here = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", program, here]
    elsewhere = subprocess.run(command, capture_output=True, check=True, cwd=Path(__file__).parents[2]).stdout
    assert parquet(fleet([1e-3, 1e-2], [0, 1], 3, diverged=1e-2).runs) == elsewhere


def test_what_was_prepared_is_not_loaded_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loads: list[str] = []
    load, build = execute.tasks.load, execute.models.build
    monkeypatch.setattr(execute.tasks, "load", lambda *about, **how: (loads.append("data"), load(*about, **how))[1])
    monkeypatch.setattr(execute.models, "build", lambda *about, **how: (loads.append("model"), build(*about, **how))[1])
    small = spec(evaluations=1, evaluation_examples=20, compute_type="float32", backbone_options={"layers": 1})
    prepared = execute.prepare(small)
    assert loads == ["data", "model"]
    handed = run_sweep(small, tmp_path / "handed", prepared=prepared)
    assert loads == ["data", "model"]
    loaded = run_sweep(small, tmp_path / "loaded")
    assert loads == ["data", "model"] * 2
    pd.testing.assert_frame_equal(handed.runs, loaded.runs)
    run_sweep(small, tmp_path / "loaded")  # it is done, and read
    assert loads == ["data", "model"] * 2


class TestChecksBeforeTraining:
    def test_weights(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        def missing(backbone: str) -> str:
            raise WeightsError(f"no weights for {backbone}")

        monkeypatch.setattr(execute.weights, "find", missing)
        with pytest.raises(WeightsError, match="tiny-lm"):
            check_all([spec(), spec(arm="frozen-pretrained")], tmp_path)
        check_all([spec(compute_type="float32")], tmp_path)  # random arms need none

    def test_data(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("FPT_DATA", str(tmp_path))
        (tmp_path / "mnist.npz").write_bytes(b"PK half of it")
        with pytest.raises(DataError, match="mnist"):
            check_all([spec(), spec(task="mnist")], tmp_path)

    def test_batch_size(self, tmp_path: Path) -> None:
        with pytest.raises(SpecError, match=r"batch.*1098.*1,?097"):
            check_all([spec(), spec(batch_size=1098)], tmp_path)

    def test_disk(self, tmp_path: Path) -> None:
        with pytest.raises(FptError, match="cannot be written"):
            check_all([spec()], tmp_path / "missing")


class TestProvenance:
    def test_no_checkout(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "/nonexistent")
        assert provenance.git_state() is None

    def test_somebody_elses_checkout(self, monkeypatch: pytest.MonkeyPatch) -> None:
        answer = SimpleNamespace(stdout="/somewhere/else\n")
        monkeypatch.setattr(provenance.subprocess, "run", lambda *_, **__: answer)
        assert provenance.git_state() is None

    def test_checkout(self, monkeypatch: pytest.MonkeyPatch) -> None:
        root = Path(provenance.__file__).resolve().parents[2]
        answers = iter([f"{root}\n", "abc\n", " M README.md\n"])
        monkeypatch.setattr(provenance.subprocess, "run", lambda *_, **__: SimpleNamespace(stdout=next(answers)))
        assert provenance.git_state() == {"commit": "abc", "dirty": True}
