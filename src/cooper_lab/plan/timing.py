"""Seconds of a step's parts, as pure functions of work, shapes and rates."""

import math
from dataclasses import dataclass

from cooper_lab.plan.devices import (
    DEVICES,
    EAGER_LAYER_S,
    FORWARD_SHARE,
    GENERATE_8B,
    GENERATE_70B,
    PARAMS_8B,
    PARAMS_70B,
    PUSH,
    TRAIN_SHARE,
    Device,
)
from cooper_lab.plan.memory import kv_bytes_a_token, rows_at_once
from cooper_lab.plan.setup import Learning, Setup

FORWARD, FORWARD_AND_BACKWARD, FROZEN_BACKWARD = 2, 6, 4
"""FLOP a parameter and token (Kaplan et al. 2020, arXiv 2001.08361); beside frozen weights no gradient of them."""


@dataclass(frozen=True)
class Parts:
    """Seconds."""

    generation: float
    scores: float
    logprobs: float
    policy_update: float
    reward_model_update: float
    push: float
    side_by_side: bool
    """Whether the reward model learns on devices of its own, while the policy does."""

    @property
    def learning(self) -> float:
        """From the samples to the next weights."""
        updates = (self.policy_update, self.reward_model_update)
        return self.scores + self.logprobs + (max(updates) if self.side_by_side else sum(updates))

    @property
    def lag_0(self) -> float:
        """A step in which nothing overlaps but the two updates."""
        return self.generation + self.learning + self.push

    @property
    def lag_1(self) -> float:
        """A step that learns while the next one is sampled."""
        return max(self.generation, self.learning) + self.push


def parts(setup: Setup, device: Device) -> Parts:
    """The parts of a step."""
    layout, work, policy, model = setup.layout, setup.work, setup.policy, setup.reward_model
    train, forward = TRAIN_SHARE * device.dense, FORWARD_SHARE * device.dense
    scores = update = 0.0
    if model is not None:
        devices = layout.reward_model_devices
        scores = FORWARD * model.shape.params * work.samples * work.reward_input / (devices * forward)
        rows = (2 * work.pairs + work.replayed) * work.reward_input
        # Both sides of a pair are scored once more before they are learned.
        flops = _backward(model) * rows * work.epochs + 2 * FORWARD * work.pairs * work.reward_input
        update = flops * model.shape.params / (devices * train) if model.trains else 0.0
    return Parts(
        generation=generation(setup, device),
        scores=scores,
        logprobs=work.logprob_passes * FORWARD * policy.shape.params * work.tokens / (layout.policy * forward),
        policy_update=_backward(policy) * policy.shape.params * work.tokens / (layout.policy * train),
        reward_model_update=update,
        push=pushed_bytes(setup) / PUSH,
        side_by_side=layout.reward_model > 0,
    )


def generation(setup: Setup, device: Device) -> float:
    """vLLM at the published rates; the native sampler bound by its memory or by starting kernels."""
    work, layout = setup.work, setup.layout
    if layout.sampler_kind == "vllm":
        rate = generation_rate(setup.policy.shape.params) * device.bandwidth / DEVICES["h100"].bandwidth
        return work.samples * work.completion / (layout.sampler_devices * rate)
    rows = rows_at_once(setup)
    waves = math.ceil(work.samples / layout.sampler_devices / rows)
    read = 4 * setup.policy.shape.params + rows * (work.prompt + work.completion / 2) * kv_bytes_a_token(setup.policy)
    step = max(read / device.bandwidth, EAGER_LAYER_S * setup.policy.shape.layers)
    return waves * work.completion * step


def generation_rate(params: float) -> float:
    """Tokens/s of one H100 under vLLM: the power law through the two published sizes."""
    exponent = math.log(GENERATE_8B / GENERATE_70B) / math.log(PARAMS_70B / PARAMS_8B)
    return GENERATE_8B * (PARAMS_8B / params) ** exponent


def pushed_bytes(setup: Setup) -> float:
    """Bfloat16 for vLLM, float32 for the native sampler; none where it draws with the learner's own weights."""
    shared = setup.layout.sampler_kind == "native" and setup.layout.policy == 1 and not setup.layout.sampler
    size = 2.0 if setup.layout.sampler_kind == "vllm" else 4.0
    return 0.0 if shared else size * setup.policy.shape.params


def _backward(learning: Learning) -> int:
    return FROZEN_BACKWARD if learning.adapted else FORWARD_AND_BACKWARD
