"""`cooper verifyrm`: making reward models from labelled completions."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from cooper_rl.cli.console import console, progress
from cooper_rl.cli.settings import record_from

WATCH = [
    ("loss", "loss"),
    ("held_out_loss", "held-out loss"),
    ("held_out_accuracy", "held-out accuracy"),
    ("held_out_roc_auc", "ROC-AUC"),
]

verifyrm = typer.Typer(help="Make reward models from labelled completions.", no_args_is_help=True)


@verifyrm.callback()
def _group() -> None:
    """Make reward models from labelled completions."""


@verifyrm.command("train")
def train_reward_model(
    data: Annotated[
        list[Path],
        typer.Argument(help="JSONL, Parquet or CSV files with question, reference_answer, completion, label."),
    ],
    model: Annotated[str, typer.Option(help="The base: a Hugging Face folder or name, causal or reward model.")],
    out: Annotated[Path, typer.Option(help="Folder for the reward model; must not exist yet.")],
    setting: Annotated[list[str] | None, typer.Option(help="Training settings: key=value.")] = None,
) -> None:
    """Train a VerifyRM; the weights with the lowest held-out loss are kept."""
    from cooper_rl.rewards.labelled import read_labelled  # noqa: PLC0415 - torch loads only when a command needs it
    from cooper_rl.verifyrm.config import VerifyRMConfig  # noqa: PLC0415
    from cooper_rl.verifyrm.train import METRICS_FILE, train_verifyrm  # noqa: PLC0415

    config = record_from(VerifyRMConfig, {"model": model}, setting or [])
    rows = [row for path in data for row in read_labelled(path)]
    with progress("verifyrm", 0, WATCH) as advance:
        result = train_verifyrm(config, rows, out, advance)
    table = Table("held-out measure", "value")
    for name, value in result["held_out"].items():
        table.add_row(name, f"{value:.4g}")
    console.print(table)
    console.print(f"reward model: {out}\nmetrics: {out / METRICS_FILE}", highlight=False, soft_wrap=True)
