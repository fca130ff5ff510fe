"""Lets Sphinx read pages in parallel: two extensions that Jupyter Book loads do not say that it can.

One works on the finished table of contents, the other on PDF alone: neither has a part in reading a page.
"""

from typing import Any

SILENT = ("sphinx_multitoc_numbering", "sphinx_jupyterbook_latex")


def declare(app: Any) -> None:
    for name in SILENT:
        if name in app.extensions:
            app.extensions[name].parallel_read_safe = True


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", declare)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
