"""A `sys.exit` in a user's code is a fault. Its code, such as 0, would say that a command is done, or sound."""

import os
import subprocess
import sys

import pytest
import typer

from cooper_base.cli import main
from cooper_base.config.user_functions import UserFunction, load_object

OWN = """
import sys

def plain(text):
    sys.exit(0)

async def concurrent(text):
    sys.exit(0)

class Called:
    def __call__(self, text):
        raise SystemExit

class Made:
    def __init__(self):
        sys.exit(0)

    def __call__(self, text):
        return 1.0
"""


@pytest.fixture
def own(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "ends.py").write_text("import sys\nsys.exit(0)\n")
    return tmp_path / "own.py"


@pytest.mark.parametrize("name", ["plain", "concurrent", "Called", "Made"])
def test_a_function_that_exits_fails(own, name):
    with pytest.raises(RuntimeError, match=rf"own\.py:{name}: called sys\.exit\((0|None)\)"):
        UserFunction(f"{own}:{name}", None).results([("text",)])


def test_a_module_that_exits_when_it_is_imported_fails(own, monkeypatch):
    with pytest.raises(RuntimeError, match=r"ends\.py:anything: called sys\.exit\(0\)"):
        load_object(f"{own.with_name('ends.py')}:anything")
    monkeypatch.chdir(own.parent)
    with pytest.raises(RuntimeError, match=r"ends:anything: called sys\.exit\(0\)"):
        load_object("ends:anything")


def test_whatever_calls_it_a_command_ends_with_a_fault(own, monkeypatch):
    """A callback, a class of rewards or of a grader: nothing between them and the command has to know."""
    plain = load_object(f"{own}:plain")
    commands = typer.Typer()
    commands.command("use")(lambda: plain("text"))
    commands.command("other")(lambda: None)
    monkeypatch.setattr(main, "commands", commands)
    monkeypatch.setattr(sys, "argv", ["cooper", "use"])
    with pytest.raises(RuntimeError, match=r"own_\w+: called sys\.exit\(0\)"):
        main.app()


@pytest.mark.parametrize(("arguments", "code"), [(["--version"], 0), (["nonsense"], 2), (["audit", "--help"], 0)])
def test_the_command_itself_may_exit(monkeypatch, arguments, code):
    monkeypatch.setattr(sys, "argv", ["cooper", *arguments])
    with pytest.raises(SystemExit) as ended:
        main.app()
    assert ended.value.code == code


def test_a_reader_who_closes_the_pipe_is_no_fault():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-c", "from cooper_base.cli.main import app; app()", "--help"]
    ended = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, timeout=100, check=False)
    os.close(write)
    assert (ended.returncode, ended.stderr) == (1, "")


@pytest.mark.parametrize("how", ["raise ValueError from error", "raise ValueError", "return {}[1]", "raise"])
def test_an_interrupt_that_a_library_turns_into_its_own_error_is_an_interrupt(monkeypatch, how):
    """pydantic does so, and sqlite3, and whatever calls back from compiled code."""
    names = {}
    lines = ["def use():", " try:", "  raise KeyboardInterrupt", " except BaseException as error:", f"  {how}"]
    exec("\n".join(lines), names)
    commands = typer.Typer(cls=main._Commands)
    commands.command("use")(names["use"])
    commands.command("other")(lambda: None)
    monkeypatch.setattr(main, "commands", commands)
    monkeypatch.setattr(sys, "argv", ["cooper", "use"])
    with pytest.raises(SystemExit) as ended:
        main.app()
    assert ended.value.code == 130
