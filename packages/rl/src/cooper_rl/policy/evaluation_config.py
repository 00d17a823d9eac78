"""Settings of `cooper eval`: what a model is measured on, and how."""

from typing import Annotated

from pydantic import Field

from cooper_base.config.base import Config
from cooper_rl.engines import EngineConfig
from cooper_rl.engines.local import LocalEngine
from cooper_verify.problems.config import ProblemsConfig
from cooper_verify.rules.kinds.maths import MathsRule
from cooper_verify.rules.rule import RULES, RuleConfig


class EvaluationEngine(Config):
    """The engine that samples the completions of an evaluation outside a run."""

    engine: EngineConfig = LocalEngine()
    """`local` draws with the native sampler, `vllm` starts a vLLM engine with the model."""


class EvalConfig(EvaluationEngine):
    """What `cooper eval` measures and how. For a run's policy, the defaults are the run's own settings."""

    problems: ProblemsConfig
    """The problems; `problems=FILE` is short for `problems.source=FILE`. For a run's policy, the default is the run's
    test problems. With another source, the problems are read, asked and judged like these."""
    k: int = Field(default=8, ge=1)
    """Samples per problem."""
    temperature: float = Field(default=0.7, ge=0)
    """Sampling temperature."""
    top_p: float = Field(default=0.95, gt=0, le=1)
    """Nucleus sampling: probability mass of the tokens that may be drawn."""
    max_tokens: int = Field(default=512, ge=1)
    """Most tokens of a completion."""
    batch_size: int = Field(default=16, ge=1)
    """Problems sampled at once; 256 by default with vLLM, which divides them itself."""
    seed: int = 0
    """Seed of the sampling."""
    threads: int | None = Field(default=None, ge=1)
    """CPU threads for tensor work."""
    rule: Annotated[RuleConfig, RULES] = MathsRule()
    """The rule; `rule=exact` is short for `rule.kind=exact`."""
