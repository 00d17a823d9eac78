"""What a name of a file, of a run or of a user can do to the terminal: nothing."""

import logging
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.text import Text

from cooper_base.cli import console
from cooper_base.cli.console import SafeConsole, log_handler, say, show_table
from cooper_base.cli.main import app
from cooper_base.data.text import printable
from cooper_base.errors import MOST_CHARACTERS, InputError

HOSTILE = "a\x1b[2J\x1b]0;title\x07\x9b31m\r\x08\u202egnp.exe\udcff[bold]b :smile:"
SHOWN = r"a\x1b[2J\x1b]0;title\x07\x9b31m\r\x08\u202egnp.exe\udcff[bold]b :smile:"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> SafeConsole:
    """The terminal of commands, without colours, so that each escape in it came from a text."""
    quiet = SafeConsole(file=StringIO(), force_terminal=True, width=200, color_system=None)
    monkeypatch.setattr(console, "console", quiet)
    return quiet


def printed(terminal: SafeConsole) -> str:
    assert isinstance(terminal.file, StringIO)
    return terminal.file.getvalue()


def test_every_way_of_printing_writes_control_characters_out(terminal, monkeypatch):
    say(HOSTILE)
    say("after it", label=HOSTILE)
    show_table([HOSTILE], [[HOSTILE]], terminal, HOSTILE)
    terminal.print(HOSTILE, soft_wrap=True)
    logger = logging.getLogger("cooper_base.test")
    monkeypatch.setattr(logger, "propagate", False)  # pytest-xdist cannot send half a surrogate in a captured log
    logger.addHandler(handler := log_handler())
    logger.warning("%s", HOSTILE)
    logger.removeHandler(handler)
    assert printed(terminal).count(SHOWN) == 7
    terminal.print(Text(HOSTILE))
    assert all(character.isprintable() or character == "\n" for character in printed(terminal))


def test_a_progress_bar_shows_a_name_as_it_is_written(terminal):
    with console.progress(HOSTILE, 2) as advance:
        advance(1)
    text = printed(terminal)
    assert SHOWN in text
    assert "\x1b]0" not in text
    assert "\x1b[2J" not in text


def test_letters_of_every_language_stay():
    for text in ("naïve – 数学\u3000答案", "می\u200cخواهم", "1\u202f000\xa0€", "👨\u200d👩\u200d👧", "a\nb"):
        assert printable(text) == text


def test_a_message_has_a_bound_and_keeps_both_ends(terminal):
    names = ", ".join(f"run {number:06}" for number in range(200_000))
    error = InputError(f"runs.db: holds several runs, {names}; name one with runs.db/NAME")
    assert len(str(error)) < MOST_CHARACTERS + 100
    assert str(error).startswith("runs.db: holds several runs, run 000000, ")
    assert str(error).endswith("; name one with runs.db/NAME")
    say("x" * 10**7)
    assert len(printed(terminal)) < MOST_CHARACTERS + 100


@pytest.mark.parametrize(
    "arguments",
    [
        ["{}"],
        ["--{}"],
        ["config", "--{}"],
        ["config", "{}.yaml"],
        ["config", "steps={}"],
        ["config", "--for", "{}"],
        ["config", "{}"],
        ["runs", "{}"],
        ["report", "{}"],
        ["watch", "{}"],
        ["audit", "{}"],
        ["audit", "rows.jsonl", "--format", "{}"],
        ["verify", "{}.jsonl", "--out", "out.jsonl"],
        ["verify", "rows.jsonl", "--out", "out.jsonl", "--grader", "{}:f"],
        ["attack", "{}"],
        ["attack", "{}.py:f"],
        ["attack", "rule", "--problems", "{}.jsonl"],
        ["attack", "rule", "--patterns", "{}"],
        ["train", "{}.yaml"],
        ["eval", "{}"],
    ],
    ids=" ".join,
)
def test_no_command_sends_what_it_was_given_to_the_terminal(tmp_path: Path, monkeypatch, capfd, arguments):
    """In files that exist, where a name can be one; the others are named in messages."""
    hostile = HOSTILE.replace("\udcff", "")
    (tmp_path / "rows.jsonl").write_text('{"question": "q", "answer": "1", "completion": "1"}\n')
    (tmp_path / f"{hostile}.jsonl").write_text('{"question": 1}\n')
    (tmp_path / f"{hostile}.yaml").write_text(f"'{SHOWN}': 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["cooper", *(argument.format(hostile) for argument in arguments)])
    with pytest.raises(SystemExit):
        app()
    text = "".join(capfd.readouterr())
    assert text
    assert "Traceback" not in text
    assert [character for character in text if not character.isprintable() and character not in "\n"] == []


def test_a_traceback_is_escaped_too(tmp_path: Path):
    (tmp_path / "broken.py").write_text("raise ValueError('\\x1b[2J' * 10_000)\n")
    command = [sys.executable, "-c", "from cooper_base.cli import start; start()", "verify", "rows.jsonl"]
    (tmp_path / "rows.jsonl").write_text('{"question": "q", "answer": "1", "completion": "1"}\n')
    command += ["--out", "out.jsonl", "--grader", "broken.py:f"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=100, check=False)
    assert ended.returncode == 1
    assert b"broken.py" in ended.stderr
    assert b"\x1b" not in ended.stderr
    assert len(ended.stderr) < 2 * MOST_CHARACTERS


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_reader_that_is_gone_ends_no_command(stream):
    """As with `| head`: the command's own exit code stays."""
    source = "import sys, time; time.sleep(0.5); from cooper_base.cli.console import *; "
    source += "to = stdout() if sys.argv[1] == 'stdout' else console; "
    source += "[to.print('a line') for _ in range(10)]; sys.exit(3)"
    command, pipe = [sys.executable, "-c", source, stream], subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe) if stream == "stdout" else subprocess.Popen(command, stderr=pipe)
    pipe = process.stdout or process.stderr
    assert pipe is not None
    pipe.close()
    assert process.wait(60) == 3
