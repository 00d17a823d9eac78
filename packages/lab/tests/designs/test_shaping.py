"""Shapings against numbers worked out by hand, and where their reference logits come from."""

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from shelf.constraints import Constraint, Constraints
from shelf.log_sigmoid import LogSigmoid
from shelf.rank import RankInGroup

from cooper_audit.run.hacking_alarm import HackingAlarm
from cooper_base.data.verdict import Verdict
from cooper_lab.designs.cap import Cap
from cooper_lab.designs.gate import RewardGate
from cooper_lab.designs.par import PAR
from cooper_lab.designs.references import References, solution_logits
from cooper_rl import Answer, AnswerGroup, InputError, Problem, Ragged, StepContext
from cooper_rl.reward.base import reward_metrics
from cooper_rl.reward.kinds.plain import RewardModelReward
from cooper_rl.reward.scored import step_health
from cooper_rl.reward.shaping import shaped
from cooper_verify.rules.rule import ProblemAndText, Rule


class Marked(Rule):
    """A rule that accepts the answers ending in an exclamation mark."""

    def verify_problems(self, asked: Sequence[ProblemAndText], /) -> list[Verdict]:
        return ["correct" if text.endswith("!") else "wrong" for _, text in asked]


class Spoken:
    """A reward model that believes the number an answer starts with."""

    def logits(self, groups: Sequence[AnswerGroup], known: object = None) -> Ragged:
        return Ragged.of([[float(answer.text.rstrip("!")) for answer in group.answers] for group in groups])


def context_of(*rows: list[str], solution: str | None = "1.0") -> StepContext:
    groups = [
        AnswerGroup(f"g{p}", Problem(f"p{p}", "?", "1", solution), [Answer(text) for text in row])
        for p, row in enumerate(rows)
    ]
    model: Any = Spoken()
    return StepContext(groups, Marked(), model)


def rows(*values: list[float]) -> Ragged:
    return Ragged.of(values, torch.float64)


def test_cap_is_the_clip_at_the_reference_up_to_a_constant():
    capped = Cap().compare(rows([0.2, 0.6, 0.9], [3.0, -1.0]), rows([0.5], [0.0]))
    assert (capped.groups()[0] - 0.5).tolist() == pytest.approx([-0.3, 0.0, 0.0])
    assert capped.rows()[1] == [0.0, -1.0]
    assert capped.rows()[0][1] == capped.rows()[0][2]  # exactly, so that noise above the reference pays nothing


def test_par_is_the_mean_chance_of_beating_a_reference():
    assert PAR().compare(rows([1.0, 3.0], [1.0]), rows([0.0, 2.0], [1.0])).rows() == [
        pytest.approx([0.5, 0.841816], abs=1e-6),
        [0.5],
    ]
    moved = PAR().compare(rows([8.0, 10.0]), rows([7.0, 9.0])).rows()[0]
    assert moved == pytest.approx([0.5, 0.841816], abs=1e-6)
    assert PAR(steepness=2.0).compare(rows([1.0]), rows([0.0])).rows()[0] == pytest.approx([0.880797], abs=1e-6)


def test_log_sigmoid_is_centred_at_a_quantile():
    found = LogSigmoid().compare(rows([1.0, 3.0, -1e4, 1e4]), rows([0.0, 2.0])).rows()[0]
    assert found[:2] == pytest.approx([-1.673490, -0.461279], abs=1e-6)
    assert found[2] == pytest.approx(-1e4 - 2.465738)
    assert found[3] == 0.0
    empirical = LogSigmoid(estimate="empirical")
    assert empirical.centre(torch.tensor([0.0, 2.0])).item() == pytest.approx(1.7)
    assert LogSigmoid().compare(rows([4.0]), rows([4.0])).rows()[0] == pytest.approx([-0.693147], abs=1e-6)


