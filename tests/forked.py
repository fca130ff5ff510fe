"""Processes of their own for tests that kill them, forked from one that has imported torch already."""

import multiprocessing

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["fpt.training.loop"])
