"""A rule gives verdicts on completions and says which reference answers it can work with."""

import json
import reprlib
from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, Protocol, get_args

from pydantic import Field

from cooper_base.closing import Closing
from cooper_base.config.base import Config, Kinds
from cooper_base.config.user_functions import UserFunction, load_added
from cooper_base.data.problem import Problem
from cooper_base.data.text import boxed
from cooper_base.data.thoughts import without_thoughts
from cooper_base.data.verdict import UserVerdict, Verdict
from cooper_base.errors import InputError
from cooper_verify.grader import Asked, Grader, Opinion
from cooper_verify.rules.asked.question import copies_question
from cooper_verify.rules.processes.guard import guarded, prepared_by

if TYPE_CHECKING:
    from cooper_base.data.answer import AnswerGroup


def verdict_metrics(verdicts: Sequence[Sequence[str]]) -> dict[str, float]:
    """The share of each verdict among the answers that the rule judges, and `rule/heard`, the share of these."""
    flat = [verdict for row in verdicts for verdict in row]
    heard = [verdict for verdict in flat if verdict != "silent"]
    names = {"correct": "rule/accuracy", "wrong": "rule/wrong", "unparsed": "rule/unparsed", "timeout": "rule/timeout"}
    metrics = {name: heard.count(verdict) / len(heard) for verdict, name in names.items()} if heard else {}
    return metrics | ({"rule/heard": len(heard) / len(flat)} if len(heard) < len(flat) else {})


ProblemAndText = tuple[Problem, str]
"""A problem and the text of one completion."""


class Rule(Grader, Closing):
    """Decides whether completions are right. Safe to use from several threads. Only `verify_problems` is abstract."""

    name = "rule"
    accepts_above = 0.5
    compares_answers = False

    @abstractmethod
    def verify_problems(self, problems_and_texts: Sequence[ProblemAndText], /) -> list[Verdict]:
        """One verdict for each, in order."""

    def grade(self, answers: Sequence[Asked], /) -> list[Opinion]:
        """The verdicts, which score 1 for `correct`, None where the rule is silent, and else 0."""
        verdicts = self.verify_problems(answers)
        return [Opinion(verdict, None if verdict == "silent" else float(verdict == "correct")) for verdict in verdicts]

    def verify_groups(self, groups: "Sequence[AnswerGroup]") -> list[list[Verdict]]:
        """One verdict for each answer: its own if it has one, else that on its text."""
        problems_and_texts = [
            (group.problem, answer.text) for group in groups for answer in group.answers if answer.verdict is None
        ]
        verdicts = iter(self.verify_problems(problems_and_texts))
        return [[answer.verdict or next(verdicts) for answer in group.answers] for group in groups]

    def rule_name(self, problem: Problem) -> str:
        """The name under which metrics count the problem's verdicts."""
        return problem.rule or type(self).__name__

    def judges(self, problem: Problem) -> bool:
        """Whether it judges this problem at all; if not, all its verdicts are `silent`."""
        return True

    def needs_verdicts(self, problem: Problem) -> bool:
        """Whether the answers to this problem must bring their own verdicts."""
        return False

    def fault(self, problem: Problem, answer: str) -> str | None:
        """`faults` of a single problem."""
        return self.faults([(problem, answer)])[0]

    def faults(self, problems_and_texts: Sequence[ProblemAndText], /) -> list[str | None]:
        """Why each answer cannot be the reference of its problem, as in "does not verify against itself"; None if it
        can."""
        return [None] * len(problems_and_texts)

    def unread(self, problems: Sequence[Problem]) -> list[Problem]:
        """The problems whose reference it cannot read. A right answer to them counts only in the reference's words."""
        return []

    def ambiguous(self, problems: Sequence[Problem]) -> list[Problem]:
        """The problems whose reference it reads in two ways: the answer decides which is meant."""
        return []


class RuleConfig(Protocol):
    def build(self) -> Rule: ...


RULES = Kinds(
    "rule",
    "cooper_verify.rules.kinds",
    ["build"],
    default="maths",
    of_function=lambda: FunctionRule,
    of_grader=lambda: GraderRule,
)


class OneRule(Config):
    """A single rule, as a command-line option describes it."""

    rule: Annotated[RuleConfig, RULES]
    """The rule."""


class ComputedConfig(Config):
    """Settings of a rule whose verdict is computed from the texts alone, in a process that can be killed."""

    def fields(self) -> Sequence[str]:
        """The metadata that it reads of a problem."""
        return ()

    def verdict(self, problem: Problem, text: str) -> Verdict:
        raise NotImplementedError

    def objection(self, problem: Problem) -> str | None:
        """Why the rule cannot read the problem's reference; None if it can."""
        return None

    def build(self) -> "ComputedRule":
        return ComputedRule(self)


