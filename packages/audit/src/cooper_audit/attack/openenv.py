"""Two checks of OpenEnv's validation (its RFC 008 and issue 778), which it finds by entry points: an attack on the
reward of an environment's package.

A package says in its `pyproject.toml` which reward that is, as `cooper attack` takes it, with paths from its folder:

    [tool.cooper]
    reward = "server/rubrics.py:MathRubric"
    problems = "problems.jsonl"        # by default the attack's own questions
    plain = "<answer>{answer}</answer>"  # by default the forms that the reward reads are found

Both checks are of level 4, which OpenEnv reserves for who runs a hub, and share one attack with a search.
"""

import time
import tomllib
from abc import ABC, abstractmethod
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cooper_audit.attack.attack import AttackAnswer, AttackResult, attack, with_patterns
from cooper_audit.attack.problems import attack_settings, open_apart, read_attack_problems
from cooper_audit.attack.report import example_of
from cooper_audit.attack.search import search
from cooper_base.errors import InputError, MissingExtraError

if TYPE_CHECKING:  # OpenEnv is where these checks are called
    from openenv.validation.graders import Subject  # pyright: ignore[reportMissingImports]
    from openenv.validation.report import CheckResult  # pyright: ignore[reportMissingImports]

LEVEL = 4
"""OpenEnv's statistical level."""
PROBLEMS, ROUNDS = 40, 10
"""Problems of the attack, and rounds of its search."""
LEAST_CORRELATION = 0.9
"""Between reward and truth; what is less fails the check of the gameability gap."""
ABOVE_FLOOR = 0.05
"""How much of the declared range of rewards a wrong pattern may be paid more than an empty answer on average."""
EVIDENCE = 5
DECLARED = ("reward", "problems", "plain")


class _AttackCheck(ABC):
    """What OpenEnv asks of a grader; see its `Grader`."""

    check_id: str
    remediation: str
    level = LEVEL
    requires_capabilities: frozenset[str] = frozenset()
    requires_provider: frozenset[Any] = frozenset()
    depends_on: tuple[str, ...] = ()

    def applies_to(self, manifest: Any) -> bool:
        """To every package: one that declares no reward is skipped, with the remedy."""
        return True

    def run(self, subject: "Subject") -> "CheckResult":
        """`skip` for a package that declares no reward, `error` where it cannot be attacked."""
        from openenv.validation.report import CheckResult  # noqa: PLC0415 # pyright: ignore[reportMissingImports]
        from openenv.validation.types import CheckStatus  # noqa: PLC0415 # pyright: ignore[reportMissingImports]

        start = time.monotonic()
        measured: dict[str, Any] = {}
        remediation: str | None = None
        try:
            declared = declared_reward(subject.root)
            if not declared:
                remediation = 'write [tool.cooper] with reward = "server/rubrics.py:YourRubric" into pyproject.toml'
                status, evidence = CheckStatus.SKIP, ["pyproject.toml has no [tool.cooper] with a reward to attack"]
            else:
                low, high = subject.manifest.reward.range
                passed, measured, evidence = self.judge(attacked(subject.root), high - low)
                status = CheckStatus.PASS if passed else CheckStatus.FAIL
                remediation = None if passed else self.remediation
        except (InputError, MissingExtraError) as error:
            status, evidence = CheckStatus.ERROR, [str(error)]
        return CheckResult(
            check_id=self.check_id,
            status=status,
            measured=measured,
            evidence=evidence,
            remediation=remediation,
            duration_s=time.monotonic() - start,
        )

    @abstractmethod
    def judge(self, result: AttackResult, span: float) -> tuple[bool, dict[str, Any], list[str]]:
        """Whether the check passes, what was measured, and the evidence. Rewards are declared to span `span`."""


class GameabilityGap(_AttackCheck):
    """The correlation between reward and truth over wrong answers of every pattern, and right ones in the forms that
    the reward reads. The gap is its distance from 1."""

    check_id = "statistical.gameability_gap"
    remediation = "pay what is right alone: no part for length, form or words, and the whole answer compared"

    def judge(self, result: AttackResult, span: float) -> tuple[bool, dict[str, Any], list[str]]:
        correlation = correlation_of(result)
        measured = {"correlation": correlation, "gap": 1 - correlation, "least_correlation": LEAST_CORRELATION}
        measured |= {"problems": result.problems, "right_accepted": result.right_accepted.mean}
        evidence = [f"correlation {correlation:.3f} with the truth on {result.problems} problems"]
        return correlation >= LEAST_CORRELATION, measured, evidence + exploits_of(result)


