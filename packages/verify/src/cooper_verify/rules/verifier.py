"""One verifier for all rules of a run: each problem may name its own rule."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any, TypeVar

from cooper_base.config.base import Config
from cooper_base.data.problem import Problem, location
from cooper_base.data.verdict import Verdict, is_right
from cooper_base.errors import InputError, did_you_mean
from cooper_verify.faults import faults_so_far, isolated
from cooper_verify.grader import asked_texts
from cooper_verify.rules.kinds.maths import RuleVerifier, rule_settings
from cooper_verify.rules.kinds.partial import PartiallySilent
from cooper_verify.rules.rule import RULES, ProblemAndText, Rule, RuleConfig, unverified

T = TypeVar("T")


class Verifier(Rule):
    """Passes each completion to the rule that its problem names, or to `default` if the problem names none.

    A name is looked up in `named`, then among the kinds; the default's own kind means the default with its settings.
    """

    def __init__(self, default: RuleConfig, named: Mapping[str, RuleConfig] | None = None) -> None:
        self._default = RULES.kind_of(default) if isinstance(default, Config) else type(default).__name__
        self._given = default, dict(named or {})
        self._settings = {self._default: default} | dict(named or {})
        # Built at once, so that a function that does not exist is reported before anything is read.
        self._rules: dict[str | None, Rule] = {name: settings.build() for name, settings in self._settings.items()}
        self._rules[None] = default.build() if self._default in (named or {}) else self._rules[self._default]
        self._lock = Lock()
        self._told, self._faults = (0.0, 0.0), faults_so_far()

    def verify_problems(self, problems_and_texts: Sequence[ProblemAndText], /) -> list[Verdict]:
        """A text on which a rule raises is `unparsed`. Raises InputError for a rule that does not exist, and what a
        rule of the user's raises."""
        return self._each(problems_and_texts, lambda rule, part: rule.verify_problems(part), "unparsed")

    def accepts(self, problem: Problem, text: str) -> bool | None:
        """Whether the verdict on one completion is `correct`; None where the rule is silent."""
        return is_right(self.verify_problems([(problem, text)])[0])

    def faults(self, problems_and_texts: Sequence[ProblemAndText], /) -> list[str | None]:
        return self._each(problems_and_texts, lambda rule, part: rule.faults(part), unverified("unparsed"))

    def unread(self, problems: Sequence[Problem]) -> list[Problem]:
        by_rule = self._by_rule(problems)
        return [problem for rule, places in by_rule for problem in rule.unread([problems[i] for i in places])]

    def ambiguous(self, problems: Sequence[Problem]) -> list[Problem]:
        by_rule = self._by_rule(problems)
        return [problem for rule, places in by_rule for problem in rule.ambiguous([problems[i] for i in places])]

    def settings(self) -> dict[str, Any]:
        """What decides the verdicts: the default rule, and those with names."""
        default, named = self._given
        rules = {name: rule_settings(settings) for name, settings in named.items()}
        return {"kind": "rule", **rule_settings(default), **({"rules": rules} if rules else {})}

    def _each(
        self,
        problems_and_texts: Sequence[ProblemAndText],
        ask: Callable[[Rule, Sequence[ProblemAndText]], Sequence[T]],
        at_fault: T,
    ) -> list[T]:
        """What each problem's own rule replies, in order. A rule gets all of its problems together."""
        replies: dict[int, T] = {}
        for rule, places in self._by_rule([problem for problem, _ in problems_and_texts]):
            part = [problems_and_texts[i] for i in places]
            said = isolated(type(rule).__name__, partial(ask, rule), part, lambda _: at_fault, asked_texts)
            replies |= zip(places, said, strict=True)
        return [replies[index] for index in range(len(problems_and_texts))]

    def _by_rule(self, problems: Sequence[Problem]) -> list[tuple[Rule, list[int]]]:
        """The rules of these problems, each with the places of its problems. Raises InputError as `check` does."""
        places_of: dict[str | None, list[int]] = {}
        for place, problem in enumerate(problems):
            places_of.setdefault(problem.rule, []).append(place)
        return [(self._rule(problems[places[0]]), places) for places in places_of.values()]

    def check(self, problems: Sequence[Problem]) -> None:
        """Raises InputError if a problem names a rule that does not exist, or its rule cannot judge it."""
        for rule, places in self._by_rule(problems):
            rule.check([problems[place] for place in places])

    def rule_name(self, problem: Problem) -> str:
        """The name of the problem's rule in metrics: the one it names, else the default's kind or function."""
        name = problem.rule or self._default
        short = name.rpartition(":")[2]
        return short if short not in self._settings and short not in RULES.records else name

    def cpu_s_of(self, problem: Problem, text: str) -> float:
        """CPU seconds that a worker process spent on a completion; 0 if the verdict did not need one."""
        rule = _whole(self._rule(problem))
        return rule.cpu_s_of(problem.answer, text) if isinstance(rule, RuleVerifier) else 0.0

    def metrics(self) -> dict[str, float]:
        """`rule/faults`, the faults of this process; where a rule has worker processes, also `time/verify_cpu`, the CPU
        seconds of their questions, and `rule/lost`, those that were lost. All are since the last call."""
        before, self._faults = self._faults, faults_so_far()
        faults = {"rule/faults": float(self._faults - before)}
        rules = dict.fromkeys(rule for rule in map(_whole, self._rules.values()) if isinstance(rule, RuleVerifier))
        if not rules:
            return faults
        spent = (sum(rule.cpu_s for rule in rules), float(sum(rule.counts["lost"] for rule in rules)))
        (cpu_s, lost), self._told = self._told, spent
        return faults | {"time/verify_cpu": spent[0] - cpu_s, "rule/lost": spent[1] - lost}

    def judges(self, problem: Problem) -> bool:
        """As the problem's rule says. Raises InputError for a rule that does not exist."""
        return self._rule(problem).judges(problem)

    def needs_verdicts(self, problem: Problem) -> bool:
        """As the problem's rule says. Raises InputError for a rule that does not exist."""
        return self._rule(problem).needs_verdicts(problem)

    def hears(self, problem: Problem) -> bool:
        """Whether answers to it get verdicts, from its rule or from outside."""
        return self.judges(problem) or self.needs_verdicts(problem)

    def close(self) -> None:
        for rule in self._rules.values():
            rule.close()

    def _rule(self, problem: Problem) -> Rule:
        with self._lock:
            if problem.rule not in self._rules:
                name = str(problem.rule)
                if name not in RULES.records:
                    known = list(dict.fromkeys([*self._settings, *RULES.records]))
                    hint = did_you_mean(name, known, f"there are {', '.join(known)}")
                    if ":" in name:
                        by_name = f"rules: {{my_rule: {{kind: {name!r}}}}}"
                        hint = f"data cannot name a function; give the rule a name, {by_name}"
                    why = f"rule {name!r} is neither configured under rules nor a kind; {hint}"
                    raise InputError(f"{location(problem)}: {why}")
                settings: RuleConfig = RULES.read({"kind": name})  # pyright: ignore[reportAssignmentType]
                self._rules[name] = settings.build()
            return self._rules[problem.rule]


def _whole(rule: Rule) -> Rule:
    """The rule that computes verdicts, without what decides when it is heard."""
    return _whole(rule.rule) if isinstance(rule, PartiallySilent) else rule
