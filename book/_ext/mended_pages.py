"""Mends what other extensions write into the pages, as a browser's console and axe-core find it."""

from typing import Any

WRITTEN = {
    ' role="list" class="citation-list"': ' class="citation-list"',  # of entries whose role browsers no longer know
    ' role="doc-biblioentry"': "",
    ' aria-label="Toggle hidden content"': "",  # hides the name that is shown
}


def mend(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Scripts that an extension adds while Sphinx reads are listed again when it writes: constants declared twice."""
    if "script_files" in context:
        each = {(script.filename or "", script.attributes.get("body")): script for script in context["script_files"]}
        context["script_files"] = list(each.values())
    for written, mended in WRITTEN.items():
        context["body"] = context.get("body", "").replace(written, mended)


def setup(app: Any) -> dict[str, bool]:
    app.connect("html-page-context", mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
