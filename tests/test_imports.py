"""Imports go down: from package to package, and from room to room inside each package.

A room is a folder or a file directly inside a package, or inside one of `HOUSES`. Every import counts: at the top of a
file, inside a function and under TYPE_CHECKING, because a reader follows types too. The order of the rooms is computed
from the imports.
"""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

from cooper_base.packages import PACKAGES
from repository import SOURCES, statements, tree_of

pytestmark = pytest.mark.xdist_group("sources")

FLOORS = 8
"""The most rooms of a package that stand on one another."""
ROOMS_OF_RL, FILES_OF_RL = 14, 4
"""The most rooms of cooper_rl, and the most of them that are files."""
SOURCE_OF = {source.name: source for source in SOURCES}
HOUSES = [*PACKAGES, "cooper_verify.rules"]
"""Packages, and folders that are as large as one: what is true of the rooms of a package is true of theirs."""


def imports(tree: ast.AST) -> Iterator[str]:
    """The dotted name of everything that code imports, wherever the import stands."""
    for node in statements(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


@cache
def arrows() -> list[tuple[str, str]]:
    """Every pair of a module and something that it imports from our packages, as dotted names."""
    return [
        (".".join(path.relative_to(source.parent).with_suffix("").parts).removesuffix(".__init__"), imported)
        for source in SOURCES
        for path in [*sorted(source.rglob("*.py")), *source.glob("*.pyi")]
        for imported in imports(tree_of(path))
        if package_of(imported) in SOURCE_OF
    ]


def package_of(name: str) -> str:
    return name.partition(".")[0]


def room_of(name: str, house: str | None = None) -> str | None:
    """The room of a dotted name in its package or in `house`; None outside, for the house itself and `__version__`."""
    house = house or package_of(name)
    room = name.removeprefix(f"{house}.").partition(".")[0]
    return room if name.startswith(f"{house}.") and room != "__version__" else None


def rooms_below(house: str) -> dict[str, set[str]]:
    """Every room of a house, with the rooms of the same house that it imports from."""
    below = {name: set() for name in rooms_in(SOURCE_OF[package_of(house)].parent / Path(*house.split(".")))}
    for module, imported in arrows():
        here, there = room_of(module, house), room_of(imported, house)
        if here and there and here != there:
            below[here].add(there)
    return below


def rooms_in(source: Path) -> list[str]:
    listed = [path for path in source.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    return sorted(path.stem for path in listed if path.stem != "__init__")


def floors(below: dict[str, set[str]]) -> dict[str, int]:
    """The floor of each room: 1 if it imports from no other, else one above the highest that it imports from."""
    of: dict[str, int] = {}
    for room in TopologicalSorter(below).static_order():
        of[room] = 1 + max((of[lower] for lower in below.get(room, ())), default=0)
    return of


def goes_up(module: str, imported: str) -> bool:
    return PACKAGES.index(package_of(imported)) > PACKAGES.index(package_of(module))


def test_no_package_imports_from_a_higher_one():
    up = sorted({arrow for arrow in arrows() if goes_up(*arrow)})
    assert up == [], f"the order is {' < '.join(PACKAGES)}: move what both need down, or bring it by an entry point"


def test_every_package_has_its_place_in_the_order():
    assert sorted(PACKAGES) == sorted(SOURCE_OF), "list the package in cooper_base/packages.py, above what it imports"


@pytest.mark.parametrize("house", HOUSES)
def test_no_rooms_form_a_circle(house: str):
    try:
        list(TopologicalSorter(rooms_below(house)).static_order())
    except CycleError as error:
        circle = list(reversed(error.args[1]))
        steps = list(pairwise(circle))
        lines = sorted(
            {(one, other) for one, other in arrows() if (room_of(one, house), room_of(other, house)) in steps}
        )
        pytest.fail(f"{' imports '.join(circle)}: move what both need into the lower room\n{lines}")


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_has_few_floors(package: str):
    high = floors(rooms_below(package))
    assert max(high.values()) <= FLOORS, f"join rooms that are always read together: {high}"


def test_the_trainers_package_has_few_rooms():
    rooms = rooms_in(SOURCE_OF["cooper_rl"])
    files = [room for room in rooms if (SOURCE_OF["cooper_rl"] / f"{room}.py").exists()]
    assert len(rooms) <= ROOMS_OF_RL, f"put a new room inside one of {rooms}"
    assert len(files) <= FILES_OF_RL, f"put a new file into a room; loose are {files}"


def test_no_module_imports_its_own_packages_public_names():
    """These are for users. A module of the package names the module that it means."""
    wrong = [
        (module, imported)
        for module, imported in arrows()
        if package_of(module) == package_of(imported) and "." in module
        if room_of(imported) is not None and room_of(imported) not in rooms_in(SOURCE_OF[package_of(imported)])
    ]
    assert wrong == []


def test_what_is_only_for_cpus_is_entered_by_one_door():
    cpu = "cooper_rl.engines.cpu"
    outside = [imported for module, imported in arrows() if not module.startswith(cpu) and imported.startswith(cpu)]
    modules = {path.stem for path in (SOURCE_OF["cooper_rl"] / "engines" / "cpu").glob("*.py")}
    assert [name for name in outside if name.removeprefix(cpu).split(".")[1] in modules] == []
    assert outside


def test_what_is_experimental_is_imported_by_the_list_of_engines_alone():
    scale = "cooper_rl.engines.scale"
    outside = {module for module, name in arrows() if name.startswith(scale) and not module.startswith(scale)}
    assert outside == {"cooper_rl.engines.kinds"}


def test_the_lab_imports_nothing_private():
    imported = [name for module, name in arrows() if package_of(module) == "cooper_lab" != package_of(name)]
    private = [name for name in imported if any(part.startswith("_") for part in name.split(".")) and "__" not in name]
    assert private == []


def test_no_lower_package_knows_the_lab():
    """The lab's parts are kinds by entry points, like those of any package. One file knows its name: its frames are
    ours in a user's traceback, and its parts have settings that are checked like ours."""
    texts = {
        f"{name}/{path.relative_to(source).as_posix()}": path.read_text(encoding="utf-8")
        for name, source in SOURCE_OF.items()
        if name != "cooper_lab"
        for path in source.rglob("*.py")
    }
    assert sorted(name for name, text in texts.items() if "cooper_lab" in text) == ["cooper_base/packages.py"]


@pytest.mark.parametrize("package", [name for name in PACKAGES if (SOURCE_OF[name] / "__init__.pyi").exists()])
def test_every_public_name_is_there(package: str):
    module = import_module(package)
    public = [name for name in dir(module) if not name.startswith("_")]
    assert public
    assert all(getattr(module, name) is not None for name in public)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from cooper_base.data.text import x", ["cooper_base.data.text.x"]),
        ("import cooper_base.data.text", ["cooper_base.data.text"]),
        ("def f():\n    from cooper_rl.step import g", ["cooper_rl.step.g"]),
        ("from cooper_rl import step", ["cooper_rl.step"]),
        ("if TYPE_CHECKING:\n    from cooper_rl.step import g", ["cooper_rl.step.g"]),
    ],
)
def test_imports_are_found_wherever_they_stand(source: str, found: list[str]):
    assert list(imports(ast.parse(source))) == found


def test_an_arrow_up_is_one_and_so_is_a_circle():
    assert goes_up("cooper_verify.rules.rule", "cooper_audit.statistics.wilson")
    assert not goes_up("cooper_audit.statistics", "cooper_verify.rules.rule.Rule")
    assert not goes_up("cooper_rl.step", "cooper_rl.records.Ragged")
    assert floors({"step": {"reward", "policy"}, "reward": {"records"}}) == {
        "records": 1, "policy": 1, "reward": 2, "step": 3
    }  # fmt: skip
    with pytest.raises(CycleError):
        floors({"reward": {"policy"}, "policy": {"reward"}})
