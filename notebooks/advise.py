# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,mystnb,-all
#     formats: ipynb,py:percent
#     notebook_metadata_filter: jupytext,kernelspec,-all
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Should you freeze, on your own data?
#
# What the command `fpt advise` does, on scikit-learn's wine table as a CSV file. The defaults are tiny: they show that
# it works, not which arm is best. With more minutes and `steps = None` it is the real thing. With `data = "digits"` and
# `options = {"size": 8, "patch": 2}` the data are a folder of PNG images, one folder a class.

# %% tags=["parameters"]
data = "wine"  # or breast_cancer, a CSV file, too; or digits, a folder of images
options = {"patch": 13}  # columns in a token
backbone = "tiny-lm"
arms = "full"  # what trains after the probe
minutes = 30.0  # at most
steps = 20  # at most; None: as many as fit
seeds = 3  # fresh ones

# %%
from fpt.sweeps import check_parameters

check_parameters(
    globals(),
    data=str, options=dict[str, int | str], backbone=str, arms=str, minutes=float, steps=int | None, seeds=int,
)  # fmt: skip

import contextlib
import shutil
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn import datasets

from fpt.advise import report, words
from fpt.advise.request import request
from fpt.advise.work import Work
from fpt.show.html import Table

# %% [markdown]
# ## The data, in a workspace of their own

# %%
place = Path(tempfile.mkdtemp(prefix="fpt-advise-"))
(place / "runs").mkdir()
frame = getattr(datasets, f"load_{data}")(as_frame=True).frame
if data == "digits":
    for row, (label, pixels) in enumerate(zip(frame.pop("target"), frame.to_numpy(), strict=True)):
        folder = place / data / str(label)
        folder.mkdir(parents=True, exist_ok=True)
        image = (pixels.reshape(8, 8) * 255 / 16).round().astype(np.uint8)  # 16 is white
        Image.fromarray(image).save(folder / f"{row:04}.png")
else:
    frame.to_csv(place / f"{data}.csv", index=False)
sorted(path.relative_to(place).as_posix() for path in place.glob(f"{data}*"))

# %% [markdown]
# ## The run
#
# First the numbers to beat, then the probe, then what trains longer.

# %%
with contextlib.chdir(place):
    (path,) = Path().glob(f"{data}*")
    wanted = request(path.name, backbone, arms, root=place, minutes=minutes, options=options, steps=steps, seeds=seeds)
    Work(wanted, print).run()
    advice = report.finished(wanted)

# %% [markdown]
# ## What it says

# %%
print(words.recommended(advice))
for line in words.further(advice):
    print(line)
for line in words.warnings(advice):
    print("warning:", line)

# %% tags=["arms"]
Table(report.arms_frame(advice), report.CANDIDATES)

# %% tags=["pairs"]
Table(report.pairs_frame(advice), report.PAIRS)

# %% [markdown]
# The study that it wrote is an ordinary one.

# %%
print((place / wanted.study / "study.yaml").read_text())

# %%
# What must hold (nbval runs this).
assert {each.name for each in advice.candidates} >= {"linear classifier", "boosted trees", "output-pretrained"}
assert all(each.seeds == seeds for each in advice.candidates)
assert advice.advised or advice.reason == "nothing"
assert (place / advice.winner / "README.md").is_file()
shutil.rmtree(place)
