"""The engines that the suite runs on, and the tiny models it gives them.

An engine is one entry of `ENGINES`: three functions that take a Hugging Face folder. The tests use only the protocols
of `engines/base.py`, and compare what an engine computes with plain transformers in float64.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig as PeftConfig
from peft import get_peft_model
from plain import VOCABULARY
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    LlamaConfig,
    LlamaForCausalLM,
    LlamaForSequenceClassification,
    PreTrainedTokenizerFast,
)

from cooper_rl.engines.base import PolicyLearner, RewardModelLearner, Sampler
from cooper_rl.engines.config import LearnerConfig, LoraConfig
from cooper_rl.engines.local.adapter import load_adapter
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.local.models import load_tokenizer
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.local.sampler import NativeSampler
from cooper_rl.engines.model_folder import adapter_base
from rank_processes import on_ranks, together, two_ranks, two_ranks_and_vllm
from tiny_size import TINY

LORA = {"rank": 3, "alpha": 5.0}


@dataclass(frozen=True)
class Engine:
    """Builds one engine's parts. Learners read `config.model`; a sampler gets its weights from a policy learner."""

    name: str
    policy: Callable[[LearnerConfig, int, bool], PolicyLearner]
    """Takes a configuration, the number of steps of the run, and whether the learner is trained."""
    reward_model: Callable[[LearnerConfig, int, bool], RewardModelLearner]
    sampler: Callable[[Path], Sampler]
    """Takes the folder of the tokenizer."""
    adapted: bool = False
    """Whether its models are adapters beside frozen weights."""
    unfiltered_logprobs: bool = True
    """Whether a sampler's log-probabilities are known where filters are on; otherwise they are NaN there."""
    marks: tuple[pytest.MarkDecorator, ...] = ()


def load_here(learner: Any, adapter: Path) -> None:
    load_adapter(adapter, learner.model)


def load_on_ranks(learner: Any, adapter: Path) -> None:
    key = learner.key
    on_ranks(lambda rank: load_adapter(adapter, rank.parts[key].learner.model))
    learner.version += 1


def with_lora(
    build: Callable[[LearnerConfig, int, bool], Any], put_in: Callable[[Any, Path], None]
) -> Callable[[LearnerConfig, int, bool], Any]:
    """A builder of learners for a folder with an adapter: trained further if `trainable`, else merged."""

    def learner(config: LearnerConfig, steps: int, trainable: bool) -> Any:
        if not trainable:
            return build(config, steps, False)
        adapted = {"model": adapter_base(config.model), "lora": LoraConfig.model_validate(LORA)}
        made = build(config.model_copy(update=adapted), steps, True)
        put_in(made, Path(config.model))
        return made

    return learner


@cache
def _vllm_engine(folder: Path):
    """One engine for all tests: starting it takes seconds. A sampler around it has no weights until it gets some."""
    from cooper_rl.engines.scale.vllm import VllmConfig
    from cooper_rl.engines.scale.vllm.engines import OfflineEngine

    config = VllmConfig(kv_cache_gib=0.1)
    return OfflineEngine(str(folder), config), config


def vllm_sampler(folder: Path) -> Sampler:
    pytest.importorskip("vllm", reason="vLLM is not installed; make test-vllm")
    from cooper_rl.engines.scale.vllm.sampler import build_sampler

    engine, config = _vllm_engine(folder)
    return build_sampler(LearnerConfig(model=str(folder)), config, "gloo", start=lambda *_: engine)


on_ray = (together, pytest.mark.slow)
"""The learners and the sampler of a cluster are those that run here; `engines/cluster` tests what it adds."""

ENGINES = [
    Engine(
        name="local",
        policy=TorchPolicyLearner.from_config,
        reward_model=TorchRewardModelLearner.from_config,
        sampler=lambda folder: NativeSampler(load_tokenizer(str(folder)), autocast="off"),
    ),
    Engine(
        name="cluster",
        policy=lambda *settings: two_ranks().policy(*settings),
        reward_model=lambda *settings: two_ranks().reward_model(*settings),
        sampler=lambda folder: two_ranks().sampler(LearnerConfig(model=str(folder)), 0),
        marks=on_ray,
    ),
    Engine(
        name="local-lora",
        policy=with_lora(TorchPolicyLearner.from_config, load_here),
        reward_model=with_lora(TorchRewardModelLearner.from_config, load_here),
        sampler=lambda folder: NativeSampler(load_tokenizer(str(folder)), autocast="off"),
        adapted=True,
    ),
    Engine(
        name="cluster-lora",
        policy=with_lora(lambda *settings: two_ranks().policy(*settings), load_on_ranks),
        reward_model=with_lora(lambda *settings: two_ranks().reward_model(*settings), load_on_ranks),
        sampler=lambda folder: two_ranks().sampler(LearnerConfig(model=str(folder)), 0),
        adapted=True,
        marks=on_ray,
    ),
]


