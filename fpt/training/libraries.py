"""The environment in which the libraries below torch work faster: it has to be set before a process starts."""

import os
import shutil
import subprocess
import sys
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path

from fpt.files import cache_folder, replaced

# glibc gives big blocks back to the kernel at every free and faults them in again: 1.3 times slower, measured.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**32), "MALLOC_TRIM_THRESHOLD_": str(2**32)}
# MKL, torch's library of float32 products, uses AVX-512 only where this function of its own says that Intel made the
# processor. On one of AMD's that has AVX-512: 77 GFLOP/s a core without, 207 with, measured.
IS_INTEL = "int mkl_serv_intel_cpu_true(void) { return 1; }\n"
PROCESSOR = Path("/proc/cpuinfo")
LIBRARY = "mkl-avx512.so"
MAPPED = Path("/proc/self/maps")  # the libraries of this process
SEPARATORS = " :"  # of the paths in LD_PRELOAD, which has no way to quote them


def faster_libraries() -> dict[str, str]:
    """Environment variables for a process that trains; with FPT_PRELOAD=0 nothing of ours is preloaded."""
    wide = "" if os.environ.get("FPT_PRELOAD") == "0" else wide_products()
    preloaded = dict.fromkeys([wide, *os.environ.get("LD_PRELOAD", "").split(":")])
    return KEEP_MEMORY | {"LD_PRELOAD": ":".join(filter(None, preloaded))}


@cache
def wide_products() -> str:
    """A library to preload, in which MKL's function says yes; empty where nothing is to be gained, and where there is
    no C compiler.

    It is built once, into the cache. Products differ in rounding, as between two machines.
    """
    try:
        processor = PROCESSOR.read_text()
    except OSError:
        return ""
    if sys.platform != "linux" or "AuthenticAMD" not in processor or "avx512f" not in processor:
        return ""
    library, compiler = cache_folder() / LIBRARY, shutil.which("cc")
    if any(separator in str(library) for separator in SEPARATORS):
        warnings.warn(
            f"float32 products take 2.6 times as long on this machine: {library} cannot be preloaded, since LD_PRELOAD "
            "takes no path with a space or a colon; set XDG_CACHE_HOME to a folder without them",
            stacklevel=2,
        )
        return ""
    if compiler and not library.is_file():
        with suppress(OSError, subprocess.CalledProcessError):  # a home that cannot be written, a compiler that fails
            library.parent.mkdir(parents=True, exist_ok=True)
            with replaced(library) as partial:
                command = [compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", str(partial)]
                subprocess.run(command, input=IS_INTEL, text=True, check=True, capture_output=True)
    if not library.is_file():
        warnings.warn("float32 products take 2.6 times as long as with a C compiler (cc) on this machine", stacklevel=2)
        return ""
    return str(library)


def wide_products_are_on() -> bool:
    """Whether this process computes with the library of `wide_products`: its products then differ in rounding."""
    try:
        return LIBRARY in MAPPED.read_text()
    except OSError:  # a system without /proc, where nothing is preloaded
        return False
