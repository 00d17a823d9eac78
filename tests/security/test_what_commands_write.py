"""What each command does with what is there already under the name that it writes: a table over all commands.

A command without a row fails. It is refused, and nothing is changed: a file or a folder of somebody's, a link whatever
it leads to, a pipe, a lock that another process holds, what the command reads, and its own output where somebody has
changed it. Its own output as it was written is written again.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

from cooper_base.cli.main import commands
from cooper_base.errors import InputError
from cooper_lab.arithmetic.world import ASSETS
from runs.recorded_run import write_run

PROBLEMS = "arithmetic"
REWARD_MODEL = ASSETS / "reward_model"


@dataclass(frozen=True)
class Row:
    """A command, by the words that make it write `out`."""

    kind: str
    """`file`; `folder`: new, empty, or written by this command; `new folder`; `run` and `service`: folders that go on;
    `nothing`."""
    words: Callable[[Path, Path], list[str | Path]] = lambda given, out: []
    """The words, with the folder of the inputs and the output."""
    ends: bool = False
    """Whether it ends within a second or two, so that its own output can be written again."""
    reads: str = ""
    """The input that may not be its output, below the inputs."""
    suffix: str = ""
    """That of the output."""


ROWS = {
    "verify": Row("file", lambda at, out: [at / "rows.jsonl", "--out", out, "--rule", "exact"], True, "rows.jsonl"),
    "verify --grader": Row("file", lambda at, out: [at / "rows.jsonl", "--out", out, "--grader", f"{at}/own.py:grade"]),
    "eval": Row(
        "file",
        lambda at, out: [ASSETS / "policy", f"problems={at}/problems.jsonl", "k=1", "max_tokens=2", "--out", out],
        True,
        "problems.jsonl",
    ),
    "report": Row("file", lambda at, out: [at / "run", "--out", out], True),
    "verifyrm collect": Row(
        "file",
        lambda at, out: [at / "collect.yaml", f"output={out}"],
        True,
        "problems.jsonl",
        suffix=".jsonl",
    ),
    "verifyrm label": Row(
        "file", lambda at, out: [at / "rows.jsonl", "--out", out, "--rule", "exact"], True, "rows.jsonl", ".jsonl"
    ),
    "audit": Row("folder", lambda at, out: [at / "rollouts.jsonl", "--out", out, "--rule", "exact"], True),
    "attack": Row("folder", lambda at, out: ["rule:exact", "--limit", "2", "--out", out], True),
    "attack --repair": Row("new folder", lambda at, out: [REWARD_MODEL, "--limit", "2", "--repair", out]),
    "demo": Row("folder", lambda at, out: ["--out", out, "--steps", "1"]),
    "demo --rebuild": Row("folder", lambda at, out: ["--rebuild", out]),
    "arena": Row("folder", lambda at, out: ["--out", out, "--design", "rule", "--hole", "none", "--steps", "1"]),
    "verifyrm bench": Row(
        "folder", lambda at, out: [at / "rows.jsonl", "--out", out, "--rule", "exact", "--attacks", "0"], True
    ),
    "verifyrm train": Row("new folder", lambda at, out: [at / "rows.jsonl", "--model", REWARD_MODEL, "--out", out]),
    "export": Row("new folder", lambda at, out: [at / "adapter", out]),
    "train": Row("run", lambda at, out: [at / "run.yaml", f"output_dir={out.parent}", f"name={out.name}"]),
    "serve": Row("service", lambda at, out: [at / "serve.yaml", f"serve.folder={out}"]),
    "runs": Row("nothing"),
    "watch": Row("nothing"),
    "config": Row("nothing"),
    "plan": Row("nothing"),
    "push": Row("nothing"),
}


def leaves(command: Any, name: str = "") -> Iterator[str]:
    """The commands without those that only hold others."""
    for inner, of_inner in getattr(command, "commands", {}).items():
        yield from leaves(of_inner, f"{name} {inner}".strip())
    if not hasattr(command, "commands"):
        yield name


def test_each_command_has_a_row():
    named = {name.partition(" --")[0] for name in ROWS}
    assert named == {*leaves(typer.main.get_command(commands))}, "say in ROWS what the command writes"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> Path:
    """What the commands read."""
    at = tmp_path_factory.mktemp("inputs")
    rows = [
        {"question": f"1+{n}=", "answer": str(n + 1), "reference_answer": str(n + 1), "completion": str(n + right)}
        | {"label": int(right)}
        for n in range(8)
        for right in (True, False)
    ]
    rollouts = [
        {"step": step, "input": row["question"], "output": row["completion"], "gts": row["answer"], "score": 1.0}
        for step in (1, 2, 3)
        for row in rows
    ]
    for name, lines in {"rows": rows, "problems": rows[::2], "rollouts": rollouts}.items():
        (at / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (at / "own.py").write_text("def grade(problem, completion_text):\n    return 1.0\n")
    write_run(at / "run", [{"step": step, "reward/mean": 0.5} for step in (0, 1, 2)])
    (at / "adapter").mkdir()
    (at / "adapter" / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(REWARD_MODEL)}))
    models = {"policy": {"model": str(ASSETS / "policy")}, "reward_model": {"model": str(REWARD_MODEL)}}
    problems = {"source": str(at / "problems.jsonl"), "prompt": {"template": "{question}\n"}}
    sampled = [{"name": "p", "kind": "local", "model": str(ASSETS / "policy"), "sampling": {"max_tokens": 2}}]
    files = {
        "run": {"kind": "rule", "steps": 1, "problems": problems, "policy": models["policy"]},
        "serve": {"kind": "static", "reward_model": {**models["reward_model"], "max_input_tokens": 160}},
        "collect": {"n": 1, "models": sampled, "datasets": [{"name": "d", **problems}], "output": "given on the line"},
    }
    for name, values in files.items():
        (at / f"{name}.yaml").write_text(yaml.safe_dump(values))
    return at


def tree(folder: Path) -> dict[str, object]:
    """What lies in the folder: kinds, contents and links, but for locks, which a refused command may have taken."""
    paths = [path for path in sorted(folder.rglob("*")) if not path.name.endswith(".lock")]
    return {
        str(path.relative_to(folder)): os.readlink(path)
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else path.lstat().st_mode
        for path in paths
    }


def run(name: str, inputs: Path, out: Path, *more: str) -> tuple[int, str]:
    """The exit code of a command and its message. A fault that is no bad input is raised."""
    words = [*name.partition(" --")[0].split(), *map(str, ROWS[name].words(inputs, out)), *more]
    ended = CliRunner().invoke(commands, words)
    if isinstance(ended.exception, InputError):
        return 2, str(ended.exception)
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    return ended.exit_code, ended.output


def output_of(name: str, folder: Path) -> Path:
    suffix = ROWS[name].suffix
    return folder / (suffix if suffix and not suffix.startswith(".") else f"out{suffix}")


def of_kind(*kinds: str, ends: bool = False) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", [n for n, row in ROWS.items() if row.kind in kinds and row.ends >= ends])


def refused(name: str, inputs: Path, folder: Path, out: Path, *more: str) -> str:
    """The message of a command that is refused and changes nothing."""
    before = tree(folder)
    code, said = run(name, inputs, out, *more)
    assert code == 2, said
    assert tree(folder) == before
    assert out.name in said, "the message names what is in the way"
    return said


WRITING = ("file", "folder", "new folder", "run", "service")
FOLDERS = WRITING[1:]


@of_kind(*WRITING)
def test_a_file_of_somebodys_is_left(name, inputs, tmp_path):
    out = output_of(name, tmp_path)
    for text in ("a year of work\n", "no final newline", "{"):
        out.write_text(text)
        refused(name, inputs, tmp_path, out)


@of_kind(*FOLDERS)
def test_a_folder_of_somebodys_is_left(name, inputs, tmp_path):
    out = tmp_path / "out"
    (out / "final").mkdir(parents=True)
    (out / "config.yaml").write_text("a year of work")
    (out / "final" / "notes.txt").write_text("more of it")
    said = refused(name, inputs, tmp_path, out)
    if ROWS[name].kind == "run":
        refused(name, inputs, tmp_path, out, "--resume")
        assert "config.yaml: is not of a run" in said
    (tmp_path / "link").symlink_to("out")
    refused(name, inputs, tmp_path, tmp_path / "link")


@of_kind("file", "new folder")
def test_a_link_is_not_followed(name, inputs, tmp_path):
    out, victim = output_of(name, tmp_path), tmp_path / "victim"
    out.symlink_to("victim")
    refused(name, inputs, tmp_path, out)
    victim.mkdir() if ROWS[name].kind == "new folder" else victim.write_text("")
    refused(name, inputs, tmp_path, out)


@of_kind("file")
def test_a_folder_is_no_file(name, inputs, tmp_path):
    out = output_of(name, tmp_path)
    out.mkdir()
    assert "is a folder" in refused(name, inputs, tmp_path, out)


@of_kind(*WRITING)
def test_nobody_waits_for_a_pipe(name, inputs, tmp_path):
    out = output_of(name, tmp_path)
    os.mkfifo(out)
    refused(name, inputs, tmp_path, out)


@of_kind("file", "new folder")
@pytest.mark.parametrize("long", [250, 300])
def test_a_name_that_no_file_can_have_is_refused(name, long, inputs, tmp_path):
    """The shorter one has no room for the hidden names beside it."""
    code, said = run(name, inputs, tmp_path / f"{'x' * long}{ROWS[name].suffix}")
    assert (code, [*tmp_path.iterdir()]) == (2, [])
    assert "File name too long" in said


@of_kind("file")
def test_a_path_without_a_name_is_refused(name, inputs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, said = run(name, inputs, Path(""))
    assert (code, [*tmp_path.iterdir()]) == (2, []), said


def lock_of(name: str, out: Path) -> Path:
    if ROWS[name].kind in ("file", "new folder"):
        return out.with_name(f".{out.name}.lock")
    out.mkdir(exist_ok=True)
    return out / ".lock"


@of_kind(*WRITING)
def test_a_lock_that_is_a_link_is_not_followed(name, inputs, tmp_path):
    out, victim = output_of(name, tmp_path), tmp_path / "victim"
    lock = lock_of(name, out)
    lock.symlink_to(victim)
    for text in ("a year of work", ""):
        victim.write_text(text)
        code, said = run(name, inputs, out)
        assert (code, victim.read_text()) == (2, text)
        assert f"{lock}: is a link" in said


@of_kind(*WRITING)
def test_what_only_has_the_name_of_a_lock_is_left(name, inputs, tmp_path):
    out = output_of(name, tmp_path)
    lock = lock_of(name, out)
    lock.write_text("a year of work")
    code, said = run(name, inputs, out)
    assert (code, lock.read_text()) == (2, "a year of work")
    assert "holds a text that is not of a lock" in said


HOLD = """
import fcntl, sys
file = open(sys.argv[1], "a")
fcntl.lockf(file, fcntl.LOCK_EX)
print("process 1 on elsewhere", file=file, flush=True)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def held(tmp_path_factory) -> Iterator[Callable[[Path], None]]:
    """Holds a lock in another process."""
    holders = []

    def hold(path: Path) -> None:
        holder = subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=-1, stdout=-1)
        assert holder.stdout is not None
        holders.append(holder)
        holder.stdout.readline()

    yield hold
    for holder in holders:
        holder.communicate()


