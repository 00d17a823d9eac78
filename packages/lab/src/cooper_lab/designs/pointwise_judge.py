"""A judge as a reward: a language model on a server that says whether an answer agrees with the reference.

The prompt, and how a verdict is read from the reply, are those of `cooper verifyrm label`.
"""

from __future__ import annotations

import asyncio
import json
import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, TypeVar, get_args
from zlib import crc32

from pydantic import Field

from cooper_base.progress import awaited
from cooper_rl import RewardConfig, Scores
from cooper_rl.reward.base import REWARDS, Count
from cooper_verify.clients.chat import ChatClient, ChatConfig, ChatReply, FailureKind, Message
from cooper_verify.clients.limits import waiting_for
from cooper_verify.graders.judgement import judge_chat, judgement_of

if TYPE_CHECKING:
    from cooper_rl import StepContext

T = TypeVar("T")
Question = tuple[list[Message], Callable[[ChatReply], T | None]]
"""A chat, and what reads the reply. The reader returns None for a reply without what is asked for."""
Heard = list[list[float | None]]
"""A number for each answer of each group; None where the judge was not heard."""


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
    """A reward that a judge gives. There is no opinion on answers on which the judge is not heard."""

    metric_names: ClassVar[tuple[str, ...]] = tuple(
        f"judge/{name}" for name in ("mean", "unheard", "requests", "unreadable", "limited_s", "failures_<kind>")
    )
    judge: JudgeServer
    """The server that is asked."""

    def check(self) -> None:
        """Raises InputError if the judge's server does not answer."""
        with ChatClient(self.judge) as client:
            client.check()


@REWARDS.register
class PointwiseJudgeConfig(JudgeRewardConfig):
    """Whether a judge says that an answer agrees with the reference: 1 or 0, or the probability of yes.

    The probability as a reward follows RewardDance (arXiv 2509.08826). The question is that of `cooper verifyrm label`.
    """

    kind: Literal["pointwise_judge"] = "pointwise_judge"
    judge: VerdictServer
    """The server that is asked."""

    def build(self) -> PointwiseJudge:
        return PointwiseJudge(self.judge)


Tally = Counter[str]
"""The number of `requests` of one step, and how many of them failed, by kind."""


class JudgedReward:
    """A reward from a judge. Each kind implements `judge`. The connection opens at the first question."""

    reads_first_token = False

    def __init__(self, server: JudgeServer) -> None:
        self._server = server
        self._client: ChatClient | None = None

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
        if self._client is not None:
            self._client.close()
            self._client = None

    def ask(self, questions: Sequence[Question[T]], tally: Tally) -> list[T | None]:
        """What each question's reader finds in the reply, in order; None where there is nothing to find.

        Equal chats are sent once, with equal seeds, and given up after `step_timeout_s`. `tally` counts the failures.
        """
        texts = [json.dumps(chat) for chat, _ in questions]
        chats = {text: chat for text, (chat, _) in zip(texts, questions, strict=True)}
        replies = self._replies([*chats.values()], [crc32(text.encode()) for text in chats]) if chats else []
        reply_to = dict(zip(chats, replies, strict=True))
        verdicts = [read(reply_to[text]) for text, (_, read) in zip(texts, questions, strict=True)]
        unread = dict.fromkeys(text for text, value in zip(texts, verdicts, strict=True) if value is None)
        tally["requests"] += len(chats)
        tally.update(reply_to[text].failure or "unreadable" for text in unread)
        return verdicts

    def _heard(self, context: StepContext) -> tuple[Heard, dict[str, float]]:
        tally: Tally = Counter()
        values = self.judge(context, tally)
        flat = [value for row in values for value in row]
        metrics = {"judge/unheard": sum(value is None for value in flat) / max(1, len(flat))}
        metrics |= {"judge/requests": Count(tally["requests"]), "judge/unreadable": Count(tally["unreadable"])}
        if self._client is not None and (limited_s := self._client.limits.take_waited_s()):
            metrics["judge/limited_s"] = Count(limited_s)
        return values, metrics | {f"judge/failures_{kind}": Count(tally[kind]) for kind in get_args(FailureKind)}

    @abstractmethod
    def judge(self, context: StepContext, tally: Tally) -> Heard:
        """One number for each answer of each group."""

    def _replies(self, chats: list[list[Message]], seeds: list[int]) -> list[ChatReply]:
        client = self._client = self._client or ChatClient(self._server, self.reads_first_token)

        async def before_deadline() -> list[ChatReply]:
            deadline = asyncio.get_running_loop().time() + self._server.step_timeout_s
            return await client.complete(chats, seeds, deadline)

        return awaited(client.run(before_deadline()), waiting_for)


class PointwiseJudge(JudgedReward):
    def __init__(self, server: VerdictServer) -> None:
        super().__init__(server)
        self.reads_first_token = server.read == "first_token"

    def judge(self, context: StepContext, tally: Tally) -> Heard:
        most = self._server.max_completion_chars
        questions = [
            (judge_chat(group.problem.question, group.problem.answer, answer.transcript, most), self._read)
            for group in context.groups
            for answer in group.answers
        ]
        verdicts = iter(self.ask(questions, tally))
        return [[next(verdicts) for _ in group.answers] for group in context.groups]

    def _read(self, reply: ChatReply) -> float | None:
        judgement = judgement_of(reply, self.reads_first_token)
        if judgement.verdict == "unreadable":
            return None
        return float(judgement.verdict == "yes") if judgement.probability is None else judgement.probability
