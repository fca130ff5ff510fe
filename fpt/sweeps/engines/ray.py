"""The Ray engine: the same workers, started by the tasks of a Ray cluster, one GPU or a share of cores each.

A task does not raise and Ray does not retry it: it sends news (see `sweep_on_node`), and the driver settles each
worker's end by the rules of all engines. The files of a sweep always come back through Ray, so nothing needs to be
shared between machines. Where a node does see the driver's workspace, though, its worker writes there, as a local
one would: what an attempt leaves behind, such as checkpoints, is there for the next one on any node.
"""

import logging
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fpt
from fpt import models, papers, tasks
from fpt.errors import FptError, SpecError
from fpt.files import STUDY_FILE, write_atomically
from fpt.models import hub
from fpt.models.arms import ADAPTER_FILES
from fpt.sweeps import engines, ledger, record
from fpt.sweeps.engines import Attempt, Failure, Watch, local
from fpt.sweeps.record import RESULT
from fpt.sweeps.spec import SweepSpec, resolve

TEMPORARY = "fpt-ray-"  # how the name of a workspace on a node begins, in its folder for temporary files
# What comes back, in the order of writing: the last one says that all are there.
TABLES = tuple(f"{name}.parquet" for name in record.TABLES)
FILES = (engines.LOG, engines.FAILED, *TABLES, ledger.KEPT_WEIGHTS, *ADAPTER_FILES, ledger.NOTEBOOK, RESULT)
News = dict[str, Any]


@dataclass(eq=False)
class RayAttempt(Attempt):
    """An attempt as the driver sees it."""

    ray: Any
    news: Any  # Ray's generator of what `sweep_on_node` yields
    started: bool = field(default=False, kw_only=True)
    away: ExitStack = field(default_factory=ExitStack)  # the lock, held here for a worker in another workspace

    def poll(self) -> int | None:
        """Act on the next piece of news, if there is one."""
        if not self.ray.wait([self.news], timeout=0)[0]:
            return None
        try:
            news = self.ray.get(next(self.news))
        except self.ray.exceptions.RayTaskError as error:  # the task itself raised: no worker came to start
            news = {"code": engines.OWN_ERROR, "files": {engines.LOG: str(error).encode()}}
        except (self.ray.exceptions.RayError, StopIteration) as error:  # its process or node was killed
            news = {"code": engines.LOST, "files": {engines.LOG: str(error).encode()}}
        if "away" in news:
            self.started = True
            if news["away"]:
                self._hold()
        for name, content in news.get("files", {}).items():
            self.folder.mkdir(exist_ok=True)  # not before: a sweep that waits for its turn has none
            write_atomically(self.folder / name, content)
        code: int | None = news.get("code")
        if code is not None:
            self.hang_up()
        return code

    def _hold(self) -> None:
        """From here on `fpt status` says that the sweep runs, and nobody else may write its folder."""
        self.away.enter_context(ledger.hold(self.folder / ledger.LOCK, self.spec))
        self.away.callback((self.folder / ledger.PROGRESS).unlink, missing_ok=True)

    def hang_up(self) -> None:
        """Give the lock back. Task and worker end by themselves, or with the connection to the cluster."""
        self.away.close()


def run_ray(
    specs: Sequence[SweepSpec],
    study: Path,
    threads: int | None = None,
    watch: Watch | None = None,
    address: str | None = None,
) -> list[Failure]:
    """`run_local` on the Ray cluster at `address`; None: $RAY_ADDRESS, one that runs here, else one of its own.

    Raises also FptError if there is no Ray or no cluster, and SpecError if none of its nodes has the cores.
    """
    specs = engines.to_do(specs, study)
    with _cluster(address) as ray, tempfile.NamedTemporaryFile(prefix=".ray-", dir=study) as sign:
        share = _share(ray, threads)
        task = ray.remote(sweep_on_node).options(max_retries=0, **share)
        # Weights that sweeps start from go into the cluster once; a job has a reference to them.
        kept = {path: ray.put(path.read_bytes()) for spec in specs for path in _kept(spec, study)}
        about = {"sign": Path(sign.name).name, "share": share, "sweeps": len(specs)}

        def submit(spec: SweepSpec, number: int) -> RayAttempt:  # Ray decides when and where it starts
            job = _job(spec, study) | about | {"kept": {path.as_posix(): kept[path] for path in _kept(spec, study)}}
            return RayAttempt(spec, study / spec.folder_name, number, ray, task.remote(job))

        return engines.schedule(submit, specs, watch)


@contextmanager
def _cluster(address: str | None) -> Iterator[Any]:
    """Ray, connected; its end also ends the tasks of this driver and their workers, within seconds."""
    # For a cluster that is started here. Raylets then also kill what outlives a killed task.
    os.environ.setdefault("RAY_kill_child_processes_on_worker_exit_with_raylet_subreaper", "1")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise FptError("--engine ray needs Ray, which is not installed: pip install -e '.[ray]'") from None
    address = address or os.environ.get("RAY_ADDRESS")
    if address and "://" in address:
        raise SpecError(f"address {address}: HOST:PORT of a cluster this machine is a node of, without a protocol")
    try:
        if address and ":" in address:  # Ray itself would try for minutes
            host, _, port = address.rpartition(":")
            socket.create_connection((host.strip("[]"), port), timeout=10).close()
        ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError) as error:
        raise FptError(f"no Ray cluster at {address or 'this machine'} (--address or RAY_ADDRESS): {error}") from error
    _heed_children()
    try:
        yield ray
    finally:
        ray.shutdown()


