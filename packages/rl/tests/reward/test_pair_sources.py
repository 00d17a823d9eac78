"""Swapped references and ties: every pair is what it says by the rule, and choices depend on nothing but the step."""

import math
from dataclasses import replace

import pytest
from shelf.weighted_pairs import Misranked, Overpaid

from cooper_base.data.answer import Answer, AnswerGroup
from cooper_base.data.labelled import LabelledCompletion
from cooper_base.data.problem import Problem
from cooper_rl.engines.base import LabelledBatch
from cooper_rl.engines.losses.reward_model import BinaryCrossEntropyLoss
from cooper_rl.reward.context import RewardModel
from cooper_rl.reward.cooptimization import Cooptimizer
from cooper_rl.reward.cooptimization_config import CooptimizationConfig
from cooper_rl.reward.pairs.assistant import CorrupterAssistant
from cooper_rl.reward.pairs.base import (
    MadePairs,
    Pair,
    PairFilter,
    PairFilterConfig,
    PairInputs,
    PairSource,
    PairSourceConfig,
)
from cooper_rl.reward.pairs.sources.on_policy import OnPolicyPairs
from cooper_rl.reward.recipes import RECIPES
from cooper_verify.rules.near_answers import near_answers
from cooper_verify.rules.other_answers import are_different
from cooptimization_cases import answer_text, context_of, flip, make_group  # pyright: ignore[reportMissingImports]

LIGHT = RECIPES["cooper_light"]["cooptimization"]
LISTED = [{"kind": "assistant"}, {"kind": "on_policy"}]
TIES = [{"kind": "shelf.ties:TwoRightPairs"}, {"kind": "shelf.ties:IrrelevantQuestionPairs"}]


def cooptimizer(verifier, **settings) -> Cooptimizer:
    config = CooptimizationConfig.model_validate(LIGHT | settings)
    return Cooptimizer(config, verifier, CorrupterAssistant(flip, verifier))


def make_pairs(cooptimization: Cooptimizer, verifier, groups, calls: int = 1) -> list[Pair]:
    parts = []
    for start in range(calls):
        some = groups[start::calls]
        logits = [[0.5] * len(group.answers) for group in some]
        parts.append(cooptimization.start(context_of(some, verifier, logits), 1))
    return cooptimization.finish(parts)


def groups(count: int = 5):
    """Each problem has two right completions and two wrong ones."""
    return [
        make_group(
            [answer_text(n), answer_text(n, "Counting."), answer_text(n + 5), answer_text(n + 6)], str(n), id=str(n)
        )
        for n in range(20, 20 + count)
    ]


def test_a_swapped_reference_is_one_that_the_rule_rejects_for_the_same_completion(verifier):
    pairs = make_pairs(cooptimizer(verifier, pairs=[{"kind": "swapped_reference"}]), verifier, groups())
    assert [pair.positive == pair.negative for pair in pairs] == [True] * 5
    for pair in pairs:
        assert pair.negative_answer is not None
        own, other = (Problem("p", pair.question, answer) for answer in (pair.answer, pair.negative_answer))
        assert verifier.verify_problems([(own, pair.positive), (other, pair.positive)]) == ["correct", "wrong"]
        assert pair.negative_logit_before is None  # the known logit belongs to the true reference


def test_a_reference_that_means_the_same_is_never_swapped_in(verifier):
    halves = [
        AnswerGroup(str(i), Problem(str(i), f"What is half of 1 ({i})?", answer), [Answer(r"\boxed{0.5}")])
        for i, answer in enumerate(("1/2", "0.5", r"\frac{2}{4}"))
    ]
    other = AnswerGroup("x", Problem("x", "What is a third of 1?", "1/3"), [Answer(r"\boxed{1/3}")])
    pairs = make_pairs(cooptimizer(verifier, pairs=[{"kind": "swapped_reference"}]), verifier, [*halves, other])
    assert len(pairs) == 4
    assert all(are_different(pair.answer, pair.answer_of_negative) for pair in pairs)


def test_only_a_model_that_reads_the_reference_ranks_a_swapped_pair(verifier, make_learner, encoder):
    cooptimization = cooptimizer(verifier, pairs=[{"kind": "swapped_reference"}], loss={"anchor": 0.5})
    pairs = make_pairs(cooptimization, verifier, groups(2))
    scored, metrics = cooptimization.update(pairs, make_learner(), encoder)
    assert all(pair.positive_logit_before != pair.negative_logit_before for pair in scored)
    assert "reward_model/pair_accuracy_after_swapped_reference" in metrics


