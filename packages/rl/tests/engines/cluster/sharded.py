"""One update of a learner, in this process or in each of several."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from transformers import LlamaForCausalLM, LlamaForSequenceClassification

from cooper_rl.engines.base import PairBatch, PolicyBatch, PolicyLearner
from cooper_rl.engines.config import LearnerConfig, LoraConfig
from cooper_rl.engines.local.adapter import plain_weights, whole
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.losses.policy import KLConfig, PolicyObjective, PPOClip
from cooper_rl.engines.losses.reward_model import PairwiseLoss
from cooper_rl.engines.scale.fsdp2 import ShardedPolicyLearner, ShardedRewardModelLearner
from cooper_rl.records import Column
from tiny_llama import in_precision, tiny_config

CONFIG = LearnerConfig(model="tiny", device="cpu", learning_rate=1e-3, max_grad_norm=0.1, tokens_per_microbatch=64)
PLAIN = PolicyObjective(loss=PPOClip(), kl=None)
UNEVEN = 61
"""Tokens of the vocabulary: no number of processes divides them."""


def policy_batch() -> PolicyBatch:
    """13 completions of 4 prompts: the processes differ in rows, tokens and passes."""
    random = np.random.default_rng(0)
    prompts = [random.integers(1, UNEVEN, size) for size in (4, 19, 7, 11)]
    lengths = random.integers(1, 40, 13)
    rows = [np.concatenate([prompts[i % 4], random.integers(1, UNEVEN, n)]) for i, n in enumerate(lengths)]
    tokens = int(lengths.sum())
    old, sampler, reference = random.normal(-4, 1, (3, tokens))
    advantages = np.repeat(random.normal(size=13), lengths)
    return PolicyBatch(Column.of(rows), lengths, advantages, np.full(tokens, 1 / tokens), old, sampler, reference, 0.7)


def pair_batch() -> PairBatch:
    random = np.random.default_rng(1)
    positives, negatives = ([random.integers(1, UNEVEN, n).tolist() for n in random.integers(2, 50, 7)] for _ in "ab")
    return PairBatch(positives, negatives, [1 / 7] * 7)


def one_update(kind: str, dtype: torch.dtype, lora: bool, sharded: bool, frozen: int = 0) -> dict[str, Any]:
    """Metrics, the whole gradient before clipping, the weights after the update, and what the model then says."""
    torch.manual_seed(0)
    settings = CONFIG.model_copy(update={"lora": LoraConfig(rank=3) if lora else None, "frozen_layers": frozen})
    policy, config = kind == "policy", tiny_config(vocab_size=UNEVEN, num_labels=1, pad_token_id=0)
    model = in_precision((LlamaForCausalLM if policy else LlamaForSequenceClassification)(config), dtype)
    local = (TorchPolicyLearner if policy else TorchRewardModelLearner)(model, settings, 10)
    for name, parameter in model.named_parameters():
        if ".lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1)  # it is zero at the start, and would hide A's gradient
    learner: Any = local
    if sharded:
        learner = (ShardedPolicyLearner if policy else ShardedRewardModelLearner)(local, settings)  # pyright: ignore
    pairs, batch = pair_batch(), policy_batch()
    if policy:
        metrics = learner.forward_backward(batch, PolicyObjective(loss=PPOClip(), kl=KLConfig(coefficient=0.1)))
    else:
        metrics = learner.forward_backward(pairs, PairwiseLoss(anchor=0.5))
    gradient = {name: whole(p.grad).clone() for name, p in model.named_parameters() if p.requires_grad}  # pyright: ignore
    metrics |= learner.optim_step()
    asked = (batch.token_ids, batch.lengths)
    says = {"now": learner.logprobs(*asked) if policy else learner.score(pairs.positives).numpy()}
    if policy and lora:
        says["at the start"] = learner.logprobs(*asked, adapter=False)
    weights = {name: whole(p.detach()).clone() for name, p in model.named_parameters()}
    merged = {f"plain {name}": weight.clone() for name, weight in plain_weights(model)}
    says = {name: torch.from_numpy(values) for name, values in says.items()}
    return {"metrics": metrics, "gradient": gradient, "weights": weights | merged, "says": says}


def train(learner: PolicyLearner, updates: int) -> None:
    for _ in range(updates):
        learner.forward_backward(policy_batch(), PLAIN)
        learner.optim_step()


@contextmanager
def alone() -> Iterator[None]:
    """This process as a process group of one."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # pyright: ignore
    try:
        yield
    finally:
        dist.destroy_process_group()
