"""Tests run in parallel processes. Each uses one tensor thread; with more they would slow each other down."""

import gc
import inspect
import logging
import os
import sys
from collections.abc import Callable, Generator
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["COOPER_STRICT"] = "1"  # a fault of Cooper's on one text fails the test
os.environ["PYTHONDONTWRITEBYTECODE"] = ""  # which some images set: each of hundreds of processes would compile anew
# Every client of httpx reads the certificates of all authorities, 25 ms, and the tests make a thousand clients of
# servers on this machine. A folder, unlike a file, is only searched when a certificate is checked.
os.environ["SSL_CERT_FILE"] = ""
os.environ["SSL_CERT_DIR"] = os.path.dirname(__file__)

import pytest
from hypothesis import settings as hypothesis_settings

from cooper_base.data.answer import Answer, AnswerGroup
from cooper_base.data.problem import Problem
from cooper_base.packages import set_log_level
from cooper_verify.clients import chat

sys.dont_write_bytecode = False
os.fsync = lambda fd: None  # only a power cut loses what a process has written, and the disk takes 5 ms for each call
chat.FIRST_WAIT_S = 0.01  # no test waits for a server that fails on purpose
hypothesis_settings.register_profile("untimed", deadline=None)  # no test may fail because the machine is busy
hypothesis_settings.load_profile("untimed")

LONGEST_NAME = 200
"""Characters of a text that names a case."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """What is collected stays to the end. Python does not look for garbage in its millions of objects, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_make_parametrize_id(val: object) -> str | None:
    """The name of a case that is a long text. Pytest escapes the whole text, sets an environment variable to it, and
    sends it from process to process: a case of ten megabytes took seconds before its test began."""
    is_long = isinstance(val, str | bytes) and len(val) > LONGEST_NAME
    return f"{val[:20]!a} of {len(val)}" if is_long else None


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a server, a run or a model of a fixture run in one worker, since each worker would make its own.
    They come first, or the other workers would wait for them at the end."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None and (group := _sharing(item)) is not None:
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)


@pytest.hookimpl(trylast=True)  # after the fixtures of its file
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Ray ends with the tests that need it. Its processes take CPU time even when nobody calls them."""
    if _is_on_ray(item) and not (nextitem and _is_on_ray(nextitem)) and "rank_processes" in sys.modules:
        sys.modules["rank_processes"].end_all()


def _is_on_ray(item: pytest.Item) -> bool:
    marker = item.get_closest_marker("xdist_group")
    return marker is not None and marker.args == ("cluster",)


def _sharing(item: Any) -> str | None:
    """With whom a test shares what is made once: those of its file, or of a folder where something runs for all."""
    info = getattr(item, "_fixtureinfo", None)  # a test that is no function has none
    fixtures = [] if info is None else [of_name[-1] for of_name in info.name2fixturedefs.values()]
    ours = [fixture for fixture in fixtures if fixture.baseid]  # not those of plugins and of this file
    running = [f for f in ours if f.scope == "session" and inspect.isgeneratorfunction(f.func)]
    if running:
        return f"{running[0].baseid}-{running[0].argname}"
    return item.nodeid.partition("::")[0] if any(fixture.scope == "module" for fixture in ours) else None


@pytest.fixture(autouse=True)
def _log_from_warnings_on() -> None:
    """A cell of the arena or an arm of the demo quietens this package's log, also for the tests after it."""
    set_log_level(logging.NOTSET)


GOLD = "cooper_lab.arithmetic.problems:gold"
CORRUPTER = {"kind": "corrupter", "function": "cooper_lab.arithmetic.corruption:corrupt"}


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory):
    """Random models like those of the embedded world, but much smaller."""
    import torch  # not above: the process that only deals the tests out needs none
    from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen2ForSequenceClassification

    from cooper_lab.arithmetic.tokenizer import build_tokenizer

    folder = tmp_path_factory.mktemp("models")
    tokenizer = build_tokenizer()
    shape: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "num_labels": 1,
    }
    config = Qwen2Config(**shape)
    torch.manual_seed(0)
    Qwen2ForCausalLM(config).save_pretrained(folder / "policy")
    Qwen2ForSequenceClassification(config).save_pretrained(folder / "reward_model")
    for name in ("policy", "reward_model"):
        tokenizer.save_pretrained(folder / name)
    return folder


@pytest.fixture
def settings(tiny_models, tmp_path):
    problems = {"source": "arithmetic", "limit": 24, "gold": GOLD, "prompt": {"template": "{question}\n"}}
    return {
        "name": "run",
        "output_dir": str(tmp_path),
        "threads": 1,
        "steps": 4,
        "problems_per_step": 4,
        "policy": {"model": str(tiny_models / "policy"), "learning_rate": 1e-3},
        "reward_model": {"model": str(tiny_models / "reward_model"), "learning_rate": 1e-3, "max_input_tokens": 160},
        "problems": problems,
        "test_problems": {**problems, "split": "test", "limit": 6},
        "evaluation": {"every": 2, "k": 2},
        "rollout": {"n": 4, "max_tokens": 12},
        "algorithm": {"min_spread": 0.0},
        "cooptimization": {"assistant": CORRUPTER},
        "checkpoint": {"every": 2},
    }


@pytest.fixture
def make_group() -> Callable[..., AnswerGroup]:
    def make(answer: str, *texts: str, id: str = "p1", question: str = "How many apples?") -> AnswerGroup:
        return AnswerGroup(id, Problem(id, question, answer), [Answer(text) for text in texts])

    return make
