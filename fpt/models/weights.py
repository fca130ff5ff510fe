"""Where pretrained weights lie: $FPT_WEIGHTS, an installed package, the hub's cache, the hub; and how they are read.

No torch before weights are read.
"""

import importlib.util
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from fpt.errors import WeightsError
from fpt.files import check_sha256, known_sha256
from fpt.models import hub
from fpt.models.catalogue import Backbone
from fpt.models.dequantise import cached, check_cached, dequantised
from fpt.models.families import family
from fpt.models.hub import CONFIG, FILES, WEIGHTS
from fpt.models.tensors import check_header, check_names

if TYPE_CHECKING:
    from torch import Tensor

HUB_TIMEOUT = 10  # seconds to learn whether the hub answers at all
PREFIX = "backbone."  # before the library's names of parameters, in a model and in a file that a sweep kept


def local_folder(backbone: Backbone, make: bool = False) -> Path | None:
    """The folder on this machine that holds config.json and model.safetensors, or None.

    make: a GGUF file that is here counts, too, and is dequantised (WeightsError where that fails).
    """
    for folder in _places(backbone, make):
        if all((folder / name).is_file() for name in FILES):
            return folder
    return None


def packaged(backbone: Backbone) -> Path | None:
    """The folder, or GGUF file, in the installed package of the backbone; None without the package."""
    package, _, inside = (backbone.package or "").partition(":")
    found = importlib.util.find_spec(package) if package else None
    places = [Path(place) / inside for place in (found and found.submodule_search_locations) or ()]
    return next((place for place in places if place.exists()), None)


def _places(backbone: Backbone, make: bool) -> Iterator[Path]:
    inside = packaged(backbone)
    if backbone.folder:
        yield backbone.folder
        return
    if root := os.environ.get("FPT_WEIGHTS"):
        yield Path(os.path.expanduser(root), hub.slug(backbone.name))
    if backbone.gguf:
        yield dequantised(inside, backbone.gguf) if make and inside else cached(backbone.gguf)
    elif inside:
        yield inside
    if backbone.hub:
        from huggingface_hub import try_to_load_from_cache

        weights = try_to_load_from_cache(backbone.hub, WEIGHTS, revision=backbone.revision)
        if isinstance(weights, str):
            yield Path(weights).parent


def find(backbone: Backbone) -> Path | None:
    """The folder on this machine that holds the weights, their checksum compared; None: the hub will have them.

    Raises WeightsError, within seconds, with the hub name, the environment variable and the offline choices.
    """
    folder = local_folder(backbone, make=True)
    if folder:
        verify(backbone, folder)
    elif not hub_answers(backbone):
        raise WeightsError(missing(backbone))
    return folder


def fetch(backbone: Backbone) -> Path:
    """The folder with config.json and model.safetensors, downloaded if need be, its checksum compared.

    Raises WeightsError.
    """
    return find(backbone) or download(backbone)


def download(backbone: Backbone) -> Path:
    """The folder of the hub's cache into which the model was fetched.

    Raises WeightsError where that fails. What was fetched stays: the hub's client goes on from there at the next call,
    and another process may be at work on it.
    """
    from huggingface_hub import hf_hub_download

    repository, revision = str(backbone.hub), backbone.revision
    try:
        paths = [Path(hf_hub_download(repository, name, revision=revision)) for name in FILES]
    except hub.failures() as error:
        why = f"could not be downloaded from {repository} (revision {revision or 'main'}): {error}"
        raise WeightsError(missing(backbone, why)) from error
    verify(backbone, paths[0].parent)  # one snapshot holds both
    return paths[0].parent


def commit(backbone: Backbone) -> str | None:
    """The commit on the hub whose weights these are, for the record; None where they are not from the hub's cache."""
    folder = fetch(backbone)
    return folder.name if folder.parent.name == "snapshots" else None


def checksum(backbone: Backbone) -> str:
    """SHA-256 of the pretrained model.safetensors, or of the GGUF file that it was dequantised from, for the record."""
    gguf, folder = backbone.gguf, fetch(backbone)
    return gguf if gguf and folder == cached(gguf) else known_sha256(folder / WEIGHTS, WeightsError)


