"""Imports go down: no module imports from a higher layer.

A module may import from its own entry and from the layers below. Entries are prefixes of module names inside the
package, and the most specific one applies. Imports that only type checkers read do not count.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import cooper_rl

PACKAGE = "cooper_rl"
SOURCE = Path(__file__).parents[1] / "src"

LAYERS = """
packages
errors, recipes
config, metric_names
data, losses
rollouts, clients
engines
environments
persist, revisions
policy
graders.grader
rules
config_checking
graders
rewards
engines.cpu < engines.local < engines.vllm < engines.fsdp2 < engines.ray < engines.kinds
stage2
evaluation
observe
callbacks, run_config
first_screen
service
adapters
grading
audit
verifyrm
inputs
step
build, checkpoint_content
trainer
attack
cli
"""
"""The layers from bottom to top. Entries on one line may not import each other, except from the left side of a `<`.

What every engine is (`engines`) lies below what learns and samples with it; the engines themselves lie above.
"""

RANK = {
    name.strip(): (row, place)
    for row, line in enumerate(LAYERS.strip().split("\n"))
    for place, names in enumerate(line.split("<"))
    for name in names.split(",")
}


def entry_of(module: str) -> str:
    """The entry of the table that a module (without the package's name) belongs to."""
    parts = module.split(".")
    found = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((name for name in found if name in RANK), "")


def imports(tree: ast.AST) -> Iterator[str]:
    """The package's modules that run-time code imports, at the top of a file or inside a function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            yield from [node.module] if node.module != PACKAGE else [f"{PACKAGE}.{name.name}" for name in node.names]
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        yield from imports(node)


def arrows() -> Iterator[tuple[str, str]]:
    """Every pair of a module and a module of the package that it imports, without the package's name."""
    for path in sorted((SOURCE / PACKAGE).rglob("*.py")):
        module = ".".join(path.relative_to(SOURCE / PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        for imported in imports(ast.parse(path.read_text(encoding="utf-8"))):
            if module != "__init__" and imported.startswith(f"{PACKAGE}.") and not imported.endswith("__version__"):
                yield module, imported.removeprefix(f"{PACKAGE}.")


def is_allowed(module: str, imported: str) -> bool:
    here, there = entry_of(module), entry_of(imported)
    return here == there or RANK[there] < RANK[here]


def test_every_module_has_its_layer():
    assert sorted({name for arrow in arrows() for name in arrow if not entry_of(name)}) == []


def test_no_import_goes_back_up():
    back = sorted({arrow for arrow in arrows() if not is_allowed(*arrow)})
    assert back == [], "move what both need into the lower room, or see the table of layers in this file"


def test_what_is_only_for_cpus_is_entered_by_one_door():
    outside = [arrow for arrow in arrows() if not arrow[0].startswith("engines.cpu")]
    assert [arrow for arrow in outside if arrow[1].startswith("engines.cpu.")] == []
    assert [arrow for arrow in outside if arrow[1] == "engines.cpu"]


def test_the_lab_imports_nothing_private():
    private = []
    for path in sorted((SOURCE / "cooper_lab").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE:
                parts = [*(node.module or "").split("."), *(name.name for name in node.names)]
                private += [(path.name, part) for part in parts if part.startswith("_") and part != "__version__"]
    assert private == []


def test_the_framework_does_not_know_the_lab():
    """Its parts are kinds by entry points of pyproject.toml, like those of any package. One file knows its name: its
    frames are ours in a user's traceback, and its parts have settings that are checked like ours."""
    root = SOURCE / PACKAGE
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in root.rglob("*.py")}
    assert sorted(name for name, text in texts.items() if "cooper_lab" in text) == ["packages.py"]
    assert not any("import cooper_lab" in text or "from cooper_lab" in text for text in texts.values())


def test_every_public_name_is_there():
    assert all(getattr(cooper_rl, name) is not None for name in dir(cooper_rl) if not name.startswith("_"))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from cooper_base.data.text import x", ["cooper_base.data.text"]),
        ("import cooper_base.data.text", ["cooper_base.data.text"]),
        ("def f():\n    from cooper_rl.step import g", ["cooper_rl.step"]),
        ("from cooper_rl import step", ["cooper_rl.step"]),
        ("if TYPE_CHECKING:\n    from cooper_rl.step import g", []),
    ],
)
def test_imports_are_found_where_they_run(source: str, found: list[str]):
    assert list(imports(ast.parse(source))) == found


def test_an_arrow_up_is_one_and_so_is_one_to_a_neighbour():
    assert is_allowed("step", "rewards.base")
    assert not is_allowed("rewards.base", "step")
    assert not is_allowed("clients.chat", "rollouts")
    assert is_allowed("engines.local.learner", "engines.cpu")
    assert not is_allowed("engines.cpu.linear", "engines.local")
    assert not is_allowed("policy.update", "engines.local.learner")