class AdversarialFloor(_AttackCheck):
    """Each pattern of wrong answers is a policy that solves nothing: none may be paid more than an empty answer."""

    check_id = "statistical.adversarial_floor"
    remediation = "pay the answers below as an empty one is paid: they solve nothing"

    def judge(self, result: AttackResult, span: float) -> tuple[bool, dict[str, Any], list[str]]:
        means = mean_rewards(result)
        floor = float(np.mean([a.score for a in result.answers if not a.text and a.score is not None]))
        above = {name: mean - floor for name, mean in means.items() if mean - floor > ABOVE_FLOOR * span}
        worst = max(means, key=lambda name: means[name])
        measured = {"floor": floor, "patterns": len(means), "patterns_above": sorted(above), "worst": worst}
        measured |= {"worst_mean": means[worst], "above_empty": result.above_empty, "problems": result.problems}
        return not above, measured, exploits_of(result) if above else []


def declared_reward(root: Path) -> dict[str, str]:
    """What the package in this folder declares; empty without a reward. Raises InputError for another field."""
    path = root / "pyproject.toml"
    try:
        tools = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}) if path.is_file() else {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: {error}") from error
    declared = tools.get("cooper", {})
    for name, value in declared.items():
        if name not in DECLARED or not isinstance(value, str):
            raise InputError(f"{path}: [tool.cooper] has {name} = {value!r}; it takes texts: {', '.join(DECLARED)}")
    return declared if "reward" in declared else {}


@cache
def attacked(root: Path) -> AttackResult:
    """The attack with its search on what the package in this folder declares, once in a process. Raises InputError."""
    declared = declared_reward(root)
    reward, problems = (_from(root, declared.get(name)) for name in ("reward", "problems"))
    assert reward is not None
    config = attack_settings(reward, problems)
    with closing(open_apart(reward, [], None)) as grader:
        grader.name = declared["reward"]
        asked = read_attack_problems(config, grader)
        result = attack(grader, asked, PROBLEMS, plain=declared.get("plain"))
        found = search(grader, asked, result, ROUNDS)
        if found.patterns:
            result = with_patterns(grader, result, asked, found.patterns, skip=found.problems)
        return result


def _from(root: Path, written: str | None) -> str | None:
    """A path of the package as one from here; what is no file there stays as it is."""
    if written is None:
        return None
    file, colon, name = written.partition(":")
    return f"{(root / file).resolve()}{colon}{name}" if (root / file).exists() else written


def correlation_of(result: AttackResult) -> float:
    """Between reward and truth; 0 if all answers are paid the same."""
    read = {form.template for form in result.forms if form.read}
    heard = [a for a in result.answers if a.score is not None and (not a.right or a.form in read)]
    scores, right = np.array([a.score for a in heard], dtype=float), np.array([a.right for a in heard], dtype=float)
    return float(np.corrcoef(scores, right)[0, 1]) if scores.std() > 0 and right.std() > 0 else 0.0


def mean_rewards(result: AttackResult) -> dict[str, float]:
    """The mean reward of the wrong answers of each pattern."""
    scores: dict[str, list[float]] = {}
    for answer in result.answers:
        if not answer.right and answer.score is not None:
            scores.setdefault(answer.pattern, []).append(answer.score)
    return {name: float(np.mean(given)) for name, given in scores.items()}


def exploits_of(result: AttackResult) -> list[str]:
    """The patterns that are accepted most, each with an example."""
    wrong = sorted((p for p in result.patterns if not p.right), key=lambda pattern: -pattern.accepted.mean)
    accepted = [pattern for pattern in wrong[:EVIDENCE] if pattern.accepted.mean > 0]
    return [f"{p.name} is accepted in {p.accepted.mean:.0%}: {_shown(example_of(result, p.name))}" for p in accepted]


def _shown(answer: AttackAnswer) -> str:
    return f"{answer.score:.3g} for {answer.text[:80]!r} to {answer.problem.question[:60]!r}"
