"""The peer filter drops the pairs that another model finds hardest, and with them most pairs that are the wrong way."""

import math
from dataclasses import replace
from random import Random

import pytest
from shelf.peer import without_hardest

from cooper_lab.arithmetic.arms import ASSETS
from cooper_lab.arithmetic.corruption import corrupt
from cooper_rl import Answer, AnswerGroup, CooperReward, CooperRewardConfig, Problem, load_scorer
from cooper_rl.engines.config import ScorerConfig
from cooper_rl.reward.pairs.base import Pair
from cooper_verify.problems.config import ProblemsConfig
from cooper_verify.problems.loading import load_problems

MODEL = {"model": str(ASSETS / "reward_model"), "max_input_tokens": 160}


def reward(*filters: dict[str, object]) -> CooperReward:
    settings = {
        "kind": "cooper_model",
        "reward_model": MODEL,
        "cooptimization": {"pairs": [{"kind": "on_policy"}, *filters], "pairs_per_problem": 8},
    }
    return CooperReward.from_config(CooperRewardConfig.model_validate(settings))


@pytest.fixture(scope="module")
def peer():
    return load_scorer(ScorerConfig.model_validate(MODEL))


@pytest.fixture(scope="module")
def planted():
    """100 pairs of right and wrong solutions, of which every fifth is the wrong way round."""
    data = {"source": "arithmetic", "split": "test", "limit": 100}
    pairs = []
    for number, problem in enumerate(load_problems(ProblemsConfig.model_validate(data), rule=None).problems):
        assert problem.solution is not None
        first, second = problem.solution, corrupt(problem, problem.solution)
        if number % 5 == 0:
            first, second = second, first
        pairs.append(Pair(problem.id, problem.question, problem.answer, first, second, "rollout", "on_policy"))
    return pairs


def test_most_of_what_is_dropped_is_the_wrong_way_round(peer, planted):
    kept, metrics = without_hardest(planted, peer, 0.2)
    flips = {pair.problem_id for pair in planted[::5]}
    assert metrics["pairs/peer_dropped"] == len(planted) - len(kept) == 20
    left = sum(pair.problem_id in flips for pair in kept)
    assert left < 8  # dropping at random would leave 16 of the 20
    assert [pair for pair in planted if pair in kept] == kept


def test_ties_are_kept_and_little_noise_keeps_everything(peer, planted):
    ties = [replace(pair, label="tie") for pair in planted[:10]]
    assert without_hardest(ties, peer, 0.9)[0] == ties
    assert without_hardest(planted[:4], peer, 0.2)[0] == planted[:4]
    assert math.isnan(without_hardest([], peer, 0.2)[1]["pairs/peer_margin"])


def test_a_run_trains_on_what_the_peer_leaves():
    random = Random(0)
    texts = ["6+1=7 answer: 7"] + [f"6+1={n} answer: {n}" for n in random.sample(range(10, 90), 8)]
    group = AnswerGroup("g", Problem("p", "6 + 1 = ?", "7"), [Answer(text) for text in texts])
    for filters, count in (([], 8), ([{"kind": "shelf.peer:PeerFilterConfig", "model": MODEL, "noise": 0.5}], 4)):
        with reward(*filters) as cooper:
            updated = cooper.update(cooper.score([group]))
        assert len(updated.pairs) == count
        assert updated.metrics.get("pairs/peer_dropped", 0) == 8 - count
