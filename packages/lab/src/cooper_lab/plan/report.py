"""A plan in words and tables."""

from collections.abc import Iterator

from cooper_lab.plan.advice import advice
from cooper_lab.plan.devices import GB, Device
from cooper_lab.plan.memory import Share, fits, kv_room, shares
from cooper_lab.plan.setup import Layout, Learning, Setup, engine_of
from cooper_lab.plan.shapes import shape_of
from cooper_rl import InputError, RunConfig

SAVED = 12
"""Bytes of a checkpoint for each trained parameter: the float32 weight and AdamW's two running means."""


def report(setup: Setup, device: Device, config: RunConfig, configured: Layout | None = None) -> str:
    """Memory of each kind of device, disk space, and what to change where the run does not fit. `configured` is the
    layout that the run's own engine has, if another one is planned."""
    paragraphs = [_subject(setup, device), _memory(setup, device), _run(setup, config)]
    return "\n\n".join("\n".join(paragraph) for paragraph in [*paragraphs, _verdict(setup, device, configured)])


def _subject(setup: Setup, device: Device) -> Iterator[str]:
    layout, work = setup.layout, setup.work
    yield f"{layout.devices} x {device.name}, {device.memory / GB:.0f} GB each ({device.source})"
    yield f"policy        {_model(setup.policy)}"
    if setup.reward_model is not None:
        yield f"reward model  {_model(setup.reward_model)}"
    yield (
        f"a step        {work.samples:,} samples of {work.prompt:,} + {work.completion:,} tokens, "
        f"{work.tokens / 1e6:.2f} M in all"
    )


def _model(learning: Learning) -> str:
    shape = learning.shape
    how = "" if learning.trains else ", frozen"
    if shape.frozen_layers:
        how = f", {shape.frozen_layers} of {shape.layers} layers frozen"
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


def _run(setup: Setup, config: RunConfig) -> Iterator[str]:
    number = config.checkpoint.keep + (config.checkpoint.keep_best is not None) + 1  # one is being written
    yield f"disk, GB: {number * checkpoint_bytes(setup) / GB:.0f}, for up to {number} checkpoints"
    assistant = getattr(config.cooptimization.assistant, "model", None) if config.learns else None
    if assistant is not None:
        try:
            held = f"{2 * shape_of(assistant).params / GB:.1f} GB of weights in bfloat16, and its cache"
        except (InputError, OSError):  # a name of the server's own, or a model of unknown shape
            held = "its weights and cache"
        yield f"The assistant, {assistant}, is not among these devices: its server needs {held}."


def checkpoint_bytes(setup: Setup) -> int:
    """Bytes of one checkpoint."""
    trained = [model for model in (setup.policy, setup.reward_model) if model is not None and model.trains]
    return sum(SAVED * (model.shape.adapter_params if model.adapted else model.shape.params) for model in trained)


def _verdict(setup: Setup, device: Device, configured: Layout | None) -> Iterator[str]:
    if fits(setup, device):
        yield "It fits." if configured is None else f"It fits as planned. {_engine_to_set(setup.layout, configured)}"
        return
    names = [share.role for share in shares(setup, device) if share.left < 0]
    yield f"IT DOES NOT FIT: {' and '.join(names) or 'vLLM has no room for a completion'}."
    suggestions = advice(setup, device)
    yield from [f"  It fits with {text}" for text in suggestions]
    if configured is not None:
        yield f"  {_engine_to_set(setup.layout, configured)}"
    if not suggestions:
        yield "  No three changes of those known help; take larger devices or a smaller model."


def _engine_to_set(layout: Layout, configured: Layout) -> str:
    """The settings that give a run the planned layout."""
    devices = f"{configured.devices} device{'s' if configured.devices > 1 else ''}"
    engine = engine_of(layout)
    if engine is None:
        return (
            f"The run itself takes {devices}, and no engine has this layout: beside several processes vLLM has devices "
            "of its own, and the native sampler never has."
        )
    return f"The run itself takes {devices}; to run as planned, add '{engine}'."