def test_ranks_share_ties_and_noise_is_a_tie():
    context = context_of(["0"])
    found = RankInGroup().shape(rows([0.9, 0.1, 0.9, 0.5], [0.5, 0.505]), context)
    assert found.rows() == [[0.75, 0.125, 0.75, 0.375], [0.5, 0.5]]
    assert RankInGroup(tie=0.0).shape(rows([0.5, 0.505]), context).rows() == [[0.25, 0.75]]
    assert str(RankInGroup().shape(rows([0.5, float("nan"), 0.7]), context).rows()) == "[[0.25, nan, 0.75]]"
    assert RankInGroup().shape(rows([0.5, float("inf")]), context).flat.isnan().all()


def test_a_closed_gate_pays_the_gating_reward_alone():
    context = context_of(["5!", "5!"], ["5", "5"])
    low = rows([0.2, -0.1], [0.9, 0.3])
    paid = RewardGate.model_validate({"by": "rule", "threshold": 0.5}).build().shape(low, context)
    assert paid.rows() == [pytest.approx([1.2, 0.9]), [0.0, 0.0]]
    by_model = RewardGate.model_validate({"by": {"kind": "reward_model"}, "threshold": 0.99, "weight": 2.0}).build()
    assert by_model.shape(low, context_of(["5", "0"], ["0", "5"])).flat.tolist() == pytest.approx(
        [0.993307 + 0.4, 0.5, 0.5, 0.993307 + 0.6], abs=1e-6
    )
    assert RewardGate().needs_reference
    assert not RewardGate.model_validate({"by": {"kind": "function", "function": "math:hypot"}}).needs_reference


def test_references_come_from_where_the_setting_says():
    context = context_of(["2!", "4!", "9"], ["7"])
    assert References("solution").logits(context).rows() == [[1.0], [1.0]]
    assert References("group").logits(context).rows() == [[2.0, 4.0, 9.0], [7.0]]
    assert References(-0.5).logits(context).rows() == [[-0.5], [-0.5]]
    assert References("accepted").logits(context).rows() == [[3.0], [3.0]]


def test_references_can_be_answers_collected_before(tmp_path):
    path = tmp_path / "start.jsonl"
    lines = [{"question": "?", "completion": text, "model": "start"} for text in ("3", "8", "1")]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    par = PAR.model_validate({"references": {"file": str(path), "most": 2}})
    paid = par.build().shape(rows([0.0, 0.0], [0.0]), context_of(["3", "8"], ["5"]))
    assert paid.rows() == [  # the mean of the chances to beat 3 and 8
        pytest.approx([(0.5 + 1 / (1 + math.exp(5))) / 2, (1 / (1 + math.exp(-5)) + 0.5) / 2]),
        pytest.approx([(1 / (1 + math.exp(-2)) + 1 / (1 + math.exp(3))) / 2]),
    ]
    par.check_problems([Problem("a", "?", "1")])
    with pytest.raises(InputError, match=r"start\.jsonl: holds no completion for 1 of 2 problems, the first is b"):
        par.check_problems([Problem("a", "?", "1"), Problem("b", "What?", "1")])
    path.write_text('{"question": "?"}\n')
    with pytest.raises(InputError, match=r"start\.jsonl:1: no field 'completion'"):
        par.build()
    with pytest.raises(InputError, match="no such file"):
        Cap.model_validate({"references": {"file": str(tmp_path / "other.jsonl")}}).build()


def test_a_group_without_accepted_answers_is_compared_with_those_of_earlier_steps():
    references = References("accepted")
    assert references.logits(context_of(["2", "4"], ["8"])).rows() == [[3.0], [8.0]]  # nothing was ever accepted
    references.commit([context_of(["2!", "4"], ["8!", "6!"]), context_of(["1"])])
    assert references.logits(context_of(["9"], ["5!", "3"])).rows() == [[4.5], [5.0]]
    references.commit([context_of(["5.5!"])])
    assert references.state() == pytest.approx(0.9 * 4.5 + 0.1 * 5.5)
    references.commit([context_of(["9"])])
    again = References("accepted")
    again.restore(references.state())
    assert again.logits(context_of(["9"])).rows() == [[pytest.approx(4.6)]]


