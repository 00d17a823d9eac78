"""A reward from a judge that compares answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from cooper_rl.errors import InputError
from cooper_rl.rewards.base import REWARDS
from cooper_rl.rewards.judging.config import JudgeRewardConfig
from cooper_rl.rewards.judging.judged import Heard, JudgedReward
from cooper_rl.rewards.judging.preference import both_orders, preference_chat, read_preference, win_rates

if TYPE_CHECKING:
    from cooper_rl.clients.chat_config import Message
    from cooper_rl.data.problem import Problem
    from cooper_rl.rewards.context import StepContext
    from cooper_rl.rewards.judging.questioner import Tally
    from cooper_rl.rollouts import AnswerGroup

Duel = tuple[str, str]
"""The texts of two answers: the one shown as A, the one shown as B."""


@REWARDS.register
class PairwiseJudgeConfig(JudgeRewardConfig):
    """The share of comparisons that an answer wins, by a judge that sees two answers at a time, in both orders.

    A group of N different answers costs N (N - 1) requests, or 2 N against the solution. Equal texts are a tie and are
    not asked about. The prompt follows RM-R1 (arXiv 2505.02387).
    """

    needs_reference: ClassVar[bool] = False
    kind: Literal["pairwise_judge"] = "pairwise_judge"
    """Names this kind of reward."""
    opponents: Literal["group", "solution"] = "group"
    """What an answer is compared with: the other answers of its `group`, or the data set's `solution`."""

    @property
    def needs_solutions(self) -> bool:
        """Whether the opponents are solutions."""
        return self.opponents == "solution"

    def build(self) -> PairwiseJudge:
        """See the class."""
        return PairwiseJudge(self)


class PairwiseJudge(JudgedReward):
    """Win rates."""

    def __init__(self, config: PairwiseJudgeConfig) -> None:
        super().__init__(config.judge)
        self._config = config

    def _judge(self, context: StepContext, tally: Tally) -> Heard:
        duels = [self._duels(group) for group in context.groups]
        flat = [(group.problem, duel) for group, own in zip(context.groups, duels, strict=True) for duel in own]
        questions = [(self._chat(problem, duel), read_preference) for problem, duel in flat]
        replies = iter(self._questioner.ask(questions, tally))
        heard = [{duel: next(replies) for duel in own} for own in duels]
        return [self._rates(group, own) for group, own in zip(context.groups, heard, strict=True)]

    def _chat(self, problem: Problem, duel: Duel) -> list[Message]:
        return preference_chat(problem, *duel, self._config.judge.max_completion_chars)

    def _opponents(self, group: AnswerGroup) -> list[str]:
        if self._config.opponents == "group":
            return [answer.text for answer in group.answers]
        if group.problem.solution is None:
            raise InputError(
                f"group {group.id}: pairwise_judge compares with the solution of problem {group.problem.id}, which has "
                "none; set `solution`, or use opponents: group"
            )
        return [group.problem.solution]

    def _duels(self, group: AnswerGroup) -> list[Duel]:
        """The comparisons of a group, each once."""
        pairs = [(answer.text, other) for answer in group.answers for other in self._opponents(group)]
        return list(dict.fromkeys(duel for a, b in pairs if a != b for duel in ((a, b), (b, a))))

    def _rates(self, group: AnswerGroup, heard: dict[Duel, float | None]) -> list[float | None]:
        def preferred(text: str, other: str) -> float | None:
            return 0.5 if text == other else both_orders(heard[text, other], heard[other, text])

        opponents = self._opponents(group)
        matrix = [[preferred(answer.text, other) for other in opponents] for answer in group.answers]
        return win_rates(matrix) if self._config.opponents == "group" else [row[0] for row in matrix]
