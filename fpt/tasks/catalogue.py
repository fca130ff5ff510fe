"""The tasks: a new one is a row here, and its loader in a file of this folder. No torch here, so that plans and hashes
of specs need none."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

from fpt.errors import SpecError, check_known

TOKENIZERS = BY_BYTES, BY_MODEL = "bytes", "own"  # what makes symbols of texts
# What a backbone's own table of symbols does in the place of new layers: it reads, or reads and predicts the next one
OwnTable = Literal["", "reads", "predicts"]
Pooling = Literal["last", "mean"]  # what of a model's last layer is read: its last positions, or the mean over all
LAST: Final = "last"
MEAN: Final = "mean"
READS: Final = "reads"
PREDICTS: Final = "predicts"
BRIGHTEST, BRIGHTEST_16 = 255, 65_535  # pixels of 8 and of 16 bits
LONGEST_SIDE = 1024  # pixels to which the images of a folder are resized; larger ones fill the memory while they load
BYTES = 256  # symbols of text
MOST = 1_000_000  # a whole-number option; more would fill the memory before anything is trained
MOST_BITS = 100_000  # of one example of a bit task
DIGITS = 1797  # images of scikit-learn


@dataclass(frozen=True)
class Entry:
    """A task: its loader, "module:function" of this folder or the function itself, called as
    `loader(data_dir, variant, **options) -> Task`; and what a study may choose (first variant and values: defaults)."""

    loader: str | Callable[..., Any]
    title: str
    variants: tuple[str, ...] = ("paper",)
    options: Mapping[str, Any] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)  # of whole-number options; MOST of all others
    check: Callable[..., None] = lambda **options: None  # SpecError for options that do not go together
    path: Literal["", "file", "folder"] = ""  # of your own data: what PATH is, which stands for `data_dir`
    files: tuple[tuple[str, ...], ...] = ()  # in the data folder: sets of files, each of which is enough
    advice: str = ""  # how to get the files
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


def _bits(strings: int, length: int, patch: int = 1) -> None:
    if length % patch:
        raise SpecError(f"patch {patch} does not divide length {length}.")
    if (bits := strings * length) > MOST_BITS:
        raise SpecError(f"{bits:,} bits an example; strings times length is at most {MOST_BITS:,}.")


def _texts(tokenizer: str, pooling: str, **others: Any) -> None:
    check_known("tokenizer", tokenizer, TOKENIZERS)
    check_known("pooling", pooling, get_args(Pooling))


def _images(size: int, patch: int, white: int) -> None:
    if size % patch:
        raise SpecError(f"option patch {patch} does not divide size {size}.")


BOTH = ("paper", "released")  # as the paper says, and as its released code does
# labels a class, 0: all; at most as many as the smallest class has texts to train on
INTENTS = {"labels": 0, "tokenizer": BY_BYTES, "tokens": 64, "bytes": 128, "pooling": LAST}


def _filled(labels: int, tokenizer: str, tokens: int, bytes: int, pooling: Pooling) -> int:
    """Tokens of a text of INTENTS in the mean over batches of 32: 15 or 20 of MiniLM's own, 44 or 60 bytes."""
    return min(tokens, 20) if tokenizer == BY_MODEL else min(bytes, 60)


ELSEWHERE = "FPT_DATA names another data folder."
ARRAYS = "with x_train, y_train, x_test and y_test, into the data folder"
CIFAR10 = (("cifar10.npz",), ("cifar-10-batches-py",), ("cifar-10-python.tar.gz",))
CIFAR10_ADVICE = (
    "Downloaded at first use. Without a network, put cifar-10-python.tar.gz of www.cs.toronto.edu/~kriz/cifar.html, or "
    f"cifar10.npz {ARRAYS}; {ELSEWHERE}"
)

