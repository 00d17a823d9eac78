"""What to change if a step does not fit. Each change is tried with the formulas that found the step too large."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import Any

from cooper_lab.plan.devices import Device
from cooper_lab.plan.memory import fits, rows_at_once
from cooper_lab.plan.setup import Setup
from cooper_lab.plan.shapes import Shape, shape_of
from cooper_rl.engines.config import LoraConfig

FEWEST_TOKENS, FEWEST_ROWS, MOST_DEVICES = 2048, 16, 1024
"""Beyond these nothing is proposed."""
LORA = LoraConfig()
LORA_SHARE = 0.03
"""Parameters of such an adapter as a share of a reward model's; between 0.01 for 7B and 0.035 for 0.5B."""
MOST_CHANGES, MOST_SHOWN = 3, 6


@dataclass(frozen=True)
class Change:
    """A setting as it would be written, and the step with it."""

    text: str
    setup: Setup


def advice(setup: Setup, device: Device) -> list[str]:
    """The fewest changes after which the step fits: every single one that does, else pairs, else threes.

    Each is written so that it can be pasted behind `cooper plan FILE`. Empty where none of those helps.
    """
    for number in range(1, MOST_CHANGES + 1):
        suggestions = [_together(setup, chosen) for chosen in combinations(CHANGES, number)]
        texts = [change.text for change in suggestions if change is not None and fits(change.setup, device)]
        if texts:
            return texts[:MOST_SHOWN]
    return []


def _together(setup: Setup, chosen: "tuple[Callable[[Setup], Change | None], ...]") -> Change | None:
    """All changes, one after the other; None if one of them changes nothing."""
    texts: list[str] = []
    for change in chosen:
        done = change(setup)
        if done is None:
            return None
        setup = done.setup
        texts.append(done.text)
    return Change(" ".join(texts), setup)


def _checkpointing(setup: Setup) -> Change | None:
    learning = [model for model in (setup.policy, setup.reward_model) if model is not None and model.trains]
    if all(model.checkpointing for model in learning):
        return None
    return Change(_of_both(setup, "gradient_checkpointing=true"), _both(setup, checkpointing=True))


def _smaller_batches(setup: Setup) -> Change | None:
    if setup.policy.tokens_per_microbatch <= FEWEST_TOKENS:
        return None
    text = _of_both(setup, f"tokens_per_microbatch={FEWEST_TOKENS}")
    return Change(text, _both(setup, tokens_per_microbatch=FEWEST_TOKENS))


def _fewer_rows(setup: Setup) -> Change | None:
    rows = max(FEWEST_ROWS, rows_at_once(setup) // 4)
    if setup.layout.sampler_kind != "native" or rows >= rows_at_once(setup):
        return None
    return Change(f"rollout.max_rows={rows}", replace(setup, work=replace(setup.work, rows=rows)))


def _no_reference(setup: Setup) -> Change | None:
    if not setup.policy.reference:
        return None
    return Change("algorithm.kl=null", replace(setup, policy=replace(setup.policy, reference=False)))


def _offload(setup: Setup) -> Change | None:
    learning = [model for model in (setup.policy, setup.reward_model) if model is not None and model.trains]
    if all(model.offload for model in learning):
        return None
    return Change(_of_both(setup, "optimizer_offload=true"), _both(setup, offload=True))


def _wider_engines(setup: Setup) -> Change | None:
    layout, wider = setup.layout, 2 * setup.layout.tensor_parallel
    if layout.sampler_kind != "vllm" or layout.sampler_devices % wider or setup.policy.shape.heads % wider:
        return None
    return Change(f"--tensor-parallel {wider}", replace(setup, layout=replace(layout, tensor_parallel=wider)))


@cache
def _adapted_shape(model: str) -> Shape:
    return shape_of(model, lora=LORA)


def _policy_adapter(setup: Setup) -> Change | None:
    policy = setup.policy
    if policy.adapted:
        return None
    adapted = replace(policy, shape=_adapted_shape(policy.shape.name), reference=False)
    return Change(f"'policy.lora={{rank: {LORA.rank}}}'", replace(setup, policy=adapted))


def _reward_model_adapter(setup: Setup) -> Change | None:
    model = setup.reward_model
    if model is None or not model.trains or model.adapted:
        return None
    # Its name may stand for a folder that is not made yet: the size of the adapter is estimated.
    shape = replace(model.shape, adapter_params=round(LORA_SHARE * model.shape.params))
    text = f"'reward_model.lora={{rank: {LORA.rank}}}'"
    return Change(text, replace(setup, reward_model=replace(model, shape=shape)))


def _more_devices(setup: Setup) -> Change | None:
    layout = setup.layout
    if layout.devices >= MOST_DEVICES:
        return None
    more = {name: 2 * getattr(layout, name) for name in ("policy", "reward_model", "sampler")}
    return Change(f"--devices {2 * layout.devices}", replace(setup, layout=replace(layout, **more)))


CHANGES = (
    _checkpointing,
    _smaller_batches,
    _fewer_rows,
    _no_reference,
    _offload,
    _wider_engines,
    _policy_adapter,
    _reward_model_adapter,
    _more_devices,
)
"""The possible changes, those that cost least first."""


def _of_both(setup: Setup, setting: str) -> str:
    """The setting for the policy and, if there is one, the reward model, as it would be written."""
    names = ["policy"] if setup.reward_model is None else ["policy", "reward_model"]
    return " ".join(f"{name}.{setting}" for name in names)


def _both(setup: Setup, **settings: Any) -> Setup:
    """These settings for the policy and, if there is one, the reward model."""
    model = replace(setup.reward_model, **settings) if setup.reward_model is not None else None
    return replace(setup, policy=replace(setup.policy, **settings), reward_model=model)
