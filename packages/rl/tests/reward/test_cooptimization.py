"""A step's pairs and the reward model's update on them, with a real verifier, reward model and chat server."""

import json
import math
import time
from dataclasses import replace

import pytest
import torch

from chat_server import ChatServer, completion  # pyright: ignore[reportMissingImports]
from cooper_base.data.labelled import LabelledCompletion
from cooper_rl.reward.context import RewardModel
from cooper_rl.reward.cooptimization import Cooptimizer
from cooper_rl.reward.cooptimization_config import CooptimizationConfig
from cooper_rl.reward.pairs.assistant import CorrupterAssistant
from cooper_rl.reward.pairs.chat_assistant import ChatAssistant
from cooper_rl.reward.recipes import RECIPES
from cooper_verify.clients.chat import ChatClient, ChatConfig
from cooptimization_cases import answer_text, context_of, cut_off, flip, make_group  # pyright: ignore[reportMissingImports]

LIGHT = RECIPES["cooper_light"]["cooptimization"]
PAPER = RECIPES["paper"]["cooptimization"]

RIGHT, WRONG = answer_text(7), answer_text(9, work="Guessing.")


def cooptimizer(verifier, recipe=LIGHT, seed=0, labelled=None, corrupter=flip, **settings) -> Cooptimizer:
    config = CooptimizationConfig.model_validate(recipe | settings)
    return Cooptimizer(config, verifier, CorrupterAssistant(corrupter, verifier), seed, labelled)


def make_pairs(cooptimization: Cooptimizer, verifier, groups, logits=None, step=1):
    return cooptimization.finish([cooptimization.start(context_of(groups, verifier, logits), step)])


def mixed_groups(count: int, first: int = 10):
    """Each problem has one right completion and three wrong ones."""
    return [
        make_group([answer_text(n + wrong) for wrong in (0, 5, 6, 7)], str(n), id=str(n))
        for n in range(first, first + count)
    ]


def test_the_paper_pairs_a_rollout_with_the_assistants_version_of_it(verifier):
    pairs = make_pairs(cooptimizer(verifier, PAPER), verifier, [make_group([RIGHT, WRONG])])
    assert [(pair.positive, pair.negative) for pair in pairs] == [(RIGHT, answer_text(8))]
    assert (pairs[0].positive_origin, pairs[0].negative_origin) == ("rollout", "assistant")


def test_cooper_adds_the_wrong_completion_that_the_reward_model_likes_most(verifier):
    groups = [make_group([RIGHT, WRONG, answer_text(4)])]
    pairs = make_pairs(cooptimizer(verifier), verifier, groups, [[0.0, 1.0, 2.0]])
    assert [(pair.negative_origin, pair.negative) for pair in pairs] == [
        ("assistant", answer_text(8)),
        ("on_policy", answer_text(4)),
    ]


def test_the_order_of_groups_changes_no_pair(verifier):
    groups = [make_group([answer_text(7, work) for work in "abcd"] + [WRONG], id=str(i)) for i in range(9)]
    forwards, backwards = (make_pairs(cooptimizer(verifier), verifier, given) for given in (groups, groups[::-1]))
    assert forwards == backwards
    assert make_pairs(cooptimizer(verifier), verifier, groups, step=2) != forwards


def test_an_unsolved_problem_is_learned_from_its_reference_solution(verifier):
    groups = [make_group([WRONG], solution=answer_text(7, "By the book.")), make_group([WRONG], id="unsolved")]
    pairs = make_pairs(cooptimizer(verifier), verifier, groups)
    assert {(pair.problem_id, pair.positive_origin) for pair in pairs} == {("p", "reference_solution")}
    assert [pair.negative for pair in pairs] == [answer_text(8, "By the book."), WRONG]
    assert make_pairs(cooptimizer(verifier, PAPER), verifier, groups) == []


def test_a_reference_solution_that_the_rule_rejects_is_not_a_positive(verifier):
    groups = [make_group([WRONG], solution=answer_text(6)), make_group([WRONG], solution=" ")]
    assert make_pairs(cooptimizer(verifier), verifier, groups) == []


def test_an_unsolved_group_without_a_solution_teaches_what_is_wrong(verifier, make_learner, encoder):
    cooptimization, learner = cooptimizer(verifier, replay={"pairs_per_step": 0}), make_learner()
    pairs = make_pairs(cooptimization, verifier, [make_group([WRONG, answer_text(9)])])
    inputs = encoder.encode_all([(make_group([WRONG]).problem.question, "7", WRONG)])
    before = learner.score(inputs).item()
    _, metrics = cooptimization.update(pairs, learner, encoder)
    assert (pairs, metrics["pairs/unpaired_negatives"]) == ([], 1)
    assert metrics["reward_model/unpaired_loss"] > 0
    assert learner.score(inputs).item() < before


