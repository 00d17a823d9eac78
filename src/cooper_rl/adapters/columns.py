"""From a trainer's row to a problem: which columns hold question, reference answer and solution."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import blake2s
from typing import Any

from cooper_rl.data.mappings import text_of
from cooper_rl.data.problem import Problem
from cooper_rl.data.strict_json import parse_json
from cooper_rl.errors import InputError

_REMEDY = "; name the columns that you have, as in Columns(question='problem', answer='final_answer')"


@dataclass(frozen=True)
class Columns:
    """Names of columns, or of the keys of whatever a trainer hands on of a row.

    The prompt is not the question: it has a system message or a chat template around it, which no reward model should
    read. So the data set needs a column of its own for each. What is None is read from the column of its own name
    where there is one, and may be missing; a column that is named must be there.
    """

    question: str = "question"
    answer: str = "answer"
    """The reference answer."""
    solution: str | None = None
    """A reference solution that ends in the answer."""
    id: str | None = None
    """A name that is unique in the data set. Without it, question and answer make one."""
    rule: str | None = None
    """The rule for this row, as `problems.rule_field`."""
    metadata: str | None = None
    """What a rule or an assistant of your own reads: an object, or its JSON."""

    def check(self, present: Collection[str], where: str = "the data set") -> None:
        """Raises InputError where a column is missing, naming those that are there."""
        for name in filter(None, vars(self).values()):
            if name not in present:
                there = ", ".join(map(repr, present)) or "none"
                raise InputError(f"{where} has no column {name!r} (its columns: {there}){_REMEDY}")

    def problem(self, row: Mapping[str, Any], where: str = "the row") -> Problem:
        """The problem of a row. Raises InputError for a column that is missing, empty, or no text."""
        self.check(row.keys(), where)
        question, answer = self._text(row, "question", where), self._text(row, "answer", where)
        for name, value in ((self.question, question), (self.answer, answer)):
            if not value:
                raise InputError(f"{where}: column {name!r} is empty; a reward model compares with it. Drop such rows")
        return Problem(
            id=self._text(row, "id", where) or blake2s(f"{question}\n{answer}".encode(), digest_size=8).hexdigest(),
            question=question,
            answer=answer,
            solution=self._text(row, "solution", where) or None,
            metadata=self._metadata(row, where),
            rule=self._text(row, "rule", where) or None,
        )

    def _value(self, row: Mapping[str, Any], field: str) -> Any:
        name = getattr(self, field)
        if name is None:
            taken = field in (self.question, self.answer)
            return None if taken else row.get(field)
        return row[name]

    def _text(self, row: Mapping[str, Any], field: str, where: str) -> str:
        try:
            return text_of(self._value(row, field))
        except TypeError as error:
            raise InputError(f"{where}: column {getattr(self, field) or field!r}: {error}{_REMEDY}") from error

    def _metadata(self, row: Mapping[str, Any], where: str) -> dict[str, Any]:
        found = self._value(row, "metadata")
        try:
            found = parse_json(found) if isinstance(found, str) and found else found or {}
        except ValueError as error:
            raise InputError(f"{where}: column {self.metadata or 'metadata'!r} is no JSON: {error}") from error
        if not isinstance(found, dict):
            raise InputError(f"{where}: column {self.metadata or 'metadata'!r} holds no object; write {{}} for none")
        return found
