"""The blocks in the README and the docs work as printed: settings fit their records, code runs, commands parse."""

import importlib
import json
import os
import re
import shutil
import signal
import sys
import time
import tomllib
from ast import literal_eval
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from cooper_base.cli.console import in_full, names_and_settings, record_from
from cooper_base.cli.main import commands
from cooper_base.config.base import merge
from cooper_base.config.checking import Settings, check_settings, read_settings, with_overrides
from cooper_base.config.strict_yaml import parse_yaml
from cooper_base.config.user_functions import load_object
from cooper_rl.engines.config import ScorerConfig
from cooper_rl.policy.evaluation_config import EvalConfig
from cooper_rl.run_config import build_config, load_config
from cooper_rl.service.config import ServeConfig
from cooper_rl.verifyrm.config import CollectConfig, VerifyRMConfig
from cooper_verify.graders.judge import JudgeFile
from docs.not_run import NOT_RUN, reason_not_to_run
from docs.snippets import PAGES, Snippet, all_snippets, shell_commands, snippets_of
from forks import start_script
from repository import ROOT, SOURCES
from runs.recorded_run import completion, group, write_run

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
SETTINGS_OF = {"eval": EvalConfig, "verifyrm train": VerifyRMConfig, "verifyrm bench": ScorerConfig}
"""The record of the settings among a command's arguments."""
CHEAP = {"config", "verify", "runs", "report"}
"""Commands that run; of all others the words and the settings are read. An arena with a file is planned, not run."""
NAMES = {"kind", "function", "gold", "rule"}
"""Settings that may name something in a module."""
EXAMPLES = ROOT / "examples"


def _page_of(snippet: Snippet) -> str:
    return snippet.place.partition(":")[0]


PAGES_WITH_BLOCKS = sorted({_page_of(snippet) for snippet in SNIPPETS})
SLOW: dict[str, pytest.MarkDecorator] = dict.fromkeys(
    ("trainers/trl.md", "tutorials/notebook.md", "attack.md"), pytest.mark.slow
)
"""Pages that take longer than the others together; `examples/trl_grpo.py` runs in the fast tests."""


def test_every_block_is_found_and_says_what_it_is():
    page = '```\na\n```\n\n```bash\nb \\\n  c\n```\n1. d\n   ```yaml title="e.yaml"\n   e: 1\n   ```\n'
    found = [(s.place, s.language, s.title, s.text) for s in snippets_of(page, "p.md")]
    assert found == [
        ("p.md:1", "", None, "a\n"),
        ("p.md:5", "bash", None, "b \\\n  c\n"),
        ("p.md:10", "yaml", "e.yaml", "e: 1\n"),
    ]
    fences = sum(text.count("```") for page in PAGES_WITH_BLOCKS for text in [_page(page)])
    assert fences == 2 * len(SNIPPETS)
    assert [s.place for s in SNIPPETS if s.language not in LANGUAGES] == [], f"write one of {sorted(LANGUAGES)}"


def test_every_reason_not_to_run_is_one_of_a_block():
    runnable = [s.text for s in SNIPPETS if s.language in ("python", "bash")]
    assert [part for part in NOT_RUN if not any(part in text for text in runnable)] == []


@pytest.fixture
def reader(tiny_models, tmp_path, monkeypatch) -> Iterator[Path]:
    """The folder of a reader, who has the files that all pages speak of and no module but those that the page shows."""
    _fill(tmp_path, tiny_models)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place and Path(place) != EXAMPLES])
    written = {Path(snippet.title).stem for snippet in SNIPPETS if snippet.title}
    for name in {*_modules_in(EXAMPLES), *written}:  # another test may have loaded a module of the same name
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield tmp_path
    for name in _modules_in(tmp_path):
        del sys.modules[name]


