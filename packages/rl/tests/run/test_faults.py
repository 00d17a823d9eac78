"""Training faults, caused in real runs: the run survives and counts them, and its weights stay finite."""

import json
import math

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from cooper_audit.run.run_record import read_events, read_metrics
from cooper_base.clock import MEASURED
from cooper_rl import CooperTrainer, build_config
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.reward.recipes import RECIPES


def length(problem, completion):
    """A reward that a policy can learn from even if it never answers right."""
    return completion.tokens / 10


def infinite(problem, completion):
    """Finite in Python but infinite in float32, for about one completion in two."""
    return 1e39 if len(completion.text) % 2 else 0.0


def huge(problem, completion):
    """Finite rewards whose loss is not finite."""
    return 1e38 if len(completion.text) % 2 else -1e38


def constant(problem, completion):
    return 0.5


def not_a_number(problem, completion):
    return math.nan


CALLS: list[int] = []


def saturating(problem, completion):
    """Varied rewards in the first two steps (four groups of four each), then the same reward for every completion."""
    CALLS.append(1)
    return float(len(completion.text) % 7) if len(CALLS) <= 2 * 16 else 1.0


def glitch(problem, completion):
    """One outlier, at the first completion of the fourth step (four groups of four each)."""
    CALLS.append(1)
    return 50.0 if len(CALLS) == 3 * 16 + 1 else 0.0


def _config(settings, **changes):
    """A run without evaluation; `rewards` names functions of this file."""
    kind, names = changes.get("kind", "cooper"), changes.pop("rewards", ())
    functions = [{"kind": "function", "function": f"test_faults:{name}"} for name in names]
    quick = {"evaluation": {"every": 0}, "test_problems": None}
    if functions:
        quick["rewards"] = [*RECIPES[kind]["rewards"], *functions]
    return build_config({**settings, **quick, **changes})


def _fit(config, resume=False, stop_after=None):
    with CooperTrainer.from_config(config, resume=resume) as trainer:
        trainer.fit(lambda step, metrics: trainer.request_stop() if step == stop_after else None)
    return trainer


def _rows(trainer):
    rows = read_metrics(trainer.directory)
    return [{name: value for name, value in row.items() if not name.startswith(MEASURED)} for row in rows]


def _finite(trainer):
    model = trainer.parts.reward.learning
    learners = [trainer.parts.policy] + ([model.learner] if model else [])
    return all(bool(p.isfinite().all()) for learner in learners for p in learner.model.parameters())


def _fired(trainer):
    return {event["metric"] for event in read_events(trainer.directory)}


def _weights(trainer):
    return [p.clone() for p in trainer.parts.policy.model.parameters()]


def test_a_policy_that_cannot_be_sampled_ends_the_run_without_a_checkpoint_of_it(settings):
    policy = {**settings["policy"], "learning_rate": 1e20}
    trainer = _fit(_config(settings, kind="rule", rewards=["length"], policy=policy, checkpoint={"every": 1}))
    rows = read_metrics(trainer.directory)
    assert trainer.stopped_by is not None
    assert trainer.stopped_by.rule.metric == "rollout/non_finite_logits"
    assert [row["rollout/non_finite_logits"] for row in rows] == [0, 1]
    assert [event["back_to"] for event in read_events(trainer.directory) if "back_to" in event] == [1]
    assert [path.name for path in (trainer.directory / "checkpoints").iterdir()] == ["000001"]
    assert _finite(trainer)


def test_a_loss_that_is_not_finite_skips_the_update(settings):
    algorithm = {"advantages": {"kind": "dr_grpo"}, "kl": None}
    config = _config(settings, kind="rule", rewards=["huge"], algorithm=algorithm)
    with CooperTrainer.from_config(config) as trainer:
        before = _weights(trainer)
        trainer.fit()
    rows = read_metrics(trainer.directory)
    assert rows[-1]["policy/skipped_updates"] == 4
    assert not math.isfinite(rows[-1]["policy/grad_norm"])
    assert all(torch.equal(old, new) for old, new in zip(before, _weights(trainer), strict=True))
    assert "policy/grad_norm" in _fired(trainer)


