"""A reward from a judge that reads one answer at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cooper_rl.rewards.base import REWARDS
from cooper_rl.rewards.judging.config import JudgeRewardConfig, VerdictServer
from cooper_rl.rewards.judging.judged import Heard, JudgedReward
from cooper_rl.rewards.judging.verdict import judgement_of
from cooper_rl.rewards.judging.verdict_prompt import judge_chat

if TYPE_CHECKING:
    from cooper_rl.clients.chat import ChatReply
    from cooper_rl.rewards.context import StepContext
    from cooper_rl.rewards.judging.questioner import Tally


@REWARDS.register
class PointwiseJudgeConfig(JudgeRewardConfig):
    """Whether a judge says that an answer agrees with the reference: 1 or 0, or the probability of yes.

    The probability as a reward follows RewardDance (arXiv 2509.08826). The question is that of `cooper verifyrm label`.
    """

    kind: Literal["pointwise_judge"] = "pointwise_judge"
    """Names this kind of reward."""
    judge: VerdictServer
    """The server that is asked."""

    def build(self) -> PointwiseJudge:
        """See the class."""
        return PointwiseJudge(self.judge)


class PointwiseJudge(JudgedReward):
    """Verdicts on single answers."""

    def __init__(self, server: VerdictServer) -> None:
        super().__init__(server.asked())
        self._server = server

    def _judge(self, context: StepContext, tally: Tally) -> Heard:
        most = self._server.max_completion_chars
        questions = [
            (judge_chat(group.problem.question, group.problem.answer, answer.text, most), self._read)
            for group in context.groups
            for answer in group.answers
        ]
        found = iter(self._questioner.ask(questions, tally))
        return [[next(found) for _ in group.answers] for group in context.groups]

    def _read(self, reply: ChatReply) -> float | None:
        judgement = judgement_of(reply, self._server.read == "first_token")
        if judgement.verdict == "unreadable":
            return None
        return float(judgement.verdict == "yes") if judgement.probability is None else judgement.probability
