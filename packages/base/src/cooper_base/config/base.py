"""What configurations are made of: records whose fields carry their own documentation, and parts selected by `kind`."""

import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError, core_schema

from cooper_base.config.user_functions import added, load_added, load_object
from cooper_base.errors import InputError
from cooper_base.packages import PACKAGES
from cooper_base.public_names import public_name

Places = dict[tuple[str, ...], tuple[str, ...]]
"""The path of a setting, and the path at which the user wrote it."""


class Config(BaseModel):
    """Immutable settings of one component. The docstring under a field is its documentation."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)

    metric_names: ClassVar[tuple[str, ...]] = ()
    """The metrics that only a run with this part records, by their full names; `<…>` stands for any name. The setting
    `watch` is checked against them."""
    stands_for: ClassVar[Mapping[str, str]] = {}
    """For settings that users of other projects may expect here: what to write instead, by key."""

    @classmethod
    def set_by_kinds(cls, key: str, kind: str | None) -> dict[str, Any]:
        """The values that kinds of this record give to a setting inside it, by kind; `kind` is that of the setting's
        own part."""
        return {}

    @classmethod
    def expand(cls, settings: dict[str, Any]) -> tuple[dict[str, Any], Places]:
        """The settings with what other settings imply, and where those that have moved were written."""
        return settings, {}

    @model_validator(mode="before")
    @classmethod
    def _prepare(cls, values: Any) -> Any:
        """Expand, and turn true into text where a number is expected: pydantic would read it as 1, but rejects text."""
        if not isinstance(values, dict):
            return values
        values, _ = cls.expand(values)
        numbers = {name for name, field in cls.model_fields.items() if _takes_numbers_only(field.annotation)}
        return {name: _as_words(value) if name in numbers else value for name, value in values.items()}


def mapping_of(part: Any) -> dict[str, Any]:
    """The settings of a part, be it written as a mapping or made in Python; none of anything else."""
    return part if isinstance(part, dict) else vars(part) if isinstance(part, Config) else {}


def given_settings(part: Any) -> dict[str, Any] | None:
    """The settings that somebody has set in a part, be it written as a mapping or made in Python; None of others."""
    return part if isinstance(part, dict) else part.model_dump(exclude_unset=True) if isinstance(part, Config) else None


def merge(defaults: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """`settings` merged into `defaults` key by key. A mapping of another `kind` replaces the default mapping."""
    merged = dict(defaults)
    for key, value in settings.items():
        default = merged.get(key)
        if isinstance(default, dict) and isinstance(value, dict) and value.get("kind") in (None, default.get("kind")):
            value = merge(default, value)
        merged[key] = value
    return merged


def layered(record: type[Config], defaults: dict[str, Any], settings: Any) -> Any:
    """The settings of a record over defaults, merged field by field. Values that are no settings stay as they are.

    Where the defaults name a part's `kind`, settings of another kind replace that part. A part that was made in Python
    counts with the fields that somebody has set.
    """
    if isinstance(settings, Config):
        settings = {name: getattr(settings, name) for name in settings.model_fields_set}
    if not isinstance(settings, dict):
        return settings
    merged = dict(defaults)
    for name, value in settings.items():
        default, field = merged.get(name), record.model_fields.get(name)
        merged[name] = _over(default, value, field) if isinstance(default, dict) and field is not None else value
    return merged


def _over(default: dict[str, Any], value: Any, field: FieldInfo) -> Any:
    """The value of a field over its default, which is replaced if the value is of another kind."""
    if "kind" not in default:
        return layered(records_of(field)[0], default, value)
    kinds = kinds_of(field)
    kind = kinds.kind_of(value) if kinds is not None and isinstance(value, Config) else mapping_of(value).get("kind")
    if kind not in (None, default["kind"]):
        return value
    return layered(record_of_kind(field, default["kind"]) or records_of(field)[0], default, value)


def _takes_numbers_only(annotation: Any) -> bool:
    allowed = _types(annotation)
    return bool(allowed & {int, float}) and not allowed & {bool, Any}


def _types(annotation: Any) -> set[Any]:
    """The types that an annotation names, also inside unions, containers and Annotated."""
    inside = {member for part in get_args(annotation) for member in _types(part)}
    return inside | {annotation} if isinstance(annotation, type) or annotation is Any else inside


def _as_words(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_as_words(item) for item in value]
    return str(value).lower() if isinstance(value, bool) else value


NESTED = "part"
"""Type of the pydantic error that wraps the errors inside a part. `settings.check` unwraps them."""

RecordType = TypeVar("RecordType", bound=type[Config])


_WRITTEN = re.compile(r"https?://.|verifiers:.|rule:.|.*\.ya?ml$|[^:]*/[^:]*$")
"""A grader that is no object of Python: an address, an environment, a rule, a file of settings, a folder."""


class Kinds:
    """The registry of all kinds of one type of part, such as rewards.

    A kind is a configuration record with a field `kind: Literal["name"] = "name"` and the methods and fields in
    `needs`. The kinds in `home` register themselves with the decorator `register`. `home` is one module, or a package:
    then looking up one kind imports only the file of that name, if it exists, and listing all kinds imports every file.
    Installed packages add kinds by entry points named `noun.kind` of the group `cooper.kinds` (`shaping.rank`; a
    space in the noun becomes `_`). `kind: package.module:Class` selects a record from anywhere else. A field annotated
    `Annotated[Protocol, kinds]` reads any of these.

    Settings without `kind` are of the kind `default`, if that is set. With `of_function`, `kind: package.module:name`
    may name a function: `of_function()` is the record of such parts, whose field `kind` holds the function's path.
    With `of_grader`, settings may be a text, which is then the `kind`, and `kind` may be a grader as every command
    writes it: `of_grader()` is the record of such parts. Every record derives from the public class `base`.
    """

    def __init__(
        self,
        noun: str,
        home: str,
        needs: Sequence[str],
        default: str | None = None,
        of_function: Callable[[], type[Config]] | None = None,
        of_grader: Callable[[], type[Config]] | None = None,
        base: type[Config] = Config,
    ) -> None:
        self.noun = noun
        self.default = default
        self.outside = "package.module:Class" if of_function is None else "package.module:function"
        """The form of `kind` for a part from outside the package."""
        self._home = home
        self._needs = needs
        self._base = base
        self._of_function = of_function
        self._of_grader = of_grader
        self._records: dict[str, type[Config]] = {}
        self._imported = False
        self._described = False
        """Whether the JSON schemas of the kinds are being generated."""

    def register(self, record: RecordType) -> RecordType:
        """Add a record under the default of its field `kind`. Raises ValueError if another record has it."""
        kind = record.model_fields["kind"].default
        if self._records.get(kind, record) is not record:
            raise ValueError(f"two {self.noun}s of kind {kind!r}: {self._records[kind]} and {record}")
        self._check(record, record.__name__)
        self._records[kind] = record
        return record

    @property
    def records(self) -> dict[str, type[Config]]:
        """Every kind that has a name: our own, and those that installed packages add."""
        if not self._imported:
            self._imported = True
            self._import_home()
            for entry in added("kinds"):
                if entry.startswith(self._entry("")):
                    self.register(load_added("kinds", entry))
            self._records = dict(sorted(self._records.items()))  # independent of import order
        return self._records

    def record(self, kind: str) -> type[Config]:
        """The record of a kind, or of `package.module:Class`. Raises InputError if there is none."""
        # A file of the home, or an entry point, that is named after the kind is the only one to be imported.
        is_package = hasattr(import_module(self._home), "__path__")
        if is_package and kind not in self._records and kind.isidentifier() and find_spec(f"{self._home}.{kind}"):
            import_module(f"{self._home}.{kind}")
        if kind not in self._records and self._entry(kind) in added("kinds"):
            self.register(load_added("kinds", self._entry(kind)))
        if kind not in self._records:
            self._import_home()
        if kind in self._records:
            return self._records[kind]
        # `rule:exact` is a grader; `rule:name` of no kind is a function in a user's module `rule`.
        module, _, name = kind.partition(":")
        is_function = module == self.noun and name.isidentifier() and name not in self.records
        if self._of_grader is not None and _WRITTEN.match(kind) and not is_function:
            return self._of_grader()
        if ":" in kind:
            return self._from_outside(kind)
        known = ", ".join(self.records)
        graders = "" if self._of_grader is None else ", or a grader such as judge.yaml, ./model or file.py:Class"
        raise InputError(
            f"no {self.noun} of kind {kind!r}; kinds: {known}, or {self.outside} for your own{graders}; further "
            "designs of papers are in the package cooper-lab and in the folder examples/shelf of Cooper's repository"
        )

    def is_from_outside(self, kind: str) -> bool:
        """Whether this is no name of a kind but an object of the user's, or a grader."""
        return ":" in kind or (self._of_grader is not None and _WRITTEN.match(kind) is not None)

    def kind_of(self, part: Config) -> str:
        """The `kind` of this part in a configuration."""
        if holds_kind(type(part)):
            return getattr(part, "kind")  # noqa: B009 - it is the function's path, or the grader
        named = (kind for kind, record in self._records.items() if record is type(part))
        return next(named, f"{type(part).__module__}:{type(part).__qualname__}")

    def read(self, value: Any) -> Config:
        """A part from its settings. A value that is already a part stays as it is."""
        if isinstance(value, Config):
            self._check(type(value), type(value).__name__)
            return value
        if isinstance(value, str) and self._of_grader is not None:
            value = {"kind": value}
        if not isinstance(value, dict):
            raise ValueError(f"expected the settings of one {self.noun}, with kind: one of {', '.join(self.records)}")
        if "kind" not in value and self.default is None:
            raise ValueError(f"kind is missing; write kind: one of {', '.join(self.records)}")
        value = {"kind": self.default, **value}
        record = self.record(str(value["kind"]))
        try:
            own = value if holds_kind(record) else {key: value[key] for key in value if key != "kind"}
            return record.model_validate(own)
        except ValidationError as error:
            raise PydanticCustomError(NESTED, "{text}", {"text": str(error), "errors": error.errors()}) from error

    def dump(self, part: Config) -> dict[str, Any]:
        """The settings from which `read` makes an equal part."""
        return {"kind": self.kind_of(part)} | part.model_dump(mode="json", exclude={"kind"})

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self.read, serialization=core_schema.plain_serializer_function_ser_schema(self.dump)
        )

    def _entry(self, kind: str) -> str:
        return f"{self.noun.replace(' ', '_')}.{kind}"

    def _import_home(self) -> None:
        for module in pkgutil.iter_modules(getattr(import_module(self._home), "__path__", [])):
            import_module(f"{self._home}.{module.name}")

    def _from_outside(self, path: str) -> type[Config]:
        record = load_object(path, "class" if self._of_function is None else "function")
        if self._of_function is not None and callable(record) and not isinstance(record, type):
            return self._of_function()
        if self._of_grader is not None and (hasattr(record, "grade") or not isinstance(record, type)):
            return self._of_grader()
        if not (isinstance(record, type) and issubclass(record, Config)):
            raise InputError(
                f"{path}: not a configuration record; every {self.noun} must be a subclass of {public_name(self._base)}"
            )
        self._check(record, path)
        return record

    def _check(self, record: type[Config], name: str) -> None:
        if not issubclass(record, self._base):
            raise InputError(
                f"{name} cannot serve as {self.noun}: derive it from {public_name(self._base)}, which has "
                "defaults for all that it leaves out"
            )
        missing = [
            need
            for need in self._needs
            if need not in record.model_fields
            if not hasattr(record, need) or need in record.__abstractmethods__
        ]
        if missing:
            raise InputError(f"{name} cannot serve as {self.noun}: it has no {', '.join(missing)}")

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Either a known kind with its settings, or a part from outside with its own settings."""
        pattern = ":" if self._of_grader is None else r"[:/]|\.ya?ml$"
        of_kind = {"properties": {"kind": {"type": "string", "pattern": pattern, "description": self.outside}}}
        outside = {"type": "object", "description": f"Your own {self.noun}.", **of_kind, "required": ["kind"]}
        outermost, self._described = not self._described, True
        schemas: dict[str, core_schema.CoreSchema] = {}
        try:
            for kind, record in self.records.items():
                ref = f"{record.__module__}.{record.__qualname__}"
                whole: Any = {**record.__pydantic_core_schema__, "ref": ref}
                # Inside a part that contains parts of the same type, only references to them.
                schemas[kind] = whole if outermost else core_schema.definition_reference_schema(ref)
            known = handler(core_schema.tagged_union_schema(schemas, "kind"))["oneOf"]
        finally:
            self._described = not outermost
        # All but the default need the key `kind`, or else settings without it would be of every kind at once.
        named = [
            branch if kind == self.default else {"allOf": [branch, {"required": ["kind"]}]}
            for kind, branch in zip(self.records, known, strict=True)
        ]
        text = {"type": "string", "description": f"The kind of {self.noun} alone, or a grader."}
        return {"oneOf": [*named, outside, *([text] if self._of_grader is not None else [])]}


def holds_kind(record: type[Config]) -> bool:
    """Whether the field `kind` of a record says which function or grader it is about."""
    kind = record.model_fields.get("kind")
    return kind is not None and kind.is_required()


def annotation_of(field: FieldInfo) -> Any:
    """A field's annotation with the metadata that pydantic has stripped from it."""
    return Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation


