"""The ladder of ListOps as a figure, with every accuracy that a paper prints."""

import seaborn as sns
from matplotlib.figure import Figure

from fpt.evidence.baselines import MAJORITY, OPERATOR
from fpt.evidence.ladder import DIGITS, placed, rungs
from fpt.evidence.show.figures import GREY, panels_of, shared_legend
from fpt.evidence.show.numbers import percent
from fpt.papers.schema import LEVELS

DRAWN = (
    "chance",
    MAJORITY,
    OPERATOR,
    DIGITS,
    *LEVELS[1:5],
)  # the rungs above are close together, and nobody stands there


def ladder_figure() -> Figure:
    """Every printed accuracy as a dot, a line a row, with the rungs as lines from top to bottom."""
    frame, lines = placed(), {name: rung.share for name, rung in rungs().items() if name in DRAWN}
    blind = 100 * rungs("listops", "released")[DIGITS].share
    figure, (axes,) = panels_of(1, 0.15 * len(frame) + 0.6)
    figure.set_figwidth(8)  # inches: the names of rows are long
    for name, share in lines.items():
        style = ":" if name in LEVELS else "-"
        axes.axvline(100 * share, color=GREY, linewidth=1, linestyle=style)
        words, at = f"{name} {100 * share:.0f}", (100 * share, 1.0)
        axes.annotate(words, at, (0, 3), ("data", "axes fraction"), "offset points", rotation=35, fontsize=8)
    axes.axvline(blind, color=GREY, linewidth=1, linestyle="--")
    axes.annotate(
        f"{DIGITS} without brackets {blind:.0f}",
        (blind, len(frame) - 1),
        (4, 0),
        textcoords="offset points",
        fontsize=8,
    )
    sns.scatterplot(frame.assign(line=frame.index), x="accuracy", y="line", hue="paper", palette="colorblind", ax=axes)
    axes.set_yticks(frame.index, frame["row"] + ", " + frame["where"].str.partition(",")[0], fontsize=7)
    axes.set(xlabel="accuracy on ListOps (%)", ylabel="", xlim=(5, 95), ylim=(len(frame), -1))
    axes.grid(visible=False)
    shared_legend(figure, [axes])
    rungs_in_words = ", ".join(f"{name} {percent(share)}" for name, share in lines.items())
    dots = "; ".join(frame["row"] + frame["accuracy"].map(" {:g}, ".format) + frame["on the ladder"])
    words = f"Rungs: {rungs_in_words}, without brackets {DIGITS} {blind:.1f}. Printed: {dots}."
    figure.set_label(f"Printed accuracies on the ladder of ListOps. {words}")
    return figure
