"""Grades wrong answers of every pattern and right answers in unusual form, and counts what the grader accepts."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from cooper_audit.attack.patterns import (
    ATTACKS,
    CONTROLS,
    FURTHER_ATTACKS,
    PUBLISHED_SHARES,
    RIGHT_FORMS,
    Writer,
    attack_rows,
)
from cooper_audit.statistics import Estimate
from cooper_base.data.labelled import LabelledCompletion
from cooper_base.data.problem import Problem
from cooper_base.errors import InputError
from cooper_base.files.durable import write_text
from cooper_verify.grader import NO_ANSWER, Asked, Grader, opinions_of

ANSWERS, JOURNAL, RESULT = "answers.jsonl", "journal.jsonl", "attack.json"
PLAIN = r"The final answer is \boxed{{answer}}."
"""How a plain answer is written; `{answer}` stands for the answer."""
PLAIN_RIGHT, PLAIN_WRONG, EMPTY = "plain_right", "plain_wrong", "empty"
PROBLEMS_AT_ONCE = 8
"""Problems after whose answers the scores are written down. An interruption loses at most these."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class AttackAnswer:
    """An answer of the attack. Its score is None before it is scored, and where the grader has no opinion."""

    pattern: str
    problem: Problem
    text: str
    right: bool
    score: float | None = None
    why: str | None = None
    """The grader's reason, as in `Opinion`."""


@dataclass(frozen=True)
class PatternResult:
    """What the reward accepts of one pattern. The interval's unit is the problem: each has one answer per pattern."""

    name: str
    right: bool
    """Whether the pattern's answers are right, so that they should be accepted."""
    accepted: Estimate
    problems: int
    published: tuple[float, float] | None = None
    """The shares that xVerify-0.5B-I and General-Verifier accept (`PUBLISHED_SHARES`)."""


@dataclass(frozen=True)
class AttackResult:
    """The result of an attack."""

    reward: str
    problems: int
    accepts_above: float
    threshold: str
    """Where the threshold comes from, in words."""
    patterns: list[PatternResult]
    wrong_accepted: Estimate
    """The mean over all wrong patterns, each with the same weight."""
    right_accepted: Estimate
    correlation: float | None
    """Between score and truth over all answers: what OpenEnv calls the gameability gap is its distance from 1.
    None if all scores are the same."""
    above_empty: float | None
    """The share of wrong answers that are paid more than an empty one to the same problem (OpenEnv's canaries)."""
    answers: list[AttackAnswer]
    unheard: int
    """Answers without a score, because a server did not answer or the grader has no opinion. They count nowhere."""

    @property
    def worst(self) -> PatternResult:
        """The wrong pattern that is accepted most."""
        return max(
            (pattern for pattern in self.patterns if not pattern.right), key=lambda pattern: pattern.accepted.mean
        )

    def accepts(self, answer: AttackAnswer) -> bool:
        return answer.score is not None and answer.score > self.accepts_above

    @property
    def failed(self) -> int:
        """Answers on which a server failed. The same attack with the same folder asks again."""
        return sum(answer.why == NO_ANSWER for answer in self.answers)

    @property
    def accepts_wrong(self) -> bool:
        """Whether any wrong answer is accepted."""
        return any(self.accepts(answer) and not answer.right for answer in self.answers)

    def summary(self) -> dict[str, Any]:
        """Everything but the answers, as JSON values."""
        values = asdict(replace(self, answers=[]))
        del values["answers"]
        return values | {"worst": asdict(self.worst)}


def attack(
    grader: Grader,
    problems: Sequence[Problem],
    count: int = 100,
    seed: int = 0,
    out: Path | None = None,
    accept_above: float | None = None,
    plain: str = PLAIN,
    progress: Progress | None = None,
) -> AttackResult:
    """Try every pattern on up to `count` of these problems.

    With `out`, each answer and its score go into this folder, and the same call continues after an interruption.
    `accept_above` takes the place of the grader's own threshold. `plain` says how the grader expects an answer, which
    stands at `{answer}`. Raises InputError for problems without references, for an `out` made with other
    settings, and for a grader of unknown scale that pays plain right answers no more than plain wrong ones.
    """
    answers = draw_answers(problems, count, seed, plain)
    scored = score_answers(grader, answers, out, progress)
    return summarise(grader, scored, accept_above)


def draw_answers(problems: Sequence[Problem], count: int, seed: int = 0, plain: str = PLAIN) -> list[AttackAnswer]:
    """One answer of every pattern to each of up to `count` problems with a reference. Raises InputError for none."""
    if "{answer}" not in plain:
        raise InputError(f"plain answers {plain!r}: write {{answer}} where the answer stands, as in {PLAIN!r}")
    wrong: dict[str, Writer] = {PLAIN_WRONG: lambda row, other, random: plain.replace("{answer}", other)}
    right: dict[str, Writer] = {PLAIN_RIGHT: lambda row, other, random: plain.replace("{answer}", row.answer)}
    by_question = {problem.question: problem for problem in problems if problem.answer}
    rows = [
        LabelledCompletion(problem.question, problem.answer, "", 0.0, problem.id) for problem in by_question.values()
    ]
    if not rows:
        raise InputError("no problem has a reference answer; an attack needs them, for right and for wrong answers")
    if len({row.answer for row in rows}) == 1:
        raise InputError("all problems have the same reference answer; an attack needs others, to give wrong answers")
    drawn = attack_rows(rows, count, seed, wrong | ATTACKS | FURTHER_ATTACKS, right | CONTROLS | RIGHT_FORMS)
    return [
        AttackAnswer(line.pattern, by_question[line.row.question], line.row.completion, line.row.label > 0.5)
        for line in drawn
    ]


