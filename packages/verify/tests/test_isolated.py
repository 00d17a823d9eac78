"""What raises on one text costs that text, whoever grades it: a rule, a function, a class, a judge, a drop-in."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from cooper_base.config.base import Config
from cooper_base.data.problem import Problem
from cooper_base.data.text import boxed
from cooper_base.errors import InputError
from cooper_verify import compat
from cooper_verify.faults import FAULT, STRICT, faults_so_far, faults_written_to, isolated
from cooper_verify.grader import Asked, Grader, Opinion, opinions_of, opinions_on
from cooper_verify.graders.judge import JUDGES, Judge, JudgeGrader
from cooper_verify.graders.judgement import Judgement
from cooper_verify.graders.rubric import RubricGrader
from cooper_verify.graders.written import open_grader
from cooper_verify.problems.config import ProblemsConfig
from cooper_verify.problems.loading import load_problems
from cooper_verify.rules.kinds.choice import ChoiceRule
from cooper_verify.rules.kinds.exact import ExactRule
from cooper_verify.rules.kinds.maths import MathsRule
from cooper_verify.rules.kinds.numeric import NumericRule
from cooper_verify.rules.other_answers import are_different, gives_several, stated_answers, states_another
from cooper_verify.rules.rule import RULES, FunctionRule, RuleConfig
from cooper_verify.rules.verifier import Verifier
from cooper_verify.verdict_file import faults_path, grade_file, verify_file
from planted import RAISES, reading_raises
from slow_members import first_fast

BOOM, N, K = "boom", 7, 4
"""What a grader raises on: the answer in place K of N."""


@pytest.fixture
def raising(tmp_path, monkeypatch) -> Iterator[Path]:
    """The process that reads texts raises on `RAISES`. Gives a file to which its faults are written."""
    with reading_raises(tmp_path, monkeypatch), faults_written_to(tmp_path / "faults.jsonl"):
        yield tmp_path / "faults.jsonl"


def faults_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


OF_RULES: dict[str, tuple[RuleConfig, str, str]] = {
    "maths": (MathsRule(), "12", "13"),
    "expressions": (MathsRule(expressions=True), "12", "13"),
    "exact": (ExactRule(), "Tokyo", "Kyoto"),
    "choice": (ChoiceRule(), "B", "C"),
    "numeric": (NumericRule(), "2.5", "2.7"),
}


@pytest.mark.parametrize("kind", first_fast(OF_RULES, 2))
def test_a_rule_that_raises_costs_one_verdict_and_writes_the_texts_down(raising, kind):
    settings, right, wrong = OF_RULES[kind]
    problem, before = Problem("p", "Which?", right), faults_so_far()
    texts = [boxed(right), RAISES, boxed(wrong), boxed(right)]
    with Verifier(settings) as rule:
        said = rule.verify_problems([(problem, text) for text in texts])
        assert said == ["correct", "unparsed", "wrong", "correct"]
        assert rule.metrics()["rule/faults"] == faults_so_far() - before == 1
        assert rule.metrics()["rule/faults"] == 0, "since the last call"
    [fault] = faults_in(raising)
    assert fault["error"] == "ZeroDivisionError: planted"
    assert RAISES in fault["texts"]
    assert "in raising" in fault["traceback"]


def test_strictly_a_fault_is_raised(raising, monkeypatch):
    monkeypatch.setenv(STRICT, "1")
    with MathsRule().build() as rule, pytest.raises(RuntimeError, match="ZeroDivisionError: planted"):
        rule.verify("12", RAISES)


def test_what_else_is_read_of_a_text_has_its_usual_reply(raising):
    assert stated_answers([boxed("12"), RAISES]) == [("12",), ()]
    assert gives_several([RAISES, "The answer is 1 or 2."], "1") == [False, True]
    assert not states_another(boxed("12"), RAISES)
    assert not are_different("zz 12", "13")
    assert len(faults_in(raising)) == 4


def test_a_reference_that_raises_is_refused_before_the_run_by_its_row(raising, tmp_path):
    rows = [{"question": f"{number}?", "answer": answer} for number, answer in enumerate(["12", "zz 12", "13"])]
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for settings in OF_RULES["maths"][0], OF_RULES["exact"][0]:
        with settings.build() as rule:
            with pytest.raises(InputError, match=r"rows\.jsonl:2: answer 'zz 12' does not verify"):
                load_problems(ProblemsConfig(source=str(source), max_bad_rows=0), rule)
            loaded = load_problems(ProblemsConfig(source=str(source), max_bad_rows=1), rule)
        assert [problem.answer for problem in loaded.problems] == ["12", "13"]


READING_RAISES = """
from cooper_verify.rules.verdicts import fast_path

