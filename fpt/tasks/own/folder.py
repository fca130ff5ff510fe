"""Your own images: a folder of them by class. Nothing here is downloaded."""

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from fpt.errors import DataError
from fpt.tasks.arrays import sixths
from fpt.tasks.catalogue import BRIGHTEST, BRIGHTEST_16
from fpt.tasks.own.npz import PARTS, Array, brightness, check_bright, tensors
from fpt.tasks.own.paths import IMAGES, files_below, images_below, is_hidden, own_checksum
from fpt.tasks.pixels import Pixels
from fpt.tasks.tables import check_classes, counted, few
from fpt.tasks.task import Task

LEAST = 3  # images of a class; a seed may still draw none of them for one of its three parts
# Words in the names of folders that are parts of data, and no classes
TRAINING = {"train", "training", "trainset"}
HELD_OUT = {"test", "testing", "testset", "val", "valid", "validation", "dev", "eval", "evaluation", "holdout"}
DIVIDED = re.compile(r"(fold|split|batch|shard|chunk)[ _-]*[0-9]+", re.IGNORECASE)
PICTURES = {"image", "images", "img", "imgs", "picture", "pictures", "photos", "jpegimages"}
ANSWERS = {"mask", "masks", "label", "labels", "annotation", "annotations", "groundtruth", "gt", "segmentation"}
ANSWERS |= {"segmentations", "segmentationclass", "segmentationobject"}

KINDS = f"images (files that end in {', '.join(IMAGES)})"

Labelled = list[tuple[Path, int]]  # images and their labels


@dataclass(frozen=True)
class Seen:
    """What is known of an image before it is resized: width and height, whether it is gray, the bits of a channel, and
    its brightness."""

    side: tuple[int, int]
    gray: bool
    bits: int
    bright: int


def folder(path: Path, variant: str, size: int, patch: int, white: int) -> Task:
    """A folder of images: CLASS/*.png, or train/CLASS/*.png and test/CLASS/*.png, as torchvision's ImageFolder reads.

    Images are resized to `size` x `size` pixels and become tokens of `patch` x `patch`; they stay gray where all of
    them are, else they become RGB. `white` is the value of a pixel that is white; 0: the largest that the bits of a
    file allow. A sixth of the training images, stratified, is validation; without test/ the seed draws another sixth as
    test set.

    Raises DataError for a folder without classes, folders that are parts of data and no classes, a class with too few
    images, an image that cannot be read, and images that are all but black.
    """
    parts = PARTS if all((path / part).is_dir() for part in PARTS) else ("",)
    classes = _classes(path / parts[0])
    for part in parts[1:]:
        if (others := _classes(path / part)) != classes:
            differ = sorted({*others} ^ {*classes})
            raise DataError(f"train/ and test/ have other classes; in one of them alone: {few(differ)}.")
    files = [_files(path / part, classes) for part in parts]
    _check_parts(path / parts[0], classes, files[0])
    _check_classes(classes, files, official=len(parts) > 1)
    seen = [_seen(file) for part in files for file, _ in part]
    _check_white(seen, white)
    gray = all(image.gray for image in seen)
    train, *official = [
        tensors(
            np.stack([_pixels(file, size, gray, white) for file, _ in found]), np.array([label for _, label in found])
        )
        for found in files
    ]
    return Task(
        sixths(train, official),
        Pixels(patch),
        classes=len(classes),
        checksum=own_checksum(f"folder:{path}"),
        source=f"your own: {path.name}",
        read=_read(path, parts, classes, files),
        scaling=f"{_resized({image.side for image in seen}, size)}{'gray' if gray else 'RGB'}, {_divided(seen, white)}",
    )


def _folders(path: Path) -> list[str]:
    """The folders in a folder, sorted, without those that programs make, and links in a circle."""
    here = path.resolve()
    found = [each for each in path.iterdir() if each.is_dir() and not is_hidden(each.name)]
    return sorted(each.name for each in found if not here.is_relative_to(each.resolve()))


