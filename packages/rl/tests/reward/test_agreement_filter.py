"""`shelf.agreed`: what all models accept is not taught as wrong, even if the rule rejects it."""

from random import Random

from cooper_lab.arithmetic.arms import ASSETS
from cooper_rl import Answer, AnswerGroup, CooperReward, CooperRewardConfig, Problem
from cooper_rl.reward.pairs.base import PairGroup
from cooper_rl.reward.pairs.sources.on_policy import OnPolicyPairs, choose_wrong
from cooptimization_cases import make_group  # pyright: ignore[reportMissingImports]


def test_fewer_negatives_are_false_under_a_rule_that_misses_right_answers():
    """200 problems; the rule misses 1 right answer in 6, and two models each accept 9 of 10 right and 1 of 10 wrong."""
    random, false = Random(0), {True: 0, False: 0}
    for number in range(200):
        right = [random.random() < 0.5 for _ in range(8)]
        group = make_group([f"{number} {i}" for i in range(8)], id=str(number))
        verdicts = ["correct" if known and random.random() > 1 / 6 else "wrong" for known in right]
        logits = [random.gauss(2 if known else -2, 1.5) for known in right]
        other = [random.random() < (0.9 if known else 0.1) for known in right]
        trusted = [logit > 0 and said for logit, said in zip(logits, other, strict=True)]
        for filtered in (False, True):
            judged, marks = PairGroup(group, verdicts, logits), trusted if filtered else None
            (negative,) = choose_wrong(judged, 1, OnPolicyPairs(), random, trusted=marks) or [""]
            false[filtered] += negative != "" and right[int(negative.split()[1])]
    assert false[False] > 80
    assert false[True] < false[False] / 2


def test_a_run_asks_its_learning_model_and_the_named_one():
    model = {"model": str(ASSETS / "reward_model"), "max_input_tokens": 160}
    texts = [f"6+1={n} answer: {n}" for n in range(2, 12)] + ["6+1=7 answer: 7 or 8", "6+1=7 answer: 9 or 7"]
    group = AnswerGroup("g", Problem("p", "6 + 1 = ?", "7"), [Answer(text) for text in texts])

    def negatives(source: dict[str, object]) -> list[float | None]:
        config = CooperRewardConfig.model_validate(
            {
                "kind": "cooper_model",
                "reward_model": model,
                "cooptimization": {
                    "pairs": [source],
                    "pairs_per_problem": 12,
                },
            }
        )
        with CooperReward.from_config(config) as reward:
            return [pair.negative_logit_before for pair in reward.update(reward.score([group])).pairs]

    plain = negatives({"kind": "on_policy"})
    filtered = negatives({"kind": "shelf.agreed:AgreedOnPolicyPairs", "agree_with": [model]})
    assert any(logit is not None and logit > 0 for logit in plain)
    assert filtered == [logit for logit in plain if logit is not None and logit <= 0]
