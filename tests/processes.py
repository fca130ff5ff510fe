"""Processes that tests start: who is alive, what is waited for, and an end that comes whatever happens."""

import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
PATIENCE = 600  # seconds: a busy machine is slow, not wrong; only a failure takes so long


def python(code, folder=ROOT):
    """What `code` prints in a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


def eventually(happens):
    deadline = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)


def command_line(process):
    """Nothing, if the process has ended meanwhile."""
    with suppress(psutil.NoSuchProcess):
        words = process.cmdline()
        return words
    return []


def descendants(process):
    """Whoever it has started; nobody, if it has ended: its number may be another's by now."""
    if process.poll() is None:
        with suppress(psutil.NoSuchProcess):
            found = psutil.Process(process.pid).children(recursive=True)
            return found
    return []


def is_gone(process):
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it ended between the two questions
        return True


def all_gone(processes):
    return all(map(is_gone, processes))


def kill(processes):
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


@contextmanager
def ending(process):
    """At the end it is killed with whoever it has started, it is reaped, and its pipes are closed."""
    with process:
        try:
            yield
        finally:
            others = descendants(process)
            process.kill()
            kill(others)