def test_ties_are_two_right_completions_or_two_under_a_question_they_do_not_answer(verifier):
    pairs = make_pairs(cooptimizer(verifier, pairs=[*LISTED, *TIES]), verifier, groups())
    by_origin = {
        origin: [pair for pair in pairs if (pair.label, pair.negative_origin) == ("tie", origin)]
        for origin in ("two_right", "irrelevant_question")
    }
    assert [len(found) for found in by_origin.values()] == [5, 5]
    for origin, wanted in (("two_right", "correct"), ("irrelevant_question", "wrong")):
        for pair in by_origin[origin]:
            problem = Problem("p", pair.question, pair.answer)
            verdicts = verifier.verify_problems([(problem, pair.positive), (problem, pair.negative)])
            assert verdicts == [wanted] * 2
            assert pair.positive != pair.negative


def test_ties_leave_the_other_pairs_as_they_were(verifier):
    plain = make_pairs(cooptimizer(verifier), verifier, groups())
    both = make_pairs(cooptimizer(verifier, pairs=[*LISTED, *TIES]), verifier, groups())
    assert both[: len(plain)] == plain


def test_partners_do_not_depend_on_the_order_or_the_calls_of_a_step(verifier):
    settings = {"pairs": [{"kind": "swapped_reference"}, *TIES]}
    expected = make_pairs(cooptimizer(verifier, **settings), verifier, groups())
    assert make_pairs(cooptimizer(verifier, **settings), verifier, groups()[::-1]) == expected
    assert make_pairs(cooptimizer(verifier, **settings), verifier, groups(), calls=2) == expected


def test_ties_pull_two_logits_together(verifier, make_learner, encoder):
    cooptimization, learner = cooptimizer(verifier, pairs=[{"kind": "on_policy"}], loss={"anchor": 0}), make_learner()
    pairs = [replace(pair, label="tie", weight=4.0) for pair in make_pairs(cooptimization, verifier, groups(2))]
    history = [cooptimization.update(pairs, learner, encoder)[1] for _ in range(8)]
    assert history[-1]["reward_model/tie_gap"] < 0.5 * history[0]["reward_model/tie_gap"]
    assert history[-1]["reward_model/tie_loss"] == pytest.approx(4 * math.log(2), abs=0.01)
    assert "reward_model/loss" not in history[-1]


def near_reference_pairs(verifier, texts: list[str], logits: list[float], reference: str = "28,000", **settings):
    group = make_group(texts, reference, id="0")
    cooptimization = cooptimizer(verifier, pairs=[{"kind": "near_reference"}], **settings)
    return cooptimization.finish([cooptimization.start(context_of([group], verifier, [logits]), 1)])


def test_a_completion_is_right_under_what_it_states_and_wrong_under_what_is_near_to_that(verifier):
    """The highest score decides which, and the problem's own reference plays no part."""
    texts = [r"\boxed{27}", r"17+11 is \boxed{28}", r"\boxed{29}"]
    (pair,) = near_reference_pairs(verifier, texts, [0.5, 2.0, -1.0])
    assert (pair.positive, pair.negative, pair.answer) == (texts[1], texts[1], "28")
    assert pair.negative_answer in near_answers(["28"])[0]
    assert (pair.positive_logit_before, pair.negative_logit_before) == (None, None)
    assert pair.weight == LIGHT["pairs_per_problem"] == 1
    (heavy,) = near_reference_pairs(verifier, texts, [0.5, 2.0, -1.0], pairs_per_problem=4)
    assert heavy == replace(pair, weight=4.0)  # one pair counts as much as all of another source
    assert near_reference_pairs(verifier, texts, [0.5, 2.0, -1.0], "31") == [
        replace(pair, question="What is 31 + 0 (0)?")
    ]


def test_over_many_draws_every_near_answer_serves(verifier):
    source = cooptimizer(verifier, pairs=[{"kind": "near_reference"}])
    some = [make_group([r"\boxed{28}"], "28,000", id=f"{i}") for i in range(200)]
    pairs = source.finish([source.start(context_of(some, verifier, [[1.0]] * 200), 1)])
    assert {pair.negative_answer for pair in pairs} == {*near_answers(["28"])[0]}


@pytest.mark.parametrize("text", ["no answer", r"\boxed{Paris}", r"\boxed{1} or \boxed{2}", "   "])
def test_a_completion_to_which_nothing_is_near_makes_no_pair(verifier, text):
    assert near_reference_pairs(verifier, [text], [1.0]) == []


def test_a_group_that_the_rule_judges_has_such_a_pair_too(verifier):
    (pair,) = near_reference_pairs(verifier, [r"\boxed{28000}", r"\boxed{28}"], [0.0, 1.0])
    assert (pair.positive, pair.answer) == (r"\boxed{28}", "28")  # right under what it states, whatever the rule says