def _heed_children() -> None:
    """With a raylet as subreaper Ray ignores SIGCHLD, and exit codes get lost: here, and in processes started here."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _share(ray: Any, threads: int | None) -> dict[str, int]:
    """What a sweep asks for: a GPU if the cluster has any, and `threads` cores; some node must be able to give it."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    share = {"num_cpus": threads or 1, "num_gpus": int(any(node.get("GPU", 0) >= 1 for node in nodes))}
    has = [(int(node.get("CPU", 0)), int(node.get("GPU", 0))) for node in nodes]
    if not any(cpus >= share["num_cpus"] and gpus >= share["num_gpus"] for cpus, gpus in has):
        listed = ", ".join(f"{cpus} cores and {gpus} GPUs" for cpus, gpus in has)
        raise SpecError(f"--threads {share['num_cpus']}: no node of the Ray cluster can give that; they have {listed}")
    return share


def _kept(spec: SweepSpec, study: Path) -> set[Path]:
    """The file of the weights that a sweep starts from, where another sweep kept them."""
    return {study / spec.pretrained_by / ledger.KEPT_WEIGHTS} if spec.pretrained_by else set()


def _job(spec: SweepSpec, study: Path) -> News:
    """All that a task needs to know, and the small files it needs to have; plain data."""
    folder = study / spec.folder_name
    (folder / engines.FAILED).unlink(missing_ok=True)
    done = _contents(folder, FILES) if ledger.read_result(folder, spec) else {}
    # the study says what it asks, of papers
    needed = [path for path in (engines.SOURCE, study / STUDY_FILE, *Path(papers.OWN).glob("*.yaml")) if path.is_file()]
    files = {path.as_posix(): path.read_bytes() for path in needed}
    files |= {(folder / name).as_posix(): content for name, content in done.items()}
    job = {"parameters": spec.parameters(), "hash": spec.hash, "version": fpt.__version__}
    return job | {"workspace": str(Path.cwd()), "study": study.as_posix(), "files": files}


def sweep_on_node(job: News) -> Iterator[News]:
    """The task: one sweep in a fresh worker, in the driver's workspace if this node sees it, else in a temporary one.

    Yields first {"away": whether it is a temporary one}, then, if so, {"files": its progress} whenever that changes,
    and at last {"code": the worker's exit code, "files": by name}.
    """
    root, study = Path(job["workspace"]), Path(job["study"])
    away = not (root / study / job["sign"]).is_file()
    if away and (lacking := _lacking(job["parameters"])):
        raise SpecError(
            f"{lacking} is in the driver's workspace {root}, which this node does not see; put the workspace where all "
            "nodes see it under this path, or use --engine local"
        )
    with ExitStack() as stack:
        if not away:
            stack.enter_context(chdir(root))  # the study's own data and models are named from there
        spec = resolve(job["parameters"])
        if spec.hash != job["hash"]:
            version = f"a node has fpt {fpt.__version__}, the driver {job['version']}"
            raise SpecError(f"{version}, and they differ on this sweep")
        _heed_children()
        if away:
            root = stack.enter_context(_temporary_workspace(spec))
            for name, content in (job["files"] | {name: _got(each) for name, each in job["kept"].items()}).items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_bytes(content)
        worker = local.start(spec, study, job["share"]["num_cpus"], [""], beside=_beside(job), root=root)
        stack.callback(worker.stop)
        yield {"away": away}
        sent = None
        while worker.process.poll() is None:
            progress = _contents(worker.folder, (ledger.PROGRESS,)) if away else None
            if progress and progress != sent:
                yield {"files": progress}
                sent = progress
            time.sleep(engines.POLL)
        end = {"code": worker.process.returncode, "files": _contents(worker.folder, FILES)}
    yield end  # last of all: once the driver has it, nothing keeps this process from being shut down


def _got(reference: Any) -> bytes:
    """What the driver put into the cluster, read by the node that asks."""
    import ray

    content: bytes = ray.get(reference)
    return content


def _lacking(parameters: Mapping[str, Any]) -> str:
    """What lies in the workspace: a task or a backbone that is a path, or a task or an arm of your own; empty where
    nothing does."""
    backbone = parameters["backbone"]
    try:
        models.arm(parameters["arm"])
        tasks.entry(parameters["task"])
    except SpecError:
        return f"{parameters['task']}, {parameters['arm']}"
    if tasks.own_kind(parameters["task"]):
        return str(parameters["task"])
    return str(backbone) if hub.path_of(backbone) and not backbone.startswith(f"{hub.HUB}~") else ""


def _beside(job: News) -> int:
    """How many workers share the memory of this node: as many as its resources admit, at most one for each sweep."""
    import ray

    here = ray.get_runtime_context().get_node_id()
    (has,) = (node["Resources"] for node in ray.nodes() if node["NodeID"] == here)
    kinds = (("CPU", "num_cpus"), ("GPU", "num_gpus"))
    admitted = [int(has.get(kind, 0) // job["share"][name]) for kind, name in kinds if job["share"][name]]
    sweeps: int = job["sweeps"]
    return max(1, min(*admitted, sweeps))


@contextmanager
def _temporary_workspace(spec: SweepSpec) -> Iterator[Path]:
    """A folder on this node, gone at the end; those of killed tasks go when the next one comes."""
    for old in Path(tempfile.gettempdir()).glob(f"{TEMPORARY}*"):
        with suppress(FileNotFoundError):  # another task may be at it as well
            if not ledger.is_held(old / ledger.LOCK) and time.time() - old.stat().st_mtime > 60:  # or it is just made
                shutil.rmtree(old, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=TEMPORARY) as name, ledger.hold(Path(name) / ledger.LOCK, spec):
        yield Path(name)


def _contents(folder: Path, names: Sequence[str]) -> dict[str, bytes]:
    """What is there of the named files; the worker may remove one at any moment."""
    found = {}
    for name in names:
        with suppress(FileNotFoundError):
            found[name] = (folder / name).read_bytes()
    return found
