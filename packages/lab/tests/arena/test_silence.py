"""What the rule does not judge is neither right nor wrong."""

import json
import logging
from itertools import permutations
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest
import torch

from cooper_audit.run.hacking_alarm import HackingAlarm
from cooper_base.config.base import Config
from cooper_base.data.answer import Answer, AnswerGroup
from cooper_lab.arena.silence import SILENCES
from cooper_lab.arithmetic.problems import arithmetic_problems
from cooper_rl import InputError, Problem, Ragged, build_config
from cooper_rl.engines.reward_input import RewardModelInput
from cooper_rl.policy.advantages import unverified_advantage
from cooper_rl.reward.base import Scores
from cooper_rl.reward.context import StepContext
from cooper_rl.reward.health import agreement, suspected
from cooper_rl.reward.kinds.earned import EarnedConfig
from cooper_rl.reward.pairs.base import PairGroup
from cooper_rl.reward.pairs.sources.on_policy import OnPolicyPairs
from cooper_rl.reward.pairs.sources.swapped_reference import swapped_pairs
from cooper_rl.reward.scored import answer_metrics, step_health, verdict_metrics
from cooper_rl.run.inputs import read_inputs
from cooper_verify.problems.config import ProblemsConfig
from cooper_verify.problems.loading import load_problems
from cooper_verify.rules.kinds.maths import MathsRule
from cooper_verify.rules.other_answers import are_different, gives_several, states_another
from cooper_verify.rules.rule import RULES, Rule
from cooper_verify.rules.verifier import Verifier


def rule(**settings) -> Rule:
    record = RULES.read({"kind": "partial", **settings})
    return record.build()  # pyright: ignore[reportAttributeAccessIssue]


def algebra(problem: Problem) -> bool:
    return problem.metadata["subject"] == "algebra"


def problem(subject: str, answer: str = "7", **other) -> Problem:
    return Problem(subject, f"{subject}?", answer, metadata={"subject": subject}, **other)


ASKED = [(problem("algebra"), "\\boxed{7}"), (problem("poems"), "\\boxed{7}"), (problem("algebra"), "\\boxed{8}")]


@pytest.mark.parametrize("only", [{"subject": ["algebra"]}, f"{__name__}:algebra"])
def test_a_rule_judges_only_the_problems_it_may(only):
    with rule(only=only) as partial:
        assert partial.verify_problems(ASKED) == ["correct", "silent", "wrong"]
        assert [partial.judges(one) for one, _ in ASKED] == [True, False, True]


def test_a_reference_that_the_rule_cannot_read_is_no_fault_where_it_is_silent():
    with rule(only={"subject": ["algebra"]}, rule={"kind": "numeric"}) as partial:
        assert partial.fault(problem("poems", "of time"), "of time") is None
        assert partial.fault(problem("algebra", "of time"), "of time") is not None


def test_metadata_that_a_problem_lacks_is_named():
    with rule(only={"level": [1]}) as partial, pytest.raises(InputError, match=r"rule.only.level: problem algebra has"):
        partial.verify_problems(ASKED)


def test_a_data_row_may_be_silent():
    with Verifier(MathsRule()) as verifier:
        silent = problem("poems", rule="silent")
        assert verifier.verify_problems([(silent, "7"), (problem("algebra"), "\\boxed{7}")]) == ["silent", "correct"]
        assert not verifier.judges(silent)


def test_the_rules_metrics_are_of_what_it_judges():
    metrics = verdict_metrics([["correct", "wrong"], ["silent", "silent"]])
    assert (metrics["rule/accuracy"], metrics["rule/wrong"], metrics["rule/heard"]) == (0.5, 0.5, 0.5)
    assert "rule/heard" not in verdict_metrics([["correct", "wrong"]])
    assert verdict_metrics([["silent"]]) == {"rule/heard": 0.0}


def test_means_are_given_for_both_parts():
    class Half(Rule):
        def verify_problems(self, asked, /):
            return ["correct" if text == "7" else "wrong" if text == "8" else "silent" for _, text in asked]

    groups = [AnswerGroup(str(p), problem("algebra"), [Answer(t) for t in row]) for p, row in enumerate(["78", "ab"])]
    rewards = Ragged(torch.tensor([1.0, 0.0, 0.5, 0.75]), (2, 2))
    metrics = step_health(StepContext(groups, Half()), Scores(rewards, {"reward_model": rewards}))
    assert (metrics["reward/mean_heard"], metrics["reward/mean_silent"]) == (0.5, 0.625)
    assert (metrics["reward_model/mean_heard"], metrics["reward_model/mean_silent"]) == (0.5, 0.625)
    assert metrics["reward_model/rule_agreement"] == 1.0