@of_kind(*WRITING)
def test_a_second_call_is_refused(name, inputs, tmp_path, held):
    out = output_of(name, tmp_path)
    held(lock_of(name, out))
    said = refused(name, inputs, tmp_path, out)
    assert "process 1 on elsewhere" in said


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.reads])
def test_what_it_reads_is_not_what_it_writes(name, inputs, tmp_path):
    shutil.copytree(inputs, tmp_path, dirs_exist_ok=True)
    for path in tmp_path.glob("*.yaml"):
        path.write_text(path.read_text().replace(str(inputs), str(tmp_path)))
    said = refused(name, tmp_path, tmp_path, tmp_path / ROWS[name].reads)
    assert "is read by this command" in said


@of_kind("file", "folder", ends=True)
def test_its_own_output_is_written_again_unless_somebody_has_changed_it(name, inputs, tmp_path):
    """The names beside it that Cooper uses are links to a file of somebody's, which is not changed."""
    folder, victim = tmp_path / "place", tmp_path / "victim"
    folder.mkdir()
    victim.write_text("a year of work")
    out = output_of(name, folder)
    (folder / f".{out.name}.partial").symlink_to(victim)
    if ROWS[name].kind == "file":
        out.write_text("")
    for _ in range(2):
        assert run(name, inputs, out)[0] in (0, 3, 4)
        assert victim.read_text() == "a year of work"
    written = (
        [out] if ROWS[name].kind == "file" else [path for path in out.iterdir() if path.suffix in (".json", ".html")]
    )
    assert written
    for path in written:
        content = path.read_bytes()
        path.write_bytes(content + b" ")
        code, said = run(name, inputs, out)
        assert (code, path.read_bytes()) == (2, content + b" "), said
        assert path.name in said
        path.write_bytes(content)
    assert victim.read_text() == "a year of work"


@of_kind("run", "service")
def test_a_run_and_a_service_leave_each_others_checkpoints(name, inputs, tmp_path):
    out = tmp_path / "out"
    for step in (1, 2, 3):
        folder = out / "checkpoints" / f"{step:06d}"
        folder.mkdir(parents=True)
        state = {"step": step, "digest": ""} if ROWS[name].kind == "run" else {"step": step, "conditions": {}}
        (folder / "state.json").write_text(json.dumps(state))
        (folder / "weights").write_text("a week of training")
    refused(name, inputs, tmp_path, out)
    if ROWS[name].kind == "run":
        said = refused(name, inputs, tmp_path, out, "--resume")
        assert "000001: is a checkpoint of something else" in said.replace(str(out), "out")
        return
    (out / "journals").mkdir()  # of a service, into whose folder somebody has put a run's checkpoints
    assert "is a checkpoint of something else" in refused(name, inputs, tmp_path, out)
