"""A command overwrites only a file that it has written itself, follows no link, and one process at a time writes it."""

import json
import os
import subprocess
import sys
from contextlib import suppress

import pytest

from cooper_base.errors import InputError
from cooper_base.files.durable import append_line, folder_aside, open_to_append, write_text
from cooper_base.files.owned_file import MARK, OwnedFile, write_owned
from cooper_base.files.owned_folder import OwnedFolder, new_folder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_new_or_empty_or_the_commands_own_as_it_was_written(tmp_path):
    path = tmp_path / "out.jsonl"
    path.touch()
    for text in ("first", "second", "first", "second"):
        write_owned(path, text, "cooper eval")
        assert path.read_text() == text
    assert names(tmp_path) == [f".out.jsonl{MARK}", "out.jsonl"]
    with pytest.raises(InputError, match=r"out\.jsonl: holds what `cooper report` did not write"):
        write_owned(path, "third", "cooper report")
    path.write_text("second, with notes of mine")
    with pytest.raises(InputError, match="or somebody has changed since, so it is not written; choose another place"):
        write_owned(path, "third", "cooper eval")
    assert path.read_text() == "second, with notes of mine"


def test_a_mark_goes_with_a_copy_and_holds_for_its_name_alone(tmp_path):
    write_owned(tmp_path / "a", "text", "cooper eval")
    (tmp_path / "copy").mkdir()
    for name in names(tmp_path):
        if name != "copy":
            (tmp_path / "copy" / name).write_bytes((tmp_path / name).read_bytes())
    write_owned(tmp_path / "copy" / "a", "another", "cooper eval")
    (tmp_path / "b").write_text("text")
    (tmp_path / f".b{MARK}").write_bytes((tmp_path / f".a{MARK}").read_bytes())
    with pytest.raises(InputError, match="b: holds what"):
        write_owned(tmp_path / "b", "another", "cooper eval")


@pytest.mark.parametrize("damage", ["", "\n", "[]\n", '{"file": 3}\n', "[" * 100_000 + "\n", "\x00"])
def test_a_damaged_mark_says_nothing(tmp_path, damage):
    path = tmp_path / "a"
    write_owned(path, "text", "cooper eval")
    (tmp_path / f".a{MARK}").write_text(damage)
    with pytest.raises(InputError, match="a: holds what"):
        write_owned(path, "another", "cooper eval")
    path.unlink()
    write_owned(path, "another", "cooper eval")
    write_owned(path, "a third", "cooper eval")


def test_in_a_folder_with_a_mark_there_is_one_mark_for_all(tmp_path):
    with OwnedFolder(tmp_path / "out", "cooper audit") as folder:
        folder.write(folder.path / "audit.json", "{}")
        write_owned(folder.path / "report.html", "page", "cooper report")
    assert names(tmp_path / "out") == [".lock", MARK, "audit.json", "report.html"]
    with pytest.raises(InputError, match=r"audit\.json: holds what `cooper report` did not write"):
        write_owned(tmp_path / "out" / "audit.json", "page", "cooper report")
    with OwnedFolder(tmp_path / "out", "cooper audit") as folder:
        folder.remove(folder.path / "report.html")


def test_one_call_at_a_time_and_a_change_meanwhile_is_seen(tmp_path):
    path = tmp_path / "a"
    with OwnedFile(path, "cooper eval") as file:
        with pytest.raises(InputError, match=f"another call is writing it .process {os.getpid()} on"):
            OwnedFile(path, "cooper eval")
        path.write_text("mine, written while the command ran")
        with pytest.raises(InputError, match="a: holds what"):
            file.write("text")
    assert names(tmp_path) == ["a"]
    path.unlink()
    OwnedFile(path, "cooper eval").close()


def test_what_a_command_reads_is_not_its_output_by_whatever_name(tmp_path):
    rows = tmp_path / "rows"
    write_owned(rows, "text", "cooper verifyrm label")
    os.link(rows, tmp_path / "same")
    with pytest.raises(InputError, match="rows: is read by this command"):
        OwnedFile(rows, "cooper verifyrm label", [tmp_path / "same"])


@pytest.mark.parametrize(
    "write",
    [
        lambda path: write_text(path, "text"),
        lambda path: write_owned(path, "text", "cooper eval"),
        lambda path: append_line(path, {"a": 1}),
        lambda path: open_to_append(path).close(),
    ],
    ids=["write_text", "write_owned", "append_line", "open_to_append"],
)
def test_no_write_reaches_what_a_link_leads_to(tmp_path, write):
    victim, path = tmp_path / "victim", tmp_path / "a"
    victim.write_text("a year of work")
    for link in (path, tmp_path / ".a.partial", tmp_path / f".a{MARK}"):
        link.symlink_to(victim)
        with suppress(InputError):  # of the link, where it is the file itself
            write(path)
        assert victim.read_text() == "a year of work"
        for name in names(tmp_path):
            if name != "victim":
                (tmp_path / name).unlink()


def test_a_hard_link_is_replaced_and_not_written_through(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("a year of work")
    os.link(victim, tmp_path / ".a.partial")
    write_text(tmp_path / "a", "text")
    assert (victim.read_text(), (tmp_path / "a").read_text()) == ("a year of work", "text")


def test_a_folder_gets_its_name_when_it_is_whole(tmp_path):
    out, victim = tmp_path / "out", tmp_path / "victim"
    victim.mkdir()
    (victim / "weights").write_text("a week of training")
    (tmp_path / ".out.partial").symlink_to(victim)
    with pytest.raises(FileNotFoundError), new_folder(out) as aside:
        (aside / "no such folder" / "weights").write_text("half")
    assert (names(tmp_path), names(victim)) == (["victim"], ["weights"])
    folder_aside(out).joinpath("left").write_text("by a kill")
    with new_folder(out) as aside:
        assert not out.exists()
        assert names(aside) == []
        with pytest.raises(InputError, match="another call is writing it"), new_folder(out):
            pass
        (aside / "weights").write_text("whole")
    assert names(tmp_path) == ["out", "victim"]
    with pytest.raises(InputError, match="out: already in use"), new_folder(out):
        pass


def test_the_mark_names_command_and_content(tmp_path):
    write_owned(tmp_path / "a", "text", "cooper eval")
    [line] = map(json.loads, (tmp_path / f".a{MARK}").read_text().splitlines())
    assert (line["file"], line["command"], len(line["sha256"])) == ("a", "cooper eval", 64)


COUNT = """
import sys, time
from pathlib import Path
from cooper_base.errors import InputError
from cooper_base.files.folder_lock import FileLock
count = Path(sys.argv[1])
for _ in range(40):
    while True:
        try:
            lock = FileLock(count)
            break
        except InputError as error:
            assert "another call is writing it" in str(error)
    number = int(count.read_text())
    time.sleep(0.001)
    count.write_text(str(number + 1))
    lock.close()
"""


def test_a_lock_that_each_call_deletes_keeps_every_other_out(tmp_path):
    count = tmp_path / "count"
    count.write_text("0")
    calls = [subprocess.Popen([sys.executable, "-c", COUNT, str(count)]) for _ in range(3)]
    assert [call.wait() for call in calls] == [0, 0, 0]
    assert count.read_text() == "120"
    assert names(tmp_path) == ["count"]


def test_a_lock_that_a_kill_has_left_locks_nothing(tmp_path):
    (tmp_path / ".a.lock").write_text("process 1 on a machine that is gone")
    write_owned(tmp_path / "a", "text", "cooper eval")
    assert names(tmp_path) == [f".a{MARK}", "a"]
