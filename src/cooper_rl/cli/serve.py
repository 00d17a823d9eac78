"""`cooper serve`: the reward as a service."""

from pathlib import Path
from typing import Annotated

import typer


def serve(
    config: Annotated[Path, typer.Argument(help="A YAML file: the reward of `cooper train`, and `serve`.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="Settings over the file: key=value.")] = None,
) -> None:
    """Serve a reward that learns to trainers in other processes; see docs/serve.md."""
    from cooper_rl.rewards.kinds.plain import check_servers  # noqa: PLC0415
    from cooper_rl.service.config import check_extra, listen, load_serve_config, read_token  # noqa: PLC0415
    from cooper_rl.stage2.reward_inputs import read_reward_inputs  # noqa: PLC0415 - `cooper --help` stays quick

    settings = load_serve_config(config, overrides or [])
    check_extra()
    token = read_token(settings.serve)
    inputs = read_reward_inputs(settings)
    if inputs.assistant is not None:
        inputs.assistant.check()
    check_servers((*settings.rewards, *settings.shaping))
    listener = listen(settings.serve)

    from cooper_rl.service.server import serve as run  # noqa: PLC0415 - torch loads only now that the input is good

    run(settings, inputs, token, listener)
