"""The parts of a run: built from its configuration and inputs, saved in a checkpoint and restored.

Prompts are checked before any weights are loaded.
"""

import logging
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cooper_rl.data.labelled import LabelledCompletion
from cooper_rl.data.problem import Problem
from cooper_rl.data.prompts import PromptEncoder, prompt_room
from cooper_rl.data.stream import ProblemStream
from cooper_rl.engines import EngineConfig, LongLived
from cooper_rl.engines.base import AheadSampler, MeasuredSampler, Metrics, PolicyLearner, Sampler, sample_at_once
from cooper_rl.engines.config import SamplingParams
from cooper_rl.engines.local.device import set_threads
from cooper_rl.engines.local.models import check_reward_model, context_length, load_tokenizer, merge_folder
from cooper_rl.engines.model_folder import adapter_base
from cooper_rl.errors import InputError
from cooper_rl.evaluation.accuracy import HeldOut, gold_of
from cooper_rl.evaluation.reward_model import Monitor
from cooper_rl.inputs import Inputs, read_inputs
from cooper_rl.persist.exact_resume import changes, conditions, random_state, restore_random_state
from cooper_rl.rollouts import Rollouts, Samples
from cooper_rl.run_config import RolloutConfig, RunConfig
from cooper_rl.stage2.cooper_reward import CooperReward
from cooper_rl.stage2.reward_config import check_outline, outline

logger = logging.getLogger(__name__)

PENDING_FILE = "pending_rollouts.safetensors"
"""In a checkpoint at lag 1: the completions that the next step learns from."""


@dataclass(frozen=True)
class Parts:
    """Everything a run works with. `reference` is None if there is no KL term."""

    engine: EngineConfig
    stream: ProblemStream
    prompt_encoder: PromptEncoder
    sampler: Sampler
    rollouts: "RolloutSource"
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


def _test_sets(
    config: RunConfig, problems: Mapping[str, list[Problem]], tokenizer: Any, room: int | None
) -> list[HeldOut]:
    evaluation = config.evaluation
    params = config.rollout.model_copy(update={"temperature": evaluation.temperature, "top_p": evaluation.top_p})
    sets = []
    for name, data in config.test_sets.items():
        encoder = PromptEncoder(tokenizer, data.prompt, room)
        fitting = encoder.fitting(problems[name])
        sets.append(HeldOut(fitting, encoder, params, evaluation.k, evaluation.batch_size, gold_of(data), name))
    return sets


def save_state(config: RunConfig, parts: Parts, folder: Path) -> dict[str, Any]:
    """Write the learners and their optimizers into the folder, and return the rest of the state as JSON values."""
    parts.policy.save(folder / "policy")
    parts.reward.save(folder)
    parts.rollouts.save(folder)
    return {
        "conditions": conditions(config),
        "outline": outline(config),
        "random": random_state(),
        "stream": parts.stream.state(),
    }


def export_models(checkpoint: Path, folder: Path) -> None:
    """Write the models of a checkpoint as plain Hugging Face folders: adapters merged, the others as they are."""
    for name in ("policy", "reward_model"):
        source = checkpoint / name
        if not source.is_dir():
            continue
        if adapter_base(str(source)) is not None:
            merge_folder(str(source), folder / name)
        else:
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("trainer_state", "README.md"))


def check_kind(config: RunConfig, state: dict[str, Any]) -> None:
    """Raises InputError if the checkpoint is of another kind of run or of another tree of rewards.

    Such a checkpoint holds a different set of models and states.
    """
    before = state["conditions"]["kind"]
    if "outline" not in state:
        raise InputError("the checkpoint to resume from was written by an earlier version of Cooper; start a new run")
    if before != config.kind:
        raise InputError(
            f"kind: the checkpoint to resume from is of a run of kind {before}, but this run is of kind {config.kind}; "
            f"resume with kind: {before}, or start a new run under another name"
        )
    check_outline(config, state["outline"])


