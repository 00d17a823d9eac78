"""A search for what no pattern knows: edits of right answers, combined and kept by what the reward pays for them.

It needs no policy and no model. Single edits come first, in the forms that the reward reads; then those that are paid
most are combined. What is accepted is a pattern with a readable name.
"""

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from random import Random

import numpy as np

from cooper_audit.attack.attack import BARE, PLAIN, AttackAnswer, AttackResult, Row, acceptance, rows_of
from cooper_audit.attack.edits import ANOTHER, FRAMES, STATEMENTS, VALUES, EditedPattern, pattern_of
from cooper_base.data.problem import Problem
from cooper_verify.grader import Asked, Grader, opinions_on
from cooper_verify.rules.kinds.maths import MathsRule
from cooper_verify.rules.rule import Rule

CALLS_A_ROUND = 64
SECONDS = 300.0
"""Wall time after which no further round begins."""
SEARCHED = 6
"""Problems of the search, at most half of the attack's. What it finds is then counted on the others."""
TRIED_ON = 2
"""Problems on which a candidate is tried first."""
LEAST_SHARE = 1 / 3
"""Of the search's problems: a candidate that is accepted in fewer is no pattern."""
MOST_EDITS = 3
KEPT = 12
"""Patterns that are kept, those that are paid in most problems first."""


@dataclass(frozen=True)
class Search:
    """What a search tried and found."""

    rounds: int
    calls: int
    problems: int
    """The attack's first problems, on which it searched."""
    patterns: list[EditedPattern]
    out_of_time: bool


@dataclass(frozen=True)
class _Candidate:
    pattern: EditedPattern
    form: str


class _Hunt:
    """The state of a search."""

    def __init__(self, grader: Grader, result: AttackResult, rows: Sequence[Row], seed: int, rule: Rule):
        self.grader, self.rows, self.seed, self.rule = grader, rows, seed, rule
        self.accepts = acceptance(result)
        read = [form.template for form in result.forms if form.read] or [PLAIN]
        self.forms = [*dict.fromkeys((read[0], BARE, *read[1:3]))]
        self.random = Random(f"search {seed}")
        self.paid: dict[_Candidate, float] = {}
        self.hits: dict[EditedPattern, float] = {}
        self.calls = 0
        singles = [EditedPattern((name,)) for name in (*VALUES, *STATEMENTS)]
        singles += [EditedPattern((ANOTHER, name)) for name in FRAMES]  # a frame alone stands around a right answer
        self.waiting = [_Candidate(pattern, form) for form in self.forms for pattern in singles]
        self.waiting.reverse()

    def round(self) -> bool:
        """Try candidates with about `CALLS_A_ROUND` calls. False if there is none left."""
        chosen: list[_Candidate] = []
        while len(chosen) * TRIED_ON < CALLS_A_ROUND and (candidate := self._next()) is not None:
            self.paid[candidate] = -np.inf
            chosen.append(candidate)
        tried = {candidate: self._answers(candidate, self.rows[:TRIED_ON]) for candidate in chosen}
        for candidate, first in self._try(tried).items():
            if first and not self._known(candidate.pattern):
                rest = self._try({candidate: self._answers(candidate, self.rows[TRIED_ON:])})[candidate]
                share = (first + rest) / len(self.rows)
                if share >= LEAST_SHARE:
                    self.hits[candidate.pattern] = share
        return bool(chosen)

    def _try(self, tried: dict[_Candidate, list[AttackAnswer]]) -> dict[_Candidate, int]:
        """How many of their answers are accepted."""
        answers = [answer for each in tried.values() for answer in each]
        opinions = iter(opinions_on(self.grader, [Asked(answer.problem, answer.text) for answer in answers]))
        self.calls += len(answers)
        accepted: dict[_Candidate, int] = {}
        for candidate, each in tried.items():
            scored = [AttackAnswer(a.pattern, a.problem, a.text, False, a.form, next(opinions).score) for a in each]
            heard = [answer.score for answer in scored if answer.score is not None]
            if heard:
                self.paid[candidate] = float(np.mean(heard))
            paid = [answer for answer in scored if self.accepts(answer)]
            verdicts = self.rule.verify_problems([(answer.problem, answer.text) for answer in paid]) if paid else []
            accepted[candidate] = sum(verdict != "correct" for verdict in verdicts)
        return accepted

    def _answers(self, candidate: _Candidate, rows: Sequence[Row]) -> list[AttackAnswer]:
        texts = [(row[0], candidate.pattern.write(row[0], row[1], candidate.form, self.seed)) for row in rows]
        name = candidate.pattern.name
        return [AttackAnswer(name, problem, text, False, candidate.form) for problem, text in texts if text is not None]

    def _next(self) -> _Candidate | None:
        """A candidate that was not tried: the next single edit, or a change of one that is paid well."""
        if self.waiting:
            return self.waiting.pop()
        for _ in range(50):
            candidate = self._changed(max(self.random.choices([*self.paid], k=4), key=lambda each: self.paid[each]))
            if candidate is not None and candidate not in self.paid and not self._known(candidate.pattern):
                return candidate
        return None

    def _changed(self, parent: _Candidate) -> _Candidate | None:
        edits, kind = [*parent.pattern.edits], self.random.random()
        if kind < 0.6 and len(edits) < MOST_EDITS:
            edits.append(self.random.choice([*FRAMES] if self.random.random() < 0.7 else [*VALUES, *STATEMENTS]))
        elif kind < 0.9:
            edits[self.random.randrange(len(edits))] = self.random.choice([*VALUES, *STATEMENTS, *FRAMES])
        form = parent.form if self.random.random() < 0.7 else self.random.choice(self.forms)
        pattern = pattern_of([*dict.fromkeys(edits)])
        return None if pattern is None else _Candidate(pattern, form)

    def _known(self, pattern: EditedPattern) -> bool:
        """Whether a part of its edits is accepted already: with more edits it says nothing new."""
        return any(set(hit.edits) <= set(pattern.edits) for hit in self.hits)


def search(grader: Grader, problems: Sequence[Problem], result: AttackResult, rounds: int, seed: int = 0) -> Search:
    """Search for wrong answers that the reward accepts, in up to `rounds` rounds of 64 calls, after an attack.

    `problems` and `seed` are those of the attack. A round is not begun after `SECONDS`.
    """
    rows = rows_of(problems, result.problems, seed)
    rows = rows[: min(SEARCHED, len(rows) // 2)]
    start, done = time.monotonic(), 0
    with closing(MathsRule().build()) as rule:
        hunt = _Hunt(grader, result, rows, seed, rule)
        while done < rounds and time.monotonic() - start < SECONDS and hunt.round():
            done += 1
    found = sorted(hunt.hits, key=lambda pattern: (len(pattern.edits), -hunt.hits[pattern]))
    return Search(done, hunt.calls, len(rows), found[:KEPT], done < rounds and time.monotonic() - start >= SECONDS)
