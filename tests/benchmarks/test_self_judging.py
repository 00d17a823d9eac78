"""One model that solves and judges: the second task's gradient, its checkpoints, its measure, and majority votes."""

import copy
import json
import math

import pytest
import torch
import torch.nn.functional as F
from benchmarks.arena.majority import ConfirmedRule, MajorityRule
from benchmarks.arena.one_model import OneModel, verdict_folder
from benchmarks.self_judging.self_judging import youdens_j

from cooper_base.clock import MEASURED
from cooper_base.data.answer import Answer, AnswerGroup
from cooper_lab.arithmetic.world import ASSETS
from cooper_lab.designs.cross_entropy import CrossEntropy
from cooper_rl import CooperTrainer, InputError, LearnerConfig, Problem, build_config, read_metrics
from cooper_rl.engines.base import PairBatch
from cooper_rl.engines.config import ScorerConfig
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.reward_input import RewardModelInput
from cooptimization_cases import context_of
from repository import ROOT

HERE = "benchmarks.arena"
ROWS = [("7 + 12 = ?", "7+12=19 answer: 19"), ("7 + 12 = ?", "7+12=18"), ("3 - 1", "3-1=2"), ("3 - 1", "3-1=4 or 2")]


@pytest.fixture
def verdicts(tiny_models, tmp_path):
    return verdict_folder(tiny_models / "policy", tmp_path / "verdict", "?")


@pytest.fixture
def learners(tiny_models, verdicts):
    """Policy, judge and the judge's input."""
    engine = OneModel(words=("y", "n"))
    policy = engine.policy(LearnerConfig(model=str(tiny_models / "policy"), device="cpu", learning_rate=1e-2), 4)
    config = ScorerConfig(model=str(verdicts), input="chat", device="cpu", learning_rate=1e-2)
    judge = engine.reward_model(config, 4)
    policy.model.double()
    return policy, judge, RewardModelInput.of(config, judge.tokenizer)


def test_a_verdict_reads_the_question_and_the_completion_as_the_policy_wrote_them(learners):
    _, judge, encoder = learners
    for question, completion in ROWS:
        read = encoder.encode(question, "an answer that is not read", completion)
        assert read == judge.tokenizer(f"{question}\n{completion}?")["input_ids"]


def test_the_gradient_of_the_second_task_is_that_of_plain_float64_code(learners):
    policy, judge, encoder = learners
    inputs, plain = [encoder.encode(question, "", text) for question, text in ROWS], copy.deepcopy(policy.model)
    weights = [0.3, 0.7]
    judge.forward_backward(PairBatch([inputs[0], inputs[2]], [inputs[1], inputs[3]], weights), CrossEntropy())

    yes, no = (judge.tokenizer.get_vocab()[word] for word in "yn")
    loss = torch.zeros((), dtype=torch.float64)
    for ids, label, weight in zip(inputs, (1.0, 0.0, 1.0, 0.0), (0.3, 0.3, 0.7, 0.7), strict=True):
        last = plain(torch.tensor([ids])).logits[0, -1]
        target = torch.tensor(label, dtype=torch.float64)
        loss = loss + weight * F.binary_cross_entropy_with_logits(last[yes] - last[no], target) / 2
    loss.backward()
    expected = dict(plain.named_parameters())
    for name, parameter in policy.model.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name].grad, rtol=1e-9, atol=1e-12, msg=name)
    assert max(parameter.grad.abs().max() for parameter in expected.values()) > 1e-3


def test_what_the_judge_learns_the_policy_has_learned(learners):
    policy, judge, encoder = learners
    inputs = [encoder.encode(question, "", text) for question, text in ROWS]
    batch = PairBatch([inputs[0], inputs[2]], [inputs[1], inputs[3]], [0.5, 0.5])
    before = [parameter.detach().clone() for parameter in policy.model.parameters()]
    for _ in range(8):
        judge.forward_backward(batch, CrossEntropy())
        judge.optim_step()
    assert judge.model is policy.model
    assert not all(map(torch.equal, before, policy.model.parameters()))
    right, wrong = judge.score(inputs)[::2], judge.score(inputs)[1::2]
    assert right.min() > 0 > wrong.max()


def test_a_judge_that_does_not_learn_leaves_the_policy_trainable(tiny_models, verdicts):
    engine = OneModel(words=("y", "n"))
    policy = engine.policy(LearnerConfig(model=str(tiny_models / "policy"), device="cpu"), 4)
    engine.reward_model(ScorerConfig(model=str(verdicts), input="chat", device="cpu"), 0, trainable=False)
    assert all(parameter.requires_grad for parameter in policy.model.parameters())


@pytest.mark.parametrize("words", [("yes", "n"), ("y", "y")])
def test_words_that_are_not_two_tokens_are_refused(tiny_models, verdicts, words):
    engine = OneModel(words=words)
    engine.policy(LearnerConfig(model=str(tiny_models / "policy"), device="cpu"), 4)
    with pytest.raises(InputError, match=r"engine\.words: .* are not two tokens of .*verdict"):
        engine.reward_model(ScorerConfig(model=str(verdicts), input="chat", device="cpu"), 4)


def test_what_two_separate_models_could_have_is_refused(tiny_models, verdicts):
    given = {"model": str(tiny_models / "policy"), "device": "cpu"}
    judge = {"model": str(verdicts), "input": "chat", "device": "cpu"}
    engine, adapter = OneModel(words=("y", "n")), {"lora": {"rank": 2}}
    with pytest.raises(InputError, match="judges with the policy of a run"):
        engine.reward_model(ScorerConfig.model_validate(judge), 4)
    with pytest.raises(InputError, match=r"leave out policy\.lora"):
        engine.policy(LearnerConfig.model_validate(given | adapter), 4)
    engine.policy(LearnerConfig.model_validate(given), 4)
    with pytest.raises(InputError, match=r"leave out reward_model\.lora"):
        engine.reward_model(ScorerConfig.model_validate(judge | adapter), 4)
    with pytest.raises(InputError, match=r"reward_model\.frozen_layers: the policy has 0"):
        engine.reward_model(ScorerConfig.model_validate(judge | {"frozen_layers": 1}), 4)