read = fast_path.reference_readings


def raising(answer):
    return read(answer) if answer != "-12" else 1 / 0


fast_path.reference_readings = raising
"""
"""Raises on a reference that is `correct` as the same text."""


def test_a_reference_that_only_verifies_as_the_same_text_is_refused_by_its_row(tmp_path, monkeypatch):
    rows = [{"question": f"{number}?", "answer": answer} for number, answer in enumerate(["12", "-12", "some words"])]
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with reading_raises(tmp_path, monkeypatch, READING_RAISES), MathsRule().build() as rule:
        before = faults_so_far()
        with pytest.raises(InputError, match=r"rows\.jsonl:2: answer '-12' raises an exception when the rule reads it"):
            load_problems(ProblemsConfig(source=str(source), max_bad_rows=0), rule)
        assert faults_so_far() - before == 1
        loaded = load_problems(ProblemsConfig(source=str(source), max_bad_rows=1), rule)
    assert [problem.answer for problem in loaded.problems] == ["12", "some words"]


def test_a_file_keeps_all_its_other_verdicts(raising, tmp_path):
    rows = [{"answer": "12", "completion": RAISES if number == 50 else boxed("12")} for number in range(120)]
    data, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    data.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    counts = verify_file(data, out)
    assert (dict(counts.verdicts), counts.faults) == ({"correct": 119, "unparsed": 1}, 1)
    assert json.loads(out.read_text().splitlines()[50])["verdict"] == "unparsed"
    assert len(faults_in(faults_path(out))) == 1


def test_drop_ins_lose_one_answer(raising):
    texts = [RAISES if number == K else boxed("12") for number in range(N)]
    paid = [0.0 if number == K else 1.0 for number in range(N)]
    assert compat.accuracy_reward(texts, solution=["12"] * N) == paid
    assert [compat.compute_score(text, "12") for text in texts] == paid
    assert [asyncio.run(compat.correct_answer(text, "12")) for text in texts] == paid
    assert [compat.verify(compat.parse("12"), compat.parse(text)) for text in texts] == [not_k == 1 for not_k in paid]


# Graders of users: each raises on the answer `boom`.


def of_cooper(problem, completion):
    return 1 / (completion.text != BOOM)


def of_trl(completions, **kwargs):
    return [1 / (text != BOOM) for text in completions]


def of_verl(data_source, solution_str, ground_truth, extra_info=None):
    return 1 / (solution_str != BOOM)


def of_texts(response, reference):
    return 1 / (response != BOOM)


async def in_a_loop(problem, completion):
    return 1 / (completion.text != BOOM)


class Whole(Grader):
    """Compares the answers to a problem, as far as anybody knows."""

    def grade(self, answers, /):
        return [Opinion("correct", 1 / (text != BOOM)) for _, text in answers]


class Single(Whole):
    compares_answers = False


class Moody(Judge):
    def judge(self, answers: Sequence[Asked], /) -> list[Judgement]:
        return [Judgement("yes", 1 / (text != BOOM)) for _, text in answers]


class MoodyConfig(Config):
    kind: str = ""
    read: Literal["first_token"] = "first_token"

    def build(self) -> Judge:
        return Moody()


class Group:
    """A rubric that scores the answers to a problem together."""

    funcs = ()

    async def score_group(self, states):
        for state in states:
            state["reward"] = 1 / (state["completion"][0]["content"] != BOOM)


def raises_on_all(problem, completion):
    raise ZeroDivisionError("on all")


def graders() -> dict[str, Grader]:
    functions = {name: open_grader(f"{__name__}:{name}") for name in ("of_cooper", "of_verl", "of_texts", "in_a_loop")}
    judge: Any = JUDGES.read({"kind": f"{__name__}:MoodyConfig"})
    return {
        **functions,
        "lists": open_grader(f"{__name__}:of_trl"),
        "class": Single(),
        "class that compares": Whole(),
        "judge": JudgeGrader(judge),
        "rubric": RubricGrader("rubric", Group()),
    }


def asked() -> list[Asked]:
    """One answer to each of N problems."""
    return [Asked(Problem(f"p{i}", f"{i}?", "7"), BOOM if i == K else f"seven {i}") for i in range(N)]


@pytest.mark.parametrize("name", graders())
def test_a_grader_of_the_users_that_raises_costs_a_file_exactly_that_row(name, tmp_path):
    grader = graders()[name]
    [opinions] = opinions_of(grader, [asked()], None)
    assert [opinion.why for opinion in opinions] == [FAULT if place == K else None for place in range(N)]
    assert [opinion.score for opinion in opinions] == [None if place == K else 1.0 for place in range(N)]
    with pytest.raises(ZeroDivisionError):
        opinions_on(grader, asked())  # where it is paid, its author wants to see it
    data, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    rows = [{"question": problem.question, "answer": "7", "completion": text} for problem, text in asked()]
    data.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    counts = grade_file(data, out, grader)
    assert (counts.why[FAULT], counts.faults) == (1, 1)
    [fault] = faults_in(faults_path(out))
    assert BOOM in fault["texts"]
    assert fault["error"].startswith("ZeroDivisionError")


def test_where_answers_are_compared_the_whole_problem_has_no_opinion():
    problems = [Problem(f"p{i}", f"{i}?", "7") for i in range(3)]
    answers = [Asked(problem, text) for problem in problems for text in ("a", BOOM if problem.id == "p1" else "b")]
    [opinions] = opinions_of(Whole(), [answers], None)
    assert [opinion.why for opinion in opinions] == [None, None, FAULT, FAULT, None, None]


def test_what_raises_on_every_answer_is_broken_and_says_so():
    with pytest.raises(ZeroDivisionError, match="on all"):
        list(opinions_of(open_grader(f"{__name__}:raises_on_all"), [asked()], None))


def of_a_rule(problem, completion_text):
    return "correct" if 1 / (completion_text != BOOM) else "wrong"


def test_a_rule_of_the_users_that_raises_ends_what_it_is_asked_and_costs_a_file_one_row(tmp_path):
    settings = FunctionRule(kind=f"{__name__}:of_a_rule")
    with Verifier(settings) as rule, pytest.raises(ZeroDivisionError):
        rule.verify_problems(asked())
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(f"{json.dumps({'answer': '7', 'completion': text})}\n" for _, text in asked()))
    counts = verify_file(data, tmp_path / "out.jsonl", rule=settings)
    assert dict(counts.verdicts) == {"correct": N - 1, "unparsed": 1}


def test_opinions_with_a_fault_are_asked_for_again(tmp_path):
    class Mended(Single):
        broken = True

        def grade(self, answers, /):
            return super().grade(answers) if self.broken else [Opinion("correct", 1.0) for _ in answers]

    grader, journal = Mended(), tmp_path / "journal.jsonl"
    for broken, why in ((True, FAULT), (False, None)):
        grader.broken = broken
        [opinions] = opinions_of(grader, [asked()], journal)
        assert opinions[K].why == why


@pytest.mark.parametrize("bad", [(), (0,), (9,), (3, 4), (0, 5, 9)])
def test_halves_are_asked_until_the_item_stands_alone(bad, monkeypatch):
    monkeypatch.delenv(STRICT)
    calls = []

    def ask(items):
        calls.append(len(items))
        return [10 // (item not in bad) for item in items]

    replies = isolated("test", ask, range(10), lambda item: -item - 1, lambda item: [item], users_too=True)
    assert replies == [-item - 1 if item in bad else 10 for item in range(10)]
    assert len(calls) <= 1 + 8 * len(bad)


def test_bad_input_is_no_fault():
    def refuse(items):
        raise InputError("rows.jsonl:3: no")

    with pytest.raises(InputError, match=r"rows\.jsonl:3"):
        isolated("test", refuse, [1, 2], lambda _: 0, lambda item: [item], users_too=True)


def test_every_kind_of_rule_is_walked():
    own = {kind for kind, record in RULES.records.items() if record.__module__.startswith("cooper_verify.")}
    assert own - {"partial", "silent", "outside"} <= {*OF_RULES}, "add the new kind to OF_RULES"


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        (r"00\frac{400}{00} \cdot \gcd(0, 0)/x \cdot \sqrt{0}", "400/10"),
        ("e", rf"\sqrt[\lfloor {'1 + ' * 100}\frac{{0}}{{0}} \rfloor]{{x}}"),
        (r"\sqrt{2}", r"\log_0 0 + \sqrt{2}"),
    ],
)
def test_constants_without_a_value_are_compared_and_no_fault(reference, answer):
    with MathsRule().build() as rule:
        assert rule.verify(reference, boxed(answer)) in ("wrong", "unparsed")
