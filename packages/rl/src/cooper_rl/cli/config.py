"""`cooper config`: explains settings, prints a resolved configuration, and the JSON Schema of its file."""

import json
import textwrap
from collections.abc import Sequence
from contextlib import nullcontext
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from cooper_base.cli.console import print_result, say, stdout

if TYPE_CHECKING:
    from cooper_base.config.base import Config
    from cooper_base.config.explanation import Setting

WIDTH = 100
FEW = 60
"""Settings that the overview shows, without --all."""


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
    Command.eval: "cooper_rl.policy.evaluation_config:EvalConfig",
    Command.verifyrm_train: "cooper_rl.verifyrm.config:VerifyRMConfig",
    Command.verifyrm_collect: "cooper_rl.verifyrm.config:CollectConfig",
    Command.verifyrm_label: "cooper_verify.graders.judge:JudgeFile",
    Command.verifyrm_bench: "cooper_rl.engines.config:ScorerConfig",
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
    everything: Annotated[bool, typer.Option("--all", help="Show every setting, not only the common ones.")] = False,
    kind: Annotated[str | None, typer.Option(help="Print the recipe of this kind of run.")] = None,
    schema: Annotated[bool, typer.Option("--json-schema", help="Print the JSON Schema of the file.")] = False,
) -> None:
    """Explain settings, or print a configuration with its recipe and all defaults filled in.

    cooper config: the sections and the most common settings; with --all every setting with its type, bounds, default
    and meaning.

    cooper config rollout: one section; cooper config temperature: every setting of that name.

    cooper config run.yaml steps=10: the whole configuration that `cooper train run.yaml steps=10` would use, as YAML.

    cooper config --kind cooper: what this kind of run sets; all other settings have their defaults. With an assistant
    (cooptimization.assistant), its pairs come first among cooptimization.pairs.

    cooper config --json-schema: the JSON Schema of such a file, for editors.
    """
    from cooper_base.config.explanation import commented_yaml, explain, json_schema, narrow

    given = what or []
    names = [argument for argument in given if "=" not in argument]
    overrides = [argument for argument in given if "=" in argument]
    if len(names) > 1:
        raise typer.BadParameter(f"give one file or setting, then key=value; found {' and '.join(names)}")
    record = _record(command)
    if kind is not None:
        if given or schema:
            raise typer.BadParameter("--kind prints a recipe alone; to resolve a file with it, give FILE kind=KIND")
        _show_recipe(record, kind)
    elif schema:
        if given:
            raise typer.BadParameter(f"--json-schema describes every such file; leave out {' '.join(given)}")
        print_result(json.dumps(json_schema(record, f"Settings of cooper {command.replace('-', ' ')}"), indent=1))
    elif overrides or (names and (Path(names[0]).suffix in (".yaml", ".yml") or Path(names[0]).is_file())):
        print_result(commented_yaml(_resolved(command, names, overrides), comments).removesuffix("\n"))
    elif names:
        _show(narrow(explain(record), names[0]))
    elif everything or len(explain(record)) <= FEW:
        _show(explain(record))
    else:
        _show_overview(explain(record))


def _show_recipe(record: "type[Config]", kind: str) -> None:
    """Print what a kind of run sets. Raises InputError if there is no such kind."""
    from cooper_base.config.explanation import recipe_yaml
    from cooper_base.errors import InputError, did_you_mean
    from cooper_rl.reward.recipes import RECIPES
    from cooper_rl.reward.reward_config import without_assistant

    recipe = RECIPES.get(kind)
    known = f"kinds: {', '.join(RECIPES)}"
    if recipe is None or "rewards" not in record.model_fields:
        raise InputError(f"--kind {kind}: no kind of run; {did_you_mean(kind, RECIPES, known)}")
    print_result("\n".join([f"kind: {kind}", *recipe_yaml(record, without_assistant(recipe))]))


def _record(command: Command) -> "type[Config]":
    module, _, name = RECORDS[command].partition(":")
    return getattr(import_module(module), name)


def _resolved(command: Command, files: Sequence[str], overrides: Sequence[str]) -> "Config":
    from cooper_base.config.checking import Settings, check_settings, read_settings, with_overrides

    settings = (
        read_settings(files[0], overrides) if files else Settings(with_overrides({}, overrides), overrides=overrides)
    )
    return check_settings(_record(command), settings)


def _show_overview(settings: "Sequence[Setting]") -> None:
    """The sections and the common settings, with the first sentence of each."""
    from cooper_base.config.explanation import overview

    table = Table.grid(padding=(0, 2, 0, 0))
    for heading, chosen in overview(settings).items():
        table.add_row(Text(f"\n{heading}", style="bold"))
        for setting in chosen:
            table.add_row(f"  {setting.key}", " ".join(setting.text.split()).partition(". ")[0].rstrip("."))
    stdout(highlight=False).print(table)
    say(
        f"\n{len(settings)} settings in all. `cooper config rollout` explains a section, `cooper config temperature` "
        "every setting of that name, `cooper config --all` everything."
    )


def _show(settings: "Sequence[Setting]") -> None:
    """Print settings, on a terminal through a pager if there are many."""
    out = stdout(highlight=False, soft_wrap=True)
    with out.pager(styles=True) if out.is_terminal and 3 * len(settings) > out.height else nullcontext():
        for setting in settings:
            kind = f" (kind: {setting.kind})" if setting.kind else ""
            if setting.is_section:
                out.print()
            out.print(Text.assemble((setting.key, "bold"), kind, f"  {setting.values}" if setting.values else ""))
            for paragraph in setting.text.split("\n\n"):
                lines = textwrap.wrap(" ".join(paragraph.split()), WIDTH - 4)
                out.print(Text(textwrap.indent("\n".join(lines), "    ")))
