"""Settings of the rule verifier."""

from pydantic import Field

from cooper_rl.config.base import Config
from cooper_rl.rewards.rule.reference_kind import TextPolicy


class RuleConfig(Config):
    """The rule verifier."""

    workers: int = Field(default=1, ge=1)
    """Verifier processes; each is killed and replaced when an answer takes too long."""
    timeout_s: float = Field(default=5.0, gt=0)
    """Seconds an answer may take before its verdict is `timeout`."""
    text: TextPolicy = "exact"
    """Reference answers that are neither mathematics nor options (names, words, dates, times): `exact` compares them
    as text, `refuse` counts their rows as bad."""