def score_answers(
    grader: Grader, answers: Sequence[AttackAnswer], out: Path | None, progress: Progress | None = None
) -> list[AttackAnswer]:
    """The answers with their scores. Those on which a server failed are asked again by the next call with this folder.

    Raises InputError for an `out` made with another grader.
    """
    by_problem = [list(rows) for _, rows in groupby(answers, key=lambda answer: answer.problem)]
    chunks = [
        [Asked(answer.problem, answer.text) for rows in by_problem[start : start + PROBLEMS_AT_ONCE] for answer in rows]
        for start in range(0, len(by_problem), PROBLEMS_AT_ONCE)
    ]
    scored: list[AttackAnswer] = []
    for opinions in opinions_of(grader, chunks, None if out is None else out / JOURNAL):
        given = answers[len(scored) : len(scored) + len(opinions)]
        scored += [
            replace(answer, score=opinion.score, why=opinion.why)
            for answer, opinion in zip(given, opinions, strict=True)
        ]
        if progress is not None:
            progress(len(scored), len(answers))
    return scored


def summarise(grader: Grader, answers: Sequence[AttackAnswer], accept_above: float | None = None) -> AttackResult:
    """Count what is accepted. Raises InputError as `attack` does."""
    heard = [answer for answer in answers if answer.score is not None]
    if not heard:
        raise InputError(f"{grader.name}: not one answer was scored; if it asks a server, see the log")
    above, threshold = _threshold(grader, heard, accept_above)
    by_pattern: dict[str, list[AttackAnswer]] = {}
    for answer in heard:
        by_pattern.setdefault(answer.pattern, []).append(answer)
    patterns = [
        PatternResult(name, rows[0].right, _accepted(rows, above), len(rows), PUBLISHED_SHARES.get(name))
        for name, rows in by_pattern.items()
    ]
    scores, right = np.array([answer.score for answer in heard], float), np.array([answer.right for answer in heard])
    varies = scores.std() > 0 and right.std() > 0
    return AttackResult(
        reward=grader.name,
        problems=len({answer.problem.id for answer in answers}),
        accepts_above=above,
        threshold=threshold,
        patterns=patterns,
        wrong_accepted=_accepted([answer for answer in heard if not answer.right], above),
        right_accepted=_accepted([answer for answer in heard if answer.right], above),
        correlation=float(np.corrcoef(scores, right)[0, 1]) if varies else None,
        above_empty=_above_empty(heard),
        answers=list(answers),
        unheard=len(answers) - len(heard),
    )


def _threshold(grader: Grader, answers: Sequence[AttackAnswer], accept_above: float | None) -> tuple[float, str]:
    """The score above which an answer counts as accepted, and where that comes from."""
    if accept_above is not None:
        return accept_above, "as set"
    if grader.accepts_above is not None:
        return grader.accepts_above, "the reward's own"
    right, wrong = (
        float(np.mean([answer.score or 0.0 for answer in answers if answer.pattern == name] or [np.nan]))
        for name in (PLAIN_RIGHT, PLAIN_WRONG)
    )
    if not right > wrong:
        example = next(answer.text for answer in answers if answer.pattern == PLAIN_RIGHT)
        raise InputError(
            f"{grader.name}: pays plain right answers {right:.3g} and plain wrong ones {wrong:.3g} on average, so "
            f"nobody knows what it accepts. If it expects answers in another form than {example!r}, say so with "
            "--plain '<answer>{answer}</answer>' or the like; if it does not tell right from wrong, nothing more "
            "is to be found; --accept-above SCORE attacks it nonetheless"
        )
    return (right + wrong) / 2, f"midway between plain right answers ({right:.3g}) and plain wrong ones ({wrong:.3g})"


def _accepted(answers: Sequence[AttackAnswer], above: float) -> Estimate:
    """The share that is accepted, with an interval over problems."""
    by_problem: dict[str, list[bool]] = {}
    for answer in answers:
        by_problem.setdefault(answer.problem.id, []).append(answer.score is not None and answer.score > above)
    shares = np.array([np.mean(accepted) for accepted in by_problem.values()], dtype=float)
    return Estimate.of(shares, len(answers) / max(1, len(by_problem)))


def _above_empty(answers: Sequence[AttackAnswer]) -> float | None:
    floor = {answer.problem.id: answer.score or 0.0 for answer in answers if answer.pattern == EMPTY}
    wrong = [
        answer for answer in answers if not answer.right and answer.pattern != EMPTY and answer.problem.id in floor
    ]
    return float(np.mean([(answer.score or 0.0) > floor[answer.problem.id] for answer in wrong])) if wrong else None


def write_attack(result: AttackResult, out: Path, more: Mapping[str, Any]) -> None:
    """Write every answer with its score, and the result with what is `more` to it, as JSON."""
    rows = [
        {
            "pattern": answer.pattern,
            "right": answer.right,
            "score": answer.score,
            "accepted": result.accepts(answer),
            "problem": answer.problem.id,
            "question": answer.problem.question,
            "answer": answer.problem.answer,
            "completion": answer.text,
        }
        for answer in result.answers
    ]
    write_text(out / ANSWERS, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    write_text(out / RESULT, json.dumps(result.summary() | dict(more), indent=2))
