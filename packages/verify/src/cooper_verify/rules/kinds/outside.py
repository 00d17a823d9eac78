"""No rule: the answers bring their own verdicts."""

from typing import Literal

from cooper_base.config.base import Config
from cooper_base.data.problem import Problem
from cooper_verify.rules.kinds.partial import Silent
from cooper_verify.rules.rule import RULES


@RULES.register
class OutsideRule(Config):
    """Every answer brings its verdict (`Answer.verdict`): from unit tests, the end of a game, a grader. Cooper runs
    nobody's code. On texts that are no answers, such as rewritten ones, this rule is silent."""

    kind: Literal["outside"] = "outside"

    def build(self) -> "Outside":
        return Outside()


class Outside(Silent):
    def needs_verdicts(self, problem: Problem) -> bool:
        return True
