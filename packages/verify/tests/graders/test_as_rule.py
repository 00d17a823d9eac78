"""A grader in the place of a rule: its verdicts count, a failed server is silence, and a score alone is refused."""

import pytest

from cooper_base.data.problem import Problem
from cooper_base.errors import InputError
from cooper_verify.grader import NO_ANSWER, UNREADABLE, Asked, Grader, Opinion
from cooper_verify.graders.as_rule import GraderAsRule, rule_of
from cooper_verify.rules.kinds.exact import ExactRule
from cooper_verify.rules.rule import RULES, FunctionRule, GraderRule, OneRule, RuleConfig
from cooper_verify.rules.verifier import Verifier

PROBLEM = Problem("p", "What is 3 + 4?", "7")
SAID = {
    "right": Opinion("correct", 1.0),
    "wrong": Opinion("wrong", 0.0),
    "garbled": Opinion("unparsed", 0.0, UNREADABLE),
    "unheard": Opinion("unparsed", None, NO_ANSWER),
    "left alone": Opinion("silent", None),
    "scored": Opinion("silent", 0.3),
}


class Says(Grader):
    """Says of each text what the table says."""

    def grade(self, answers, /):
        return [SAID[text] for _, text in answers]

    def check(self, problems):
        if any(not problem.answer for problem in problems):
            raise InputError("says: needs an answer")


says = Says()
OWN = f"{__name__}:Says"


def of_a_rule(problem, completion_text):
    return "correct"


def of_trl(completions, **kwargs):
    return [1.0] * len(completions)


def read(rule) -> RuleConfig:
    return OneRule.model_validate({"rule": rule}).rule


@pytest.mark.parametrize("rule", [OWN, {"kind": OWN}, f"{__name__}:says"])
def test_a_graders_verdicts_are_the_rules(rule):
    verifier = Verifier(read(rule))
    texts = ["right", "wrong", "garbled", "unheard", "left alone"]
    verdicts = verifier.verify_problems([(PROBLEM, text) for text in texts])
    assert verdicts == ["correct", "wrong", "unparsed", "silent", "silent"], "nothing is said where a server failed"
    assert [opinion.score for opinion in verifier.grade([Asked(PROBLEM, text) for text in texts])][3:] == [None, None]


def test_a_text_is_a_kind_of_rule_or_a_grader():
    assert read("exact") == ExactRule()
    assert isinstance(read(f"{__name__}:of_a_rule"), FunctionRule), "a function of a rule stays one"
    exact = read("rule:exact")
    assert isinstance(exact, GraderRule)
    assert rule_of("rule:exact").verify_problems([(PROBLEM, "7"), (PROBLEM, "8")]) == ["correct", "wrong"]
    assert RULES.dump(exact) == {"kind": "rule:exact"}
    assert RULES.read(RULES.dump(exact)) == exact


def test_a_score_without_a_verdict_is_refused_when_the_rule_is_built_or_first_seen(tmp_path):
    path = tmp_path / "scores.yaml"
    path.write_text(f"kind: function\nrewards: [{{kind: function, function: '{__name__}:of_a_rule'}}]\n")
    with pytest.raises(InputError, match=r"scores.yaml: gives scores on a scale that nobody knows; that is no verdict"):
        read(str(path)).build()
    with pytest.raises(InputError, match=r"Says: gives problem p the score 0.3; that is no verdict"):
        rule_of(OWN).verify_problems([(PROBLEM, "scored")])


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("nonsense", "no rule of kind 'nonsense'; kinds: .*or a grader such as judge.yaml"),
        ({"kind": "missing.py:Own"}, "missing.py: no such file"),
        ({"kind": OWN, "weight": 2}, "Extra inputs are not permitted"),
    ],
)
def test_what_is_no_rule_names_the_remedy(rule, words):
    with pytest.raises(ValueError, match=words):
        read(rule).build()


def test_what_is_missing_is_said_before_any_verdict(tmp_path):
    with pytest.raises(InputError, match=r"missing\.yaml: no such configuration file"):
        read("missing.yaml").build()
    with pytest.raises(InputError, match="says: needs an answer"):
        Verifier(read(OWN)).check([Problem("q", "Write a poem.", "")])
    (tmp_path / "judge.yaml").write_text(
        "judge: {kind: chat, base_url: 'http://127.0.0.1:9/v1', model: m, max_retries: 0}\n"
    )
    with pytest.raises(InputError, match="check base_url, model and api_key_env"):
        Verifier(read(str(tmp_path / "judge.yaml"))).check([PROBLEM])


def test_the_rule_of_a_grader_keeps_its_settings_and_closes_it():
    rule = GraderAsRule(says)
    assert rule.settings() == says.settings()
    assert list(rule.settings()) == ["kind", "files"], "the state of the class's file decides its opinions"
