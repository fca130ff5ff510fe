"""What tests of the engines share: each engine under one face, drivers in processes of their own, and who is alive.

Run as a program, this file is such a driver.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from processes import all_gone, descendants, ending, eventually, kill
from stand_in import MODULES

from fpt.sweeps import SweepSpec
from fpt.sweeps.engines import Failure
from fpt.sweeps.engines import ray as ray_engine
from fpt.sweeps.engines.local import run_local
from fpt.sweeps.ledger import sweep_state
from fpt.sweeps.spec import resolve

STUDY = Path("runs/mine")
CORES = 3  # declared to Ray, which takes our word for it
LOCAL = "local"
WORKER = "fpt.sweeps.engines.local"  # the module, in its command line
ON_RAY = (pytest.mark.ray, pytest.mark.slow)
SHARED = pytest.param("ray", marks=ON_RAY)  # its nodes see the driver's workspace
APART = pytest.param("ray, apart", marks=ON_RAY)  # they do not


@dataclass(frozen=True)
class Engine:
    """An engine by name; the address is Ray's."""

    name: str
    address: str | None = None

    def run(self, sweeps: Sequence[SweepSpec], **options: Any) -> list[Failure]:
        if self.name == LOCAL:
            return run_local(sweeps, STUDY, **options)
        with pytest.MonkeyPatch.context() as patch:
            if "apart" in self.name:  # on one machine every node sees it: send them to another place
                job = ray_engine._job
                patch.setattr(ray_engine, "_job", lambda *about: job(*about) | {"workspace": "/nowhere"})
            return ray_engine.run_ray(sweeps, STUDY, address=self.address, **options)

    @contextmanager
    def start_driver(self, *sweeps: SweepSpec) -> Iterator["subprocess.Popen[bytes]"]:
        """The engine at work on the sweeps in another process. At the end it is killed, and nobody may survive it."""
        command = [sys.executable, __file__, self.name, self.address or ""]
        command += [json.dumps(sweep.resolved()) for sweep in sweeps]
        # A shell starts background jobs with SIGINT ignored, and children inherit it: Ctrl-C is to mean Ctrl-C here.
        driver = subprocess.Popen(command, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
        with ending(driver):
            try:
                yield driver
            finally:
                members = relatives(driver, sweeps)
                driver.kill()
                driver.wait()
                try:
                    eventually(lambda: all_gone(members))
                finally:
                    kill(members)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A Ray cluster of one node; `add_node` adds others, which are processes of this machine as well."""
    from ray.cluster_utils import Cluster

    # A folder of its own, whoever else runs tests here; of a short name, for sockets have at most 107 characters.
    with tempfile.TemporaryDirectory(prefix="ray-") as nodes, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_kill_child_processes_on_worker_exit_with_raylet_subreaper", "1")
        patch.setenv("PYTHONPATH", MODULES)
        patch.setenv("TMPDIR", nodes)
        # A killed node is noticed after 5 failed calls, every half second instead of every third.
        head = {"num_cpus": CORES, "include_dashboard": False, "_system_config": {"health_check_period_ms": 500}}
        started = Cluster(initialize_head=True, head_node_args=head)
        try:
            yield started
        finally:
            started.shutdown()


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Engine:
    """The engine named by the test's parameter."""
    if request.param == LOCAL:
        return Engine(LOCAL)
    return Engine(request.param, request.getfixturevalue("cluster").address)


def folder(sweep: SweepSpec) -> Path:
    return STUDY / sweep.folder_name


def kernel_pid(sweep: SweepSpec) -> int:
    """The stand-in's process: it leaves its number at home, for not every engine runs it in the folder."""
    return int((Path.home() / "stand-in" / sweep.folder_name / "pid").read_text())


def relatives(driver: "subprocess.Popen[bytes]", sweeps: Sequence[SweepSpec]) -> list[psutil.Process]:
    """Workers and kernels that are alive, and whoever else the driver started."""
    found = descendants(driver)
    for sweep in sweeps:
        with suppress(FileNotFoundError, psutil.NoSuchProcess):
            kernel = psutil.Process(kernel_pid(sweep))
            worker = kernel.parent()
            if worker and WORKER in worker.cmdline():  # else the kernel's number is another's by now
                found += [kernel, worker]
    return found


def family(driver: "subprocess.Popen[bytes]", sweeps: Sequence[SweepSpec]) -> list[psutil.Process]:
    """`relatives`, once every kernel is at work and `fpt status` can tell how far it is."""
    eventually(lambda: driver.poll() is not None or all(sweep_state(sweep, STUDY).progress for sweep in sweeps))
    assert driver.poll() is None
    members = relatives(driver, sweeps)
    assert {kernel_pid(sweep) for sweep in sweeps} <= {member.pid for member in members}
    return members


def scratch() -> set[Path]:
    """Workspaces of nodes apart."""
    return set(Path(os.environ["TMPDIR"]).glob(f"{ray_engine.TEMPORARY}*"))


if __name__ == "__main__":
    name, address, *texts = sys.argv[1:]
    sys.exit(len(Engine(name, address or None).run([resolve(json.loads(text)) for text in texts])))
