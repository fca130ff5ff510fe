"""Texts that the model's own tokenizer reads: what its embeddings make of them, what trains, and what is refused."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import contract
import own_tokenizer
import pytest
import torch
from torch.func import functional_call
from transformers import AutoModel, AutoTokenizer

import fpt.models
import fpt.tasks
from fpt.errors import DataError, FptError, SpecError, WeightsError
from fpt.models import tokens
from fpt.sweeps.smoke import smoke
from fpt.sweeps.spec import SweepSpec, resolve
from fpt.tasks.task import Task

MODEL, DATA = "hub:model", "csv:texts.csv"
GROUPS = {  # what trains of a llama: it has no table of positions
    "frozen-pretrained": ("output", "layer_norm"),
    "unfrozen-pretrained": ("output", "layer_norm", "attention", "feed_forward"),
    "unfrozen-random": ("output", "layer_norm", "attention", "feed_forward"),
    "lora-pretrained": ("output", "adapter"),
    "output-statistics": ("output",),
    "embedding+output-pretrained": ("embedding", "output"),
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: texts, and a llama with its tokenizer."""
    monkeypatch.chdir(tmp_path)
    own_tokenizer.texts().to_csv("texts.csv", index=False)
    own_tokenizer.save(Path("model"))
    return tmp_path


def task_of(**options: Any) -> Task:
    return fpt.models.load_task(DATA, MODEL, tokenizer="own", **options)


def spec_of(**fields: Any) -> SweepSpec:
    given = {"task": DATA, "backbone": MODEL, "task_options": {"tokenizer": "own"}, "arm": "frozen-pretrained"}
    grid = {"learning_rates": [1e-3], "seeds": [0], "steps": 4, "compute_type": "float32"}
    return resolve({**given, **grid, **fields})


@pytest.mark.parametrize("model_type", ["llama", "bert", "gpt2", "roberta"])
def test_ids_are_the_tokenizers_and_the_output_is_the_librarys(place: Path, model_type: str) -> None:
    shutil.rmtree("model")
    fields = {"llama": {"num_key_value_heads": 2}, "gpt2": {"n_embd": 24, "n_layer": 2, "n_head": 4}}
    own_tokenizer.save(Path("model"), model_type, **fields.get(model_type, {}))
    task = task_of(tokens=12)
    template = fpt.models.build(task, MODEL, "pretrained", "all")
    tokenizer, library = AutoTokenizer.from_pretrained("model"), AutoModel.from_pretrained("model").eval()
    data, values = task.data.train, template.initialise(0)
    written = tokenizer(list(own_tokenizer.texts()["text"]), truncation=True, max_length=12)["input_ids"]
    stored = [row[:length].tolist() for row, length in zip(data.inputs, data.lengths, strict=True)]
    assert stored == written
    assert {len(row) for row in written} >= {6, 12}
    keep = (torch.arange(task.tokens) < data.lengths[:, None]).long()
    with torch.no_grad():
        hidden = library(input_ids=data.inputs, attention_mask=keep).last_hidden_state
        last = hidden[torch.arange(len(data)), data.lengths - 1]
        expected = last @ values["output_layer.weight"].T + values["output_layer.bias"]
        found = functional_call(template.module, values, (task.encode(data.inputs), data.lengths))[:, 0]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("arm", GROUPS)
def test_the_table_is_frozen_unless_it_is_named_and_the_contract_is_kept(place: Path, arm: str) -> None:
    task = replace(task_of(), by_length=False)  # else seeds train one after the other
    template = fpt.models.build(task, MODEL, arm=arm, **({"rank": 2} if "lora" in arm else {}))
    contract.only_the_named_parameters_change(task, template, GROUPS[arm])
    if arm in ("frozen-pretrained", "unfrozen-random"):  # one table for all runs, and one for each seed
        contract.a_fleet_is_its_runs_one_at_a_time(task, template)
    if arm == "unfrozen-random":
        contract.going_on_gives_the_same_bytes(task, template, place / "checkpoints")


def test_from_scratch_the_table_is_random_and_the_seeds_own(place: Path) -> None:
    task = task_of()
    (table,) = [name for name, group in fpt.models.build(task, MODEL).groups.items() if group == "embedding"]
    random, pretrained = (fpt.models.build(task, MODEL, init, "all") for init in ("random", "pretrained"))
    first, second = random.initialise(0)[table], random.initialise(1)[table]
    assert first.shape == (own_tokenizer.ROWS, 24)
    assert not torch.equal(first, second)
    assert torch.equal(pretrained.initialise(0)[table], AutoModel.from_pretrained("model").embed_tokens.weight)


def test_the_card_says_what_is_read_and_what_is_cut(place: Path) -> None:
    assert "own tokens" in task_of().scaling
    assert "no text is cut" in task_of().scaling
    assert "36 of 60 texts are cut at 9 tokens" in task_of(tokens=9).scaling
    assert "bytes of UTF-8" in fpt.models.load_task(DATA, MODEL).scaling


