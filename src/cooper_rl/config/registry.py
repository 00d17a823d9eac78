"""Parts that a configuration selects by `kind`. They are found automatically in this package, or elsewhere."""

import pkgutil
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic_core import PydanticCustomError, core_schema

from cooper_rl.config.base import Config
from cooper_rl.config.plugins import added, load_added
from cooper_rl.config.user_functions import load_object
from cooper_rl.errors import InputError

Record = TypeVar("Record", bound=type[Config])

NESTED = "part"
"""Type of the pydantic error that wraps the errors inside a part. `settings.check` unwraps them."""


class Kinds:
    """The registry of all kinds of one type of part, such as rewards.

    A kind is a configuration record with a field `kind: Literal["name"] = "name"` and the methods and fields in
    `needs`. The kinds in `home` register themselves with the decorator `register`. `home` is one module, or a package:
    then looking up one kind imports only the file of that name, if it exists, and listing all kinds imports every file.
    Installed packages add kinds by entry points named `noun.kind` of the group `cooper_rl.kinds` (`shaping.rank`; a
    space in the noun becomes `_`), which are imported when that kind is looked up or all are listed.
    `kind: package.module:Class` selects a record from anywhere else. A field annotated `Annotated[Protocol, kinds]`
    reads any of these.

    Settings without `kind` are of the kind `default`, if that is set. If `of_function` is set,
    `kind: package.module:function` may name a function. `of_function()` is then the record of such parts, and the
    record's field `kind` holds the function's path.
    """

    def __init__(
        self,
        noun: str,
        home: str,
        needs: Sequence[str],
        default: str | None = None,
        of_function: Callable[[], type[Config]] | None = None,
    ) -> None:
        self.noun = noun
        self.default = default
        self.outside = "package.module:Class" if of_function is None else "package.module:function"
        """The form of `kind` for a part from outside the package."""
        self._home = home
        self._needs = needs
        self._of_function = of_function
        self._records: dict[str, type[Config]] = {}
        self._imported = False
        self._described = False
        """Whether the JSON schemas of the kinds are being generated."""

    def register(self, record: Record) -> Record:
        """Add a record under the default of its field `kind`. Raises ValueError if another record has that kind."""
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
            prefix = self._entry("")
            for entry in added("kinds"):
                if entry.startswith(prefix):
                    self.register(load_added("kinds", entry))
            self._records = dict(sorted(self._records.items()))  # independent of import order
        return self._records

    def record(self, kind: str) -> type[Config]:
        """The record of a kind, or of `package.module:Class`. Raises InputError if there is none."""
        found = self._named(kind)
        if found is not None:
            return found
        if ":" in kind:
            return self._from_outside(kind)
        known = ", ".join(self.records)
        raise InputError(f"no {self.noun} of kind {kind!r}; kinds: {known}, or {self.outside} for your own")

    def kind_of(self, part: Config) -> str:
        """The `kind` of this part in a configuration."""
        if self._of_function is not None and type(part) is self._of_function():
            return getattr(part, "kind")  # noqa: B009 - `of_function` requires this field
        named = next((kind for kind, record in self._records.items() if record is type(part)), None)
        return named or f"{type(part).__module__}:{type(part).__qualname__}"

    def read(self, value: Any) -> Config:
        """A part from its settings. A value that is already a part stays as it is."""
        if isinstance(value, Config):
            self._check(type(value), type(value).__name__)
            return value
        if not isinstance(value, dict):
            raise ValueError(f"expected the settings of one {self.noun}, with kind: one of {', '.join(self.records)}")
        if "kind" not in value and self.default is not None:
            value = {"kind": self.default, **value}
        if "kind" not in value:
            raise ValueError(f"kind is missing; write kind: one of {', '.join(self.records)}")
        try:
            record = self.record(str(value["kind"]))
        except InputError as error:
            raise ValueError(str(error)) from error
        kind = record.model_fields.get("kind")
        holds_it = kind is not None and kind.is_required()
        try:
            return record.model_validate(value if holds_it else {key: value[key] for key in value if key != "kind"})
        except ValidationError as error:
            raise PydanticCustomError(NESTED, "{text}", {"text": str(error), "errors": error.errors()}) from error

    def dump(self, part: Config) -> dict[str, Any]:
        """The settings from which `read` makes an equal part."""
        return {"kind": self.kind_of(part)} | part.model_dump(mode="json", exclude={"kind"})

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self.read, serialization=core_schema.plain_serializer_function_ser_schema(self.dump)
        )

    def _named(self, kind: str) -> type[Config] | None:
        """The record of this kind, or None. A file of the home or an entry point that is named after it comes first."""
        is_package = hasattr(import_module(self._home), "__path__")
        if is_package and kind not in self._records and kind.isidentifier() and find_spec(f"{self._home}.{kind}"):
            import_module(f"{self._home}.{kind}")
        if kind not in self._records and self._entry(kind) in added("kinds"):
            self.register(load_added("kinds", self._entry(kind)))
        if kind not in self._records:
            self._import_home()
        return self._records.get(kind)

    def _entry(self, kind: str) -> str:
        return f"{self.noun.replace(' ', '_')}.{kind}"

    def _import_home(self) -> None:
        for module in pkgutil.iter_modules(getattr(import_module(self._home), "__path__", [])):
            import_module(f"{self._home}.{module.name}")

    def _from_outside(self, path: str) -> type[Config]:
        record = load_object(path, "class" if self._of_function is None else "function")
        if self._of_function is not None and callable(record) and not isinstance(record, type):
            return self._of_function()
        if not (isinstance(record, type) and issubclass(record, Config)):
            raise InputError(
                f"{path}: not a configuration record; every {self.noun} must be a subclass of cooper_rl.Config"
            )
        self._check(record, path)
        return record

    def _check(self, record: type[Config], name: str) -> None:
        missing = [need for need in self._needs if need not in record.model_fields and not hasattr(record, need)]
        if missing:
            raise InputError(f"{name} cannot serve as {self.noun}: it has no {', '.join(missing)}")

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Either a known kind with its settings, or a part from outside with its own settings."""
        outside = {
            "type": "object",
            "description": f"Your own {self.noun}.",
            "properties": {"kind": {"type": "string", "pattern": ":", "description": self.outside}},
            "required": ["kind"],
        }
        outermost, self._described = not self._described, True
        try:
            known = handler(core_schema.tagged_union_schema(self._schemas(outermost), "kind"))
        finally:
            self._described = not outermost
        branches = zip(self.records, known["oneOf"], strict=True)
        return {"oneOf": [*(self._named_by_kind(kind, branch) for kind, branch in branches), outside]}

    def _named_by_kind(self, kind: str, branch: dict[str, Any]) -> dict[str, Any]:
        """A kind's schema; it needs the key `kind`, or else settings without it would be of every kind at once."""
        return branch if kind == self.default else {"allOf": [branch, {"required": ["kind"]}]}

    def _schemas(self, outermost: bool) -> dict[str, core_schema.CoreSchema]:
        """The schema of every kind. Inside a part that contains parts of the same type, only references to them."""
        schemas = {}
        for kind, record in self.records.items():
            ref = f"{record.__module__}.{record.__qualname__}"
            whole: Any = {**record.__pydantic_core_schema__, "ref": ref}
            schemas[kind] = whole if outermost else core_schema.definition_reference_schema(ref)
        return schemas
