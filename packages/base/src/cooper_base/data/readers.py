"""Reads the rows of a file or a hub data set, each with its location."""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, zip_longest
from pathlib import Path
from typing import IO, Any, AnyStr, TextIO

from cooper_base.data.hub import why_silent
from cooper_base.data.strict_json import OF_ROWS, check_values, decode_json, parse_json
from cooper_base.data.text import one_line
from cooper_base.errors import InputError, MissingExtraError, no_file, with_causes

LONGEST_ROW = 64 << 20
"""Bytes of a row: of a line, of a value in a JSON file, of the values in a row of Parquet."""
EXPANSION = 100
"""A file may become so many times as large when it is unpacked, and in any case as large as a row."""


@dataclass(frozen=True)
class DataRow:
    """One record. `location` is `file:line`, or `file:row n` if the file has no lines."""

    location: str
    fields: dict[str, Any]
    name: str | None = None
    """The record's key in files of the shape `{"Problem_1": {...}}`."""
    theirs: Mapping[str, str] = field(default_factory=dict)
    """What the file calls the fields that it has under another name."""

    def renamed(self, names: Mapping[str, str]) -> "DataRow":
        """The row with our names (the values of `names`) beside the file's, unless it has a field of our name."""
        found = {ours: name for name, ours in names.items() if name in self.fields and ours not in self.fields}
        ours = {name: self.fields[theirs] for name, theirs in found.items()}
        return replace(self, fields=ours | self.fields, theirs={**self.theirs, **found})

    def place(self, name: str) -> str:
        """Where a field is, for messages: the row, and the field's name in the file."""
        return f"{self.location}: field {self.theirs.get(name, name)!r}"


LISTED_ROWS = 20
"""Most bad rows in one message."""


def listing_of(bad_rows: Sequence[str]) -> str:
    """The faults of the rows, one a line; what is wrong with several rows is told once, at the first of them."""
    alike: dict[str, list[str]] = {}
    for row in bad_rows:
        place, apart, fault = row.partition(": ")
        alike.setdefault(fault if apart else row, []).append(place)
    lines = [
        f"{places[0]}: {fault}" + (f" (and {len(places) - 1} more rows, to {places[-1]})" if places[1:] else "")
        for fault, places in alike.items()
    ]
    more = [f"… and {len(lines) - LISTED_ROWS} more"] if len(lines) > LISTED_ROWS else []
    return "\n".join([*lines[:LISTED_ROWS], *more])


Bad = Callable[[InputError], None]


def refuse(error: InputError) -> None:
    """A reader's `bad` that ends the reading."""
    raise error


def read_file(path: Path, bad: Bad = refuse) -> Iterator[DataRow]:
    """The rows of a JSONL, JSON, CSV, TSV or Parquet file. `bad` is told of each line that is no row, where the ones
    behind it can be read. Raises InputError or, without pyarrow, MissingExtraError.
    """
    refuse_pipe(path)
    if not path.is_file():
        raise no_file(path, READERS)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{path}: unknown suffix {path.suffix!r}; convert the file to one of {', '.join(READERS)}")
    return reader(path, bad)


def refuse_pipe(path: Path) -> None:
    """Raises InputError for a pipe, whose reader would wait for a writer for ever, and for a device."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(f"{path}: is a pipe or a device and not a file; write a file and name that")


def _rows_of(value: Any, location: str, bad: Bad) -> Iterator[DataRow]:
    """One record, or several by name: MathOdyssey has one `{"Problem_k": {...}}` per line."""
    if not isinstance(value, dict):
        remedy = 'write one {"question": ..., "answer": ...} per problem'
        bad(InputError(f"{location}: expected an object with fields, found {type(value).__name__}; {remedy}"))
        return
    named = value and all(isinstance(record, dict) for record in value.values())
    yield from (DataRow(location, record, name) for name, record in (value.items() if named else [(None, value)]))


def _lines_of(file: IO[AnyStr], path: Path) -> Iterator[tuple[str, AnyStr]]:
    """Each line of a file with its place. Raises InputError for one that is too long."""
    number = 0
    while line := file.readline(LONGEST_ROW + 1):
        number += 1
        if len(line) > LONGEST_ROW:
            raise InputError(f"{path}:{number}: {_TOO_LONG}")
        yield f"{path}:{number}", line


_TOO_LONG = f"longer than {LONGEST_ROW >> 20} MB; write a row a line"


def _read_jsonl(path: Path, bad: Bad) -> Iterator[DataRow]:
    # Bytes are decoded line by line, so that an invalid byte is reported with its line.
    with path.open("rb") as file:
        for location, raw in _lines_of(file, path):
            try:
                line = _decode(raw, location).strip()
                value = parse_json(line, OF_ROWS) if line else None
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


def _read_json(path: Path, bad: Bad) -> Iterator[DataRow]:
    """The elements of an array, or consecutive objects. Their lines are those on which they start."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            text = _Window(file, path)
            in_array = text.next() == "["
            text.position += in_array
            while text.next() not in (("", "]") if in_array else ("",)):
                location = f"{path}:{text.line}"
                yield from _rows_of(text.value(), location, bad)
                if in_array and text.next() not in (",", "]"):
                    raise InputError(f"{location}: no comma or ] after this element; is the file cut off?")
                text.position += in_array and text.next() == ","
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error.reason}); save the file as UTF-8") from error


