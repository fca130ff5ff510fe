"""What can be counted, and the table of every claim."""

from pathlib import Path

import synthetic

from fpt.evidence import claims_table, other_claims_table, tally
from fpt.evidence.arithmetic import (
    arithmetic_verdicts,
    library_total,
    lstm_table,
    parameter_table,
    size_table,
    spread,
    spread_figure,
    trained_as_printed,
)
from fpt.evidence.claims import claims
from fpt.evidence.experiments import Results
from fpt.evidence.show.figures import alt_text
from fpt.evidence.show.html import Picture


def test_the_papers_formula_on_the_live_models() -> None:
    names = ("gpt2", "gpt2-medium", "gpt2-large")
    assert [trained_as_printed(name) for name in names] == [106_752, 191_488, 300_800]
    assert [library_total(name) for name in names] == [124_439_808, 354_823_168, 774_030_080]


def test_misprints_stand_beside_what_is_right() -> None:
    table = parameter_table().set_index("group")
    assert list(table.loc["layer norm"])[:2] == ["36,684", "38,400"]
    assert "36,864" in table.loc["layer norm", "note"]
    assert list(table.loc["positions"])[:2] == ["49,512", "49,152"]
    assert list(table.loc["share of the model"])[:2] == ["0.086%", "0.086%"]
    assert list(table.loc["share of XL"])[:2] == ["0.029%", "0.029%"]
    assert list(size_table()["layers, width, heads"]) == ["12, 768, 12", "24, 1024, 16", "36, 1280, 20"]
    assert list(lstm_table()["model"])[1:] == ["lstm, 12 layers", "lstm-released, 12 layers"]


def test_verdicts_of_arithmetic() -> None:
    words = {name: word for name, (word, _) in arithmetic_verdicts().items()}
    notes = {name: note for name, (_, note) in arithmetic_verdicts().items()}
    assert "117M is 124.4M, 345M is 354.8M" in notes["L-29"]
    assert "36,684 is 36,864, 49,512 is 49,152" in notes["L-30"]
    assert "layer-norm gains" in notes["L-52"]
    assert words.pop("L-19") == "contradicted"  # its layer norms alone are four times the transformer's
    assert set(words) == {"L-29", "L-30", "L-50", "L-52"}
    assert set(words.values()) == {"supported"}


def test_the_spread_of_weights_by_layer() -> None:
    frame = spread("tiny-lm")
    assert len(frame) == 4 * 2 * 2
    assert frame["std"].between(0.01, 0.5).all()
    figure = spread_figure(("tiny-lm",))
    assert "tiny-lm, attention weights" in alt_text(figure)
    Picture(figure, "What to see.")._repr_html_()
    assert spread("gpt2-xl").empty


def test_every_claim_is_in_one_of_the_tables(tmp_path: Path) -> None:
    table, others = claims_table(Results(synthetic.workspace(tmp_path))), other_claims_table()
    assert [*table["id"], *others["id"]] == sorted(claims(), key=lambda name: not name.startswith("L-"))
    assert (table["verdict"] != "").all()
    words = table.set_index("id")["verdict"]
    assert (words["L-09"], words["L-32"]) == ("documentary", "computed: see page")
    assert words["L-28"] == "not tested at this scale"
    assert words["L-10"] == "not run yet"
    assert words["L-43"] == words["L-40"]  # one test answers both
    assert "not tested at this scale" in tally(table)
