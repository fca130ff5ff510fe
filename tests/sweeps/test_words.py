"""Names of sweeps: short, and no two of a study on one task alike. Those of the repository: test_study.py."""

from fpt.sweeps.spec import resolve
from fpt.sweeps.words import labels, legend_parts


def named(*fields: dict[str, object]) -> list[str]:
    plain = {"task": "digits", "arm": "frozen-pretrained", "learning_rates": [1e-3], "seeds": [0]}
    specs = [resolve({**plain, **each}) for each in fields]
    found = labels(specs)
    return [found[spec.folder_name] for spec in specs]


def test_what_differs_is_named_and_nothing_else() -> None:
    assert named({}, {"arm": "frozen-random"}) == ["FP", "FR"]
    fixed, louder = {"arm": "unfrozen-random", "random_init": "fixed"}, {"arm": "frozen-random", "random_gain": 2.0}
    assert named(fixed, louder, {"arm": "output-pretrained"}) == ["UR fixed", "FR x2", "output-pretrained"]
    assert named({"warmup": 0.1}, {"arm": "frozen-random", "warmup": 0.1}) == ["FP", "FR"]
    slowed = {"schedule": "cosine", "head_rate": 1e-3, "weight_decay": 0.01}
    assert named({}, slowed) == ["FP", "FP (cosine schedule, head rate 0.001, weight decay 0.01)"]
    assert named({}, {"warmup": 0.1}, {"clip": None}) == ["FP", "FP (warm-up 0.1)", "FP (no clipping)"]
    assert named({}, {"backbone_options": {"layers": 2}}, {"task": "bit-xor"}) == ["FP", "FP (layers 2)", "FP"]
    (_, both) = named({}, {"backbone": "minilm", "data_fraction": 0.1})
    assert "minilm" in both
    assert "10% of the data" in both


def test_grid_and_budget_are_named_where_nothing_else_differs() -> None:
    assert named({}, {"arm": "frozen-random", "seeds": [1, 2]}) == ["FP", "FR"]
    assert named({"seeds": [0]}, {"seeds": [1, 2]}) == ["FP (seeds 0)", "FP (seeds 1, 2)"]
    assert named({}, {"steps": 500}) == ["FP", "FP (steps 500)"]
    assert named({}, {"steps": 500}, {"warmup": 0.1}) == ["FP", "FP (steps 500)", "FP (warm-up 0.1)"]
    first, second = named({}, {"measures": ["attention"]})
    assert first != second


def test_a_probe_and_what_starts_from_one_are_arms_of_their_own() -> None:
    probe = {"arm": "output-pretrained", "solver": "logistic", "steps": 1, "learning_rates": [0.1, 1.0]}
    first, probed, plain = named(probe, {"arm": "lora-pretrained", "probe": 0.1}, {"arm": "lora-pretrained"})
    assert len({first, probed, plain}) == 3
    assert first.startswith("probe")
    assert plain == "LP"
    assert "0.1" in probed


def test_legends_are_for_readers_who_do_not_know_the_fields() -> None:
    plain = {"task": "digits", "arm": "frozen-random"}
    shuffled = {"random_init": "fixed", "shuffle_tokens": True, "backbone_options": {"layers": 2}}
    changes = ({}, {"data_fraction": 0.1}, shuffled, {"backbone": "minilm", "dropout": 0.0})
    assert legend_parts([plain | change for change in changes]) == [
        ("frozen random weights", []),
        ("frozen random weights", ["10% of the data"]),
        ("frozen random weights, fixed scale", ["shuffled tokens", "2 layers"]),
        ("frozen random weights", ["dropout 0", "MiniLM"]),
    ]
