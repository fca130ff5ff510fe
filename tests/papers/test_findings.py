"""Findings of the package: every claim belongs to one question, and every question has what answers it."""

from collections import Counter

from fpt.papers import claims, findings, printed_ranges, rules_of


def test_every_claim_of_every_paper_belongs_to_exactly_one_finding():
    count = Counter(name for finding in findings().values() for name in finding.claims)
    assert {name: count[name] for name in claims()} == dict.fromkeys(claims(), 1)


def test_every_finding_has_a_contrast_or_says_why_it_has_none():
    for finding in findings().values():
        assert bool(rules_of(finding)) != bool(finding.read), finding.id


def test_the_printed_range_is_what_the_tables_print():
    assert printed_ranges(findings()["train-all"]) == {"rothermel2021": (0.5, 13.1)}
    assert printed_ranges(findings()["from-scratch"]) == {"lu2021": (-3.4, 3.7), "rothermel2021": (-11.5, -0.2)}


def test_the_best_of_several_rows_is_subtracted():
    best = findings()["best-arm"]
    assert printed_ranges(best) == {"rothermel2021": (-1.3, 5.8)}
    assert printed_ranges(best.model_copy(update={"printed": ()})) == {}
