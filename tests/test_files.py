"""Files that appear whole, their checksums, and where the cache is."""

import hashlib
import os
import signal
from pathlib import Path

import pytest
from forked import attempt

from fpt import files
from fpt.errors import DataError, WeightsError
from fpt.files import cache_folder, known_sha256, remove_partial, replaced, sha256, write_atomically


def test_a_checksum_is_the_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert sha256(tmp_path / "a") == hashlib.sha256(b"abc").hexdigest()
    with pytest.raises(DataError, match=r"b: cannot be read \(No such file"):
        sha256(tmp_path / "b")
    with pytest.raises(WeightsError, match=r"b: cannot be read"):
        sha256(tmp_path / "b", WeightsError)


def test_a_known_checksum_is_read_once_for_a_state_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    monkeypatch.setattr(files, "sha256", lambda path: (read.append(path), sha256(path))[1])
    monkeypatch.chdir(tmp_path)
    path = Path("a")
    with pytest.raises(DataError, match="a: cannot be read"):
        known_sha256(path)
    path.write_bytes(b"abc")
    assert known_sha256(path) == known_sha256(path) == hashlib.sha256(b"abc").hexdigest()
    path.write_bytes(b"abcd")  # another size
    assert known_sha256(path) == hashlib.sha256(b"abcd").hexdigest()
    path.write_bytes(b"bcde")
    os.utime(path, (1, 1))  # another time
    assert known_sha256(path) == hashlib.sha256(b"bcde").hexdigest()
    assert len(read) == 4  # one of them of no file


def test_the_cache_is_where_the_user_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder() == Path.home() / ".cache" / "fpt"
    monkeypatch.setenv("XDG_CACHE_HOME", "~/elsewhere")
    assert cache_folder() == Path.home() / "elsewhere" / "fpt"


@pytest.mark.parametrize("same_number", [False, True])
def test_two_processes_that_write_one_file_do_not_disturb_each_other(
    same_number: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second begins and ends while the first is at work; whoever ends last has the file, whole. In containers that
    share a folder both may have the same number."""
    path = tmp_path / "a"
    if same_number:
        monkeypatch.setattr(os, "getpid", lambda: 7)
    with replaced(path) as partial, partial.open("wb", buffering=0) as file:
        file.write(b"first, ")
        assert attempt(write_atomically, path, b"second, whole") == 0
        file.write(b"whole")
        assert path.read_bytes() == b"second, whole"
    assert path.read_bytes() == b"first, whole"
    assert list(tmp_path.iterdir()) == [path]


def killed(path: Path) -> None:
    with replaced(path) as partial:
        partial.write_bytes(b"half")
        os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_killed_process_left_is_no_file_and_can_be_removed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_atomically(path, b"old")
    assert attempt(killed, path) == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2
    remove_partial(tmp_path)
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_atomically(path, b"old")
    with pytest.raises(FileNotFoundError), replaced(path):
        (tmp_path / "missing").read_bytes()
    with pytest.raises(TypeError):
        write_atomically(path, "no bytes")  # type: ignore[arg-type]
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"old"]
