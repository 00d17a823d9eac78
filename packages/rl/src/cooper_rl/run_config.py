"""The configuration of one training run: every setting, its default and its meaning."""

from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from cooper_audit.run.metric_names import OF_REFERENCES, area_of, fault_of_metric, metric_names
from cooper_audit.run.watch_rules import WatchRule
from cooper_base.config.base import Config, Places, given_settings, is_outside, records_within
from cooper_base.config.checking import Settings, check_settings, read_settings
from cooper_rl.engines.config import LearnerConfig, RolloutConfig
from cooper_rl.policy.config import AlgorithmConfig
from cooper_rl.record import AnySink
from cooper_rl.record.checkpoint import CheckpointConfig
from cooper_rl.reward.kinds.function import FunctionRewardConfig
from cooper_rl.reward.kinds.plain import RewardModelReward
from cooper_rl.reward.monitor_config import MonitorConfig
from cooper_rl.reward.reward_config import CooperRewardConfig
from cooper_rl.reward.shaping import check_effect
from cooper_verify.problems.config import CurriculumConfig, ProblemsConfig, with_form_of


class EvaluationConfig(Config):
    """Evaluation on held-out problems during the run."""

    every: int = Field(default=0, ge=0)
    """Steps between evaluations. There is also one before the first step and one after the last. 0 never evaluates."""
    k: int = Field(default=8, ge=1)
    """Samples per problem."""
    temperature: float = Field(default=0.7, ge=0)
    """Sampling temperature."""
    top_p: float = Field(default=0.95, gt=0, le=1)
    """Nucleus sampling: probability mass of the tokens that may be drawn."""
    batch_size: int = Field(default=32, ge=1)
    """Problems sampled at once."""


