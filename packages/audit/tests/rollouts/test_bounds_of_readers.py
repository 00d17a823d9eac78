"""Every reader of rollouts has a bound: of memory, of what is unpacked, and of time that an interruption cannot end.

Each hostile folder is read in a process of its own, whose largest size is measured.
"""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from cooper_audit.rollouts.reading import Source, read_steps
from cooper_base.errors import InputError

READ = """
import sys
from pathlib import Path
from cooper_audit.rollouts.reading import Source, read_steps
from cooper_base.errors import InputError
try:
    for step, rows in read_steps([Path(sys.argv[1])], Source()):
        pass
    print("read")
except InputError as error:
    print(error)
status = Path("/proc/self/status").read_text()  # rusage counts the parent's size too
print(int(status.partition("VmHWM:")[2].split()[0]) >> 10)
"""
MOST_MB = 1000
"""Largest size of a process that reads what docs/audit.md allows; a file of this module took 2,900 and more before."""


def read(folder):
    """What the reader says, after its process has stayed within the bound."""
    ended = subprocess.run([sys.executable, "-c", READ, str(folder)], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    *words, size = ended.stdout.strip().split("\n")
    assert int(size) < MOST_MB, f"{size} MB: {words}"
    return " ".join(words)


def parquet_of_one_text(path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    count = 1000
    texts = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * count, pyarrow.int32()), ["x" * (4 << 20)])
    columns = {"step": [1] * count, "prompt": ["?"] * count, "completion": texts, "advantage": [0.0] * count}
    parquet.write_table(pyarrow.table(columns | {"r": [1.0] * count}), path / "1.parquet", compression="zstd")


def parquet_of_one_list(path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    count = 20_000
    texts = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * count, pyarrow.int32()), ["x" * (1 << 20)])
    lists = pyarrow.ListArray.from_arrays(pyarrow.array([0, count], pyarrow.int32()), texts)
    parquet.write_table(pyarrow.table({"completion": lists}), path / "1.parquet", compression="zstd")


def parquet_of_numbers(path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    values = pyarrow.repeat(pyarrow.scalar(0, pyarrow.int32()), 70_000_000)
    lists = pyarrow.ListArray.from_arrays(pyarrow.array([0, len(values)], pyarrow.int32()), values)
    parquet.write_table(pyarrow.table({"completion": lists}), path / "1.parquet", compression="zstd")


def sparse(name, head=b""):
    def write(path):
        with (path / name).open("wb") as file:
            file.write(head)
            file.truncate(5 << 30)

    return write


def line_of_lists(path):
    (path / "1.jsonl").write_bytes(b'{"input": [' + b"[]," * (21 << 20) + b"[]]}\n")


def value_of_lists(path):
    (path / "1.json").write_bytes(b"[" + b"{}," * (20 << 20) + b"{}]")


def zip_of_samples(path):
    with zipfile.ZipFile(path / "1.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(40):
            archive.writestr(f"samples/{number}.json", json.dumps({"text": "x" * (8 << 20)}))


SLOW = pytest.mark.slow


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the process's size is read from /proc")
@pytest.mark.parametrize(
    ("write", "words"),
    [
        pytest.param(parquet_of_one_text, "step 1 are more than", marks=SLOW),
        (parquet_of_one_list, "row 1: larger than 64 MB"),
        pytest.param(parquet_of_numbers, "convert the file to JSON lines", marks=SLOW),
        (sparse("1.csv"), "1.csv:1: longer than 64 MB"),
        pytest.param(sparse("1.csv", b"prompt,completion,reward\n"), "1.csv:2: longer than 64 MB", marks=SLOW),
        pytest.param(sparse("1.jsonl"), "1.jsonl:1: longer than 64 MB", marks=SLOW),
        pytest.param(sparse("1.json"), "1.json: longer than 64 MB", marks=SLOW),
        (line_of_lists, "1.jsonl:1: not JSON (more than 4194304 values in one"),
        pytest.param(value_of_lists, "1.json: not JSON (more than 4194304 values in one", marks=SLOW),
        pytest.param(zip_of_samples, "1.eval: unpacks to more than 100 times its size", marks=SLOW),
    ],
)
def test_a_hostile_file_is_refused_within_its_bound(tmp_path, write, words):
    write(tmp_path)
    said = read(tmp_path)
    assert words in said, said


def test_a_pipe_in_the_folder_is_left_alone_and_one_that_is_named_is_refused(tmp_path):
    os.mkfifo(tmp_path / "1.jsonl")
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    row = {"input": "?", "output": "5", "gts": "5", "score": 1.0, "step": 1}
    (tmp_path / "2.jsonl").write_text(json.dumps(row) + "\n")
    assert [step for step, _ in read_steps([tmp_path], Source())] == [1]
    for name in ("1.jsonl", "zero.jsonl"):
        with pytest.raises(InputError, match=f"{name}: is a pipe or a device"):
            list(read_steps([tmp_path / name], Source()))
