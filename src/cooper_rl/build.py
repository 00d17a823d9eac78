"""Builds the parts of a run from its configuration and inputs. Prompts are checked before any weights are loaded."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cooper_rl.config.user_functions import load_function
from cooper_rl.data.config import ProblemsConfig
from cooper_rl.data.labelled import LabelledCompletion
from cooper_rl.data.loading import load_problems
from cooper_rl.data.problem import Problem
from cooper_rl.data.prompts import PromptEncoder, prompt_room
from cooper_rl.data.stream import ProblemStream
from cooper_rl.engines import EngineConfig, LongLived
from cooper_rl.engines.base import MeasuredSampler, Metrics, PolicyLearner, Sampler
from cooper_rl.engines.config import SamplingParams
from cooper_rl.engines.local.device import set_threads
from cooper_rl.engines.local.models import check_reward_model, context_length, load_tokenizer
from cooper_rl.engines.local.sampler import NativeSampler
from cooper_rl.evaluation.accuracy import EvaluationResult, evaluate, relabel
from cooper_rl.evaluation.monitor import Monitor
from cooper_rl.inputs import Inputs, read_inputs
from cooper_rl.observe.first_screen import describe_prompt
from cooper_rl.rewards.rule.base import RuleConfig
from cooper_rl.rewards.rule.kinds.maths import MathsRule
from cooper_rl.rewards.rule.routing import Verifier
from cooper_rl.rollout_source import RolloutSource
from cooper_rl.run_config import RunConfig
from cooper_rl.stage2.cooper_reward import CooperReward

logger = logging.getLogger(__name__)

Gold = Callable[[Problem, str], bool]


@dataclass(frozen=True)
class HeldOut:
    """Test problems, and the settings for evaluating a policy on them."""

    problems: list[Problem]
    encoder: PromptEncoder
    params: SamplingParams
    k: int
    batch_size: int
    gold: Gold | None
    name: str = ""
    """Part of the metrics' names, for a set beside the main one."""

    def evaluate(
        self, sampler: Sampler, verifier: Verifier, seed: int, on_progress: Callable[[int, int], None] | None = None
    ) -> dict[str, EvaluationResult]:
        """Sample k completions per problem; label them with the `rule` and, where the problems have it, with `gold`."""
        by_rule = evaluate(
            sampler,
            self.encoder,
            self.problems,
            verifier.accepts,
            self.params,
            self.k,
            seed,
            self.batch_size,
            on_progress,
        )
        if self.gold is None:
            return {"rule": by_rule}
        return {"rule": by_rule, "gold": relabel(by_rule, self.problems, self.gold)}

    def measure(self, sampler: Sampler, verifier: Verifier, seed: int) -> Metrics:
        """Mean accuracy over k samples per problem, as `test/rule_avg` and, where gold is known, `test/gold_avg`.

        `test/cut_off_rate` is the share of completions that reached the length limit. A set with a name has it in
        between, as in `test/svamp/rule_avg`.
        """
        results = self.evaluate(sampler, verifier, seed)
        prefix = f"test/{self.name}/" if self.name else "test/"
        metrics = {f"{prefix}{labeller}_avg": result.avg_at_k.mean for labeller, result in results.items()}
        return metrics | {f"{prefix}cut_off_rate": results["rule"].truncated}


@dataclass(frozen=True)
class Parts:
    """Everything a run works with. `reference` is None if there is no KL term."""

    engine: EngineConfig
    stream: ProblemStream
    prompt_encoder: PromptEncoder
    sampler: Sampler
    rollouts: RolloutSource
    policy: PolicyLearner
    reference: PolicyLearner | None
    reward: CooperReward
    test_sets: list[HeldOut]
    monitor: Monitor | None

    @property
    def learns_side_by_side(self) -> bool:
        """Whether the reward model has devices of its own, and is updated while the policy is."""
        return isinstance(self.engine, LongLived) and self.engine.learns_side_by_side

    def sampler_metrics(self) -> Metrics:
        """What the sampler has counted and timed since it was asked last, where it does so."""
        return self.sampler.take_metrics() if isinstance(self.sampler, MeasuredSampler) else {}

    def close(self) -> None:
        """End the verifier's processes, the assistant's connections and what the engine has started."""
        self.reward.close()
        if isinstance(self.engine, LongLived):
            self.engine.close()


def assemble(config: RunConfig, inputs: Inputs | None = None) -> Parts:
    """Build every part. Raises InputError for data, prompts, models or settings that do not fit together.

    `inputs` is the result of `read_inputs(config)`, for a caller that read them before it imported this module.
    """
    inputs = read_inputs(config) if inputs is None else inputs
    try:
        return _assemble(config, inputs)
    except BaseException:
        if isinstance(config.engine, LongLived):
            config.engine.close()
        raise


