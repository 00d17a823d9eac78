"""A command overwrites only what a mark says that it has written, and one process at a time writes a folder."""

import subprocess
import sys

import pytest

from cooper_base.errors import InputError
from cooper_base.files.owned_folder import MARK, OwnedFolder, is_owned

HOLD = """
import sys, pathlib
from cooper_base.files.owned_folder import OwnedFolder
folder = OwnedFolder(pathlib.Path(sys.argv[1]), "cooper audit")
print("held", flush=True)
sys.stdin.read()
"""


def owned(path, command="cooper audit"):
    return OwnedFolder(path, command)


def test_a_folder_is_new_or_empty_or_has_the_commands_mark(tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty", "new"):
        with owned(tmp_path / name) as folder:
            folder.write(folder.path / "a.txt", "a")
    assert is_owned(tmp_path / "new")
    with pytest.raises(InputError, match="no mark says that `cooper attack` wrote them"):
        owned(tmp_path / "new", "cooper attack")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    (tmp_path / "link").symlink_to("other")
    for name in ("other", "link"):
        with pytest.raises(InputError, match="choose a new or empty folder"):
            owned(tmp_path / name)
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["notes.txt"]


def test_a_file_of_somebodys_is_neither_replaced_nor_deleted(tmp_path):
    with owned(tmp_path / "out") as folder:
        path = folder.folder("rollouts") / "000001.jsonl"
        for text in ("first", "second"):
            assert folder.holds(path, folder.write(path, text))
        path.write_text("first")  # a content that it once wrote is its own
        assert folder.owns(path)
        path.write_text("the trainer's")
        for change in (lambda: folder.write(path, "third"), lambda: folder.remove(path)):
            with pytest.raises(InputError, match=r"000001\.jsonl: holds what `cooper audit` did not write"):
                change()
        assert path.read_text() == "the trainer's"


def test_a_link_inside_is_not_followed(tmp_path):
    (tmp_path / "trainers").mkdir()
    with owned(tmp_path / "out") as folder:
        (tmp_path / "out" / "rollouts").symlink_to(tmp_path / "trainers")
        with pytest.raises(InputError, match="is a link"):
            folder.folder("rollouts")


def test_half_a_mark_of_a_kill_counts_as_none_and_the_folder_goes_on(tmp_path):
    with owned(tmp_path / "out") as folder:
        folder.write(folder.path / "a.txt", "a")
    mark = tmp_path / "out" / MARK
    mark.write_text(mark.read_text()[:-5])
    with owned(tmp_path / "out") as folder:
        assert not folder.owns(folder.path / "a.txt")


def test_a_second_call_is_refused_until_the_first_one_ends_in_whatever_way(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "out")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    with pytest.raises(InputError, match=f"another call is writing in this folder .process {holder.pid}"):
        owned(tmp_path / "out")
    holder.kill()
    holder.communicate()
    with owned(tmp_path / "out"), pytest.raises(InputError, match="another call is writing"):
        owned(tmp_path / "out")
    owned(tmp_path / "out").close()
