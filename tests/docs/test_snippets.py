"""The blocks in the README and the docs work as printed: settings fit their records, code runs, commands parse."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from ast import literal_eval
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from cooper_lab.arena.designs import Design
from cooper_lab.arena.hole import Hole
from cooper_rl.cli.main import commands
from cooper_rl.cli.settings import record_from
from cooper_rl.config.settings import Settings, check, merge, read_settings, with_overrides
from cooper_rl.config.strict_yaml import parse_yaml
from cooper_rl.config_loading import build_config, load_config
from cooper_rl.data.config import ProblemsConfig
from cooper_rl.service.config import ServeConfig
from cooper_rl.verifyrm.bench import ScoringConfig
from cooper_rl.verifyrm.config import CollectConfig, JudgeFile, VerifyRMConfig
from docs.snippets import PAGES, ROOT, all_snippets, shell_commands, snippets_of

SNIPPETS = all_snippets()
LANGUAGES = {"yaml", "python", "bash", "text"}
"""The languages a block may have. `text` is for blocks that no machine reads, such as a listing of files."""
MINIMAL: dict[str, Any] = {
    "policy": {"model": "models/my-policy"},
    "reward_model": {"model": "models/my-verifyrm"},
    "problems": {"source": "problems.jsonl"},
    "test_problems": {"source": "test.jsonl"},
    "evaluation": {"every": 20},
}
"""A minimal run, completed by the section that a page shows."""
SETTINGS_OF = {"eval": ProblemsConfig, "verifyrm train": VerifyRMConfig, "verifyrm bench": ScoringConfig}
"""The record that a command's option --setting sets."""


def _of(language: str) -> Any:
    return pytest.mark.parametrize("snippet", [pytest.param(s, id=s.place) for s in SNIPPETS if s.language == language])


def test_every_block_is_found_and_says_what_it_is():
    page = "```\na\n```\n\n<!-- not run: no net -->\n```bash\nb \\\n  c\n```\n1. d\n   ```yaml\n   e: 1\n   ```\n"
    found = [(s.place, s.language, s.text, s.reason) for s in snippets_of(page, "p.md")]
    assert found == [
        ("p.md:1", "", "a\n", None),
        ("p.md:6", "bash", "b \\\n  c\n", "no net"),
        ("p.md:11", "yaml", "e: 1\n", None),
    ]
    fences = sum(text.count("```") for page in {s.place.split(":")[0] for s in SNIPPETS} for text in [_page(page)])
    assert fences == 2 * len(SNIPPETS)
    assert [s.place for s in SNIPPETS if s.language not in LANGUAGES] == [], f"write one of {sorted(LANGUAGES)}"


@_of("yaml")
def test_settings_fit_their_records(snippet):
    values, lines = parse_yaml(snippet.text)
    settings = Settings(values, snippet.place, lines)
    if "judge" in values:
        check(JudgeFile, settings)
    elif "serve" in values:
        check(ServeConfig, settings)
    elif "models" in values:
        check(CollectConfig, settings)
    elif snippet.place.startswith("arena.md"):
        _check_arena(values)
    else:
        build_config(merge(MINIMAL, values))


def _check_arena(values: dict[str, Any]) -> None:
    """Designs and holes by name; a hole of the page's own is one in Python above it."""
    for name, value in values.items():
        if "settings" in value:
            build_config(merge(MINIMAL, check(Design, Settings(value, name)).settings))
        else:
            check(Hole, Settings({key: setting for key, setting in value.items() if key != "kind"}, name))


@_of("python")
def test_code_runs_and_gives_what_it_says(snippet, tiny_models, tmp_path):
    """Runs as a user would run it, in a folder with models and problems. Ctrl-C ends a run after its first step."""
    code = _with_checks(snippet.text)
    compile(code, snippet.place, "exec")
    if snippet.reason:
        pytest.skip(snippet.reason)
    _fill(tmp_path, tiny_models)
    (tmp_path / "snippet.py").write_text(code)
    with (tmp_path / "output").open("w") as output:
        process = subprocess.Popen([sys.executable, "snippet.py"], cwd=tmp_path, stdout=output, stderr=output)
        try:
            deadline = time.monotonic() + 300
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.2)
                if any(path.read_text().count("\n") for path in tmp_path.glob("runs/*/metrics.jsonl")):
                    process.send_signal(signal.SIGINT)
                    process.wait(100)
        finally:
            process.kill()
    assert process.wait() == 0, (tmp_path / "output").read_text()


@_of("bash")
def test_commands_are_ones_there_are(snippet):
    for words in shell_commands(snippet.text):
        program, *arguments = words
        checks = {"cooper": _check_cooper, "make": _check_make, "python": _check_python, "pip": _check_pip}
        unchecked = program not in checks or (program == "python" and not _is_ours(arguments))
        if unchecked:
            assert snippet.reason, f"{snippet.place}: nothing checks {program}; put <!-- not run: REASON --> above"
            continue
        checks[program](arguments)
        for word in arguments:
            if word.startswith(("configs/", "benchmarks/", "tests/")):
                assert (ROOT / word).exists(), f"{snippet.place}: {word} does not exist"