def test_a_reward_beyond_float32_costs_its_groups_and_no_others(settings):
    trainer = _fit(_config(settings, kind="rule", rewards=["length", "infinite"], problems_per_step=8, steps=2))
    for row in read_metrics(trainer.directory):
        assert 0 < row["reward/non_finite"] < 1
        assert math.isfinite(row["reward/mean"])
        assert row["policy/usable_groups"] < 1
    assert _finite(trainer)
    assert "reward/non_finite" in _fired(trainer)


@pytest.mark.parametrize("kind", [pytest.param("cooper_model", marks=pytest.mark.slow), "cooper_light"])
@pytest.mark.parametrize(
    ("learning_rate", "metrics"),
    [
        pytest.param(10.0, {"reward_model/loss", "reward_model/pair_accuracy_after"}, marks=pytest.mark.slow),
        (1e20, {"reward_model/non_finite", "reward_model/grad_norm", "reward_model/loss"}),
    ],
)
def test_a_reward_model_that_diverges_does_not_end_the_run(settings, kind, learning_rate, metrics):
    reward_model = {**settings["reward_model"], "learning_rate": learning_rate}
    cooptimization = {**settings["cooptimization"], "before_policy": None}
    trainer = _fit(_config(settings, kind=kind, cooptimization=cooptimization, reward_model=reward_model, steps=8))
    assert [row["step"] for row in read_metrics(trainer.directory)] == list(range(1, 9))
    assert metrics <= _fired(trainer)
    assert _finite(trainer)


def test_a_reward_model_that_scores_everything_alike(settings, tmp_path):
    folder = settings["reward_model"]["model"]
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    torch.nn.init.zeros_(model.score.weight)
    model.save_pretrained(tmp_path / "collapsed")
    AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path / "collapsed")
    reward_model = {**settings["reward_model"], "model": str(tmp_path / "collapsed")}
    trainer = _fit(_config(settings, kind="static", reward_model=reward_model, steps=5))
    assert {"reward_model/std", "policy/usable_groups"} <= _fired(trainer)


@pytest.mark.slow
def test_completions_that_are_all_cut_off(settings):
    rollout = {**settings["rollout"], "max_tokens": 1}
    trainer = _fit(_config(settings, kind="cooper", rollout=rollout, steps=6))
    assert all(row["rollout/cut_off_rate"] == 1 for row in read_metrics(trainer.directory))
    assert {"rollout/cut_off_rate", "rule/accuracy"} <= _fired(trainer)
    assert _finite(trainer)


def test_rewards_without_spread_and_answers_that_are_all_wrong(settings):
    config = _config(settings, kind="rule", rewards=["constant"], steps=6, algorithm={"kl": None})
    with CooperTrainer.from_config(config) as trainer:
        before = _weights(trainer)
        trainer.fit()
    rows = read_metrics(trainer.directory)
    assert all(row["policy/usable_groups"] == 0 and row["rule/accuracy"] == 0 for row in rows)
    assert isinstance(trainer.parts.policy, TorchPolicyLearner)
    assert trainer.parts.policy.steps == 6  # the schedule goes on
    assert all(torch.equal(old, new) for old, new in zip(before, _weights(trainer), strict=True))
    assert {"policy/usable_groups", "rule/accuracy"} <= _fired(trainer)


def test_a_reward_that_saturates_neither_ends_the_kl_term_nor_hides_the_distance(settings):
    CALLS.clear()
    rule = {"metric": "policy/reference_kl", "above": 1e-6, "patience": 5, "action": "stop"}
    trainer = _fit(_config(settings, kind="rule", rewards=["saturating"], watch=[rule], steps=9))
    rows = read_metrics(trainer.directory)
    assert [row["policy/usable_groups"] == 0 for row in rows] == [False, False, *[True] * 4]
    assert all(row["policy/grad_norm"] > 0 for row in rows[2:])
    assert trainer.stopped_by is not None
    assert (trainer.stopped_by.since, trainer.completed_steps) == (2, 6)


