"""What there is, for `fpt list`: ours and what is found in the workspace, by name, without building or training it."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from fpt import models, papers, tasks
from fpt.cli.doctor import weights
from fpt.documents import read_model
from fpt.errors import SpecError
from fpt.files import STUDY_FILE
from fpt.papers.schema import Claim
from fpt.sweeps.record import PUBLISHED, RESULT
from fpt.sweeps.study_file import StudyFile

Row = tuple[str | int, ...]

COLUMNS = {
    "studies": ("study", "about", "done", "published"),
    "tasks": ("task", "title", "variants", "options"),
    "models": ("model", "title", "layers", "weights"),
    "arms": ("arm", "letters", "short", "starts from", "trains"),
    "claims": ("claim", "paper", "decided by", "says"),
}


def _studies() -> Iterator[Row]:
    for path in sorted(Path("runs").glob(f"*/{STUDY_FILE}")):
        folder = path.parent
        try:
            about = read_model(StudyFile, path, path.as_posix())[0].about
        except SpecError as error:
            about = str(error)
        done, published = (len(list(folder.glob(f"{inside}*/{RESULT}"))) for inside in ("", f"{PUBLISHED}/"))
        yield folder.name, about, done, published


def _tasks() -> Iterator[Row]:
    for name, entry in tasks.known().items():
        options = ", ".join(f"{option} {value}" for option, value in entry.options.items())
        yield name, entry.title, ", ".join(entry.variants), options


def _models() -> Iterator[Row]:
    for name, entry in models.BACKBONES.items():
        yield name, entry.title, entry.layers, weights(models.backbone(name))[0]


def _arms() -> Iterator[Row]:
    short = {name: each for each, name in models.SHORT.items()}
    for name, entry in models.arms.known().items():
        yield name, entry.letters, short.get(name, ""), entry.init, ", ".join(entry.groups)


def _claims() -> Iterator[Row]:
    for name, claim in papers.claims().items():
        yield name, claim.paper, _decided_by(claim), claim.says


def _decided_by(claim: Claim) -> str:
    """What decides it: the kinds of its rules, or why no run does."""
    if claim.rule:
        return ", ".join(dict.fromkeys(rule.kind for rule in claim.rule))
    return "printed numbers" if claim.printed else "arithmetic" if claim.arithmetic else "reading"


# COLUMNS of everything of a kind; of studies those in runs/ below the working directory. Each raises SpecError for a
# paper, or a task of your own, that cannot be read.
ROWS: Mapping[str, Callable[[], Iterator[Row]]] = {
    "studies": _studies,
    "tasks": _tasks,
    "models": _models,
    "arms": _arms,
    "claims": _claims,
}
