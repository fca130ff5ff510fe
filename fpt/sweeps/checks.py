"""What would stop a sweep of a study later is refused before any is trained."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpt import tasks
from fpt.errors import DataError, FptError, SpecError, WeightsError
from fpt.files import check_writable, read_json
from fpt.models import weights
from fpt.sweeps import ledger
from fpt.sweeps.fields import canonical
from fpt.sweeps.record import RESULT
from fpt.sweeps.run import prepare
from fpt.sweeps.spec import SweepSpec, fields_of
from fpt.sweeps.words import title, with_options
from fpt.training.recipe import KEEP_WEIGHTS

if TYPE_CHECKING:
    from fpt.tasks.task import Task


def check_all(specs: Sequence[SweepSpec], study: Path) -> None:
    """Refuse before any training what would stop a sweep of the list later; downloads data that are missing.

    Raises SpecError, DataError, WeightsError, or FptError if the study's folder cannot be written.
    """
    start = {spec.means.backbone for spec in specs if spec.init != "random" and not spec.pretrained_by}
    for backbone in sorted(start, key=lambda backbone: backbone.name):
        weights.find(backbone)
    check_writable(study)
    ledger.check_locks(study)
    folders, done = {spec.folder_name: spec for spec in specs}, _finished(study)
    for spec in {_checked_as(spec): spec for spec in specs}.values():
        try:
            alike = _without_weights_to_come(spec, folders.get(spec.pretrained_by or ""), study)
            prepared = prepare(alike, folder=study / spec.folder_name, study=study)
            check_same_data(spec, prepared.task, done)
        except FptError as error:
            raise type(error)(f"{error} (sweep {spec.folder_name} of {study})") from error


def _checked_as(spec: SweepSpec) -> tuple[str, int]:
    """Equal for sweeps of which one need be checked: what is trained is the same, and the room that it takes."""
    return spec.without("learning_rates", "seeds", *fields_of("budget")), spec.runs


def _without_weights_to_come(spec: SweepSpec, keeper: SweepSpec | None, study: Path) -> SweepSpec:
    """The sweep as it can be prepared now: weights that its `keeper` is still to keep are random ones of the same
    shapes. Refuses (SpecError, WeightsError) weights that will not be there."""
    if spec.pretrained_by is None:
        return spec
    if keeper:
        check_keeper(spec, keeper)
    folder = study / spec.pretrained_by
    check_still_kept(spec, folder)
    if (folder / ledger.KEPT_WEIGHTS).is_file():
        return spec
    if keeper is None or KEEP_WEIGHTS not in keeper.measures or keeper.pretrained_by:
        raise SpecError(
            f"pretrained_by = {spec.pretrained_by!r}: there are no such weights, and it is no sweep still to be "
            "trained that will keep its own; name one of this study with keep_as that is not pretrained by another"
        )
    return spec.changed(pretrained_by=None, init="random")


def check_keeper(spec: SweepSpec, keeper: SweepSpec) -> None:
    """Refuse (SpecError) a sweep whose pretrained weights another backbone, or another form of it, will keep."""
    its, kept = (
        with_options(each.backbone, canonical(each.backbone_options, each.means.backbone.options))
        for each in (spec, keeper)
    )
    if its != kept:
        raise SpecError(
            f"{title(spec)}: it starts from the weights that {keeper.folder_name} keeps, which are of {kept}, "
            f"and its own backbone is {its}; they must be the same"
        )


def check_still_kept(spec: SweepSpec, folder: Path) -> None:
    """Refuse (WeightsError) a sweep still to be trained that starts from weights which are missing, though the sweep
    in `folder`, which keeps them, is done. One whose runs all diverged has kept none."""
    file, selected = folder / ledger.KEPT_WEIGHTS, (read_json(folder / RESULT) or {}).get("selected_rate")
    if (
        selected is not None
        and not file.is_file()
        and ledger.read_result(folder.parent / spec.folder_name, spec) is None
    ):
        raise WeightsError(
            f"{file} is missing, though its sweep is done, and {title(spec)} starts from it; put the file back, or "
            f"remove {folder} and run the study again: the sweep is then trained anew"
        )


def check_same_data(spec: SweepSpec, task: "Task", done: Mapping[Path, dict[str, Any]]) -> None:
    """Refuse (DataError) other data than those of a finished sweep of the study on the same task: their arms are not
    compared. Of tasks with files in the data folder; the content of your own data is part of a sweep's hash."""
    if "task" in spec.means.contents or not spec.means.task.files:
        return
    wanted = {name: value for name, value in spec.resolved().items() if name in ("task", "variant", "task_options")}
    for folder, found in done.items():
        trained_on, before = found.get("data_checksum"), found.get("spec", {})
        if trained_on != task.checksum and wanted == {name: before.get(name) for name in wanted}:
            raise DataError(
                f"{folder} was trained on other data of task {spec.task!r} (checksum {trained_on}) than those in "
                f"{tasks.data_folder()} (checksum {task.checksum}). Set FPT_DATA to the folder of the former, or "
                f"remove {folder} and run its sweep again"
            )


def _finished(study: Path) -> dict[Path, dict[str, Any]]:
    """The folders of the finished sweeps of a study, with what result.json records."""
    return {path.parent: read_json(path) or {} for path in sorted(study.glob(f"*/{RESULT}"))}