def cluster_vllm_policy(config: LearnerConfig, steps: int, trainable: bool) -> PolicyLearner:
    return two_ranks_and_vllm().policy(config, steps, trainable)


SAMPLERS = [
    *(replace(engine, marks=(*engine.marks, pytest.mark.slow)) if engine.adapted else engine for engine in ENGINES),
    Engine(
        name="cluster-vllm",
        policy=cluster_vllm_policy,
        reward_model=TorchRewardModelLearner.from_config,
        sampler=lambda folder: two_ranks_and_vllm().sampler(LearnerConfig(model=str(folder)), 0),
        unfiltered_logprobs=False,
        marks=(together,),
    ),
    Engine(
        name="vllm",
        policy=TorchPolicyLearner.from_config,
        reward_model=TorchRewardModelLearner.from_config,
        sampler=vllm_sampler,
        unfiltered_logprobs=False,
    ),
]
"""With those whose learners are the local engine's, and are tested there. A sampler draws from an adapter's weights as
from others: `learners/test_lora.py` tests that it gets them, and all the rest is slow."""


@pytest.fixture(params=[pytest.param(engine, id=engine.name, marks=engine.marks) for engine in ENGINES])
def engine(request) -> Engine:
    return request.param


@pytest.fixture
def folders(engine, whole_models, adapters) -> Path:
    """The models that the engine under test is given."""
    return adapters if engine.adapted else whole_models


@pytest.fixture(params=[pytest.param(engine, id=engine.name, marks=engine.marks) for engine in SAMPLERS])
def sampling_engine(request) -> Engine:
    return request.param


@pytest.fixture(scope="session")
def adapters(tmp_path_factory, whole_models) -> Path:
    """The whole models as adapters, written by peft; both policies adapt the same base."""
    folder = tmp_path_factory.mktemp("adapters")
    bases = {"policy": "policy", "other_policy": "policy", "reward_model": "reward_model", "judge": "judge"}
    for seed, (name, base) in enumerate(bases.items()):
        load = AutoModelForSequenceClassification if "reward" in name else AutoModelForCausalLM
        settings = PeftConfig(
            r=LORA["rank"],
            lora_alpha=LORA["alpha"],
            target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
            task_type="SEQ_CLS" if "reward" in name else "CAUSAL_LM",
        )
        model = get_peft_model(load.from_pretrained(whole_models / base), settings)
        torch.manual_seed(10 + seed)
        for parameter in model.parameters():
            if parameter.requires_grad:
                torch.nn.init.normal_(parameter, std=0.2)  # B is zero at the start, and would hide A's gradient
        model.save_pretrained(folder / name)
        load_tokenizer(str(whole_models / base)).save_pretrained(folder / name)
    return folder


@pytest.fixture(scope="session")
def whole_models(tmp_path_factory) -> Path:
    """`policy`, `other_policy`, `reward_model` and `judge`, a language model that scores by its logits of y and n:
    random Llamas with a tokenizer of one token a character.
    """
    folder = tmp_path_factory.mktemp("conformance")
    characters = Tokenizer(models.WordLevel({c: i for i, c in enumerate(VOCABULARY)}, unk_token="<unk>"))
    characters.pre_tokenizer = pre_tokenizers.Split(Regex("."), behavior="isolated")
    characters.decoder = decoders.Fuse()  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=characters, eos_token="<eos>", unk_token="<unk>")
    # 32 is the smallest size of a head that every engine takes on a CPU.
    shape = {**TINY, "vocab_size": len(VOCABULARY), "max_position_embeddings": 128, "head_dim": 32}
    config = LlamaConfig(**shape, bos_token_id=None, eos_token_id=0, initializer_range=0.2)
    config.pad_token_id, config.num_labels = 0, 1
    kinds = {
        "policy": LlamaForCausalLM,
        "other_policy": LlamaForCausalLM,
        "reward_model": LlamaForSequenceClassification,
        "judge": LlamaForCausalLM,
    }
    asked = {"yes": VOCABULARY.index("y"), "no": VOCABULARY.index("n"), "ask": "?", "temperature": 2.0}
    for seed, (name, kind) in enumerate(kinds.items()):
        torch.manual_seed(seed)
        model = kind(config)
        if name == "judge":
            model.config.yes_no = asked
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    return folder
