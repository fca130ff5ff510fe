"""The winner's weights in the forms that other libraries read, and the lines that load them."""

import copy
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpt import tasks
from fpt.errors import WeightsError
from fpt.files import replaced, write_atomically
from fpt.models import tokens
from fpt.models.arms import ADAPTER, ADAPTER_FILES
from fpt.models.hub import WEIGHTS
from fpt.models.weights import local_folder
from fpt.sweeps.ledger import KEPT_WEIGHTS

if TYPE_CHECKING:
    from torch import Tensor

    from fpt.advise.request import Request
    from fpt.models.template import Template
    from fpt.results.arm import Arm
    from fpt.tasks.task import Task

WINNER = "winner"  # a folder of the study, beside those of its sweeps
LAYERS, README = "layers.safetensors", "README.md"
HEAD = """# {title}

One run of `{arm}` on `{task}`: seed {seed}, rate {rate:g}.
"""
# What follows of a model whose forward pass is the library's own, and of one that has another
LIBRARY_FORWARD = """\
`{layers}` holds what is new: the output layer (`weight` and `bias` of torch's Linear, `coef_` and `intercept_` of
scikit-learn's LogisticRegression) and, unless the model's own embeddings read its own tokens, the input layer. To load
it:

```python
import fpt
import torch
from safetensors.torch import load_file
from torch.nn.functional import embedding, linear
from transformers import AutoModel
{imports}
folder = "{folder}"
task = {task_of}  # how your data become tokens
model = {load}
layers = load_file(folder + "/{layers}")
examples = task.split({seed}).test
tokens = task.encode(examples.inputs)
lengths = torch.full((len(tokens),), task.tokens) if examples.lengths is None else examples.lengths
mask = torch.arange(tokens.shape[1]) < lengths[:, None]
with torch.no_grad():
    embedded = {embed}
    hidden = model(inputs_embeds=embedded, attention_mask=mask.long()).last_hidden_state
    features = {pool}
    logits = linear(features, layers["output_layer.weight"], layers["output_layer.bias"])
predicted = logits.argmax(-1)
```
"""
BASELINE = """# {title}

The {name}, which is fitted in seconds, so that nothing is kept but how it is made:

```python
import fpt
from fpt.advise.baselines import data_of, models

task = {task_of}
x, y, x_test, y_test = data_of(task, seed=0)
model = models(task)["{name}"]()  # of scikit-learn
predicted = model.fit(x, y).predict(x_test)
```
"""
OTHER_FORWARD = """\
`{weights}` holds every tensor under the names of `fpt.models.build(task, "{backbone}").module`, adapters merged: this
architecture takes its input in a way of its own, so the library's model alone does not read it.
"""
TASK, OWN_TOKENS = 'fpt.tasks.load("{task}"{options})', 'fpt.models.load_task("{task}", "{backbone}"{options})'
NUMBERS = 'linear(tokens, layers["input_layer.weight"], layers["input_layer.bias"])'
SYMBOLS = 'embedding(tokens, layers["input_layer.weight"])'
OWN_TABLE = "model.get_input_embeddings()(tokens)"
LAST_ONE = "hidden[torch.arange(len(tokens)), lengths - 1]"
MEAN_OF_ALL = "(hidden * mask[..., None]).sum(1) / lengths[:, None]"
UNCHANGED = 'AutoModel.from_pretrained("{base}", dtype=torch.float32).eval()'
WHOLE = "AutoModel.from_pretrained(folder).eval()"
ADAPTED = 'PeftModel.from_pretrained(AutoModel.from_pretrained("{base}", dtype=torch.float32), folder).eval()'


