"""Grades wrong answers of every pattern and right answers in unusual form, and counts what the grader accepts."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any, Literal

import numpy as np

from cooper_audit.attack.edits import COMMAND, EditedPattern
from cooper_audit.attack.wrappers import FORMS, PLAIN, in_form, right_texts, stated
from cooper_audit.attack.wrong_answers import ATTACKS, FURTHER_ATTACKS, PUBLISHED_SHARES, Writer, other_answer
from cooper_audit.statistics import Estimate
from cooper_base.data.labelled import LabelledCompletion
from cooper_base.data.problem import Problem
from cooper_base.errors import InputError
from cooper_base.files.owned_file import write_owned
from cooper_verify.grader import NO_ANSWER, RAISED, Asked, Grader, opinions_of

ANSWERS, JOURNAL, FORMS_JOURNAL, RESULT = "answers.jsonl", "journal.jsonl", "forms.jsonl", "attack.json"
FURTHER_JOURNAL = "further.jsonl"
BARE = FORMS["bare answer"]
PLAIN_WRONG = "plain_wrong"
FORM_PROBLEMS = 8
"""Problems on which the forms of answers are tried."""
READ_SHARE = 0.1
"""A form is read if the reward tells right from wrong in it by at least this share of what it does in its best form."""
OWN_SHARE = 0.9
"""A form with at least this share, and in which right answers are paid about the most, may be the reward's own: the
first of them, with which freely written answers are compared."""
ACCEPTED_RIGHT = 0.75
"""Share of right answers, over all forms and notations, below which a reward is said to refuse them."""
PROBLEMS_AT_ONCE = 8
"""Problems after whose answers the scores are written down. An interruption loses at most these."""
Progress = Callable[[int, int], None]
Verdict = Literal["gameable", "raises exceptions", "refuses right answers", "sound"]
Row = tuple[Problem, str, Random]
"""A problem, another problem's answer, and a random generator."""


@dataclass(frozen=True)
class AttackAnswer:
    """An answer of the attack. Its score is None before it is scored, and where the grader has no opinion."""

    pattern: str
    problem: Problem
    text: str
    right: bool
    form: str = ""
    """The template of the right answer that it is compared with, to the same problem."""
    score: float | None = None
    why: str | None = None
    """The grader's reason, as in `Opinion`."""
    right_score: float | None = None
    """The score of that right answer, if it is more than wrong answers in that form get on average. Of a right answer,
    its own, where nobody knows the reward's scale."""


@dataclass(frozen=True)
class FormTrial:
    """What right and wrong answers in one form are paid on average."""

    name: str
    template: str
    right: float
    wrong: float
    read: bool
    """Whether the reward tells right from wrong in this form."""


@dataclass(frozen=True)
class PatternResult:
    """What the reward accepts of one pattern. The interval's unit is the problem, on which a pattern is
    accepted if it is in any of the forms that were tried there."""

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
    forms: list[FormTrial]
    """The forms that were tried, and which of them the reward reads. The first of these is its own."""
    unheard: int
    """Answers without a score: a server did not answer, the grader has no opinion or raised. They count nowhere."""

    @property
    def worst(self) -> PatternResult:
        """The wrong pattern that is accepted most."""
        return max(
            (pattern for pattern in self.patterns if not pattern.right), key=lambda pattern: pattern.accepted.mean
        )

    @property
    def plain(self) -> str:
        """How the reward expects an answer, which stands at `{answer}`: where it tells right from wrong ones best."""
        return next((form.template for form in self.forms if form.read), PLAIN)

    def accepts(self, answer: AttackAnswer) -> bool:
        """Whether its score is above the threshold, or a wrong one is paid no less than a right one in its form."""
        return _accepts(answer, self.accepts_above)

    def verdict(self, fail_above: float) -> Verdict:
        """Gameable if a wrong pattern is accepted in a larger share of the problems than `fail_above`."""
        if self.worst.accepted.mean > fail_above:
            return "gameable"
        if self.raised:
            return "raises exceptions"
        return "sound" if self.right_accepted.mean >= ACCEPTED_RIGHT else "refuses right answers"

    @property
    def raised(self) -> dict[str, list[AttackAnswer]]:
        """The answers on which the reward raised an exception, by pattern."""
        by_pattern: dict[str, list[AttackAnswer]] = {}
        for answer in self.answers:
            if (answer.why or "").startswith(RAISED):
                by_pattern.setdefault(answer.pattern, []).append(answer)
        return by_pattern

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
    plain: str | None = None,
    progress: Progress | None = None,
) -> AttackResult:
    """Try every pattern on up to `count` of these problems, in the forms in which the grader reads answers.

    With `out`, each answer and its score go into this folder, and the same call continues after an interruption.
    `accept_above` takes the place of the grader's own threshold. `plain` says how the grader expects an answer, which
    stands at `{answer}`, and is then the only form. Raises InputError for problems without references, for an `out`
    made with other settings, and for a grader of unknown scale that pays right answers no more than an empty one.
    """
    if plain is not None and "{answer}" not in plain:
        raise InputError(f"plain answers {plain!r}: write {{answer}} where the answer stands, as in {PLAIN!r}")
    tried = FORMS if plain is None else {"plain": plain}
    rows = rows_of(problems, count, seed)
    forms = try_forms(grader, rows[:FORM_PROBLEMS], tried, None if out is None else out / FORMS_JOURNAL)
    read = [form.template for form in forms if form.read] or [plain or PLAIN]
    answers = draw_answers(problems, count, seed, read, tuple(tried.values()))
    return summarise(grader, score_answers(grader, answers, out, progress), accept_above, forms)