class _Window:
    """The part of a JSON file that is being read."""

    def __init__(self, file: TextIO, path: Path) -> None:
        self._file, self._path = file, path
        self._text, self._ended, self._counted = "", False, 0
        self.position, self._line = 0, 1

    @property
    def line(self) -> int:
        """That of the position."""
        self._line += self._text.count("\n", self._counted, self.position)
        self._counted = self.position
        return self._line

    def next(self) -> str:
        """The next character that is no space, at which the position then is; empty at the end."""
        while True:
            spaces = _SPACE.match(self._text, self.position)
            assert spaces is not None
            self.position = spaces.end()
            if self.position < len(self._text) or not self._more():
                return self._text[self.position : self.position + 1]

    def value(self) -> Any:
        """The value at the position, which moves behind it. Raises InputError for none, and for one too long."""
        line = self.line
        while True:
            try:
                value, end = decode_json(self._text, self.position, OF_ROWS)
                if end < len(self._text) or not self._more():  # a number may go on
                    self.position = end
                    return value
            except ValueError as error:
                if len(self._text) - self.position > LONGEST_ROW:
                    raise InputError(f"{self._path}:{line}: {_TOO_LONG}, as JSON lines") from error
                if not self._more():
                    why = getattr(error, "msg", error)
                    raise InputError(
                        f"{self._path}:{line}: not valid JSON ({why}); write an array of objects"
                    ) from error

    def _more(self) -> bool:
        """Read on, twice as far as before; False at the end of the file."""
        if self._ended:
            return False
        _ = self.line
        self._text = self._text[self.position :]
        self.position = self._counted = 0
        read = self._file.read(max(_AT_ONCE, len(self._text)))
        self._ended = not read
        self._text += read
        try:
            check_values(self._text)
        except ValueError as error:
            raise InputError(f"{self._path}:{self.line}: {error}; write a row a line, as JSON lines") from error
        return not self._ended


_AT_ONCE = 1 << 16
_SPACE = re.compile(r"[ \t\r\n]*+")


def _read_csv(path: Path, bad: Bad, usual: str = ",") -> Iterator[DataRow]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            delimiter = _delimiter(file, path, usual)
            lines = _Lines(file, path)
            reader = csv.reader(lines, delimiter=delimiter, strict=True)
            names = next(filter(None, _records(reader, lines, path, [], delimiter)), [])
            names = [name.strip() for name in names]  # `question, answer` as people write it
            _check_columns(names, f"{path}:{reader.line_num}")
            for cells in _records(reader, lines, path, names, delimiter):
                if len(cells) > len(names):
                    too_many = "more cells than the header has columns; quote cells that contain a separator"
                    bad(InputError(f"{path}:{reader.line_num}: {too_many}"))
                elif cells:  # a blank line has none
                    yield DataRow(f"{path}:{reader.line_num}", dict(zip_longest(names, cells)))
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: not UTF-8 text ({error.reason}); save the file as UTF-8") from error


DELIMITERS = (",", ";", "\t", "|")
SWALLOWED = 5
"""A quoted cell of at least so many lines, most of them like rows of the table, lacks its closing quote."""


@dataclass
class _Lines:
    """The lines of a file, of which those since the last `clear` are kept."""

    file: TextIO
    path: Path
    kept: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[str]:
        for _, line in _lines_of(self.file, self.path):
            self.kept.append(line)
            yield line


def _delimiter(file: TextIO, path: Path, usual: str) -> str:
    """What separates the header into cells, and the first row into as many. Leaves the file at its beginning."""
    head = [line for _, line in islice(_lines_of(file, path), 50) if line.strip()]
    file.seek(0)

    def fit(delimiter: str) -> tuple[bool, int, bool]:
        try:
            counts = [len(cells) for cells in islice(csv.reader(head, delimiter=delimiter), 2)]
        except csv.Error:  # reading the rows reports it
            counts = []
        columns = counts[0] if counts else 0
        return columns > 1 and counts[1:] in ([], [columns]), columns, delimiter == usual

    return max(DELIMITERS, key=fit)


