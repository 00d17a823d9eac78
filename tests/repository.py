"""Where the repository lies, and the data beside it that some tests read; they skip where it is absent."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared"
PACKAGES = sorted((ROOT / "packages").iterdir())
"""The folder of each package."""
SOURCES = [next((package / "src").iterdir()) for package in PACKAGES]
"""The importable folder of each package."""


parsed = cache(ast.parse)
"""The syntax of a text. What all tests of one process ask for is parsed once."""


def tree_of(path: Path) -> ast.Module:
    """The syntax of a file."""
    return parsed(path.read_text(encoding="utf-8"))


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Every statement inside a node, however deep: imports, functions and classes are some. Expressions, which are most
    of a tree, are not looked into."""
    for block in ("body", "handlers", "cases", "orelse", "finalbody"):
        for child in getattr(node, block, ()):
            if isinstance(child, ast.stmt):
                yield child
            yield from statements(child)
