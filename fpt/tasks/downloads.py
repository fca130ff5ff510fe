"""Files that are fetched: whole, with the checksum that is known of them, or not at all."""

import hashlib
import time
from collections.abc import Iterable
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

from tqdm import tqdm

from fpt.errors import DataError
from fpt.files import write_atomically

PATIENCE = 20.0  # seconds without an answer from a server before we give up
SLOWEST = 5_000  # bytes a second in the mean, after so many seconds: CIFAR-10 would take nine hours
CHECKSUMS = {32: "MD5", 64: "SHA-256"}  # by their hex digits


def fetch(path: Path, checksum: str, urls: Iterable[str], advice: str) -> Path:
    """The path, its file downloaded if it is not there and checked by its MD5 or SHA-256 (hex). Nothing is written
    before the whole is right.

    Raises DataError: for a file with another checksum, which stays as it is; within seconds when there is no network,
    saying what is missing and `advice`.
    """
    kind, reasons = CHECKSUMS[len(checksum)], []

    def differs(content: bytes) -> str:
        found = hashlib.new(kind.replace("-", ""), content).hexdigest()
        return "" if found == checksum else f"expected {kind} {checksum}, found {found}"

    for url in () if path.is_file() else urls:
        try:
            content = download(url, path.name)
            if other := differs(content):
                raise OSError(other)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content)
            return path
        except (OSError, HTTPException) as error:
            reasons.append(f"{url}: {error}")
    if not path.is_file():
        tried = "; ".join(reasons)
        raise DataError(f"{path} is missing and could not be downloaded ({tried}); its {kind} is {checksum}. {advice}")
    if other := differs(path.read_bytes()):
        raise DataError(f"{path} is truncated or altered: {other}. Delete it to fetch it anew. {advice}")
    return path


def download(url: str, name: str) -> bytes:
    """What the address answers; a terminal sees a bar. OSError for a server that is silent, or all but silent."""
    began, parts, received = time.monotonic(), [], 0
    with (
        urlopen(url, timeout=PATIENCE) as answer,
        tqdm(desc=f"downloading {name}", unit="B", unit_scale=True, disable=None, leave=False) as bar,
    ):
        while part := answer.read1(2**16):  # what has come, not so many bytes
            parts.append(part)
            received += len(part)
            bar.update(len(part))
            if (waited := time.monotonic() - began) > PATIENCE and received < SLOWEST * waited:
                raise OSError(f"it sent fewer than {SLOWEST:,} bytes a second for {waited:.0f} s")
    return b"".join(parts)
