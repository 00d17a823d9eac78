"""The configuration of one training run: every setting, its default and what it means."""

from pathlib import PurePath
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from cooper_rl.config.base import Config
from cooper_rl.cooptimization.reward_config import CooperRewardConfig
from cooper_rl.data.config import ProblemsConfig
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.sampling import SamplingParams
from cooper_rl.observe.sinks import AnySink
from cooper_rl.observe.watch.rules import WatchRule
from cooper_rl.policy.config import AlgorithmConfig
from cooper_rl.policy.overlong import OverlongConfig
from cooper_rl.rewards.shaping.overlong import Overlong
from cooper_rl.verifyrm.train.config import MonitorConfig


class RolloutConfig(SamplingParams):
    """How the groups of a training step are sampled."""

    temperature: float = Field(default=1.0, ge=0)
    """Divides the logits: of the sampler, and wherever learner and reference take log-probabilities, so that ratios,
    gradient, KL term and entropy are those of the distribution that is sampled. Above 0."""
    n: int = Field(default=8, ge=1)
    """Completions per problem."""
    max_rows: int = Field(default=0, ge=0)
    """Most completions sampled at once; 0 samples the whole step together."""
    lag: int = Field(default=0, ge=0, le=1)
    """Updates of the policy after which completions are learned from. At 1 the engine draws for the next step while
    this one learns, which saves time where it has devices of its own; `loss.truncated_importance_sampling` corrects."""


class EvaluationConfig(Config):
    """Evaluation on held-out problems during the run."""

    every: int = Field(default=0, ge=0)
    """Steps between evaluations, besides one before the first step and one after the last; 0 never evaluates."""
    k: int = Field(default=8, ge=1)
    """Samples per problem."""
    temperature: float = Field(default=0.7, ge=0)
    """Sampling temperature."""
    top_p: float = Field(default=0.95, gt=0, le=1)
    """Nucleus sampling."""
    batch_size: int = Field(default=32, ge=1)
    """Problems sampled at once."""


class CheckpointConfig(Config):
    """Checkpoints of both models, both optimizers, random states and the data cursor."""

    every: int = Field(default=50, ge=0)
    """Steps between checkpoints; 0 writes only the last."""
    keep: int = Field(default=2, ge=1)
    """Newest checkpoints kept."""
    keep_best: str | None = None
    """A metric such as `test/rule_avg`: a step with a new best value gets a checkpoint, kept until a better one."""
    best: Literal["max", "min"] = "max"
    """Whether the highest or the lowest value of `keep_best` is the best."""


class RunConfig(CooperRewardConfig):
    """Everything `cooper train` needs to know."""

    name: str = "run"
    """Folder of the run inside `output_dir`; `sweep/first` is a folder in a folder."""
    output_dir: str = "runs"
    """Where runs are written."""
    preset: Literal["cooper", "paper"] = "cooper"
    """Defaults of stage 2 and the algorithm: ours, or the paper's published behaviour. Explicit settings win."""
    threads: int | None = Field(default=None, ge=1)
    """CPU threads for tensor work; by default OMP_NUM_THREADS, else the cores this process may use."""
    steps: int = Field(default=180, ge=1)
    """Policy updates in the whole run."""
    problems_per_step: int = Field(default=32, ge=1)
    """Groups per step."""

    policy: LearnerConfig
    """The model trained with reinforcement learning."""
    problems: ProblemsConfig
    """Training problems."""
    test_problems: ProblemsConfig | None = None
    """Held-out problems for `evaluation`."""
    rollout: RolloutConfig = RolloutConfig()
    """Sampling of training groups."""
    algorithm: AlgorithmConfig = AlgorithmConfig()
    """Advantages, policy loss, KL term, aggregation."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """Held-out evaluation."""
    monitor: MonitorConfig | None = None
    """Held-out accuracy and attack rate of the reward model during the run."""
    checkpoint: CheckpointConfig = CheckpointConfig()
    """Checkpoints."""
    sinks: tuple[AnySink, ...] = ()
    """Where metrics go besides the run's folder and, where it is installed, TensorBoard."""
    watch: tuple[WatchRule, ...] = ()
    """What counts as a fault of training, beside the default rules, and what happens then."""

    @field_validator("name")
    @classmethod
    def _stays_inside(cls, name: str) -> str:
        path = PurePath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise ValueError("the run would be written outside its own folder in output_dir; write a plain name")
        return name

    @property
    def planned_steps(self) -> int | None:
        """`steps`."""
        return self.steps

    @property
    def watch_rules(self) -> tuple[WatchRule, ...]:
        """The user's rules. Where neither rule nor reward model pays, a rule that finds no right answer is no fault."""
        if self.needs_references:
            return self.watch
        return (*self.watch, WatchRule(metric="rule/accuracy", action="ignore"))

    @model_validator(mode="after")
    def _settings_agree(self) -> Self:
        if self.evaluation.every and self.test_problems is None:
            raise ValueError("evaluation.every is set but test_problems is missing; add test_problems or set it to 0")
        best = self.checkpoint.keep_best or ""
        if best.startswith("test/") and not self.evaluation.every:
            raise ValueError(f"checkpoint.keep_best: {best} is measured by the evaluation; set evaluation.every")
        if best.startswith("monitor/") and self.monitor is None:
            raise ValueError(f"checkpoint.keep_best: {best} is measured by the monitor; add monitor")
        if self.monitor is not None and not self.used_models:
            raise ValueError(f"monitor measures the reward model and kind: {self.kind} has none; remove monitor")
        back = [rule.metric for rule in self.watch if rule.action == "rollback"]
        if back and not self.checkpoint.every:
            raise ValueError(f"watch: {back[0]} rolls back to a checkpoint; set checkpoint.every to some steps")
        if self.rollout.n == 1:
            raise ValueError("rollout.n: 1 leaves the advantages nothing to compare with; use n >= 2")
        if self.rollout.temperature == 0:
            raise ValueError(
                "rollout.temperature: 0 always takes the most likely token, so the completions of a group are all the "
                "same and nothing is learned; set it above 0 (only evaluation.temperature may be 0)"
            )
        if self.rollout.lag and self.algorithm.loss.truncated_importance_sampling is None:
            raise ValueError(
                f"rollout.lag: {self.rollout.lag} learns from completions of an older policy, which the loss has to "
                "correct for; set algorithm.loss.truncated_importance_sampling: 2 and "
                "algorithm.recompute_old_logprobs: true, or rollout.lag: 0"
            )
        overlong = self.algorithm.overlong
        if overlong.kind == "penalise" and overlong.buffer > self.rollout.max_tokens:
            raise ValueError(
                f"algorithm.overlong.buffer: {overlong.buffer} exceeds rollout.max_tokens: {self.rollout.max_tokens}; "
                "the penalty starts that many tokens before the limit"
            )
        self._move_overlong_penalty()
        if self.algorithm.minibatches > self.problems_per_step:
            raise ValueError("algorithm.minibatches exceeds problems_per_step; a minibatch holds at least one group")
        return self

    def _move_overlong_penalty(self) -> None:
        """`algorithm.overlong.kind: penalise` is the short form of a shaping."""
        overlong = self.algorithm.overlong
        if overlong.kind != "penalise":
            return
        limit = self.rollout.max_tokens
        penalty = Overlong(max_tokens=limit, buffer=overlong.buffer, factor=overlong.factor)
        kept = self.algorithm.model_copy(update={"overlong": OverlongConfig()})
        vars(self).update(shaping=(*self.shaping, penalty), algorithm=kept)
