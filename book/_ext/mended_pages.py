"""Mends what other extensions write into the pages, as a browser's console and axe-core find it."""

from typing import Any

CITATIONS = {  # a list of links in elements whose role browsers no longer know
    ' role="list" class="citation-list"': ' class="citation-list"',
    ' role="doc-biblioentry"': "",
}


def mend(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Scripts that an extension adds while Sphinx reads are listed again when it writes: constants declared twice."""
    if "script_files" in context:
        each = {(script.filename, script.attributes.get("body")): script for script in context["script_files"]}
        context["script_files"] = list(each.values())
    for written, mended in CITATIONS.items():
        context["body"] = context.get("body", "").replace(written, mended)


def setup(app: Any) -> dict[str, bool]:
    app.connect("html-page-context", mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
