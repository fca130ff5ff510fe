"""What is learned: a task is data and how it becomes tokens. A new task is one entry of TASKS and one loader.

This module stays free of torch, so that plans and spec hashes need none.
"""

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from fpt.errors import DataError, SpecError, check_known, check_options
from fpt.files import cache_folder, from_workspace, known_sha256, state_of, workspace_around

if TYPE_CHECKING:
    from fpt.tasks.task import Task
    from fpt.tasks.texts import Reader

CODE = "FPT_TASKS"  # the environment variable that names a folder of tasks of your own
NPZ, FOLDER, CSV = "npz:PATH", "folder:PATH", "csv:PATH"
OWN = {"npz": NPZ, "folder": FOLDER, "csv": CSV}  # your own data, by what stands before the colon
TOKENIZERS = BY_BYTES, BY_MODEL = "bytes", "own"  # what makes symbols of texts
# What a backbone's own table of symbols does in the place of new layers: it reads, or reads and predicts the next one
OwnTable = Literal["", "reads", "predicts"]
Pooling = Literal["last", "mean"]  # what of a model's last layer is read: its last positions, or the mean over all
LAST: Final = "last"
MEAN: Final = "mean"
READS: Final = "reads"
PREDICTS: Final = "predicts"
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
MOST = 1_000_000  # a whole-number option; more would fill the memory before anything is trained
BRIGHTEST, BRIGHTEST_16 = 255, 65_535  # pixels of 8 and of 16 bits
# Folders in which programs keep copies, beside those that begin with a dot or with @
COPIES = ("__macosx", "#recycle", "#snapshot", "$recycle.bin", "system volume information", "lost+found")
LONGEST_SIDE = 1024  # pixels to which the images of a folder are resized; larger ones fill the memory while they load
BYTES = 256  # symbols of text
MOST_BITS = 100_000  # of one example of a bit task
DIGITS = 1797  # images of scikit-learn
MNIST_RAW = tuple(
    f"MNIST/raw/{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")
)
MNIST = (("mnist.npz",), MNIST_RAW)
CIFAR10 = (("cifar10.npz",), ("cifar-10-batches-py",), ("cifar-10-python.tar.gz",))
LRA_LISTOPS = tuple(f"listops/basic_{part}.tsv" for part in ("train", "val", "test"))
LRA_ADVICE = (
    "Only the variants lra and lra-released read Long Range Arena's own lists; the others are generated at first use. "
    "They are not downloaded here, since no checksum of them is known: put basic_train.tsv, basic_val.tsv and "
    "basic_test.tsv (the folder listops-1000 of lra_release.gz, github.com/google-research/long-range-arena) into the "
    "folder listops of the data folder; FPT_DATA names another data folder."
)
HOMOLOGY = tuple(f"remote_homology/remote_homology_{part}.json" for part in ("train", "valid", "test_fold_holdout"))
HOMOLOGY_ADVICE = (
    "TAPE's raw data are not downloaded here, since no checksum of them is known: get "
    'http://s3.amazonaws.com/songlabdata/proteindata/data_raw_pytorch/remote_homology.tar.gz ("Remote Homology" under '
    '"Raw Data" of github.com/songlab-cal/tape) and unpack it into the data folder, where it makes the folder '
    "remote_homology; FPT_DATA names another data folder."
)
BANKING77 = ("intents/banking77_train.csv", "intents/banking77_test.csv")
CLINC150 = ("intents/clinc150_full.json",)
INTENTS_ADVICE = (
    "{}; downloaded at first use. Without a network, get {} and put {} into the folder intents of the data folder; "
    "FPT_DATA names another data folder."
)
BANKING77_ADVICE = INTENTS_ADVICE.format(
    "CC BY 4.0",
    "train.csv and test.csv of github.com/PolyAI-LDN/task-specific-datasets, commit 57ec275d (folder banking_data),",
    "them as banking77_train.csv and banking77_test.csv",
)
CLINC150_ADVICE = INTENTS_ADVICE.format(
    "CC BY 3.0", "data/data_full.json of github.com/clinc/oos-eval, commit 828f8093,", "it as clinc150_full.json"
)