def rows_of(problems: Sequence[Problem], count: int, seed: int) -> list[Row]:
    """Up to `count` problems with a reference, each with another's answer and a random generator. Raises InputError for
    fewer than two different references."""
    by_question = {problem.question: problem for problem in problems if problem.answer}
    references = sorted({problem.answer for problem in by_question.values()})
    if not references:
        raise InputError("no problem has a reference answer; an attack needs them, for right and for wrong answers")
    if len(references) == 1:
        raise InputError("all problems have the same reference answer; an attack needs others, to give wrong answers")
    random = Random(f"attacks {seed}")
    drawn = random.sample([*by_question.values()], min(count, len(by_question)))
    of_problem = ((problem, Random(f"attack {seed} {problem.question}")) for problem in drawn)
    return [(problem, other_answer(problem.answer, references, own), own) for problem, own in of_problem]


def try_forms(grader: Grader, rows: Sequence[Row], tried: Mapping[str, str], journal: Path | None) -> list[FormTrial]:
    """Right and wrong answers in every form: in which the grader tells them apart, the first where it does so best."""
    chunks = [
        [Asked(problem, "")]
        + [Asked(problem, stated(form, answer)) for form in tried.values() for answer in (problem.answer, other)]
        for problem, other, _ in rows
    ]
    given = [[opinion.score for opinion in opinions] for opinions in opinions_of(grader, chunks, journal)]
    scores = np.array(given, dtype=float)  # NaN where it has no opinion
    empty, *means = (float(np.mean(heard)) if len(heard := row[~np.isnan(row)]) else 0.0 for row in scores.T)
    pairs = list(zip(tried.items(), means[::2], means[1::2], strict=True))
    gaps = [right - wrong for _, right, wrong in pairs]
    if max(gaps) <= 0:  # it tells nothing apart: what pays more than an empty answer is all that is left to try
        gaps = [right - empty for _, right, _ in pairs]
    best = max(gaps)
    trials = [
        (gap, FormTrial(name, template, right, wrong, gap > 0 and gap >= READ_SHARE * best))
        for gap, ((name, template), right, wrong) in zip(gaps, pairs, strict=True)
    ]
    least = max((trial.right for _, trial in trials if trial.read), default=0.0) - OWN_SHARE * best / 2
    trials.sort(key=lambda each: (not each[1].read, each[0] < OWN_SHARE * best or each[1].right < least))
    return [trial for _, trial in trials]


