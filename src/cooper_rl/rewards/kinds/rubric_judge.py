"""A reward from a judge that grades answers by a rubric, which it writes once for each problem."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from cooper_rl.rewards.base import REWARDS
from cooper_rl.rewards.judging.config import JudgeRewardConfig
from cooper_rl.rewards.judging.judged import Heard, JudgedReward
from cooper_rl.rewards.judging.rubric import (
    WRITING,
    Criterion,
    grading_chat,
    read_grade,
    read_rubric,
    rubric_chat,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cooper_rl.clients.chat import ChatReply
    from cooper_rl.data.problem import Problem
    from cooper_rl.persist.durable import Journal
    from cooper_rl.rewards.context import StepContext
    from cooper_rl.rewards.judging.questioner import Question, Tally


@REWARDS.register
class RubricJudgeConfig(JudgeRewardConfig):
    """The grade of an answer by a rubric for its problem (OpenRubrics, arXiv 2510.07743; mechanism from a secondary
    source). The judge writes the rubric when the problem first comes up, from the question and the reference answer.

    A rubric has hard rules and weighted criteria. An answer that breaks a rule gets 0. The others get the weighted
    share of criteria that they meet.
    """

    needs_reference: ClassVar[bool] = False
    kind: Literal["rubric_judge"] = "rubric_judge"
    """Names this kind of reward."""
    rubrics: str
    """JSONL file in which rubrics are kept, one line per problem. It is made if it does not exist, and later runs with
    the same judge use it. Delete a line to have that rubric written again."""

    def build(self) -> RubricJudge:
        """See the class."""
        return RubricJudge(self)


class RubricJudge(JudgedReward):
    """Grades by rubrics, which are kept on disk. A problem whose rubric cannot be had is not heard, and is asked about
    again when it comes up the next time."""

    def __init__(self, config: RubricJudgeConfig) -> None:
        super().__init__(config.judge)
        self._config = config
        self._journal: Journal | None = None

    def close(self) -> None:
        """Close the file and the connections."""
        super().close()
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _judge(self, context: StepContext, tally: Tally) -> Heard:
        rubrics = self._rubrics([group.problem for group in context.groups], tally)
        questions = [
            self._question(group.problem, rubric, answer.text)
            for group, rubric in zip(context.groups, rubrics, strict=True)
            if rubric is not None
            for answer in group.answers
        ]
        grades = iter(self._questioner.ask(questions, tally))
        return [
            [None if rubric is None else next(grades) for _ in group.answers]
            for group, rubric in zip(context.groups, rubrics, strict=True)
        ]

    def _question(self, problem: Problem, rubric: list[Criterion], text: str) -> Question[float]:
        chat = grading_chat(problem, rubric, text, self._config.judge.max_completion_chars)
        return chat, lambda reply: read_grade(reply, rubric)

    def _rubrics(self, problems: Sequence[Problem], tally: Tally) -> list[list[Criterion] | None]:
        """The rubric of each problem, from the file or from the judge."""
        journal = self._open()
        keys = [_key(problem) for problem in problems]
        new = {key: problem for key, problem in zip(keys, problems, strict=True) if journal.get(key) is None}
        written = self._questioner.ask([(rubric_chat(problem), _readable) for problem in new.values()], tally)
        for (key, problem), text in zip(new.items(), written, strict=True):
            if text is not None:
                journal.put(key, {"question": problem.question, "rubric": text})
        found = [journal.get(key) for key in keys]
        return [None if entry is None else read_rubric(entry["rubric"]) for entry in found]

    def _open(self) -> Journal:
        from cooper_rl.persist.durable import Journal  # noqa: PLC0415 - opened only in a run

        if self._journal is None:
            server = self._config.judge.model_dump(mode="json", include={"model", "temperature", "extra_body"})
            prompt = hashlib.sha256(WRITING.encode()).hexdigest()[:16]
            self._journal = Journal(Path(self._config.rubrics), {"judge": server, "prompt": prompt})
        return self._journal


def _readable(reply: ChatReply) -> str | None:
    """The text of a reply that holds a rubric."""
    return reply.text if reply.failure is None and read_rubric(reply.text) is not None else None


def _key(problem: Problem) -> str:
    return hashlib.sha256(json.dumps([problem.question, problem.answer]).encode()).hexdigest()[:32]