@dataclass(frozen=True)
class Entry:
    """A task: its loader ("module:function" of this package, a full module path, or the function itself),
    called as `loader(data_dir, variant, **options) -> Task`, and what a study may choose (first variant
    and values: defaults)."""

    loader: str | Callable[..., "Task"]
    title: str
    variants: tuple[str, ...] = ("paper",)
    options: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[tuple[str, ...], ...] = ()  # in the data folder: sets of files, each of which is enough
    advice: str = ""  # how to get files that are not downloaded on first use
    classes: int | None = None  # of one prediction; None: known from the data alone
    # of an example, by variant, or a function of the options: costs are estimated by them. In the mean, where batches
    # are cut to their length
    tokens: tuple[int, ...] | Callable[..., int] = ()
    collection: int | None = None  # examples of which every seed tests another part; None: a test set, or new examples
    margin: float = 1.0  # points of accuracy within which two arms are comparable
    own_table: OwnTable = ""  # whatever the options

    def found_in(self, folder: Path) -> tuple[str, ...]:
        """The first of its sets of files that lies whole in a data folder; empty where none does."""
        return next((names for names in self.files if all((folder / name).exists() for name in names)), ())

    def length(self, variant: str, options: Mapping[str, Any]) -> int | None:
        """Tokens of an example; None: known from the data alone."""
        if not isinstance(self.tokens, tuple):
            return self.tokens(**{**self.options, **options})
        return dict(zip(self.variants, self.tokens, strict=False)).get(variant)


# labels a class, 0: all
INTENTS = {"labels": 0, "tokenizer": BY_BYTES, "tokens": 64, "bytes": 128, "pooling": LAST}


def _filled(labels: int, tokenizer: str, tokens: int, bytes: int, pooling: Pooling) -> int:
    """Tokens of a text of INTENTS in the mean over batches of 32: 15 or 20 of MiniLM's own, 44 or 60 bytes."""
    return min(tokens, 20) if tokenizer == BY_MODEL else min(bytes, 60)


BOTH = ("paper", "released")  # as the paper says, and as its released code does

TASKS: dict[str, Entry] = {
    "digits": Entry("images:digits", "Handwritten digits, 8x8", classes=10, tokens=(16,), collection=DIGITS),
    "digits-lra": Entry(
        "images:digits_lra", "Handwritten digits, pixel by pixel", classes=10, tokens=(64,), collection=DIGITS
    ),
    "bit-xor": Entry(
        "bits:bit_xor", "Bit XOR", options={"strings": 2, "length": 5}, classes=2,
        tokens=lambda strings, length: strings * length,
    ),
    "bit-memory": Entry(
        "bits:bit_memory", "Bit Memory", options={"strings": 5, "length": 1000, "patch": 50}, classes=2,
        tokens=lambda strings, length, patch: (strings + 1) * length // patch,
    ),
    "listops": Entry(
        "listops:listops", "ListOps", (*BOTH, "lra", "lra-released"), {"train": 96_000, "heldout": 2_000},
        (LRA_LISTOPS,), LRA_ADVICE, classes=10, tokens=(2000, 512, 2000, 512), margin=2.0,
    ),
    "listops-short": Entry(
        "listops:short", "ListOps, short", options={"train": 20_000, "heldout": 2_000}, classes=10, tokens=(64,),
        margin=2.0,
    ),
    "mnist": Entry("images:mnist", "MNIST", BOTH, files=MNIST, classes=10, tokens=(64, 49)),
    "cifar10": Entry(
        "images:cifar10", "CIFAR-10", (*BOTH, "augmented", "gray16", "gray16-released"), files=CIFAR10, classes=10,
        tokens=(64,) * 5,
    ),
    "cifar10-lra": Entry(
        "images:cifar10_lra", "CIFAR-10 LRA", (*BOTH, "augmented"), files=CIFAR10, classes=10, tokens=(1024,) * 3
    ),
    "homology": Entry(
        "homology:homology", "Remote homology", BOTH, files=(HOMOLOGY,), advice=HOMOLOGY_ADVICE, classes=1195,
        tokens=(1024, 1024),
    ),
    "text": Entry("text:text", "Text: the next byte of programs", classes=BYTES, tokens=(64,), own_table="predicts"),
    "banking77": Entry(
        "intents:banking77", "BANKING77", options=INTENTS, files=(BANKING77,), advice=BANKING77_ADVICE, classes=77,
        tokens=_filled,
    ),
    "clinc150": Entry(
        "intents:clinc150", "CLINC150", options=INTENTS, files=(CLINC150,), advice=CLINC150_ADVICE, classes=150,
        tokens=_filled,
    ),
    NPZ: Entry("images:npz", "Your own data", options={"patch": 4, "padded": False, "white": BRIGHTEST}),
    # white 0: what the bits of a file allow
    FOLDER: Entry("folders:folder", "Your own images", options={"size": 32, "patch": 4, "white": 0}),
    CSV: Entry(
        "own:table", "Your own table",
        options={
            "target": "", "patch": 1, "bytes": 128, "tokenizer": BY_BYTES, "tokens": 128, "pooling": LAST,
        },
    ),
}  # fmt: skip


def entry(name: str, source: str = "") -> Entry:
    """The entry of task `name`; `npz:` and any path share one, as `folder:` and `csv:` do. Raises SpecError for an
    unknown name."""
    key, every = OWN.get(own_kind(name), name), known()
    if key not in list(every) and not os.environ.get(CODE):
        _refuse_unasked(key)
    check_known("task", key, every, source)
    return every[key]


