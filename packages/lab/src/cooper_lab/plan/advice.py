"""What to change if a step does not fit. Each change is tried with the formulas that found the step too large."""

from collections.abc import Callable
from dataclasses import replace
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

Change = Callable[[Setup], "tuple[str, Setup] | None"]
"""A setting as it would be written and the step with it; None where it cannot be set. One that makes no difference is
harmless: it is never among the fewest that help."""


def advice(setup: Setup, device: Device) -> list[str]:
    """The fewest changes after which the step fits: every single one that does, else pairs, else threes.

    Each is written so that it can be pasted behind `cooper plan FILE`. Empty where none of those helps.
    """
    for number in range(1, MOST_CHANGES + 1):
        suggestions = [_together(setup, chosen) for chosen in combinations(CHANGES, number)]
        texts = [change[0] for change in suggestions if change is not None and fits(change[1], device)]
        if texts:
            return texts[:MOST_SHOWN]
    return []


def _together(setup: Setup, chosen: tuple[Change, ...]) -> tuple[str, Setup] | None:
    """All changes, one after the other; None if one of them cannot be made."""
    texts: list[str] = []
    for change in chosen:
        done = change(setup)
        if done is None:
            return None
        texts.append(done[0])
        setup = done[1]
    return " ".join(texts), setup


def _of_both(setting: str, **held: Any) -> Change:
    """A setting of the policy and, if there is one, the reward model."""

    def change(setup: Setup) -> tuple[str, Setup]:
        changed, model = replace(setup, policy=replace(setup.policy, **held)), setup.reward_model
        if model is None:
            return f"policy.{setting}", changed
        return f"policy.{setting} reward_model.{setting}", replace(changed, reward_model=replace(model, **held))

    return change


def _fewer_rows(setup: Setup) -> tuple[str, Setup] | None:
    if setup.layout.sampler_kind != "native":  # vLLM has as many rows as its cache has room for
        return None
    rows = max(FEWEST_ROWS, rows_at_once(setup) // 4)
    return f"rollout.max_rows={rows}", replace(setup, work=replace(setup.work, rows=rows))


def _no_reference(setup: Setup) -> tuple[str, Setup]:
    return "algorithm.kl=null", replace(setup, policy=replace(setup.policy, reference=False))


def _wider_engines(setup: Setup) -> tuple[str, Setup] | None:
    layout, wider = setup.layout, 2 * setup.layout.tensor_parallel
    if layout.sampler_kind != "vllm" or layout.sampler_devices % wider or setup.policy.shape.heads % wider:
        return None
    return f"--tensor-parallel {wider}", replace(setup, layout=replace(layout, tensor_parallel=wider))


@cache
def _adapted_shape(model: str) -> Shape:
    return shape_of(model, lora=LORA)


def _policy_adapter(setup: Setup) -> tuple[str, Setup] | None:
    policy = setup.policy
    if policy.adapted:
        return None
    adapted = replace(policy, shape=_adapted_shape(policy.shape.name), reference=False)
    return f"'policy.lora={{rank: {LORA.rank}}}'", replace(setup, policy=adapted)


def _reward_model_adapter(setup: Setup) -> tuple[str, Setup] | None:
    model = setup.reward_model
    if model is None or not model.trains or model.adapted:
        return None
    # Its name may stand for a folder that is not made yet: the size of the adapter is estimated.
    shape = replace(model.shape, adapter_params=round(LORA_SHARE * model.shape.params))
    return f"'reward_model.lora={{rank: {LORA.rank}}}'", replace(setup, reward_model=replace(model, shape=shape))


def _more_devices(setup: Setup) -> tuple[str, Setup] | None:
    layout = setup.layout
    if layout.devices >= MOST_DEVICES:
        return None
    more = {name: 2 * getattr(layout, name) for name in ("policy", "reward_model", "sampler")}
    return f"--devices {2 * layout.devices}", replace(setup, layout=replace(layout, **more))


CHANGES = (
    _of_both("gradient_checkpointing=true", checkpointing=True),
    _of_both(f"tokens_per_microbatch={FEWEST_TOKENS}", tokens_per_microbatch=FEWEST_TOKENS),
    _fewer_rows,
    _no_reference,
    _of_both("optimizer_offload=true", offload=True),
    _wider_engines,
    _policy_adapter,
    _reward_model_adapter,
    _more_devices,
)
"""The possible changes, those that cost least first."""
