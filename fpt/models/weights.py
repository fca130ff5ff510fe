"""Where pretrained weights lie: $FPT_WEIGHTS, an installed package, the hub's cache, the hub; and how they are read.

No torch before weights are read.
"""

import importlib.util
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

from fpt.errors import WeightsError
from fpt.files import sha256
from fpt.models import Backbone, hub
from fpt.models.dequantise import cached, dequantised
from fpt.models.dequantise import check as check_cached
from fpt.models.families import family
from fpt.models.hub import CONFIG, FILES, WEIGHTS

if TYPE_CHECKING:
    from torch import Tensor, nn

HUB_TIMEOUT = 10  # seconds to learn whether the hub answers at all


def local_folder(backbone: str, make: bool = False) -> Path | None:
    """The folder on this machine that holds config.json and model.safetensors, or None.

    make: a GGUF file that is here counts, too, and is dequantised (WeightsError where that fails).
    """
    folders = _places(backbone, make)
    return next((folder for folder in folders if all((folder / name).is_file() for name in FILES)), None)


def packaged(backbone: str) -> Path | None:
    """The folder, or GGUF file, in the installed package of the backbone; None without the package."""
    package, _, inside = (hub.backbone(backbone).package or "").partition(":")
    found = importlib.util.find_spec(package) if package else None
    places = [Path(place) / inside for place in (found and found.submodule_search_locations) or ()]
    return next((place for place in places if place.exists()), None)


def _places(backbone: str, make: bool) -> Iterator[Path]:
    entry, inside = hub.backbone(backbone), packaged(backbone)
    if entry.folder:
        yield entry.folder
        return
    if root := os.environ.get("FPT_WEIGHTS"):
        yield Path(os.path.expanduser(root), hub.slug(backbone))
    if entry.gguf:
        yield dequantised(inside, entry.gguf) if make and inside else cached(entry.gguf)
    elif inside:
        yield inside
    if entry.hub:
        from huggingface_hub import try_to_load_from_cache

        weights = try_to_load_from_cache(entry.hub, WEIGHTS, revision=entry.revision)
        if isinstance(weights, str):
            yield Path(weights).parent


def find(backbone: str) -> Path | None:
    """The folder on this machine that holds the weights, their checksum compared; None: the hub will have them.

    Raises WeightsError, within seconds, with the hub name, the environment variable and the offline choices.
    """
    folder = local_folder(backbone, make=True)
    if folder:
        verify(backbone, folder)
    elif not hub_answers(backbone):
        raise WeightsError(missing(backbone))
    return folder


def fetch(backbone: str) -> Path:
    """The folder with config.json and model.safetensors, downloaded if need be, its checksum compared.

    Raises WeightsError.
    """
    return find(backbone) or download(backbone)


def download(backbone: str) -> Path:
    """The folder of the hub's cache into which the model was fetched.

    Raises WeightsError where that fails; what was fetched of a model that the cache did not know is removed.
    """
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError

    entry = hub.backbone(backbone)
    owner, revision = str(entry.hub), entry.revision
    place = Path(constants.HF_HUB_CACHE) / f"models--{owner.replace('/', '--')}"
    known = place.exists()
    broken: type[Exception] = HfHubHTTPError.__mro__[1]  # any failure of the HTTP library that the hub's client uses
    try:
        paths = [Path(hf_hub_download(owner, name, revision=revision)) for name in FILES]
    except (OSError, RuntimeError, broken) as error:
        if known or local_folder(backbone):  # another revision's, or another process had more luck
            for part in place.glob("blobs/*.incomplete"):
                part.unlink(missing_ok=True)
        else:
            shutil.rmtree(place, ignore_errors=True)
        why = f"could not be downloaded from {owner} (revision {revision or 'main'}): {error}"
        raise WeightsError(missing(backbone, why)) from error
    verify(backbone, paths[0].parent)  # one snapshot holds both
    return paths[0].parent


def commit(backbone: str) -> str | None:
    """The commit on the hub whose weights these are, for the record; None where they are not from the hub's cache."""
    folder = fetch(backbone)
    return folder.name if folder.parent.name == "snapshots" else None