def restore_state(config: RunConfig, parts: Parts, folder: Path, state: dict[str, Any]) -> None:
    """Restore what `save_state` wrote and returned, and log every setting that has changed since.

    Raises InputError like `check_kind`, and if the models, problems or replay buffer are not those of the checkpoint.
    """
    check_kind(config, state)
    for change in changes(state["conditions"], conditions(config)):
        logger.warning("%s: not an exact continuation, because this changed: %s", folder, change)
    parts.policy.load(folder / "policy")
    parts.reward.load(folder)
    parts.stream.restore(state["stream"])
    parts.rollouts.restore(folder)
    restore_random_state(state["random"])


@dataclass(frozen=True)
class Pending:
    """Completions that are being drawn."""

    problems: Sequence[Problem]
    prompts: Sequence[Sequence[int]]
    samples: "Future[Samples]"
    n: int
    version: int

    def result(self) -> Rollouts:
        """Wait for them. Raises what the sampler raises."""
        return Rollouts.of(self.problems, self.prompts, self.samples.result(), self.n, self.version)


class RolloutSource:
    """The rollouts of one step after another.

    At lag 1 a step takes what was drawn during the step before, hands the engine the policy of now, and has it draw
    for the step after while it learns. The first step, and one whose predecessor left nothing, draws for itself too.
    """

    def __init__(self, config: RolloutConfig, stream: ProblemStream, encoder: PromptEncoder, sampler: Sampler):
        self._config, self._stream, self._encoder, self._sampler = config, stream, encoder, sampler
        self._pending: Pending | Rollouts | None = None

    def take(self, policy: PolicyLearner, step: int, seed: int, last: bool) -> Rollouts:
        """The rollouts of this step. `seed` is the step's, and the next one's is one more; no step follows the `last`.

        The policy's version is the number of steps that it has learned from. Raises what `Sampler.sample` raises.
        """
        ahead = bool(self._config.lag) and not last
        waiting, self._pending = self._pending, None
        rollouts = None if waiting is None else _finished(waiting)  # weights change when nothing is being drawn
        if rollouts is None or ahead:
            self._sampler.sync_weights(policy)
        if rollouts is None:
            problems, prompts = self._batch()
            samples = self._sampler.sample(prompts, self._config.n, self._config, seed)
            rollouts = Rollouts.of(problems, prompts, samples, self._config.n, step - 1)
        if ahead:
            problems, prompts = self._batch()
            asked = (prompts, self._config.n, self._config, seed + 1)
            sampler = self._sampler
            samples = sampler.submit(*asked) if isinstance(sampler, AheadSampler) else sample_at_once(sampler, *asked)
            self._pending = Pending(problems, prompts, samples, self._config.n, step - 1)
        return rollouts

    def settle(self) -> None:
        """Wait until nothing is being drawn, so that the engine can be used for something else."""
        if isinstance(self._pending, Pending):
            wait([self._pending.samples])

    def forget(self) -> None:
        """Drop what was drawn ahead; its problems come again in the next epoch."""
        self._pending = None

    def save(self, folder: Path) -> None:
        """Write what was drawn ahead, if anything, after waiting for it. Problems stand there by their ids.

        What could not be drawn is not written: a run that goes on from here draws it anew.
        """
        self.settle()
        if isinstance(self._pending, Pending) and self._pending.samples.exception() is not None:
            return
        if self._pending is not None:
            rollouts = _finished(self._pending)
            ids = [Problem(problem.id, "", "") for problem in rollouts.problems]
            (folder / PENDING_FILE).write_bytes(replace(rollouts, problems=ids).to_bytes())

    def restore(self, folder: Path) -> None:
        """Go on with what `save` wrote, if anything. At lag 0 it is left out."""
        self._pending = None
        if self._config.lag and (folder / PENDING_FILE).is_file():
            rollouts = Rollouts.from_bytes((folder / PENDING_FILE).read_bytes())
            problems = [self._stream.problem(problem.id) for problem in rollouts.problems]
            self._pending = replace(rollouts, problems=problems)

    def _batch(self) -> tuple[list[Problem], list[list[int]]]:
        problems = self._stream.next_batch()
        return problems, [self._encoder.encode(problem) for problem in problems]


def _finished(pending: Pending | Rollouts) -> Rollouts:
    return pending.result() if isinstance(pending, Pending) else pending
