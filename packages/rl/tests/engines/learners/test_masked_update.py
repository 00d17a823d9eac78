"""Turns with an environment's text between them are one row; its gradient is that of a plain float64 computation."""

from itertools import product

import numpy as np
import pytest
import torch

from cooper_base.data.problem import Problem
from cooper_lab.designs.gspo import GSPO
from cooper_rl import SamplingParams
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.losses.policy import KLConfig, PPOClip, SequenceMeanTokenMean, TokenMean
from cooper_rl.policy.config import AlgorithmConfig
from cooper_rl.policy.rollout_source import rollout_metrics
from cooper_rl.policy.update import update_policy
from cooper_rl.records import Column, Ragged, Rollouts
from policy.environments.worlds import SUM, Script, call, rounds_of
from slow_members import first_fast

TEMPERATURE = 0.8
PROMPTS = [[3, 1, 4], [2, 7]]
GROUPS = [  # per rollout its turns: what the policy writes, what an environment answers, and so on
    [[[5, 6], [9, 9, 9], [4, 1]], [[5, 2, 8]], [[5, 6], [8, 8], [7], [1, 2, 3], [6, 6]]],
    [[[1], [2, 2], [3, 3, 3]], [[4, 4]], [[1, 9], [5], [2]]],
]
REWARDS = [[1.0, 0.0, 0.4], [0.0, 0.7, 1.0]]


class Watched(TorchPolicyLearner):
    def optim_step(self):
        self.gradient = torch.cat([p.grad.flatten() for p in self.model.parameters() if p.grad is not None])
        return super().optim_step()


def turns():
    """Every rollout's group, prompt and turns."""
    return [(p, PROMPTS[p], one) for p, group in enumerate(GROUPS) for one in group]


def plain_logprobs(model, prompt, parts) -> torch.Tensor:
    """Of the policy's own tokens: a pass of its own for each turn, after everything that came before."""
    found, history = [], list(prompt)
    for index, part in enumerate(parts):
        if index % 2 == 0:
            logits = model(torch.tensor([history + part])).logits[0, len(history) - 1 : -1] / TEMPERATURE
            found.append(logits.log_softmax(-1).gather(-1, torch.tensor(part)[:, None])[:, 0])
        history += part
    return torch.cat(found)


def rollouts_of(old: list[torch.Tensor]) -> Rollouts:
    trained = [[i % 2 == 0 for i, part in enumerate(parts) for _ in part] for _, _, parts in turns()]
    logprobs = np.full(sum(map(len, trained)), np.nan)
    logprobs[np.concatenate(trained)] = torch.cat(old).numpy()
    return Rollouts(
        problems=[Problem(str(p), "?", "1") for p in range(len(PROMPTS))],
        prompts=Column.of(PROMPTS),
        group_sizes=np.array([len(group) for group in GROUPS]),
        token_ids=Column.of([[token for part in parts for token in part] for _, _, parts in turns()]),
        logprobs=logprobs,
        stopped=np.ones(len(trained), bool),
        texts=[""] * len(trained),
        versions=np.zeros(len(trained), int),
        trained=np.concatenate(trained),
    )


def expected(model, reference, old, loss, aggregation, kl) -> torch.Tensor:
    """The gradient of the loss as the papers write it, over the policy's own tokens."""
    rows = [plain_logprobs(model, prompt, parts) for _, prompt, parts in turns()]
    lengths = [len(row) for row in rows]
    total = torch.zeros((), dtype=torch.float64)
    flat = [reward for group in REWARDS for reward in group]
    for (p, prompt, parts), row, before, reward in zip(turns(), rows, old, flat, strict=True):
        group = torch.tensor(REWARDS[p], dtype=torch.float64)
        advantage = (reward - group.mean()) / (group.std() + 1e-6)
        ratio = (row - before).exp()
        if isinstance(loss, GSPO):
            ratio = (row - before).mean().exp().expand_as(row)
        bounded = ratio.clamp(1 - loss.clip_low, 1 + loss.clip_high)
        each = torch.maximum(-advantage * ratio, -advantage * bounded)
        distance = plain_logprobs(reference, prompt, parts).detach() - row
        each = each + kl.coefficient * (distance.exp() - 1 - distance)
        weight = 1 / sum(lengths) if isinstance(aggregation, TokenMean) else 1 / (len(rows) * len(row))
        total = total + weight * each.sum()
    return torch.cat([g.flatten() for g in torch.autograd.grad(total, list(model.parameters()))])