@pytest.mark.parametrize("page", [pytest.param(page, marks=SLOW.get(page, ())) for page in PAGES_WITH_BLOCKS])
def test_a_page_works_as_printed(page, reader):
    """From top to bottom: files are written, settings read with what they name, commands run or read, code run."""
    session: list[str] = []
    for snippet in (one for one in SNIPPETS if _page_of(one) == page):
        if snippet.title:
            (reader / snippet.title).write_text(snippet.text)
            importlib.invalidate_caches()
        if snippet.language == "python":
            compile(snippet.text, snippet.place, "exec")
            if snippet.title:
                _run_code(snippet.text, reader)
            elif not reason_not_to_run(snippet.text):
                session.append(snippet.text)
        elif snippet.language == "yaml":
            _check_settings(snippet, reader)
        elif snippet.language == "bash":
            _check_commands(snippet)
    if session:
        _run_code("\n".join(session), reader)


def _check_settings(snippet: Snippet, reader: Path) -> None:
    """Settings are read by the record they belong to, and what they name is imported."""
    values, lines = parse_yaml(snippet.text)
    for module in {name.partition(":")[0] for name in _named(values)}:
        example = EXAMPLES / f"{module}.py"
        if example.exists() and f"`{example.name}`" in _page(_page_of(snippet)):
            shutil.copy(example, reader)  # a reader who follows the page has it, and nothing that lies beside it
    for name in _named(values):
        load_object(name)
    settings = Settings(values, snippet.place, lines)
    if "judge" in values:
        check_settings(JudgeFile, settings)
    elif "serve" in values:
        check_settings(ServeConfig, settings)
    elif "models" in values:
        check_settings(CollectConfig, settings)
    elif snippet.title not in ("designs.yaml", "holes.yaml"):  # which `cooper arena` reads, further down on the page
        build_config(merge(MINIMAL, values))


def _named(values: Any, key: str = "") -> list[str]:
    """Every `module:name` in settings."""
    if isinstance(values, dict):
        return [name for inner, value in values.items() for name in _named(value, inner)]
    if isinstance(values, list):
        return [name for value in values for name in _named(value, key)]
    return [values] if key in NAMES and isinstance(values, str) and ":" in values else []


def _run_code(code: str, folder: Path) -> None:
    """Run code in a process of its own, in the reader's folder. Ctrl-C ends a training run after its first step."""
    (folder / "snippet.py").write_text(_with_checks(code))
    before = {*folder.glob("runs/*/metrics.jsonl")}
    process = start_script(folder / "snippet.py", folder / "output", folder / "huggingface" / "hub")
    try:
        deadline = time.monotonic() + 300
        while process.is_alive() and time.monotonic() < deadline:
            process.join(0.2)
            if any(path.read_text() for path in {*folder.glob("runs/*/metrics.jsonl")} - before) and process.pid:
                os.kill(process.pid, signal.SIGINT)
                process.join(100)
    finally:
        process.kill()
        process.join()
    assert process.exitcode == 0, (folder / "output").read_text()


def _check_commands(snippet: Snippet) -> None:
    checks = {"cooper": _check_cooper, "make": _check_make, "python": _check_python, "pip": _check_pip}
    for program, *arguments in shell_commands(snippet.text):
        if program not in checks or (program == "python" and not _is_ours(arguments)):
            reason = reason_not_to_run(snippet.text)
            assert reason, f"{snippet.place}: nothing checks {program}; say in tests/docs/not_run.py why"
            continue
        checks[program](arguments)
        for word in arguments:
            if word.startswith(("configs/", "benchmarks/", "examples/", "tests/", "packages/")):
                assert (ROOT / word).exists(), f"{snippet.place}: {word} does not exist"
        if program == "cooper" and arguments[0] in CHEAP:
            commands(arguments, standalone_mode=False)
        elif program == "cooper" and arguments[0] == "arena" and _names_files_of_the_page(arguments):
            commands([*arguments, "--report"], standalone_mode=False)


def _names_files_of_the_page(arguments: list[str]) -> bool:
    """Whether an arena reads designs or holes that the page itself shows, and that can be planned from them."""
    return bool({"--designs", "--holes"} & {*arguments}) and not any(
        word.startswith(("benchmarks/", "examples/")) for word in arguments
    )


