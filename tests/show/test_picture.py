"""The picture of README.md and the opening page: its files are up to date, and it draws what is published."""

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from bs4 import BeautifulSoup
from PIL import Image

from fpt.results.arm import TUNED
from fpt.results.contrasts import contrast, level
from fpt.results.difference import paired_difference
from fpt.results.runs import rate_text
from fpt.show import picture
from fpt.show.picture import DATA, FILES, FOLDER, FROZEN, FULL, PROBE, opening, opening_figure, texts_arms

ROOT = Path(__file__).parents[2]


def test_the_files_draw_what_is_published() -> None:
    """Of the pictures their data are compared: how letters are drawn is each machine's own. `make picture` draws."""
    wanted = opening_figure().data
    assert wanted is not None
    for name in FILES:
        with Image.open(ROOT / FOLDER / f"opening-{name}.png") as image:
            drawn = pd.read_csv(io.StringIO(image.text[DATA]))  # type: ignore[attr-defined]
        pd.testing.assert_frame_equal(drawn, wanted, check_dtype=False)


def test_it_shows_the_headline() -> None:
    data = opening_figure().data
    assert data is not None
    at = data[data["rate"] == 1e-3].set_index("drawn")["accuracy"]
    found = contrast("fresh-minilm", "FP", "UP", at=1e-3)
    assert [at[f"{each}, new seeds"] for each in (FROZEN, FULL)] == pytest.approx([found.first, found.second])
    lines = data[data["rate"].isna()]
    assert list(lines["drawn"].unique()) == ["linear classifier", PROBE]


def trained(letters: str, steps: int, labels: int = 0) -> Any:
    return SimpleNamespace(
        letters=letters, steps=steps, name=f"{letters} {steps} {labels}", fields={"task_options": {"labels": labels}}
    )


@pytest.mark.parametrize(
    ("published", "drawn"),  # letters, steps, labels a class
    [
        ([("probe", 1, 0), ("probe", 1, 10), ("WP", 481, 10)], ["WP 481 10", "probe 1 10"]),
        ([("probe", 1, 0), ("WP", 1407, 0), ("WP", 481, 10), ("NP", 481, 10)], ["WP 1407 0", "probe 1 0"]),
        (
            [
                ("LP", 1407, 0),
                ("NP", 481, 0),
                ("NP", 1407, 0),
                ("WP", 481, 0),
                ("WP", 1407, 0),
                ("WP probe-first", 1407, 0),
            ],
            ["WP 1407 0", "NP 1407 0", "LP 1407 0"],
        ),
    ],
)
def test_on_texts_it_draws_what_full_training_can_be_compared_with(
    published: list[tuple[str, int, int]], drawn: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arms = {str(each): trained(*each) for each in published}
    monkeypatch.setattr(picture, "arms_of", lambda study: arms)
    assert [arm.name for arm in texts_arms().values()] == drawn


def test_without_full_training_on_texts_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture, "arms_of", lambda study: {"a": trained("NP", 1407)})
    with pytest.raises(AssertionError, match="no published full training"):
        texts_arms()


def test_the_reader_moves_the_rate_against_a_probe_that_stays() -> None:
    """Full training minus the probe at each rate, paired by seed and text."""
    page = BeautifulSoup(opening("A caption.")._repr_html_(), "html.parser")
    digits, texts = (json.loads(str(each.string))[0] for each in page.select(".fpt-picture .small script"))
    assert digits["pairs"][0]["arms"] == ["UP", "FP"]
    assert texts["arms"]["WP"]["name"] == digits["arms"]["UP"]["name"] == FULL
    assert texts["arms"]["WP"]["colour"] == digits["arms"]["UP"]["colour"]
    arms = texts_arms()
    pair = next(each for each in texts["pairs"] if each["arms"] == [arms[FULL].letters, "probe"])
    (plane,) = pair["plane"].values()
    for rate in arms[FULL].rates:
        found = paired_difference([(arms[FULL], rate, None)], [(arms[PROBE], TUNED, None)]).in_points
        assert plane[rate_text(rate)][1:3] == [*found.texts(signed=True)]
    probe = level("intents-rates", arms[PROBE].name)
    assert {each[0] for each in texts["arms"]["probe"]["points"][str(arms[FULL].steps)].values()} == {
        round(probe.value, 2)
    }
    assert page.select_one(".fpt-picture > figure.fpt figcaption").text.startswith("A caption.")  # type: ignore
