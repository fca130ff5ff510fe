"""Tables: results per sweep, attention, claims and verdicts."""

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from fpt.claims.reading import seeds_for_a_point
from fpt.claims.verdicts import Verdict
from fpt.results.attention import maps_of, scores
from fpt.results.cells import AT_PAPERS_RATE, NOT_RUN, TUNED, Cell
from fpt.results.runs import rate_text
from fpt.results.stats import mean_interval, sampling_noise
from fpt.show.html import Table
from fpt.show.numbers import difference, papers_rates, percent, title
from fpt.sweeps import selection


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per sweep of `load_runs`: the rates that the seeds choose for each other, how flat the optimum is, and
    the tuned test accuracy with its 95% interval."""
    rows = []
    for (task, name, _), sweep in runs.groupby(["task", "name", "sweep"], sort=False):
        tuned = sweep[sweep["selected"].astype(bool)]
        flat = selection.within_one_se(selection.by_seed(sweep))
        rows.append(
            {
                "task": task,
                "arm": name,
                "learning rate": chosen(tuned) or "none eligible",
                "edge of grid": "yes" if sweep["at_edge"].any() else "",
                "within one SE": ", ".join(map(rate_text, flat)),
                "test accuracy (95% interval)": _spread(tuned["test_accuracy"], sweep["sampled_from"].iloc[0]),
                "seeds": sweep["seed"].nunique(),
                "diverged runs": int(sweep["diverged_at"].notna().sum()),
            }
        )
    return pd.DataFrame(rows)


def chosen(tuned: pd.DataFrame) -> str:
    """The rates that the seeds choose for each other, with their number of seeds where there are several."""
    counts = tuned["learning_rate"].value_counts().sort_index()
    several = len(counts) > 1
    return ", ".join(rate_text(rate) + (f" ({n} seed{'s' * (n > 1)})" if several else "") for rate, n in counts.items())


def attention_table(cells: Mapping[str, Cell], caption: str) -> Table:
    """Attention on the needed tokens in percent of all: after training at both rates, before it, and by chance."""
    rows = []
    for cell in cells.values():
        if maps_of(cell).empty:
            rows.append({"weights": cell.label, TUNED: cell.problem or "not measured"})
            continue
        after, before = scores(maps_of(cell)), scores(maps_of(cell, trained=False))
        at_paper = maps_of(cell, AT_PAPERS_RATE)
        line = {"weights": cell.label, TUNED: _spread(after["mass"])}
        line[f"at {papers_rates([cell])}"] = _spread(scores(at_paper)["mass"]) if len(at_paper) else NOT_RUN
        line |= {"untrained": _spread(before["mass"]), "even spread": percent(before["chance"].mean())}
        if after["lead"].notna().any():
            line |= {"least lead": _spread(after["lead"]), "least lead, untrained": _spread(before["lead"])}
        rows.append(line)
    return Table(pd.DataFrame(rows).fillna(""), caption)


def _spread(values: "pd.Series[float]", images: float = math.nan) -> str:
    """Mean and interval; `images`: of a test set that is the same for all seeds."""
    mean, low, high = mean_interval(values, sampling_noise(float(values.mean()), images))
    return percent(mean) if math.isnan(low) else f"{percent(mean)} ({percent(low)} to {percent(high)})"


def verdict_table(verdicts: Sequence[Verdict], caption: str = "") -> Table:
    """One row per comparison of a claim, and one for all of them where it is corrected together with other claims;
    claims that no study can decide share the last rows."""
    rows, untried = [], dict[str, list[str]]()  # why not -> claims
    for verdict in verdicts:
        base = {"claim": verdict.claim, "study": verdict.study, "scale": verdict.scale, "setting": verdict.setting}
        if not verdict.parts:
            untried.setdefault(verdict.note or verdict.word, []).append(verdict.claim)
        for part in verdict.parts:
            shown = {"task": title(part.task), "comparison": part.comparison, "verdict": part.word}
            shown["difference (95% interval)"] = difference(part)
            shown["half-width"] = "" if math.isnan(half := part.test.half_width) else percent(half)
            rate = "" if verdict.at == TUNED else "the paper's"
            note = "; ".join(filter(None, (part.note, seeds_for_a_point(part.test), part.seeds)))
            rows.append(base | {"rate": rate, **shown, "seeds": str(part.test.n or ""), "note": note})
        if verdict.primary:
            rows.append(base | {"comparison": "all of it", "verdict": verdict.word, "note": verdict.note})
    rows += [{"claim": ", ".join(dict.fromkeys(names)), "verdict": why} for why, names in untried.items()]
    return Table(pd.DataFrame(rows).fillna(""), caption)
