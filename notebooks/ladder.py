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
# # Baselines and the ladder of ListOps
#
# What can be had without learning much, counted on the data: always naming the commonest class, a logistic regression
# on the pixels, planes through the words and characters of short texts, on programs the commonest byte after each byte,
# and for ListOps a ladder of exact readers that understand more and more of a list. The defaults need no download and
# take seconds. With `output` the numbers are written where pages and verdicts read them, and those of other tasks stay:
#
# ```sh
# papermill notebooks/ladder.ipynb out.ipynb -p output fpt/results/baselines.json \
#     -y 'tasks: [digits, digits-lra, mnist, cifar10, cifar10-lra, listops-short, listops, listops:released, text,
#                 banking77, clinc150]'
# ```
#
# MNIST, CIFAR-10, BANKING77 and CLINC150 are downloaded then, and long lists generated.

# %% tags=["parameters"]
tasks = ["digits", "digits-lra", "listops-short"]  # task, or task:variant
options = {  # lists to look answers up in, and lists for each of validation and test
    "listops-short": {"train": 20_000, "heldout": 10_000},
    "listops": {"train": 40_000, "heldout": 30_000},
    "listops:released": {"train": 40_000, "heldout": 30_000},
    "banking77": {"bytes": 1_000},  # no text is cut
    "clinc150": {"bytes": 1_000},
}
data_dir = None  # else $FPT_DATA, else the cache
output = ""  # a path to write to; empty: nothing is written

# %%
from fpt.sweeps import check_parameters

check_parameters(
    globals(),
    tasks=list[str], options=dict[str, dict[str, int]], data_dir=str | None, output=str,
)  # fmt: skip

import re
import warnings
from collections import Counter, defaultdict
from operator import eq
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import fpt
from fpt.files import read_json, write_json
from fpt.papers.schema import LEVELS
from fpt.results import baseline_scores, counted
from fpt.results.baselines import BIGRAM, DIGITS, LINEAR, MAJORITY, OPERATOR, UNTOUCHED, Score
from fpt.sweeps.provenance import now, software
from fpt.tasks.listops import CLOSE, CUT, OPERATORS, evaluate
from fpt.training.evaluate import score as score_of
from fpt.training.fleet import Fleet, stack
from fpt.training.recipe import Recipe

PIXELS = ("digits", "mnist", "cifar10")
INTENTS = ("banking77", "clinc150")
FEW, SEEDS = (10, 30), 3  # labels a class, and how many seeds draw them
MODELS_OF_BYTES = ("tiny-lm-64", "tiny-lm", "tiny-lm-256")


def named(name):
    """Task and variant."""
    task, _, variant = name.partition(":")
    return task, variant or "paper"


def lines(task, scores, seeds=1):
    """What was counted on a task, as the mean over so many seeds, and where it comes from; what is exact is left
    out."""
    origin = {"task": task.name, "variant": task.variant, "options": dict(task.options)}
    data = {"train": task.split(0).train_size, "seeds": seeds, "data_checksum": task.checksum}
    return [{**origin, "what": what, **vars(score), **data} for what, score in scores.items() if score.of]


def shown(found):
    """Percent with Wilson's 95% interval, a row a line."""
    frame = pd.DataFrame(found, columns=["task", "variant", "what", "train", "share", "of"])
    intervals = [Score(line["share"], line["of"]).interval for line in found]
    frame["%"] = [f"{100 * line['share']:.2f}" for line in found]
    frame["95% interval"] = [f"{100 * low:.2f} to {100 * high:.2f}" for low, high in intervals]
    return frame[["task", "variant", "what", "train", "%", "95% interval", "of"]]


# %% [markdown]
# ## The readers
#
# Those of ListOps look answers up, or evaluate a part of each list; on images and on short texts a linear classifier is
# fitted.

# %%
NESTED, OPERATOR_OR_CLOSE = re.compile(rb"[\x0b-\x0e][\x01-\x0a]*\x0f"), rb"[\x0b-\x0f]"  # of symbols: a list of digits


