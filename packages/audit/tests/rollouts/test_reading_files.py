"""Zips, databases and tables of trackers, in the layout that their libraries write (test_real_writers.py runs these),
and what strangers may put into such files."""

import json
import random
import sqlite3
import zipfile
from contextlib import closing

import pytest

from cooper_audit.rollouts.files import find_files
from cooper_audit.rollouts.formats import chosen_format
from cooper_audit.rollouts.reading import Source, read_steps
from cooper_base.errors import InputError

ASKED = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "What is 2 + 3?", "source": "input"}]
SAMPLE = {
    **{"id": "a", "epoch": 1, "input": "What is 2 + 3?", "target": ["5", "five"], "error": None},
    "messages": [*ASKED, {"role": "assistant", "content": "It is 5", "source": "generate"}],
    "output": {"choices": [{"message": {}, "stop_reason": "max_tokens"}], "completion": "It is 5"},
    "scores": {"match": {"value": "C", "answer": "5"}, "length": {"value": 0.25}, "style": {"value": "P"}},
}
CALLS = {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": "add", "arguments": {"a": 2}}]}
TABLE = {"step": 4, "prompt": "What is 2 + 3?", "completion": "It is 5", "right": 1.0, "short": "NaN", "advantage": 0.5}
MESSAGES = [
    {"role": "user", "content": "What is 2 + 3?", "tool_calls": None, "tool_call_id": None, "trainable": False},
    {"role": "assistant", "content": "It is 5", "tool_calls": None, "tool_call_id": None, "trainable": True},
]
CHOICE = {"finish_reason": "length", "index": 0, "message": {"role": "assistant", "content": "It is 5"}}


def read(path, choose=None):
    source = Source()
    return source, list(read_steps([path], source, choose))


def write_eval(path, *samples, packed=False):
    """An Inspect log; `packed` as Inspect does, in a form that Python's zipfile neither writes nor reads."""
    import pyarrow

    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for number, sample in enumerate(samples, start=1):
            data = sample if isinstance(sample, bytes) else json.dumps(sample).encode()
            data = pyarrow.compress(data, codec="zstd", asbytes=True) if packed else data
            archive.writestr(f"samples/a_epoch_{number}.json", data)
        archive.writestr("header.json", "{}")
    if packed:
        written = bytearray(path.read_bytes())
        for header, place in ((b"PK\3\4", 8), (b"PK\1\2", 10)):
            start = -1
            while (start := written.find(header, start + 1)) >= 0:
                written[start + place : start + place + 2] = (93).to_bytes(2, "little")
        path.write_bytes(written)


def write_database(path, runs, table=TABLE):
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE metrics (id INTEGER PRIMARY KEY, run_name TEXT, step INTEGER, metrics TEXT)")
        for run in runs:
            value = {"_type": "trackio.table", "_value": [table, {**table, "right": 0.0}]}
            for logged in ({"loss": 1.0}, {"completions": value}):
                row = (run, 0, json.dumps(logged).encode())
                connection.execute("INSERT INTO metrics (run_name, step, metrics) VALUES (?, ?, ?)", row)
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_an_inspect_log_is_its_samples(tmp_path, packed):
    write_eval(tmp_path / "1.eval", SAMPLE, {**SAMPLE, "scores": {}}, packed=packed)
    source, [(step, [row])] = read(tmp_path)
    assert source.left_out == {"a row without a reward": 1}
    assert (step, row.question, row.answer.text, row.answer.stopped) == (None, "What is 2 + 3?", "It is 5", False)
    assert (row.references, row.reward) == (("5", "five"), 1.75)
    _, [(step, [row])] = read(tmp_path, chosen_format(None, ["reward=scores.style", "step=$file"]))
    assert (step, row.reward) == (1, 0.5)
    assert row.location.endswith("1.eval:samples/a_epoch_1.json")


def test_an_inspect_log_as_json_reads_the_same(tmp_path):
    write_eval(tmp_path / "zip" / "1.eval", SAMPLE)
    (tmp_path / "1.json").write_text(json.dumps({"version": 2, "eval": {"task": "sums"}, "samples": [SAMPLE]}))
    rows = [read(tmp_path / name)[1][0][1][0] for name in ("1.json", "zip")]
    assert [(row.group, row.answer, row.reward) for row in rows] == [(rows[0].group, rows[0].answer, 1.75)] * 2


def test_tool_calls_of_inspect_are_read(tmp_path):
    messages = [*ASKED, CALLS, {"role": "tool", "content": "5"}, *SAMPLE["messages"][2:]]
    write_eval(tmp_path / "1.eval", {**SAMPLE, "messages": messages})
    _, [(_, [row])] = read(tmp_path)
    assert row.answer.text == "It is 5"
    assert '"add"' in row.answer.transcript


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("1.eval", b"no zip", "cannot be read to its end"),
        ("1.db", b"SQLite format 3\0" + b"x" * 100, "cannot be read to its end"),
        ("1.db", b"another kind of file", "holds no rows"),
        ("1.json.gz", b"no gzip", "cannot be read to its end"),
        ("1.jsonl.zst", b"no zstandard", "cannot be read to its end"),
        ("1.parquet", b"no Parquet", "not a readable Parquet file"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, name, data, words):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=f"{name}.*{words}"):
        read(tmp_path)