def missing(backbone: Backbone, why: str = "are not on this machine and the hub does not answer") -> str:
    """What to do about weights that cannot be had: every way to get them, and the backbones that need none."""
    ways, place = [], hub.slug(backbone.name)
    if backbone.hub:
        ways.append(f"connect to the network once (hub name {backbone.hub!r})")
    if backbone.install:
        ways.append(backbone.install)
    ways.append(f"set FPT_WEIGHTS to a folder that holds {place}/config.json and {place}/model.safetensors")
    return (
        f"the pretrained weights of backbone {backbone.name!r} {why}. Either {', or '.join(ways)}. "
        "Backbones that need no network: tiny-lm, and minilm and smollm2 from their packages."
    )


def hub_answers(backbone: Backbone) -> bool:
    """Whether the model can be downloaded from here, asked once and briefly.

    Raises WeightsError for an HF_ENDPOINT that is no address.
    """
    if backbone.hub is None or os.environ.get("HF_HUB_OFFLINE", "").lower() in {"1", "on", "yes", "true"}:
        return False
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    address = hf_hub_url(backbone.hub, CONFIG, revision=backbone.revision)
    if not address.startswith(("https://", "http://")):
        raise WeightsError(f"HF_ENDPOINT: {address} is no address of the web; it must begin with https://")
    try:
        get_hf_file_metadata(address, timeout=HUB_TIMEOUT)  # with the user's token
    except hub.failures():
        return False
    return True


def verify(backbone: Backbone, folder: Path) -> None:
    """Compare model.safetensors with the expected checksum, where one is known (WeightsError): no other check is made
    of such a file."""
    if backbone.gguf and folder == cached(backbone.gguf):
        check_cached(folder)
    elif backbone.sha256:
        needed = f"that of backbone {backbone.name!r} is needed here"
        check_sha256(folder / WEIGHTS, backbone.sha256, needed, WeightsError)


def check_shapes(backbone: Backbone) -> None:
    """Refuse (WeightsError) a file of unknown checksum whose header does not fit config.json, before memory is taken
    for what that announces; what the library raises for a configuration that it cannot build is left to the caller."""
    if backbone.sha256 is not None:
        return
    import torch
    from transformers import AutoModel

    file = fetch(backbone) / WEIGHTS
    with torch.device("meta"):
        model: Any = AutoModel.from_config(family(backbone).configuration(backbone))
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    try:
        check_header(file, shapes | {f"{model.base_model_prefix}.{name}": shape for name, shape in shapes.items()})
    except SafetensorError as error:
        raise _unreadable(backbone, file.parent, error) from error


def pretrained_state(backbone: Backbone) -> "dict[str, Tensor]":
    """The pretrained weights that the file holds as float32, under the library's names.

    Raises WeightsError where there are none, and for a file of unknown checksum whose tensors are not those of its
    model.
    """
    import torch

    from fpt.models.families.library import BROKEN

    folder, kind, known = fetch(backbone), family(backbone), backbone.sha256 is not None
    try:
        with quiet_library():
            model, found = kind.load(
                folder, config=kind.configuration(backbone), dtype=torch.float32, use_safetensors=True,
                output_loading_info=True, attn_implementation="eager",
                ignore_mismatched_sizes=not known,  # refused below, by name
            )  # fmt: skip
    except (*BROKEN, SafetensorError) as error:
        raise _unreadable(backbone, folder, error) from error
    if not known:
        check_names(folder / WEIGHTS, [name for name, _ in model.named_parameters()], found)
    # The library draws at random what it does not find.
    return {name: tensor for name, tensor in model.state_dict().items() if name not in found["missing_keys"]}


def _unreadable(backbone: Backbone, folder: Path, error: Exception) -> WeightsError:
    return WeightsError(f"the weights of backbone {backbone.name!r} in {folder} cannot be read: {error}")


def kept_state(file: Path, shapes: Mapping[str, Sequence[int]], any_rows: str | None) -> "dict[str, Tensor]":
    """The backbone's weights that a sweep kept, under the library's names. Raises WeightsError for a file that cannot
    be read, and for one whose tensors are not those of these shapes, as `check_header` compares them."""
    from safetensors.torch import load_file

    try:
        check_header(file, {PREFIX + name: shape for name, shape in shapes.items()}, any_rows and PREFIX + any_rows)
        kept = load_file(file)
    except (OSError, SafetensorError) as error:
        raise WeightsError(f"{file}: the weights that a sweep kept cannot be read: {error}") from error
    state = {name.removeprefix(PREFIX): tensor for name, tensor in kept.items() if name.startswith(PREFIX)}
    if more := state.keys() - shapes.keys():
        raise WeightsError(f"{file}: tensor {min(more)} is in no layer of the backbone, and would not be used")
    return state


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
