"""What the machine refuses or lacks: full disks, memory, locks, drivers, networks. Each has an end and a name."""

import errno
import fcntl
import io
import os
import resource
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import refusal
import small_studies
import synthetic
import torch
from forked import attempt

from fpt import files
from fpt.errors import DataError, FptError, WeightsError
from fpt.models import backbone, weights
from fpt.sweeps import engines, ledger, load_study
from fpt.sweeps.engines import local
from fpt.tasks import downloads
from fpt.training import memory


def full(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study whose sweep is finished."""
    folder = small_studies.workspace(tmp_path)
    monkeypatch.chdir(tmp_path)
    for spec in load_study(folder).sweeps:
        synthetic.write(spec, folder / spec.folder_name)
        (folder / spec.folder_name / ledger.NOTEBOOK).write_text("{}")
    return folder


def test_a_full_disk_keeps_what_was_published(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal.CliRunner().invoke(refusal.app, ["publish", "mine"])
    published = {path: path.read_bytes() for path in (study / "published").rglob("*") if path.is_file()}
    assert published
    monkeypatch.setattr(shutil, "copyfile", full)
    refusal.refused("publish", "mine", named=("published", "No space left on device"))
    assert {path: path.read_bytes() for path in (study / "published").rglob("*") if path.is_file()} == published
    assert not list((study / "published").glob(".*"))


def test_whatever_the_system_refuses_is_a_message(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fpt.cli.study.status_table", full)
    refusal.refused("status", "mine", named=("No space left on device",))


def test_a_worker_that_could_write_nothing_says_that_the_disk_is_full(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (spec,) = load_study(study).sweeps
    attempt: Any = type("Ended", (), {"spec": spec, "folder": study, "number": 1})()
    failure: Any = engines.settle(attempt, 1)
    assert failure.reason.endswith("worker.log is empty")
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    failure = engines.settle(attempt, 1)
    assert "No space left on device" in failure.reason
    assert "goes on" in failure.reason


# --- memory


def limited() -> None:
    """Asks for more than the process may have."""
    free = memory.free_bytes(torch.device("cpu"))
    taken = psutil.Process().memory_info().vms
    resource.setrlimit(resource.RLIMIT_AS, (taken + 10**9, resource.RLIM_INFINITY))
    assert memory.free_bytes(torch.device("cpu")) <= 10**9 < free
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2 * 10**9)
    assert memory.ran_out(caught.value)


def test_the_limit_of_a_process_counts_and_torchs_error_is_known() -> None:
    assert attempt(limited) == 0


# --- locks, drivers, home


def test_a_file_system_without_locks_is_refused_before_the_start(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: Any) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    ledger.check_locks(study)
    monkeypatch.setattr(fcntl, "flock", nothing)
    with pytest.raises(FptError, match="no locks"):
        ledger.check_locks(study)
    shutil.rmtree(next(study.glob("digits*")))
    refusal.refused("run", "mine", named=("no locks", "runs/mine"))


def test_a_driver_that_hangs_costs_seconds_and_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nexec sleep 100\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(local, "DRIVER_WAIT", 0.2)
    with pytest.warns(UserWarning, match="nvidia-smi"):
        assert local._devices() == []
    assert os.environ.pop("CUDA_VISIBLE_DEVICES") == ""


def test_a_user_without_a_home_has_a_temporary_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as of a user whom the system does not know
    assert files.home().is_relative_to(tempfile.gettempdir())
    assert files.cache_folder().is_absolute()
    assert "~" not in str(files.cache_folder())


# --- networks


class Slow(io.BytesIO):
    """A server that sends a byte at a time."""

    def read1(self, size: int | None = -1) -> bytes:
        return super().read1(1)


def test_a_mirror_that_trickles_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock: Iterator[int] = iter(range(0, 10_000, 3))
    monkeypatch.setattr(downloads.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(downloads, "urlopen", lambda *_, **__: Slow(b"x" * 1000))
    with pytest.raises(DataError, match="bytes a second"):
        downloads.fetch(tmp_path / "file", "0" * 32, ["http://slow/"], "advice")
    assert next(clock) < 60


@pytest.mark.parametrize("endpoint", ["hf-mirror.com", "file:///x"])
def test_an_endpoint_that_is_no_address(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr("huggingface_hub.hf_hub_url", lambda owner, name, revision: f"{endpoint}/{owner}/{name}")
    with pytest.raises(WeightsError, match="HF_ENDPOINT"):
        weights.find(backbone("gpt2"))


def test_a_proxy_for_which_a_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def needs_a_package(*_: Any, **__: Any) -> str:
        raise ImportError("Using SOCKS proxy, but the 'socksio' package is not installed")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", needs_a_package)
    with pytest.raises(WeightsError, match="socksio"):
        backbone("hub:some/model@" + 40 * "0")
    with pytest.raises(WeightsError, match="socksio"):
        weights.download(backbone("gpt2"))
