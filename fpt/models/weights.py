"""Where pretrained weights lie: $FPT_WEIGHTS, an installed package, the hub's cache, the hub; and how they are read.

No torch before weights are read.
"""

import importlib.util
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open

from fpt.errors import WeightsError
from fpt.files import check_sha256, known_sha256
from fpt.models import hub
from fpt.models.dequantise import cached, dequantised
from fpt.models.dequantise import check as check_cached
from fpt.models.families import family, layer_of
from fpt.models.hub import CONFIG, FILES, WEIGHTS

if TYPE_CHECKING:
    import torch
    from torch import Tensor

FLOATS = ("F16", "BF16", "F32", "F64")  # number types of weights, as safetensors writes them
INDICES = ("BOOL", "U8", "I32", "I64")  # of masks and ids
HUB_TIMEOUT = 10  # seconds to learn whether the hub answers at all


def local_folder(backbone: str, make: bool = False) -> Path | None:
    """The folder on this machine that holds config.json and model.safetensors, or None.

    make: a GGUF file that is here counts, too, and is dequantised (WeightsError where that fails).
    """
    for folder in _places(backbone, make):
        if all((folder / name).is_file() for name in FILES):
            return folder
    return None


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

    Raises WeightsError where that fails. What was fetched stays: the hub's client goes on from there at the next call,
    and another process may be at work on it.
    """
    from huggingface_hub import hf_hub_download

    entry = hub.backbone(backbone)
    repository, revision = str(entry.hub), entry.revision
    try:
        paths = [Path(hf_hub_download(repository, name, revision=revision)) for name in FILES]
    except hub.failures() as error:
        why = f"could not be downloaded from {repository} (revision {revision or 'main'}): {error}"
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
    return gguf if gguf and folder == cached(gguf) else known_sha256(folder / WEIGHTS, WeightsError)


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
    """Whether the model can be downloaded from here, asked once and briefly.

    Raises WeightsError for an HF_ENDPOINT that is no address.
    """
    entry = hub.backbone(backbone)
    if entry.hub is None or os.environ.get("HF_HUB_OFFLINE", "").lower() in {"1", "on", "yes", "true"}:
        return False
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    address = hf_hub_url(entry.hub, CONFIG, revision=entry.revision)
    if not address.startswith(("https://", "http://")):
        raise WeightsError(f"HF_ENDPOINT: {address} is no address of the web; it must begin with https://")
    try:
        get_hf_file_metadata(address, timeout=HUB_TIMEOUT)  # with the user's token
    except hub.failures():
        return False
    return True


def verify(backbone: str, folder: Path) -> None:
    """Compare model.safetensors with the expected checksum, where one is known (WeightsError)."""
    entry, file = hub.backbone(backbone), folder / WEIGHTS
    if entry.gguf and folder == cached(entry.gguf):
        check_cached(folder)
    elif entry.sha256:
        check_sha256(file, entry.sha256, f"that of backbone {backbone!r} is needed here", WeightsError)


def pretrained_state(backbone: str) -> "dict[str, Tensor]":
    """The pretrained weights that the file holds as float32, under the library's names.

    Raises WeightsError where there are none, and for a file of unknown content that does not hold what its config.json
    announces.
    """
    import torch

    from fpt.models.families.library import BROKEN

    folder, entry = fetch(backbone), hub.backbone(backbone)
    kind = family(entry.family)
    options = {} if entry.found is None else {"config": kind.configuration(entry)}
    known = entry.sha256 is not None  # what that fixes is not checked again
    try:
        types = {} if known else _types(folder / WEIGHTS)
        _check_types(folder / WEIGHTS, types, ())  # types that no mask or table of ids has
        with quiet_library():
            model, found = kind.load(
                folder, dtype=torch.float32, use_safetensors=True, output_loading_info=True,
                ignore_mismatched_sizes=not known,  # refused below, by name
                attn_implementation="eager", **options,
            )  # fmt: skip
    except (*BROKEN, SafetensorError) as error:
        raise WeightsError(f"the weights of backbone {backbone!r} in {folder} cannot be read: {error}") from error
    if not known:
        _check_file(folder / WEIGHTS, types, [name for name, _ in model.named_parameters()], found)
    # The library draws at random what it does not find.
    return {name: tensor for name, tensor in model.state_dict().items() if name not in found["missing_keys"]}


def check_header(backbone: str) -> None:
    """Refuse (WeightsError) a file with other shapes than config.json announces, before memory is taken for these."""
    import torch
    from transformers import AutoModel

    from fpt.models.families.library import BROKEN

    file, entry = fetch(backbone) / WEIGHTS, hub.backbone(backbone)
    try:
        with torch.device("meta"):
            model: Any = AutoModel.from_config(family(entry.family).configuration(entry))
        with safe_open(file, "pt") as opened:
            shapes = {name: opened.get_slice(name).get_shape() for name in opened.keys()}  # noqa: SIM118 - no mapping
    except (*BROKEN, SafetensorError):
        return  # which is named where the model is built and read
    for name, parameter in sorted(dict(model.named_parameters()).items()):
        given = shapes.get(name, shapes.get(f"{model.base_model_prefix}.{name}"))
        if given is not None and list(given) != list(parameter.shape):
            raise _misshapen(file, name, given, parameter.shape)


def _misshapen(file: Path, name: str, given: Sequence[int], announced: Sequence[int]) -> WeightsError:
    return WeightsError(
        f"{file}: tensor {name} has the shape {tuple(given)}, but {CONFIG} announces {tuple(announced)}"
    )


def _types(file: Path) -> dict[str, str]:
    """The type of the numbers of every tensor in a safetensors file, as its header says."""
    with safe_open(file, "pt") as opened:
        return {name: opened.get_slice(name).get_dtype() for name in opened.keys()}  # noqa: SIM118 - no mapping


def _check_types(file: Path, types: Mapping[str, str], parameters: Iterable[str]) -> None:
    """Refuse (WeightsError) numbers that would be read as other ones: integers and 8-bit floats have scales elsewhere.

    Masks and ids that older versions of the library saved beside the parameters are integers, and are not read.
    """
    inside = tuple(f".{name}" for name in parameters)
    for name, kind in types.items():
        if kind not in FLOATS and (kind not in INDICES or f".{name}".endswith(inside)):
            raise WeightsError(
                f"{file}: tensor {name} holds numbers of type {kind}, but weights are read in {', '.join(FLOATS)}; "
                "save the model in one of these"
            )


def _check_file(file: Path, types: Mapping[str, str], names: Sequence[str], found: Mapping[str, Any]) -> None:
    """Refuse (WeightsError) a file that does not hold what its config.json announces; heads and masks may be left
    over."""
    _check_types(file, types, names)
    for name, given, expected in sorted(found["mismatched_keys"]):
        raise _misshapen(file, name, given, expected)
    unexpected = sorted(found["unexpected_keys"])
    if prefix := _prefix(unexpected, found["missing_keys"]):
        raise WeightsError(
            f"{file}: the names of its tensors begin with {prefix} and the library looks for them without it. Save the "
            "model inside by its own save_pretrained, or take this prefix off every name"
        )
    stacks = {_stack(name) for name in names} - {None}
    for name in unexpected:
        stack = _stack(name)
        if stack and any(f".{stack}".endswith(f".{known}") for known in stacks) and not _is_mask(file, name):
            raise WeightsError(
                f"{file}: tensor {name} lies in the layers, but {CONFIG} announces no such tensor. Correct {CONFIG}; "
                "option layers takes the first layers of a model"
            )


def _prefix(unexpected: Sequence[str], missing: Iterable[str]) -> str:
    """What stands before the names of the tensors that a file seems to lack, where it has them under longer names."""
    found = {each.removesuffix(name) for name in missing for each in unexpected if each.endswith(f".{name}")}
    return found.pop() if len(found) == 1 else ""


def _is_mask(file: Path, name: str) -> bool:
    """Whether a tensor says who attends to whom, or is the value that hides a token: constants, which older versions of
    the library saved beside the parameters. A mask is square and has two values; no trained matrix has."""
    with safe_open(file, "pt") as opened:
        tensor = opened.get_tensor(name)
    if tensor.numel() == 1:
        return name.endswith(".masked_bias")
    square = tensor.dim() > 1 and tensor.shape[-1] == tensor.shape[-2]
    return square and len(tensor.unique()) == 2


def _stack(name: str) -> str | None:
    """The list of layers that a tensor is in; None outside the layers."""
    found = re.match(r"(.*?)\.\d+\.", name)
    return found and found[1]


def check_tensors(
    file: Path | None,
    state: "Mapping[str, Tensor]",
    wanted: "Mapping[str, torch.Size]",
    layers: int | None,
    table: str | None,
) -> None:
    """Refuse (WeightsError) weights that are not those of a model with the parameters `wanted`, by name.

    layers: how many the whole model has, of which `wanted` may be the first; None: the file has what is wanted and no
    more. table: the parameter that may have any number of rows.
    """
    if lacking := sorted(wanted.keys() - state.keys()):
        raise WeightsError(f"{file}: these weights lack {len(lacking)} tensors of the backbone, {lacking[0]} for one")
    if layers is None:
        more = state.keys() - wanted.keys()
    else:
        stacks = {_stack(name) for name in wanted} - {None}
        more = {name for name in state if _stack(name) in stacks and (layer_of(name) or 0) >= layers}
    if more:
        raise WeightsError(f"{file}: tensor {min(more)} is in no layer of the backbone, and would not be used")
    for name, expected in wanted.items():
        tensor, skip = state[name], int(name == table)
        if tensor.dim() != len(expected) or tensor.shape[skip:] != expected[skip:]:
            raise WeightsError(
                f"{file}: tensor {name} has the shape {tuple(tensor.shape)}, but the backbone takes {tuple(expected)}"
            )
        if not tensor.isfinite().all():
            raise WeightsError(f"{file}: tensor {name} has values that are not finite")
    _check_not_zero(file, {name: state[name] for name in wanted})


def _check_not_zero(file: Path | None, state: "Mapping[str, Tensor]") -> None:
    """Refuse (WeightsError) a layer without any matrix that is not all zeros: nobody trained it, and a copy broke off.
    A single matrix of zeros is none: some models begin, and some end, with one."""
    alive: dict[str, bool] = {}
    for name, tensor in state.items():
        if tensor.dim() > 1 and (found := re.match(r".*?\.\d+\.", name)):
            alive[found[0]] = alive.get(found[0], False) or bool(tensor.any())
    if dead := [layer for layer, any_value in alive.items() if not any_value]:
        raise WeightsError(
            f"{file}: all matrices below {min(dead).rstrip('.')} are zeros: these weights are not trained, or their "
            "file is not whole. Save or download it again"
        )


def kept_state(path: Path) -> "dict[str, Tensor]":
    """The backbone's weights that a sweep kept, under the library's names; raises WeightsError if it cannot be read."""
    from safetensors.torch import load_file

    try:
        kept, types = load_file(path), _types(path)
    except (OSError, SafetensorError) as error:
        raise WeightsError(f"{path}: the weights that a sweep kept cannot be read: {error}") from error
    _check_types(path, types, kept)
    prefix = "backbone."
    return {name.removeprefix(prefix): tensor for name, tensor in kept.items() if name.startswith(prefix)}


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