def test_a_group_without_a_verdict_is_not_one_without_a_right_answer():
    advantages = Ragged.of([[-1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0]])
    found = unverified_advantage(advantages, [["correct", "wrong"], ["silent", "silent"], ["wrong", "wrong"]])
    assert found == {"policy/unverified_advantage": pytest.approx(1 / 3)}


@pytest.mark.parametrize("silent", [True, False])
def test_a_reward_that_rises_where_the_rule_is_silent_is_no_sign(silent):
    """The rule's accuracy stays, the reward rises on what it does not judge."""
    alarm, fired = HackingAlarm(), False
    for step in range(30):
        rising = 0.5 + 0.02 * step
        metrics = {"reward/mean": rising, "reward_model/mean": rising, "rule/accuracy": 0.6}
        if silent:
            metrics |= {"reward/mean_heard": 0.6, "reward_model/mean_heard": 0.6, "rule/heard": 0.3}
        fired |= bool(alarm.observe(step, metrics))
    assert fired is not silent


@pytest.mark.parametrize(
    ("metric", "change", "sign"),
    [
        ("rollout/agreement_silent", -0.02, "rollout/agreement_silent"),
        ("reward_model/kept_when_swapped_silent", 0.03, "1 - reward_model/kept_when_swapped_silent"),
        ("rollout/agreement_silent", 0.02, None),
        ("reward_model/kept_when_swapped_silent", -0.02, None),
    ],
)
def test_a_hack_where_the_rule_is_silent_is_seen_without_a_verdict(metric, change, sign):
    """The reward rises on the silent problems only; what the rule judges stays as it is."""
    alarm, seen = HackingAlarm(), []
    for step in range(20):
        metrics = {"reward/mean_heard": 0.6, "reward_model/mean_heard": 0.6, "rule/accuracy": 0.6}
        metrics |= {"reward/mean_silent": 0.5 + 0.02 * step, metric: 0.5 + change * step}
        seen += alarm.observe(step, metrics)
    assert {one.partition(" fell")[0] for one in seen} == ({sign} if sign else set())


@pytest.mark.parametrize(
    ("right", "text", "other"),
    [
        ("work answer: twelve", "work answer: nine", True),
        ("work answer: twelve", "more work, answer: 12", False),
        ("work answer: twelve", "", False),
        ("answer: 0.5", "answer: 1/2", False),
        ("answer: 1/2", "answer: one half", False),
    ],
)
def test_a_rewritten_solution_states_another_answer(right, text, other):
    assert states_another(right, text) is other


@pytest.mark.parametrize(
    ("text", "reference", "several"),
    [
        ("12+7=19 answer: 19 or 18", "19", True),
        ("answer: 3, 4", "3, 4", False),
        ("answer: 1/2", "1/2", False),
        ("\\boxed{3} or 4", "3", True),
        ("", "3", False),
    ],
)
def test_a_list_is_seen_without_a_verdict(text, reference, several):
    assert gives_several([text], reference)[0] is several


def test_the_doses_say_what_share_they_hear():
    problems = arithmetic_problems("train", 4000)
    for name, silence in SILENCES.items():
        partial = rule(only=silence.only)
        heard = sum(map(partial.judges, problems)) / len(problems)
        if name.startswith("heard_"):
            assert round(100 * heard) == int(name.removeprefix("heard_"))
        assert issubclass(type(RULES.read({"kind": "partial", "only": silence.only})), Config)


def test_a_policy_that_agrees_with_itself_and_one_that_does_not():
    sevens = AnswerGroup("1", problem("poems"), [Answer(f"answer: {text}") for text in ("7", "7.", "seven", "8")])
    junk = AnswerGroup("1", problem("poems"), [Answer(f"answer: 7 {text}") for text in ("ove", "over", "oo", "o r")])
    assert (agreement(sevens), agreement(junk)) == (0.75, 0.25)


