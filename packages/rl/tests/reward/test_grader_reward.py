"""Any grader as a reward: its score is paid, no score is no opinion, and what does not fit is said before a run."""

import json

import pytest

from chat_server import ChatServer, completion
from cooper_audit.run.run_record import read_metrics
from cooper_rl import (
    Answer,
    AnswerGroup,
    CooperReward,
    CooperRewardConfig,
    CooperTrainer,
    InputError,
    Problem,
    build_config,
)
from cooper_rl.adapters.graders import service
from cooper_rl.reward.base import REWARDS
from cooper_rl.reward.kinds.grader import GraderRewardConfig
from cooper_rl.reward.kinds.plain import RuleReward
from cooper_rl.reward.reward_config import comparing_part, outline
from cooper_verify.grader import NO_ANSWER, Grader, Opinion


class Lengths(Grader):
    """Pays the length of a text; nothing is said of an empty one, and its server fails on `?`."""

    reads_reference = False
    compares_answers = False

    def grade(self, answers, /):
        assert len(answers) == len([*answers])
        return [self._opinion(text) for _, text in answers]

    def _opinion(self, text):
        if text == "?":
            return Opinion("unparsed", None, NO_ANSWER)
        return Opinion("silent", float(len(text)) or None)

    def check(self, problems):
        if any(problem.id == "bad" for problem in problems):
            raise InputError("lengths: cannot grade the problem bad")


class Comparing(Lengths):
    compares_answers = True


def cut_off(problem, completion):
    """Reads what only an answer has."""
    return 0.0 if completion.stopped else -1.0


def of_a_problem(problem):
    return 1.0


OWN = f"{__name__}:Lengths"


def group(*texts, id="p1"):
    return AnswerGroup(id, Problem(id, f"What is 3 + 4 ({id})?", "7"), [Answer(text) for text in texts])


def config(*rewards, **more) -> CooperRewardConfig:
    settings = {"kind": "function", "rewards": list(rewards), "rule": "exact", **more}
    return CooperRewardConfig.model_validate(settings)


def score(groups, *rewards):
    with CooperReward.from_config(config(*rewards)) as cooper:
        return cooper.score(groups, train=False)


def test_the_score_is_paid_and_none_is_no_opinion_and_never_zero():
    scored = score([group("7", "seven", ""), group("?", "ab", id="p2")], OWN)
    assert str(scored.rewards) == "[[1.0, 5.0, nan], [nan, 2.0]]"
    assert scored.metrics["grader/mean"] == pytest.approx(8 / 3)
    assert scored.metrics["grader/no_opinion"] == pytest.approx(2 / 5)
    assert scored.metrics["grader/failures"] == 1
    assert scored.metrics["reward/no_opinion"] == pytest.approx(2 / 5)


def test_a_reward_is_written_as_a_text_or_with_a_weight_beside_the_kinds():
    written = config("rule", {"kind": OWN, "weight": 0.5}, "rule:exact")
    assert written.rewards == (
        RuleReward(),
        GraderRewardConfig(kind=OWN, weight=0.5),
        GraderRewardConfig(kind="rule:exact"),
    )
    assert [REWARDS.read(REWARDS.dump(reward)) for reward in written.rewards] == [*written.rewards]
    scored = score([group("7", "8")], "rule", {"kind": OWN, "weight": 0.5}, "rule:exact")
    assert scored.rewards == [[2.5, 0.5]]


def test_a_function_reads_the_whole_answer_as_the_kind_function_does():
    cut = AnswerGroup("p", Problem("p", "3 + 4?", "7"), [Answer("7", stopped=True), Answer("7", stopped=False)])
    scored = score([cut], f"{__name__}:cut_off")
    assert scored.rewards == [[0.0, -1.0]]
    assert scored.metrics["function/cut_off"] == -0.5


def test_references_and_groups_are_needed_if_the_grader_needs_them():
    assert not config(OWN).needs_references
    assert config("rule:exact").needs_references
    assert comparing_part(config(OWN, "rule:exact").rewards, ()) is None
    assert comparing_part(config(f"{__name__}:Comparing").rewards, ()) == f"rewards.0 ({__name__}:Comparing)"


def test_a_grader_has_no_state_so_a_resumed_run_may_add_it():
    assert outline(config("rule", OWN)) == outline(config("rule"))


@pytest.mark.parametrize(
    ("reward", "words"),
    [
        ("nonsense", "no reward of kind 'nonsense'; kinds: .*or a grader such as judge.yaml"),
        ({"kind": OWN, "wieght": 1}, "did you mean 'weight'"),
        ("missing.py:Own", "missing.py: no such file"),
        ("rule:nothing", "no rule of kind 'nothing'"),
        ("missing.yaml", "missing.yaml: no such configuration file"),
        (f"{__name__}:of_a_problem", "must take"),
    ],
)
def test_what_is_no_reward_names_the_remedy_before_a_run(reward, words):
    settings = {"policy": {"model": "-"}, "problems": {"source": "arithmetic"}, "kind": "function", "rewards": [reward]}
    with pytest.raises(InputError, match=words):
        build_config(settings).rewards[0].build()


def test_problems_and_servers_are_checked_before_a_run(tmp_path, monkeypatch):
    monkeypatch.setattr(service, "PATIENCE_S", 0.2)
    with pytest.raises(InputError, match="lengths: cannot grade the problem bad"):
        config(OWN).rewards[0].check_problems([Problem("bad", "?", "7")])
    judge = tmp_path / "judge.yaml"
    judge.write_text("judge: {kind: chat, base_url: 'http://127.0.0.1:9/v1', model: m, max_retries: 0}\n")
    for written in (str(judge), "http://127.0.0.1:9"):
        [reward] = config(written).rewards
        reward.check_problems([Problem("p", "?", "7")])
        with pytest.raises(InputError, match=r"127\.0\.0\.1:9"):
            reward.check()


def test_a_run_is_paid_and_ruled_by_a_judge_and_records_it(settings, tmp_path):
    def reply(request, number):
        return completion("yes" if number % 2 else "no")

    path = tmp_path / "judge.yaml"
    with ChatServer(reply) as server:
        path.write_text(f"judge: {{kind: chat, base_url: '{server.url}', model: m}}\n")
        tree = {"kind": "rule", "reward_model": None, "rule": str(path), "rewards": ["rule", OWN]}
        changes = {"steps": 1, "evaluation": {"every": 0}, "cooptimization": {}}
        with CooperTrainer.from_config(build_config({**settings, **tree, **changes})) as trainer:
            trainer.fit()
    [row] = read_metrics(trainer.directory)
    lines = (trainer.directory / "rollouts" / "000001.jsonl").read_text().splitlines()
    found = [one for line in lines for one in json.loads(line)["completions"]]
    assert {one["verdict"] for one in found} == {"correct", "wrong"}
    assert row["grader/mean"] == pytest.approx(sum(one["grader"] for one in found) / len(found), rel=1e-4)
    assert 0 < row["rule/accuracy"] < 1
