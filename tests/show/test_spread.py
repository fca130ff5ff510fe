"""The figure of the pretrained weights' spread."""

from fpt.show.spread import spread_figure


def test_models_whose_weights_are_here_have_a_panel_and_others_none() -> None:
    figure = spread_figure(("tiny-lm", "gpt2"))  # no weights of gpt2 here
    assert [axes.get_title() for axes in figure.axes if axes.get_visible()] == ["tiny-lm"]
    assert "tiny-lm, attention weight: 0." in figure.get_label()
    assert "no results" in spread_figure(("gpt2",)).get_label()