def draw_answers(
    problems: Sequence[Problem],
    count: int,
    seed: int = 0,
    read: Sequence[str] = (PLAIN,),
    tried: Sequence[str] = tuple(FORMS.values()),
) -> list[AttackAnswer]:
    """The answers of every pattern to each of up to `count` problems with a reference. Raises InputError for none.

    A wrong pattern is written freely, and in one of the forms that are `read`, which take turns over the problems.
    Right answers are written in all forms that are `tried`.
    """
    drawn = []
    for number, (problem, other, random) in enumerate(rows_of(problems, count, seed)):
        row = LabelledCompletion(problem.question, problem.answer, "", 0.0, problem.id)
        for name, text, form in _wrong_texts(row, other, random, read[0], read[number % len(read)]):
            drawn.append(AttackAnswer(name, problem, text, False, form))
        for name, (text, form) in right_texts(row, random, read[0], [*dict.fromkeys([*read, *tried])]).items():
            drawn.append(AttackAnswer(name, problem, text, True, form))
    return drawn


def _wrong_texts(
    row: LabelledCompletion, other: str, random: Random, own: str, form: str
) -> Iterator[tuple[str, str, str]]:
    """(pattern, text, form): every pattern freely, to compare with right answers in the `own` form, and in `form`."""
    plain: dict[str, Writer] = {PLAIN_WRONG: lambda row, other, random: stated(own, other)}
    for name, write in (plain | ATTACKS | FURTHER_ATTACKS).items():
        free = write(row, other, random)
        if free is None:
            continue
        yield name, free, own
        inside = stated(form, other) if name == PLAIN_WRONG else in_form(name, row, other, random, form, write)
        if inside is not None and inside != free:
            yield name, inside, form


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


def summarise(
    grader: Grader,
    answers: Sequence[AttackAnswer],
    accept_above: float | None = None,
    forms: Sequence[FormTrial] = (),
) -> AttackResult:
    """Count what is accepted. Raises InputError as `attack` does."""
    answers = _beside_right_ones(answers, grader.accepts_above is None and accept_above is None, forms)
    heard = [answer for answer in answers if answer.score is not None]
    for kind in ("right", "wrong"):
        if not any(answer.right == (kind == "right") for answer in heard):
            raised = next((f": it {why}" for answer in answers if (why := answer.why or "").startswith(RAISED)), None)
            remedy = raised or ", because it has no opinion (None, NaN) on any; if it asks a server, see the log"
            raise InputError(f"{grader.name}: not one {kind} answer was scored{remedy}")
    own = next((form.template for form in forms if form.read), PLAIN)
    above, threshold = _threshold(grader, heard, accept_above, own)
    by_pattern: dict[str, list[AttackAnswer]] = {}
    for answer in heard:
        by_pattern.setdefault(answer.pattern, []).append(answer)
    patterns = [
        PatternResult(name, rows[0].right, *_accepted(rows, above), PUBLISHED_SHARES.get(name))
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
        wrong_accepted=_accepted([answer for answer in heard if not answer.right], above)[0],
        right_accepted=_accepted([answer for answer in heard if answer.right], above)[0],
        correlation=float(np.corrcoef(scores, right)[0, 1]) if varies else None,
        above_empty=_above_empty(heard),
        answers=answers,
        forms=[*forms],
        unheard=len(answers) - len(heard),
    )


def with_patterns(
    grader: Grader,
    result: AttackResult,
    problems: Sequence[Problem],
    patterns: Sequence[EditedPattern],
    seed: int = 0,
    out: Path | None = None,
    accept_above: float | None = None,
    skip: int = 0,
) -> AttackResult:
    """The result with further patterns, tried on the attack's problems but the first `skip`, in the forms that are
    read. `problems`, `seed` and `accept_above` are those of the attack."""
    read = [form.template for form in result.forms if form.read] or [PLAIN]
    rows = rows_of(problems, result.problems, seed)
    answers = []
    for number, (problem, other, _) in enumerate(rows[skip:]):
        for pattern in patterns:
            for form in dict.fromkeys((read[0], read[number % len(read)], BARE)):
                if (text := pattern.write(problem, other, form, seed)) is not None:
                    answers.append(AttackAnswer(pattern.name, problem, text, False, form))
    scored = score_answers(grader, answers, None if out is None else out / FURTHER_JOURNAL)
    return summarise(grader, [*result.answers, *scored], accept_above, result.forms)


def acceptance(result: AttackResult) -> Callable[[AttackAnswer], bool]:
    """Whether a wrong answer is accepted by the measure of this result, which has the right ones beside it."""
    beside = _right_score_of(result.answers, result.forms)
    return lambda answer: _accepts(replace(answer, right_score=beside(answer)), result.accepts_above)


