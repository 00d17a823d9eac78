"""Reads the rows of a file or a hub data set, each with its location."""

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from cooper_rl.data.hub import why_silent
from cooper_rl.data.strict_json import decode_json, parse_json
from cooper_rl.data.text import one_line
from cooper_rl.errors import InputError, MissingExtraError


@dataclass(frozen=True)
class Row:
    """One record. `location` is `file:line`, or `file:row n` if the file has no lines."""

    location: str
    fields: dict[str, Any]
    name: str | None = None
    """The record's key in files of the shape `{"Problem_1": {...}}`."""


LISTED_ROWS = 20
"""Most bad rows in one message."""

Bad = Callable[[InputError], None]


def refuse(error: InputError) -> None:
    """A reader's `bad` that ends the reading."""
    raise error


def read_file(path: Path, bad: Bad = refuse) -> Iterator[Row]:
    """The rows of a JSONL, JSON, CSV, TSV or Parquet file. `bad` is told of each line that is no row, where the ones
    behind it can be read. Raises InputError or, without pyarrow, MissingExtraError.
    """
    readers = {".jsonl": _read_jsonl, ".json": _read_json, ".csv": _read_csv}
    readers |= {".tsv": partial(_read_csv, dialect="excel-tab"), ".parquet": _read_parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{path}: unknown suffix {path.suffix!r}; convert the file to one of {', '.join(readers)}")
    if not path.is_file():
        siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        close = get_close_matches(path.name, siblings, n=1)
        remedy = f"did you mean {path.parent / close[0]}?" if close else "check problems.source"
        raise InputError(f"{path}: no such file; {remedy}")
    return reader(path, bad)


def _rows_of(value: Any, location: str, bad: Bad) -> Iterator[Row]:
    """One record, or several by name: MathOdyssey has one `{"Problem_k": {...}}` per line."""
    if not isinstance(value, dict):
        remedy = 'write one {"question": ..., "answer": ...} per problem'
        bad(InputError(f"{location}: expected an object with fields, found {type(value).__name__}; {remedy}"))
        return
    named = value and all(isinstance(record, dict) for record in value.values())
    yield from (Row(location, record, name) for name, record in (value.items() if named else [(None, value)]))


def _read_jsonl(path: Path, bad: Bad) -> Iterator[Row]:
    # Bytes are decoded line by line, so that an invalid byte is reported with its line.
    with path.open("rb") as lines:
        for number, raw in enumerate(lines, start=1):
            location = f"{path}:{number}"
            try:
                line = _decode(raw, location).strip()
                value = parse_json(line) if line else None
            except InputError as error:
                bad(error)
                continue
            except ValueError as error:
                bad(InputError(f"{location}: not valid JSON ({error}); write one JSON object per line"))
                continue
            if line:
                yield from _rows_of(value, location, bad)


def _decode(raw: bytes, location: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{location}: not UTF-8 text ({error.reason}); save the file as UTF-8") from error


def _read_json(path: Path, bad: Bad) -> Iterator[Row]:
    """The elements of an array, or consecutive objects. Their lines are those on which they start."""
    text = _decode(path.read_bytes(), str(path))
    position = _after_space(text, 0)
    in_array = text.startswith("[", position)
    position = _after_space(text, position + in_array)
    line, counted = 1, 0
    while position < len(text) and not (in_array and text[position] == "]"):
        line, counted = line + text.count("\n", counted, position), position
        try:
            value, position = decode_json(text, position)
        except ValueError as error:
            raise InputError(f"{path}:{line}: not valid JSON ({error}); write an array of objects") from error
        yield from _rows_of(value, f"{path}:{line}", bad)
        position = _after_space(text, position)
        if in_array:
            if text[position : position + 1] not in (",", "]"):
                raise InputError(f"{path}:{line}: no comma or ] after this element; is the file cut off?")
            position = _after_space(text, position + 1) if text[position] == "," else position


def _after_space(text: str, position: int) -> int:
    return next((i for i in range(position, len(text)) if text[i] not in " \t\r\n"), len(text))


def _read_csv(path: Path, bad: Bad, dialect: str = "excel") -> Iterator[Row]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, dialect=dialect)
        try:
            _check_columns(reader.fieldnames or (), f"{path}:{reader.line_num}")
            for fields in reader:
                location = f"{path}:{reader.line_num}"
                if None in fields:
                    too_many = "more cells than the header has columns; quote cells that contain a separator"
                    bad(InputError(f"{location}: {too_many}"))
                    continue
                yield Row(location, dict(fields))
        except csv.Error as error:
            raise InputError(f"{path}:{reader.line_num}: not valid CSV ({error})") from error
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: not UTF-8 text ({error.reason}); save the file as UTF-8") from error


def _check_columns(names: Sequence[str], location: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"{location}: the column {twice[0]!r} appears twice; rename one of them")


def _read_parquet(path: Path, bad: Bad) -> Iterator[Row]:
    try:
        import pyarrow  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("reading Parquet needs pyarrow (the extra `data`): pip install pyarrow") from error
    try:
        with parquet.ParquetFile(path) as file:
            _check_columns(file.schema_arrow.names, str(path))
            rows = (fields for batch in file.iter_batches(batch_size=1024) for fields in batch.to_pylist())
            for number, fields in enumerate(rows, start=1):
                yield Row(f"{path}:row {number}", fields)
    # Damaged pages raise OSError; dates out of Python's range raise ValueError or OverflowError.
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: not a readable Parquet file ({error})") from error


def read_hub(name: str, subset: str | None, split: str) -> Iterator[Row]:
    """The rows of a data set of the hub, of its cache where the hub does not answer, or of a folder. Raises InputError
    or, without `datasets`, MissingExtraError.
    """
    try:
        from datasets import load_dataset  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("Hugging Face data sets need the extra `data`: pip install datasets pyarrow") from error
    silent = None if Path(name).is_dir() else why_silent(name, "README.md", "dataset")
    try:
        with nullcontext() if silent is None else _offline():
            dataset = load_dataset(name, subset, split=split)
    # No narrower type will do: no such data set or no hub is an OSError, no such subset or split a ValueError, a script
    # in it a RuntimeError, and what its card may hold anything else.
    except Exception as error:
        raise InputError(
            f"problems.source: {name!r} (subset {subset}, split {split}) is neither a known file type nor "
            f"a loadable Hugging Face data set: {one_line(str(error))}"
            f"{'' if silent is None else f'; the hub cannot be reached: {silent}'}"
        ) from error
    for number, fields in enumerate(dataset, start=1):
        yield Row(f"{name}/{split}:row {number}", dict(fields))


@contextmanager
def _offline() -> Iterator[None]:
    """Make both libraries look into their caches alone, where they would else try the hub again and again."""
    import datasets  # noqa: PLC0415 - an extra
    import huggingface_hub  # noqa: PLC0415

    places: list[Any] = [huggingface_hub.constants, datasets.config]  # pyright: ignore[reportAttributeAccessIssue]
    before = [place.HF_HUB_OFFLINE for place in places]
    for place in places:
        place.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        for place, value in zip(places, before, strict=True):
            place.HF_HUB_OFFLINE = value