LOSSES = {
    "token mean": (PPOClip(), TokenMean()),
    "sequence mean": (PPOClip(clip_low=0.01), SequenceMeanTokenMean()),
    "gspo": (GSPO(), SequenceMeanTokenMean()),
}
EACH_ONCE = [("token mean", "auto", True), ("sequence mean", "padded", False), ("gspo", "auto", False)]
"""Every loss, both ways of attention, and log-probabilities as they were drawn and recomputed."""


@pytest.mark.parametrize(
    ("loss", "attention", "recompute"),
    first_fast(dict.fromkeys([*EACH_ONCE, *product(LOSSES, ["auto", "padded"], [True, False])]), fast=len(EACH_ONCE)),
)
def test_gradient_and_logprobs_are_those_of_each_turn_by_itself(make_policy, loss, attention, recompute):
    loss, aggregation = LOSSES[loss]
    model, reference = make_policy(torch.float64, seed=0), make_policy(torch.float64, seed=1)
    with torch.no_grad():
        exact = [plain_logprobs(model, prompt, parts) for _, prompt, parts in turns()]
    noise = torch.Generator().manual_seed(1)
    away = [torch.randn(len(row), generator=noise, dtype=torch.float64) * 0.02 for row in exact]
    old = exact if recompute else [row + shift for row, shift in zip(exact, away, strict=True)]
    kl = KLConfig(coefficient=0.2)
    wanted = expected(model, reference, old, loss, aggregation, kl)

    settings = LearnerConfig(
        model="tiny", device="cpu", learning_rate=1e-3, attention=attention, tokens_per_microbatch=24
    )
    learner, frozen = Watched(model, settings, 10), TorchPolicyLearner(reference, settings, 0, trainable=False)
    rollouts = rollouts_of(old)
    found = learner.logprobs(rollouts.sequences(range(6)), rollouts.token_ids.lengths, TEMPERATURE)
    torch.testing.assert_close(torch.from_numpy(found[rollouts.written]), torch.cat(exact), rtol=0, atol=1e-12)

    config = AlgorithmConfig(
        loss=loss, aggregation=aggregation, kl=kl, min_spread=0.01, recompute_old_logprobs=recompute
    )
    rewards = Ragged.of(REWARDS, torch.float64)
    done = update_policy(learner, frozen, rollouts, rewards, config, SamplingParams(temperature=TEMPERATURE))
    assert wanted.norm() > 1e-3
    torch.testing.assert_close(learner.gradient, wanted, rtol=0, atol=1e-12)
    with torch.no_grad():
        distances = [
            plain_logprobs(reference, prompt, parts) - row
            for (_, prompt, parts), row in zip(turns(), exact, strict=True)
        ]
    if recompute:
        k3 = torch.cat(distances).exp() - 1 - torch.cat(distances)
        assert done.metrics["policy/reference_kl"] == pytest.approx(k3.mean().item(), abs=1e-12)
        assert done.metrics["policy/ratio"] == pytest.approx(1, abs=1e-12)


def test_lengths_and_entropy_are_of_what_the_policy_wrote():
    drawn = rounds_of().draw(Script([call(12), "answer: 19"], ["answer: 19"]), [SUM], 2, SamplingParams(), 0)
    written = int(drawn.samples.written.sum())
    assert written < len(drawn.samples.token_ids.values)
    metrics = rollout_metrics(Rollouts.of([SUM], drawn.prompts, drawn.samples, 2, 0), 1)
    assert metrics["rollout/tokens"] == written
    assert metrics["rollout/entropy_estimate"] == pytest.approx(0.5)  # the script's log-probabilities