def test_nothing_is_installed_by_a_name_that_is_not_published():
    pages = [*PAGES, *(path for source in SOURCES for path in source.rglob("*.py"))]
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
        check_settings(CollectConfig, read_settings(ROOT / given["config"], given["overrides"] or []))
    if given.get("judge"):
        check_settings(JudgeFile, read_settings(ROOT / given["judge"]))
    if name in SETTINGS_OF:
        needed = {"problems": {"source": "p.jsonl"}} if name == "eval" else {"model": "models/my-policy"}
        _, settings = names_and_settings(given["given" if name == "eval" else "data"])
        record_from(SETTINGS_OF[name], needed, [*map(in_full, settings)])


def _check_make(arguments: list[str]) -> None:
    targets = set(re.findall(r"^([\w-]+):", _page("Makefile"), flags=re.MULTILINE))
    assert {word for word in arguments if "=" not in word} <= targets, f"make {arguments}: no such target"


def _is_ours(arguments: list[str]) -> bool:
    return arguments[:1] != ["-m"] or arguments[1].startswith("benchmarks.")


def _path_of(module: str) -> str:
    path = module.replace(".", "/")
    return f"{path}/__main__.py" if (ROOT / path).is_dir() else f"{path}.py"


def _check_python(arguments: list[str]) -> None:
    """An option is written in the script, or in a module of `benchmarks` from which the script takes its names."""
    script = _page(_path_of(arguments[1]) if arguments[0] == "-m" else arguments[0])
    for module, names in re.findall(r"^from (benchmarks\.\S+) import (\([^)]*\)|.*)", script, re.MULTILINE):
        read = [module, *(f"{module}.{name}" for name in re.findall(r"\w+", names))]
        script += "".join(_page(path) for path in map(_path_of, read) if (ROOT / path).exists())
    unknown = [word for word in arguments[1:] if word.startswith("--") and f'"{word.split("=")[0]}"' not in script]
    assert not unknown, f"{arguments[0]} has no option {unknown}"


def _check_pip(arguments: list[str]) -> None:
    """The packages that are installed from their folders have the extras in brackets, and the groups exist."""
    for word in arguments:
        if word.startswith("./packages/"):
            folder, _, extras = word.removesuffix("]").partition("[")
            project = tomllib.loads(_page(f"{folder.removeprefix('./')}/pyproject.toml"))["project"]
            assert {*filter(None, extras.split(","))} <= {*project.get("optional-dependencies", ())}, f"pip {arguments}"
        assert not word.startswith(".["), f"pip {arguments}: the repository is five packages, packages/*"
    groups = tomllib.loads(_page("pyproject.toml"))["dependency-groups"]
    named = [word for option, word in pairwise(arguments) if option == "--group"]
    assert {*named} <= {*groups}, f"pip {arguments}: no such group"


def _modules_in(folder: Path) -> list[str]:
    """The names of the modules that have been imported from a folder."""
    files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
    return [name for name, file in files.items() if file and Path(file).parent == folder]


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
    cached = folder / "huggingface" / "hub" / "models--HuggingFaceTB--SmolLM2-135M-Instruct"
    shutil.copytree(folder / "models" / "my-policy", cached / "snapshots" / "tiny")
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("tiny")
    rows = [{"question": f"{n}+{n}=", "answer": str(2 * n), "completion": f"{n}+{n} is\n{2 * n}"} for n in range(64)]
    for name in ("problems.jsonl", "test.jsonl", "answers.jsonl"):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    metrics = [
        {"step": n, "reward/mean": 0.1 * n, "rule/accuracy": 0.1 * n, "test/rule_avg": 0.1 * n} for n in range(4)
    ]
    groups = [group("0+0=", completion("0", 0.9), completion("1", 0.1))]
    for name in ("my-run", "other", "own-data", "demo/static", "demo/cooper"):
        write_run(folder / "runs" / name, metrics, lambda step: groups, settings={"steps": 3, "name": name})
    (folder / "configs").symlink_to(ROOT / "configs")
    (folder / "shelf").symlink_to(EXAMPLES / "shelf")
