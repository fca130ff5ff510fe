"""Lets Sphinx read pages in parallel: two extensions that Jupyter Book loads do not say that it can, and the kernels of
pages that start at once must not choose the same port.

One of the extensions works on the finished table of contents, the other on PDF alone: neither has a part in reading a
page.
"""

from functools import partial
from typing import Any

from jupyter_cache.executors.utils import single_nb_execution
from myst_nb.core.execute import cache, direct

from fpt.sweeps.engines.kernel import OwnPython

SILENT = ("sphinx_multitoc_numbering", "sphinx_jupyterbook_latex")


def declare(app: Any) -> None:
    for name in SILENT:
        if name in app.extensions:
            app.extensions[name].parallel_read_safe = True


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", declare)
    for module in (cache, direct):  # with and without a cache of executed pages
        module.single_nb_execution = partial(single_nb_execution, kernel_manager_class=OwnPython)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