@pytest.mark.parametrize(
    ("model_type", "changes", "window"),
    [
        ("opt", {"word_embed_proj_dim": 24, "ffn_dim": 40, "max_position_embeddings": 10}, 10),
        ("mistral", {"num_key_value_heads": 2, "sliding_window": 8}, 8),
    ],
)
def test_texts_that_are_longer_than_the_window_are_cut(place: Path, model_type: str, changes: Any, window: int) -> None:
    own_tokenizer.save(Path("model"), model_type, **changes)
    task = task_of()
    assert (task.tokens, f"cut at {window} tokens" in task.scaling) == (window, True)
    assert set(task.data.train.inputs[:, -1].tolist()) == {0, 3}  # a cut text has its last special token
    fpt.models.build(task, MODEL)


def test_the_tokenizer_is_part_of_what_a_sweep_is(place: Path) -> None:
    before, of_bytes = spec_of().hash, spec_of(task_options={}).hash
    identity = spec_of().identity
    assert before != of_bytes
    assert identity != spec_of(task_options={}).identity
    shutil.copytree("model", "elsewhere")
    assert spec_of(backbone="hub:elsewhere").hash == before
    own_tokenizer.save_tokenizer(Path("model"), own_tokenizer.TOKENS - 1)
    assert spec_of().hash != before
    assert spec_of().identity != identity
    default = {"tokenizer": "bytes", "tokens": 128, "bytes": 128}
    assert spec_of(task_options=default).hash == spec_of(task_options={}).hash == of_bytes  # it reads no tokenizer


def test_a_sweep_of_it_works_with_a_tiny_stand_in(place: Path) -> None:
    shutil.copytree(Path(__file__).parents[1] / "data", "tests/data")
    specs = [spec_of(arm=arm, seeds=[0, 1]) for arm in ("frozen-pretrained", "unfrozen-random")]
    assert smoke(specs, "mine") == []


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda at: own_tokenizer.save_tokenizer(at, own_tokenizer.ROWS + 1), SpecError, "65 tokens.* 64 rows"),
        (lambda at: (at / "tokenizer.json").write_text("{"), WeightsError, "cannot be read.*bytes"),
        (lambda at: own_tokenizer.spoil(at, model={"type": "BPE"}), WeightsError, "cannot be read"),
        (lambda at: (at / "tokenizer.json").unlink(), WeightsError, "cannot be read"),
        (lambda at: own_tokenizer.no_vocabulary(at), WeightsError, "no vocabulary"),
        (lambda at: [file.unlink() for file in at.glob("token*")], SpecError, r"has no tokenizer\.json"),
        (lambda at: own_tokenizer.own_code(at), WeightsError, "custom code"),
    ],
)
def test_a_tokenizer_that_does_not_fit_is_refused(
    place: Path, change: Callable[[Path], object], error: type[FptError], message: str
) -> None:
    change(place / "model")
    with pytest.raises(error, match=message):
        fpt.models.build(task_of(), MODEL)


def test_a_text_without_a_token_is_refused_by_row(place: Path) -> None:
    own_tokenizer.spoil(place / "model", post_processor=None)
    frame = own_tokenizer.texts()
    frame.loc[6, "text"] = "  "
    frame.to_csv("texts.csv", index=False)
    with pytest.raises(DataError, match="row 7"):
        task_of()


@pytest.mark.parametrize("backbone", ["tiny-lm", "hub:some/model@" + "0123456789" * 4])
def test_a_backbone_that_is_no_folder_is_refused(place: Path, backbone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FPT_WEIGHTS", str(place))
    shutil.copytree("model", fpt.models.hub.slug("hub:some/model@" + "0123456789" * 4))
    with pytest.raises(SpecError, match="hub:PATH"):
        spec_of(backbone=backbone)


def test_a_model_that_adds_to_the_rows_of_its_table_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = torch.nn.Embedding.forward
    own_tokenizer.save(Path("model"), rms_norm_eps=1e-4)  # a config that was not tried yet
    llama: Any = type(AutoModel.from_pretrained("model"))
    whole = llama.forward

    def forward(self: Any, input_ids: Any = None, inputs_embeds: Any = None, **given: Any) -> Any:
        rows = inputs_embeds if input_ids is None else 2 * plain(self.embed_tokens, input_ids)
        return whole(self, inputs_embeds=rows, **given)

    monkeypatch.setattr(llama, "forward", forward)
    with pytest.raises(SpecError, match="more of its tokens"):
        tokens.check_tokenizer(fpt.models.backbone(MODEL))


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: task_of(tokens=2), "2 tokens of a text"),  # nothing but special ones
        (lambda: fpt.tasks.check_task(DATA, "paper", {"tokenizer": "owm"}), r"unknown tokenizer.*'own'"),
    ],
)
def test_options_that_leave_nothing_to_read_are_refused(
    place: Path, attempt: Callable[[], object], message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        attempt()