def _classes(path: Path) -> list[str]:
    """The classes of a folder, sorted: the folders in it. Raises DataError for fewer than two."""
    found = _folders(path)
    if len(found) < 2:
        here = f"it has {found[0]!r} alone" if found else "it has none"
        raise DataError(f"needed in {path.name}/ are two folders of images or more, one a class; {here}.")
    return found


def _files(path: Path, classes: list[str]) -> Labelled:
    """Every image below the folders of the classes, and its label."""
    return [(file, label) for label, name in enumerate(classes) for file in images_below(path / name)]


def _check_parts(path: Path, classes: list[str], files: Labelled) -> None:
    """DataError for folders that are no classes: parts of data by their names, or because they hold the same folders as
    each other."""
    words = {name: {*re.findall("[a-z]+", re.sub("([a-z])([A-Z])", r"\1 \2", name).lower())} for name in classes}
    held = [name for name in classes if words[name] & HELD_OUT]
    training = [name for name in classes if words[name] & TRAINING]
    divided = (training and held) or len(held) == len(classes) or all(map(DIVIDED.fullmatch, classes))
    whole = {re.sub("[^a-z]", "", name.lower()) for name in classes}
    if divided or (whole & PICTURES and whole & ANSWERS):
        raise DataError(
            f"{few([*training, *held] or classes)} are parts of data, no classes; needed is a folder of images a "
            "class, of two parts in train/ and test/."
        )
    inside: list[set[str]] = [set() for _ in classes]  # folders of a class, "" for what lies in none
    for file, label in files:
        inside[label].update(file.relative_to(path / classes[label]).parts[:-1][:1] or [""])
    for one, other in combinations(range(len(classes)), 2):
        same = sorted(inside[one] & inside[other] - {""})
        if same and len(inside[one] | inside[other]) > 1:  # not where each has one and the same, with all of its images
            raise DataError(
                f"{classes[one]} and {classes[other]} hold the same folders ({few(same)}): if these are the "
                "classes, put all images of each into one folder; if not, move the images out of them."
            )


def _check_classes(classes: list[str], files: list[Labelled], official: bool) -> None:
    """DataError for a class with too few images to be in every part."""
    needed = (2, 1) if official else (LEAST,)  # of train/, from which validation is taken, and of test/
    for name, part, least in zip(PARTS, files, needed, strict=False):
        counts = np.bincount([label for _, label in part], minlength=len(classes)).tolist()
        check_classes(classes, counts, least, f"{name}/" if official else "the folder", KINDS)


def _check_white(seen: Sequence[Seen], white: int) -> None:
    """DataError for images that would be all but black, at the white that their bits allow. A reader who names `white`
    knows it; in files of 8 and of 16 bits it would mean two."""
    depths = sorted({image.bits for image in seen})
    for bits in depths:
        if not white:
            bright = [image.bright for image in seen if image.bits == bits]
            check_bright(bright, _brightest(bits), f"most images of {bits} bits")
        elif white > _brightest(bits) or len(depths) > 1:
            named = " and of ".join(map(str, depths))
            raise DataError(
                f"it has images of {named} bits, and option white is {white}: save all with one depth, of which "
                "white is a value."
            )


def _brightest(bits: int) -> int:
    return BRIGHTEST_16 if bits > 8 else BRIGHTEST


