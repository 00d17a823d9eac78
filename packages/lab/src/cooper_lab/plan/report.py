"""A plan in words and tables."""

from collections.abc import Iterator

from cooper_lab.plan.advice import advice
from cooper_lab.plan.devices import FAST, GB, SLOW, Device
from cooper_lab.plan.memory import Share, fits, kv_room, shares
from cooper_lab.plan.setup import Layout, Learning, Setup, engine_of
from cooper_lab.plan.timing import parts, pushed_bytes
from cooper_lab.plan.whole_run import WholeRun, assistant_bytes, disk, hours


def report(setup: Setup, device: Device, run: WholeRun | None = None, configured: Layout | None = None) -> str:
    """Memory of each kind of device, seconds of a step's parts, the whole run, and what to change where it does not
    fit. `configured` is the layout that the run's own engine has, if another one is planned."""
    paragraphs = [_subject(setup, device), _memory(setup, device), _time(setup, device)]
    if run is not None:
        paragraphs.append(_run(setup, device, run))
    return "\n\n".join("\n".join(paragraph) for paragraph in [*paragraphs, _verdict(setup, device, configured)])


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


def _time(setup: Setup, device: Device) -> Iterator[str]:
    fast, slow = (parts(setup, device, pace) for pace in (FAST, SLOW))
    yield "seconds a step, from the fastest to the slowest published rates"
    for name, part in (
        ("generation", "generation"),
        ("scores", "scores"),
        ("old log-probabilities", "logprobs"),
        ("policy update", "policy_update"),
        ("reward-model update", "reward_model_update"),
        (f"push, {_size(pushed_bytes(setup))}", "push"),
    ):
        note = ", hidden behind the policy's" if name.startswith("reward-model") and fast.side_by_side else ""
        yield f"    {name:28}{_range(getattr(fast, part), getattr(slow, part))}{note}"
    yield f"    {'step at lag 0':28}{_range(fast.lag_0, slow.lag_0)}"
    if setup.layout.sampler:
        yield f"    {'step at lag 1':28}{_range(fast.lag_1, slow.lag_1)}"
    if not setup.policy.bfloat16 and not device.cpu:
        yield "  The policy computes in float32; policy.autocast=bfloat16 is several times as fast."
    if setup.policy.adapted and setup.layout.sampler_kind == "vllm" and setup.layout.adapter_alone:
        yield "  vLLM applies the adapter in every product, which takes time that is not counted."
    if setup.layout.sampler_kind == "native":
        yield "  Least certain is generation: no rate is published for the native sampler, and vLLM is no slower."


def _size(held: float) -> str:
    return f"{held / GB:.0f} GB" if held == 0 or held > 10 * GB else f"{held / GB:.1f} GB"


def _range(low: float, high: float) -> str:
    return f"{low:8.1f}" + (f" to {high:.1f}" if f"{low:.1f}" != f"{high:.1f}" else "")


def _run(setup: Setup, device: Device, run: WholeRun) -> Iterator[str]:
    fast, slow = (hours(setup, run, device, pace) for pace in (FAST, SLOW))
    yield "the whole run"
    yield f"    {f'hours, {run.steps:,} steps':28}{_range(fast[0], slow[0])}"
    if run.evaluations:
        what = f"hours, {run.evaluations} evaluations"
        yield f"    {what:28}{_range(fast[1], slow[1])}   ({run.evaluated:,} completions each)"
        yield f"    {'hours in all':28}{_range(sum(fast), sum(slow))}"
    yield f"    {'disk, GB':28}{disk(setup, run) / GB:8.0f}   (up to {run.checkpoints} checkpoints, and records)"
    if run.assistant is not None:
        size = assistant_bytes(run.assistant)
        held = f"{size / GB:.1f} GB of weights in bfloat16, and its cache" if size else "its weights and cache"
        yield f"  The assistant, {run.assistant}, is not among these devices: its server needs {held}."


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