def lists_of(examples):
    """Each list as a string of symbols, without its padding."""
    return [row.tobytes().rstrip(b"\0") for row in examples.inputs.numpy()]


def direct_digits(text):
    """The outermost operator, and the least and the largest of the digits that stand directly in its list (0: none).

    Without brackets: of those before the first nested list, since no one sees where that ends.
    """
    inside = text[1:]
    while NESTED.search(inside):
        inside = NESTED.sub(b"", inside)
    digits = re.split(OPERATOR_OR_CLOSE, inside)[0]
    return text[0], min(digits, default=0), max(digits, default=0)


def looked_up(look, seen, known, texts):
    """For each text the commonest of the `known` answers of the lists seen that look the same; if there are none, of
    all."""
    counts = defaultdict(Counter)
    for text, answer in zip(seen, known, strict=True):
        counts[look(text)][answer] += 1
    ((usual, _),) = Counter(known).most_common(1)
    best = {key: count.most_common(1)[0][0] for key, count in counts.items()}
    return [best.get(look(text), usual) for text in texts]


def share(guesses, answers):
    """How often a guess is the answer."""
    return Score(sum(map(eq, guesses, answers)) / len(answers), len(answers))


def ladder_scores(task):
    """Accuracies of the readers on the test lists of seed 0, lowest first.

    The first three name the commonest answer of the training lists that look the same to them: all of them, those with
    the same outermost operator, and those that also share the least and the largest digit that stands directly in the
    outermost list. The others evaluate the outermost levels and take deeper lists for typical ones, until all answers
    are right. They need brackets: `released` has the first three alone.
    """
    split = task.split(0)
    train, test = split.train_sample(None), split.test
    seen, texts = lists_of(train), lists_of(test)
    known, answers = (part.targets[:, 0].tolist() for part in (train, test))
    looks = {MAJORITY: lambda _: 0, OPERATOR: lambda text: text[0], DIGITS: direct_digits}
    found = {name: share(looked_up(look, seen, known, texts), answers) for name, look in looks.items()}
    for depth, name in enumerate(LEVELS) if test.lengths is not None else ():
        found[name] = share([evaluate(text, depth) for text in texts], answers)
        if found[name].share == 1:
            break
    return found


def linear_score(task):
    """Test accuracy of a logistic regression on the standardised inputs, trained on the training rows of seed 0 with
    scikit-learn's defaults; on images it ends with its iterations, which is its rule."""
    split = task.split(0)
    parts = (split.train_sample(None), split.test)
    (x, y), (x_test, y_test) = (
        (task.encode(each.inputs).flatten(1).numpy(), each.targets[:, 0].numpy()) for each in parts
    )
    model = make_pipeline(StandardScaler(), LogisticRegression())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return Score(float(model.fit(x, y).score(x_test, y_test)), len(y_test))


def texts_of(examples):
    """The texts again, from their bytes, a symbol each from 1 on; half a letter at a cut is shown as U+FFFD."""
    return [bytes(symbol - 1 for symbol in row if symbol).decode(errors="replace") for row in examples.inputs.tolist()]


def words_score(task, seeds=1):
    """Mean test accuracy of a linear support vector machine on the TF-IDF of words, one and two together, and of two to
    five characters within words; for each seed trained on its training texts."""
    shares = []
    for seed in range(seeds):
        split = task.split(seed)
        (x, y), (x_test, y_test) = map(labelled, (split.train_sample(None), split.test))
        shares.append(words_model().fit(x, y).score(x_test, y_test))
    return Score(float(np.mean(shares)), len(y_test))


def words_model():
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    return make_pipeline(make_union(words, characters), LinearSVC(random_state=0))


def labelled(examples):
    """Texts, and their labels (n,)."""
    return texts_of(examples), examples.targets[:, 0].numpy()


