"""Parts by kind: from the package, from outside, as objects, and the errors for wrong ones."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol
from uuid import uuid4

import pytest
import yaml
from pydantic import Field

from cooper_base.config.base import Config, Kinds
from cooper_base.config.checking import Settings, check_settings
from cooper_base.config.explanation import commented_yaml, explain, narrow
from cooper_base.config.user_functions import added
from cooper_base.errors import InputError


class Shape(Protocol):
    def area(self) -> float: ...


PART = """
from typing import Literal
from pydantic import Field
from {package} import SHAPES
from cooper_base.config.base import Config

@SHAPES.register
class {name}(Config):
    kind: Literal["{kind}"] = "{kind}"
    side: float = Field(default=1.0, gt=0)
    def area(self):
        return self.side**2 * {factor}
"""

OUTSIDE = """
from cooper_base.config.base import Config

class Disc(Config):
    radius: float = 1.0
    def area(self):
        return 3 * self.radius**2

class NoShape(Config):
    size: float = 1.0
"""


@pytest.fixture
def shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kinds:
    """A package of parts on disk with a square and a triangle, one file each, and a user-written module next to it."""
    package = f"shapes_{uuid4().hex}"
    (tmp_path / package).mkdir()
    registry = f"from cooper_base.config.base import Kinds\nSHAPES = Kinds('shape', '{package}', ['area'])\n"
    (tmp_path / package / "__init__.py").write_text(registry)
    for name, kind, factor in (("Square", "square", 1), ("Triangle", "triangle", 0.5)):
        part = PART.format(package=package, name=name, kind=kind, factor=factor)
        (tmp_path / package / f"{kind}.py").write_text(part)
    (tmp_path / "my_shapes.py").write_text(OUTSIDE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_shapes", raising=False)
    return import_module(package).SHAPES


def record_of(shapes: Kinds) -> Any:
    class Drawing(Config):
        shape: Annotated[Shape, shapes]
        others: tuple[Annotated[Shape, shapes], ...] = ()
        title: Literal["a", "b"] = "a"
        width: float = Field(default=1.0, gt=0)

    return Drawing


def test_a_file_in_the_package_is_a_kind(shapes):
    assert list(shapes.records) == ["square", "triangle"]
    drawing = record_of(shapes).model_validate({"shape": {"kind": "triangle", "side": 4}})
    assert drawing.shape.area() == 8


def test_kinds_may_also_be_in_one_file(tmp_path, monkeypatch):
    module = f"flat_shapes_{uuid4().hex}"
    registry = f"from cooper_base.config.base import Kinds\nSHAPES = Kinds('shape', '{module}', ['area'])\n"
    parts = [PART.format(package=module, name=kind.title(), kind=kind, factor=1) for kind in ("square", "circle")]
    (tmp_path / f"{module}.py").write_text(registry + "".join(parts).replace(f"from {module} import SHAPES\n", ""))
    monkeypatch.syspath_prepend(str(tmp_path))
    flat = import_module(module).SHAPES
    assert list(flat.records) == ["circle", "square"]
    assert record_of(flat).model_validate({"shape": {"kind": "square", "side": 4}}).shape.area() == 16
    with pytest.raises(InputError, match="no shape of kind 'triangle'; kinds: circle, square"):
        flat.record("triangle")


def test_an_installed_package_adds_a_kind_by_an_entry_point(shapes, tmp_path, monkeypatch):
    about = tmp_path / "more_shapes-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: more-shapes\nVersion: 1.0\n")
    entries = ("shape.disc = more_shapes:Disc", "shaper.cone = more_shapes:Absent")
    (about / "entry_points.txt").write_text("\n".join(["[cooper.kinds]", *entries]))
    disc = PART.format(package=shapes._home, name="Disc", kind="disc", factor=3)
    (tmp_path / "more_shapes.py").write_text(disc.replace("@SHAPES.register\n", ""))
    added.cache_clear()
    monkeypatch.delitem(sys.modules, "more_shapes", raising=False)
    try:
        drawing = record_of(shapes).model_validate({"shape": {"kind": "disc", "side": 2}})
        assert drawing.shape.area() == 12
        assert drawing.model_dump()["shape"] == {"kind": "disc", "side": 2.0}
        assert f"{shapes._home}.triangle" not in sys.modules  # one kind is looked up without the others
        assert list(shapes.records) == ["disc", "square", "triangle"]
        with pytest.raises(InputError, match="no shape of kind 'cone'; kinds: disc, square, triangle"):
            shapes.record("cone")
    finally:
        added.cache_clear()


def test_records_from_outside_and_objects_are_accepted_as_parts(shapes):
    drawing = record_of(shapes).model_validate({"shape": {"kind": "my_shapes:Disc", "radius": 2}})
    assert drawing.shape.area() == 12
    assert record_of(shapes)(shape=drawing.shape).shape is drawing.shape


def test_written_settings_make_the_same_parts_again(shapes):
    record = record_of(shapes)
    settings = {"shape": {"kind": "my_shapes:Disc", "radius": 2.0}, "others": [{"kind": "square", "side": 3.0}]}
    drawing = record.model_validate(settings)
    written = drawing.model_dump(mode="json")
    assert written["shape"] == settings["shape"]
    assert written["others"] == settings["others"]
    assert record.model_validate(written) == drawing


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shape": {"kind": "squar"}}, "no shape of kind 'squar'; kinds: square, triangle"),
        ({"shape": {"side": 1}}, "kind is missing"),
        ({"shape": 3}, "expected the settings of one shape"),
        ({"shape": {"kind": "my_shapes:NoShape"}}, "cannot serve as shape: it has no area"),
        ({"shape": {"kind": "my_shapes:Nothing"}}, "Nothing does not exist in my_shapes"),
        ({"shape": {"kind": "my_shape:Disc"}}, "No module named 'my_shape'"),
        ({"shape": {"kind": "square", "side": -1}}, "shape.side: Input should be greater than 0"),
        ({"shape": {"kind": "square", "sid": 1}}, "unknown key 'shape.sid'; did you mean 'side'?"),
        ({"shape": {"kind": "my_shapes:Disc", "radios": 1}}, "unknown key 'shape.radios'; did you mean 'radius'?"),
        (
            {"shape": {"kind": "square"}, "others": [{"kind": "square"}, {"kind": "triangle", "side": 0}]},
            "others.1.side",
        ),
    ],
)
def test_an_error_about_wrong_settings_names_the_key(shapes, settings, message):
    with pytest.raises(InputError, match="config: ") as error:
        check_settings(record_of(shapes), Settings(settings))
    assert message in str(error.value)


@pytest.mark.parametrize("settings", ["run.yaml", ["shape"], None, 1])
def test_settings_that_are_no_mapping_are_refused_as_what_they_are(shapes, settings):
    with pytest.raises(InputError, match=f"expected a mapping of settings, found {type(settings).__name__}"):
        check_settings(record_of(shapes), Settings(settings))


def test_a_part_may_contain_parts_of_its_own_type_and_the_schema_stays_finite(shapes, tmp_path, monkeypatch):
    class Pile(Config):
        kind: Literal["pile"] = "pile"
        layers: tuple[Annotated[Shape, shapes], ...] = ()

        def area(self) -> float:
            return sum(shape.area() for shape in self.layers)

    assert len(shapes.records) == 2  # the package's own kinds, before this test adds one
    shapes.register(Pile)
    drawing = record_of(shapes).model_validate({"shape": {"kind": "pile", "layers": [{"kind": "square"}] * 2}})
    assert drawing.shape.area() == 2
    schema = record_of(shapes).model_json_schema()
    pile = next(one for name, one in schema["$defs"].items() if name.endswith("Pile"))
    *kinds, outside = pile["properties"]["layers"]["items"]["oneOf"]
    assert [one["allOf"][0]["$ref"] for one in kinds] == [f"#/$defs/{name}" for name in ("Square", "Triangle", "Pile")]
    assert outside["properties"]["kind"]["pattern"] == ":"
    assert [one.key for one in explain(record_of(shapes)) if one.key.startswith("shape.layers")] == ["shape.layers"]


def test_parts_by_name_are_explained_and_printed(shapes):
    class Gallery(Config):
        parts: dict[str, Annotated[Shape, shapes]] = Field(default_factory=dict)

    explained = {(one.key, one.kind): one.values for one in explain(Gallery)}
    kinds = "square | triangle | package.module:Class"
    assert explained["parts", None] == f"mapping of names to section of kind {kinds}; default {{}}"
    assert explained["parts.<name>.side", "triangle"] == "number, above 0; default 1.0"
    assert [one.kind for one in narrow(explain(Gallery), "parts.side")] == ["square", "triangle"]
    settings = {
        "parts": {"first": {"kind": "square", "side": 2.0}, "second": {"kind": "my_shapes:Disc", "radius": 3.0}}
    }
    assert yaml.safe_load(commented_yaml(Gallery.model_validate(settings))) == settings
