"""The engines that the suite runs on, and the tiny models it gives them.

An engine is one entry of `ENGINES`: three functions that take a Hugging Face folder. The tests know an engine by the
protocols of `engines/base.py` alone; what it computes is compared with plain transformers in float64.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
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
from tiny_size import TINY


@dataclass(frozen=True)
class Engine:
    """How one engine is built. Learners read `config.model`; a sampler gets its weights from a policy learner."""

    name: str
    policy: Callable[[LearnerConfig, int, bool], PolicyLearner]
    """From a configuration, the run's steps, and whether it is trained."""
    reward_model: Callable[[LearnerConfig, int, bool], RewardModelLearner]
    sampler: Callable[[Path], Sampler]
    """Of the tokenizer in a folder."""
    unfiltered_logprobs: bool = True
    """Whether a sampler's log-probabilities are known where filters are on; otherwise they are NaN there."""


@cache
def _vllm_engine(folder: Path):
    """One engine for all tests: starting it takes seconds. A sampler around it has no weights until it gets some."""
    from cooper_rl.engines.vllm.config import VllmConfig
    from cooper_rl.engines.vllm.offline import OfflineEngine

    config = VllmConfig(enforce_eager=True, kv_cache_gib=0.1, max_num_seqs=256)
    return OfflineEngine(str(folder), config), config


def vllm_sampler(folder: Path) -> Sampler:
    pytest.importorskip("vllm", reason="vLLM is not installed; make test-vllm")
    from cooper_rl.engines.vllm.build import sampler_of

    engine, config = _vllm_engine(folder)
    return sampler_of(engine, str(folder), config, "gloo")


ENGINES = [
    Engine(
        name="local",
        policy=TorchPolicyLearner.from_config,
        reward_model=TorchRewardModelLearner.from_config,
        sampler=lambda folder: NativeSampler(load_tokenizer(str(folder))),
    ),
]

SAMPLERS = [
    *ENGINES,
    Engine(
        name="vllm",
        policy=TorchPolicyLearner.from_config,
        reward_model=TorchRewardModelLearner.from_config,
        sampler=vllm_sampler,
        unfiltered_logprobs=False,
    ),
]
"""With those whose learners are the local engine's, and are tested there."""


@pytest.fixture(params=ENGINES, ids=lambda engine: engine.name)
def engine(request) -> Engine:
    return request.param


@pytest.fixture(params=SAMPLERS, ids=lambda engine: engine.name)
def sampling_engine(request) -> Engine:
    return request.param


@pytest.fixture(scope="session")
def folders(tmp_path_factory) -> Path:
    """`policy`, `other_policy` and `reward_model`: random Llamas with a tokenizer of one token a character."""
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
    }
    for seed, (name, kind) in enumerate(kinds.items()):
        torch.manual_seed(seed)
        kind(config).save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    return folder