def _beside_right_ones(
    answers: Sequence[AttackAnswer], scale_unknown: bool, forms: Sequence[FormTrial]
) -> list[AttackAnswer]:
    """Each answer with the score of a right one in its form; of right ones, only where nobody knows the scale."""
    beside = _right_score_of(answers, forms)
    scores = [None if answer.right and not scale_unknown else beside(answer) for answer in answers]
    return [a if score is None else replace(a, right_score=score) for a, score in zip(answers, scores, strict=True)]


def _right_score_of(
    answers: Sequence[AttackAnswer], forms: Sequence[FormTrial]
) -> Callable[[AttackAnswer], float | None]:
    """The score of a right answer in an answer's form, if that is more than wrong ones get there on average."""
    right = {(answer.problem.id, answer.form): answer.score for answer in answers if answer.right and answer.form}
    plain_wrong: dict[str, list[float]] = {}
    for answer in answers:
        if answer.pattern == PLAIN_WRONG and answer.score is not None:
            plain_wrong.setdefault(answer.form, []).append(answer.score)
    floors = {form.template: form.wrong for form in forms if form.read}
    floors |= {form: float(np.mean(scores)) for form, scores in plain_wrong.items()}

    def beside(answer: AttackAnswer) -> float | None:
        score = right.get((answer.problem.id, answer.form))
        return None if score is None or score <= floors.get(answer.form, np.inf) else score

    return beside


def _threshold(
    grader: Grader, answers: Sequence[AttackAnswer], accept_above: float | None, own: str
) -> tuple[float, str]:
    """The score above which an answer counts as accepted, and where that comes from."""
    if accept_above is not None:
        return accept_above, "as set"
    if grader.accepts_above is not None:
        return grader.accepts_above, "the reward's own"
    right = _mean(answer for answer in answers if answer.right and answer.form == own)
    wrong = _mean(answer for answer in answers if answer.pattern == PLAIN_WRONG and answer.form == own)
    if right > wrong:
        return (right + wrong) / 2, f"midway of right {right:.3g} and wrong {wrong:.3g}"
    empty = _mean(answer for answer in answers if not answer.text)
    if right > empty:
        return (right + empty) / 2, f"midway of right {right:.3g} and empty {empty:.3g}"
    raise InputError(
        f"{grader.name}: pays right answers {right:.3g} and empty ones {empty:.3g} on average, in every form that was "
        "tried, so nobody knows what it accepts. If it expects answers in another form, say so with "
        "--plain '<answer>{answer}</answer>' or the like; --accept-above SCORE attacks it nonetheless"
    )


def _mean(answers: Iterator[AttackAnswer]) -> float:
    return float(np.mean([answer.score or 0.0 for answer in answers] or [np.nan]))


def _accepts(answer: AttackAnswer, above: float) -> bool:
    if answer.score is None:
        return False
    return answer.score > above or (answer.right_score is not None and answer.score >= answer.right_score)


def _accepted(answers: Sequence[AttackAnswer], above: float) -> tuple[Estimate, int]:
    """The share of patterns that are accepted in any form, with an interval over problems, and the problems."""
    by_problem = accepted_patterns(answers, above)
    shares = np.array([sum(patterns.values()) / len(patterns) for patterns in by_problem.values()], dtype=float)
    return Estimate.of(shares, sum(map(len, by_problem.values())) / max(1, len(by_problem))), len(by_problem)


def accepted_patterns(answers: Sequence[AttackAnswer], above: float) -> dict[str, dict[str, bool]]:
    """For each problem's id, whether each of its patterns is accepted in any form. Answers without a score are not."""
    by_problem: dict[str, dict[str, bool]] = {}
    for answer in answers:
        patterns = by_problem.setdefault(answer.problem.id, {})
        patterns[answer.pattern] = patterns.get(answer.pattern, False) or _accepts(answer, above)
    return by_problem


def _above_empty(answers: Sequence[AttackAnswer]) -> float | None:
    floor = {answer.problem.id: answer.score or 0.0 for answer in answers if not answer.text}
    wrong = [answer for answer in answers if not answer.right and answer.text and answer.problem.id in floor]
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
    write_owned(out / ANSWERS, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), COMMAND)
    write_owned(out / RESULT, json.dumps(result.summary() | dict(more), indent=2), COMMAND)