def test_a_users_function_that_returns_nan_has_no_opinion_and_teaches_nothing(settings):
    alone = [{"kind": "function", "function": "test_faults:not_a_number"}]
    config = build_config({**settings, "kind": "function", "rewards": alone, "steps": 1, "evaluation": {"every": 0}})
    with CooperTrainer.from_config(config) as trainer:
        before = _weights(trainer)
        trainer.fit()
        assert all(torch.equal(old, new) for old, new in zip(before, _weights(trainer), strict=True))
    (row,) = read_metrics(trainer.directory)
    assert (row["reward/no_opinion"], row["policy/trained_completions"], row["reward/non_finite"]) == (1, 0, 0)
    assert "reward/mean" not in row  # a mean of nothing is no number that anybody should plot
    beside_the_rule = _fit(_config(settings, name="both", kind="rule", rewards=["not_a_number"], steps=1))
    (row,) = read_metrics(beside_the_rule.directory)
    assert (row["reward/no_opinion"], row["reward/mean"]) == (0, pytest.approx(row["rule/accuracy"]))


def test_a_stop_rule_ends_the_run_with_a_checkpoint(settings):
    rule = {"metric": "policy/usable_groups", "below": 0.5, "patience": 2, "action": "stop"}
    config = _config(settings, kind="rule", watch=[rule])
    trainer = _fit(config)
    assert trainer.completed_steps == 2
    assert trainer.stopped_by is not None
    assert (trainer.stopped_by.since, trainer.stopped_by.values) == (1, [0, 0])
    assert (trainer.directory / "checkpoints" / "000002" / "state.json").exists()
    resumed = _fit(config, resume=True)
    assert resumed.completed_steps == 4  # the fault is still there, so the run stops again after the rule's patience
    stops = [event["step"] for event in read_events(trainer.directory) if event["action"] == "stop"]
    assert stops == [2, 4]


def _glitching(settings, name):
    CALLS.clear()
    rule = {"metric": "function/glitch", "above": 0, "action": "rollback"}
    return _config(settings, name=name, rewards=["glitch"], watch=[rule], steps=6)


def test_a_rollback_repeats_the_steps_with_other_samples_and_one_record(settings):
    trainer = _fit(_glitching(settings, "glitched"))
    rows = read_metrics(trainer.directory)
    assert [row["step"] for row in rows] == list(range(1, 7))
    assert all(row["function/glitch"] == 0 for row in rows)
    back = [(event["step"], event["back_to"]) for event in read_events(trainer.directory) if "back_to" in event]
    assert back == [(4, 2)]
    undisturbed = _fit(_config(settings, name="undisturbed", rewards=["glitch"], steps=3))

    def texts(run, step):
        lines = (run.directory / "rollouts" / f"{step:06d}.jsonl").read_text().splitlines()
        return [[completion["text"] for completion in json.loads(line)["completions"]] for line in lines]

    assert texts(trainer, 2) == texts(undisturbed, 2)
    assert texts(trainer, 3) != texts(undisturbed, 3)


@pytest.mark.slow
@pytest.mark.parametrize("stop_after", [3, 5])
def test_a_run_that_rolled_back_resumes_exactly(settings, stop_after):
    """The run stops at step 3, reached again by the rollback from step 4, and at step 5, after another checkpoint."""
    whole = _fit(_glitching(settings, "whole"))
    config = _glitching(settings, "half")
    with CooperTrainer.from_config(config) as trainer:
        went_back = []

        def on_step(step, metrics):
            went_back.append(metrics["function/glitch"] > 0)
            if any(went_back) and not went_back[-1] and step == stop_after:
                trainer.request_stop()

        trainer.fit(on_step)
    assert trainer.completed_steps == stop_after
    resumed = _fit(config, resume=True)
    assert _rows(resumed) == _rows(whole)
    assert read_events(resumed.directory) == read_events(whole.directory)
    assert all(torch.equal(one, other) for one, other in zip(_weights(resumed), _weights(whole), strict=True))


def test_rollbacks_end_when_no_other_checkpoint_is_left(settings):
    rule = {"metric": "function/constant", "above": 0, "patience": 3, "action": "rollback"}
    config = _config(settings, kind="rule", rewards=["constant"], watch=[rule], checkpoint={"every": 1}, steps=9)
    trainer = _fit(config)
    assert trainer.stopped_by is not None
    assert trainer.completed_steps == 3
    assert not list((trainer.directory / "checkpoints").glob("0*"))  # a broken rule holds them back
