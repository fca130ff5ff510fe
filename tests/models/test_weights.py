"""Bad names, missing and altered weights: a clear error before anything trains."""

import json
import shutil
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import huggingface_hub
import pytest
import torch
from huggingface_hub import constants, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError
from safetensors.torch import save_file
from small_models import added, edited, filled, typed, without

import fpt.models
from fpt.cli.doctor import findings
from fpt.errors import SpecError, WeightsError
from fpt.models import BACKBONES, backbone, weights


@pytest.mark.parametrize(
    ("name", "choice", "message"),
    [
        ("gtp2", {}, r"unknown backbone 'gtp2' \(a study\).*Did you mean 'gpt2'"),
        ("gpt2", {"options": {"layer": 2}}, r"option of backbone 'gpt2' 'layer'.*layers"),
        ("gpt2", {"init": "pretrained", "options": {"layers": 13}}, r"layers=13.*12 layers"),
        ("gpt2", {"options": {"layers": True}}, r"option layers is True.*must be int"),
        ("lstm", {"options": {"width": 0}}, r"width=0: must be 1 to 4096"),
        ("lstm", {"options": {"zero_positions": True}}, r"zero_positions.* only with option positions"),
        ("gpt2", {"init": "pretraind"}, r"unknown init 'pretraind'.*'pretrained'"),
        ("none", {"init": "pretrained"}, r"'none' has no pretrained weights; use init 'random'"),
        ("gpt2", {"trainable": "ftp"}, r"unknown trainable policy 'ftp'.*fpt"),
        ("gpt2", {"trainable": ["input", "atention"]}, r"unknown parameter group 'atention'.*'attention'"),
        ("gpt2", {"trainable": ["recurrent"]}, r"'gpt2' has no parameter group 'recurrent'"),
        ("lstm", {"trainable": ["positions"]}, r"'lstm' has no parameter group 'positions' \(option positions\)"),
        ("gpt2", {"trainable": []}, r"empty list"),
        ("gpt2", {"trainable": ["layers: first 13"]}, r"12 layers, too few for 'layers: first 13'"),
        (
            "gpt2",
            {"trainable": ["layers: 1-2"], "options": {"layers": 2}},
            r"2 layers, too few for 'layers: 1-2'",
        ),
    ],
)
def test_bad_choices(name, choice, message):
    with pytest.raises(SpecError, match=message):
        fpt.models.check_model(backbone(name, "a study"), **({"init": "random"} | choice))


def test_a_policy_takes_the_groups_that_exist(monkeypatch):
    monkeypatch.setitem(fpt.models.POLICIES, "mine", ("attention", "recurrent"))
    assert fpt.models.trainable_groups("mine", backbone("gpt2")) == ("attention",)
    with pytest.raises(SpecError, match=r"policy 'mine' trains attention, recurrent, but .*'none' has input, output"):
        fpt.models.trainable_groups("mine", backbone("none"))


def test_missing_weights_say_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("FPT_WEIGHTS", str(tmp_path))
    with pytest.raises(WeightsError, match=r"openai-community/gpt2.*FPT_WEIGHTS.*tiny-lm"):
        weights.find(backbone("gpt2"))


