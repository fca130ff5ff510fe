"""A study on a page of its own: whatever its data, its model and what of it was run."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pandas as pd
import pytest
import synthetic
from bs4 import BeautifulSoup
from chromium import CHROMIUM
from safetensors.numpy import save_file

from fpt.errors import SpecError
from fpt.models import ARMS
from fpt.results import StudyCells, every_study, find_study, load_runs
from fpt.results.mapping import write_mapping
from fpt.results.stats import paired
from fpt.show import report, setups, summary
from fpt.show.html import Page, Table, document
from fpt.show.report_page import compared_arms, pairs_table
from fpt.show.tables import yours_beside_ours, yours_table
from fpt.sweeps import load_study

OWN = """
name: My <own> study
defaults: {steps: 400, learning_rates: [1e-4, 1e-3, 1e-2], seeds: [0, 1, 2, 3], compute_type: float32}
sweeps:
  - {task: "npz:mine.npz", backbone: "hub:models/mine", arm: [frozen-pretrained, unfrozen-random]}
"""
LABEL = {arm.letters: arm.label for arm in ARMS.values()}
CONFIG = {
    "model_type": "llama", "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
    "num_attention_heads": 2, "max_position_embeddings": 64,
}  # fmt: skip


@pytest.fixture(scope="module")
def page(study: Path) -> BeautifulSoup:
    return BeautifulSoup(report(StudyCells(study)), "html.parser")


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with data and a model of the reader's, as its working directory."""
    monkeypatch.chdir(tmp_path)
    images, labels = np.zeros((20, 8, 8), np.uint8), np.arange(20) % 2
    np.savez("mine.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    (tmp_path / "models/mine").mkdir(parents=True)
    (tmp_path / "models/mine/config.json").write_text(json.dumps(CONFIG))
    save_file({"norm.weight": np.ones(16, np.float32)}, tmp_path / "models/mine/model.safetensors")
    return tmp_path


@pytest.mark.browser
def test_a_browser_runs_the_scripts_of_the_page_and_no_other(tmp_path: Path) -> None:
    """Should a name ever reach the page unescaped."""
    evil = """<img src="x" onerror="document.title='theirs'"><script>document.title = "theirs"</script>"""
    (tmp_path / "page.html").write_text(document("ours", Page([evil, Table(pd.DataFrame({"seed": ["1", "2"]}))])))
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "page.html"]
    seen = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120).stdout
    assert "<title>ours</title>" in seen
    assert '<button type="button">seed' in seen  # by our script


def headings(page: BeautifulSoup) -> list[str]:
    return [each.get_text() for each in page.select("h1, h2")]


def test_the_page_has_every_part_and_needs_nothing_beside_it(page: BeautifulSoup) -> None:
    assert headings(page) == [
        "A made-up study", "What was run", "Accuracy over the learning rate", "Tuned",
        "Learning rate and budget: Digits, tiny-lm (laptop)", "Claims that this study tests", "Where this comes from",
    ]  # fmt: skip
    assert [each.name for each in page.select("[src], link, iframe, object")] == []
    assert {str(link["href"]).partition(",")[0] for link in page.select("a")} == {"data:text/csv;charset=utf-8"}
    style, script = (page.select_one(name).string or "" for name in ("style", "script"))  # type: ignore[union-attr]
    assert not re.search(r"url\(|@import", style)
    assert "sortable" in script
    assert page.html is not None
    assert page.html["lang"] == "en"


def test_the_figures_are_those_of_the_book_with_words_and_sources(page: BeautifulSoup) -> None:
    images = page.select("figure.fpt [role=img]")
    assert len(images) == len(page.select("a[download]")) == 4
    assert [small.code.get_text() for small in page.select("figcaption small") if small.code] == [
        "learning_rate_figure", "budget_figure", "plane_figure", "crossing_figure",
    ]  # fmt: skip
    assert f"{LABEL['UP']} minus {LABEL['FP']}" in str(images[2]["aria-label"])


def test_claims_that_the_study_tests_have_their_verdict_and_no_others(page: BeautifulSoup) -> None:
    listed = [each.get_text().split()[-1] for each in page.select("summary")]
    assert {"R-01", "P-01", "P-02"} <= set(listed)
    assert "L-22" not in listed  # attention, which was not measured
    assert "not run" not in {each.get_text() for each in page.select("td strong")}


