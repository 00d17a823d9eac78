"""A judge as a grader and a reward: a language model on a server that says if an answer agrees with the reference.

The prompt, and how a verdict is read from the reply, are those of `cooper verifyrm label`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, get_args

from pydantic import Field

from cooper_rl import Problem, RewardConfig, Scores
from cooper_rl.reward.base import Count
from cooper_verify import Asked, Grader, Opinion
from cooper_verify.clients.chat import HANDLING, ChatClient, ChatConfig, ChatReply, FailureKind
from cooper_verify.grader import NO_ANSWER, UNREADABLE
from cooper_verify.graders.judge import ChatAsking, Question, Tally
from cooper_verify.graders.judgement import judge_chat, judgement_of

if TYPE_CHECKING:
    from cooper_rl import StepContext

T = TypeVar("T")
ProblemAndTexts = tuple[Problem, Sequence[str]]
"""A problem and the answers to it."""
Heard = list[list[float | None]]
"""A number for each answer to each problem; None where the judge was not heard."""
SAID = frozenset({"empty", "truncated"})
"""Failures in which the judge replied: asked again, it would reply the same."""


class JudgeServer(ChatConfig):
    """A judge behind an OpenAI-compatible server."""

    temperature: float = Field(default=0.0, ge=0)
    """Sampling temperature."""
    max_tokens: int = Field(default=1024, ge=1)
    """Longest reply, in tokens. A judge that reaches it is not heard."""
    step_timeout_s: float = Field(default=300.0, gt=0)
    """Seconds that the judge may take for all completions of a step, including retries and waits. There is no
    opinion on answers without a verdict by then. The run waits for the judge."""
    max_completion_chars: int = Field(default=6000, ge=100)
    """Most characters of a completion that the judge reads. A longer one loses its middle."""


class VerdictServer(JudgeServer):
    """A judge that says yes or no."""

    read: Literal["text", "first_token"] = "text"
    """`text` parses the reply into 1 or 0. `first_token` pays the probability of yes, relative to yes and no, as the
    first token; the server must send probabilities."""
    max_tokens: int = Field(default=16, ge=1)
    """Longest reply, in tokens. A judge that thinks aloud needs more. With `first_token` only one is asked for."""


class JudgeRewardConfig(RewardConfig):
    """A reward that a judge gives. There is no opinion on answers on which the judge is not heard. In Python,
    `grader()` is the same judge as a grader."""

    compares_answers: ClassVar[bool] = False
    metric_names: ClassVar[tuple[str, ...]] = tuple(
        f"judge/{name}" for name in ("mean", "unheard", "requests", "unreadable", "failures_<kind>")
    )
    judge: JudgeServer
    """The server that is asked."""

    def check(self) -> None:
        """Raises InputError if the judge's server does not answer."""
        with ChatClient(self.judge) as client:
            client.check()

    @abstractmethod
    def grader(self) -> ServerJudge:
        """The judge."""

    def build(self) -> JudgedReward:
        return JudgedReward(self.grader())


class PointwiseJudgeConfig(JudgeRewardConfig):
    """Whether a judge says that an answer agrees with the reference: 1 or 0, or the probability of yes.

    The probability as a reward follows RewardDance (arXiv 2509.08826). The question is that of `cooper verifyrm label`.
    """

    judge: VerdictServer
    """The server that is asked."""

    def grader(self) -> PointwiseJudge:
        return PointwiseJudge(self.judge)


