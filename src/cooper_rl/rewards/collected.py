"""Answers collected before the run, such as the start policy's, to compare a group's answers with."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from cooper_rl.config.base import Config
from cooper_rl.data.labelled import text_field
from cooper_rl.data.problem import Problem
from cooper_rl.data.readers import read_file
from cooper_rl.errors import InputError

FIELDS = ("question", "completion")


class Collected(Config):
    """References from a file of completions."""

    file: str
    """A table with the fields `question` and `completion`, such as `cooper verifyrm collect` writes with the start
    policy as its only model. Several rows per question are several references."""
    most: int = Field(default=10, ge=1)
    """Most references of a problem; each is one more row per group to score."""

    def read(self) -> dict[str, list[str]]:
        """The completions of each question. Raises InputError for a missing file or a row without these fields."""
        found: dict[str, list[str]] = {}
        for row in read_file(Path(self.file)):
            missing = [name for name in FIELDS if name not in row.fields]
            if missing:
                raise InputError(f"{row.location}: no field {missing[0]!r}; each row needs {' and '.join(FIELDS)}")
            own = found.setdefault(text_field(row, "question"), [])
            if len(own) < self.most:
                own.append(text_field(row, "completion"))
        return found

    def check(self, problems: Sequence[Problem]) -> None:
        """Raises InputError if the file has no completion of a problem."""
        known = self.read()
        without = [problem.id for problem in problems if problem.question.strip() not in known]
        if without:
            raise InputError(
                f"{self.file}: holds no completion for {len(without)} of {len(problems)} problems, the first is "
                f"{without[0]}; collect completions for all of the run's problems, or use other references"
            )
