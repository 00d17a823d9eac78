"""Repaired positives: wrong completions that the assistant makes right. Only what the rule accepts becomes a pair."""

import pytest
from shelf.repairs import RepairPairs

from chat_server import ChatServer, completion
from cooper_audit.run.run_record import read_metrics
from cooper_base.data.problem import Problem
from cooper_lab.arithmetic.arms import ASSETS
from cooper_rl import CooperTrainer, InputError, build_config
from cooper_rl.reward.cooptimization import Cooptimizer
from cooper_rl.reward.cooptimization_config import CooptimizationConfig
from cooper_rl.reward.pairs.assistant import CorrupterAssistant
from cooper_rl.reward.recipes import RECIPES
from cooper_rl.reward.reward_config import CooperRewardConfig, read_reward_inputs
from cooptimization_cases import answer_text, context_of, flip, make_group

LIGHT = RECIPES["cooper_light"]["cooptimization"]


def mend(problem: Problem, completion_text: str, attempt: int, seed: int) -> str:
    """A repairer that needs two attempts: the answer plus one, then the answer."""
    return answer_text(int(problem.answer) + 1 - attempt, work="Mended.")


ON_POLICY = {"kind": "on_policy", "unread": ["several_answers"]}  # which asks no model
REPAIRS = ON_POLICY | {
    "kind": "shelf.repairs:RepairPairs",
    "assistant": {"kind": "corrupter", "function": f"{__name__}:mend"},
}


def cooptimization(verifier, *sources: dict[str, object]) -> Cooptimizer:
    pairs = sources or ({"kind": "assistant"}, ON_POLICY, REPAIRS)
    config = CooptimizationConfig.model_validate(LIGHT | {"positives": ["rollout"], "pairs": pairs})
    return Cooptimizer(config, verifier, CorrupterAssistant(flip, verifier))


def make_pairs(cooptimizer, verifier, groups):
    logits = [[float(i) for i in range(len(group.answers))] for group in groups]
    return cooptimizer.finish([cooptimizer.start(context_of(groups, verifier, logits), 1)])


def test_a_group_that_nobody_solves_gets_a_pair_of_its_highest_scored_completion_and_the_repair(verifier):
    groups = [make_group([answer_text(8), answer_text(9), "no answer"], "7")]
    cooptimizer = cooptimization(verifier)
    [pair] = make_pairs(cooptimizer, verifier, groups)
    assert (pair.positive, pair.negative) == (answer_text(7, work="Mended."), answer_text(9))
    assert (pair.positive_origin, pair.negative_origin, pair.label) == ("repaired", "on_policy", "better")
    assert (pair.positive_logit_before, pair.negative_logit_before) == (None, 1.0)


def test_other_pairs_stay_as_they_are_and_each_kind_is_counted_on_its_own(verifier, encoder, make_learner):
    groups = [make_group([answer_text(n), answer_text(n + 3)], str(n), id=str(n)) for n in (20, 30, 40)]
    plain = make_pairs(cooptimization(verifier, {"kind": "assistant"}, ON_POLICY), verifier, groups)
    cooptimizer = cooptimization(verifier)
    pairs = make_pairs(cooptimizer, verifier, groups)
    assert [pair for pair in pairs if pair.positive_origin != "repaired"] == plain
    assert sum(pair.positive_origin == "repaired" for pair in pairs) == 3
    _, metrics = cooptimizer.update(pairs, make_learner(), encoder)
    assert (metrics["pairs/repaired"], metrics["pairs/on_policy_valid_rate"]) == (3, 1)
    assert (metrics["assistant/attempts"], metrics["assistant/accepted"]) == (3, 3)
    assert (metrics["assistant/repair_attempts"], metrics["assistant/repair_accepted"]) == (6, 3)
    assert metrics["assistant/repair_rejected_wrong"] == 3


BAD = {
    "still wrong": (answer_text(8), "repair_rejected_wrong"),
    "the same": (answer_text(9), "repair_rejected_unchanged"),
    "no answer": ("I would rather not.", "repair_rejected_unparsed"),
    "far too long": ("Well. " * 1000 + answer_text(7), "repair_rejected_overlong"),
    "nothing": ("", "repair_failures_empty"),
}


@pytest.mark.parametrize("name", [*BAD, "right"])
def test_a_chat_assistants_repair_counts_only_if_the_rule_accepts_it(name, verifier):
    text, count = BAD.get(name, (answer_text(7), "repair_accepted"))

    def respond(request, number):
        task = request["messages"][-1]["content"]
        assert "as few" in request["messages"][0]["content"] or "as little" in request["messages"][0]["content"]
        assert f"<<<\n{answer_text(9)}\n>>>" in task
        return completion(text)

    with ChatServer(respond) as server:
        chat = {"kind": "chat", "base_url": server.url, "model": "m", "max_retries": 0, "tries": 2}
        cooptimizer = cooptimization(
            verifier, {"kind": "on_policy"}, {"kind": "shelf.repairs:RepairPairs", "assistant": chat}
        )
        pairs = make_pairs(cooptimizer, verifier, [make_group([answer_text(9)], "7")])
        cooptimizer.close()
    assert [pair.positive for pair in pairs] == ([answer_text(7)] if name == "right" else [])
    assert cooptimizer._pair_metrics[f"assistant/{count}"] == (1 if name == "right" else 2)


def test_a_server_that_does_not_answer_and_a_function_that_is_not_there_are_refused():
    chat = {"kind": "chat", "base_url": "http://127.0.0.1:9/v1", "model": "m", "max_retries": 0}
    with pytest.raises(InputError, match=r"127\.0\.0\.1:9"):
        RepairPairs.model_validate({"assistant": chat}).check()
    function = {"kind": "corrupter", "function": f"{__name__}:nobody"}
    run = {"kind": "cooper", "reward_model": {"model": str(ASSETS / "reward_model")}}
    config = CooperRewardConfig.model_validate(
        run | {"cooptimization": {"pairs": [{"kind": "shelf.repairs:RepairPairs", "assistant": function}]}}
    )
    with pytest.raises(InputError, match="nobody does not exist"):
        read_reward_inputs(config)


def test_a_run_learns_from_repairs(settings):
    """The policy is random; with a rule that reads whatever it writes, wrong completions are there to be repaired."""
    function = {"kind": "corrupter", "function": f"{__name__}:of_solution"}
    stage = {
        "pairs": [{"kind": "shelf.repairs:RepairPairs", "assistant": function, "unread": ["unparsed"]}],
        "positives": ["rollout"],
    }
    changes = {"kind": "cooper", "steps": 1, "evaluation": {"every": 0}, "cooptimization": stage}
    with CooperTrainer.from_config(build_config({**settings, **changes})) as trainer:
        trainer.fit()
    [row] = read_metrics(trainer.directory)
    assert row["pairs/repaired"] == row["pairs/count"] == row["assistant/repair_accepted"] > 0
    assert row["reward_model/pair_accuracy_after_on_policy"] >= 0


def of_solution(problem: Problem, completion_text: str, attempt: int, seed: int) -> str:
    return problem.solution or ""
