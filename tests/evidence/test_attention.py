"""Scores of attention against a hand-made map, and the verdicts of figures 3 to 5."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import synthetic

from fpt.evidence.attention import aligned, attention_figure, attention_rulings, attention_table, scores
from fpt.evidence.experiments import Results
from fpt.evidence.show.figures import alt_text
from fpt.evidence.show.html import Picture
from fpt.sweeps import SweepSpec, load_study

STUDY = """
name: Attention
defaults: {backbone: gpt2, steps: 40, evaluations: 2, learning_rates: [1e-4, 1e-3, 1e-2],
           selection_seeds: [0, 1, 2], confirmation_seeds: [], reference_rates: [1e-3], measures: [attention]}
sweeps:
  - {task: bit-xor, arm: [frozen-pretrained, frozen-random], feeds: [lu-figure-3, lu-figure-5]}
  - {task: bit-memory, task_options: {strings: 3, length: 40, patch: 10}, arm: frozen-pretrained, feeds: [lu-figure-4]}
"""
TOKENS = {"bit-xor": (10, 5), "bit-memory": (16, 4)}  # all, and those that are queries


def maps(spec: SweepSpec, share: float, rate: float, seed: int, trained: bool) -> pd.DataFrame:
    """Every query spreads `share` over what it needs, and the rest evenly over what else it sees."""
    tokens, queries = TOKENS[spec.task]
    rows = []
    for query in range(tokens - queries, tokens):
        needed = [query - queries, query] if spec.task == "bit-xor" else [4, 5, 6, 7]
        for key in range(query + 1):
            rest = (1 - share) / (query + 1 - len(needed))
            weight = share / len(needed) if key in needed else rest
            rows.append((query, key, weight, weight * (key in needed), (key in needed) / (query + 1)))
    frame = pd.DataFrame(rows, columns=["query", "key", "weight", "relevant", "chance"])
    fields = {"sweep": spec.folder_name, "stage": "selection", "learning_rate": rate, "seed": seed, "trained": trained}
    return frame.assign(**fields)


def made(tmp_path: Path, shares: dict[str, float], untrained: float = 0.2) -> Results:
    study = synthetic.workspace(tmp_path, study=STUDY)
    synthetic.finish(study, accuracy=lambda spec, rate, seed: 0.9 if rate == 1e-3 else 0.5)
    for spec in load_study(study).sweeps:
        parts = [
            maps(spec, shares[spec.arm] + 0.001 * seed if trained else untrained, rate, seed, trained)
            for rate in spec.learning_rates
            for seed in spec.selection_seeds
            for trained in (False, True)
        ]
        pd.concat(parts).to_parquet(study / spec.folder_name / "attention.parquet", index=False)
    return Results(study)


def test_scores_are_what_the_map_says(tmp_path: Path) -> None:
    specs = {spec.task: spec for spec in load_study(synthetic.workspace(tmp_path, study=STUDY)).sweeps}
    xor = scores(maps(specs["bit-xor"], 0.6, 1e-3, 0, True))
    assert xor["mass"][0] == pytest.approx(0.6)
    assert xor["chance"][0] == pytest.approx(np.mean([2 / (query + 1) for query in range(5, 10)]))
    assert xor["lead"].isna().all()
    memory = scores(maps(specs["bit-memory"], 0.6, 1e-3, 0, True))
    least = min(0.6 - 4 * 0.4 / (query + 1 - 4) for query in range(12, 16))
    assert memory["lead"][0] == pytest.approx(least)


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ((0.8, 0.4), {"L-22": "supported", "L-23": "supported", "L-24": "supported"}),
        ((0.1, 0.4), {"L-22": "contradicted", "L-23": "contradicted", "L-24": "contradicted"}),
        ((0.8, 0.1), {"L-22": "supported", "L-23": "supported", "L-24": "contradicted"}),
    ],
)
def test_verdicts_on_attention(tmp_path: Path, shares: tuple[float, float], words: dict[str, str]) -> None:
    results = made(tmp_path, dict(zip(("frozen-pretrained", "frozen-random"), shares, strict=True)))
    found = attention_rulings(results)
    assert {ruling.claim: ruling.verdict for ruling in found} == words
    assert all(ruling.exploratory for ruling in found)
    assert len(found) == 6  # both readings


def test_a_lead_that_was_there_before_training_is_no_finding(tmp_path: Path) -> None:
    lead = made(tmp_path / "less", {"frozen-pretrained": 0.8, "frozen-random": 0.4})
    assert [r.verdict for r in attention_rulings(lead) if r.claim == "L-23"] == ["supported"] * 2
    # strings lead by more than nought before training too, and then training takes from it
    same = made(tmp_path / "same", {"frozen-pretrained": 0.35, "frozen-random": 0.4}, untrained=0.6)
    assert [r.verdict for r in attention_rulings(same) if r.claim == "L-23"] == ["contradicted"] * 2
    (one, _) = (r for r in attention_rulings(same) if r.claim == "L-23")
    assert one.tests[0].low > 0 > one.tests[1].high


def test_a_page_of_attention(tmp_path: Path) -> None:
    results = made(tmp_path, {"frozen-pretrained": 0.8, "frozen-random": 0.4})
    figure = attention_figure(results, "bit-xor")
    assert "FPT: 80.1% on the needed tokens (untrained 20.0%" in alt_text(figure)
    Picture(figure, "What to see.")._repr_html_()
    table = attention_table(results, "bit-xor").frame.set_index("weights")
    assert table.loc["FPT", "at 1e-3"].startswith("80.1 (")
    memory = attention_table(results, "bit-memory").frame.set_index("weights")
    assert memory.loc["FPT", "least lead, untrained"] != ""
    assert memory.loc["random", "at its own rate"] == "not tested at this scale"


def test_strings_are_put_in_order_by_the_one_that_matches(tmp_path: Path) -> None:
    specs = {spec.task: spec for spec in load_study(synthetic.workspace(tmp_path, study=STUDY)).sweeps}
    weights = aligned(maps(specs["bit-memory"], 0.6, 1e-3, 0, True))["weight"].unstack()
    assert list(weights) == [f"{what} {n}" for what in ("match", "other", "query") for n in (1, 2, 3, 4)]
    assert weights.loc[15, "match 1"] == pytest.approx(0.6 / 4)
    assert weights.loc[15, "other 1"] == weights.loc[15, "query 1"] == pytest.approx(0.4 / 12)
    xor = aligned(maps(specs["bit-xor"], 0.6, 1e-3, 0, True))["needed"].unstack(fill_value=False)
    assert list(xor.columns[xor.loc[7]]) == [2, 7]


def test_without_results_it_says_so(tmp_path: Path) -> None:
    results = Results(synthetic.workspace(tmp_path, study=STUDY))
    assert {ruling.verdict for ruling in attention_rulings(results)} == {"not run yet"}
    assert "no results" in alt_text(attention_figure(results, "bit-xor"))
    other = Results(synthetic.workspace(tmp_path / "other"))
    assert {ruling.verdict for ruling in attention_rulings(other)} == {"not tested at this scale"}