def keep_winner(arm: "Arm", template: "Template", study: Path) -> Path:
    """Write the first run of an arm to the folder `winner` of its study: adapters as peft's files, the whole model as
    the library's, or of a probe no model, the new layers beside them, and a README.md with the lines that load it.

    Raises WeightsError where the sweep kept nothing.
    """
    from safetensors.torch import load_file, save_file

    source, folder = study / arm.spec.folder_name, study / WINNER
    if not (source / KEPT_WEIGHTS).is_file():
        raise WeightsError(f"{source} kept no weights: its sweep needs measures: [weights] in {study}/study.yaml")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    tensors = load_file(source / KEPT_WEIGHTS)
    of_library = not template.module.family.needs_fpt and _write_model(source, folder, template, tensors)
    if of_library:
        new = {name: tensor for name, tensor in tensors.items() if not name.startswith("backbone.")}
        with replaced(folder / LAYERS) as partial:
            save_file(new, partial)
    else:
        shutil.copyfile(source / KEPT_WEIGHTS, folder / KEPT_WEIGHTS)
    if template.task.own_table and template.backbone.folder:
        for file in tokens.files(template.backbone.folder):
            shutil.copyfile(file, folder / file.name)
    text = LIBRARY_FORWARD if of_library else OTHER_FORWARD
    write_atomically(folder / README, _readme(arm, template, folder, text).encode())
    return folder


def keep_baseline(name: str, task: "Task", wanted: "Request") -> Path:
    """Write the folder `winner` of a baseline: a README.md with the lines that fit it."""
    folder = wanted.study / WINNER
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    text = BASELINE.format(title=wanted.study.name, name=name, task_of=_task_of(task, wanted.backbone))
    write_atomically(folder / README, text.encode())
    return folder


def _task_of(task: "Task", backbone: str) -> str:
    """The expression that loads a task as it was read."""
    known = tasks.entry(task.name).options
    options = "".join(f", {key}={value!r}" for key, value in task.options.items() if value != known[key])
    return (OWN_TOKENS if task.own_table else TASK).format(task=task.name, backbone=backbone, options=options)


def _write_model(source: Path, folder: Path, template: "Template", tensors: "dict[str, Tensor]") -> bool:
    """Adapters, or the library's model with its config, or nothing of a model that did not change; False where its
    tensors would not fit the library's."""
    if _only_adapted(template):
        if not local_folder(template.backbone):
            return False
        for name in ADAPTER_FILES if template.adapters else ():
            shutil.copyfile(source / name, folder / name)
        return True
    from safetensors.torch import save_file
    from transformers import AutoModel

    config = copy.deepcopy(template.module.backbone.config)
    config._attn_implementation = "eager"
    model: Any = AutoModel.from_config(config)
    state = model.state_dict()
    ours = {name: value for name, value in tensors.items() if name.startswith("backbone.")}
    backbone_state = {name.removeprefix("backbone."): value for name, value in ours.items()}
    if any(name not in state or state[name].shape != value.shape for name, value in backbone_state.items()):
        return False
    whole = {name: tensor.contiguous() for name, tensor in (state | backbone_state).items()}
    save_file(whole, folder / WEIGHTS, {"format": "pt"})
    config.save_pretrained(folder)
    return True


def _only_adapted(template: "Template") -> bool:
    """Whether the pretrained model, its adapters, if any, and the new layers are all of a run: other arms train more of
    the backbone, or start from other weights."""
    return template.init == "pretrained" and set(template.trainable_groups) <= {"input", "output", ADAPTER}


def _readme(arm: "Arm", template: "Template", folder: Path, text: str) -> str:
    spec, task = arm.spec, template.task
    adapted = (folder / ADAPTER_FILES[1]).is_file()
    load = ADAPTED if adapted else WHOLE if (folder / WEIGHTS).is_file() else UNCHANGED
    return (HEAD + text).format(
        title=folder.parent.name,
        arm=spec.arm,
        task=spec.task,
        seed=spec.seeds[0],
        rate=arm.rates[0],
        layers=LAYERS,
        weights=KEPT_WEIGHTS,
        backbone=spec.backbone,
        folder=folder.as_posix(),
        task_of=_task_of(task, spec.backbone),
        imports="from peft import PeftModel\n" if adapted else "",
        load=load.format(base=local_folder(template.backbone)),
        embed=_embedding(task),
        pool=MEAN_OF_ALL if task.pooling == tasks.MEAN else LAST_ONE,
    )


def _embedding(task: "Task") -> str:
    """The line of the README.md by which the tokens of a task become what the layers read."""
    if task.own_table:
        return OWN_TABLE
    return SYMBOLS if task.vocabulary else NUMBERS