def records_in(annotation: Any) -> list[type[Config]]:
    """Every record that an annotation names, also inside unions, lists, mappings, Annotated and registries of kinds."""
    if isinstance(annotation, Kinds):
        return list(annotation.records.values())
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return [annotation] if issubclass(annotation, Config) else []
    # Next to a registry, an annotation names its parts' common base, which is not itself a part.
    parts = get_args(annotation)
    registries = [part for part in parts if isinstance(part, Kinds)]
    return list(dict.fromkeys(record for part in registries or parts for record in records_in(part)))


def kinds_in(annotation: Any) -> Kinds | None:
    """The registry that an annotation names, or None."""
    if isinstance(annotation, Kinds):
        return annotation
    return next((found for part in get_args(annotation) if (found := kinds_in(part)) is not None), None)


def records_of(field: FieldInfo) -> list[type[Config]]:
    return records_in(annotation_of(field))


def kinds_of(field: FieldInfo) -> Kinds | None:
    return kinds_in(annotation_of(field))


def record_of_kind(field: FieldInfo, kind: Any) -> type[Config] | None:
    """The record that `kind` names, among the field's own kinds or outside this package; None if there is none."""
    for record in records_of(field):
        if "kind" in record.model_fields and record.model_fields["kind"].default == kind:
            return record
    kinds = kinds_of(field)
    return kinds.record(kind) if kinds is not None and isinstance(kind, str) and kinds.is_from_outside(kind) else None


def records_within(value: Any) -> Iterator[Config]:
    """Every record inside a value, and the value itself if it is one."""
    inner: Iterable[Any] = ()
    if isinstance(value, Config):
        yield value
        inner = (getattr(value, name) for name in type(value).model_fields)
    elif isinstance(value, Mapping):
        inner = value.values()
    elif isinstance(value, list | tuple):
        inner = value
    for element in inner:
        yield from records_within(element)


def is_outside(part: object) -> bool:
    """Whether a part is of a class from outside Cooper, so that the names it gives are its author's."""
    return type(part).__module__.partition(".")[0] not in PACKAGES


def is_mapping(field: FieldInfo) -> bool:
    """Whether the field holds records by name."""
    return get_origin(field.annotation) is dict
