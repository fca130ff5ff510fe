"""Every claim of both papers in a table: its verdict, or why it has none, and where to read on."""

from collections.abc import Iterable, Sequence

import pandas as pd

from fpt.evidence.arithmetic import arithmetic_verdicts
from fpt.evidence.attention import attention_rulings
from fpt.evidence.claims import SOURCES, claims
from fpt.evidence.exhibits import title
from fpt.evidence.experiments import FIXED, NOT_AT_THIS_SCALE, NOT_RUN, TUNED, Results, experiments
from fpt.evidence.rulings import Ruling, overall, rulings

DOCUMENTARY = {
    "L-09": "what the text says of its tuning",
    "L-25": "not falsifiable as stated",
    "L-48": "what the text says of its recipe",
}
SEE_PAGE = {"L-32": "figure of section 3.8", "L-51": "the page on tasks"}
SCALED = "at the paper's rate, scaled to the width"  # the column of the second reading
HEADLINES = {name for names in SOURCES.values() for name in names}


def lu_rulings(results: Results) -> list[Ruling]:
    """Every ruling on a claim of Lu et al. that runs decide."""
    found = [ruling for entry in experiments().values() for ruling in rulings(entry, results)]
    return [*found, *attention_rulings(results)]


def claims_table(results: Results, found: Sequence[Ruling] | None = None) -> pd.DataFrame:
    """All claims of Lu et al.: the verdict at both readings over the tasks that were tried, and which these are."""
    found = lu_rulings(results) if found is None else found
    counted = arithmetic_verdicts()
    rows = []
    for name, entry in claims().items():
        if not name.startswith("L-"):
            continue
        row = {"id": name, "claim": entry["statement"], "where": entry["where"]}
        own = [ruling for ruling in found if name in ruling.claim.split(", ")]
        if own:
            row |= _verdicts(own)
        elif name in counted:
            row |= {"tuned": counted[name][0], "tried on": f"computed: {counted[name][1]}"}
        elif name in SEE_PAGE:
            row |= {"tuned": "computed: see page", "tried on": SEE_PAGE[name]}
        elif name in DOCUMENTARY:
            row |= {"tuned": "documentary", "tried on": DOCUMENTARY[name]}
        else:
            row |= {"tuned": NOT_AT_THIS_SCALE}
        rows.append(row)
    columns = {"tuned": "verdict", "fixed": SCALED}
    order = ["id", "claim", "where", "tuned", "fixed", "tried on"]
    return pd.DataFrame(rows).reindex(columns=order).fillna("").rename(columns=columns)


def other_claims_table() -> pd.DataFrame:
    """The claims of Rothermel et al. (R), those that set the papers against each other (X), and oddities (O)."""
    rows = [
        (name, entry["statement"], entry["where"], "the headline verdicts" if name in HEADLINES else "")
        for name, entry in claims().items()
        if not name.startswith("L-")
    ]
    return pd.DataFrame(rows, columns=["id", "claim", "where", "answered"])


def tally(table: pd.DataFrame) -> str:
    """How many claims have which verdict, in words."""
    words = table["verdict"].str.replace(" (exploratory)", "", regex=False)
    return ", ".join(f"{count} {word}" for word, count in words.value_counts(sort=False).items())


def _verdicts(own: Sequence[Ruling]) -> dict[str, str]:
    by_reading = {reading: [r for r in own if r.reading == reading] for reading in (TUNED, FIXED)}
    only = by_reading[TUNED] or by_reading[FIXED]  # a claim about the paper's rate has no other reading
    row = {"tuned": _word(only)}
    if by_reading[TUNED] and by_reading[FIXED]:
        row["fixed"] = _word(by_reading[FIXED])
    decided = [r for r in only if r.verdict not in (NOT_AT_THIS_SCALE, NOT_RUN)]
    tried: dict[str, list[str]] = {}
    for ruling in decided:
        tried.setdefault(ruling.task, []).append(ruling.verdict)
    return row | {"tried on": "; ".join(f"{title(task)}: {overall(words)}" for task, words in tried.items())}


def _word(some: Iterable[Ruling]) -> str:
    some = list(some)
    mark = " (exploratory)" if any(ruling.exploratory for ruling in some) else ""
    return overall(ruling.verdict for ruling in some) + mark
