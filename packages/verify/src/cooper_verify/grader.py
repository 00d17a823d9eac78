"""A grader says of each answer whether it is right, what it is worth, or why it says neither."""

import inspect
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, Self

from cooper_base.data.problem import Problem
from cooper_base.data.verdict import Verdict, is_right
from cooper_base.errors import InputError
from cooper_base.files.hashes import file_hash, text_key
from cooper_base.files.journal import Journal
from cooper_verify.faults import FAULT, isolated

NO_ANSWER = "no_answer_from_server"
UNREADABLE = "unreadable"
TOO_LONG = "too_long"
RAISED = "raised "
"""Begins the reason where code of the user's raised an exception."""
NEEDS_VERDICTS = (
    "that is no verdict: a rule says correct, wrong, unparsed or silent. Take a rule, a judge or a reward model, or "
    "write a class whose `grade` gives verdicts; a score alone can be paid as a reward"
)
"""Why a score cannot stand where a verdict is needed, and what can."""
CHUNK = 128
"""Number of answers after which opinions are written down. An interruption loses at most this many."""


class Asked(NamedTuple):
    """A problem and the text of one completion."""

    problem: Problem
    completion: str

    @classmethod
    def about(cls, question: str, reference: str, completion: str) -> Self:
        """A completion whose problem is nothing but a question and a reference answer."""
        return cls(Problem(question, question, reference), completion)


@dataclass(frozen=True)
class Opinion:
    """A grader's opinion of one answer."""

    verdict: Verdict
    """`correct` accepts the answer, `wrong`, `unparsed` and `timeout` reject it. `silent` says neither: the grader does
    not judge this problem, or gives a number on a scale that nobody knows."""
    score: float | None
    """What the answer is worth. 1 and 0 for a verdict alone, a probability of being right, or any number of a reward.
    None is no opinion, never 0."""
    why: str | None = None
    """Why it is no plain yes or no: `unreadable` (a reply without a verdict), `too_long` (the input does not fit),
    `no_answer_from_server`, `fault` (Cooper's own code raised an exception), `raised …` (the user's did)."""

    @property
    def accepts(self) -> bool | None:
        """Whether it accepts the answer; None if it says neither."""
        return is_right(self.verdict)

    @property
    def failed(self) -> bool:
        """Whether a server did not answer, so that the grader may be asked again."""
        return self.why == NO_ANSWER

    @property
    def named(self) -> str:
        """The reason if there is one, else the verdict."""
        return self.why or self.verdict


class Grader(ABC):
    """Grades answers: a rule, a judge, a reward model, a function, a rubric, a service. Only `grade` is abstract."""

    name: str = "grader"
    """How the user wrote it."""
    accepts_above: float | None = None
    """The score above which it accepts an answer; None if nobody knows its scale."""
    gives_probabilities: bool = False
    """Whether its scores are probabilities of being right."""
    reads_reference: bool = True
    """Whether it compares with the problem's reference answer, which must then verify against itself."""
    gives_verdicts: bool = True
    """Whether it says correct or wrong. If not, its scores are on a scale that nobody knows, and only rewards, attacks
    and audits take it."""
    compares_answers: bool = True
    """Whether an opinion may depend on the other answers to the problem. Say False in a class of yours that reads each
    answer by itself: trainers that score one answer at a time then take it."""

    @abstractmethod
    def grade(self, answers: Sequence[Asked], /) -> list[Opinion]:
        """One opinion for each answer, in order. Answers to one problem stand together."""

    def settings(self) -> dict[str, Any]:
        """What decides its opinions, as JSON values: they are kept in a file only for a grader with the same. By
        default its class, and the contents of the file that the class is in."""
        return {"kind": f"{type(self).__module__}:{type(self).__qualname__}", "files": hashes_of(files_of(type(self)))}

    def check(self, problems: Sequence[Problem]) -> None:
        """Raises InputError if it cannot grade answers to one of these problems."""
        return

    def close(self) -> None:
        """Release processes and connections. A later call of `grade` opens them again."""
        return


def asked_texts(asked: tuple[Problem, str]) -> tuple[str, str, str]:
    """The question, the reference and the completion, for the record of a fault."""
    problem, completion = asked
    return problem.question, problem.answer, completion


