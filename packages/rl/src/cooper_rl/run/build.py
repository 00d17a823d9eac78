"""Builds the parts of a run from its configuration and inputs. Prompts are checked before any weights are loaded."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from cooper_base.errors import EngineLost, InputError
from cooper_rl.data.prompts import PromptEncoder, prompt_room
from cooper_rl.data.stream import ProblemStream
from cooper_rl.engines import Engine
from cooper_rl.engines.base import PolicyLearner, RewardModelLearner, Sampler
from cooper_rl.engines.local.device import set_threads
from cooper_rl.engines.local.models import check_scorer, context_length, load_tokenizer
from cooper_rl.engines.losses.policy import DRIFT_LIMITS
from cooper_rl.policy.accuracy import HeldOut, gold_of
from cooper_rl.policy.config import AlgorithmConfig
from cooper_rl.policy.environments.rounds import Rounds, hidden_tools, tool_schemas
from cooper_rl.policy.rollout_source import RolloutSource
from cooper_rl.reward.cooper_reward import CooperReward
from cooper_rl.reward.monitor import Monitor
from cooper_rl.run.inputs import Inputs, read_inputs
from cooper_rl.run_config import RunConfig
from cooper_rl.step import Parts
from cooper_verify.problems.config import ProblemsConfig, PromptConfig

logger = logging.getLogger(__name__)

RECOVERIES = 3
"""How often a lost engine is restarted at the same step before the run fails."""


def assemble_patiently(config: RunConfig, inputs: Inputs | None) -> Parts:
    """`assemble`, again if a process of an engine dies while it starts, up to `RECOVERIES` times."""
    for _ in range(RECOVERIES):
        try:
            return assemble(config, inputs)
        except EngineLost as lost:
            logger.error("ENGINE LOST before the first step; restarting it: %s", lost)
    return assemble(config, inputs)


def assemble(config: RunConfig, inputs: Inputs | None = None) -> Parts:
    """Build every part. Raises InputError for data, prompts, models or settings that do not fit together.

    `inputs` is the result of `read_inputs(config)`, for a caller that read them before it imported this module.
    """
    inputs = read_inputs(config) if inputs is None else inputs
    set_threads(config.threads)
    for model in config.scorers:
        if config.engine.reward_model_has_head or model is not config.loaded_model:
            check_scorer(model)
    if config.rollout.truncations:
        logger.warning(
            "rollout (%s): some tokens are never drawn, but the policy's log-probabilities, ratios and gradient ignore "
            "that, and importance sampling does not correct it. For exact gradients leave these settings at their "
            "defaults and shape the samples with rollout.temperature alone",
            ", ".join(config.rollout.truncations),
        )
    if config.off_policy is not None:
        logger.info("%s: %s", config.off_policy, describe_correction(config.algorithm))
    prompts = _Prompts(config, inputs)
    encoder, rounds = prompts.of(config.problems, config.more_problems)
    _warn_of_hidden_tools(encoder, inputs)
    fitting = encoder.fitting(inputs.problems)
    stream = ProblemStream(fitting, config.problems_per_step, config.seed, config.set_weights, config.curriculum)
    test_sets = _test_sets(config, inputs, prompts)
    with ExitStack() as undone:
        undone.callback(config.engine.close)
        config.engine.open(Path(config.output_dir) / config.name)
        updates = config.algorithm.minibatches
        policy = config.engine.policy(config.policy.for_updates(updates), config.steps * updates)
        reference, monitor = None, None
        if (kl := config.algorithm.kl) is not None and kl.coefficient > 0:  # the start
            reference = policy if config.policy.lora else config.engine.policy(config.policy, 0, trainable=False)
        reward = CooperReward.from_config(config, config.steps, inputs.reward, gold=config.problems.gold)
        sampler = config.engine.sampler(config.policy, config.rollout.max_rows)
        _check_built(config.engine, policy, sampler, reward)
        if config.monitor is not None and (model := reward.model) is not None:
            monitor = Monitor(config.monitor, inputs.held_out, model, config.seed)
        undone.pop_all()  # everything is built: the engine stays open
        rollouts = RolloutSource(config.rollout, stream, encoder, sampler, rounds)
        models = policy, reference, reward
        return Parts(config.engine, stream, encoder, sampler, rollouts, *models, test_sets, monitor, inputs.notes)


def describe_correction(algorithm: AlgorithmConfig) -> str:
    """What the loss does about completions of another engine or an older policy, in words."""
    loss = algorithm.loss
    if not algorithm.recompute_old_logprobs:
        return "nothing corrects for it (algorithm.recompute_old_logprobs: false)"
    cap, drift = loss.truncated_importance_sampling, getattr(loss, "drift", None)
    said = [] if cap is None else [f"tokens are weighted by importance sampling, with at most {cap:g}"]
    if drift is not None:
        what = "the product" if drift == "product" else "the geometric mean"
        said.append(f"completions are masked if {what} of these weights passes {DRIFT_LIMITS[drift]:g}")
    return "; ".join([*said, "set algorithm.loss to change it"]) if said else "algorithm.loss does not correct for it"


def _check_built(engine: Engine, policy: object, sampler: object, reward: CooperReward) -> None:
    """Raises InputError if a user's engine builds something other than learners and a sampler."""
    built = [("policy", policy, PolicyLearner), ("sampler", sampler, Sampler)]
    if reward.model is not None:
        built.append(("reward_model", reward.model.learner, RewardModelLearner))
    for method, part, base in built:
        if not isinstance(part, base):
            raise InputError(
                f"engine: {type(engine).__name__}.{method} has built a {type(part).__name__}; derive that class from "
                f"cooper_rl.{base.__name__}, which has defaults for all that it leaves out"
            )


