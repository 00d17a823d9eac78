"""Seconds of a step's parts, as pure functions of work, shapes and rates."""

import math
from dataclasses import dataclass

from cooper_lab.plan.devices import (
    DEVICES,
    EAGER_LAYER_S,
    FAST,
    GENERATE_8B,
    GENERATE_70B,
    PARAMS_8B,
    PARAMS_70B,
    PUSH,
    Device,
    Pace,
)
from cooper_lab.plan.memory import HALF, SINGLE, frozen, kv_bytes_a_token, rows_at_once
from cooper_lab.plan.setup import Learning, Setup
from cooper_lab.plan.shapes import Shape

FORWARD, FORWARD_AND_BACKWARD, FROZEN_BACKWARD = 2, 6, 4
"""FLOP a parameter and token (Kaplan et al. 2020, arXiv 2001.08361); beside frozen weights no gradient of them."""


def forward_flops(shape: Shape, tokens: float, length: float) -> float:
    """FLOP of a forward pass over so many tokens in sequences of that length, causal attention included."""
    return FORWARD * tokens * (shape.params + shape.layers * shape.attention * length)


def training_flops(learning: Learning, tokens: float, length: float) -> float:
    """FLOP of forward passes, and of backward passes down to the frozen layers. As in the published shares, what
    checkpointing repeats is not counted."""
    shape = learning.shape
    weights = FROZEN_BACKWARD if learning.adapted else FORWARD_AND_BACKWARD
    computed = weights * shape.params - (weights - FORWARD) * shape.frozen_params
    attention = 3 * shape.layers - 2 * shape.frozen_layers
    return tokens * (computed + FORWARD * attention * shape.attention * length)


@dataclass(frozen=True)
class Parts:
    """The seconds of each part of a step."""

    generation: float
    scores: float
    logprobs: float
    policy_update: float
    reward_model_update: float
    push: float
    side_by_side: bool
    """Whether the reward model has its own devices, and learns while the policy does."""

    @property
    def learning(self) -> float:
        """Seconds from the samples to the next weights."""
        updates = (self.policy_update, self.reward_model_update)
        return self.scores + self.logprobs + (max(updates) if self.side_by_side else sum(updates))

    @property
    def lag_0(self) -> float:
        """Seconds of a step in which only the two updates may overlap."""
        return self.generation + self.learning + self.push

    @property
    def lag_1(self) -> float:
        """Seconds of a step that learns while the next one is sampled."""
        return max(self.generation, self.learning) + self.push


def parts(setup: Setup, device: Device, pace: Pace = FAST) -> Parts:
    """The parts of a step."""
    layout, work, policy, model = setup.layout, setup.work, setup.policy, setup.reward_model
    length = work.prompt + work.completion
    scores = update = 0.0
    if model is not None:
        devices, read = layout.reward_model_devices, work.reward_input
        forward = devices * rate(model, device, pace, pace.forward)
        scores = forward_flops(model.shape, work.samples * read, read) / forward
        rows = (2 * work.pairs + work.replayed) * work.epochs
        if model.trains:
            update = training_flops(model, rows * read, read) / (devices * rate(model, device, pace, pace.train))
            # Both sides of a pair are scored once more before they are learned.
            update += forward_flops(model.shape, 2 * work.pairs * read, read) / forward
    own_rate = layout.policy * rate(policy, device, pace, pace.forward)
    return Parts(
        generation=generation(setup, device, pace),
        scores=scores,
        logprobs=work.logprob_passes * forward_flops(policy.shape, work.tokens, length) / own_rate,
        policy_update=training_flops(policy, work.tokens, length)
        / (layout.policy * rate(policy, device, pace, pace.train)),
        reward_model_update=update,
        push=pushed_bytes(setup) / PUSH,
        side_by_side=layout.reward_model > 0,
    )


def rate(learning: Learning, device: Device, pace: Pace, share: float) -> float:
    """FLOP/s that one device achieves: `share` of its bfloat16 peak, or of its float32 peak where it computes in it."""
    return device.peak(learning.bfloat16) * (share if learning.bfloat16 or device.cpu else pace.single)


def generation(setup: Setup, device: Device, pace: Pace = FAST) -> float:
    """Seconds to sample, under vLLM by the published rates. The native sampler is limited by its memory or by starting
    kernels, and counts as no faster than vLLM."""
    work, layout = setup.work, setup.layout
    published = generation_rate(setup.policy.shape.params) * device.bandwidth / DEVICES["h100"].bandwidth
    with_vllm = work.samples * work.completion / (layout.sampler_devices * published)
    bound = with_vllm
    if layout.sampler_kind == "native":
        rows = rows_at_once(setup)
        waves = math.ceil(work.samples / layout.sampler_devices / rows)
        cache = rows * (work.prompt + work.completion / 2) * kv_bytes_a_token(setup.policy)
        whole = not (layout.sharded or setup.policy.adapted)  # it samples with the trained float32 weights themselves
        weights = SINGLE * setup.policy.shape.params if whole else frozen(setup.policy, device)
        read = (weights + cache) / device.bandwidth
        bound = max(bound, waves * work.completion * max(read, EAGER_LAYER_S * setup.policy.shape.layers))
    return bound / pace.generation


def generation_rate(params: float) -> float:
    """Tokens/s of one H100 under vLLM: the power law through the two published sizes."""
    exponent = math.log(GENERATE_8B / GENERATE_70B) / math.log(PARAMS_70B / PARAMS_8B)
    return GENERATE_8B * (PARAMS_8B / params) ** exponent


def pushed_bytes(setup: Setup) -> float:
    """Bytes that are sent: the adapter in float32 if only it is sent; else all weights, in bfloat16 for vLLM and in
    float32 for the native sampler. 0 if the sampler uses the learner's own weights."""
    layout, shape, native = setup.layout, setup.policy.shape, setup.layout.sampler_kind == "native"
    if native and not layout.sharded:
        return 0.0
    if setup.policy.adapted and (native or layout.adapter_alone):
        return float(SINGLE * shape.adapter_params)
    return float((SINGLE if native else HALF) * shape.params)
