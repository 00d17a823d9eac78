"""`cooper config`: explains settings, prints a resolved configuration, and the JSON Schema of its file."""

import json
import textwrap
from collections.abc import Sequence
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from cooper_rl.config.base import Config
    from cooper_rl.config.explanation import Setting

WIDTH = 100


class Command(StrEnum):
    """Commands with settings."""

    train = "train"
    serve = "serve"
    eval = "eval"
    verifyrm_train = "verifyrm-train"
    verifyrm_collect = "verifyrm-collect"
    verifyrm_label = "verifyrm-label"
    verifyrm_bench = "verifyrm-bench"


RECORDS = {
    Command.train: "cooper_rl.run_config:RunConfig",
    Command.serve: "cooper_rl.service.config:ServeConfig",
    Command.eval: "cooper_rl.data.config:ProblemsConfig",
    Command.verifyrm_train: "cooper_rl.verifyrm.config:VerifyRMConfig",
    Command.verifyrm_collect: "cooper_rl.verifyrm.config:CollectConfig",
    Command.verifyrm_label: "cooper_rl.verifyrm.config:JudgeFile",
    Command.verifyrm_bench: "cooper_rl.evaluation.config:ScoringConfig",
}


def show_config(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CONFIG | SETTING] [KEY=VALUE]...",
            help="A YAML file and settings that override it, to resolve and check; or a setting or section to explain.",
        ),
    ] = None,
    command: Annotated[Command, typer.Option("--for", help="The command whose settings are shown.")] = Command.train,
    comments: Annotated[bool, typer.Option(help="Explain each setting of a resolved configuration.")] = True,
    schema: Annotated[bool, typer.Option("--json-schema", help="Print the JSON Schema of the file.")] = False,
) -> None:
    """Explain settings, or print a configuration with all defaults and presets filled in.

    cooper config: every setting with its type, bounds, default and meaning.

    cooper config rollout: one section; cooper config temperature: every setting of that name.

    cooper config run.yaml steps=10: the whole configuration that `cooper train run.yaml steps=10` would use, as YAML.

    cooper config --json-schema: the JSON Schema of such a file, for editors.
    """
    from cooper_rl.config.commented_yaml import commented_yaml  # noqa: PLC0415 - `cooper --help` stays quick
    from cooper_rl.config.explanation import explain, narrow  # noqa: PLC0415

    given = what or []
    names, overrides = [one for one in given if "=" not in one], [one for one in given if "=" in one]
    if len(names) > 1:
        raise typer.BadParameter(f"give one file or setting, then key=value; found {' and '.join(names)}")
    record = _record(command)
    if schema:
        if given:
            raise typer.BadParameter(f"--json-schema describes every such file; leave out {' '.join(given)}")
        _show_schema(command, record)
        return
    if overrides or (names and _is_file(names[0])):
        typer.echo(commented_yaml(_resolved(command, record, names, overrides), comments), nl=False)
        return
    settings = explain(record)
    _show(narrow(settings, names[0]) if names else settings)


def _is_file(name: str) -> bool:
    return Path(name).suffix in (".yaml", ".yml") or Path(name).is_file()


def _record(command: Command) -> "type[Config]":
    module, _, name = RECORDS[command].partition(":")
    return getattr(import_module(module), name)


def _resolved(command: Command, record: "type[Config]", files: Sequence[str], overrides: Sequence[str]) -> "Config":
    from cooper_rl.config.settings import Settings, check, read_settings, with_overrides  # noqa: PLC0415
    from cooper_rl.run_config import build_config, load_config  # noqa: PLC0415

    if command is Command.train:
        return load_config(files[0], overrides) if files else build_config(with_overrides({}, overrides))
    if command is Command.serve:
        from cooper_rl.service.config import load_serve_config  # noqa: PLC0415

        return load_serve_config(files[0] if files else None, overrides)
    return check(record, read_settings(files[0], overrides) if files else Settings(with_overrides({}, overrides)))


def _show_schema(command: Command, record: "type[Config]") -> None:
    from cooper_rl.config.json_schema import json_schema  # noqa: PLC0415

    typer.echo(json.dumps(json_schema(record, f"Settings of cooper {command.replace('-', ' ')}"), indent=1))


def _show(settings: "Sequence[Setting]") -> None:
    out = Console(highlight=False, soft_wrap=True)
    for setting in settings:
        kind = f" (kind: {setting.kind})" if setting.kind else ""
        if setting.is_section:
            out.print()
        out.print(Text.assemble((setting.key, "bold"), kind, f"  {setting.values}" if setting.values else ""))
        for paragraph in setting.text.split("\n\n"):
            lines = textwrap.wrap(" ".join(paragraph.split()), WIDTH - 4)
            out.print(Text(textwrap.indent("\n".join(lines), "    ")))