@pytest.mark.parametrize("name", ["1.eval", "1.db"])
def test_a_file_with_other_bytes_is_read_or_refused(tmp_path, name):
    if name == "1.eval":
        write_eval(tmp_path / name, SAMPLE, SAMPLE, packed=True)
    else:
        write_database(tmp_path / name, ["run"])
    data, generator, refused = (tmp_path / name).read_bytes(), random.Random(1), 0
    for _ in range(100):
        changed = bytearray(data)
        for _ in range(5):
            changed[generator.randrange(len(changed))] = generator.randrange(256)
        (tmp_path / name).write_bytes(changed)
        try:
            read(tmp_path)
        except InputError as error:
            refused += name in str(error)
    assert refused > 20


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("bomb", "words"), [(b" " * 10**7, "longer than"), (b"[" * 10**5, "nested too deeply")])
def test_bombs_in_a_zip_are_refused(tmp_path, monkeypatch, packed, bomb, words):
    monkeypatch.setattr("cooper_audit.rollouts.files.LONGEST_LINE", 10**6)
    write_eval(tmp_path / "1.eval", SAMPLE, bomb, packed=packed)
    with pytest.raises(InputError, match=f"1.eval:samples/a_epoch_2.json.*{words}"):
        read(tmp_path)


def test_a_giant_value_in_a_database_is_refused(tmp_path, monkeypatch):
    path = write_database(tmp_path / "p.db", ["run"], {**TABLE, "completion": "x" * 10**6})
    monkeypatch.setattr("cooper_audit.rollouts.files.LONGEST_LINE", 10**5)
    with pytest.raises(InputError, match=r"p\.db: cannot be read to its end"):
        read(path)


def test_trackio_s_tables_are_rows_of_trl(tmp_path):
    write_database(tmp_path / "p.db", ["run"])
    source, [(step, rows)] = read(tmp_path)
    assert source.format is not None
    assert (source.format.name, step, [row.reward for row in rows]) == ("trl", 4, [1.0, 0.0])


def test_trackio_s_traces_are_rollouts_and_those_of_an_evaluation_are_none(tmp_path):
    """As AReaL and TRL's asynchronous GRPO log them: several traces of a step, with the reward in their metadata."""
    with closing(sqlite3.connect(tmp_path / "p.db")) as connection, connection:
        connection.execute("CREATE TABLE metrics (id INTEGER PRIMARY KEY, run_name TEXT, step INTEGER, metrics TEXT)")

        def log(step, **logged):
            row = ("run", step, json.dumps(logged))
            connection.execute("INSERT INTO metrics (run_name, step, metrics) VALUES (?, ?, ?)", row)

        def trace(reward, **metadata):
            turns = [*ASKED, {"role": "assistant", "content": "It is 5"}]
            metadata = {"reward": reward, "group_id": 7, "answer": "5", **metadata}
            return {"_type": "trackio.trace", "messages": turns, "metadata": metadata}

        log(0, loss=0.5)
        log(4, rollouts=[trace(1.0, advantage=0.5), trace(0.0, status="truncated")])
        log(5, trajectories=[trace(1.0, global_step=6), trace(0.0, split="eval-rollout")], **{"val/traces": trace(0.0)})
    source, steps = read(tmp_path)
    assert source.format is not None
    assert source.format.name == "trackio"
    assert [(step, [row.reward for row in rows]) for step, rows in steps] == [(4, [1.0, 0.0]), (6, [1.0])]
    row = steps[0][1][0]
    assert (row.question, row.answer.text, row.references, row.advantage) == ("What is 2 + 3?", "It is 5", ("5",), 0.5)
    assert [row.cut for row in steps[0][1]] == [None, True]
    assert source.left_out == {"a row with other fields": 2}