def suspicious(task, among=3):
    """Numbers of the test texts whose label is not among the three that the same classifier ranks first, fitted on the
    other four fifths of all texts: their labels may be wrong."""
    split = task.split(0)
    parts = [labelled(each) for each in (split.train_sample(None), split.validation, split.test)]
    texts, labels = [text for part in parts for text in part[0]], np.concatenate([part[1] for part in parts])
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    scores_of = cross_val_predict(words_model(), texts, labels, cv=folds, method="decision_function")
    ranked_first = scores_of.argsort(axis=1)[:, -among:]
    return np.flatnonzero(~(ranked_first == labels[:, None]).any(axis=1)[-len(split.test) :]).tolist()


def bigram_score(task):
    """How often the commonest byte after the byte before is right, over the bytes of the test split."""
    split = task.split(0)
    train, test = split.train_sample(None), split.test
    counts = torch.zeros(task.classes, task.classes, dtype=torch.long)
    seen = (train.inputs.flatten().long(), train.targets.flatten())
    counts.index_put_(seen, torch.ones_like(seen[1]), accumulate=True)
    guesses = counts.argmax(1)[test.inputs.long()]
    return Score(float((guesses == test.targets).double().mean()), test.targets.numel())


def untouched(task, backbone):
    """Accuracy, and loss in nats a prediction, of a pretrained model that trains nothing, over the test split."""
    template = fpt.models.build(task, backbone, arm="unfrozen-pretrained")
    recipe = Recipe(dropout=0.0, compute_type="float32")
    fleet = Fleet(task, template, recipe, [1e-3], [0], torch.device("cpu"))
    test = task.split(0).test
    found = score_of(fleet, fleet.parameters, stack([test]))
    return Score(found.accuracy.item(), test.targets.numel()), found.loss.item()


# %% [markdown]
# ## Accuracies
#
# On the test examples of seed 0, with what was learned from its training examples; with few labels a class, the mean
# over three seeds, which draw them.

# %%
scores, losses, strange, whole_lists = [], [], [], []
for name in tasks:
    task, variant = named(name)
    chosen = {"variant": variant, "data_dir": data_dir, **options.get(name, {})}
    loaded = fpt.tasks.load(task, **chosen)
    found = baseline_scores(task, **chosen)
    if task.startswith(PIXELS):
        found[LINEAR] = linear_score(loaded)
    if task in INTENTS:
        found[LINEAR] = words_score(loaded)
        strange.append({"task": task, "examples": suspicious(loaded), "data_checksum": loaded.checksum})
        for labels in FEW:
            few = fpt.tasks.load(task, **chosen, labels=labels)
            scores += lines(few, {LINEAR: words_score(few, SEEDS)}, SEEDS)
    if task.startswith("listops"):
        found |= ladder_scores(loaded)
    if task == "text":
        found[BIGRAM] = bigram_score(loaded)
        for backbone in MODELS_OF_BYTES:
            found[UNTOUCHED.format(backbone)], nats = untouched(loaded, backbone)
            losses.append({"task": task, "backbone": backbone, "nats": nats, "data_checksum": loaded.checksum})
    scores += lines(loaded, found)
    if task.startswith("listops") and variant == "paper":
        whole_lists.append(loaded)
shown(scores)

# %% [markdown]
# ## What dropping the brackets and cutting the lists leaves
#
# As the released code of Lu et al. does. *Right* is what a reader gets who evaluates what is left as it stands: where
# brackets are lost every nested list runs to the end of the text, and where the end is lost all open lists end there.
# *Certain* are at least these answers, of which no other is possible, whatever is missing: where a largest is asked for
# and a 9 is sure to be among its arguments, or where a least and a 0. Sure are the digits before the first nested list,
# and of that list, and of a list in it, the first two arguments: it may end after them.


# %%
def prefix(text, cut):
    """A list up to its symbol number `cut`, closing brackets not counted."""
    places = [place for place, symbol in enumerate(text) if symbol != CLOSE]
    return text[: places[cut]] if len(places) > cut else text