def test_own_numbers_stand_beside_published_ones(study: Path, tmp_path: Path) -> None:
    both = tmp_path / "runs" / "laptop"
    shutil.copytree(study.parents[1], tmp_path, dirs_exist_ok=True)
    assert yours_table(StudyCells(both)) is None
    for sweep in [each.parent for each in both.glob("*/result.json")]:
        shutil.copytree(sweep, both / "published" / sweep.name)
    write_mapping(both.parent, [load_study(both)])
    rows = yours_beside_ours(StudyCells(both))
    assert list(rows["arm"]) == list(load_runs(both, "own")["label"].drop_duplicates())
    assert set(rows["equal seeds"]) == {"8 of 8"}
    assert list(rows["your accuracy"]) == list(rows["published accuracy"])
    assert "Your numbers beside the published ones" in report(StudyCells(both))


def test_two_seeds_have_a_difference_and_no_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    def arm(accuracies: list[float]) -> SimpleNamespace:
        values, rates = pd.Series(accuracies), pd.Series([1e-3, 1e-3])
        nothing = pd.DataFrame()
        return SimpleNamespace(
            task="digits", name="FP", values=lambda: values, choices=lambda: rates, without=lambda: nothing
        )

    sides = {"published": {"s": arm([0.5, 0.5])}, "own": {"s": arm([0.5, 0.6])}}
    monkeypatch.setattr("fpt.show.tables.arms_in", lambda folder, side: sides[side])
    (row,) = yours_beside_ours(cast(StudyCells, SimpleNamespace(folder=None))).to_dict("records")
    assert (row["difference"], row["equal seeds"]) == ("+5.0", "1 of 2")


def test_tuned_differences_are_paired_by_seed(study: Path) -> None:
    found = setups([StudyCells(study)])
    rows = pairs_table(found).set_index("arms")
    cells = found["Digits", "tiny-lm (laptop)"]
    test = paired(cells["UP"].values(), cells["FP"].values())
    row = rows.loc["UP - FP"]
    assert (row["difference"], row["95% interval"], row["seeds"]) == (*test.in_points.texts(signed=True), 8)
    assert (row["sign"], row["steps"]) == ("+", "400")
    assert len(rows) == 6


def test_own_data_and_an_own_model(own: Path) -> None:
    study = synthetic.finish(synthetic.workspace(own, "mine", OWN))
    html = report(StudyCells(study))
    page = BeautifulSoup(html, "html.parser")
    assert headings(page)[0] == "My <own> study"
    assert "Learning rate and budget: npz:mine.npz, hub:models/mine (mine)" in headings(page)
    (plane,) = [each for each in page.select("[role=img]") if " minus " in str(each["aria-label"])[:90]][:1]
    assert f"{LABEL['UR']} minus {LABEL['FP']}" in str(plane["aria-label"])
    assert "nan" not in page.get_text()
    assert str(own) not in html


def test_own_data_and_an_own_model_are_found_from_the_pages_of_the_book(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = StudyCells(synthetic.finish(synthetic.workspace(own, "mine", OWN)))
    here = list(study.results)
    (own / "book").mkdir()
    monkeypatch.chdir(own / "book")
    (found,) = every_study()
    assert list(found.results) == here  # named by checksums of the files
    assert len(here) == 2
    monkeypatch.chdir(own.parent)
    with pytest.raises(SpecError, match="no folder models/mine"):
        load_runs(study.folder)


def test_runs_that_all_diverged_and_sweeps_that_are_missing(tmp_path: Path) -> None:
    study = synthetic.workspace(tmp_path)
    synthetic.finish(study, accuracy=lambda *_: float("nan"), skip=("frozen-random",))
    words = BeautifulSoup(report(StudyCells(study)), "html.parser").get_text(" ")
    assert "none eligible" in words
    assert "of its 6 sweeps" in words


def test_no_two_rows_of_a_study_are_equal() -> None:
    shown = summary(load_runs(Path(__file__).parents[2] / "runs" / "controls", "published"))
    assert len(shown) > 20
    assert not shown.duplicated(["task", "arm"]).any()


def test_arms_beyond_the_four_are_compared_too_and_of_many_the_four_alone() -> None:
    (cells,) = setups([StudyCells(find_study("lora-digits"), "published")], every=True).values()
    assert set(cells) == {"FP", "LP", "LP (rank 1)", "LR", "MP", "UP"}
    assert "LP (rank 1) - LP" in set(pairs_table({("digits", ""): cells})["arms"])
    many = compared_arms(StudyCells(find_study("laptop-lu2021"), "published"))
    assert set(many["Bit XOR", "tiny-lm (laptop-lu2021)"]) == {"FP", "FR", "UP", "UR"}
