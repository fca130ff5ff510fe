"""Guards of pages: what is found without building the book. And what `say`, `leads`, `trails` and `open_` show."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fpt.results import contrast, level
from fpt.results.contrasts import Contrast
from fpt.results.estimate import POINTS, number_text
from fpt.show.guards import check, preview
from fpt.show.said import GuardError, collected, leads, open_, said, trails

PAGE = """---
kernelspec: {{}}
---
# A page
Training all beats freezing by {{glue:text}}`d` points,
and the best has {{glue:text}}`best`%.

```{{code-cell}} ipython3
:tags: [hide-cell]
from fpt.show import say
d, best = 3.25, 96.04
{guards}
say(d=d, best=best)
```
"""


def page(folder: Path, *guards: str) -> Path:
    path = folder / "page.md"
    path.write_text(PAGE.format(guards="\n".join(guards)))
    return path


def test_a_guard_that_holds_is_not_listed(tmp_path: Path) -> None:
    found, glued = check(page(tmp_path, 'assert d > 0, "Training all beats freezing"'))
    assert found == []
    assert glued == {"d": "3.3", "best": "96.0"}


def test_every_guard_that_fails_is_listed_and_not_the_first_alone(tmp_path: Path) -> None:
    made = page(
        tmp_path, 'assert d < 0, "Training all"', 'assert best > 100, "the best has"', 'assert d > 0, "Training"'
    )
    found, _ = check(made)
    assert [each.phrase for each in found] == ["Training all", "the best has"]


SHOWN = """
# A page

Training all beats freezing by {{glue:text}}`d`. It beats it early.

| MNIST | {{glue:text}}`d.cell` |
|---|---|

