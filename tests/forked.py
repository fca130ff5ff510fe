"""Processes of their own for tests that kill them, forked from one that has imported torch already."""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess
from typing import Any

from processes import PATIENCE

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["fpt.training.loop"])


@contextmanager
def forked(function: Callable[..., object], *arguments: Any) -> Iterator[ForkServerProcess]:
    """A process that calls the function; killed at the end, if it has not ended."""
    process = PROCESSES.Process(target=function, args=arguments)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def exit_code(process: ForkServerProcess) -> int:
    """When the process has ended."""
    process.join(PATIENCE)
    assert process.exitcode is not None, "it did not end in time"
    return process.exitcode


def attempt(function: Callable[..., object], *arguments: Any) -> int:
    """The exit code of a process that calls the function."""
    with forked(function, *arguments) as process:
        return exit_code(process)
