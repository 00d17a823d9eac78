import json
import logging
import os
import pickle
import subprocess
import sys
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification

from cooper_base.errors import InputError
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.local.models import load_policy, load_reward_model, load_tokenizer

load_base = partial(load_reward_model, new_head_seed=0)
"""Loads a model as `cooper verifyrm train` does."""


def edit_config(folder: Path, **changes) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_policy_folder_loads_in_float32(policy_folder, make_policy):
    make_policy().bfloat16().save_pretrained(policy_folder)
    model = load_policy(str(policy_folder))
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert not model.training


def test_padding_falls_back_to_end_of_sequence_and_its_embedding_still_learns(policy_folder):
    assert load_tokenizer(str(policy_folder)).pad_token_id == 0
    edit_config(policy_folder, pad_token_id=0)
    model = load_policy(str(policy_folder))
    model(torch.tensor([[3, 0, 5]])).logits.square().sum().backward()
    gradient = model.get_input_embeddings().get_parameter("weight").grad
    assert gradient is not None
    assert gradient[0].abs().sum() > 0


@pytest.mark.parametrize("load", [load_policy, load_reward_model, load_tokenizer])
def test_a_missing_folder_is_named(load, tmp_path):
    with pytest.raises(InputError, match="nowhere: no such model folder"):
        load(str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("given", "meant"),
    [("models/my-polcy", "models/my-policy"), ("modles/my-policy", "models/my-policy"), ("model", "models")],
)
def test_a_mistyped_folder_is_answered_with_the_nearest(tmp_path, monkeypatch, given, meant):
    (tmp_path / "models" / "my-policy").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"{given}: no such model folder; did you mean {meant}"):
        load_tokenizer(given)


@pytest.mark.parametrize("path", ["a/b/c", "./a", "~/a", "my model", "org/a--b", "model.git"])
def test_what_can_be_no_name_on_the_hub_is_a_missing_folder(path):
    with pytest.raises(InputError, match="no such model folder; give a folder"):
        load_tokenizer(path)


class NoSuchModel(BaseHTTPRequestHandler):
    """The hub's answer for a model that it does not have."""

    def do_HEAD(self):
        self.send_response(404)
        self.send_header("X-Error-Code", "RepoNotFound")
        self.end_headers()

    def log_message(self, format, *args):
        pass


@pytest.fixture
def hub():
    """A hub on this machine, at port `server_port`, that has no models."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), NoSuchModel)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.slow  # `cli/test_sharp_edges.py` has a hub that cannot be reached among the fast tests
@pytest.mark.parametrize("reachable", [True, False])
def test_a_name_that_is_neither_folder_nor_model_is_reported_at_once(tmp_path, hub, reachable):
    """Transformers alone retries for 46 s if the hub cannot be reached."""
    code = """
import time
from cooper_base.errors import InputError
from cooper_rl.engines.local.models import load_tokenizer
begin = time.monotonic()
try:
    load_tokenizer("models/my-policy")
except InputError as error:
    print(f"{time.monotonic() - begin:.1f}|{error}")
