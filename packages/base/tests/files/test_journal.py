"""The journal: finished work survives, unfinished work is done again, and results of different settings never mix."""

import pytest

from cooper_base.errors import InputError
from cooper_base.files.journal import Journal


def test_finished_units_are_there_after_an_interruption_and_a_line_cut_short_is_not(tmp_path):
    path = tmp_path / "journal.jsonl"
    with Journal(path, {"n": 2}) as journal:
        journal.put("a", [1, None, "ü\n"])
        assert path.read_text(encoding="utf-8").endswith("\n")
        journal.put("b", {"x": 1.5})
    text = path.read_text(encoding="utf-8")
    path.write_text(text[:-4], encoding="utf-8")
    with Journal(path, {"n": 2}) as journal:
        assert journal.get("a") == [1, None, "ü\n"]
        assert journal.get("b") is None
        journal.put("b", {"x": 2.5})
        journal.put("a", "newer")
    with Journal(path, {"n": 2}) as journal:
        assert (journal.get("a"), journal.get("b")) == ("newer", {"x": 2.5})


def test_other_settings_and_other_files_are_refused(tmp_path):
    path = tmp_path / "journal.jsonl"
    Journal(path, {"n": 2, "seed": 0}).close()
    with pytest.raises(InputError, match=r"made with other settings \(n\)"):
        Journal(path, {"n": 3, "seed": 0})
    path.write_text('{"question": "1+1"}\n')
    with pytest.raises(InputError, match="not a journal"):
        Journal(path, {})
    for text in ("not JSON\n", '{"made with": 7}\n', '{"made with": \n', "[1]\n", "\udcff\n"):
        path.write_text(text, errors="surrogateescape")
        with pytest.raises(InputError, match=r"journal\.jsonl: not a journal"):
            Journal(path, {})
    path.write_text("no whole line")
    with pytest.raises(InputError, match="not a journal"):
        Journal(path, {})
    assert path.read_text() == "no whole line"
    with pytest.raises(InputError, match="is a folder"):
        Journal(tmp_path, {})


def test_one_call_at_a_time_has_a_journal_open(tmp_path):
    path = tmp_path / "journal.jsonl"
    with Journal(path, {}), pytest.raises(InputError, match="another call is writing it"):
        Journal(path, {})
    Journal(path, {}).close()
    assert [file.name for file in tmp_path.iterdir()] == ["journal.jsonl"]


@pytest.mark.parametrize("line", ["{", "7", '{"key": "b"}', '{"key": [], "value": 1}', '{"key": "b", "value": NaN}'])
def test_a_damaged_line_is_named_and_the_journal_is_left_as_it_is(tmp_path, line):
    path = tmp_path / "journal.jsonl"
    with Journal(path, {}) as journal:
        journal.put("a", 1)
    text = f"{path.read_text()}{line}\n"
    path.write_text(text)
    with pytest.raises(InputError, match=r"journal\.jsonl:3: damaged; delete this line"):
        Journal(path, {})
    assert path.read_text() == text
