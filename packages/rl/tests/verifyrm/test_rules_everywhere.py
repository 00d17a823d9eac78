"""Every kind of rule works wherever `maths` does: files of answers, labelling, benches, command-line options."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cooper_base.cli.main import commands
from cooper_base.data.problem import Problem
from cooper_rl import InputError
from cooper_rl.reward.pairs.assistant import Attempts, RewriteRequest
from cooper_verify.cli.verify import rule_from
from cooper_verify.clients.chat import ChatReply
from cooper_verify.grader import Asked
from cooper_verify.rules.kinds.choice import ChoiceRule
from cooper_verify.rules.kinds.exact import ExactRule
from cooper_verify.rules.kinds.maths import MathsRule, rule_settings
from cooper_verify.rules.kinds.numeric import NumericRule
from cooper_verify.rules.verifier import Verifier
from cooper_verify.verdict_file import verify_file

QUESTION = "Which is red? A) apple B) pear"


def written(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def verdicts_in(path: Path) -> list[str]:
    return [json.loads(line)["verdict"] for line in path.read_text().splitlines()]


def test_a_file_is_verified_by_the_rule_with_question_and_fields(tmp_path: Path):
    asked = {"answer": "A", "completion": "The answer is apple."}
    rows = [{**asked, "question": QUESTION}, {**asked, "options": ["pear", "apple"]}, asked]
    data = written(tmp_path / "rows.jsonl", rows)
    verify_file(data, tmp_path / "choice.jsonl", rule=ChoiceRule())
    assert verdicts_in(tmp_path / "choice.jsonl") == ["correct", "wrong", "unparsed"]
    verify_file(data, tmp_path / "maths.jsonl")
    assert verdicts_in(tmp_path / "maths.jsonl") == ["correct", "unparsed", "unparsed"]  # it reads no field


def test_cooper_verify_takes_a_rule_with_settings(tmp_path: Path):
    data = written(tmp_path / "rows.jsonl", [{"answer": "9.81", "completion": r"\boxed{9.8}", "gold_correct": 1}])
    for rule, verdict in (("{kind: numeric, relative: 0.01}", "correct"), ("numeric", "wrong"), ("exact", "wrong")):
        out = tmp_path / f"{len(rule)}.jsonl"
        result = CliRunner().invoke(commands, ["verify", str(data), "--out", str(out), "--rule", rule])
        assert result.exit_code == 0, result.output
        assert verdicts_in(out) == [verdict]


def test_a_bench_measures_the_rule_it_is_given():
    row = Asked.about(QUESTION, "A", r"\boxed{apple}")
    for rule, accepted in ((ChoiceRule(), True), (ExactRule(), False)):
        with Verifier(rule) as grader:
            assert [opinion.accepts for opinion in grader.grade([row])] == [accepted]
    assert Verifier(ChoiceRule()).settings() == {"kind": "rule", "rule": {"kind": "choice"}}
    assert Verifier(MathsRule(workers=4)).settings() == {"kind": "rule"}  # workers decide no verdict
    named = Verifier(MathsRule(), {"options": ChoiceRule()}).settings()
    assert named == {"kind": "rule", "rules": {"options": {"rule": {"kind": "choice"}}}}


def test_a_journal_tells_rules_apart_by_what_decides_their_verdicts():
    assert rule_settings(MathsRule(workers=3, timeout_s=9)) == {}
    assert rule_settings(MathsRule(expressions=True)) == {"rule": {"kind": "maths", "expressions": True}}
    assert rule_settings(NumericRule(relative=0.1)) != rule_settings(NumericRule())


def test_the_option_reads_a_name_or_settings():
    assert rule_from("maths", workers=3, timeout_s=2) == MathsRule(workers=3, timeout_s=2)
    assert rule_from("{expressions: true}", workers=3) == MathsRule(workers=3, expressions=True)
    assert rule_from("{kind: numeric, absolute: 1}") == NumericRule(absolute=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("choise", "--rule: rule: no rule of kind 'choise'; kinds: .*choice"),
        ("{kind: numeric, relativ: 1}", "unknown key 'rule.relativ'; did you mean 'relative'"),
        ("{kind: [", "--rule"),
        ("no_such_module_of_rules:mine", "No module named 'no_such_module_of_rules'"),
    ],
)
def test_a_mistaken_option_is_reported(text: str, message: str):
    with pytest.raises(InputError, match=message):
        rule_from(text)


def test_the_assistants_rewritings_are_checked_by_the_problems_rule():
    problems = [Problem("c", QUESTION, "A", rule="choice"), Problem("m", "7 + 1 = ?", "8")]
    requests = [RewriteRequest(problem, "The answer is right.", 0) for problem in problems]
    with Verifier(MathsRule()) as verifier:
        attempts = Attempts(requests, verifier, tries=2)
        attempts.take([ChatReply("The answer is apple."), ChatReply("The answer is 9.")])
        attempts.take([ChatReply("The answer is pear.")])
        rewrites = attempts.result()
    assert rewrites.texts == ["The answer is pear.", "The answer is 9."]
    assert rewrites.counts == {"attempts": 3, "rejected_correct": 1, "accepted": 2}
