"""The rule on what the first layer attends to."""

from fpt.claims.case import Case, Comparison, of_test
from fpt.errors import check_known
from fpt.results.attention import maps_of, scores
from fpt.results.stats import paired


def attends(case: Case) -> list[Comparison]:
    """Scores of the first layer's attention (fpt.results.attention), above what `level` names."""
    at, first, last = case.any_cell.rate(case.rule.at), case.rule.rows[0], case.rule.rows[-1]
    maps = {row: maps_of(arm, at) for row, arm in case.arms.items()}
    if any(each.empty for each in maps.values()):
        return []
    now, other = scores(maps[first]), scores(maps[last])["mass"]
    before = scores(maps_of(case.arms[first], at, trained=False))
    tests = {
        "needed": {
            "twice an even spread": (now["mass"], 2 * now["chance"]),
            "untrained": (now["mass"], before["mass"]),
        },
        "lead": {"other strings": (now["lead"], 0 * now["lead"]), "untrained": (now["lead"], before["lead"])},
        "weaker": {
            "an even spread": (now["mass"], now["chance"]),
            f"less than {case.label(last)}": (other, now["mass"]),
        },
    }
    check_known("level of attends", str(case.rule.level), tests)
    found = {name: paired(*both) for name, both in tests[str(case.rule.level)].items()}
    return [
        Comparison(
            f"{case.label(first)}: {name}",
            estimate,
            note=of_test(estimate),
            of=f"attention, {case.rule.level}: {name}",
            plus=case.sweeps([first]),
            minus=case.sweeps(case.rule.rows[1:]),
        ).within()
        for name, estimate in found.items()
    ]