def _records(reader: Any, lines: _Lines, path: Path, names: Sequence[str], delimiter: str) -> Iterator[list[str]]:
    """The cells of each row. Raises InputError for a quotation mark that is not closed, or closed far too late."""
    while True:
        lines.kept.clear()
        first = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if '"' not in "".join(lines.kept):
                raise InputError(f"{path}:{reader.line_num}: not valid CSV ({error})") from error
            raise InputError(_unclosed(path, first, lines.kept, names, delimiter, str(error))) from error
        is_long = reader.line_num - first >= SWALLOWED
        if is_long and any(_holds_rows(cell, len(names), delimiter) for cell in cells):
            raise InputError(_unclosed(path, first, lines.kept, names, delimiter, "it holds further rows of the table"))
        yield cells


def _holds_rows(cell: str, columns: int, delimiter: str) -> bool:
    """Whether most lines inside a cell are rows of the table."""
    inner = re.split(r"\r\n|\r|\n", cell)[1:-1] if columns > 1 else []
    rows = sum(line.count(delimiter) == columns - 1 for line in inner)
    return len(inner) >= SWALLOWED and rows >= 0.8 * len(inner)


def _unclosed(path: Path, first: int, kept: Sequence[str], names: Sequence[str], delimiter: str, why: str) -> str:
    """A message about the quoted cell of a row at which reading has failed. The row's lines so far are `kept`."""
    text, apart = "".join(kept), re.escape(delimiter)
    whole = re.compile(rf'(?:(?>(?:"[^"]*+")+)|[^"{apart}\r\n][^{apart}\r\n]*+|){apart}')
    place = position = 0
    while (cell := whole.match(text, position)) and not _holds_rows(cell[0], len(names), delimiter):
        place, position = place + 1, cell.end()
    line = first + max(text.count(end, 0, position) for end in "\n\r")
    column = f"column {names[place]!r}" if place < len(names) else f"column {place + 1}"
    ends = f", although it goes on to line {first + len(kept) - 1}" if len(kept) > 1 else ""
    return (
        f"{path}:{line}: not valid CSV: {column}: the quotation mark that opens this cell is not closed properly{ends} "
        f'({why}); close it, write a quotation mark inside a quoted cell twice (""), or convert the file to JSONL'
    )


def _check_columns(names: Sequence[str], location: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"{location}: the column {twice[0]!r} appears twice; rename one of them")


def _read_parquet(path: Path, bad: Bad) -> Iterator[DataRow]:
    try:
        import pyarrow  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("reading Parquet needs pyarrow (the extra `data`): pip install pyarrow") from error
    try:
        metadata = parquet.read_metadata(path)
        columns = [metadata.schema.column(number) for number in range(metadata.num_columns)]
        # A text that many rows share stays one in memory.
        texts = [c.path for c in columns if c.physical_type == "BYTE_ARRAY" and c.logical_type.type in _TEXT_TYPES]
        _check_expansion(metadata, columns, path)
        with parquet.ParquetFile(path, metadata=metadata, read_dictionary=texts, pre_buffer=False) as file:
            _check_columns(file.schema_arrow.names, str(path))
            number = 0
            for batch in file.iter_batches(batch_size=1024):
                for part in _of_bounded_size(batch, path, number):
                    for fields in part.to_pylist():
                        number += 1
                        yield DataRow(f"{path}:row {number}", fields)
    # Damaged pages raise OSError; dates out of Python's range raise ValueError or OverflowError.
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: not a readable Parquet file ({error})") from error


_TEXT_TYPES = ("STRING", "JSON", "ENUM", "NONE")
_OF_A_VALUE, _OF_A_RECORD = 32, 200
"""Bytes of a Python object around a value, and of a dictionary."""
_OF_A_COLUMN = 1 << 28
"""Bytes of the lists of a row group that may be in any case, however little they take in the file."""


def _check_expansion(metadata: Any, columns: Sequence[Any], path: Path) -> None:
    """Raises InputError for a Parquet file whose pages or lists are far larger unpacked than in the file."""
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column, chunk in zip(columns, map(group.column, range(group.num_columns)), strict=True):
            unpacked, packed = chunk.total_uncompressed_size, max(chunk.total_compressed_size, 1)
            in_lists = 8 * chunk.num_values if column.max_repetition_level else 0
            if unpacked > max(LONGEST_ROW, EXPANSION * packed) or in_lists > max(_OF_A_COLUMN, EXPANSION * unpacked):
                raise InputError(
                    f"{path}: the column {column.path} takes {max(unpacked, in_lists) >> 20} MB and {packed} bytes of "
                    "the file, which is no text of a model; convert the file to JSON lines, which may be of any length"
                )


