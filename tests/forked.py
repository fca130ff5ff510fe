"""Processes of their own for tests that kill them, forked from one that has imported torch already."""

import multiprocessing
from collections.abc import Callable
from typing import Any

from processes import PATIENCE

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["fpt.training.loop"])


def attempt(function: Callable[..., object], *arguments: Any) -> int:
    """The exit code of a process that calls the function; killed, if it does not end."""
    process = PROCESSES.Process(target=function, args=arguments)
    process.start()
    try:
        process.join(PATIENCE)
        assert process.exitcode is not None, "it did not end in time"
        return process.exitcode
    finally:
        process.kill()
        process.join()