class ComputedRule(Rule):
    """The rule with these settings. A text that takes too long has the verdict `timeout`."""

    def __init__(self, settings: ComputedConfig) -> None:
        self._settings = json.dumps(RULES.dump(settings))
        self._fields = settings.fields()

    def verify_problems(self, problems_and_texts: Sequence[ProblemAndText], /) -> list[Verdict]:
        calls = [self._call(problem, text) for problem, text in problems_and_texts]
        return guarded(_computed_verdict, calls, "timeout", at_fault="unparsed")

    def faults(self, problems_and_texts: Sequence[ProblemAndText], /) -> list[str | None]:
        """The objection, if there is one; otherwise the answer in a box must be correct."""
        return guarded(
            _computed_fault,
            [self._call(problem, answer) for problem, answer in problems_and_texts],
            unverified("timeout"),
            at_fault=unverified("unparsed"),
        )

    def _call(self, problem: Problem, text: str) -> tuple[Any, ...]:
        metadata = {name: problem.metadata[name] for name in self._fields if name in problem.metadata}
        return self._settings, problem.question, problem.answer, metadata, text


@lru_cache
def _computed(settings: str) -> ComputedConfig:
    rule = RULES.read(json.loads(settings))
    assert isinstance(rule, ComputedConfig)
    return rule


def _build(settings: str, *_: Any) -> None:
    _computed(settings)


@prepared_by(_build)
def _computed_verdict(settings: str, question: str, reference: str, metadata: dict[str, Any], text: str) -> Verdict:
    reply = without_thoughts(text)
    if copies_question(question, reply):
        return "wrong"
    return _computed(settings).verdict(Problem("", question, reference, metadata=metadata), reply)


@prepared_by(_build)
def _computed_fault(settings: str, question: str, reference: str, metadata: dict[str, Any], answer: str) -> str | None:
    rule, problem = _computed(settings), Problem("", question, reference, metadata=metadata)
    return rule.objection(problem) or unverified(rule.verdict(problem, boxed(answer)))


def unverified(verdict: Verdict) -> str | None:
    """The fault of a reference answer whose verdict against itself is `verdict`; None if that is `correct`."""
    return None if verdict == "correct" else f"does not verify against itself (verdict: {verdict})"


class FunctionRule(Config):
    """Your own rule: `function(problem, completion_text)` returns `correct`, `wrong`, `unparsed` or `silent`.

    `problem` is the `Problem` with its metadata. The function runs in this process, once per completion and one call
    at a time; the calls of an `async def` run concurrently. It has no time limit.
    """

    kind: str = Field(pattern=r"^[\w./~ -]+:\w+$")
    """`package.module:function`, from an installed package or a module in the working folder, or `file.py:function`."""
    check_references: bool = False
    """Also leave out problems whose own reference answer, in a box, the function does not accept as correct."""

    def build(self) -> "UserRule":
        """Raises InputError if the function does not exist or takes other arguments."""
        return UserRule(self.kind, self.check_references)


class GraderRule(Config):
    """Any grader that says correct or wrong, such as a judge, a reward model or a class of your own."""

    kind: str
    """The grader, as every command writes it: `judge.yaml`, a reward model's folder (`./folder`), `file.py:Class`, …"""

    def build(self) -> Rule:
        """Raises InputError for what is no grader, and for one that gives scores and no verdicts."""
        return load_added("graders", "as_rule")(self.kind)


class UserRule(Rule):
    def __init__(self, path: str, check_references: bool) -> None:
        self._path = path
        self._check_references = check_references
        self._function = UserFunction(path, ("problem", "completion_text"))
        self._lock = Lock()

    def verify_problems(self, problems_and_texts: Sequence[ProblemAndText], /) -> list[Verdict]:
        """Raises InputError, naming function and problem, for what is no verdict, and what the function raises."""
        with self._lock:  # the assistant's thread calls this too
            returned = self._function.results(problems_and_texts)
        for value, (problem, _) in zip(returned, problems_and_texts, strict=True):
            if not (isinstance(value, str) and value in get_args(UserVerdict)):
                raise InputError(
                    f"{self._path}: returned {reprlib.repr(value)} for problem {problem.id}; "
                    "a rule returns 'correct', 'wrong', 'unparsed' or 'silent'"
                )
        return returned

    def faults(self, problems_and_texts: Sequence[ProblemAndText], /) -> list[str | None]:
        """With `check_references`, the function must accept the answer in a box; otherwise any will do."""
        if not self._check_references:
            return [None] * len(problems_and_texts)
        return [
            *map(unverified, self.verify_problems([(problem, boxed(answer)) for problem, answer in problems_and_texts]))
        ]