def test_the_assistant_is_asked_only_about_problems_with_a_positive(verifier):
    asked = []

    def corrupter(problem, text, attempt, seed):
        asked.append(problem.id)
        return flip(problem, text, attempt, seed)

    cut = cut_off(RIGHT)
    groups = [make_group([WRONG], id="none"), make_group([cut], id="cut"), make_group([RIGHT], id="solved")]
    make_pairs(cooptimizer(verifier, corrupter=corrupter), verifier, groups)
    assert asked == ["solved"]


def test_several_pairs_per_problem_use_different_positives_and_negatives(verifier):
    group = make_group([RIGHT, answer_text(7, "Counting."), WRONG, answer_text(1), answer_text(2)])
    pairs = make_pairs(cooptimizer(verifier, pairs_per_problem=2), verifier, [group])
    for origin in ("assistant", "on_policy"):
        ours = [pair for pair in pairs if pair.negative_origin == origin]
        assert len({pair.positive for pair in ours}) == len({pair.negative for pair in ours}) == 2


def test_validity_is_reported_by_origin(verifier, make_learner, encoder):
    def fails_on_7(problem, text, attempt, seed):
        return text if problem.answer == "7" else flip(problem, text, attempt, seed)

    groups = [
        make_group([RIGHT, RIGHT]),
        make_group([answer_text(20), WRONG], "20", id="b"),
        make_group(["", ""], id="c"),
    ]
    cooptimization = cooptimizer(verifier, corrupter=fails_on_7)
    _, metrics = cooptimization.update(make_pairs(cooptimization, verifier, groups), make_learner(), encoder)
    expected = {
        "pairs/count": 2,
        "pairs/assistant_valid_rate": 0.5,
        "pairs/on_policy_valid_rate": 0.5,
        "pairs/steps_without": 0,
        "pairs/problems_with_positive": 2 / 3,
        "assistant/attempts": 4,
        "assistant/accepted": 1,
        "assistant/rejected_equals_positive": 3,
        "assistant/rejected_correct": 0,
        "assistant/failures_timeout": 0,
    }
    assert {name: metrics[name] for name in expected} == pytest.approx(expected)


def test_a_slow_assistant_does_not_hold_up_the_policys_update(verifier):
    with ChatServer(lambda body, number: completion(answer_text(8), delay=0.6)) as server:
        client = ChatClient(ChatConfig(base_url=server.url, model="test"))
        config = CooptimizationConfig.model_validate(PAPER)
        cooptimization = Cooptimizer(config, verifier, ChatAssistant(client, verifier))
        groups = [make_group([RIGHT], id=str(i)) for i in range(8)]
        context = context_of(groups, verifier)
        start = time.perf_counter()
        handle = cooptimization.start(context, 1)
        assert time.perf_counter() - start < 0.4
        assert len(cooptimization.finish([handle])) == 8
        cooptimization.close()


def test_the_loss_is_the_mean_over_the_valid_pairs(verifier, make_learner, encoder):
    cooptimization, learner, groups = (
        cooptimizer(verifier, PAPER),
        make_learner(tokens_per_microbatch=400),
        mixed_groups(5),
    )
    pairs = make_pairs(cooptimization, verifier, groups, RewardModel(learner, encoder).logits(groups).rows())
    assert all(pair.positive_logit_before is not None for pair in pairs)
    scored, metrics = cooptimization.update(pairs, learner, encoder)
    logits = [(pair.positive_logit_before, pair.negative_logit_before) for pair in scored]
    margins = [positive - negative for positive, negative in logits if positive is not None and negative is not None]
    assert metrics["reward_model/loss"] == pytest.approx(sum(math.log1p(math.exp(-m)) for m in margins) / 5, rel=1e-5)


def test_updates_teach_the_reward_model_to_tell_the_pairs_apart(verifier, make_learner, encoder):
    cooptimization, learner = cooptimizer(verifier), make_learner()
    pairs = make_pairs(cooptimization, verifier, [make_group([RIGHT, answer_text(9)], id=str(i)) for i in range(4)])
    history = [cooptimization.update(pairs, learner, encoder) for _ in range(10)]
    scored, metrics = history[-1]
    assert metrics["reward_model/pair_accuracy_after"] == 1.0
    assert metrics["reward_model/pair_accuracy_after_on_policy"] == 1.0
    assert metrics["reward_model/loss"] < history[0][1]["reward_model/loss"]
    token_ids = encoder.encode(scored[0].question, scored[0].answer, scored[0].positive)
    assert scored[0].positive_logit_after == pytest.approx(learner.score([token_ids]).item(), abs=1e-5)


