"""Files of every supported shape become rows, and every error names file and line."""

import csv
import io
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cooper_base.data import readers
from cooper_base.data.readers import READERS, check_name_of_jsonl, read_file
from cooper_base.errors import InputError

ROWS = [{"question": "1 + 1 = ?", "answer": 2}, {"question": "Ünï — \u2028code?", "answer": "a,b"}]


def write(tmp_path: Path, name: str, text: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def fields(path: Path) -> list[dict]:
    return [row.fields for row in read_file(path)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("lines.jsonl", "\n".join(map(json.dumps, ROWS))),
        ("unescaped.jsonl", "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS)),
        ("windows.jsonl", "\ufeff" + "\r\n\r\n".join(map(json.dumps, ROWS)) + "\r\n"),
        ("array.json", json.dumps(ROWS)),
        ("pretty.json", json.dumps(ROWS, indent=4) + "\n"),
        ("concatenated.json", "\n".join(json.dumps(row, indent=2) for row in ROWS)),
        ("named.json", json.dumps({"Problem_1": ROWS[0], "Problem_2": ROWS[1]})),
        ("named.jsonl", "\n".join(json.dumps({f"Problem_{i}": row}) for i, row in enumerate(ROWS))),
    ],
)
def test_every_json_shape_gives_the_same_rows(tmp_path: Path, name: str, text: str):
    assert fields(write(tmp_path, name, text)) == ROWS


@pytest.mark.parametrize("at_once", [1, 2, 7])
@pytest.mark.parametrize("indent", [None, 3])
@pytest.mark.parametrize("array", [True, False])
def test_a_json_file_is_read_piece_by_piece(tmp_path: Path, monkeypatch, at_once, indent, array):
    monkeypatch.setattr(readers, "_AT_ONCE", at_once)
    rows = [*ROWS, {"question": "12 \u00df", "answer": -1.5e3}, {}]
    text = json.dumps(rows, indent=indent) if array else "".join(json.dumps(row, indent=indent) for row in rows)
    path = write(tmp_path, "a.json", text)
    assert fields(path) == rows
    lines = [row.location.rpartition(":")[2] for row in read_file(path)]
    assert lines == sorted(lines, key=int)
    assert (lines[-1] == "1") is (indent is None)


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.tsv"])
def test_a_row_that_is_too_long_is_refused_before_it_is_in_memory(tmp_path: Path, monkeypatch, name):
    monkeypatch.setattr(readers, "LONGEST_ROW", 1000)
    monkeypatch.setattr(readers, "_AT_ONCE", 10)
    with pytest.raises(InputError, match=f"{name}:1: longer than"):
        fields(write(tmp_path, name, '["' + "x" * 5000))


def test_a_pipe_is_refused_at_once(tmp_path: Path):
    os.mkfifo(tmp_path / "a.jsonl")
    with pytest.raises(InputError, match=r"a\.jsonl: is a pipe or a device"):
        read_file(tmp_path / "a.jsonl")


def test_rows_know_their_line(tmp_path: Path):
    lines = write(tmp_path, "a.jsonl", '{"q": 1}\n\n{"q": 2}\n')
    pretty = write(tmp_path, "a.json", json.dumps([{"q": 1}, {"q": 2}], indent=1))
    table = write(tmp_path, "a.csv", 'q,a\n"two\nlines",1\nx,2\n')
    assert [row.location for row in read_file(lines)] == [f"{lines}:1", f"{lines}:3"]
    assert [row.location for row in read_file(pretty)] == [f"{pretty}:2", f"{pretty}:5"]
    assert [row.location for row in read_file(table)] == [f"{table}:3", f"{table}:4"]


def test_a_named_row_keeps_its_name(tmp_path: Path):
    assert [row.name for row in read_file(write(tmp_path, "n.jsonl", '{"Problem_7": {"q": 1}}'))] == ["Problem_7"]


def test_csv_cells_are_text(tmp_path: Path):
    assert fields(write(tmp_path, "a.csv", 'question,answer\n"How many, then?",7\n')) == [
        {"question": "How many, then?", "answer": "7"}
    ]


TABLE = [("How many, then?", "7,5"), ('She said "two\nlines";\nand a\ttab', "1|2"), ("", "3")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize(
    ("name", "delimiter"), [("a.csv", ","), ("a.csv", ";"), ("a.csv", "|"), ("a.tsv", "\t"), ("a.csv", "\t")]
)
def test_tables_of_every_delimiter_and_line_end_give_the_same_rows(tmp_path: Path, name, delimiter, mark, end):
    text = io.StringIO()
    table = csv.writer(text, delimiter=delimiter, lineterminator=end)
    table.writerows([("question", "answer"), *TABLE])
    path = write(tmp_path, name, mark + text.getvalue())
    assert fields(path) == [{"question": question, "answer": answer} for question, answer in TABLE]


def test_the_header_decides_between_delimiters(tmp_path: Path):
    prices = write(tmp_path, "prices.csv", "question;answer\nHow much, then?;1,5\nAnd, or?;2,5\n")
    assert [row["answer"] for row in fields(prices)] == ["1,5", "2,5"]
    lists = write(tmp_path, "lists.csv", "question,answer\nWhich?,1;2;3\n")
    assert fields(lists) == [{"question": "Which?", "answer": "1;2;3"}]
    alone = write(tmp_path, "alone.csv", "question\nWhich? A; or B\n")
    assert fields(alone) == [{"question": "Which? A; or B"}]


def _rows(count: int, quoted: bool = False) -> list[str]:
    return [f'"What is {n}, doubled?",{2 * n}' if quoted else f"What is {n} doubled?,{2 * n}" for n in range(count)]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize(
    ("line", "instead", "column"),
    [
        (102, '"What is 100 doubled?,200', "question"),
        (102, 'What is 100 doubled?,"200', "answer"),
        (301, '"What is 299 doubled?,598', "question"),
        (2, '"What is 0 doubled?,0', "question"),
        (102, '"What is "100" doubled?",200', "question"),
        (102, '"What is 100\ndoubled?,"200', "question"),
    ],
)
@pytest.mark.parametrize("later", ["plain", "quoted", "an inch"])
def test_a_quote_that_is_not_closed_is_an_error_with_its_line_and_column(
    tmp_path: Path, delimiter, line, instead, column, later
):
    rows = ["question,answer", *_rows(300, quoted=later == "quoted")]
    rows[line - 1] = instead
    if later == "an inch":  # a mark that ends the open cell by chance
        rows[250] = 'How long are 5",5'
    text = "\n".join(rows) + "\n"
    path = write(tmp_path, "problems.csv", text if later == "quoted" else text.replace(",", delimiter))
    with pytest.raises(InputError, match=f"problems.csv:{line}: not valid CSV: column '{column}'.*close it"):
        fields(path)


def test_a_long_text_in_a_cell_is_no_fault(tmp_path: Path):
    poem = "\n".join(f"line {n}, of many, {'and, ' * (n % 3)}more" for n in range(60))
    code = "\n".join(f"print({n})" for n in range(60))
    text = io.StringIO()
    csv.writer(text).writerows([("question", "answer"), (poem, "1"), (code, "2"), ("And?", "3")])
    assert [row["answer"] for row in fields(write(tmp_path, "a.csv", text.getvalue()))] == ["1", "2", "3"]


def test_short_and_blank_rows_of_a_table_are_told_apart(tmp_path: Path):
    table = write(tmp_path, "a.csv", "question,answer\nQ1,1\n\nQ2\n\n")
    assert fields(table) == [{"question": "Q1", "answer": "1"}, {"question": "Q2", "answer": None}]


def test_parquet_rows_are_numbered(tmp_path: Path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.Table.from_pylist([{"q": "x", "a": ["1", "2"]}, {"q": "y", "a": None}]), path)
    rows = list(read_file(path))
    assert [row.fields for row in rows] == [{"q": "x", "a": ["1", "2"]}, {"q": "y", "a": None}]
    assert rows[1].location == f"{path}:row 2"


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("cut.jsonl", '{"q": 1}\n{"q": ', "cut.jsonl:2: not valid JSON"),
        ("number.jsonl", '{"q": 1}\n7\n', "number.jsonl:2: expected an object"),
        ("bytes.jsonl", b'{"q": 1}\n{"q": "\xff"}\n', "bytes.jsonl:2: not UTF-8"),
        ("cut.json", '[{"q": 1},\n {"q": ', "cut.json:2: not valid JSON"),
        ("open.json", '[{"q": 1},\n {"q": 2}', "open.json:2: no comma or ] after this element"),
        ("comma.json", '[{"q": 1}\n {"q": 2}]', "comma.json:1: no comma or ] after this element"),
        ("wide.csv", "q,a\n1,2\n1,2,3\n", "wide.csv:3: more cells than the header"),
        ("wide.tsv", "q\ta\n1\t2\n1\t2\t3\n", "wide.tsv:3: more cells than the header"),
        ("bytes.csv", b"q,a\n\xff,2\n", "bytes.csv: not UTF-8"),
        ("not.parquet", "q,a\n", "not.parquet: not a readable Parquet file"),
        ("notes.txt", "hello", "unknown suffix '.txt'"),
        ("large.jsonl", '{"q": 1e999}\n', "large.jsonl:1: not valid JSON (the number 1e999 is too large)"),
        ("digits.jsonl", '{"q": ' + "9" * 5000 + "}\n", "digits.jsonl:1: not valid JSON"),
        ("twice.jsonl", '{"q": 1, "a": 2, "q": 3}\n', "twice.jsonl:1: not valid JSON (the key 'q' appears twice"),
        ("deep.jsonl", "[" * 1_000_000, "deep.jsonl:1: not valid JSON (nested too deeply)"),
        ("deep.json", '[{"a":' * 500_000, "deep.json:1: not valid JSON (nested too deeply)"),
        ("two.jsonl", '{"q": 1} {"q": 2}\n', "two.jsonl:1: not valid JSON (more text after the value"),
        ("twice.csv", "q,a,q\n1,2,3\n", "twice.csv:1: the column 'q' appears twice"),
        ("cell.csv", 'q,a\n"' + "x" * 200_000, "cell.csv:2: not valid CSV: column 'q'"),
    ],
)
def test_a_fault_names_file_and_line(tmp_path: Path, name: str, content: str | bytes, place: str):
    path = write(tmp_path, name, content)
    with pytest.raises(InputError) as fault:
        list(read_file(path))
    assert place in str(fault.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"q": NaN, "a": "cut \\ud83d"}\n{"q": -Infinity, "a": [{"\\uDE00": "😀 \\ud83d\\ude00"}]}\n'),
        ("a.json", '[{"q": NaN, "a": "cut \\ud83d"},\n{"q": -Infinity, "a": [{"\\uDE00": "😀 \\ud83d\\ude00"}]}]'),
    ],
)
def test_rows_that_other_programs_write_are_read(tmp_path: Path, name: str, content: str):
    rows = [{"q": None, "a": "cut ?"}, {"q": None, "a": [{"?": "😀 😀"}]}]
    assert fields(write(tmp_path, name, content)) == rows


