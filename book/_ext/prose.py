"""In hand-written prose, as in tables: rates stay on one line, and an abbreviation explains itself where it is first
met."""

import re
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from fpt.show.html import ABBREVIATIONS, RATE

WORD = re.compile(rf"(?P<rate>{RATE.pattern})|\b(?P<abbreviation>{'|'.join(ABBREVIATIONS)})\b")
LEFT = (nodes.literal, nodes.literal_block, nodes.raw, nodes.math, nodes.abbreviation)


class Explain(SphinxPostTransform):
    """Marks the rates and abbreviations of a page, before it is written."""

    default_priority = 900  # when references are resolved

    def run(self, **_: Any) -> None:
        met: set[str] = set()
        for text in list(self.document.findall(nodes.Text)):
            if not any(isinstance(above, LEFT) for above in parents(text)):
                heading = isinstance(text.parent, nodes.title)  # where an abbreviation stays as it is
                text.parent.replace(text, marked(text.astext(), set(ABBREVIATIONS) if heading else met))


def parents(node: nodes.Node) -> list[nodes.Node]:
    """All that a node lies in."""
    found = []
    while node.parent is not None:
        node = node.parent
        found.append(node)
    return found


def marked(text: str, met: set[str]) -> list[nodes.Node]:
    """A text in pieces; `met` are the abbreviations that are explained before, and grows."""
    pieces: list[nodes.Node] = []
    end = 0
    for match in WORD.finditer(text):
        word = match[0]
        if word in met:
            continue
        pieces.append(nodes.Text(text[end : match.start()]))
        if match["rate"]:
            pieces.append(nodes.inline(word, word, classes=["rate"]))
        else:
            met.add(word)
            pieces.append(nodes.abbreviation(word, word, explanation=ABBREVIATIONS[word]))
        end = match.end()
    return [*pieces, nodes.Text(text[end:])]


def setup(app: Any) -> dict[str, bool]:
    app.add_post_transform(Explain)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
