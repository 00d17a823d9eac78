"""The engines that the suite runs on, and the tiny models it gives them.

An engine is one entry of `ENGINES`: three functions that take a Hugging Face folder. The tests use only the protocols
of `engines/base.py`, and compare what an engine computes with plain transformers in float64.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from plain import VOCABULARY
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification, PreTrainedTokenizerFast

from cooper_rl.engines.base import PolicyLearner, RewardModelLearner, Sampler
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.local.models import load_tokenizer
from cooper_rl.engines.local.policy import TorchPolicyLearner
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.local.sampler import NativeSampler
from rank_processes import together, two_ranks
from tiny_size import TINY


@dataclass(frozen=True)
class Engine:
    """Builds one engine's parts. Learners read `config.model`; a sampler gets its weights from a policy learner."""

    name: str
    policy: Callable[[LearnerConfig, int, bool], PolicyLearner]
    """Takes a configuration, the number of steps of the run, and whether the learner is trained."""
    reward_model: Callable[[LearnerConfig, int, bool], RewardModelLearner]
    sampler: Callable[[Path], Sampler]
    """Takes the folder of the tokenizer."""
    marks: tuple[pytest.MarkDecorator, ...] = ()


ENGINES = [
    Engine(
        name="local",
        policy=TorchPolicyLearner.from_config,
        reward_model=TorchRewardModelLearner.from_config,
        sampler=lambda folder: NativeSampler(load_tokenizer(str(folder))),
    ),
    Engine(
        name="cluster",
        policy=lambda *settings: two_ranks().policy(*settings),
        reward_model=lambda *settings: two_ranks().reward_model(*settings),
        sampler=lambda folder: two_ranks().sampler(LearnerConfig(model=str(folder)), 0),
        marks=(together,),
    ),
]


@pytest.fixture(params=[pytest.param(engine, id=engine.name, marks=engine.marks) for engine in ENGINES])
def engine(request) -> Engine:
    return request.param


@pytest.fixture(scope="session")
def folders(tmp_path_factory) -> Path:
    """`policy`, `other_policy` and `reward_model`: random Llamas whose tokenizer has one token per character."""
    folder = tmp_path_factory.mktemp("conformance")
    characters = Tokenizer(models.WordLevel({c: i for i, c in enumerate(VOCABULARY)}, unk_token="<unk>"))
    characters.pre_tokenizer = pre_tokenizers.Split(Regex("."), behavior="isolated")
    characters.decoder = decoders.Fuse()  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=characters, eos_token="<eos>", unk_token="<unk>")
    shape = {**TINY, "vocab_size": len(VOCABULARY), "max_position_embeddings": 128}
    config = LlamaConfig(**shape, bos_token_id=None, eos_token_id=0, initializer_range=0.2)
    config.pad_token_id, config.num_labels = 0, 1
    kinds = {
        "policy": LlamaForCausalLM,
        "other_policy": LlamaForCausalLM,
        "reward_model": LlamaForSequenceClassification,
    }
    for seed, (name, kind) in enumerate(kinds.items()):
        torch.manual_seed(seed)
        kind(config).save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    return folder
