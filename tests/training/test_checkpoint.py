"""Checkpoints: what is done is not done again; what cannot be used or written says so."""

import errno
import shutil
import time
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file
from small_models import short_recipe

import fpt.models
from fpt.errors import FptError
from fpt.training import checkpoint, train_fleet
from fpt.training.checkpoint import Folder, Plan, identify
from fpt.training.fleet import Fleet
from fpt.training.loop import Training

CPU = torch.device("cpu")
RATES, SEEDS = [1e-3, 1e-2], [0, 5]

recipe = partial(short_recipe, steps=12, evaluations=4, evaluation_examples=40, dropout=0.1)


def model(task, policy="fpt", **options):
    return fpt.models.build(task, "small-gpt2", "random", policy, **options)


@pytest.fixture
def fleet(digits, small_backbones):
    """What a fleet is trained from."""
    return digits, model(digits), recipe(), RATES, SEEDS


def test_finished_parts_are_not_trained_again(fleet, tmp_path, monkeypatch) -> None:
    once = train_fleet(*fleet, checkpoints=tmp_path)
    monkeypatch.setattr(Fleet, "step", lambda *_: pytest.fail("trained again"))
    again = train_fleet(*fleet, checkpoints=tmp_path)
    assert again.runs.equals(once.runs)
    assert again.curves.equals(once.curves)


