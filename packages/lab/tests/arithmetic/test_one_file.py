"""`examples/one_file.py` and the framework are the same algorithm: their first steps are compared in float64."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cooper_lab.arithmetic.arms import RULE, arm_settings
from cooper_rl import CooperTrainer, build_config
from cooper_rl.engines.base import Learner
from cooper_rl.reward.kinds.earned import MEMORY
from cooper_rl.reward.pairs.assistant import TRIES
from cooper_rl.step import StepResult, cooper_step
from repository import ROOT

EXACT = {"skip_gradient_share": 0.0}
"""The whole gradient: the example leaves no rows out of the backward pass."""
STEPS = 3

Gradients = dict[str, np.ndarray]


def _example() -> Any:
    spec = importlib.util.spec_from_file_location("one_file", ROOT / "examples" / "one_file.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _gradients(model: Any) -> Gradients:
    return {name: p.grad.double().numpy().copy() for name, p in model.named_parameters() if p.grad is not None}


def _keeps_gradients(learner: Any) -> list[Gradients]:
    """The gradients at each of the learner's updates, which it does not keep itself."""
    seen: list[Gradients] = []
    update = learner.optim_step

    def optim_step() -> Any:
        seen.append(_gradients(learner.model))
        return update()

    learner.optim_step = optim_step
    return seen


def _float64(learner: Learner | None) -> Any:
    model = getattr(learner, "model", None)
    assert model is not None
    model.double()
    return learner


def _framework_steps(folder: Path) -> Iterator[tuple[StepResult, Gradients, Gradients]]:
    """Each step's result, and the gradients of the policy and of the reward model."""
    overrides = {"steps": STEPS, "problems_per_step": 4, "cooptimization": EXACT, "evaluation": {"every": 0}}
    overrides |= {"problems": {"limit": 150}, "test_problems": {"limit": 8}}
    config = build_config(arm_settings("cooper", folder, 0, overrides))
    with CooperTrainer.from_config(config) as trainer:
        parts = trainer.parts
        assert parts.reward.model is not None
        policy, model = _float64(parts.policy), _float64(parts.reward.model.learner)
        _float64(parts.reference)
        of_policy, of_model = _keeps_gradients(policy), _keeps_gradients(model)
        for step in range(1, STEPS + 1):
            yield cooper_step(config, parts, step, seed=step), of_policy[-1], of_model[-1]


def _groups(one: Any, result: StepResult) -> list[Any]:
    """The framework's rollouts, as the example has them."""
    rollouts = result.rollouts
    return [
        one.Group(
            problem,
            rollouts.prompts[p].tolist(),
            [
                one.Completion(rollouts.token_ids[i].tolist(), rollouts.texts[i], bool(rollouts.stopped[i]))
                for i in range(rollouts.offsets[p], rollouts.offsets[p + 1])
            ],
        )
        for p, problem in enumerate(rollouts.problems)
    ]


def test_three_steps_are_those_of_the_framework(tmp_path, monkeypatch):
    one = _example()
    cooper = one.Cooper(seed=0, dtype=torch.float64)
    seen: dict[Any, tuple[float, Gradients]] = {}
    learn, clip, kinds = one.learn, torch.nn.utils.clip_grad_norm_, set()

    def seen_learning(cooper: Any, model: Any, loss: torch.Tensor) -> None:
        def before_clipping(parameters: Any, largest: float) -> None:
            seen[model] = loss.item(), _gradients(model)
            clip(parameters, largest)

        with monkeypatch.context() as while_it_learns:
            while_it_learns.setattr(torch.nn.utils, "clip_grad_norm_", before_clipping)
            learn(cooper, model, loss)

    monkeypatch.setattr(one, "learn", seen_learning)
    for result, of_policy, of_model in _framework_steps(tmp_path):
        groups = _groups(one, result)
        one.cooper_step(cooper, groups)
        answers = [answer for group in groups for answer in group.answers]
        kinds |= {answer.verdict for answer in answers}
        assert [answer.verdict for answer in answers] == [verdict for row in result.scored.verdicts for verdict in row]
        # The framework keeps scores in float32, and an advantage divides their differences.
        close = {"rel": 1e-5, "abs": 2e-5, "nan_ok": True}
        assert [answer.reward for answer in answers] == pytest.approx(result.paid.scores.rewards.flat.tolist(), **close)
        assert [answer.advantage for answer in answers] == pytest.approx(result.advantages.flat.tolist(), **close)
        metrics = result.metrics
        losses = metrics["policy/loss"], metrics["reward_model/loss"] + metrics.get("reward_model/unpaired_loss", 0.0)
        for model, loss, gradients in zip((cooper.policy, cooper.model), losses, (of_policy, of_model), strict=True):
            own_loss, own = seen[model]
            assert own_loss == pytest.approx(loss, rel=1e-6, abs=1e-7)
            assert own.keys() == gradients.keys()
            size = max(np.abs(gradient).max() for gradient in gradients.values())
            assert size > 0
            assert max(np.abs(own[key] - gradients[key]).max() for key in own) < 1e-5 * size
    assert {"correct", "wrong", "silent"} <= kinds


def test_its_constants_are_the_recipe_and_the_demo(tmp_path):
    one, config = _example(), build_config(arm_settings("cooper", tmp_path, 0))
    algorithm, learning = config.algorithm.model_dump(), config.cooptimization
    assert (
        config.problems_per_step,
        config.rollout.n,
        config.rollout.max_tokens,
    ) == (one.PROBLEMS_PER_STEP, one.N, one.MAX_TOKENS)
    assert config.reward_model is not None
    assert (config.policy.learning_rate, config.reward_model.learning_rate) == (one.POLICY_RATE, one.MODEL_RATE)
    assert (config.policy.warmup_steps, config.reward_model.warmup_steps) == (0, one.MODEL_WARMUP)
    for model in (config.policy, config.reward_model):
        assert (model.weight_decay, model.max_grad_norm) == (one.WEIGHT_DECAY, one.MAX_GRAD_NORM)
    assert (algorithm["advantages"]["std_floor"], algorithm["min_spread"]) == (one.STD_FLOOR, one.MIN_SPREAD)
    assert (algorithm["loss"]["clip_low"], algorithm["loss"]["clip_high"]) == (one.CLIP, one.CLIP)
    assert (algorithm["kl"]["coefficient"], algorithm["kl"]["clamp"]) == (one.KL, one.KL_CLAMP)
    assert (learning.pairs_per_problem, learning.replay.pairs_per_step) == (one.PAIRS_PER_PROBLEM, one.PAST_PAIRS)
    assert (learning.model_dump()["loss"]["anchor"], learning.before_policy) == (one.ANCHOR, one.BEFORE_POLICY)
    assert (one.MEMORY, one.TRIES) == (MEMORY, TRIES)
    assert {"kind": "partial", "rule": {"kind": "figures"}, "only": {"family": list(one.JUDGED)}} == RULE
