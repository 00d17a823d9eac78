"""`cooper export`: a plain model folder of one with an adapter."""

from pathlib import Path
from typing import Annotated

import typer


def export(
    source: Annotated[Path, typer.Argument(help="A folder with an adapter, such as a checkpoint's policy/.")],
    target: Annotated[Path, typer.Argument(help="The folder to write.")],
) -> None:
    """Merge an adapter into its base and write a plain Hugging Face folder."""
    from cooper_rl.engines.local.models import merge_folder  # noqa: PLC0415 - `cooper --help` stays quick

    merge_folder(str(source), target)