def test_nothing_is_installed_by_a_name_that_is_not_published():
    pages = [*PAGES, *(ROOT / "src").rglob("*.py")]
    named = [path.name for path in pages if re.search(r"pip install\s+['\"]?cooper", path.read_text(encoding="utf-8"))]
    assert named == []


def test_a_wrong_command_is_found():
    for line in ("cooper tran x", "cooper train x.yaml rollout.m=1", "cooper eval m --problem p", "make domo"):
        program, *arguments = shell_commands(line)[0]
        with pytest.raises(Exception, match=r"tran|unknown key|problem|domo"):
            {"cooper": _check_cooper, "make": _check_make}[program](arguments)
    loop = "for s in 0 1; do A=1 cooper demo --seed $s; done  # twice"
    assert shell_commands(loop) == [["cooper", "demo", "--seed", "0"]]


def _check_cooper(arguments: list[str]) -> None:
    """Check that the words parse and that the settings among them fit."""
    command, names = get_command(commands), []
    while arguments and (inner := getattr(command, "commands", {}).get(arguments[0])) is not None:
        command, names = inner, [*names, arguments[0]]
        arguments = arguments[1:]
    assert not (arguments and hasattr(command, "commands")), f"cooper has no command {arguments[0]!r}"
    try:
        given = command.make_context(" ".join(["cooper", *names]), list(arguments)).params
    except typer.Exit:  # an option such as --help, which acts while it is parsed
        return
    name = " ".join(names)
    if name == "train":
        path = ROOT / given["config"]
        overrides = given["overrides"] or []
        load_config(path, overrides) if path.exists() else build_config(with_overrides(merge({}, MINIMAL), overrides))
    elif name == "verifyrm collect":
        check(CollectConfig, read_settings(ROOT / given["config"], given["overrides"] or []))
    if given.get("judge"):
        check(JudgeFile, read_settings(ROOT / given["judge"]))
    if name in SETTINGS_OF:
        needed = {"source": "problems.jsonl"} if name == "eval" else {"model": "models/my-policy"}
        record_from(SETTINGS_OF[name], needed, given["setting"] or [])


def _check_make(arguments: list[str]) -> None:
    targets = set(re.findall(r"^([\w-]+):", _page("Makefile"), flags=re.MULTILINE))
    assert {word for word in arguments if "=" not in word} <= targets, f"make {arguments}: no such target"


def _is_ours(arguments: list[str]) -> bool:
    return arguments[:1] != ["-m"] or (ROOT / "tests" / arguments[1] / "__main__.py").exists()


def _check_python(arguments: list[str]) -> None:
    if arguments[0] == "-m":
        return
    script = _page(arguments[0])
    unknown = [word for word in arguments[1:] if word.startswith("--") and f'"{word.split("=")[0]}"' not in script]
    assert not unknown, f"{arguments[0]} has no option {unknown}"


def _check_pip(arguments: list[str]) -> None:
    extras = tomllib.loads(_page("pyproject.toml"))["project"]["optional-dependencies"]
    named = [name for word in arguments for found in re.findall(r"\[(.*?)\]", word) for name in found.split(",")]
    assert set(named) <= set(extras), f"pip {arguments}: no such extra"


def _page(name: str) -> str:
    path = ROOT / name if (ROOT / name).exists() else ROOT / "docs" / name
    return path.read_text(encoding="utf-8")


def _with_checks(code: str) -> str:
    """Turn each line `expression  # value` into an assertion that the expression has this value."""
    return "\n".join(map(_with_check, code.splitlines())) + "\n"


def _with_check(line: str) -> str:
    match = re.fullmatch(r"(\s*)(\S.*?)  # (.+)", line)
    if match is None:
        return line
    space, expression, value = match.groups()
    try:
        literal_eval(value)
        compile(expression, "line", "eval")
    except (SyntaxError, ValueError):  # a comment in words, or a part of a longer statement
        return line
    return f"{space}assert ({expression}) == {value}"


def _fill(folder: Path, tiny_models: Path) -> None:
    """Write tiny models and problems under the names of the pages, with room for completions of default length."""
    for source, name in (("policy", "my-policy"), ("reward_model", "my-verifyrm")):
        target = folder / "models" / name
        shutil.copytree(tiny_models / source, target)
        config = json.loads((target / "config.json").read_text()) | {"max_position_embeddings": 4096}
        (target / "config.json").write_text(json.dumps(config))
    rows = [{"question": f"{n}+{n}=", "answer": str(2 * n)} for n in range(64)]
    for name in ("problems.jsonl", "test.jsonl"):
        (folder / name).write_text("".join(json.dumps(row) + os.linesep for row in rows))