def _open(file: Path) -> Any:
    """A decoded image, upright, of at most 8 bits a channel, or gray of 16. Raises DataError naming the file."""
    try:
        # The stream is ours to close: the library leaves it open when the image is damaged. It warns of damaged
        # metadata and of images of more than 89 megapixels, and refuses those of twice as many.
        with open(file, "rb") as stream, warnings.catch_warnings(action="ignore"):
            stored = Image.open(stream)
            stored.load()
            image = ImageOps.exif_transpose(stored)
    except (OSError, UnidentifiedImageError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        unknown = isinstance(error, UnidentifiedImageError)  # whose text names a buffer of ours
        why = "its bytes have no format of an image" if unknown else str(error)
        raise DataError(f"{file} is no image that can be read: {why}") from error
    if image.mode in ("I", "F"):
        raise DataError(f"{file} has pixels of 32 bits, and which value is white is not known; save it with 8 or 16.")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:  # what lies under it may be any colour
        seen = image.convert("RGBA")
        over = Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen)
        return over.convert("L" if image.mode in ("1", "L", "LA") else "RGB")
    return image


def _values(image: Any) -> Array:
    """Pixels (height, width), or (height, width, 3): uint8, or uint16 where the file has 16 bits."""
    if image.mode.startswith("I;16"):  # converted by the library, all above 255 would be white
        return np.asarray(image).astype(np.uint16)
    return np.asarray(image.convert("L" if image.mode in ("1", "L") else "RGB"))


def _seen(file: Path) -> Seen:
    image = _open(file)
    values = _values(image)
    return Seen(image.size, values.ndim == 2, 8 * values.dtype.itemsize, brightness(values))


def _pixels(file: Path, size: int, gray: bool, white: int) -> Array:
    """uint8 (size, size), or (size, size, 3). Raises DataError naming the file for a pixel above `white`."""
    values = _values(_open(file))
    if white and values.max() > white:
        raise DataError(f"{file} has the value {values.max()}, but option white is {white}.")
    if white:
        values = np.round(values * (BRIGHTEST / white)).astype(np.uint8)
    elif values.dtype == np.uint16:
        values = (values >> 8).astype(np.uint8)
    resized = Image.fromarray(values).convert("L" if gray else "RGB").resize((size, size))
    return np.asarray(resized, dtype=np.uint8)


def _read(path: Path, parts: Sequence[str], classes: list[str], files: list[Labelled]) -> str:
    """How many images of each class there are, and what in the folder is not read."""
    said = []
    for part, found in zip(parts, files, strict=True):
        each = Counter(label for _, label in found)
        of_classes = counted(classes, [each[label] for label in range(len(classes))])
        where = f"{part}/: " if part else ""
        said.append(f"{where}{len(found):,} images in {of_classes}")
    return "; ".join([*said, *_left_out(path, parts, {file for part in files for file, _ in part})])


def _left_out(path: Path, parts: Sequence[str], read: set[Path]) -> list[str]:
    """What in the folder is not read: other folders, and files by their endings. Nothing said where all is read."""
    hidden: list[str] = []
    others = [name for name in _folders(path) if name not in parts] if len(parts) > 1 else []
    every = [file for file in files_below(path, hidden) if file.relative_to(path).parts[0] not in others]
    return _unread([*others, *dict.fromkeys(hidden)], [file for file in every if file not in read])


def _unread(folders: Sequence[str], files: Sequence[Path]) -> list[str]:
    said = [f"not read: the folders {few(folders)}"] if folders else []
    if files:
        endings = Counter(file.suffix.lower() or "without ending" for file in files).most_common()
        said.append(f"not read: {len(files):,} files ({few(f'{count:,} {ending}' for ending, count in endings)})")
    return said


def _resized(sides: Iterable[tuple[int, int]], size: int) -> str:
    if (found := sorted(sides)) == [(size, size)]:
        return ""
    each = [f"{width}x{height}" for width, height in found]
    was = each[0] if len(each) == 1 else f"{len(each)} sizes from {each[0]} to {each[-1]}"
    return f"resized to {size}x{size} from {was}; "


def _divided(seen: Sequence[Seen], white: int) -> str:
    whites = [white] if white else [_brightest(bits) for bits in sorted({image.bits for image in seen})]
    return f"pixels divided by {' and '.join(f'{each:,}' for each in whites)}"