def known() -> dict[str, Entry]:
    """Every task: ours, and those of your own, a Python file each, in the folder that FPT_TASKS names. Nobody's code is
    executed where it does not name one. Raises SpecError for a file without a task."""
    if not os.environ.get(CODE):
        return TASKS
    files = sorted(from_workspace(os.environ[CODE]).glob("[!_]*.py"))
    return TASKS | {path.stem: _imported(path.absolute(), state_of(path)) for path in files}


def own_code(name: str) -> Path | None:
    """The Python file of a task of your own; None for every other task."""
    folder = os.environ.get(CODE)
    if not folder or name in TASKS or name not in known():
        return None
    return from_workspace(folder) / f"{name}.py"


@cache
def _imported(path: Path, state: tuple[int, int] | None) -> Entry:
    """The entry TASK of a file, which is executed once for as long as it stays as it is."""
    where = spec_from_file_location(f"fpt_task_{path.stem}", path)
    assert where is not None
    assert where.loader is not None
    module = module_from_spec(where)
    where.loader.exec_module(module)
    found = getattr(module, "TASK", None)
    if not isinstance(found, Entry) or path.stem in TASKS or not re.fullmatch(r"[A-Za-z0-9_-]+", path.stem):
        raise SpecError(
            f"{path}: a task of your own is a file NAME.py that defines TASK, an Entry of fpt.tasks, under a name of "
            f"letters, digits, - and _ that no other task has; TASK is {found!r} ({CODE})"
        )
    return found


def _refuse_unasked(name: object) -> None:
    """SpecError where the workspace has code of this name."""
    root = workspace_around(Path.cwd())
    if root and (root / "tasks" / f"{name}.py").is_file():
        raise SpecError(
            f"task {name!r}: tasks/{name}.py is code, and code is executed only where you ask for it: set {CODE}=tasks"
        )


def own_table(name: str, options: Mapping[str, Any]) -> OwnTable:
    """What the backbone's own table does on this task: it reads texts that its own tokenizer made symbols of.

    Raises SpecError for an unknown name.
    """
    found = entry(name)
    return READS if options.get("tokenizer") == BY_MODEL else found.own_table


def check(name: str, variant: str, options: Mapping[str, Any], source: str = "") -> Entry:
    """The entry of a task. Raises SpecError unless the task, the variant and every option exist and the options have
    their type."""
    found, where = entry(name, source), f" ({source})" if source else ""
    check_known(f"variant of {name}", variant, found.variants, source)
    check_options(name, options, found.options, source)
    for option, value in options.items():
        if type(value) is int and not min(1, found.options[option]) <= value <= MOST:
            raise SpecError(f"{name}: option {option} is {value}{where}, but must be at least 1, at most {MOST:,}.")
    chosen = {**found.options, **options}
    if "patch" in chosen and chosen.get("length", chosen["patch"]) % chosen["patch"]:
        raise SpecError(f"{name}: patch {chosen['patch']} does not divide length {chosen['length']}{where}.")
    if (bits := chosen.get("strings", 1) * chosen.get("length", 1)) > MOST_BITS:
        raise SpecError(f"{name}: {bits:,} bits an example{where}; strings times length is at most {MOST_BITS:,}.")
    if kind := own_kind(name):
        _check_own(name, kind, where)
    if "tokenizer" in chosen:
        check_known(f"tokenizer of {name}", chosen["tokenizer"], TOKENIZERS, source)
    if "pooling" in chosen:
        check_known(f"pooling of {name}", chosen["pooling"], get_args(Pooling), source)
    most, what = (BRIGHTEST_16, "images have 16 bits or less") if kind == "folder" else (BRIGHTEST, "images are uint8")
    if (white := chosen.get("white", 0)) > most:
        raise SpecError(f"{name}: option white is {white}{where}; {what}, at most {most:,}.")
    if kind == "folder" and (size := chosen["size"]) > LONGEST_SIDE:
        raise SpecError(f"{name}: option size is {size}{where}; images have at most {LONGEST_SIDE:,} pixels a side.")
    return found


def refuse_unused(kind: str, options: Mapping[str, Any], why: str) -> None:
    """SpecError for an option of a task that would change the identity of a sweep and none of its runs."""
    for name, value in options.items():
        if value != TASKS[kind].options[name]:
            raise SpecError(f"{kind.partition(':')[0]}: option {name} is {value}, but {why}; leave it out.")


def _check_own(name: str, kind: str, where: str) -> None:
    """SpecError where there is no such file, or no such folder."""
    path, what = own_path(name), "folder" if kind == "folder" else "file"
    there = os.path.isdir if kind == "folder" else os.path.isfile  # of a name that is too long they say no
    if not there(path):
        raise SpecError(f"{name}{where}: no {what} {path}. Put it back, or name another: {OWN[kind]}.")
    if not is_utf8(str(path)):
        raise SpecError(f"{name}{where}: this name is no UTF-8, in which studies are written; rename the {what}.")


