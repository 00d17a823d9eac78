"""A reward that compares the answers of a group is refused where answers come one at a time, before it learns."""

from dataclasses import replace
from typing import Any, ClassVar

import pytest

from cooper_rl import CooperReward, CooperRewardConfig, InputError, RewardConfig, Scores, ShapingConfig
from cooper_rl.reward.reward_config import comparing_part
from cooper_rl.service.config import ServeConfig
from cooper_rl.service.history import History
from cooper_rl.service.requests import ScoreAsk
from cooper_rl.service.training import Training
from service.answered import groups

HERE = "service.test_one_at_a_time"
JUDGE = {"base_url": "http://localhost:1", "model": "m"}
PAIRWISE = {"kind": "shelf.pairwise_judge:PairwiseJudgeConfig", "judge": JUDGE}
MODEL = {"kind": "reward_model"}


class Best(RewardConfig):
    """1 for the longest answer of its group. It does not say that it compares."""

    def score(self, context) -> Scores:
        lengths = [[len(answer.text) for answer in group.answers] for group in context.groups]
        return Scores(context.ragged([float(own == max(row)) for row in lengths for own in row]))


class Length(Best):
    compares_answers: ClassVar[bool] = False


class Centred(ShapingConfig):
    def shape(self, rewards, context):
        return rewards.like(rewards.flat - rewards.expand(rewards.mean()))


def by_one(problem, completion) -> float:
    return 1.0


def by_all(problems, completions) -> list[float]:
    return [1.0] * len(completions)


def in_trls_style(prompts, completions, **columns) -> list[float]:
    return [1.0] * len(completions)


def shaped(**shaping: Any) -> dict[str, Any]:
    return {"rewards": [MODEL], "shaping": [shaping]}


COMPARING: dict[str, tuple[dict[str, Any], str]] = {
    "hybrid": ({"rewards": [{"kind": "hybrid"}]}, "rewards.0 (hybrid)"),
    "cap, group": (shaped(kind="cap", references="group"), "shaping.0 (cap)"),
    "cap, accepted": (shaped(kind="cap", references="accepted"), "shaping.0 (cap)"),
    "par, group": (shaped(kind="par", references="group"), "shaping.0 (par)"),
    "a judge that compares": ({"rewards": [{"kind": "rule"}, PAIRWISE]}, "rewards.1 (shelf.pair"),
    "inside a gate": (shaped(kind="gate", by={"kind": f"{HERE}:Best"}), "shaping.0 (gate)"),
    "a user's class": ({"rewards": [{"kind": f"{HERE}:Best"}]}, f"rewards.0 ({HERE}:Best)"),
    "a user's shaping": (shaped(kind=f"{HERE}:Centred"), f"shaping.0 ({HERE}:Centred)"),
    "a function of all": ({"rewards": [{"kind": "function", "function": f"{HERE}:by_all"}]}, "(func"),
    "TRL's style": ({"rewards": [{"kind": "function", "function": f"{HERE}:in_trls_style"}]}, "rewards.0 (function)"),
}
BY_ITSELF: dict[str, dict[str, Any]] = {
    "rule": {"rewards": [{"kind": "rule"}]},
    "earned": {"rewards": [{"kind": "earned"}]},
    "rule_then_model": {"rewards": [{"kind": "rule_then_model"}]},
    "a judge": {"rewards": [{"kind": "shelf.pointwise_judge:PointwiseJudgeConfig", "judge": JUDGE}]},
    "a judge that compares with the solution": {"rewards": [{**PAIRWISE, "opponents": "solution"}]},
    "cap, solution": shaped(kind="cap"),
    "par, a number": shaped(kind="par", references=0.5),
    "clip": shaped(kind="clip", low=0.1),
    "gate": shaped(kind="gate", by="rule"),
    "a function of one": {"rewards": [{"kind": "function", "function": f"{HERE}:by_one"}]},
    "a user's class that says so": {"rewards": [{"kind": f"{HERE}:Length"}]},
}


def config_of(settings: dict[str, Any], record: type[CooperRewardConfig] = CooperRewardConfig) -> Any:
    return record.model_validate({"reward_model": {"model": "m"}, **settings})


@pytest.mark.parametrize("name", COMPARING)
def test_what_compares_answers_is_named(name):
    config, (_, setting) = config_of(COMPARING[name][0]), COMPARING[name]
    assert setting in (comparing_part(config.rewards, config.shaping) or "")


@pytest.mark.parametrize("name", BY_ITSELF)
def test_what_reads_each_answer_by_itself_is_not(name):
    config = config_of(BY_ITSELF[name])
    assert comparing_part(config.rewards, config.shaping) is None


def test_answers_that_come_one_at_a_time_are_refused_before_anything_is_in_the_step(tmp_path):
    config = ServeConfig.model_validate({"kind": "function", "rewards": [{"kind": f"{HERE}:Best"}], "threads": 1})
    whole = groups(10)
    part = replace(whole[0], answers=[replace(whole[0].answers[0], id="a")])
    with CooperReward.from_config(config) as reward:
        training = Training(reward, History(tmp_path, keep=2), None, config)
        for ask in (ScoreAsk([part], 1, partial=frozenset([part.id])), ScoreAsk([part], 1)):
            (refused,) = training.score([ask])
            assert isinstance(refused, InputError)
            words = f"rewards.0 ({HERE}:Best) compares the answers of a group, but they come one at a time"
            assert words in str(refused)
            assert "send whole groups" in str(refused)
        with pytest.raises(InputError, match="come one at a time"):
            reward.score([part])
        assert training.ledger.open_step is None
        (scored,) = training.score([ScoreAsk(whole, 1)])
        assert not isinstance(scored, Exception)
        training.history.close()
