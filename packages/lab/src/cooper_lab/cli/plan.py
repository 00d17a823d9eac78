"""`cooper plan`: whether a run fits, before anything starts."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from cooper_base.cli.console import print_result


def plan(
    config: Annotated[Path, typer.Argument(help="A YAML file, as for `cooper train`.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="Settings over the file: key=value.")] = None,
    device: Annotated[
        str | None, typer.Option(help="h100, h200, a100, … (an unknown name lists them); the GPU here by default.")
    ] = None,
    devices: Annotated[int | None, typer.Option(min=1, help="Devices in all, shared by every role not given.")] = None,
    reward_model_devices: Annotated[
        int | None, typer.Option(min=0, help="Devices of the reward model's own; 0: beside the policy.")
    ] = None,
    sampler_devices: Annotated[
        int | None, typer.Option(min=0, help="Devices of the samplers' own; 0: the policy's.")
    ] = None,
    tensor_parallel: Annotated[int | None, typer.Option(min=1, help="Devices of one vLLM engine.")] = None,
    sampler: Annotated[str | None, typer.Option(help="native or vllm.")] = None,
    prompt_tokens: Annotated[int, typer.Option(min=1, help="Mean length of a prompt.")] = 150,
    completion_tokens: Annotated[
        int | None, typer.Option(min=1, help="Mean length of a completion; by default rollout.max_tokens.")
    ] = None,
    reward_model_like: Annotated[
        str, typer.Option(help="A model of the reward model's shape, where that one is not made yet.")
    ] = "",
) -> None:
    """Say whether a run fits: memory of each device, disk space, and what to set if it does not (exit code 1)."""
    from cooper_rl import InputError, load_config

    settings = load_config(config, overrides or [])
    if sampler not in (None, "native", "vllm"):
        raise InputError(f"--sampler {sampler}: use native or vllm")

    from cooper_lab.plan.devices import device_called
    from cooper_lab.plan.memory import fits
    from cooper_lab.plan.report import report
    from cooper_lab.plan.setup import layout_of, setup_of

    layout = layout_of(settings.engine)
    given = {
        "reward_model": reward_model_devices,
        "sampler": sampler_devices,
        "tensor_parallel": tensor_parallel,
        "sampler_kind": sampler,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if devices is not None or sampler == "native":
        given["reserved"] = 0.0
    if devices is not None:
        others = sum(given.get(name, getattr(layout, name)) for name in ("reward_model", "sampler"))
        given["policy"] = devices - others
    configured, chosen, layout = layout, device_called(device), replace(layout, **given)
    setup = setup_of(settings, layout, prompt_tokens, completion_tokens, reward_model_like, cpu=chosen.cpu)
    roles = ("policy", "reward_model", "sampler", "tensor_parallel", "sampler_kind")
    same = all(getattr(layout, role) == getattr(configured, role) for role in roles)
    print_result(report(setup, chosen, settings, None if same else configured))
    if not fits(setup, chosen):
        sys.exit(1)
