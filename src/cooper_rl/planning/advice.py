"""What to change where a step does not fit: each change is tried by the formulas that found it too large."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from cooper_rl.engines.lora_config import LoraConfig
from cooper_rl.planning.devices import Device
from cooper_rl.planning.memory import fits, rows_at_once
from cooper_rl.planning.setup import Setup
from cooper_rl.planning.shapes import shape_of

FEWEST_TOKENS, FEWEST_ROWS, MOST_DEVICES = 2048, 16, 1024
"""Beyond these nothing is proposed."""
LORA = LoraConfig()
LORA_SHARE = 0.03
"""Parameters of such an adapter as a share of a reward model's; between 0.01 for 7B and 0.035 for 0.5B."""


def advice(setup: Setup, device: Device) -> list[str]:
    """Single changes after which the step fits; where none does, the first so many that do together.

    Empty where nothing in the list helps.
    """
    alone = [change.text for change in changes(setup) if fits(change.setup, device)]
    if alone:
        return alone
    together: dict[str, str] = {}
    while (change := next(changes(setup), None)) is not None:
        setup, together[change.setting] = change.setup, change.text
        if fits(setup, device):
            return [", ".join(together.values())]
    return []


@dataclass(frozen=True)
class Change:
    """A setting, how it would be written, and the step with it."""

    setting: str
    text: str
    setup: Setup


def changes(setup: Setup) -> Iterator[Change]:
    """Every change that takes memory off a device, the one that costs least first."""
    policy, model, layout, work = setup.policy, setup.reward_model, setup.layout, setup.work
    learns = model is not None and model.trains
    if not policy.checkpointing or (model is not None and learns and not model.checkpointing):
        changed = _both(setup, checkpointing=True)
        yield Change("checkpointing", "gradient_checkpointing: true (policy and reward model)", changed)
    if policy.tokens_per_microbatch > FEWEST_TOKENS:
        changed = _both(setup, tokens_per_microbatch=FEWEST_TOKENS)
        yield Change("tokens", f"tokens_per_microbatch: {FEWEST_TOKENS} (policy and reward model)", changed)
    if layout.sampler_kind == "native" and (rows := rows_at_once(setup) // 2) >= FEWEST_ROWS:
        yield Change("rows", f"rollout.max_rows: {rows}", replace(setup, work=replace(work, rows=rows)))
    if policy.reference:
        changed = replace(setup, policy=replace(policy, reference=False))
        yield Change("kl", "algorithm.kl: null (no reference)", changed)
    wider = 2 * layout.tensor_parallel
    if layout.sampler_kind == "vllm" and layout.sampler_devices % wider == 0 and policy.shape.heads % wider == 0:
        changed = replace(setup, layout=replace(layout, tensor_parallel=wider))
        yield Change("tensor parallel", f"--tensor-parallel {wider}", changed)
    if not policy.adapted:
        adapted = replace(policy, shape=shape_of(policy.shape.name, lora=LORA), reference=False)
        yield Change("policy.lora", f"policy.lora: {{rank: {LORA.rank}}}", replace(setup, policy=adapted))
    if model is not None and learns and not model.adapted:
        # Its name may stand for a folder that is not made yet: an adapter of the policy's share is close enough.
        size = round(LORA_SHARE * model.shape.params)
        adapted = replace(model, shape=replace(model.shape, adapter_params=size))
        yield Change(
            "reward_model.lora", f"reward_model.lora: {{rank: {LORA.rank}}}", replace(setup, reward_model=adapted)
        )
    if layout.devices < MOST_DEVICES:
        more = {name: 2 * getattr(layout, name) for name in ("policy", "reward_model", "sampler")}
        changed = replace(setup, layout=replace(layout, **more))
        yield Change("devices", f"{2 * layout.devices} devices", changed)


def _both(setup: Setup, **settings: Any) -> Setup:
    """These settings for the policy and, where there is one, the reward model."""
    model = replace(setup.reward_model, **settings) if setup.reward_model is not None else None
    return replace(setup, policy=replace(setup.policy, **settings), reward_model=model)