def _assemble(config: RunConfig, inputs: Inputs) -> Parts:
    set_threads(config.threads)
    for model in config.used_models.values():
        check_reward_model(model.model)
    _warn_of_truncation(config.rollout)
    tokenizer = load_tokenizer(config.policy.model)
    room = prompt_room(context_length(config.policy.model), config.rollout.max_tokens)
    prompt_encoder = PromptEncoder(tokenizer, config.problems.prompt, room)
    stream = ProblemStream(prompt_encoder.fitting(inputs.problems), config.problems_per_step, config.seed)
    test_sets = _test_sets(config, inputs.test_problems, tokenizer, room)

    if isinstance(config.engine, LongLived):
        config.engine.open(Path(config.output_dir) / config.name)
    updates = config.algorithm.minibatches
    policy = config.engine.policy(config.policy.for_updates(updates), config.steps * updates)
    needs_reference = config.algorithm.pulls_in("loss") or config.algorithm.pulls_in("reward")
    reference = _reference(config, policy) if needs_reference else None
    reward = CooperReward.from_config(config, config.steps, inputs.reward, gold=config.problems.gold)
    sampler = config.engine.sampler(config.policy, config.rollout.max_rows)
    return Parts(
        engine=config.engine,
        stream=stream,
        prompt_encoder=prompt_encoder,
        sampler=sampler,
        rollouts=RolloutSource(config.rollout, stream, prompt_encoder, sampler),
        policy=policy,
        reference=reference,
        reward=reward,
        test_sets=test_sets,
        monitor=_monitor(config, reward, inputs.held_out),
    )


def _reference(config: RunConfig, policy: PolicyLearner) -> PolicyLearner:
    """The frozen start: a model of its own, or the policy, which is asked without its adapter."""
    if config.policy.lora is not None:
        return policy
    return config.engine.policy(config.policy, 0, trainable=False)


def _warn_of_truncation(sampling: SamplingParams) -> None:
    if sampling.truncations:
        logger.warning(
            "rollout (%s): some tokens are never drawn, but the policy's log-probabilities, ratios and gradient ignore "
            "that, and importance sampling does not correct it. For exact gradients leave these settings at their "
            "defaults and shape the samples with rollout.temperature alone",
            ", ".join(sampling.truncations),
        )


def _monitor(config: RunConfig, reward: CooperReward, held_out: list[LabelledCompletion]) -> Monitor | None:
    """The monitor of the reward model that learns or, if none does, of the first one that pays."""
    if config.monitor is None:
        return None
    model = next(iter(reward.models.values()))
    return Monitor(config.monitor, held_out, model.learner, model.encoder, config.seed)


def _gold(problems: ProblemsConfig) -> Gold | None:
    return load_function(problems.gold, ("problem", "completion_text")) if problems.gold else None


def _test_sets(
    config: RunConfig, problems: Mapping[str, list[Problem]], tokenizer: Any, room: int | None
) -> list[HeldOut]:
    evaluation = config.evaluation
    params = config.rollout.model_copy(update={"temperature": evaluation.temperature, "top_p": evaluation.top_p})
    sets = []
    for name, data in config.test_sets.items():
        encoder = PromptEncoder(tokenizer, data.prompt, room)
        fitting = encoder.fitting(problems[name])
        sets.append(HeldOut(fitting, encoder, params, evaluation.k, evaluation.batch_size, _gold(data), name))
    return sets


def evaluate_model(
    model: str,
    data: ProblemsConfig,
    params: SamplingParams,
    k: int,
    seed: int,
    batch_size: int,
    on_progress: Callable[[int, int], None] | None = None,
    threads: int | None = None,
    rule: RuleConfig | None = None,
    on_prompt: Callable[[str], None] | None = None,
    like: RunConfig | None = None,
) -> dict[str, EvaluationResult]:
    """Sample k completions per problem; label them with the `rule` and, where the problems have it, with `gold`.

    `rule` is `maths` by default. It applies to the problems that do not name a rule of their own. `on_prompt` is called
    with a description of the first prompt. The model computes in the precision and batches of the run `like`.
    """
    set_threads(threads)
    with Verifier(rule or MathsRule()) as verifier:
        problems = load_problems(data, verifier.fault).problems
        if like is None:
            sampler = NativeSampler.from_folder(model)
        else:
            autocast, max_rows = like.policy.autocast, like.rollout.max_rows
            sampler = NativeSampler.from_folder(model, autocast=autocast, max_rows=max_rows)
        encoder = PromptEncoder(sampler.tokenizer, data.prompt, sampler.room(params.max_tokens))
        held_out = HeldOut(encoder.fitting(problems), encoder, params, k, batch_size, _gold(data))
        if on_prompt is not None and held_out.problems:
            on_prompt(describe_prompt(held_out.problems[0], encoder.decode(encoder.encode(held_out.problems[0]))))
        return held_out.evaluate(sampler, verifier, seed, on_progress)