class RunConfig(CooperRewardConfig):
    """Everything `cooper train` needs to know."""

    name: str = "run"
    """Folder of the run inside `output_dir`. Nested folders such as `sweep/first` are allowed."""
    output_dir: str = "runs"
    """Folder in which runs are written."""
    threads: int | None = Field(default=None, ge=1)
    """CPU threads for tensor work. The default is OMP_NUM_THREADS or, if that is not set, the number of cores this
    process may use."""
    steps: int = Field(default=180, ge=1)
    """Policy updates in the whole run."""
    problems_per_step: int = Field(default=32, ge=1)
    """Groups per step."""

    policy: LearnerConfig
    """The model trained with reinforcement learning."""
    problems: ProblemsConfig
    """Training problems."""
    more_problems: dict[Annotated[str, Field(pattern=r"^[a-z0-9_-]+$")], ProblemsConfig] = Field(default_factory=dict)
    """Further sets of training problems, by name. A set takes `format`, fields, `rule`, `unverified`, `gold` and
    `prompt` from `problems`, setting by setting, where it does not set them. `weight` in every set says how much of
    each a step draws; their problems have the ids `NAME/id`."""
    curriculum: CurriculumConfig | None = None
    """The order of the training problems by what has been measured; null shuffles every epoch."""
    test_problems: ProblemsConfig | None = None
    """Held-out problems for `evaluation`. Each setting of how data is read, asked and judged (`format`, the fields,
    `rule`, `rule_field`, `unverified`, `gold`, `prompt`) defaults to that of `problems`. The settings that select
    problems (`source`, `split`, `limit`, `skip`, seeds, …) do not."""
    more_test_problems: dict[Annotated[str, Field(pattern=r"^[a-z0-9_-]+$")], ProblemsConfig] = Field(
        default_factory=dict
    )
    """Further sets of held-out problems, by name, such as one from another source. Their settings default to those of
    `test_problems` in the same way, and they are measured with it; the metrics are `test/NAME/rule_avg` and so on."""
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
    callbacks: tuple[Annotated[str, Field(pattern=r"^[\w.]+:\w+$")], ...] = ()
    """Your own subclasses of `cooper_rl.Callback`, as `package.module:Class`: called before and after a step, on
    saving and on evaluation."""
    sinks: tuple[AnySink, ...] = ()
    """Further places that metrics are sent to, besides the run's folder and, if it is installed, TensorBoard."""
    watch: tuple[WatchRule, ...] = ()
    """Rules, in addition to the default ones, that say what counts as a training fault and what to do about it."""

    @classmethod
    def expand(cls, settings: dict[str, Any]) -> tuple[dict[str, Any], Places]:
        """The recipe, and the form of `problems` in the other sets of problems."""
        settings, places = super().expand(settings)
        if isinstance(settings.get("problems"), list):
            raise ValueError("problems: name one set here, and further ones in more_problems: {name: {source: ...}}")
        return _with_forms(settings, places), places

    @field_validator("name")
    @classmethod
    def _stays_inside(cls, name: str) -> str:
        path = PurePath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise ValueError("the run would be written outside its own folder in output_dir; use a plain name")
        return name

    @property
    def planned_steps(self) -> int | None:
        return self.steps

    @property
    def environment(self) -> str | None:
        return self.rollout.environment

    @property
    def parts(self) -> tuple[Config, ...]:
        """Those of the reward, and the estimator of advantages."""
        return (*super().parts, self.algorithm.advantages)

    @property
    def test_sets(self) -> dict[str, ProblemsConfig]:
        """What evaluations measure: `test_problems` under the name "", and `more_test_problems`."""
        if self.test_problems is None or not self.evaluation.every:
            return {}
        return {"": self.test_problems, **self.more_test_problems}

    @property
    def training_sets(self) -> dict[str, ProblemsConfig]:
        """`problems` under the name "", and `more_problems`."""
        return {"": self.problems, **self.more_problems}

    @property
    def set_weights(self) -> dict[str, float] | None:
        """The weight of every training set; None if they are mixed as one."""
        weights = {
            name: problems.weight for name, problems in self.training_sets.items() if problems.weight is not None
        }
        return weights if self.more_problems and weights else None

    @property
    def watch_rules(self) -> tuple[WatchRule, ...]:
        """The user's rules. If nothing reads a reference answer, a rule that accepts nothing is not a fault; nor are
        probabilities that are all alike, if the reward model's logit pays."""
        of_the_rule = () if self.needs_references else ("rule/accuracy", "policy/unverified_advantage")
        pays_logits = any(isinstance(part, RewardModelReward) and part.pays == "logit" for part in self.rewards)
        of_probabilities = ("reward_model/std",) if pays_logits else ()
        ignored = [WatchRule(metric=metric, action="ignore") for metric in (*of_the_rule, *of_probabilities)]
        return (*self.watch, *ignored)

    @property
    def off_policy(self) -> str | None:
        """Why the sampler's log-probabilities are not those of the policy that learns; None if they are."""
        if self.rollout.lag:
            return f"rollout.lag: {self.rollout.lag} learns from completions of an older policy"
        if self.engine.draws_elsewhere:
            return "another engine draws than learns, and its probabilities differ a little"
        return None

    @model_validator(mode="after")
    def _corrects_what_is_off_policy(self) -> Self:
        if self.off_policy is not None:
            object.__setattr__(self, "algorithm", self.algorithm.corrected())  # the record is frozen for its users
        return self

    @model_validator(mode="after")
    def _settings_agree(self) -> Self:
        if self.evaluation.every and self.test_problems is None:
            raise ValueError("evaluation.every is set but test_problems is missing; add test_problems or set it to 0")
        if self.more_test_problems and self.test_problems is None:
            raise ValueError("more_test_problems comes on top of test_problems, which is missing; add it")
        sets = self.training_sets.values()
        if len({problems.weight is None for problems in sets}) > 1:
            raise ValueError("more_problems: only some sets have a weight; give one to problems and each of these")
        if len({problems.gold for problems in sets}) > 1:
            raise ValueError("more_problems: gold labels all problems of a step or none; set the same gold everywhere")
        if any(problems.weight is not None for problems in self.test_sets.values()):
            raise ValueError("test_problems.weight: only training sets are weighted; remove it")
        self._check_metrics()
        if self.monitor is not None and self.loaded_model is None:
            raise ValueError(f"monitor measures the reward model, but kind: {self.kind} has none; remove monitor")
        back = [rule.metric for rule in self.watch if rule.action == "rollback"]
        if back and not self.checkpoint.every:
            raise ValueError(f"watch: {back[0]} rolls back to a checkpoint; set checkpoint.every above 0")
        self._check_rollouts()
        check_effect(self.shaping, self.algorithm)
        self.algorithm.advantages.check_run(self)
        if self.algorithm.minibatches > self.problems_per_step:
            raise ValueError("algorithm.minibatches exceeds problems_per_step; a minibatch holds at least one group")
        return self

    def _check_rollouts(self) -> None:
        """Raises ValueError for ways to sample from which this run could not learn."""
        if self.rollout.n == 1:
            raise ValueError("rollout.n: a group of 1 completion has nothing to compare with; use n >= 2")
        if self.rollout.temperature == 0:
            raise ValueError(
                "rollout.temperature: 0 always takes the most likely token, so all completions of a group are the same "
                "and nothing is learned; set it above 0 (only evaluation.temperature may be 0)"
            )
        if self.rollout.lag and self.algorithm.loss.truncated_importance_sampling is None:
            raise ValueError(
                f"{self.off_policy}, which the loss has to correct for; leave out "
                "algorithm.loss.truncated_importance_sampling and algorithm.recompute_old_logprobs, whose defaults do, "
                "or set rollout.lag: 0"
            )
        if self.rollout.environment and self.rollout.lag:
            raise ValueError("rollout.lag: rollouts in an environment cannot be drawn ahead; set it to 0")
        if self.rollout.environment and self.rollout.resample:
            raise ValueError("rollout.resample: runs in an environment are not drawn again; leave one of the two out")
        if self.rollout.lag and self.rollout.resample:
            raise ValueError("rollout.resample: draws more after the rewards are known; set rollout.lag: 0")

    def _check_metrics(self) -> None:
        """Raises ValueError for a metric that no step of this run will record."""
        records = [*records_within([self.rewards, self.shaping, self.algorithm, self.cooptimization, self.engine])]
        functions = [
            record.function.rpartition(":")[2] for record in records if isinstance(record, FunctionRewardConfig)
        ]
        of_parts = [name for record in records for name in record.metric_names]
        names = [*metric_names(functions, self.more_test_problems), *of_parts]
        others = bool(self.callbacks) or any(map(is_outside, records))
        best = self.checkpoint.keep_best
        given = {f"watch.{place}.metric": rule.metric for place, rule in enumerate(self.watch)}
        for setting, metric in (given | ({} if best is None else {"checkpoint.keep_best": best})).items():
            if fault := fault_of_metric(metric, names, others):
                raise ValueError(f"{setting}: {fault}")
            model = self.loaded_model
            if metric.startswith(OF_REFERENCES) and model is not None and not model.reads_reference:
                raise ValueError(
                    f"{setting}: {metric}: needs the reference in the reward model's input; set reward_model.input: "
                    "chat_with_reference"
                )
        if best is not None and (lacking := self._lacking(best)):
            raise ValueError(f"checkpoint.keep_best: {best} is measured {lacking}")

    def _lacking(self, metric: str) -> str | None:
        """What this run would need for the metric, and how to get it; None if it has all."""
        area, _, name = metric.partition("/")
        test_set, _, measure = name.rpartition("/")
        needs = {
            "test": (self.test_sets, "by the evaluation; set evaluation.every"),
            "monitor": (self.monitor, "by the monitor; add monitor"),
            "gold": (self.problems.gold, "with gold labels; set problems.gold"),
            "environment": (self.rollout.environment, "in an environment; set rollout.environment"),
            "reward_model": (self.loaded_model, f"on a reward model, and kind: {self.kind} has none"),
        }
        there, lacking = needs.get(area_of(metric), (True, None))
        if area == "test" and there and measure.startswith("gold"):
            there, lacking = self.test_sets[test_set].gold, "with gold labels; set gold for these test problems"
        return None if there else lacking


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> RunConfig:
    """Read a run's configuration.

    `overrides` ("policy.learning_rate=1e-5") win over the file, the file over the recipe of its kind, and the
    recipe over the fields' defaults. Raises InputError for anything that does not fit; it names the file, line and key,
    and the nearest known key.
    """
    return check_settings(RunConfig, read_settings(path, overrides))


def build_config(settings: dict[str, Any]) -> RunConfig:
    """Check plain settings against the schema. Raises InputError like `load_config`."""
    return check_settings(RunConfig, Settings(settings))


def _with_forms(settings: dict[str, Any], places: Places) -> dict[str, Any]:
    """The settings with the form of `problems` in the other sets, and of `test_problems` in `more_test_problems`."""
    settings = dict(settings)

    def with_form(of: str, part: Any, path: tuple[str, ...]) -> Any:
        base, given = given_settings(settings.get(of)), given_settings(part)
        if base is None or given is None:
            return part
        merged, taken = with_form_of(base, given)
        places.update({(*path, *name): (of, *name) for name in taken})
        return merged

    if "test_problems" in settings:  # first, because `more_test_problems` take their form from it
        settings["test_problems"] = with_form("problems", settings["test_problems"], ("test_problems",))
    for base_name, several in (("problems", "more_problems"), ("test_problems", "more_test_problems")):
        if isinstance(sets := settings.get(several), dict):
            settings[several] = {name: with_form(base_name, part, (several, name)) for name, part in sets.items()}
    return settings
