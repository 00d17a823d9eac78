"""The kinds of rules: one file each, or `kind: package.module:function`."""

from typing import Annotated

from cooper_rl.config.base import Config, Kinds
from cooper_rl.rewards.rule.base import RuleConfig


def _function_rule() -> type[Config]:
    from cooper_rl.rewards.rule.function import FunctionRule  # noqa: PLC0415 - only if a configuration names one

    return FunctionRule


RULES = Kinds("rule", "cooper_rl.rewards.rule.kinds", ["build"], default="maths", of_function=_function_rule)


class OneRule(Config):
    """A single rule, as a command-line option describes it."""

    rule: Annotated[RuleConfig, RULES]
    """The rule."""
