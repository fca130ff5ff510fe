"""What the libraries below torch are told, and that their products stay the same."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fpt.training import libraries

AMD, INTEL = "vendor_id : AuthenticAMD\nflags : fpu {}\n", "vendor_id : GenuineIntel\nflags : fpu avx512f\n"
PRODUCTS = """
import torch
from fpt.training import libraries
source = torch.Generator().manual_seed(0)
left, right = (torch.randn(3, 128, 128, generator=source) for _ in range(2))
print(float((torch.bmm(left, right) - torch.bmm(left.double(), right.double())).abs().max()))
print(libraries.wide_products_are_on())
"""


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A machine with this processor, an empty cache, and this search path for programs."""

    def processor(words: str, path: str | None = None, cache: Path = tmp_path / "cache") -> str:
        (tmp_path / "cpuinfo").write_text(words)
        monkeypatch.setattr(libraries, "PROCESSOR", tmp_path / "cpuinfo")
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
        if path is not None:
            monkeypatch.setenv("PATH", path)
        libraries.wide_products.cache_clear()
        return libraries.wide_products()

    monkeypatch.delenv("FPT_PRELOAD", raising=False)
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    yield processor
    libraries.wide_products.cache_clear()


@pytest.mark.parametrize("words", [INTEL, AMD.format("avx2"), ""])
def test_nothing_is_preloaded_where_nothing_is_to_be_gained(on, words: str) -> None:
    assert on(words) == ""


def test_it_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    monkeypatch.setenv("FPT_PRELOAD", "0")
    monkeypatch.setattr(libraries, "wide_products", lambda: "/usr/lib/wide.so")
    assert libraries.faster_libraries()["LD_PRELOAD"] == ""
    monkeypatch.delenv("FPT_PRELOAD")
    assert libraries.faster_libraries()["LD_PRELOAD"] == "/usr/lib/wide.so"


def test_without_a_compiler_it_says_what_is_lost(on) -> None:
    with pytest.warns(UserWarning, match="C compiler"):
        assert on(AMD.format("avx512f"), path="") == ""


@pytest.mark.skipif(sys.platform != "linux", reason="libraries are preloaded on Linux alone")
def test_products_are_the_same(on) -> None:
    library = on(AMD.format("avx512f"))
    assert Path(library).is_file()
    assert library == f"{os.environ['XDG_CACHE_HOME']}/fpt/mkl-avx512.so"
    built = Path(library).stat().st_mtime_ns
    assert on(AMD.format("avx512f")) == library
    assert Path(library).stat().st_mtime_ns == built, "it is built once"
    environment = os.environ | libraries.faster_libraries()
    assert environment["LD_PRELOAD"] == library
    command = [sys.executable, "-c", PRODUCTS]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert found.stderr == ""
    error, are_on = found.stdout.split()
    assert float(error) < 1e-4
    assert are_on == "True"
    assert not libraries.wide_products_are_on()  # in this process, which has no FPT_PRELOAD but 0


@pytest.mark.parametrize("name", ["my dir", "a:b"])
def test_a_path_that_cannot_be_preloaded_is_named(on, name: str, tmp_path: Path) -> None:
    """The dynamic linker would take a path with a space or a colon for two."""
    with pytest.warns(UserWarning, match=name):
        assert on(AMD.format("avx512f"), cache=tmp_path / name) == ""


def test_what_was_preloaded_already_stays(on, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/other.so")
    assert on(INTEL) == ""
    assert libraries.faster_libraries()["LD_PRELOAD"] == "/usr/lib/other.so"
