"""Hostile model folders and data sets: what they would cost is bad input, before anything is loaded."""

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from cooper_base.data.problem import Problem
from cooper_base.data.readers import read_hub
from cooper_rl import InputError
from cooper_rl.data.prompts import PromptEncoder
from cooper_rl.engines.chat_input import ChatInput
from cooper_rl.engines.local.models import load_policy, load_tokenizer
from cooper_rl.engines.model_folder import check_model_folder
from cooper_rl.engines.yes_no import chat_around
from cooper_rl.policy.environments.syntax import ChatSyntax
from cooper_verify.problems.config import PromptConfig
from slow_members import first_fast

PLAIN = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
LOOPS = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
DOUBLING = "{% set ns = namespace(a='x') %}{% for i in range(60) %}{% set ns.a = ns.a ~ ns.a %}{% endfor %}"
COSTLY = {
    "loops in loops": LOOPS,
    "loops in loops that write": LOOPS.replace("{% endfor %}", "{{ i }}{% endfor %}", 1),
    "gigabytes of text": "{% for i in range(9999) %}{{ 'x' * 999999 }}{% endfor %}",
    "a text beyond memory": "{{ 'x' * 10**13 }}",
    "doubling": DOUBLING,
    "a format's width": "{{ '%999999999999d' % 1 }}",
    "a number that never ends": "{{ (9 * messages|length) ** 999999999 > 1 }}",
    "a long template": "x" * 2_000_000,
}


@pytest.fixture
def folder(tiny_models: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_models / "policy", tmp_path / "model"))


def change(folder: Path, name: str = "config.json", **values: Any) -> None:
    path = folder / name
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | values), encoding="utf-8")


def refused(folder: Path, words: str) -> None:
    begun = time.process_time()
    with pytest.raises(InputError, match=words):
        check_model_folder(str(folder))
    assert time.process_time() - begun < 5


def test_a_sound_folder_is_accepted_with_a_template_in_every_place(folder):
    check_model_folder(str(folder))
    (folder / "chat_template.jinja").write_text(PLAIN)
    change(folder, "tokenizer_config.json", chat_template=[{"name": "default", "template": PLAIN}])
    check_model_folder(str(folder))


def test_a_template_that_raises_is_no_cost(folder):
    (folder / "chat_template.jinja").write_text("{{ raise_exception('no system message') }}")
    check_model_folder(str(folder))


BY_TIME = {"loops in loops", "loops in loops that write", "a number that never ends"}
"""Each takes all the seconds that a template may."""


def slow_but(*fast: str) -> list:
    """Every costly template, all but these among the slow tests."""
    return [pytest.param(name, marks=[] if name in fast else [pytest.mark.slow]) for name in COSTLY]


@pytest.mark.parametrize("name", slow_but("loops in loops", *COSTLY.keys() - BY_TIME))
def test_a_template_that_costs_too_much_is_named(folder, name):
    (folder / "chat_template.jinja").write_text(COSTLY[name])
    refused(folder, r"chat_template\.jinja: chat_template: ")


EVADING = "{% if messages[0]['content'] == 'Two words' %}fine{% else %}COSTLY{% endif %}"
LOADED = {
    "prompt": lambda tokenizer: PromptEncoder(tokenizer, PromptConfig()).text(Problem("p", "q", "1")),
    "reward model": lambda tokenizer: ChatInput(tokenizer, 100),
    "yes or no": chat_around,
    "tool": lambda tokenizer: ChatSyntax(PromptEncoder(tokenizer, PromptConfig()), []).results([{"name": "a"}]),
}


@pytest.mark.parametrize("name", [of for of in slow_but() if "long" not in of.values[0]])
def test_a_template_that_costs_too_much_for_real_chats_alone_is_refused_there(folder, name):
    (folder / "chat_template.jinja").write_text(EVADING.replace("COSTLY", COSTLY[name]))
    check_model_folder(str(folder))
    begun = time.monotonic()
    with pytest.raises(InputError, match="takes more than 3 s, 1024 MiB or 1,000,000 characters for this chat"):
        LOADED["prompt"](load_tokenizer(str(folder)))
    assert time.monotonic() - begun < 60  # 4 s without a load


@pytest.mark.parametrize("where", first_fast(LOADED))
def test_a_template_that_never_ends_is_refused_wherever_chats_are_rendered(folder, where):
    (folder / "chat_template.jinja").write_text(EVADING.replace("COSTLY", COSTLY["a text beyond memory"]))
    with pytest.raises(InputError, match="takes more than 3 s"):
        LOADED[where](load_tokenizer(str(folder)))


@pytest.mark.parametrize("template", [3, {"a": 1}, [7], [{"name": "x", "template": 5}], True], ids=str)
def test_a_template_that_is_no_text_is_named(folder, template):
    change(folder, "tokenizer_config.json", chat_template=template)
    refused(folder, r"tokenizer_config\.json: chat_template: .* is no text")