def test_a_missing_solution_is_reported_with_its_problem():
    with pytest.raises(InputError, match=r"group g0: .* solution of problem p0"):
        References("solution").logits(context_of(["1"], solution=None))
    problems = [Problem("a", "?", "1", "1"), Problem("b", "?", "1")]
    with pytest.raises(InputError, match=r"cap with references: solution .* 1 of 2 problems have none, the first is b"):
        Cap().check_problems(problems)
    Cap(references="accepted").check_problems(problems)
    PAR(references=2.0).check_problems(problems)


def test_joined_contexts_keep_the_logits_of_solutions():
    context = context_of(["2", "3"], ["4"])
    solution_logits(context)
    joined = StepContext.joined([(context, 1), (context, 0)])
    assert solution_logits(joined).rows() == [[1.0], [1.0]]


def test_multipliers_take_the_published_step():
    bound = Constraint(reward="rule", at=0.5)
    assert bound.after(0.7, 0.2, 0.1) == pytest.approx(0.695566, abs=1e-6)
    assert bound.after(-0.3, -0.1, 0.1) == pytest.approx(-0.297555, abs=1e-6)
    equal = Constraint(reward="rule", at=0.5, kind="equal")
    assert equal.after(0.7, 0.2, 0.1) == pytest.approx(0.7 - 0.02 * (1 - 0.604368**2), abs=1e-6)
    for one in (bound, equal):
        assert one.after(0.4, 0.0, 0.1) == 0.4


def test_a_reward_above_its_level_loses_its_weight_to_the_other_reward():
    shaping = Constraints(constraints=(Constraint(reward="rule", at=0.4),), learning_rate=10.0).build()
    context = context_of(["5!", "5", "5"], ["5", "5!"])
    paid = shaping.shape(rows([0.0, 0.0, 1.0], [0.5, 0.505]), context)
    half = 0.5 / 3**0.5  # each reward is (2, -1, -1) / sqrt(3) in some order, and weighs one half
    assert paid.rows()[0] == pytest.approx([half, -2 * half, half])
    assert paid.rows()[1] == pytest.approx([-0.5 / 2**0.5, 0.5 / 2**0.5])  # the other is flat
    assert shaping.metrics(context) == {"constraints/1_weight": 0.5, "constraints/1_mean": 0.4}
    shaping.commit([context])
    assert shaping.multipliers == [0.0]  # the level is a fixed point
    start = shaping.state()
    for _ in range(50):
        shaping.commit([context_of(["5!", "5!", "5!"]), context_of(["5!", "5"])])
    assert start["multipliers"] == [0.0]  # a state that was taken does not follow
    assert shaping.metrics(context)["constraints/1_weight"] < 0.1
    again = Constraints(constraints=(Constraint(reward="rule", at=0.4),)).build()
    again.restore(shaping.state())
    assert again.shape(paid, context).rows() == shaping.shape(paid, context).rows()
    two = Constraints(constraints=(Constraint(reward="rule", at=0.4), Constraint(reward="rule", at=0.8))).build()
    with pytest.raises(InputError, match="has 1 constraints, this run has 2"):
        two.restore(shaping.state())


def test_a_diverged_reward_is_not_hidden_by_standardising():
    shaping = Constraints(constraints=(Constraint(reward="rule", at=0.4),)).build()
    paid = shaping.shape(rows([float("inf"), 1.0], [0.0, 1.0]), context_of(["5", "5"], ["5", "5"]))
    assert paid.flat.isnan().tolist() == [True, True, False, False]


@pytest.mark.parametrize("shaping", [RankInGroup(), PAR(references="group").build()])
def test_the_alarm_sees_a_hack_although_the_mean_of_what_is_paid_never_changes(shaping):
    alarm, seen, paid = HackingAlarm(), [], []
    for step in range(30):
        hack = step / 30  # more and more answers that the reward model likes and the rule rejects
        groups = [["2" if p < 20 * hack else "1!", "2.5" if p < 20 * hack else "-1", "-1"] for p in range(20)]
        context = context_of(*groups)
        scores = shaped(RewardModelReward().score(context), [shaping], context)
        metrics = reward_metrics(scores) | step_health(context, scores)
        paid.append(metrics["reward/shaped_mean"])
        seen.append(bool(alarm.observe(step, metrics)))
    assert paid == pytest.approx([0.5] * 30)
    assert not any(seen[:5])
    assert seen[-1]