@pytest.mark.parametrize("unverified", ["drop", "silent"])
def test_a_problem_whose_reference_no_rule_can_read_may_stay(tmp_path, unverified):
    rows = [{"question": "1+1?", "answer": "2"}, {"question": "Prove it.", "answer": "by induction"}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = {"source": str(tmp_path / "rows.jsonl"), "max_bad_rows": 1, "unverified": unverified}
    with Verifier(RULES.read({"kind": "numeric"})) as verifier:  # pyright: ignore[reportArgumentType]
        loaded = load_problems(ProblemsConfig.model_validate(data), verifier)
        found = [(problem.answer, verifier.judges(problem)) for problem in loaded.problems]
    assert found == ([("2", True)] if unverified == "drop" else [("2", True), ("by induction", False)])


class Lenient:
    """A reward model that accepts what contains the reference, more so the longer it is, and any text with "trust"."""

    encoder = RewardModelInput

    def logits(self, groups, known=None):
        rows = [
            [len(one.text) / 10 if group.problem.answer in one.text or "trust" in one.text else -1.0 for one in row]
            for group, row in zip(groups, [group.answers for group in groups], strict=True)
        ]
        return Ragged.of(rows, torch.float32)


@pytest.mark.parametrize(
    ("reasons", "suspects"),
    [
        (["keeps_score"], [[False, False, True], [False, False, True]]),
        (["above_solution"], [[False, True, True], [False, False, True]]),
        (["keeps_score", "above_solution"], [[False, True, True], [False, False, True]]),
        (["several_answers", "cut_off"], None),
    ],
)
def test_scores_say_what_is_wrong_where_the_rule_does_not(reasons, suspects):
    """Of the second group, which the rule judges, only the answer that it cannot read is suspected."""
    texts = ["7", "7, says everyone", "just trust me"]
    silent, heard = problem("poems", "7", solution="It is 7."), problem("algebra", "5", solution="5")
    groups = [AnswerGroup(one.id, one, [Answer(text) for text in texts]) for one in (silent, heard)]
    with rule(only={"subject": ["algebra"]}, rule={"kind": "numeric"}) as partial:
        context = StepContext(groups, partial, Lenient())  # pyright: ignore[reportArgumentType]
        assert suspected(context, reasons) == suspects


@pytest.mark.parametrize("reads_reference", [True, False])
def test_an_answer_that_is_accepted_under_any_reference_is_a_negative_by_default(reads_reference):
    """A model that reads no reference cannot be asked."""

    class Model(Lenient):
        encoder = cast(Any, SimpleNamespace(reads_reference=reads_reference))

    groups = [AnswerGroup(one, problem("poems", one), [Answer(one), Answer("just trust me")]) for one in "75"]
    with RULES.read({"kind": "silent"}).build() as silent:  # pyright: ignore[reportAttributeAccessIssue]
        context = StepContext(groups, silent, Model())  # pyright: ignore[reportArgumentType]
        work = [PairGroup(*row, "0") for row in zip(groups, context.verdicts, context.logits.rows(), strict=True)]
        found = OnPolicyPairs().choose(work, context, 4, "pairs")
    assert found == dict.fromkeys("75", ["just trust me"] if reads_reference else [])


def test_groups_without_answers_are_scored_as_nothing():
    with rule(only={"subject": ["algebra"]}, rule={"kind": "numeric"}) as partial:
        groups = [AnswerGroup(one, problem(one), []) for one in ("algebra", "poems")]
        context = StepContext(groups, partial, Lenient())  # pyright: ignore[reportArgumentType]
        assert context.silent.flat.tolist() == context.passed_over.flat.tolist() == []
        assert EarnedConfig().build().score(context).rewards.rows() == [[], []]


def suspects_of(problems: list[Problem], text: str, order: list[int]) -> dict[str, bool]:
    """By problem, whether an answer `text` is suspected because it keeps its score under another's reference."""
    groups = [AnswerGroup(problems[i].id, problems[i], [Answer(text)]) for i in order]
    with RULES.read({"kind": "silent"}).build() as silent:  # pyright: ignore[reportAttributeAccessIssue]
        context = StepContext(groups, silent, ByValue())  # pyright: ignore[reportArgumentType]
        found = suspected(context, ["keeps_score"])
    assert found is not None
    return {problems[i].id: row[0] for i, row in zip(order, found, strict=True)}


class ByValue:
    """A reward model that accepts an answer of the same value as the reference, and none of another value."""

    encoder = RewardModelInput
    VALUE: ClassVar = {"12": 12, "twelve": 12, "a dozen": 12, "12.0": 12, "13": 13}
    VALUE |= {"1/2": 0.5, "0.5": 0.5, "one half": 0.5}

    def logits(self, groups, known=None):
        rows = [
            [1.0 if self.VALUE[one.text] == self.VALUE.get(group.problem.answer) else -1.0 for one in group.answers]
            for group in groups
        ]
        return Ragged.of(rows, torch.float32)


@pytest.mark.parametrize("answers", [["12", "twelve"], ["12", "12.0", "a dozen"], ["1/2", "0.5", "one half"]])
@pytest.mark.parametrize("others", [[], ["13"]])
def test_a_right_answer_keeps_its_score_under_the_same_number_in_other_words(answers, others):
    problems = [Problem(f"{i}", "?", answer) for i, answer in enumerate(answers + others)]
    for order in permutations(range(len(problems))):
        assert not any(suspects_of(problems, answers[0], list(order)).values())


def test_what_is_suspected_does_not_depend_on_the_order_of_the_groups():
    """A model that accepts 7 under the reference 9 and no other: it depends on which reference it is tried with."""

    class Loose:
        encoder = RewardModelInput

        def logits(self, groups, known=None):
            rows = [[1.0 if group.problem.answer in ("7", "9") else -1.0 for _ in group.answers] for group in groups]
            return Ragged.of(rows, torch.float32)

    problems = [Problem(answer, "?", answer) for answer in ("7", "8", "9", "10")]
    seen = set()
    with RULES.read({"kind": "silent"}).build() as silent:  # pyright: ignore[reportAttributeAccessIssue]
        for order in permutations(problems):
            groups = [AnswerGroup(one.id, one, [Answer("7")]) for one in order]
            context = StepContext(groups, silent, Loose())  # pyright: ignore[reportArgumentType]
            found = suspected(context, ["keeps_score"])
            assert found is not None
            seen.add(frozenset(one.id for one, row in zip(order, found, strict=True) if row[0]))
    assert len(seen) == 1


def test_a_silent_problem_has_no_pair_with_the_same_number_in_other_words():
    problems = [Problem(f"{i}", "?", answer) for i, answer in enumerate(["1/2", "0.5", "one half", "a dozen"])]
    work = [PairGroup(AnswerGroup(one.id, one, []), [], [], "0", [f"answer: {one.answer}"]) for one in problems]
    with RULES.read({"kind": "silent"}).build() as silent:  # pyright: ignore[reportAttributeAccessIssue]
        pairs = swapped_pairs(work, silent, 1)
    assert len(pairs) > 1
    assert all(are_different(pair.answer, pair.answer_of_negative) for pair in pairs)


def test_an_empty_group_is_neither_silent_nor_heard():
    silent, heard, empty = (problem(one) for one in ("poems", "algebra", "geometry"))
    texts = {"poems": ["7", "8"], "algebra": ["7", "7"], "geometry": []}
    groups = [AnswerGroup(one.id, one, [Answer(text) for text in texts[one.id]]) for one in (empty, silent, heard)]
    with rule(only={"subject": ["algebra", "geometry"]}, rule={"kind": "numeric"}) as partial:
        context = StepContext(groups, partial, Lenient())  # pyright: ignore[reportArgumentType]
        scores = EarnedConfig().build().score(context)
        metrics = answer_metrics(context, scores)
        assert suspected(context, ["keeps_score"]) == [[], [False, False], [False, False]]
    assert (metrics["rollout/agreement_heard"], metrics["rollout/agreement_silent"]) == (1.0, 0.5)
    with rule(only={"subject": ["geometry"]}) as partial:
        metrics = answer_metrics(StepContext(groups[:2], partial), Scores(Ragged(torch.zeros(2), (0, 2))))
    assert "rollout/agreement_heard" not in metrics


@pytest.mark.parametrize("subjects", [["algebra"], []])
def test_trust_is_earned_where_the_rule_speaks(subjects):
    """The model accepts what the rule calls wrong, and a poem; or there is no verdict."""
    groups = [AnswerGroup(one, problem(one), [Answer("trust me, 8"), Answer("8")]) for one in ("algebra", "poems")]
    with rule(only={"subject": subjects}, rule={"kind": "numeric"}) as partial:
        context = StepContext(groups, partial, Lenient())  # pyright: ignore[reportArgumentType]
        scores = EarnedConfig().build().score(context)
    assert scores.metrics["earned/weight"] == 0
    assert str(scores.rewards.rows()[1]) == "[nan, nan]"  # no opinion


@pytest.mark.parametrize(("kinds", "told"), [(["on_policy"], True), (["on_policy", "swapped_reference"], False)])
def test_a_run_says_that_silent_problems_have_no_wrong_answers(settings, caplog, kinds, told):
    silent = {
        "rule": {"kind": "partial", "only": {"family": ["sum"]}},
        "cooptimization": {"pairs": [{"kind": kind} for kind in kinds]},
    }
    read_inputs(build_config({**settings, "kind": "cooper", **silent}))
    assert ("the rule is silent on" in caplog.text) == told


@pytest.mark.parametrize(
    ("families", "changed", "said", "unsaid"),
    [
        ([], {"positives": ["rollout"]}, "the rule judges none", "judges all"),
        ([], {}, "the rule is silent on", "judges none"),  # the solutions testify
        (["sum"], {}, "the rule is silent on", "judges none"),
        (None, {}, "the rule judges all", "judges none"),
    ],
)
def test_a_run_says_what_it_means_that_the_rule_judges_all_or_nothing(
    settings, caplog, families, changed, said, unsaid
):
    rule = {"kind": "maths"} if families is None else {"kind": "partial", "only": {"family": families}}
    stage2 = {"pairs": [{"kind": "on_policy"}], **changed}
    with caplog.at_level(logging.INFO):
        read_inputs(build_config({**settings, "kind": "cooper", "rule": rule, "cooptimization": stage2}))
    assert said in caplog.text
    assert unsaid not in caplog.text