class ServerJudge(Grader):
    """A grader that asks a chat server. Each kind implements `values`. The connection opens at the first question."""

    compares_answers = False
    reads_first_token = False

    def __init__(self, server: JudgeServer) -> None:
        self.server = server
        self.tally: Tally = Counter()
        """The requests since the last `take_tally`."""
        self.asking = ChatAsking(server, self.reads_first_token)

    @abstractmethod
    def values(self, asked: Sequence[ProblemAndTexts]) -> Heard:
        """One number for each answer to each problem, None where the judge was not heard."""

    def opinion(self, value: float) -> Opinion:
        """The opinion that a number stands for. Without another word, nobody knows its scale."""
        return Opinion("silent", value)

    def settings(self) -> dict[str, Any]:
        """The settings that decide the judge's replies."""
        server = {name: value for name, value in self.server.model_dump(mode="json").items() if name not in HANDLING}
        return {"kind": type(self).__name__, "judge": server}

    def grade(self, answers: Sequence[Asked], /) -> list[Opinion]:
        """The judge's numbers. Where it was not heard, `unreadable`; if its server failed, it may be asked again."""
        before = Counter(self.tally)
        rows = [(problem, [*rows]) for problem, rows in groupby(answers, key=lambda asked: asked.problem)]
        heard = self.values([(problem, [text for _, text in rows]) for problem, rows in rows])
        failed = any(kind in get_args(FailureKind) and kind not in SAID for kind in self.tally - before)
        unheard = Opinion("unparsed", None, NO_ANSWER if failed else UNREADABLE)
        return [unheard if value is None else self.opinion(value) for row in heard for value in row]

    def ask(self, questions: Sequence[Question[T]]) -> list[T | None]:
        """What each question's reader finds in the reply, in order; None where there is nothing to find. Requests are
        given up after `step_timeout_s`."""
        return self.asking.ask(questions, self.tally, self.server.step_timeout_s)

    def take_tally(self) -> Tally:
        """The requests, and failures by kind, since the last call."""
        tally, self.tally = self.tally, Counter()
        return tally

    def close(self) -> None:
        self.asking.close()


class JudgedReward:
    """A judge's numbers as a reward."""

    def __init__(self, judge: ServerJudge) -> None:
        self._judge = judge

    def score(self, context: StepContext) -> Scores:
        """The judge's numbers (the part `judge`), NaN where it was not heard: no opinion.

        The part `judge_heard` is 1.0 where it was heard. Metrics: `judge/unheard`, the share of the other answers,
        `judge/requests`, `judge/unreadable` (replies without a verdict) and `judge/failures_<kind>`. The answers of a
        context are judged once, also if a reward model learns in between.
        """
        values, metrics = context.once(self, lambda: self._heard(context))
        judged = context.ragged([math.nan if value is None else value for row in values for value in row])
        heard = context.ragged([float(value is not None) for row in values for value in row])
        if len(opinions := judged.opinions().flat):
            metrics = {**metrics, "judge/mean": opinions.mean().item()}
        return Scores(judged, {"judge": judged, "judge_heard": heard}, metrics)

    def close(self) -> None:
        self._judge.close()

    def _heard(self, context: StepContext) -> tuple[Heard, dict[str, float]]:
        values = self._judge.values(
            [(group.problem, [answer.transcript for answer in group.answers]) for group in context.groups]
        )
        tally = self._judge.take_tally()
        flat = [value for row in values for value in row]
        metrics = {"judge/unheard": sum(value is None for value in flat) / max(1, len(flat))}
        metrics |= {"judge/requests": Count(tally["requests"]), "judge/unreadable": Count(tally["unreadable"])}
        return values, metrics | {f"judge/failures_{kind}": Count(tally[kind]) for kind in get_args(FailureKind)}


class PointwiseJudge(ServerJudge):
    """Says yes or no, as the judge of `cooper verifyrm label`."""

    accepts_above = 0.5

    def __init__(self, server: VerdictServer) -> None:
        self.reads_first_token = self.gives_probabilities = server.read == "first_token"
        super().__init__(server)

    def values(self, asked: Sequence[ProblemAndTexts]) -> Heard:
        most = self.server.max_completion_chars
        questions = [
            (judge_chat(problem.question, problem.answer, text, most), self._read)
            for problem, texts in asked
            for text in texts
        ]
        verdicts = iter(self.ask(questions))
        return [[next(verdicts) for _ in texts] for _, texts in asked]

    def opinion(self, value: float) -> Opinion:
        return Opinion("correct" if value > 0.5 else "wrong", value)

    def _read(self, reply: ChatReply) -> float | None:
        judgement = judgement_of(reply, self.reads_first_token)
        if judgement.verdict == "unreadable":
            return None
        return float(judgement.verdict == "yes") if judgement.probability is None else judgement.probability
