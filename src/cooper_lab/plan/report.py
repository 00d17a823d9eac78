"""A plan in words and tables."""

from collections.abc import Iterator

from cooper_lab.plan.advice import advice
from cooper_lab.plan.devices import GB, PUBLISHED_OVER_PLAN, Device
from cooper_lab.plan.memory import Share, fits, kv_room, shares
from cooper_lab.plan.setup import Learning, Setup
from cooper_lab.plan.timing import parts, pushed_bytes


def report(setup: Setup, device: Device) -> str:
    """Memory of each kind of device, seconds of a step's parts, and what to change where it does not fit."""
    paragraphs = (_subject, _memory, _time, _verdict)
    return "\n\n".join("\n".join(paragraph(setup, device)) for paragraph in paragraphs)


def _subject(setup: Setup, device: Device) -> Iterator[str]:
    layout, work = setup.layout, setup.work
    yield f"{layout.devices} x {device.name}, {device.memory / GB:.0f} GB each ({device.source})"
    yield f"policy        {_model(setup.policy)}"
    if setup.reward_model is not None:
        yield f"reward model  {_model(setup.reward_model)}"
    yield (
        f"a step        {work.samples:,} samples of {work.prompt:,} + {work.completion:,} tokens, "
        f"{work.tokens / 1e6:.2f} M in all; {work.pairs:,} pairs"
    )


def _model(learning: Learning) -> str:
    shape = learning.shape
    how = "" if learning.trains else ", frozen"
    if learning.adapted:
        how = f", LoRA: {shape.adapter_params / 1e6:.1f} M trained"
    return f"{shape.name}, {shape.params / 1e9:.2f} B parameters{how}"


def _memory(setup: Setup, device: Device) -> Iterator[str]:
    yield "memory, GB a device"
    for share in shares(setup, device):
        yield f"  {share.role}, {share.count} x"
        for name, held in share.held.items():
            yield f"    {name:28}{held / GB:8.1f}"
        yield f"    {_sum(share)}"
    if setup.layout.sampler_kind == "vllm":
        yield f"  room for {kv_room(setup, device) / 1e6:.1f} M tokens in the samplers' key-value caches"


def _sum(share: Share) -> str:
    state = f"{share.left / GB:.1f} left" if share.left >= 0 else f"{-share.left / GB:.1f} TOO MUCH"
    return f"{'in all':28}{share.total / GB:8.1f} of {share.usable / GB:.1f}, {state}"


def _time(setup: Setup, device: Device) -> Iterator[str]:
    found = parts(setup, device)
    yield "seconds a step"
    for name, value in (
        ("generation", found.generation),
        ("scores", found.scores),
        ("old log-probabilities", found.logprobs),
        ("policy update", found.policy_update),
        ("reward-model update", found.reward_model_update),
        (f"push, {pushed_bytes(setup) / GB:.0f} GB", found.push),
    ):
        note = ", hidden behind the policy's" if name.startswith("reward-model") and found.side_by_side else ""
        yield f"    {name:28}{value:8.1f}{note}"
    yield f"    {'step at lag 0':28}{found.lag_0:8.1f}"
    if setup.layout.sampler:
        yield f"    {'step at lag 1':28}{found.lag_1:8.1f}"
    low, high = PUBLISHED_OVER_PLAN
    yield f"  Published steps took {low} to {high} times what these formulas give."
    if setup.layout.sampler_kind == "native":
        yield "  Least certain is generation: no rate is published for the native sampler (docs/plan.md)."


def _verdict(setup: Setup, device: Device) -> Iterator[str]:
    if fits(setup, device):
        yield "It fits."
        return
    names = [share.role for share in shares(setup, device) if share.left < 0]
    yield f"IT DOES NOT FIT: {' and '.join(names) or 'vLLM has no room for a completion'}."
    found = advice(setup, device)
    yield from [f"  It fits with {text}." for text in found]
    if not found:
        yield "  No three changes of those known help; take larger devices or a smaller model."
