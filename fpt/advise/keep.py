"""The winner's weights in the forms that other libraries read, and the lines that load them."""

import copy
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpt.errors import WeightsError
from fpt.files import replaced, write_atomically
from fpt.models import hub, tokens
from fpt.models.arms import ADAPTER, ADAPTER_FILES
from fpt.models.weights import local_folder
from fpt.sweeps.ledger import KEPT_WEIGHTS, WINNER

if TYPE_CHECKING:
    from torch import Tensor

    from fpt.models.template import Template
    from fpt.results.arm import Arm
    from fpt.tasks.task import Task

LAYERS, README = "layers.safetensors", "README.md"
PLAIN = ("gpt2", "bert", "library")  # families whose forward pass is the library's own
HEAD = """# {title}

One run of `{arm}` on `{task}`: seed {seed}, learning rate {rate:g}, the step with the best validation accuracy.
"""
# What follows of a model whose forward pass is the library's own, and of one that has another
LIBRARY_FORWARD = """\
`{layers}` holds what is new: the output layer and, unless the model's own embeddings read its own tokens, the input
layer. To load it:

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
    last = hidden[torch.arange(len(tokens)), lengths - 1]
    logits = linear(last, layers["output_layer.weight"], layers["output_layer.bias"])
predicted = logits.argmax(-1)
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
WHOLE = "AutoModel.from_pretrained(folder).eval()"
ADAPTED = 'PeftModel.from_pretrained(AutoModel.from_pretrained("{base}", dtype=torch.float32), folder).eval()'


def keep_winner(cell: "Arm", template: "Template", study: Path) -> Path:
    """Write the best run of an arm to the folder `winner` of its study: adapters as peft's files, or the whole model as
    the library's, the new layers beside them, and a README.md with the lines that load it.

    Raises WeightsError where the sweep kept nothing.
    """
    from safetensors.torch import load_file, save_file

    source, folder = study / cell.spec.folder_name, study / WINNER
    if not (source / KEPT_WEIGHTS).is_file():
        raise WeightsError(f"{source} kept no weights: its sweep needs measures: [weights] in {study}/study.yaml")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    tensors = load_file(source / KEPT_WEIGHTS)
    plain = template.entry.family in PLAIN and _write_model(source, folder, template, tensors)
    if plain:
        new = {name: tensor for name, tensor in tensors.items() if not name.startswith("backbone.")}
        with replaced(folder / LAYERS) as partial:
            save_file(new, partial)
    else:
        shutil.copyfile(source / KEPT_WEIGHTS, folder / KEPT_WEIGHTS)
    if template.task.own_table:
        for file in tokens.files(Path(hub.path_of(template.backbone) or "")):
            shutil.copyfile(file, folder / file.name)
    text = LIBRARY_FORWARD if plain else OTHER_FORWARD
    write_atomically(folder / README, _readme(cell, template, folder, text).encode())
    return folder


def _write_model(source: Path, folder: Path, template: "Template", tensors: "dict[str, Tensor]") -> bool:
    """Adapters, or the library's model with its config; False where its tensors would not fit the library's."""
    if (source / ADAPTER_FILES[1]).is_file() and _only_adapted(template):
        if not local_folder(template.backbone):
            return False
        for name in ADAPTER_FILES:
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
    save_file(whole, folder / hub.WEIGHTS, {"format": "pt"})
    config.save_pretrained(folder)
    return True


def _only_adapted(template: "Template") -> bool:
    """Whether the pretrained model, its adapters and the new layers are all of a run: other arms with adapters train
    more of the backbone, or start from other weights."""
    return template.init == "pretrained" and set(template.trainable_groups) <= {"input", "output", ADAPTER}


def _readme(cell: "Arm", template: "Template", folder: Path, text: str) -> str:
    spec = cell.spec
    adapted = (folder / ADAPTER_FILES[1]).is_file()
    load = WHOLE
    if adapted:
        load = ADAPTED.format(base=hub.path_of(spec.backbone) or local_folder(spec.backbone))
    task_of = OWN_TOKENS if template.task.own_table else TASK
    options = "".join(f", {name}={value!r}" for name, value in spec.task_options.items())
    return (HEAD + text).format(
        title=folder.parent.name,
        arm=spec.arm,
        task=spec.task,
        seed=spec.seeds[0],
        rate=cell.best_rate(),
        layers=LAYERS,
        weights=KEPT_WEIGHTS,
        backbone=spec.backbone,
        folder=folder.as_posix(),
        task_of=task_of.format(task=spec.task, backbone=spec.backbone, options=options),
        imports="from peft import PeftModel\n" if adapted else "",
        load=load,
        embed=_embedding(template.task),
    )


def _embedding(task: "Task") -> str:
    """The line of the README.md by which the tokens of a task become what the layers read."""
    if task.own_table:
        return OWN_TABLE
    return SYMBOLS if task.vocabulary else NUMBERS