```{{code-cell}} ipython3
from fpt.results import contrast
from fpt.show import leads, open_, say, trails
above, across = contrast("plane-minilm", "FP", "UP", at=3e-3), contrast("plane-minilm", "FP", "UP")
below = -above
d = {of}
{guard}
```
"""


def examples() -> dict[str, Contrast]:
    """Contrasts whose intervals lie above 0, below 0 and on both sides of it."""
    lead = contrast("plane-minilm", "FP", "UP", at=3e-3)
    return {"above": lead, "below": -lead, "across": contrast("plane-minilm", "FP", "UP")}


def shown(folder: Path, guard: str, of: str = "above") -> list[tuple[str, str]]:
    """What is broken on a page that shows one of `examples` as `d`, as phrases and reasons."""
    path = folder / "shown.md"
    path.write_text(SHOWN.format(guard=guard, of=of))
    found, _ = check(path)
    assert {each.page for each in found} <= {"shown.md"}
    return [(each.phrase, each.why) for each in found]


@pytest.mark.parametrize(
    ("guard", "holds", "fails"),
    [("leads", "above", "across"), ("trails", "below", "across"), ("open_", "across", "above")],
)
def test_a_shown_number_holds_every_sentence_that_shows_it(tmp_path: Path, guard: str, holds: str, fails: str) -> None:
    assert shown(tmp_path, f"{guard}(d=d)", holds) == []
    (sentence, why), (row, _) = shown(tmp_path, f"{guard}(d=d)", fails)
    number = str(examples()[fails])
    assert sentence == f"Training all beats freezing by {number}."
    assert row.startswith("| MNIST |")
    assert why.startswith(f"d is {number}, but {guard}(d=...)")


def test_a_phrase_stands_for_a_sentence_without_the_number(tmp_path: Path) -> None:
    assert shown(tmp_path, 'leads("It beats it early", d=d)') == []
    *_, (phrase, _) = shown(tmp_path, 'leads("It beats it early", d=d)', "across")
    assert phrase == "It beats it early"
    assert shown(tmp_path, 'leads("It does not", d=d)') == [("It does not", "the page has no such phrase")]


def test_a_value_that_is_not_shown_is_held_under_a_phrase(tmp_path: Path) -> None:
    assert shown(tmp_path, 'say(d=d)\ntrails("It beats it early", -d, -d)') == []
    ((phrase, why),) = shown(tmp_path, 'say(d=d)\ntrails("It beats it early", -d, d)')
    assert phrase == "It beats it early"
    assert f"value 2: {examples()['above']}" in why
    assert "value 1" not in why
    ((what, _),) = shown(tmp_path, "say(d=d)\nleads(d)")
    assert "needs a phrase" in what


def test_a_guarded_number_that_no_sentence_shows_is_listed(tmp_path: Path) -> None:
    assert ("e", "no sentence shows this number") in shown(tmp_path, "say(d=d)\nleads(e=d)")


@pytest.mark.parametrize("guard", [leads, trails, open_])
def test_what_fails_is_shown_and_what_holds_beside_it_is_not_blamed(guard: Callable[..., None]) -> None:
    with collected() as glued, pytest.raises(GuardError) as caught:
        guard(**examples())
    assert set(examples()) <= set(glued), "the page is shown with its wrong sentence"
    fine = {leads: "above", trails: "below", open_: "across"}[guard]
    assert set(caught.value.failed) == set(examples()) - {fine}
    with pytest.raises(AssertionError, match="no interval"), collected():
        guard(x=3.5)


def test_guards_in_a_loop_are_checked_as_well(tmp_path: Path) -> None:
    made = page(
        tmp_path, "for each in (d, -d):", '    assert each > 0, "Training all"', '    assert best, "Nobody says"'
    )
    found, _ = check(made)
    assert [(each.phrase, each.why[:6]) for each in found] == [("Nobody says", "the pa"), ("Training all", "for ea")]


def test_the_listing_goes_on_after_a_contrast_that_is_no_longer_there(tmp_path: Path) -> None:
    made = page(
        tmp_path,
        "from fpt.results import contrast",
        'e = contrast("plane-digits", "FP", "XX")',
        'assert e.low > 0, "Training all"',
        'assert d < 0, "the best has"',
    )
    found, _ = check(made)
    assert "XX" in found[0].phrase
    assert "Known: FP" in found[0].why
    assert [each.phrase for each in found][1:] == ["assert e.low > 0, 'Training all'", "the best has"]


@pytest.mark.parametrize("cell", ["{}['UP']", "[][1]", "int('x')", "1 + 'x'", "[].low", "1 / 0", "first, second = [1]"])
def test_the_listing_goes_on_after_anything_that_a_cell_raises(tmp_path: Path, cell: str) -> None:
    found, glued = check(page(tmp_path, cell, 'assert d < 0, "the best has"'))
    assert [each.phrase for each in found] == [cell, "the best has"]
    assert glued["d"] == "3.3"


def test_a_number_that_no_cell_says_is_listed(tmp_path: Path) -> None:
    path = page(tmp_path)
    path.write_text(path.read_text().replace("best=best", ""))
    found, _ = check(path)
    assert [each.phrase for each in found] == ["best"]


def test_the_preview_has_the_numbers(tmp_path: Path) -> None:
    path = page(tmp_path)
    _, glued = check(path)
    assert "by 3.3 points" in preview(path, glued)
    assert "code-cell" not in preview(path, glued)


def test_a_contrast_is_said_with_its_parts() -> None:
    found = contrast("plane-minilm", "UP", "FP")
    parts = said("d", found)
    assert parts["d"] == str(found)
    assert parts["d.cell"] == found.cell
    assert float(parts["d.first"]) == pytest.approx(found.first, abs=0.05)
    assert parts["d.low"].startswith("\N{MINUS SIGN}")


def test_a_level_is_said_with_its_rate() -> None:
    assert said("x", level("plane-digits", "UP"))["x.rate"].count("e") == 1


def test_a_number_that_rounds_to_zero_has_no_sign_of_its_own() -> None:
    assert said("x", -0.001) == {"x": "0.0"}


@pytest.mark.parametrize(
    ("value", "text"), [(1.15, "1.2"), (5.05, "5.1"), (2.675, "2.7"), (-1.15, "\N{MINUS SIGN}1.2")]
)
def test_pages_and_cards_round_alike_halves_away_from_zero(value: float, text: str) -> None:
    assert said("x", value)["x"] == number_text(value, POINTS) == text


def test_text_and_numbers_of_any_library_are_said() -> None:
    assert said("x", "so") == {"x": "so"}
    assert said("x", np.int64(1600)) == {"x": "1,600"}
    assert said("x", np.float32(0.5)) == {"x": "0.5"}


@pytest.mark.parametrize("value", [None, [1], True, np.float32("nan")])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(AssertionError, match=r"no contrast|nan"):
        said("x", value)