def test_weights_follow_how_wrong_the_score_was(verifier, make_learner, encoder):
    pair = Pair("p", "q", "7", "a", "b", "rollout", "on_policy")
    pairs = [
        replace(pair, question=f"q{p}", positive_logit_before=p, negative_logit_before=n)
        for p, n in ((2.0, 0.0), (1.0, 3.0))
    ]
    tie = replace(pairs[0], label="tie")
    model = RewardModel(make_learner(), encoder)
    for config, ratio in (
        (Misranked(), (1 + math.exp(2)) / (1 + math.exp(-2))),
        (Overpaid(), (1 / (1 + math.exp(-3))) / 0.5),
    ):
        source = CooptimizationConfig(pairs=(OnPolicyPairs(), config))
        kept, _ = config.build(PairInputs(source, verifier)).filter([*pairs, tie], model)
        assert kept[1].weight / kept[0].weight == pytest.approx(ratio)
        assert kept[2] == tie


def test_an_update_scales_weights_to_mean_1(verifier, make_learner, encoder):
    """Twice the weights are the same update; another ratio is another one."""

    def after(*weights: float) -> list[float | None]:
        cooptimization = cooptimizer(verifier, pairs=[{"kind": "on_policy"}], replay={"pairs_per_step": 0})
        pairs = make_pairs(cooptimization, verifier, groups(2))
        weighted = [replace(pair, weight=weight) for pair, weight in zip(pairs, weights, strict=True)]
        return [pair.positive_logit_after for pair in cooptimization.update(weighted, make_learner(), encoder)[0]]

    assert after(0.5, 0.5) == after(1.0, 1.0) == after(4.0, 4.0)
    assert after(1.0, 3.0) == after(2.0, 6.0) != after(1.0, 1.0)


def test_a_filter_finds_logits_that_no_score_has_computed(verifier, make_learner, encoder):
    """The assistant's negatives were never scored, so the filter has the learning model score them, once."""
    cooptimization = cooptimizer(verifier, pairs=[{"kind": "assistant"}, {"kind": "shelf.weighted_pairs:Overpaid"}])
    made = make_pairs(cooptimization, verifier, groups(3))
    learner = make_learner()
    chosen, _ = cooptimization.filtered(made, RewardModel(learner, encoder))
    assert chosen is not None
    assert all(pair.negative_logit_before is None for pair in made)
    assert [pair.weight for pair in chosen] == pytest.approx(
        [1 / (1 + math.exp(-(pair.negative_logit_before or 0))) for pair in chosen]
    )
    scored, _ = cooptimization.update(chosen, learner, encoder)
    assert [pair.negative_logit_before for pair in scored] == [pair.negative_logit_before for pair in chosen]


class Labels(PairSource):
    """One completion of each group, labelled half right."""

    def pairs(self, groups, started):
        rows = [(group.problem.question, group.problem.answer, group.texts[0]) for group in groups]
        return MadePairs([], labelled=[LabelledCompletion(*row, 0.5) for row in rows])


class Wait(PairFilter):
    """Leaves every update out."""

    def filter(self, pairs, model):
        return None, {"wait/pairs": float(len(pairs))}


class LabelsConfig(PairSourceConfig):
    def build(self, inputs):
        return Labels()


class WaitConfig(PairFilterConfig):
    def build(self, inputs):
        return Wait()


def test_a_source_can_label_completions_one_by_one(verifier, make_learner, encoder):
    """Without any pair: the update is the mean of their cross-entropy, and such a step is no step without data."""
    labels = cooptimizer(verifier, pairs=[{"kind": f"{__name__}:LabelsConfig"}])
    assert make_pairs(labels, verifier, groups(3)) == []
    learner, plain = make_learner(), make_learner()
    _, metrics = labels.update([], learner, encoder)
    rows = [(group.problem.question, group.problem.answer, group.answers[0].text) for group in groups(3)]
    batch = LabelledBatch(encoder.encode_all(rows), [0.5] * 3, [1 / 3] * 3)
    assert plain.forward_backward(batch, BinaryCrossEntropyLoss())["loss"] == metrics["reward_model/judged_loss"]
    plain.optim_step()
    assert learner.score(batch.token_ids).tolist() == plain.score(batch.token_ids).tolist()
    assert metrics["pairs/steps_without"] == 0


def test_a_filter_can_leave_a_steps_update_out(verifier, make_learner, encoder):
    waiting = cooptimizer(verifier, pairs=[{"kind": "on_policy"}, {"kind": f"{__name__}:WaitConfig"}])
    made = make_pairs(waiting, verifier, groups(2))
    chosen, metrics = waiting.filtered(made, RewardModel(make_learner(), encoder))
    assert chosen is None
    assert metrics["wait/pairs"] == metrics["pairs/count"] == len(made) > 0
