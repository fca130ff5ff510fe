"""Processes that tests start: who is alive, what is waited for, and an end that comes whatever happens."""

import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psutil

PATIENCE = 600  # seconds: a busy machine is slow, not wrong; only a failure takes so long


def eventually(happens: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)


def command_line(process: psutil.Process) -> list[str]:
    """Nothing, if the process has ended meanwhile."""
    with suppress(psutil.NoSuchProcess):
        words: list[str] = process.cmdline()
        return words
    return []


def descendants(process: "subprocess.Popen[Any]") -> list[psutil.Process]:
    """Whoever it has started; nobody, if it has ended: its number may be another's by now."""
    if process.poll() is None:
        with suppress(psutil.NoSuchProcess):
            found: list[psutil.Process] = psutil.Process(process.pid).children(recursive=True)
            return found
    return []


def is_gone(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it ended between the two questions
        return True


def all_gone(processes: Iterable[psutil.Process]) -> bool:
    return all(map(is_gone, processes))


def kill(processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


@contextmanager
def ending(process: "subprocess.Popen[Any]") -> Iterator[None]:
    """At the end it is killed with whoever it has started, it is reaped, and its pipes are closed."""
    with process:
        try:
            yield
        finally:
            others = descendants(process)
            process.kill()
            kill(others)
