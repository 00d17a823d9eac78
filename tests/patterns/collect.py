"""All regular expressions of the packages, read from their source, with the methods by which each is used."""

import ast
import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from repository import SOURCES, statements, tree_of

METHODS = {"match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"}


@dataclass(frozen=True)
class Found:
    """A pattern and how it meets a text: at its beginning (`match`, `fullmatch`) or everywhere (`findall`)."""

    place: str
    pattern: str
    flags: int
    method: str

    def search(self) -> Callable[[str], Any]:
        return getattr(re.compile(self.pattern, self.flags), self.method)


def patterns() -> list[Found]:
    """Every pattern that a module holds, and every one that a function of `re` is called with."""
    trees = {
        ".".join(path.relative_to(source.parent).with_suffix("").parts).removesuffix(".__init__"): tree
        for source in SOURCES
        for path in sorted(source.rglob("*.py"))
        if _imports_re(tree := tree_of(path))
    }
    shared: dict[str, set[str]] = {}
    for tree in trees.values():
        for name, method in _uses(tree):
            shared.setdefault(name, set()).add(method)
    found: list[Found] = []
    for name, tree in trees.items():
        module = importlib.import_module(name)
        own: dict[str, set[str]] = {}
        for name, method in _uses(tree):
            own.setdefault(name, set()).add(method)
        local = [methods - {"split"} for name, methods in own.items() if not hasattr(module, name)]  # strings split too
        through_others = set().union(*local)
        for name, pattern in _held(module):
            holder, _, key = name.partition("[")
            how = (own if holder.startswith("_") else shared).get(holder) or (key and through_others) or METHODS
            found.append(_found(f"{module.__name__}.{name}", pattern.pattern, pattern.flags, how))
        found += _called(tree, module)
    return list(dict.fromkeys(found))


def _found(place: str, pattern: str, flags: int, methods: set[str]) -> Found:
    anchored = "fullmatch" if "fullmatch" in methods else "match"
    return Found(place, pattern, flags, "findall" if methods - {"match", "fullmatch"} else anchored)


def _imports_re(tree: ast.Module) -> bool:
    imports = (node for node in statements(tree) if isinstance(node, ast.Import))
    return any(one.name == "re" for node in imports for one in node.names)


def _uses(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names with a method of a pattern, wherever they are used."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            holder = node.value.value if isinstance(node.value, ast.Subscript) else node.value
            if isinstance(holder, ast.Name):
                yield holder.id, node.attr
        elif isinstance(node, ast.Attribute) and node.attr == "pattern" and isinstance(node.value, ast.Name):
            yield node.value.id, "search"


def _held(module: ModuleType) -> Iterator[tuple[str, re.Pattern[str]]]:
    for name, value in vars(module).items():
        yield from _in_value(name, value)


def _in_value(name: str, value: Any) -> Iterator[tuple[str, re.Pattern[str]]]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield name, value
    elif isinstance(value, Mapping | list | tuple) and not name.startswith("__"):
        for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _in_value(f"{name}[{key!r}]", inner)


def _called(tree: ast.Module, module: ModuleType) -> Iterator[Found]:
    """Patterns in the calls inside functions, such as `re.sub(r"\\s+", " ", text)`; the module holds all others.

    A local variable in a pattern stands for one letter.
    """
    functions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    ]
    for node in dict.fromkeys(inner for function in functions for inner in ast.walk(function)):
        if not isinstance(node, ast.Call) or not node.args or not isinstance(called := node.func, ast.Attribute):
            continue
        if ast.unparse(called.value) != "re" or called.attr not in METHODS | {"compile"}:
            continue
        pattern = _text(node.args[0], module)
        if pattern is not None:
            methods = _methods_of(node, tree) if called.attr == "compile" else {called.attr}
            yield _found(f"{module.__name__}:{node.lineno}", pattern, _flags(node, module), methods)


def _methods_of(compiled: ast.Call, tree: ast.Module) -> set[str]:
    """What is called on the variable that holds a pattern compiled inside a function; anything if there is none."""
    targets = [node.targets[0] for node in ast.walk(tree) if isinstance(node, ast.Assign) and node.value is compiled]
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    return {method for name, method in _uses(tree) if name in names} or METHODS


def _flags(call: ast.Call, module: ModuleType) -> int:
    values = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
    flags = 0
    for value in values:
        if "re." in ast.unparse(value):
            flags |= int(_value(value, module) or 0)
    return flags


def _text(node: ast.expr, module: ModuleType) -> str | None:
    """The text of an expression; None for one that only the running program knows."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_part(part, module) for part in node.values)
    value = _value(node, module)
    return value if isinstance(value, str) else None


def _part(node: ast.expr, module: ModuleType) -> str:
    value = _value(node.value if isinstance(node, ast.FormattedValue) else node, module)
    return "a" if value is None else str(value)


def _value(node: ast.expr, module: ModuleType) -> Any:
    try:
        return eval(compile(ast.Expression(node), "<pattern>", "eval"), dict(vars(module)))
    except NameError:
        return None