class _Prompts:
    """How a run's problems become prompts and, in an environment, its rounds."""

    def __init__(self, config: RunConfig, inputs: Inputs) -> None:
        self._rollout, self._environments = config.rollout, inputs.environments
        self._judged = inputs.reward.verifier.needs_verdicts
        self._tokenizer = load_tokenizer(config.policy.model)
        self._room = prompt_room(context_length(config.policy.model), config.rollout.max_tokens)

    def of(
        self, data: ProblemsConfig, more: Mapping[str, ProblemsConfig] | None = None
    ) -> tuple[PromptEncoder, Rounds | None]:
        """For these problems and `more` sets of them."""
        prompt, others = data.prompt, {name: problems.prompt for name, problems in (more or {}).items()}
        environments, turns = self._environments, self._rollout
        if environments is not None and environments.tools:
            tools = tool_schemas(environments)
            prompt = _with_tools(prompt, tools)
            others = {name: _with_tools(other, tools) for name, other in others.items()}
        encoder = PromptEncoder(self._tokenizer, prompt, self._room, others)
        if environments is None:
            return encoder, None
        return encoder, Rounds(environments, encoder, turns.max_turns, turns.tool_syntax, turns.solved_at, self._judged)


def _warn_of_hidden_tools(encoder: PromptEncoder, inputs: Inputs) -> None:
    environments = inputs.environments
    if environments is not None and (hidden := hidden_tools(encoder, environments, inputs.problems[0])):
        logger.warning(
            "rollout.environment: the policy does not read of its tools (%s): %s does not show them. Describe them and "
            "how they are called in problems.prompt.system or problems.prompt.template, unless the policy was trained "
            "to call them",
            *(", ".join(hidden), "the chat template" if encoder.chat else "a prompt without a chat template"),
        )


def _test_sets(config: RunConfig, inputs: Inputs, prompts: _Prompts) -> list[HeldOut]:
    evaluation, test_sets = config.evaluation, []
    params = config.rollout.model_copy(update={"temperature": evaluation.temperature, "top_p": evaluation.top_p})
    for name, data in config.test_sets.items():
        encoder, rounds = prompts.of(data)
        fitting = encoder.fitting(inputs.test_problems[name])
        how = params, evaluation.k, evaluation.batch_size, gold_of(data), name, rounds
        test_sets.append(HeldOut(fitting, encoder, *how))
    return test_sets


def _with_tools(prompt: PromptConfig, tools: Sequence[Any]) -> PromptConfig:
    """The prompt settings with the environment's tools for the chat template, unless the settings name tools."""
    return prompt.model_copy(update={"chat_arguments": {"tools": tools} | prompt.chat_arguments})