def checksum(backbone: str) -> str:
    """SHA-256 of the pretrained model.safetensors, or of the GGUF file that it was dequantised from, for the record."""
    gguf, folder = hub.backbone(backbone).gguf, fetch(backbone)
    return gguf if gguf and folder == cached(gguf) else sha256(folder / WEIGHTS, WeightsError)


def missing(backbone: str, why: str = "are not on this machine and the hub does not answer") -> str:
    """What to do about weights that cannot be had: every way to get them, and the backbones that need none."""
    entry, ways, place = hub.backbone(backbone), [], hub.slug(backbone)
    if entry.hub:
        ways.append(f"connect to the network once (hub name {entry.hub!r})")
    if entry.install:
        ways.append(entry.install)
    ways.append(f"set FPT_WEIGHTS to a folder that holds {place}/config.json and {place}/model.safetensors")
    return (
        f"the pretrained weights of backbone {backbone!r} {why}. Either {', or '.join(ways)}. "
        "Backbones that need no network: tiny-lm, and minilm and smollm2 from their packages."
    )


def hub_answers(backbone: str) -> bool:
    """Whether the model can be downloaded from here, asked once and briefly."""
    entry = hub.backbone(backbone)
    if entry.hub is None or os.environ.get("HF_HUB_OFFLINE", "").lower() in {"1", "on", "yes", "true"}:
        return False
    from huggingface_hub import hf_hub_url

    try:
        urlopen(
            Request(hf_hub_url(entry.hub, CONFIG, revision=entry.revision), method="HEAD"), timeout=HUB_TIMEOUT
        ).close()
    except (OSError, HTTPException):  # urllib's errors are subclasses of the first; the second: no HTTP
        return False
    return True


def verify(backbone: str, folder: Path) -> None:
    """Compare model.safetensors with the expected checksum, where one is known (WeightsError)."""
    entry, file = hub.backbone(backbone), folder / WEIGHTS
    if entry.gguf and folder == cached(entry.gguf):
        check_cached(folder)
    elif entry.sha256 is not None and (found := sha256(file, WeightsError)) != entry.sha256:
        raise WeightsError(
            f"{file} is not the file of backbone {backbone!r}: "
            f"expected SHA-256 {entry.sha256}, found {found}; the file was left as it is"
        )


def pretrained_state(backbone: str) -> "dict[str, Tensor]":
    """The pretrained weights that the file holds as float32, under the library's names.

    Raises WeightsError where there are none.
    """
    import torch
    from safetensors import SafetensorError

    folder, entry = fetch(backbone), hub.backbone(backbone)
    kind = family(entry.family)
    options = {} if entry.found is None else {"config": kind.configuration(entry)}
    try:
        with quiet_library():
            model, found = kind.load(
                folder, dtype=torch.float32, use_safetensors=True, output_loading_info=True, **options
            )
    except (OSError, ValueError, LookupError, RuntimeError, SafetensorError) as error:
        raise WeightsError(f"the weights of backbone {backbone!r} in {folder} cannot be read: {error}") from error
    # The library draws at random what it does not find.
    return {name: tensor for name, tensor in model.state_dict().items() if name not in found["missing_keys"]}


def kept_state(path: Path) -> "dict[str, Tensor]":
    """The backbone's weights that a sweep kept, under the library's names; raises WeightsError if it cannot be read."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        kept = load_file(path)
    except (OSError, SafetensorError) as error:
        raise WeightsError(f"{path}: the weights that a sweep kept cannot be read: {error}") from error
    prefix = "backbone."
    return {name.removeprefix(prefix): tensor for name, tensor in kept.items() if name.startswith(prefix)}


def save_random(entry: Backbone, folder: Path) -> "nn.Module":
    """Save the library's whole model of `entry` with random values in every tensor, to stand in for pretrained ones."""
    import torch

    with torch.random.fork_rng(devices=[]), quiet_library():
        torch.manual_seed(1)
        kind = family(entry.family)
        model: Any = kind.whole(kind.configuration(entry))
        for parameter in model.parameters():  # biases and layer norms too, so that a swapped one shows
            torch.nn.init.normal_(parameter, std=0.3)
        model.save_pretrained(folder)
    return model  # type: ignore[no-any-return]


@contextmanager
def quiet_library() -> Iterator[None]:
    """No progress bar or advice on the library's part while a model loads; errors still show."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