def test_a_project_of_trackio_that_holds_numbers_alone_is_refused_as_what_it_is(tmp_path):
    with closing(sqlite3.connect(tmp_path / "p.db")) as connection, connection:
        connection.execute("CREATE TABLE metrics (id INTEGER PRIMARY KEY, run_name TEXT, step INTEGER, metrics TEXT)")
        connection.execute("INSERT INTO metrics (run_name, step, metrics) VALUES ('run', 0, '{\"loss\": 1.0}')")
    with pytest.raises(InputError, match=r"p\.db: holds no rows, only numbers; log its completions too"):
        read(tmp_path)


@pytest.mark.parametrize("names", [["a", "b"], ["org/a", "b"]])
def test_one_of_several_runs_in_a_database_is_named(tmp_path, names):
    path = write_database(tmp_path / "p.db", names)
    with pytest.raises(InputError, match=rf"holds the runs {names[0]}, b; name one, as .*p\.db/{names[0]}"):
        read(path)
    assert len(read(path / names[0])[1]) == 1
    with pytest.raises(InputError, match="no such run"):
        read(path / "c")


def test_several_runs_of_trackers_in_a_folder_are_not_mixed(tmp_path):
    for run in ("20261126_080009-first", "20261127_080009-first", "20261128_080009-other"):
        folder = tmp_path / f"offline-run-{run}" / "files" / "media" / "table"
        folder.mkdir(parents=True)
        columns = {"columns": [*TABLE], "data": [[run[7] if name == "step" else TABLE[name] for name in TABLE]]}
        (folder / "completions_1_ab.table.json").write_text(json.dumps(columns))
    with pytest.raises(InputError, match="holds the runs first, other; name the folder or file of one"):
        read(tmp_path)
    for name in ("p.db", "q.db"):
        write_database(tmp_path / "trackio" / name, ["run"])
    with pytest.raises(InputError, match=r"holds the runs .*p\.db, .*q\.db; name"):
        read(tmp_path / "trackio")


def test_art_s_tables_and_its_older_lines_are_trajectories(tmp_path):
    import pandas

    row = {"group_index": 3, "reward": 1.0, "metadata": '{"answer": "5"}', "messages": MESSAGES}
    for split, reward in (("train", 1.0), ("val", 0.0)):
        folder = tmp_path / "tables" / "trajectories" / split
        folder.mkdir(parents=True)
        pandas.DataFrame([row | {"reward": reward}]).to_parquet(folder / "0007.parquet")
    folder = tmp_path / "lines" / "trajectories" / "train"
    folder.mkdir(parents=True)
    given = {"reward": 1.0, "metadata": {"answer": "5"}, "messages_and_choices": [MESSAGES[0], CHOICE]}
    (folder / "0007.jsonl").write_text(json.dumps({"trajectories": [given]}) + "\n")
    for name, form, stopped in (("tables", "art", True), ("lines", "art-jsonl", False)):
        source, [(step, [rollout])] = read(tmp_path / name)
        assert source.format is not None
        assert (source.format.name, step, rollout.question, rollout.answer.text, rollout.reward) == (
            *(form, 7, "What is 2 + 3?", "It is 5"),
            1.0,
        )
        assert (rollout.references, rollout.answer.stopped) == (("5",), stopped)


def test_a_saved_data_set_is_refused_as_what_it_is(tmp_path):
    (tmp_path / "dataset_info.json").write_text('{"features": {}}')
    with pytest.raises(InputError, match=r"load_from_disk\(.*to_parquet"):
        find_files([tmp_path])