def test_characters_written_as_two_escapes_are_read(tmp_path: Path):
    assert fields(write(tmp_path, "a.jsonl", '{"q": "\\ud83d\\ude00"}')) == [{"q": "😀"}]


def test_a_damaged_page_or_a_repeated_column_in_parquet_is_an_input_error(tmp_path: Path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"q": ["x"] * 5000}), path)
    content = bytearray(path.read_bytes())
    content[4:30] = b"\xff" * 26
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match=r"a\.parquet: not a readable Parquet file"):
        list(read_file(path))
    parquet.write_table(pyarrow.table([["x"], ["y"]], names=["q", "q"]), path)
    with pytest.raises(InputError, match=r"a\.parquet: the column 'q' appears twice"):
        list(read_file(path))


@pytest.mark.parametrize("name", ["data.jsonl", "data.csv", "data"])
def test_a_folder_is_not_a_file(tmp_path: Path, name: str):
    """It is called one, and the file is named that may be meant, but none that cannot be read."""
    folder = tmp_path / name
    folder.mkdir()
    write(folder, "dataset.arrow", "")
    with pytest.raises(InputError, match=rf"{name}: is a folder and not a file; name a file$"):
        read_file(folder)
    write(folder, "part-0.jsonl", "{}")
    with pytest.raises(InputError, match=rf"name a file, such as {folder}/part-0\.jsonl$"):
        read_file(folder)


