"""Files that Cooper has written and reads again: whatever has become of them, the message names file and remedy."""

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from cooper_base.files.durable import append_line, read_fields
from cooper_base.files.journal import Journal
from cooper_lab.arena.cache import MANIFEST, Planted
from cooper_lab.arena.holes import read_hole
from cooper_lab.arena.run_cells import RESULT, read_result
from cooper_rl import InputError
from cooper_rl.record import SinkRun
from cooper_rl.record.trackers import TRACKERS_FILE, Trackio
from cooper_rl.service.client import POINTER, restore_call

DAMAGE = {"cut": '{"a": [1, ', "empty": "", "a list": "[]", "a number": "3", "nested": "[" * 100_000, "no keys": "{}"}


@pytest.mark.parametrize("text", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_bad_input_with_its_name_and_a_remedy(tmp_path: Path, text: str):
    cell, pointer = tmp_path / "cell.json", tmp_path / POINTER
    for path in (cell, pointer):
        path.write_text(text)
    with pytest.raises(InputError, match=r"cell\.json: damaged, .*; delete it to run the cell again"):
        read_result(cell)
    with pytest.raises(InputError, match=rf"{POINTER}: damaged, .*; resume from another checkpoint"):
        restore_call(tmp_path, None)


@pytest.mark.parametrize("name", RESULT)
def test_a_result_of_a_cell_has_all_its_measures(tmp_path: Path, name: str):
    whole = {key: kind() if isinstance(kind, type) else None for key, kind in RESULT.items()}
    whole |= dict.fromkeys(("gold_start", "gold_end", "gold_best", "heard", "drawdown"), 0.5)
    path = tmp_path / "cell.json"
    path.write_text(json.dumps(whole))
    assert read_result(path) == whole
    for damaged in ({**whole, name: ["another type"] if name != "gold_curve" else 1}, whole.keys() - {name}):
        path.write_text(json.dumps(damaged if isinstance(damaged, dict) else {key: whole[key] for key in damaged}))
        with pytest.raises(InputError, match=f"damaged, {name} is missing or has the wrong type"):
            read_result(path)


def test_a_planted_models_manifest_and_a_trackers_file_name_their_remedy(tmp_path: Path):
    planted = Planted(read_hole({"kind": "length"}), 0, tmp_path)
    planted.folder.mkdir()
    (planted.folder / MANIFEST).write_text("[]")
    with pytest.raises(InputError, match=r"manifest\.json: damaged, .*; delete .* to plant the hole again"):
        _ = planted.manifest
    (tmp_path / TRACKERS_FILE).write_text("[]")
    tracker = Trackio(project="p")
    with pytest.raises(InputError, match=rf"{TRACKERS_FILE}: damaged, .*; delete it"):
        tracker.tracked_id(SinkRun(tmp_path, {}, purge_step=3))


def test_a_file_of_other_bytes_is_damaged(tmp_path: Path):
    (tmp_path / "state.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(InputError, match=r"state\.json: damaged, not JSON"):
        read_fields(tmp_path / "state.json", {}, "delete it")


def test_writing_onto_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path):
    """The system refuses to write more than a kilobyte into any file, as a full disk does."""
    path = tmp_path / "table.json"
    path.write_text("before")
    code = (
        "from pathlib import Path; from cooper_base.files.durable import write_text; "
        f"write_text(Path({str(path)!r}), 'x' * 5000)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"{path}" in ended.stderr
    assert path.read_text() == "before"
    assert [one.name for one in tmp_path.iterdir()] == ["table.json"]


_APPENDING = """
import json, resource, sys
from pathlib import Path
from cooper_base.files.durable import append, append_line, open_to_append
from cooper_base.files.journal import Journal
folder = Path(sys.argv[1])
line = {"text": "x" * 300}
journal, opened = Journal(folder / "journal.jsonl", {}), open_to_append(folder / "metrics.jsonl")
ways = [
    lambda: append_line(folder / "events.jsonl", line),
    lambda: append(opened, json.dumps(line) + "\\n"),
    lambda: journal.put("x", line),
]
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
refused = 0
for way in ways:
    for _ in range(9):
        try:
            way()
        except OSError:
            refused += 1
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
for way in ways:
    way()
print(refused)
"""


def test_what_a_full_disk_refuses_to_append_spoils_no_line(tmp_path: Path):
    """The events of a run and of the service, metrics, and the journals of finished work."""
    done = subprocess.run([sys.executable, "-c", _APPENDING, str(tmp_path)], capture_output=True, text=True, check=True)
    assert int(done.stdout) >= 18
    for name in ("events.jsonl", "metrics.jsonl", "journal.jsonl"):
        text = (tmp_path / name).read_text()
        assert text.endswith("\n")
        assert len([json.loads(line) for line in text.splitlines()]) >= 3
    assert Journal(tmp_path / "journal.jsonl", {}).get("x") == {"text": "x" * 300}


@pytest.mark.parametrize("torn", ['{"step": 1, "met', '{"step": 1}', "\x00"])
def test_half_a_line_that_a_crash_left_spoils_no_other(tmp_path: Path, torn: str):
    path = tmp_path / "events.jsonl"
    path.write_text('{"step": 0}\n' + torn)
    for step in (2, 3):
        append_line(path, {"step": step})
    lines = path.read_text().split("\n")
    assert (lines[0], lines[-3:]) == ('{"step": 0}', ['{"step": 2}', '{"step": 3}', ""])
