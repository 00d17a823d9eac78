"""Tables on disk, as Parquet or JSON lines depending on the suffix."""

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cooper_rl.errors import InputError, MissingExtraError

SUFFIXES = (".parquet", ".jsonl")


def check_table_path(path: Path) -> None:
    """Raises InputError for any other suffix than `SUFFIXES`, MissingExtraError for Parquet without pyarrow."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: unknown suffix {path.suffix!r}; write to {' or '.join(SUFFIXES)}")
    if path.suffix.lower() == ".parquet" and find_spec("pyarrow") is None:
        raise MissingExtraError("writing Parquet needs pyarrow (the extra `data`): pip install pyarrow")


def write_table(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Write the columns of the rows. The file gets its name only when it is complete."""
    check_table_path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.part")
    if path.suffix.lower() == ".parquet":
        import pyarrow  # noqa: PLC0415 - an extra
        from pyarrow import parquet  # noqa: PLC0415

        parquet.write_table(pyarrow.table({name: [row[name] for row in rows] for name in columns}), aside)
    else:
        lines = [json.dumps({name: row[name] for name in columns}, ensure_ascii=False) + "\n" for row in rows]
        aside.write_text("".join(lines), encoding="utf-8")
    aside.replace(path)
