"""The page on labelled texts: accuracy over the rate, and over the labels, of each published way of training."""

from typing import Any

import pandas as pd

from fpt.results.baselines import LINEAR, counted
from fpt.results.estimate import PERCENT, number_text
from fpt.results.runs import rate_text
from fpt.results.texts import PROBE, TUNING, WAYS, Setting, Tried, linear, probes, suspicious, tried
from fpt.show import plot
from fpt.show.html import CaptionedFigure, Table
from fpt.show.places import NONE

TFIDF = "TF-IDF, linear SVM"
DEEPEST = 30  # points below the probe: runs that learned less lie below the panel, since they would flatten the others


def texts_by_rate(task: str, caption: str) -> CaptionedFigure:
    """Test accuracy over the learning rate, a panel a setting, a dot a tuning seed and a line a way of training through
    their means; the probe and the classifier without a model are lines across."""
    return CaptionedFigure(texts_figure(task), caption)


@plot.drawn
def texts_figure(task: str) -> plot.Plot:
    """What `texts_by_rate` shows."""
    settings = tried(task)
    if not settings:
        return plot.nothing()
    figure, panels = plot.panels_of(len(settings))
    frames, words, known = [], [], probes(task)
    for axes, (setting, ways) in zip(panels, settings.items(), strict=False):
        across = {"probe": known[setting.labels].level().value, TFIDF: 100 * linear(task, setting.labels).share}
        lines = [_line(axes, way, each).assign(setting=str(setting)) for way, each in ways.items()]
        for (name, level), style in zip(across.items(), ("--", ":"), strict=True):
            axes.axhline(level, color=plot.INK, linestyle=style, linewidth=1.2, label=name)
        plot.rate_axis(axes, pd.concat(lines)["rate"], "test accuracy (%)")
        axes.set_title(str(setting))
        axes.set_ylim(bottom=max(axes.get_ylim()[0], across["probe"] - DEEPEST))
        frames += lines
        words += [f"{setting}, {WAYS[way]}: {each.level()} at {rate_text(each.rate)}" for way, each in ways.items()]
        words += [f"{setting}, {name}: {number_text(level, PERCENT)}%" for name, level in across.items()]
    plot.shared_legend(figure, panels)
    arms = [each.arm for ways in settings.values() for each in ways.values()]
    return figure.describe(
        f"Test accuracy over the learning rate, with the rate that validation chose. {'; '.join(words)}.",
        pd.concat(frames, ignore_index=True),
        plot.runs_of([*arms, *(each.arm for each in known.values())]),
    )


def _line(axes: Any, way: str, each: Tried) -> pd.DataFrame:
    """One way of training: a dot a run, the line through the means, and a ring around the chosen rate."""
    found = 100 * each.arm.plane().sort_index(axis=1)
    look = plot.looks_of([each.arm.fields] * 2)[" " in way]  # from the probe it is a variant
    runs = found.rename_axis(columns="rate").melt(value_name="accuracy", ignore_index=False).reset_index()
    axes.plot(runs["rate"], runs["accuracy"], ".", color=look["color"], alpha=0.6, markersize=6)
    means = found.mean()
    axes.plot(means, label=WAYS[way], markersize=5, **look)
    ring: dict[str, Any] = {"marker": "o", "markersize": 13, "markerfacecolor": "none", "markeredgecolor": plot.INK}
    axes.plot([each.rate], [means[each.rate]], linestyle="none", **ring)
    return runs.assign(way=WAYS[way], chosen=each.rate)


def texts_table(task: str, caption: str, study: str = TUNING) -> Table:
    """A row a way of training that is published, few labels first: test accuracy in percent, the difference to the
    probe with as many labels, also without suspicious texts, and the rate; above them the classifier without a model,
    whose interval is of texts alone."""
    known, settings = probes(task, study=study), tried(task, study=study)
    lines = counted()
    options = lines[(lines["task"] == task) & (lines["what"] == LINEAR)]["options"]
    rows: list[dict[str, str]] = []
    for labels in sorted({int(each.get("labels", 0)) for each in options}, key=lambda each: each or float("inf")):
        score = linear(task, labels)
        low, high = (number_text(100 * each, PERCENT) for each in score.interval)
        told = f"{labels or 'all'} labels"  # on a phone it is a title
        level = f"{number_text(100 * score.share, PERCENT)} ({low} to {high})"
        rows.append({"labels a class": told, "trained": TFIDF, "test accuracy, %": level})
        if labels in known:
            rows.append({"labels a class": told} | _row(PROBE, known[labels]))
        for setting, ways in settings.items():
            if setting.labels == labels:
                rows += [{"labels a class": told} | _row(way, each, setting) for way, each in ways.items()]
    return Table(pd.DataFrame(rows).fillna(NONE), caption)


def _row(way: str, each: Tried, setting: Setting | None = None) -> dict[str, str]:
    steps = f", {setting.steps:,} steps" if setting else ""
    left_out = suspicious(each.arm.task)
    return {
        "trained": f"{WAYS[way]}{steps}",
        "test accuracy, %": each.level().cell,
        "minus the probe, points": each.over_probe().cell if setting else NONE,
        "without suspicious texts": each.over_probe(left_out=left_out).cell if setting else NONE,
        "rate": rate_text(each.rate) if setting else f"strength {each.rate:g}",
    }
