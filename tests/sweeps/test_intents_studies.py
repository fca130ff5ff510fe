"""What the studies of labelled texts took from their tuning seeds is what these seeds chose."""

from pathlib import Path

from fpt.results.runs import arms_in, find_study
from fpt.sweeps import load_study, selection


def test_heads_start_from_the_strength_that_the_tuning_seeds_of_the_probe_chose(root: Path) -> None:
    folder = find_study("intents-rates", root)
    probes = [arm for arm in arms_in(folder, "published").values() if arm.recipe.solver == "logistic"]
    chosen = {
        arm.fields["task_options"].get("labels"): selection.best_rate(selection.macro_by_seed(arm.runs, arm.answers))
        for arm in probes
    }
    assert set(chosen) == {None, 10}
    started = [spec for spec in load_study(folder).sweeps if spec.probe is not None]
    assert len(started) == 6
    assert all(spec.probe == chosen[spec.task_options.get("labels")] for spec in started)
