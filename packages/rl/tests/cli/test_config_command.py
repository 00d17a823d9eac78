"""`cooper config` explains every setting, and the configurations that it prints read back unchanged."""

import pytest
import yaml
from typer.testing import CliRunner

import cooper_audit
import cooper_rl
import cooper_verify
from cooper_base import __version__
from cooper_base.cli.main import commands
from cooper_base.config.base import records_of
from cooper_base.config.explanation import explain
from cooper_rl import build_config, load_config
from cooper_rl.cli.config import Command, _record
from repository import ROOT

CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))


def _config(*arguments):
    result = CliRunner().invoke(commands, ["config", *map(str, arguments)], env={"COLUMNS": "80"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def _fields(record, around=()):
    """Names of all fields. A record that contains records of its own kind is entered once."""
    for name, field in record.model_fields.items():
        yield name
        for inner in records_of(field):
            if inner not in around:
                yield from _fields(inner, (*around, inner))


@pytest.mark.parametrize("command", Command)
def test_every_setting_of_every_command_is_explained(command):
    settings = explain(_record(command))
    assert all(setting.text for setting in settings)
    assert {setting.key.split(".")[-1].removesuffix("[]") for setting in settings} >= set(_fields(_record(command))) - {
        "kind"
    }


@pytest.mark.parametrize(
    "words",
    [
        "rollout.max_tokens  integer, at least 1; default 512\n    Longest completion. One that reaches",
        "policy.model  text; required",
        "evaluation.top_p  number, above 0, at most 1; default 0.95",
        "kind  cooper | cooper_model | cooper_light | paper | rule | static | function | gad; default cooper",
        "algorithm.loss  section of kind cispo | gspo | ppo_clip | package.module:Class; default ppo_clip",
        "algorithm.loss.clip_high (kind: gspo)  number, at least 0; default 0.0004",
        "watch[].above  number or null; default null",
        "cooptimization.skip_gradient_share  number, at least 0, below 1; default 0.0, cooper 0.2\n",
        "algorithm.advantages.std_floor (kind: grpo)  number, at least 0; default 0.0, cooper 0.2\n",
        "algorithm.kl.clamp  number or null, above 0; default null, paper 10.0\n",
        "rewards[].chats (kind: function)  true or false or null; default null",
    ],
)
def test_types_bounds_and_defaults_are_printed(words):
    assert words in _config("--all")


def test_without_a_name_sections_and_common_settings_come_first_and_fit_on_two_screens():
    lines = [line.strip() for line in _config().splitlines()]
    assert len(lines) < 80
    sections, common = lines.index("sections"), lines.index("common settings")
    assert sections < common
    assert lines[sections + 1].startswith("policy ")
    assert [line for line in lines[common:] if line.startswith("rollout.max_tokens")]
    assert _config("--for", "verifyrm-train").startswith("model  text; required")


def test_a_section_a_setting_or_a_bare_name_narrows_it():
    keys = [line.split()[0] for line in _config("rollout").splitlines() if line and not line.startswith(" ")]
    assert keys[0] == "rollout"
    assert "rollout.n" in keys
    assert all(key.split(".")[0] == "rollout" for key in keys)
    assert _config("rollout.n").startswith("rollout.n  integer")
    assert {"rollout.temperature  number", "evaluation.temperature  number"} <= {
        line.split(",")[0] for line in _config("temperature").splitlines()
    }
    assert "epochs  number" in _config("--for", "verifyrm-train", "epochs")


def test_a_name_that_is_neither_setting_nor_file_names_the_nearest(tmp_path):
    with pytest.raises(ValueError, match=r"rolout: neither a setting nor .*'rollout'"):
        _config("rolout")
    with pytest.raises(ValueError, match="no such configuration file"):
        _config(tmp_path / "missing.yaml")


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
@pytest.mark.parametrize("options", [[], ["--no-comments"]])
def test_what_it_prints_reads_back_as_the_same_configuration(path, options, tmp_path):
    printed = tmp_path / "resolved.yaml"
    printed.write_text(_config(path, "steps=7", *options))
    assert load_config(printed) == load_config(path, ["steps=7"])
    assert ("# Policy updates in the whole run." in printed.read_text()) == (not options)


def test_the_recipe_and_overrides_are_resolved_and_what_differs_from_the_default_is_marked():
    text = _config("kind=paper", "reward_model.model=rm", "policy.model=m", "problems.source=arithmetic", "rollout.n=4")
    expected = {
        "kind": "paper",
        "policy": {"model": "m"},
        "problems": {"source": "arithmetic"},
        "reward_model": {"model": "rm"},
    }
    assert yaml.safe_load(text) == build_config({**expected, "rollout": {"n": 4}}).model_dump(mode="json")
    assert yaml.safe_load(text)["cooptimization"]["pairs"] == [{"kind": "assistant"}]
    assert "  n: 4  # default 8\n" in text
    assert "  max_tokens: 512\n" in text


def test_a_configuration_that_does_not_fit_is_refused(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text("kind: rule\npolicy: {model: m}\nproblems: {sorce: x}\n")
    with pytest.raises(ValueError, match=r"run.yaml:3: unknown key 'problems.sorce'; did you mean 'source'"):
        _config(path)


def test_the_version_has_one_source():
    result = CliRunner().invoke(commands, ["--version"])
    assert result.stdout == f"cooper {__version__}\n"
    # Packages that are installed one by one need it in each pyproject.toml; tests/packaging holds these to it.
    for package in (cooper_verify, cooper_audit, cooper_rl):
        assert package.__version__ is __version__
