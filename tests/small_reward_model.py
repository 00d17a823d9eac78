"""Fixtures of several packages: the real rule verifier and a tiny real reward model."""

from collections.abc import Callable, Iterator

import pytest
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForSequenceClassification, PreTrainedTokenizerFast

from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.reward_input import RewardModelInput
from cooper_verify.rules.kinds.maths import RuleVerifier

CHARACTERS = [chr(code) for code in range(32, 127)] + ["\n", "\r", "\t"]


@pytest.fixture(scope="session")
def verifier() -> Iterator[RuleVerifier]:
    with RuleVerifier(workers=1) as rule:
        yield rule


@pytest.fixture(scope="session")
def encoder() -> RewardModelInput:
    vocabulary = {character: i for i, character in enumerate(["<eos>", "<unk>", *CHARACTERS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.decoder = decoders.Fuse()  # pyright: ignore[reportAttributeAccessIssue]
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>", unk_token="<unk>")
    return RewardModelInput(fast, max_tokens=400)


@pytest.fixture
def make_learner() -> Callable[..., TorchRewardModelLearner]:
    def make(**settings) -> TorchRewardModelLearner:
        torch.manual_seed(0)
        model = LlamaForSequenceClassification(
            LlamaConfig(
                vocab_size=len(CHARACTERS) + 2,
                hidden_size=32,
                intermediate_size=48,
                num_hidden_layers=1,
                num_attention_heads=2,
                num_key_value_heads=2,
                max_position_embeddings=512,
                num_labels=1,  # pyright: ignore[reportCallIssue]
                pad_token_id=0,
            )
        )
        config = LearnerConfig.model_validate({"model": "tiny", "device": "cpu", "learning_rate": 1e-2} | settings)
        return TorchRewardModelLearner(model, config, total_steps=100)

    return make