def closed(text):
    """A list that breaks off, with every open list closed there; lists without an argument yet are dropped."""
    text = text.rstrip(bytes(OPERATORS))
    return text + bytes([CLOSE]) * (sum(map(text.count, OPERATORS)) - text.count(CLOSE))


def certain(text):
    """The answer, where what is left of a list leaves no other."""
    chain = []
    for symbol in text:
        if len(chain) > 1 and len(chain[-1][1]) > 1:
            break
        if symbol in OPERATORS:
            chain.append((symbol, []))
        else:
            chain[-1][1].append(symbol - 1)
    value = None
    for operator, digits in reversed(chain):
        extreme = {"MAX": 9, "MIN": 0}.get(OPERATORS[operator][0])
        value = extreme if extreme in (*digits, value) else None
    return value


def left(task):
    """Shares of the test lists."""
    test = task.split(0).test
    texts, answers = lists_of(test), test.targets[:, 0].tolist()
    whole = [text.replace(bytes([CLOSE]), b"") for text in texts]
    cut = [text[:CUT] for text in whole]
    possible = defaultdict(set)
    for text, answer in zip(cut, answers, strict=True):
        possible[text].add(answer)
    sure = [certain(text) for text in cut]
    assert all(value in (None, answer) for value, answer in zip(sure, answers, strict=True))
    yes = [True] * len(texts)
    return {
        "longer than the cut": share([len(text) > CUT for text in whole], yes),
        "looks like a list with another answer": share([len(possible[text]) > 1 for text in cut], yes),
        "right: cut, with brackets": share([evaluate(closed(prefix(text, CUT))) for text in texts], answers),
        "right: whole, without brackets": share([evaluate(closed(text)) for text in whole], answers),
        "right: cut, without brackets": share([evaluate(closed(text)) for text in cut], answers),
        "certain: cut, without brackets": share([value is not None for value in sure], yes),
    }


remains = [line for task in whole_lists for line in lines(task, left(task))]
shown(remains)

# %%
# What must hold at any scale (nbval runs this).
for name in {line["task"] for line in scores if line["task"].startswith("listops") and line["variant"] == "paper"}:
    ladder = [line["share"] for line in scores if line["task"] == name and line["what"].startswith("exact")]
    assert ladder == sorted(ladder), name
    assert ladder[-1] == 1, name
# What was published comes out again, wherever the same was counted on the same data.
known = pd.concat([counted(), counted("left")]).reindex(columns=pd.DataFrame(scores).columns)
both = pd.DataFrame(scores + remains).merge(known, on=["task", "variant", "what", "of", "train", "data_checksum"])
assert ((both["share_x"] - both["share_y"]).abs() <= both["what"].eq(LINEAR) * 0.005).all()
again = pd.DataFrame(losses, columns=counted("losses").columns).merge(
    counted("losses"), on=["task", "backbone", "data_checksum"]
)
assert ((again["nats_x"] / again["nats_y"] - 1).abs() < 1e-4).all()
texts = pd.DataFrame(strange, columns=counted("suspicious").columns).merge(
    counted("suspicious"), on=["task", "data_checksum"]
)
assert all(len({*one} ^ {*other}) <= 3 for one, other in zip(texts["examples_x"], texts["examples_y"], strict=True))
print(f"{len(both)} of {len(scores + remains)} lines were published, and are the same.")

# %%
if output:
    parts, known = {"scores": scores, "left": remains, "losses": losses, "suspicious": strange}, read_json(Path(output))
    anew = {named(name) for name in tasks}
    for (
        part,
        found,
    ) in parts.items():  # what was counted on other tasks and variants stays; the head is of the last count
        stays = [
            line for line in (known or {}).get(part, []) if (line["task"], line.get("variant", "paper")) not in anew
        ]
        parts[part] = stays + found
    write_json(Path(output), {**software(), "computed_utc": now()} | parts)