def is_utf8(name: str) -> bool:
    """Whether a name of the file system can be written as text."""
    return not any("\ud800" <= letter <= "\udfff" for letter in name)


def own_kind(name: object) -> str:
    """What stands before the colon of a task of your own data: npz, folder or csv; empty for every other task."""
    kind, colon, _ = name.partition(":") if isinstance(name, str) else ("", "", "")
    return kind if colon and kind in OWN else ""


def own_path(name: str) -> Path:
    """The file or folder of a task `npz:PATH`, `folder:PATH` or `csv:PATH`."""
    return from_workspace(name.partition(":")[2])


def own_checksum(name: str) -> str:
    """SHA-256 (hex) of your own data: of the file; of a folder over the names, which may be no UTF-8, and the contents
    of its images."""
    path = own_path(name)
    if own_kind(name) != "folder":
        return known_sha256(path)
    total = hashlib.sha256()
    for file in images_below(path):
        total.update(os.fsencode(f"{file.relative_to(path).as_posix()} {known_sha256(file)}\n"))
    return total.hexdigest()


def images_below(path: Path) -> list[Path]:
    """Every image in a folder and the folders in it, sorted. Raises DataError as `files_below`, and for a pipe, whose
    reader would wait for ever, or a link to nothing."""
    found = [file for file in files_below(path) if file.suffix.lower() in IMAGES]
    for file in found:
        if not file.is_file():
            raise DataError(f"{file} is no file with an image: it is a pipe, a device, or a link to nothing")
    return found


def files_below(path: Path, left: list[str] | None = None) -> list[Path]:
    """Every file in a folder and the folders in it, sorted, links followed. What is hidden is not there: programs keep
    copies in such files and folders. `left` takes the names of those that do not begin with a dot.

    Raises DataError for a folder that cannot be read.
    """

    def refuse(error: OSError) -> None:
        raise DataError(f"{error.filename} cannot be read ({error.strerror})")

    found: list[Path] = []
    for folder, inside, files in os.walk(path, onerror=refuse, followlinks=True):
        here = Path(folder)
        above = [each.resolve() for each in (here, *here.parents)]
        for name in inside[:]:
            target = (here / name).resolve()
            if is_hidden(name):
                inside.remove(name)
                if left is not None and not name.startswith("."):
                    left.append(name)
            elif any(each.is_relative_to(target) for each in above):  # a link in a circle
                inside.remove(name)
        found += [here / file for file in files if not file.startswith(".")]
    return sorted(found)


def is_hidden(name: str) -> bool:
    """Whether a folder of this name is none of the reader's: of the system, of a photo library, of a network drive."""
    return name.startswith(".") or (name.startswith("@") and len(name) > 1) or name.lower() in COPIES


def data_folder(data_dir: str | os.PathLike[str] | None = None) -> Path:
    """Where data are looked for and downloaded to: `data_dir`, else $FPT_DATA, else the cache.

    Raises SpecError for a `data_dir` that is no path.
    """
    if not isinstance(data_dir, str | os.PathLike | None):
        raise SpecError(f"data_dir = {data_dir!r}: must be a path")
    return Path(os.path.expanduser(data_dir or os.environ.get("FPT_DATA") or cache_folder()))


def load(
    name: str,
    data_dir: str | os.PathLike[str] | None = None,
    variant: str = "paper",
    *,
    reader: "Reader | None" = None,
    **options: Any,
) -> "Task":
    """The task `name`. It holds no seed: `task.split(seed)` does.

    reader: a model's own tokenizer, for option `tokenizer: own`; fpt.models.load_task gives it. Raises SpecError for
    what does not exist, DataError for data that are missing, truncated or altered.
    """
    check(name, variant, options, source="fpt.tasks.load")
    found = entry(name)
    chosen = {**found.options, **options}
    given = {"reader": reader} if chosen.get("tokenizer") == BY_MODEL else {}
    if given and reader is None:
        raise SpecError(f"{name}: tokenizer own is a model's: load the task by fpt.models.load_task(task, backbone).")
    place = own_path(name) if own_kind(name) else data_folder(data_dir)
    task = loader_of(found)(place, variant, **chosen, **given)
    table = own_table(name, chosen)
    return replace(task, name=name, variant=variant, options=chosen, title=found.title, own_table=table)


def loader_of(found: Entry) -> Callable[..., "Task"]:
    """The loader of an entry, imported only now."""
    if not isinstance(found.loader, str):
        return found.loader
    loader: Callable[..., Task] = resolve_name(found.loader if "." in found.loader else f"fpt.tasks.{found.loader}")
    return loader