def test_past_pairs_and_labelled_data_are_replayed_even_without_new_pairs(verifier, make_learner, encoder):
    labelled = [LabelledCompletion("q", "7", f"so {i}", float(i == 7)) for i in range(10)]
    replay = {"pairs_per_step": 3}
    cooptimization, learner = cooptimizer(verifier, labelled=labelled, replay=replay), make_learner()
    _, first = cooptimization.update(make_pairs(cooptimization, verifier, mixed_groups(4)), learner, encoder)
    _, second = cooptimization.update([], learner, encoder)
    assert (first["pairs/replayed"], first["pairs/remembered"]) == (0, 8)
    assert second["pairs/replayed"] == 3
    assert second["reward_model/loss"] > 0
    assert second["reward_model/labelled_loss"] > 0


def test_a_step_without_any_data_leaves_the_weights_alone_and_advances_the_schedule(verifier, make_learner, encoder):
    cooptimization, learner = cooptimizer(verifier, PAPER, epochs=2), make_learner(schedule="cosine")
    tokens = [encoder.encode("q", "7", "so 7")]
    before = learner.score(tokens)
    scored, metrics = cooptimization.update(
        make_pairs(cooptimization, verifier, [make_group([WRONG])]), learner, encoder
    )
    assert scored == []
    assert torch.equal(learner.score(tokens), before)
    assert learner.steps == 2
    assert learner.learning_rate < metrics["reward_model/learning_rate"] < learner.config.learning_rate


def test_steps_without_a_pair_are_counted_across_a_resume(verifier, make_learner, encoder):
    def step(cooptimization: Cooptimizer, answer: int) -> float:
        pairs = make_pairs(cooptimization, verifier, [make_group([answer_text(answer)])])
        return cooptimization.update(pairs, learner, encoder)[1]["pairs/steps_without"]

    learner = make_learner()
    cooptimization = cooptimizer(verifier, PAPER)
    assert [step(cooptimization, 9), step(cooptimization, 9)] == [1, 2]
    resumed = cooptimizer(verifier, PAPER)
    resumed.restore(json.loads(json.dumps(cooptimization.state())))
    assert [step(resumed, 9), step(resumed, 7), step(resumed, 9)] == [3, 0, 1]


def test_two_epochs_are_two_updates_on_the_same_pairs(verifier, make_learner, encoder):
    def logits_after(epochs: int, updates: int) -> float | None:
        cooptimization, learner = cooptimizer(verifier, PAPER, epochs=epochs), make_learner()
        pairs = make_pairs(cooptimization, verifier, mixed_groups(1))
        return [cooptimization.update(pairs, learner, encoder)[0][0].positive_logit_after for _ in range(updates)][-1]

    assert logits_after(epochs=2, updates=1) == logits_after(epochs=1, updates=2) != logits_after(epochs=1, updates=1)


def test_a_resumed_run_makes_and_replays_the_same_pairs(verifier, make_learner, encoder):
    def step(cooptimization: Cooptimizer, learner, first: int):
        groups = [make_group([answer_text(n, work) for work in "abcd"], str(n)) for n in range(first, first + 4)]
        return cooptimization.update(make_pairs(cooptimization, verifier, groups), learner, encoder)

    replay = {"pairs_per_step": 2}
    whole, learner = cooptimizer(verifier, replay=replay), make_learner(learning_rate=0.0)
    step(whole, learner, 10)
    resumed = cooptimizer(verifier, replay=replay)
    resumed.restore(json.loads(json.dumps(whole.state())))
    assert step(whole, learner, 20) == step(resumed, learner, 20)
    assert whole.state() == resumed.state()


def test_pairs_can_be_written_as_json(verifier, make_learner, encoder):
    cooptimization = cooptimizer(verifier)
    scored, metrics = cooptimization.update(
        make_pairs(cooptimization, verifier, mixed_groups(1)), make_learner(), encoder
    )
    assert json.loads(json.dumps([vars(pair) for pair in scored])) == [vars(replace(pair)) for pair in scored]
    assert all(isinstance(value, float) for value in metrics.values())
