"""The kinds of rules: a file here, or `kind: package.module:function`."""

from cooper_rl.config.base import Config
from cooper_rl.config.registry import Kinds


def _function_rule() -> type[Config]:
    from cooper_rl.rewards.rule.function import FunctionRule  # noqa: PLC0415 - only where a configuration names one

    return FunctionRule


RULES = Kinds("rule", "cooper_rl.rewards.rule.kinds", ["build"], default="maths", of_function=_function_rule)
