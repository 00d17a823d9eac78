"""Every script of benchmarks/ starts: its imports are found from where its docstring says that it is called."""

import ast
import re
import runpy
import sys
from pathlib import Path

import pytest

from repository import ROOT

SCRIPTS = [path.relative_to(ROOT) for path in sorted((ROOT / "benchmarks").rglob("*.py"))]
CALL = re.compile(r"((?:[A-Z_]+=\S+ )*)python (-m )?(benchmarks[\w./]*\w)")
NOT_INSTALLED = {"vllm"}
"""What has an environment of its own."""


def docstring(script: Path) -> str:
    return ast.get_docstring(ast.parse((ROOT / script).read_text(encoding="utf-8"))) or ""


def places(script: Path) -> list[str]:
    """Where Python looks for the script's imports first: its own folder, or the repository with `-m`."""
    given, as_module, _ = next(CALL.finditer(docstring(script)), re.match("()()()", "")).groups()  # pyright: ignore[reportOptionalMemberAccess]
    path = [str(ROOT / place) for place in re.findall(r"PYTHONPATH=(\S+)", given) for place in place.split(":")]
    return [str(ROOT if as_module else ROOT / script.parent), *path]


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_a_script_starts_from_where_it_says(script, monkeypatch):
    monkeypatch.setattr(sys, "path", [*places(script), *sys.path])
    for beside in (ROOT / script).parent.glob("*.py"):  # tests may have a module of that name
        monkeypatch.delitem(sys.modules, beside.stem, raising=False)
    before = {*sys.modules}
    try:
        runpy.run_path(str(ROOT / script), run_name="not main")
    except ModuleNotFoundError as error:
        if error.name not in NOT_INSTALLED:
            raise
        pytest.skip(f"{error.name} is not installed")
    finally:
        for name in {*sys.modules} - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(ROOT / "benchmarks")):
                del sys.modules[name]  # another room may have a module of that name


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_a_docstring_names_its_own_script(script):
    """As a path or as a module that exists."""
    for _, as_module, named in CALL.findall(docstring(script)):
        path = ROOT / (named.replace(".", "/") if as_module else named)
        assert path.is_file() or path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), named


def test_every_room_has_a_page_and_the_index_names_it():
    rooms = sorted(path.name for path in (ROOT / "benchmarks").iterdir() if path.is_dir() and [*path.glob("*.py")])
    index = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
    assert [room for room in rooms if f"({room}/README.md)" not in index] == []