def _fit(settings, resume=False, until=None):
    with CooperTrainer.from_config(build_config(settings), resume=resume) as trainer:
        trainer.fit(lambda step, _: trainer.request_stop() if step == until else None)
    rows = [{k: v for k, v in row.items() if not k.startswith(MEASURED)} for row in read_metrics(trainer.directory)]
    assert isinstance(trainer.parts.policy, TorchPolicyLearner)
    return rows, [parameter.detach().clone() for parameter in trainer.parts.policy.model.parameters()]


@pytest.mark.slow
def test_a_run_resumes_bit_for_bit_and_its_policy_is_its_judge(settings, tmp_path):
    verdicts = verdict_folder(ASSETS / "policy", tmp_path / "verdict", "?")
    judging = {
        **settings,
        "policy": {"model": str(ASSETS / "policy"), "learning_rate": 1e-3},
        "kind": "cooper_model",
        "rewards": [{"kind": f"{HERE}.majority:ConfirmedRule"}],
        "rule": {"kind": f"{HERE}.majority:MajorityRule"},
        "engine": {"kind": f"{HERE}.one_model:OneModel", "words": ["y", "n"]},
        "reward_model": {"model": str(verdicts), "input": "chat", "learning_rate": 1e-3},
        "cooptimization": {
            "pairs": [{"kind": "on_policy"}],
            "loss": {"kind": "cooper_lab.designs.cross_entropy:CrossEntropy"},
            "positives": ["rollout"],
            "before_policy": None,
        },
        "steps": 3,
        "evaluation": {"every": 0},
        "checkpoint": {"every": 1},
    }
    whole, weights = _fit({**judging, "name": "whole"})
    assert any(row.get("pairs/count", 0) > 0 for row in whole)
    _fit(judging, until=1)
    resumed, after = _fit(judging, resume=True)
    assert resumed == whole
    assert all(map(torch.equal, after, weights))
    saved = [(tmp_path / "run/checkpoints/000003" / name / "model.safetensors") for name in ("policy", "reward_model")]
    assert saved[0].read_bytes() == saved[1].read_bytes()


def test_youdens_j_counts_accepted_right_ones_less_accepted_wrong_ones():
    rows = [(True, 0.9), (True, 0.6), (True, 0.2), (True, 0.51), (False, 0.7), (False, 0.5), (False, 0.1)]
    named = [{"gold": right, "reward_model": score} for right, score in rows]
    assert youdens_j(named, lambda row: row["gold"]) == round(3 / 4 - 1 / 3, 3)
    assert youdens_j(named[:4], lambda row: row["gold"]) is None


PROBLEM, OTHER = Problem("p", "7 + 12 = ?", ""), Problem("q", "3 - 1", "")


def test_the_majority_is_that_of_values_and_of_each_problem():
    texts = ["answer: 19", "7+12=19", "answer: nineteen", "answer: 18", "no idea"]
    rule = MajorityRule().build()
    said = rule.verify_problems([(PROBLEM, text) for text in texts] + [(OTHER, "answer: 18"), (OTHER, "18")])
    assert said == ["correct"] * 3 + ["wrong", "unparsed", "correct", "correct"]
    assert rule.verify_problems([(PROBLEM, "answer: 3"), (PROBLEM, "answer: 4")]) == ["correct", "wrong"]
    assert rule.verify_problems([(PROBLEM, "?"), (OTHER, "none")]) == ["unparsed", "unparsed"]


def test_only_groups_whose_majority_the_model_accepts_are_paid():
    def group(problem, texts):
        return AnswerGroup(problem.id, problem, [Answer(text) for text in texts])

    groups = [group(PROBLEM, ["19", "19", "18"]), group(OTHER, ["2", "2", "4"]), group(Problem("r", "?", ""), ["?"])]
    scores = ConfirmedRule().score(
        context_of(groups, MajorityRule().build(), [[2.0, -1.0, 9.0], [1.0, -2.0, 9.0], [5.0]])
    )
    assert scores.rewards.rows()[0] == [1.0, 1.0, 0.0]
    assert all(math.isnan(reward) for row in scores.rewards.rows()[1:] for reward in row)
    assert scores.metrics == {"confirmed/groups": 1 / 3}


def test_the_page_has_the_figures_of_the_results():
    page = (ROOT / "benchmarks/self_judging/README.md").read_text(encoding="utf-8")
    results = json.loads((ROOT / "benchmarks/results/self_judging.json").read_text(encoding="utf-8"))
    rows = {row["arm"]: row for row in results["compared"]}
    for arm, name in (("all-rule", "rule"), ("all-self", "self")):
        row = rows[arm]
        line = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        assert line.endswith(f"| {row['cpu_s_a_step']:.2f} |")
        assert f"{row['mean']:.3f} | {' '.join(f'{end:.2f}' for end in row['gold'])} |" in line
    difference = rows["all-self"]["less_rule"]
    assert "difference {:.3f} (95 % interval {:.3f} to {:.3f})".format(*difference).replace("-", "−") in page
    for point in results["alone"]["alone-0.0005-0"]:
        figures = f"| {point['updates']} | {point['cpu_s']:.0f} | {point['gold']:.2f} | {point['j']:.2f} |"
        assert figures.replace("-", "−") in page
