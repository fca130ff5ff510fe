"""Findings of the package: the numbers that papers print on their questions."""

from fpt.papers import findings, printed_ranges


def test_the_printed_range_is_what_the_tables_print():
    assert printed_ranges(findings()["train-all"]) == {"rothermel2021": (0.5, 13.1)}
    assert printed_ranges(findings()["from-scratch"]) == {"lu2021": (-3.4, 3.7), "rothermel2021": (-11.5, -0.2)}


def test_the_best_of_several_rows_is_subtracted():
    best = findings()["best-arm"]
    assert printed_ranges(best) == {"rothermel2021": (-1.3, 5.8)}
    assert printed_ranges(best.model_copy(update={"printed": ()})) == {}