def opinions_on(grader: Grader, answers: Sequence[Asked], users_too: bool = False) -> list[Opinion]:
    """What it says of each answer. A grader is not asked about nothing.

    An answer on which it raises has no opinion, for the reason `fault`. Where a grader compares answers, all answers to
    the problem share that. An exception of the user's own code ends the call, unless `users_too`. So does a grader that
    raises on each of several answers, which is broken. Raises InputError for a class of the user's that returns
    anything else than one opinion for each.
    """
    units = [[asked] for asked in answers]
    if grader.compares_answers:
        units = [[*unit] for _, unit in groupby(answers, lambda asked: asked.problem)]

    def ask(units: Sequence[list[Asked]]) -> list[list[Opinion]]:
        given = iter(checked_opinions(grader, [asked for unit in units for asked in unit]))
        return [[next(given) for _ in unit] for unit in units]

    graded = isolated(
        grader.name,
        ask,
        units,
        lambda unit: [Opinion("unparsed", None, FAULT) for _ in unit],
        lambda unit: [text for asked in unit for text in asked_texts(asked)],
        users_too,
    )
    opinions = [opinion for unit in graded for opinion in unit]
    if len(units) > 1 and all(opinion.why == FAULT for opinion in opinions):
        try:
            return checked_opinions(grader, answers)  # raises it once more
        except RaisedApart as error:
            raise InputError(f"{error}. So it does on every answer; correct it") from error
    return opinions


class RaisedApart(RuntimeError):
    """A grader in a process of its own has raised; its traceback stayed there."""


def checked_opinions(grader: Grader, answers: Sequence[Asked]) -> list[Opinion]:
    """What it says of each answer, with whatever it raises; see `opinions_on`."""
    opinions = grader.grade(answers) if answers else []
    if not isinstance(opinions, list) or not all(isinstance(opinion, Opinion) for opinion in opinions):
        raise InputError(f"{grader.name}: grade returned {reprlib.repr(opinions)}; return a list of Opinion")
    if len(opinions) != len(answers):
        raise InputError(
            f"{grader.name}: grade returned {len(opinions)} opinions on {len(answers)} answers; return one for each, "
            "in order"
        )
    return opinions


def verdicts_on(grader: Grader, answers: Sequence[Asked]) -> list[Verdict]:
    """Its verdicts, where they take the place of a rule's: `silent` where a server failed. Raises InputError for a
    score without a verdict."""
    opinions = opinions_on(grader, answers)
    for opinion, (problem, _) in zip(opinions, answers, strict=True):
        if opinion.verdict == "silent" and opinion.score is not None:
            raise InputError(f"{grader.name}: gives problem {problem.id} the score {opinion.score}; {NEEDS_VERDICTS}")
    return ["silent" if opinion.failed else opinion.verdict for opinion in opinions]


def check_gives_verdicts(grader: Grader) -> None:
    """Raises InputError for a grader that gives scores alone, where verdicts are needed."""
    if not grader.gives_verdicts:
        raise InputError(f"{grader.name}: gives scores on a scale that nobody knows; {NEEDS_VERDICTS}")


def in_chunks(answers: Sequence[Asked], size: int = CHUNK) -> Iterator[Sequence[Asked]]:
    """The answers, `size` at a time."""
    return (answers[start : start + size] for start in range(0, len(answers), size))


def opinions_of(grader: Grader, chunks: Iterable[Sequence[Asked]], path: Path | None) -> Iterator[list[Opinion]]:
    """A grader's opinions, chunk by chunk. With `path`, a journal there keeps them, and the same call continues.

    Answers on which a server failed or the grader raised are asked again. An exception of the user's code costs its
    answer too. Raises InputError for a journal of another grader.
    """

    def ask(answers: Sequence[Asked]) -> list[dict[str, Any]]:
        return [asdict(opinion) for opinion in opinions_on(grader, answers, users_too=True)]

    start = 0
    columns = [field.name for field in fields(Opinion)]
    with nullcontext() if path is None else Journal(path, grader.settings() | {"opinion": columns}) as journal:
        for chunk in chunks:
            if journal is None:
                yield opinions_on(grader, chunk, users_too=True)
                continue
            texts = "\0".join(f"{problem.question}\0{problem.answer}\0{text}" for problem, text in chunk)
            key = f"{start} {text_key(texts)}"
            values = journal.completed(key, chunk, ask, lambda value: value["why"] in (NO_ANSWER, FAULT))
            yield [Opinion(**value) for value in values]
            start += len(chunk)


def files_of(of: type) -> list[Path]:
    """The file that a class is in, if it is in one."""
    try:
        file = inspect.getsourcefile(of)
    except TypeError:  # a class that was typed in
        file = None
    return [] if file is None or not Path(file).is_file() else [Path(file)]


def hashes_of(files: Iterable[Path]) -> dict[str, str]:
    """Hashes of the contents of files that decide a grader's opinions, for its `settings`."""
    return {str(path): file_hash(path) for path in files}