"""
    port = hub.server_port if reachable else 1
    environment = os.environ | {"HF_ENDPOINT": f"http://127.0.0.1:{port}", "HF_HUB_OFFLINE": "0"}
    environment |= {"HF_HOME": str(tmp_path), "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    seconds, _, message = done.stdout.partition("|")
    assert float(seconds) < 7, done.stderr
    assert f"models/my-policy: no such folder in {tmp_path}, so it was taken for a Hugging Face name" in message
    expected = "the hub has no such model, or you may not read it" if reachable else "the hub cannot be reached"
    assert expected in message


@pytest.mark.parametrize("load", [load_policy, load_reward_model, load_tokenizer])
def test_a_name_that_no_hub_serves_is_an_input_error(load):
    with pytest.raises(InputError, match="taken for a Hugging Face name"):
        load("nobody/no-such-model")


@pytest.mark.parametrize(
    ("removed", "load", "message"),
    [
        ("config.json", load_policy, "no config.json"),
        ("model.safetensors", load_policy, "no weights"),
        ("config.json", load_reward_model, "no config.json"),
    ],
)
def test_an_incomplete_folder_says_what_is_missing(policy_folder, removed, load, message):
    (policy_folder / removed).unlink()
    with pytest.raises(InputError, match=message):
        load(str(policy_folder))


def test_a_folder_without_tokenizer_fails_before_its_weights_are_read(policy_folder):
    for path in policy_folder.glob("tokenizer*"):
        path.unlink()
    (policy_folder / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(InputError, match="no tokenizer"):
        TorchPolicyLearner.from_config(LearnerConfig(model=str(policy_folder)), 1)
    with pytest.raises(InputError, match="no tokenizer"):
        load_base(str(policy_folder))


def test_damaged_weights_are_an_input_error(policy_folder):
    (policy_folder / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(InputError, match="cannot be loaded"):
        load_policy(str(policy_folder))


def test_a_missing_weight_never_starts_at_random(policy_folder):
    path = policy_folder / "model.safetensors"
    weights = load_file(path)
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, path, metadata={"format": "pt"})
    for load in (load_policy, load_base):
        with pytest.raises(InputError, match=r"layers\.1\.mlp\.up_proj"):
            load(str(policy_folder))


def test_a_tokenizer_larger_than_the_model_is_an_input_error(policy_folder, make_policy):
    make_policy(vocab_size=40).save_pretrained(policy_folder)
    with pytest.raises(InputError, match="40 embeddings"):
        TorchPolicyLearner.from_config(LearnerConfig(model=str(policy_folder)), 1)


def test_code_from_the_model_folder_is_never_run(policy_folder):
    edit_config(policy_folder, model_type="own", auto_map={"AutoConfig": "own.Config"})
    (policy_folder / "own.py").write_text("raise SystemExit('ran')")
    with pytest.raises(InputError, match="never run"):
        load_policy(str(policy_folder))


def test_a_causal_model_gets_a_new_head_and_says_so(policy_folder, make_policy, caplog):
    with caplog.at_level(logging.WARNING, logger="cooper_rl"):
        model = load_base(str(policy_folder))
    assert "new one is made: score.weight" in caplog.text
    assert model.get_submodule("score").weight.shape == (1, 32)
    torch.testing.assert_close(model.base_model.state_dict(), make_policy().base_model.state_dict())
    torch.testing.assert_close(load_base(str(policy_folder)).state_dict(), model.state_dict())


def test_a_causal_model_that_should_be_a_reward_model_is_refused_before_its_weights_are_read(policy_folder):
    (policy_folder / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(InputError, match=r"a LlamaForCausalLM has no reward head.*`cooper verifyrm train`"):
        load_reward_model(str(policy_folder))


def test_a_model_that_does_not_say_what_it_is_gets_no_head_either(policy_folder):
    edit_config(policy_folder, architectures=None)
    with pytest.raises(InputError, match=r"score\.weight; they would start at random"):
        load_reward_model(str(policy_folder))


def test_a_new_head_survives_plain_transformers(policy_folder, tmp_path):
    model = load_base(str(policy_folder))
    model.save_pretrained(tmp_path / "saved")
    plain, info = AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved", output_loading_info=True)
    assert not info["missing_keys"]
    assert plain.config.num_labels == 1
    assert plain.config.pad_token_id == 0
    torch.testing.assert_close(plain.state_dict(), model.state_dict())


def test_a_reward_model_keeps_its_head_in_silence(reward_model_folder, make_reward_model, caplog):
    with caplog.at_level(logging.WARNING, logger="cooper_rl"):
        model = load_reward_model(str(reward_model_folder))
    assert not caplog.records
    torch.testing.assert_close(model.state_dict(), make_reward_model().state_dict())


def test_a_classification_model_without_its_head_is_an_input_error(reward_model_folder):
    path = reward_model_folder / "model.safetensors"
    weights = load_file(path)
    del weights["score.weight"]
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"score\.weight; they would start at random"):
        load_reward_model(str(reward_model_folder))


def test_a_head_with_two_outputs_is_an_input_error(reward_model_folder, make_reward_model):
    make_reward_model(num_labels=2).save_pretrained(reward_model_folder)
    with pytest.raises(InputError, match="2 outputs"):
        load_reward_model(str(reward_model_folder))


def test_a_head_of_another_shape_is_an_input_error(reward_model_folder, make_reward_model):
    config = (reward_model_folder / "config.json").read_text()
    make_reward_model(num_labels=3).save_pretrained(reward_model_folder)
    (reward_model_folder / "config.json").write_text(config)
    with pytest.raises(InputError, match="cannot be loaded"):
        load_reward_model(str(reward_model_folder))


def test_a_reward_model_cannot_be_a_policy(reward_model_folder):
    with pytest.raises(InputError, match="cannot write"):
        load_policy(str(reward_model_folder))


class Malicious:
    """Unpickling this object runs a command."""

    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


@pytest.mark.parametrize("load", [load_policy, load_base])
def test_pickled_weights_are_refused_and_never_read(policy_folder, tmp_path, load):
    marker = tmp_path / "ran"
    (policy_folder / "model.safetensors").unlink()
    (policy_folder / "pytorch_model.bin").write_bytes(pickle.dumps(Malicious(marker)))
    with pytest.raises(InputError, match=r"only pickled weights .* convert it to safetensors"):
        load(str(policy_folder))
    (policy_folder / "adapter_model.safetensors").touch()
    with pytest.raises(InputError, match="cannot be loaded"):
        load(str(policy_folder))
    assert not marker.exists()
    pickle.loads((policy_folder / "pytorch_model.bin").read_bytes())
    assert marker.exists(), "the file runs code when it is unpickled"


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_code_beside_a_known_model_is_not_run_either(reward_model_folder, file):
    own = {"AutoConfig": "own.Config", "AutoModelForSequenceClassification": "own.M", "AutoTokenizer": ["own.T", None]}
    path = reward_model_folder / file
    path.write_text(json.dumps(json.loads(path.read_text()) | {"auto_map": own}))
    (reward_model_folder / "own.py").write_text("raise SystemExit('ran')")
    assert load_reward_model(str(reward_model_folder)).config.num_labels == 1


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("config.json", {"rms_norm_eps": "x"}),
        ("config.json", {"id2label": 7}),
        ("config.json", {"architectures": 7, "hidden_size": []}),
        ("tokenizer.json", {"model": {"a": 1}}),
        ("tokenizer.json", {"added_tokens": 2.5}),
        ("tokenizer_config.json", {"eos_token": -1}),
    ],
)
def test_a_value_of_another_type_is_an_input_error(reward_model_folder, file, change):
    path = reward_model_folder / file
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match="cannot be loaded"):
        load_reward_model(str(reward_model_folder))
