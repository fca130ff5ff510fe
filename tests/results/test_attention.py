"""Scores of attention against a hand-made map."""

import numpy as np
import pandas as pd
import pytest

from fpt.results.attention import aligned, attended, scores

TOKENS = {"bit-xor": (10, 5), "bit-memory": (16, 4)}  # all, and those that are queries


def maps(task: str, share: float) -> pd.DataFrame:
    """Every query spreads `share` over what it needs, and the rest evenly over what else it sees."""
    tokens, queries = TOKENS[task]
    rows = []
    for query in range(tokens - queries, tokens):
        needed = [query - queries, query] if task == "bit-xor" else [4, 5, 6, 7]
        for key in range(query + 1):
            rest = (1 - share) / (query + 1 - len(needed))
            weight = share / len(needed) if key in needed else rest
            rows.append((query, key, weight, weight * (key in needed), (key in needed) / (query + 1)))
    frame = pd.DataFrame(rows, columns=["query", "key", "weight", "relevant", "chance"])
    return frame.assign(learning_rate=1e-3, seed=0, trained=True)


def test_scores_are_what_the_map_says() -> None:
    xor = scores(maps("bit-xor", 0.6))
    assert xor["mass"][0] == pytest.approx(0.6)
    assert xor["chance"][0] == pytest.approx(np.mean([2 / (query + 1) for query in range(5, 10)]))
    assert xor["lead"].isna().all()
    memory = scores(maps("bit-memory", 0.6))
    least = min(0.6 - 4 * 0.4 / (query + 1 - 4) for query in range(12, 16))
    assert memory["lead"][0] == pytest.approx(least)


def test_strings_are_put_in_order_by_the_one_that_matches() -> None:
    weights = aligned(maps("bit-memory", 0.6))["weight"].unstack()
    assert list(weights) == [f"{what} {n}" for what in ("match", "other", "query") for n in (1, 2, 3, 4)]
    assert list(weights.index) == [f"query {n}" for n in (1, 2, 3, 4)]
    assert weights.loc["query 4", "match 1"] == pytest.approx(0.6 / 4)
    assert weights.loc["query 4", "other 1"] == weights.loc["query 4", "query 1"] == pytest.approx(0.4 / 12)
    xor = aligned(maps("bit-xor", 0.6))["needed"].unstack(fill_value=False)
    assert list(xor.columns[xor.loc[7]]) == [2, 7]


def test_an_arms_attention_is_a_level_in_percent() -> None:
    shown = attended("laptop-lu2021", "FP", task="bit-memory", score="lead")
    before = attended("laptop-lu2021", "FP", task="bit-memory", score="lead", trained=False)
    assert -100 < before.mean < shown.low < shown.mean < shown.high < 100
    assert shown.n == before.n == 8
