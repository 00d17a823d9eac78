"""The same hole in the rule and in the reward model."""

from typing import Any, ClassVar, Literal

from cooper_lab.arena.hole import Where
from cooper_lab.arena.holes import HOLES
from cooper_lab.arena.holes.answer_lists import AnswerLists
from cooper_lab.arena.holes.rule_blind_spot import RuleBlindSpot


@HOLES.register
class Both(AnswerLists):
    """Rule and reward model accept lists of answers. Cooptimization learns from the rule, so it cannot help."""

    about: ClassVar[str] = "a list of answers, by the rule and the reward model"
    where: ClassVar[Where] = "both"
    rule: ClassVar[dict[str, Any] | None] = RuleBlindSpot.rule

    kind: Literal["both"] = "both"
    """Names this hole."""
