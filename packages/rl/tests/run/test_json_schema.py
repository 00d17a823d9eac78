"""The JSON Schema that editors use accepts every YAML of the project, and refuses what the program refuses."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from cooper_base.cli.main import commands
from cooper_base.config.explanation import commented_yaml, explain, json_schema
from cooper_rl import load_config
from cooper_rl.cli.config import Command, _record
from repository import ROOT

COMMAND_OF = {"collect.yaml": Command.verifyrm_collect, "judge.yaml": Command.verifyrm_label}
FILES = [*sorted((ROOT / "configs").rglob("*.yaml")), ROOT / "examples" / "cluster" / "run.yaml"]
BASE: dict[str, Any] = {"policy": {"model": "m"}, "problems": {"source": "p.jsonl"}, "kind": "rule"}


@cache
def _validator(command: Command) -> Draft202012Validator:
    schema = json_schema(_record(command), "settings")
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.fixture(scope="module")
def run_schema() -> Draft202012Validator:
    return _validator(Command.train)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_shipped_file_validates_and_a_wrong_key_in_it_does_not(path: Path):
    validator = _validator(COMMAND_OF.get(path.name, Command.train))
    values = yaml.safe_load(path.read_text())
    assert [error.message for error in validator.iter_errors(values)] == []
    for name, value in values.items():
        if isinstance(value, dict):
            wrong = {**values, name: {**value, "no_such_key": 1}}
            assert not validator.is_valid(wrong), name
    assert not validator.is_valid({**values, "no_such_key": 1})


def test_a_resolved_configuration_validates(run_schema):
    for path in FILES:
        if path.name not in COMMAND_OF:
            assert run_schema.is_valid(yaml.safe_load(commented_yaml(load_config(path)))), path


@pytest.mark.parametrize(
    ("settings", "valid"),
    [
        ({}, True),
        ({"algorithm": {"loss": {"kind": "gspo", "clip_low": 1e-4}}}, True),
        ({"algorithm": {"loss": {"kind": "gspo", "normaliser": 3}}}, False),  # a key of another kind
        ({"algorithm": {"loss": {"clip_low": 0.1}}}, False),  # no kind
        ({"algorithm": {"loss": {"kind": "my_losses:Mine", "anything": 1}}}, True),
        ({"algorithm": {"loss": {"kind": "gspoo"}}}, False),
        ({"rule": {"workers": 2}}, True),  # rules are of kind maths where none is given
        ({"rewards": [{"kind": "rule"}, {"kind": "rule", "wieght": 2}]}, False),
        ({"engine": {"kind": "cluster", "policy_ranks": 6}}, True),
        ({"engine": {"kind": "local", "policy_ranks": 6}}, False),
        ({"steps": 0}, False),
        ({"steps": True}, False),
        ({"policy": {"learning_rate": 1e-6}}, False),  # no model
    ],
)
def test_kinds_types_and_bounds_are_checked(run_schema, settings, valid):
    assert run_schema.is_valid(BASE | settings) == valid


@pytest.mark.parametrize("command", Command)
def test_every_setting_of_every_command_is_in_its_schema_with_its_text(command):
    result = CliRunner().invoke(commands, ["config", "--json-schema", "--for", command])
    assert result.exit_code == 0, result.output
    schema = json.loads(result.stdout)
    assert schema["title"] == f"Settings of cooper {command.replace('-', ' ')}"
    records = [schema, *schema.get("$defs", {}).values()]
    described = {
        (name, one.get("description")) for record in records for name, one in record.get("properties", {}).items()
    }
    for setting in explain(_record(command)):
        if setting.values:  # a heading of a kind has none
            assert (setting.key.split(".")[-1].removesuffix("[]"), " ".join(setting.text.split())) in {
                (name, " ".join((text or "").split())) for name, text in described
            }, setting.key


def test_the_schema_describes_files_in_general():
    result = CliRunner().invoke(commands, ["config", "--json-schema", "rollout"])
    assert result.exit_code == 2
    assert "leave out rollout" in result.output