TASKS: dict[str, Entry] = {
    "digits": Entry("images:digits", "Handwritten digits, 8x8", classes=10, tokens=(16,), collection=DIGITS),
    "digits-lra": Entry(
        "images:digits_lra", "Handwritten digits, pixel by pixel", classes=10, tokens=(64,), collection=DIGITS
    ),
    "bit-xor": Entry(
        "bits:bit_xor", "Bit XOR", options={"strings": 2, "length": 5}, check=_bits, classes=2,
        tokens=lambda strings, length: strings * length,
    ),
    "bit-memory": Entry(
        "bits:bit_memory", "Bit Memory", options={"strings": 5, "length": 1000, "patch": 50}, check=_bits, classes=2,
        tokens=lambda strings, length, patch: (strings + 1) * length // patch,
    ),
    "listops": Entry(
        "listops:listops", "ListOps", (*BOTH, "lra", "lra-released"), {"train": 96_000, "heldout": 2_000},
        files=(tuple(f"listops/basic_{part}.tsv" for part in ("train", "val", "test")),),
        advice=(
            "Only the variants lra and lra-released read Long Range Arena's own lists; the others are generated at "
            "first use. They are not downloaded here, since no checksum of them is known: put basic_train.tsv, "
            "basic_val.tsv and basic_test.tsv (the folder listops-1000 of lra_release.gz, "
            f"github.com/google-research/long-range-arena) into the folder listops of the data folder; {ELSEWHERE}"
        ),
        classes=10, tokens=(2000, 512, 2000, 512), margin=2.0,
    ),
    "listops-short": Entry(
        "listops:short", "ListOps, short", options={"train": 20_000, "heldout": 2_000}, classes=10, tokens=(64,),
        margin=2.0,
    ),
    "mnist": Entry(
        "images:mnist", "MNIST", BOTH,
        files=(
            ("mnist.npz",),
            tuple(
                f"MNIST/raw/{part}-{kind}-ubyte.gz"
                for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")
            ),
        ),
        advice=(
            "Downloaded at first use. Without a network, put the four files of ossci-datasets.s3.amazonaws.com/mnist "
            f"into the folder MNIST/raw of the data folder, or mnist.npz {ARRAYS}; {ELSEWHERE}"
        ),
        classes=10, tokens=(64, 49),
    ),
    "cifar10": Entry(
        "images:cifar10", "CIFAR-10", (*BOTH, "augmented", "gray16", "gray16-released"), files=CIFAR10,
        advice=CIFAR10_ADVICE, classes=10, tokens=(64,) * 5,
    ),
    "cifar10-lra": Entry(
        "images:cifar10_lra", "CIFAR-10 LRA", (*BOTH, "augmented"), files=CIFAR10, advice=CIFAR10_ADVICE, classes=10,
        tokens=(1024,) * 3,
    ),
    "homology": Entry(
        "homology:homology", "Remote homology", BOTH,
        files=(
            tuple(f"remote_homology/remote_homology_{part}.json" for part in ("train", "valid", "test_fold_holdout")),
        ),
        advice=(
            "TAPE's raw data are not downloaded here, since no checksum of them is known: get http://s3.amazonaws.com/"
            'songlabdata/proteindata/data_raw_pytorch/remote_homology.tar.gz ("Remote Homology" under "Raw Data" of '
            "github.com/songlab-cal/tape) and unpack it into the data folder, where it makes the folder "
            f"remote_homology; {ELSEWHERE}"
        ),
        classes=1195, tokens=(1024, 1024),
    ),
    "text": Entry(
        "programs:programs", "Text: the next byte of programs", classes=BYTES, tokens=(64,), own_table="predicts"
    ),
    "banking77": Entry(
        "intents:banking77", "BANKING77", options=INTENTS, most={"labels": 31}, check=_texts,
        files=(("intents/banking77_train.csv", "intents/banking77_test.csv"),),
        advice=(
            "CC BY 4.0; downloaded at first use. Without a network, get train.csv and test.csv of "
            "github.com/PolyAI-LDN/task-specific-datasets, commit 57ec275d (folder banking_data), and put them as "
            f"banking77_train.csv and banking77_test.csv into the folder intents of the data folder; {ELSEWHERE}"
        ),
        classes=77, tokens=_filled,
    ),
    "clinc150": Entry(
        "intents:clinc150", "CLINC150", options=INTENTS, most={"labels": 100}, check=_texts,
        files=(("intents/clinc150_full.json",),),
        advice=(
            "CC BY 3.0; downloaded at first use. Without a network, get data/data_full.json of "
            "github.com/clinc/oos-eval, commit 828f8093, and put it as clinc150_full.json into the folder intents of "
            f"the data folder; {ELSEWHERE}"
        ),
        classes=150, tokens=_filled,
    ),
    "npz:PATH": Entry(
        "own.npz:npz", "Your own data", options={"patch": 4, "padded": False, "white": BRIGHTEST},
        most={"white": BRIGHTEST}, path="file",
    ),
    "folder:PATH": Entry(  # white 0: what the bits of a file allow
        "own.folder:folder", "Your own images", options={"size": 32, "patch": 4, "white": 0},
        most={"size": LONGEST_SIDE, "white": BRIGHTEST_16}, check=_images, path="folder",
    ),
    "csv:PATH": Entry(
        "own.table:table", "Your own table",
        options={
            "target": "", "patch": 1, "bytes": 128, "tokenizer": BY_BYTES, "tokens": 128, "pooling": LAST,
        },
        check=_texts, path="file",
    ),
}  # fmt: skip


def refuse_unused(task: str, options: Mapping[str, Any], why: str) -> None:
    """SpecError for an option of a task that would change the identity of a sweep and none of its runs."""
    for name, value in options.items():
        if value != TASKS[task].options[name]:
            raise SpecError(f"{task.partition(':')[0]}: option {name} is {value}, but {why}; leave it out.")
