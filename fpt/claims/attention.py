"""The rule on what the first layer attends to."""

from fpt.claims.case import Case, Comparison, of_test
from fpt.errors import check_known
from fpt.results.attention import maps_of, scores
from fpt.results.stats import paired


def attends(case: Case) -> list[Comparison]:
    """Scores of the first layer's attention (fpt.results.attention), above what `level` names."""
    at = case.rule.at
    if any(maps_of(cell, at).empty for cell in case.rows.values()):
        return []
    first, last = (case.rows[row] for row in (case.rule.rows[0], case.rule.rows[-1]))
    now, before = (scores(maps_of(first, at, trained)) for trained in (True, False))
    other = scores(maps_of(last, at))["mass"]
    tests = {
        "needed": {
            "twice an even spread": (now["mass"], 2 * now["chance"]),
            "untrained": (now["mass"], before["mass"]),
        },
        "lead": {"other strings": (now["lead"], 0 * now["lead"]), "untrained": (now["lead"], before["lead"])},
        "weaker": {"an even spread": (now["mass"], now["chance"]), f"less than {last.label}": (other, now["mass"])},
    }
    check_known("level of attends", str(case.rule.level), tests)
    return [
        Comparison(
            f"{first.label}: {name}",
            found,
            note=of_test(found),
            of=f"attention, {case.rule.level}: {name}",
            plus=(first.sweep,),
            minus=case.sweeps(case.rule.rows[1:]),
        ).within()
        for name, pair in tests[str(case.rule.level)].items()
        for found in [paired(*pair)]
    ]
