"""What a reader has to hold in mind stays small: settings, public names, functions that fit a screen, files of one
thought, few protocols that are asked for at run time. A new feature pays for what it adds."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from cooper_rl import Config, RunConfig
from repository import ROOT, SOURCES, statements, tree_of

pytestmark = pytest.mark.xdist_group("sources")

SCREEN, FILE = 50, 500
"""Lines of a function and of a file."""
SETTINGS = 180
"""Settings of a run whose records are in the framework's four packages, each once, without `kind`."""
UNSET_SHARE = 0.15
"""The largest share of these that no configuration, example, page, benchmark or design sets."""
PUBLIC_NAMES = 64
"""Names that users import, from all packages together: 58 of `cooper_rl`, a grader's four, and an audit's two. Those of
`cooper_verify.compat` are other projects' names, which its users know, and do not count."""
PROTOCOLS_ASKED_FOR = 3
"""Classes with `runtime_checkable`. A base class with defaults needs no such question."""

FILES = {
    path.relative_to(source.parent).as_posix(): path for source in SOURCES for path in sorted(source.rglob("*.py"))
}


@cache
def _statements() -> list[tuple[str, ast.stmt]]:
    return [(name, statement) for name, path in FILES.items() for statement in statements(tree_of(path))]


def _lines(path: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The options of a command are its signature, which is read as a list and does not count."""
    first = function.body[0] if "cli" in Path(path).parts else function
    return (function.end_lineno or 0) - first.lineno + 1


def test_functions_fit_a_screen():
    functions = {
        f"{path}:{node.name}": _lines(path, node)
        for path, node in _statements()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    long = {name for name, lines in functions.items() if lines > SCREEN}
    assert long == set(), "split these functions by what they decide"


def test_files_hold_a_thought():
    long = {name for name, path in FILES.items() if len(path.read_text(encoding="utf-8").splitlines()) > FILE}
    assert long == set(), "split these files where a thought ends"


def test_few_protocols_are_asked_for_at_run_time():
    found = [
        f"{path}:{node.name}"
        for path, node in _statements()
        if isinstance(node, ast.ClassDef)
        if any(isinstance(name, ast.Name) and name.id == "runtime_checkable" for name in node.decorator_list)
    ]
    assert len(found) <= PROTOCOLS_ASKED_FOR, found


def _records(record: type[Config]) -> Iterator[type[Config]]:
    for derived in record.__subclasses__():
        yield derived
        yield from _records(derived)


@cache
def _settings() -> set[str]:
    """The settings of a run, as module, record and name."""
    in_schema = {"RunConfig", *RunConfig.model_json_schema()["$defs"]}
    return {
        f"{base.__module__}.{base.__name__}.{name}"
        for record in _records(Config)
        if record.__name__ in in_schema
        for base in record.__mro__
        if base.__module__.startswith("cooper_") and not base.__module__.startswith("cooper_lab.")
        for name in vars(base).get("__annotations__", {})
        if name in record.model_fields and name != "kind"
    }


def test_a_run_has_few_settings():
    assert len(_settings()) <= SETTINGS, "remove a setting that nobody sets, or make it a constant"


KEYS = {
    ".py": re.compile(r"""["'](\w+)["']\s*:|(\w+)=(?![=\s])"""),
    ".yaml": re.compile(r"(\w+):(?=[\s\[{]|$)", re.MULTILINE),
    ".md": re.compile(r"(\w+):(?=[\s\[{]|$)|(\w+)=(?![=\s])", re.MULTILINE),
}
"""What is written as the key of a value, by the kind of file."""


def test_most_settings_are_set_in_a_configuration_an_example_or_a_page():
    folders = ("configs", "examples", "benchmarks", "docs", "packages/lab")
    paths = [path for name in folders for path in (ROOT / name).rglob("*") if path.suffix in KEYS]
    keys = {
        key
        for path in [ROOT / "README.md", *paths]
        for match in KEYS[path.suffix].findall(path.read_text(encoding="utf-8"))
        for key in ([match] if isinstance(match, str) else match)
    }
    unset = sorted(setting for setting in _settings() if setting.rpartition(".")[2] not in keys)
    assert len(unset) <= UNSET_SHARE * len(_settings()), unset


def test_few_names_are_public():
    names = {
        name.name
        for source in SOURCES
        for listed in source.glob("__init__.pyi")
        for node in ast.parse(listed.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert len(names) <= PUBLIC_NAMES, "a user must be able to hold them all: leave out what few would import"
