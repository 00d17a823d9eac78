"""The default rule: it compares mathematics by value, options by letter, and any other reference as text."""

from typing import Any, Literal

from pydantic import Field

from cooper_rl.config.base import Config
from cooper_rl.rewards.rule.base import RuleConfig
from cooper_rl.rewards.rule.kinds import RULES
from cooper_rl.rewards.rule.reference_kind import TextPolicy
from cooper_rl.rewards.rule.verifier import RuleVerifier


@RULES.register
class MathsRule(Config):
    """Compares mathematics by value, in processes that can be killed; options by letter; all else as text."""

    kind: Literal["maths"] = "maths"
    """Names this kind of rule."""
    workers: int = Field(default=1, ge=1)
    """Number of verifier processes: so many answers are checked at a time."""
    timeout_s: float = Field(default=5.0, gt=0)
    """CPU seconds that checking an answer may take before its verdict is `timeout`. How busy the machine is does not
    count."""
    text: TextPolicy = "exact"
    """What to do with reference answers that are neither mathematics nor options (names, words, dates, times): `exact`
    compares them as text, `refuse` counts their rows as bad."""
    expressions: bool = False
    """Whether an expression with the value of a reference that is a number is `correct`: `19 - 10` and `Find 19 - 10.`
    for 9. This is Math-Verify's reading, and it pays whoever copies the question. Without it they are `unparsed`."""

    def build(self) -> RuleVerifier:
        """The verifier. Its processes start when an answer first needs one."""
        return RuleVerifier(self.workers, self.timeout_s, text=self.text, expressions=self.expressions)


def rule_settings(rule: RuleConfig | None) -> dict[str, Any]:
    """The rule's entry in a journal: the settings that decide its verdicts, or nothing for the default `maths`."""
    if rule is None or not isinstance(rule, Config):
        return {}
    decisive = {name: value for name, value in RULES.dump(rule).items() if name not in ("workers", "timeout_s")}
    if isinstance(rule, MathsRule):
        default = RULES.dump(MathsRule())
        decisive = {name: value for name, value in decisive.items() if name == "kind" or value != default[name]}
    return {} if decisive == {"kind": "maths"} else {"rule": decisive}