@pytest.mark.parametrize("name", ["dataset_info.json", "dataset_dict.json"])
def test_a_data_set_that_datasets_has_saved_is_called_one(tmp_path: Path, name: str):
    """The JSON beside its rows holds none, and the remedy is said."""
    write(tmp_path, name, "{}")
    with pytest.raises(InputError, match=r"load_from_disk\(.*to_parquet"):
        read_file(tmp_path)


def test_a_missing_file_is_called_missing_whatever_its_suffix(tmp_path: Path):
    with pytest.raises(InputError, match=r"rows\.xyz: no such file"):
        read_file(tmp_path / "rows.xyz")


def test_names_of_columns_are_read_as_people_write_them(tmp_path: Path):
    path = write(tmp_path, "rows.csv", " question , answer\n1+1?, 2\n")
    assert [row.fields["question"] for row in read_file(path)] == ["1+1?"]


def test_json_lines_are_written_under_no_name_of_another_format(tmp_path: Path):
    check_name_of_jsonl(tmp_path / "out.jsonl")
    check_name_of_jsonl(tmp_path / "out")
    for suffix in set(READERS) - {".jsonl"}:
        with pytest.raises(InputError, match=r"the output is JSON lines; name it out\.jsonl"):
            check_name_of_jsonl(tmp_path / f"out{suffix}")


def test_a_missing_file_suggests_its_neighbour(tmp_path: Path):
    write(tmp_path, "gsm8k_train.jsonl", "{}")
    with pytest.raises(InputError, match=r"did you mean .*gsm8k_train\.jsonl"):
        read_file(tmp_path / "gsm8k_trian.jsonl")


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv"])
@given(content=st.one_of(st.binary(max_size=60), st.text(alphabet='{}[]",:\\ \n\r1aé', max_size=40).map(str.encode)))
def test_any_content_gives_rows_or_an_input_error(tmp_path_factory, suffix: str, content: bytes):
    path = write(tmp_path_factory.mktemp("any"), f"any{suffix}", content)
    try:
        places = [row.location for row in read_file(path)]
    except InputError as error:
        places = [str(error)]
    assert all(place.startswith(str(path)) for place in places)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8), lambda inner: st.lists(inner, max_size=3)
)


@settings(max_examples=40)
@given(rows=st.lists(st.dictionaries(st.text(min_size=1, max_size=4), json_values, min_size=1, max_size=3), max_size=5))
def test_what_was_written_is_read(tmp_path_factory, rows: list[dict]):
    folder = tmp_path_factory.mktemp("written")
    lines = write(folder, "a.jsonl", "\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
    assert fields(lines) == rows
    assert fields(write(folder, "a.json", json.dumps(rows, indent=1))) == rows