def test_the_plan_of_the_first_start_is_kept(fleet, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(checkpoint.Folder, "finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        train_fleet(*fleet, checkpoints=tmp_path)
    monkeypatch.undo()
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(threads + 1)
        assert train_fleet(*fleet, checkpoints=tmp_path).threads == threads  # the order of sums depends on it
    finally:
        torch.set_num_threads(threads)


def killed_before_the_end(fleet, folder):
    """Leaves a plan and a checkpoint."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "EVERY", 0.0)
        patch.setattr(checkpoint.Folder, "finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            train_fleet(*fleet, checkpoints=folder)


DAMAGED = [  # a file of the first part, and its bytes
    ("part-0.safetensors", lambda content: content[:-100] + bytes([content[-100] ^ 1]) + content[-99:]),
    ("part-0.safetensors", lambda content: b"no checkpoint at all"),
    ("runs-0.parquet", lambda content: content[: len(content) // 2]),
    ("finished-0.json", lambda content: b"[]"),
    ("curves-0.parquet", lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:]),
]


@pytest.mark.parametrize(("name", "damage"), DAMAGED)
def test_a_damaged_file_is_put_aside_and_its_part_starts_over(name, damage, fleet, tmp_path) -> None:
    if name.startswith("part"):
        whole = train_fleet(*fleet)
        killed_before_the_end(fleet, tmp_path)
    else:
        whole = train_fleet(*fleet, checkpoints=tmp_path)
    file = tmp_path / name
    file.write_bytes(content := damage(file.read_bytes()))
    with pytest.warns(UserWarning, match=rf"{name} cannot be used.*{name}.damaged.*starts over"):
        again = train_fleet(*fleet, checkpoints=tmp_path)
    assert again.runs.equals(whole.runs)
    assert again.curves.equals(whole.curves)
    assert (tmp_path / f"{name}.damaged").read_bytes() == content


def test_what_changes_a_result_makes_another_fleet(fleet, digits, monkeypatch) -> None:
    others = {
        "dropout": (digits, model(digits), recipe(dropout=0.5)),
        "test examples": (digits, model(digits), recipe(test_examples=50)),
        "policy": (digits, model(digits, "all"), recipe()),
        "gain": (digits, model(digits, random_gain=2.0), recipe()),
        "reduced": (digits.reduced(0.5), model(digits), recipe()),
        "shuffled": (digits.shuffled(), model(digits), recipe()),
    }
    before = identify(*fleet[:3], CPU)
    for name, other in others.items():
        assert identify(*other, CPU) != before, name
    monkeypatch.setattr(checkpoint, "version", lambda name: "0.0")
    assert identify(*fleet[:3], CPU) != before, "version"


def test_other_weights_under_the_same_name_make_another_fleet(digits, small_backbones, tmp_path) -> None:
    template, file = fpt.models.build(digits, "small-gpt2"), tmp_path / "small-gpt2" / "model.safetensors"
    before = identify(digits, template, recipe(), CPU)
    save_file({name: 2 * tensor for name, tensor in load_file(file).items()}, file, {"format": "pt"})
    assert identify(digits, template, recipe(), CPU) != before


THEIRS, ANOTHER = {"of": "a fleet"}, {"of": "another fleet"}


def finished(path) -> Folder:
    """The folder of a fleet of one part that is finished: a plan, a sign and two tables."""
    folder = Folder(path)
    folder.write_plan(Plan(THEIRS, parts=[], compute_type="float32", threads=1, compiled=False))
    folder.finish(0, dict.fromkeys(["runs", "curves"], pd.DataFrame({"seed": [0]})))
    return folder


@pytest.mark.parametrize("removed", range(4))  # of the files that it leaves: signs, tables, and the plan
def test_a_fleet_that_is_killed_as_it_removes_those_of_another_starts_over(removed, tmp_path, monkeypatch) -> None:
    folder = finished(tmp_path)
    unlink, left = Path.unlink, [removed]

    def until(path, **how):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        unlink(path, **how)

    monkeypatch.setattr(Path, "unlink", until)
    with pytest.warns(UserWarning, match="made for another fleet"), pytest.raises(KeyboardInterrupt):
        folder.plan(ANOTHER)
    monkeypatch.undo()
    assert len(list(tmp_path.iterdir())) == 4 - removed
    with pytest.warns(UserWarning, match="made for another fleet"):
        assert folder.plan(ANOTHER) is None
    assert not list(tmp_path.iterdir())


def test_without_a_plan_nothing_counts_as_finished_and_tables_stay(tmp_path) -> None:
    folder = finished(tmp_path)
    (tmp_path / "plan.json").unlink()
    (tmp_path / "runs-2026.parquet").write_text("mine")
    with pytest.warns(UserWarning, match="plan is missing.*starts over"):
        assert folder.plan(ANOTHER) is None
    assert folder.tables(0) is None
    assert {path.name for path in tmp_path.iterdir()} == {"runs-0.parquet", "curves-0.parquet", "runs-2026.parquet"}
    assert (tmp_path / "runs-2026.parquet").read_text() == "mine"


def test_weights_that_are_to_be_kept_are_another_request(fleet, tmp_path) -> None:
    train_fleet(*fleet, checkpoints=tmp_path / "a")
    with pytest.warns(UserWarning, match="another fleet"):
        train_fleet(*fleet, checkpoints=tmp_path / "a", keep=(5, tmp_path))
    assert {path.name for path in tmp_path.glob("*.safetensors")} == {f"weights-{rate}.safetensors" for rate in RATES}


def test_a_checkpoint_with_other_tensors_is_not_used(fleet, tmp_path) -> None:
    state = Training(Fleet(*fleet, CPU)).state()
    Folder(tmp_path).save(0, {**state, "more": torch.zeros(1)})
    with pytest.warns(UserWarning, match="other tensors"):
        assert Folder(tmp_path).load(0, state) is None


def test_out_of_memory_after_a_checkpoint_the_halves_start_anew(fleet, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(checkpoint, "EVERY", 0.0)
    real = Fleet.step

    def step(fleet, number, *others):
        if len(fleet.seeds) > 1 and number > 6:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(fleet, number, *others)

    monkeypatch.setattr(Fleet, "step", step)
    result = train_fleet(*fleet, checkpoints=tmp_path)
    assert result.parts == [(2, 1), (2, 1)]
    assert result.runs["best_step"].notna().all()


def test_a_full_disk_is_an_error_that_says_so(fleet, tmp_path, monkeypatch) -> None:
    state, folder = Training(Fleet(*fleet, CPU)).state(), Folder(tmp_path / "checkpoint")
    folder.save(0, state)
    before = [path.read_bytes() for path in folder.path.iterdir()]

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(FptError, match=r"a checkpoint of [\d,]+ bytes cannot be written.*No space left"):
        folder.save(0, state)
    assert [path.read_bytes() for path in folder.path.iterdir()] == before  # the old one, and nothing half-written


def test_what_a_killed_process_left_half_written_is_removed(tmp_path) -> None:
    (tmp_path / ".part-0.safetensors.123.part").write_bytes(b"half")
    Folder(tmp_path)
    assert not list(tmp_path.iterdir())


def test_too_small_a_disk_is_refused_before_the_start(fleet, digits, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 1000))
    monkeypatch.setattr(Fleet, "step", lambda *_: pytest.fail("it began"))
    with pytest.raises(FptError, match=r"4 runs of 'small-gpt2' need \d\.\d MiB, 0\.0 MiB are free.*make room"):
        train_fleet(digits, model(digits, "all"), *fleet[2:], checkpoints=tmp_path / "sweep")
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "part-0.safetensors").write_bytes(bytes(10**6))
    checkpoint.check_disk(fleet[1], 1, tmp_path)  # checkpoints that are there count as room
    with pytest.raises(FptError, match="checkpoints of 1 runs of 'small-gpt2' and weights of 100 runs need"):
        checkpoint.check_disk(fleet[1], 1, tmp_path, 100)
    with pytest.raises(FptError, match="are free at"):
        checkpoint.check_disk(fleet[1], 1, tmp_path / "later" / "sweep")  # to be made on the disk of tmp_path


def test_writing_takes_a_small_share_of_the_time(tmp_path, monkeypatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    folder = Folder(tmp_path)
    assert not folder.due()
    clock[0] = checkpoint.EVERY
    assert folder.due()
    real = checkpoint.save_file

    def slow(*arguments):
        clock[0] += 3.0
        real(*arguments)

    monkeypatch.setattr(checkpoint, "save_file", slow)
    folder.save(0, {"a": torch.zeros(3)})
    assert folder.next - clock[0] == pytest.approx(3.0 / checkpoint.SHARE)


@pytest.mark.parametrize("damaged", [False, True])
def test_of_the_files_in_its_folder_a_fleet_removes_its_own_alone(damaged, fleet, tmp_path) -> None:
    place = tmp_path / "checkpoints"
    train_fleet(*fleet, checkpoints=place)
    (place / "part-0.safetensors.damaged").write_text("put aside")
    theirs = ["thesis.tex", "results-2026.parquet", "figures/part-1.png"]
    for name in theirs:
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text("mine")
    if damaged:
        (place / "plan.json").write_text('{"cut')
    with pytest.warns(UserWarning, match="starts over"):
        assert Folder(place).plan({"of": "another fleet"}) is None
    left = {path.relative_to(place).as_posix() for path in place.rglob("*")}
    assert left == {"figures", *theirs}