def _of_bounded_size(batch: Any, path: Path, before: int) -> Iterator[Any]:
    """A batch in parts that fit into memory as Python's objects. `before` is the number of the rows before it. Raises
    InputError for a row that is too large by itself.
    """
    if _size(batch) <= 4 * LONGEST_ROW:
        yield batch
        return
    if batch.num_rows == 1:
        raise InputError(f"{path}:row {before + 1}: larger than {LONGEST_ROW >> 20} MB; write shorter rows")
    half = batch.num_rows // 2
    yield from _of_bounded_size(batch.slice(0, half), path, before)
    yield from _of_bounded_size(batch.slice(half), path, before + half)


def _size(array: Any) -> int:
    """About how many bytes a batch or an array takes as Python's objects."""
    from pyarrow import RecordBatch, compute, types  # noqa: PLC0415 - an extra

    if isinstance(array, RecordBatch):
        return sum(map(_size, array.columns)) + _OF_A_RECORD * array.num_rows
    if types.is_dictionary(array.type):
        lengths = compute.take(compute.binary_length(array.dictionary), array.indices)  # pyright: ignore
        return (compute.sum(lengths).as_py() or 0) + _OF_A_VALUE * len(array)  # pyright: ignore
    if types.is_struct(array.type):
        return sum(map(_size, array.flatten())) + _OF_A_RECORD * len(array)
    if types.is_map(array.type):
        inner = array.offsets[0].as_py(), array.offsets[-1].as_py()
        entries = [part.slice(inner[0], inner[1] - inner[0]) for part in (array.keys, array.items)]
        return sum(map(_size, entries)) + _OF_A_VALUE * (len(array) + len(entries[0]))
    if types.is_list(array.type) or types.is_large_list(array.type) or types.is_fixed_size_list(array.type):
        return _size(array.flatten()) + _OF_A_VALUE * len(array)
    return array.nbytes + _OF_A_VALUE * len(array)


READERS: dict[str, Callable[[Path, Bad], Iterator[DataRow]]] = {
    ".jsonl": _read_jsonl,
    ".json": _read_json,
    ".csv": _read_csv,
    ".tsv": partial(_read_csv, usual="\t"),
    ".parquet": _read_parquet,
}
"""What reads a file of each suffix."""


def check_name_of_jsonl(out: Path) -> None:
    """Raises InputError for an output whose JSON lines would be read as something else, by its suffix."""
    if (suffix := out.suffix.lower()) in READERS and suffix != ".jsonl":
        raise InputError(f"{out}: the output is JSON lines; name it {out.with_suffix('.jsonl').name}")


def read_hub(name: str, subset: str | None, split: str | None, section: str = "problems") -> Iterator[DataRow]:
    """The rows of a data set of the hub, of its cache where the hub does not answer, or of a folder, also one of
    `save_to_disk`. Without a `split` they are those of `train`. Raises InputError or, without `datasets`,
    MissingExtraError. `section` is where the settings stand in the configuration.
    """
    try:
        from datasets import DatasetDict, load_dataset, load_from_disk  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("Hugging Face data sets need the extra `data`: pip install datasets pyarrow") from error
    folder = Path(name).expanduser()
    if not folder.is_dir() and name.startswith((".", "/", "~")):
        raise no_file(folder, READERS, "file or folder")
    silent = None if folder.is_dir() else why_silent(name, "README.md", "dataset")
    try:
        with nullcontext() if silent is None else _offline():
            if _is_saved(folder):
                dataset = load_from_disk(folder)
            else:
                dataset = load_dataset(str(folder) if folder.is_dir() else name, subset, split=split or "train")
    # No narrower type will do: no such data set or no hub is an OSError, no such subset or split a ValueError, a script
    # in it a RuntimeError, and what its card may hold anything else.
    except Exception as error:
        why = ": ".join(dict.fromkeys(map(str, (error, *[*with_causes(error)][-1:]))))  # the last one says what failed
        raise InputError(
            f"{section}.source: {name!r} (subset {subset}, split {split or 'train'}) is neither a known file type nor "
            f"a loadable Hugging Face data set: {one_line(why)}"
            f"{'' if silent is None else f'; the hub cannot be reached: {silent}'}"
        ) from error
    if isinstance(dataset, DatasetDict):
        if (split or "train") not in dataset:
            splits = ", ".join(map(str, dataset))
            raise InputError(f"{section}.split: {name} has no split {split or 'train'!r}; it has {splits}")
        dataset = dataset[split or "train"]
    elif _is_saved(folder) and split not in (None, str(dataset.split)):
        raise InputError(f"{section}.split: {name} is one table without splits; remove it, or use skip and limit")
    for number, fields in enumerate(dataset, start=1):
        yield DataRow(f"{name}/{split or 'train'}:row {number}", dict(fields))


def _is_saved(folder: Path) -> bool:
    """Whether `save_to_disk` of `datasets` has written the folder."""
    return any((folder / name).is_file() for name in ("dataset_dict.json", "state.json"))


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