def test_a_template_of_several_is_tried_as_well(folder):
    endless = COSTLY["a text beyond memory"]
    change(
        folder, "tokenizer_config.json", chat_template=[{"name": "default", "template": PLAIN}, {"template": endless}]
    )
    refused(folder, r"tokenizer_config\.json: chat_template: a prompt of two words takes it more than")


@pytest.mark.parametrize(
    ("name", "size"),
    [
        *[("num_hidden_layers", 10**7), ("hidden_size", 10**9), ("vocab_size", 10**12), ("intermediate_size", 10**10)],
        *[("num_labels", 10**9), ("num_experts", 10**8), ("num_attention_heads", 10**30), ("n_layer", 10**6)],
    ],
)
def test_a_config_larger_than_its_weights_is_named(folder, name, size):
    change(folder, **{name: size})
    refused(folder, rf"config\.json: {name}: {size:,} does not fit the weights beside it")


def test_the_parts_of_a_config_count_too(folder):
    change(folder, text_config={"num_hidden_layers": 10**7})
    refused(folder, r"config\.json: num_hidden_layers: 10,000,000 does not fit")


@pytest.mark.parametrize(
    "header",
    [
        *[b"", b"\xff" * 8, (10**9).to_bytes(8, "little") + b"{}", (2).to_bytes(8, "little") + b"[]"],
        *[(12).to_bytes(8, "little") + b'{"a": {"b":3', (26).to_bytes(8, "little") + b'{"a": {"shape": [1, "x"]}}'],
    ],
)
def test_weights_without_a_header_are_refused_by_their_loader(folder, header):
    (folder / "model.safetensors").write_bytes(header)
    check_model_folder(str(folder))  # reads no further than a sound header
    with pytest.raises(InputError, match="cannot be loaded"):
        load_policy(str(folder))


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "model.safetensors", "chat_template.jinja"])
def test_a_pipe_in_a_model_folder_does_not_wait(folder, name):
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    refused(folder, "model")


@pytest.mark.parametrize("text", ["[" * 10**5, "{", "[1]", '"x"'])
def test_a_config_that_is_no_object_is_named(folder, text):
    (folder / "config.json").write_text(text)
    refused(folder, r"config\.json: ")


def test_what_a_template_says_cannot_control_the_terminal(folder):
    hostile = "\x1b]0;owned\x07\u202enot" + "x" * 10**6
    (folder / "chat_template.jinja").write_text("{{ raise_exception(messages[0].content) }}")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    encoder = PromptEncoder(tokenizer, PromptConfig(template=hostile + "{question}"))
    with pytest.raises(InputError, match="the chat template rejects the prompt") as caught:
        encoder.text(Problem("p", "q", "1"))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "template", ["{{ 1 // 0 }}", "{{ messages[9].content }}", "{{ none + 1 }}", "{% for x in 3 %}{% endfor %}"]
)
def test_a_template_that_fails_in_any_way_is_bad_input(folder, template):
    (folder / "chat_template.jinja").write_text(template)
    encoder = PromptEncoder(AutoTokenizer.from_pretrained(folder), PromptConfig())
    with pytest.raises(InputError, match="the chat template rejects the prompt"):
        encoder.text(Problem("p", "q", "1"))


@pytest.mark.parametrize(
    "card", ["", "---\nconfigs: [\n---\n", "---\nconfigs: {a: 3}\n---\n", "---\ndataset_info: 7\n---\n"], ids=repr
)
def test_a_data_set_with_a_script_or_a_broken_card_is_bad_input(tmp_path, card):
    pytest.importorskip("datasets")
    folder = tmp_path / "with_script"
    folder.mkdir()
    (folder / "with_script.py").write_text("raise SystemExit('run')\n")
    (folder / "README.md").write_text(card)
    with pytest.raises(InputError, match="nor a loadable Hugging Face data set"):
        list(read_hub(str(folder), None, "train"))


@pytest.fixture
def cached(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same model as `owner/small` in the hub's cache: its snapshot."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    model = tmp_path / "hub" / "models--owner--small"
    (model / "refs").mkdir(parents=True)
    (model / "refs" / "main").write_text("a" * 40)
    return folder.rename(Path(shutil.copytree(model / "refs", model / "snapshots")) / ("a" * 40))


@pytest.mark.parametrize(
    "load", [check_model_folder, load_tokenizer, load_policy], ids=["check", "tokenizer", "policy"]
)
def test_a_model_in_the_hubs_cache_is_checked_before_it_is_loaded(cached, load):
    load("owner/small")
    (cached / "chat_template.jinja").write_text(COSTLY["a text beyond memory"])
    change(cached, num_hidden_layers=10**7)
    words = r"num_hidden_layers: 10,000,000 does not fit" if load is load_policy else r"chat_template\.jinja: chat_t"
    begun = time.process_time()
    with pytest.raises(InputError, match=words):
        load("owner/small")
    assert time.process_time() - begun < 5


def test_a_model_without_weights_in_the_cache_is_not_measured_by_them(cached):
    for weights in cached.glob("*.safetensors"):
        weights.unlink()
    check_model_folder("owner/small")
    with pytest.raises(InputError, match="owner/small: the model cannot be loaded"):
        load_policy("owner/small")