class Gate(BaseHTTPRequestHandler):
    """A hub whose models are for those who have a token, and whose /sign-in speaks no HTTP."""

    def do_HEAD(self):
        if self.path == "/sign-in":
            self.wfile.write(b"Welcome! Please sign in")
            return
        self.send_response(200 if self.headers["Authorization"] == "Bearer secret" else 401)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def gate(monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Gate)
    Thread(target=server.serve_forever, daemon=True).start()
    for name in ("HF_HUB_OFFLINE", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    address = f"http://127.0.0.1:{server.server_port}"
    yield lambda path: monkeypatch.setattr(huggingface_hub, "hf_hub_url", lambda *_, **__: address + path)
    server.shutdown()
    server.server_close()


def test_a_network_that_answers_with_something_else_is_none(gate):
    gate("/sign-in")
    with pytest.raises(WeightsError, match="the hub does not answer"):
        weights.find(backbone("gpt2"))


@pytest.mark.parametrize(("token", "answers"), [("secret", True), ("another", False), (None, False)])
def test_the_hub_is_asked_with_the_users_token(token, answers, gate, monkeypatch):
    gate("/config.json")
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    assert weights.hub_answers(backbone("gpt2")) == answers


def test_weights_on_disk_or_in_the_package_need_no_network(small_backbones):
    assert weights.find(backbone("small-gpt2")).name == "small-gpt2"
    assert weights.find(backbone("tiny-lm")).name == "tiny_lm"


CHECKPOINTS = {  # of our own: the seed, and the order of the Markov chain that wrote the text
    "tiny-lm": (0, None), "tiny-lm-seed1": (1, None), "tiny-lm-seed2": (2, None), "tiny-lm-markov": (0, 2),
    "tiny-lm-iid": (0, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_checkpoints_of_our_own_have_one_recipe_and_differ_as_their_names_say(name):
    """One that has no checksum in the catalogue is not in the package yet."""
    folder, expected, (seed, order) = (
        weights.local_folder(backbone(name)),
        BACKBONES[name].sha256,
        CHECKPOINTS[name],
    )
    assert (folder is None) == (expected is None)
    if folder:
        card, first = (
            json.loads((each / "model_card.json").read_text()) for each in (folder, weights.find(backbone("tiny-lm")))
        )
        assert weights.checksum(backbone(name)) == card["weights_sha256"] == expected
        assert (card["seed"], card.get("markov_order")) == (seed, order)
        same = ("corpus", "held_out_from", "steps", "batch_size", "learning_rate")
        assert all(card[key] == first[key] for key in same)
        assert (card["corpus_sha256"] == first["corpus_sha256"]) == (order is None)


@pytest.fixture
def minilm(monkeypatch, tmp_path):
    """A folder of the user's that has other files than MiniLM's."""
    monkeypatch.setenv("FPT_WEIGHTS", str(tmp_path))
    (tmp_path / "minilm").mkdir()
    for file in weights.FILES:
        (tmp_path / "minilm" / file).write_bytes(b"not it")
    return tmp_path / "minilm"


def test_altered_minilm_is_refused_and_left(minilm):
    with pytest.raises(WeightsError, match=r"expected SHA-256 53aa5117.*found [0-9a-f]{64}"):
        weights.find(backbone("minilm"))
    assert (minilm / "model.safetensors").read_bytes() == b"not it"


def test_damaged_weights_are_named(digits, small_backbones, tmp_path):
    (tmp_path / "small-gpt2" / "model.safetensors").write_bytes(b"garbage")
    with pytest.raises(WeightsError, match=r"'small-gpt2' in .*cannot be read"):
        fpt.models.build(digits, "small-gpt2")


# --- downloads


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """What an empty cache of the hub's client has of gpt2, and a hub that answers."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(weights, "hub_answers", lambda backbone: True)
    return tmp_path / "hub" / "models--openai-community--gpt2"


HTTP_ERROR = HfHubHTTPError.__mro__[1]


@pytest.mark.parametrize("error", [ConnectionResetError("reset"), OSError("No space left"), HTTP_ERROR("closed early")])
def test_a_download_that_breaks_off_leaves_all_that_was_there(error, hub, monkeypatch):
    """Its own part, from which the next call goes on, and those of another revision and of another process."""
    other, theirs = hub / "snapshots" / "older" / "model.safetensors", hub / "blobs" / "def.1.incomplete"
    for file in (other, theirs):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"not ours")
    part = hub / "blobs" / "abc.1.incomplete"

    def download(name, file, **_):
        if file == "config.json":
            (hub / "snapshots" / "abc").mkdir()
            (hub / "snapshots" / "abc" / file).write_text("{}")
            return str(hub / "snapshots" / "abc" / file)
        part.write_bytes(b"half")
        raise error

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    message = rf"'gpt2' could not be downloaded from openai-community/gpt2.*{error}.*FPT_WEIGHTS"
    with pytest.raises(WeightsError, match=message):
        weights.fetch(backbone("gpt2"))
    assert [file.read_bytes() for file in (other, theirs, part)] == [b"not ours", b"not ours", b"half"]
    assert weights.local_folder(backbone("gpt2")) is None  # a part is no model


def test_a_pinned_revision_is_asked_for_and_recorded(hub, small_backbones, monkeypatch, tmp_path):
    pinned = BACKBONES["gpt2"].revision
    assert pinned is not None
    asked = []

    def download(name, file, revision=None):
        asked.append((name, file, revision))
        shutil.copytree(tmp_path / "small-gpt2", hub / "snapshots" / pinned, dirs_exist_ok=True)
        return str(hub / "snapshots" / pinned / file)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    assert weights.commit(backbone("gpt2")) == pinned
    assert weights.commit(backbone("gpt2")) == pinned  # and nothing is asked of the hub once the cache has it
    assert asked == [("openai-community/gpt2", file, pinned) for file in weights.FILES]
    assert weights.commit(backbone("small-gpt2")) is None  # a folder of the user's


def test_what_is_cached_of_another_revision_does_not_count(hub, monkeypatch):
    cached = partial(try_to_load_from_cache, cache_dir=hub.parent)
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", cached)
    pinned = BACKBONES["gpt2"].revision
    for revision, found in (("0" * 40, None), (pinned, hub / "snapshots" / pinned)):
        (hub / "snapshots" / revision).mkdir(parents=True)
        for file in weights.FILES:
            (hub / "snapshots" / revision / file).touch()
        assert weights.local_folder(backbone("gpt2")) == found


def test_the_doctor_says_which_revisions_are_not_pinned():
    found = {what: f"{state} {advice}" for what, state, advice in findings()}
    assert "revision 607a30d7" in found["weights: gpt2"]
    assert "revision not pinned" in found["weights: longformer"]


def test_random_weights_of_a_deep_model_may_have_all_of_its_layers(monkeypatch):
    monkeypatch.setitem(BACKBONES, "deep", replace(BACKBONES["gpt2"], layers=62))
    deep, twelve = (backbone(name) for name in ("deep", "gpt2"))
    fpt.models.check_model(deep, {"layers": 62}, "random")
    with pytest.raises(SpecError, match=r"layers=63.*give 1 to 62"):
        fpt.models.check_model(deep, {"layers": 63}, "random")
    fpt.models.check_model(twelve, {"layers": 48}, "random")


MATRIX = "backbone.h.1.mlp.c_fc.weight"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without(MATRIX), r"lack 1 tensors.*h\.1\.mlp\.c_fc"),
        (added("backbone.h.2.ln_1.weight", torch.ones(16)), r"h\.2\.ln_1\.weight is in no layer"),
        (added(MATRIX, torch.ones(3, 16)), r"c_fc\.weight has the shape \(3, 16\)"),
        (typed(torch.int8, MATRIX), r"c_fc\.weight holds numbers of type I8"),
        (filled(MATRIX, float("nan")), r"c_fc\.weight has values that are not finite"),
    ],
)
def test_a_file_that_a_sweep_kept_is_refused_where_it_is_not_of_its_model(
    change, message, digits, small_backbones, tmp_path
):
    template = fpt.models.build(digits, "small-gpt2", "random")
    file = tmp_path / "model.safetensors"
    save_file(template.initialise(0), file)
    edited(change)(tmp_path)
    with pytest.raises(WeightsError, match=message):
        fpt.models.build(digits, "small-gpt2", weights=file)
