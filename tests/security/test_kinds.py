"""Every member of a kind has its bound. Walks the code, or a registry, so that a new member without one is found."""

import ast
import csv
import gzip
import json
import sqlite3
import zipfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from cooper_audit.rollouts import files
from cooper_base.cli.main import commands
from cooper_base.data import readers
from cooper_base.data.readers import DataRow, read_file
from cooper_base.errors import InputError
from cooper_rl.record.trackers import SINKS, TrackerConfig
from repository import SOURCES
from repository import parsed as tree_of

pytestmark = pytest.mark.xdist_group("sources")

MODULES = {
    str(path.relative_to(source.parent)): path.read_text(encoding="utf-8")
    for source in SOURCES
    for path in sorted(source.rglob("*.py"))
}
"""The text of each module by its path in its package."""


def faulty(fault: Callable[[str], Iterable[str]], apart: Iterable[str] = ()) -> dict[str, list[str]]:
    """The modules with a fault, but for those that are `apart`."""
    assert len(MODULES) > 250
    assert set(apart) <= MODULES.keys(), "a module that is gone needs no exception"
    faults = {name: [*fault(text)] for name, text in MODULES.items() if name not in set(apart)}
    return {name: of_module for name, of_module in faults.items() if of_module}


@cache
def calls(tree: ast.AST) -> list[tuple[str, ast.Call]]:
    """Each call with its name, such as `shutil.rmtree`."""
    return [(_name(node.func), node) for node in ast.walk(tree) if isinstance(node, ast.Call)]


def _name(function: ast.expr) -> str:
    """The source of an expression. `ast.unparse` takes much longer, so it writes what is no name alone."""
    if isinstance(function, ast.Attribute):
        return f"{_name(function.value)}.{function.attr}"
    return function.id if isinstance(function, ast.Name) else ast.unparse(function)


# Every client has a total time.
OPENING = {"socket.create_connection", "urlopen", "urllib.request.urlopen", "HTTPConnection", "HTTPSConnection"}
OPENING |= {"http.client.HTTPConnection", "http.client.HTTPSConnection", "openai.OpenAI"}
SYNCHRONOUS = (
    "requests.get",
    "requests.post",
    "requests.request",
    "requests.Session",
    "aiohttp.",
    "httpx.get",
    "httpx.post",
    "httpx.put",
    "httpx.request",
    "httpx.stream",
)
VERBS = {"get", "post", "put", "patch", "delete", "request", "send"}


def unbounded_clients(text: str) -> Iterator[str]:
    """Requests whose whole time nobody limits. A timeout of httpx restarts with every part."""
    tree = tree_of(text)
    bounded = any(name == "bounded_reply" for name, _ in calls(tree))
    asynchronous = False
    for name, _ in calls(tree):
        if name in OPENING or name.startswith(SYNCHRONOUS) or name == "httpx.Client":
            yield name
        if name in ("httpx.AsyncClient", "openai.AsyncOpenAI", "openai.DefaultAsyncHttpxClient"):
            asynchronous = True
            if not bounded:
                yield f"{name} without bounded_reply"
    for node in ast.walk(tree) if asynchronous else ():
        called = node.value if isinstance(node, ast.Await) else None
        if isinstance(called, ast.Call) and isinstance(called.func, ast.Attribute) and called.func.attr in VERBS:
            yield f"await {ast.unparse(called.func)}"


def test_every_client_has_a_total_time():
    assert faulty(unbounded_clients) == {}
    assert sum("bounded_reply(" in text for text in MODULES.values()) >= 4


@pytest.mark.parametrize(
    "planted",
    [
        "import httpx\nhttpx.get(url, timeout=5)",
        "import requests\nrequests.post(url)",
        "from urllib.request import urlopen\nurlopen(url, timeout=5)",
        "import httpx\nclient = httpx.Client(timeout=5)",
        "import httpx\nclient = httpx.AsyncClient(timeout=5)",
        "async def ask():\n  await bounded_reply(x)\n  async with httpx.AsyncClient() as h:\n    await h.post('/')",
        "socket.create_connection(('a', 80), 5)",
    ],
)
def test_a_client_without_one_is_found(planted):
    assert [*unbounded_clients(planted)] != []


def test_every_tracker_is_called_in_a_thread_of_its_own():
    trackers = [kind for kind in SINKS.records.values() if issubclass(kind, TrackerConfig)]
    assert len(trackers) >= 3
    assert all(kind.may_fail for kind in trackers)


# Every rendering of a chat template is bounded.
RENDERER = "cooper_rl/data/chat_rendering.py"


def unbounded_renderings(text: str) -> Iterator[str]:
    """Templates that are rendered in this process."""
    rendering = ("render_jinja_template", "from_string", ".apply_chat_template", "_compile_jinja_template")
    yield from (name for name, _ in calls(tree_of(text)) if name.endswith(rendering))


def test_every_chat_template_is_rendered_within_limits():
    assert faulty(unbounded_renderings, apart=[RENDERER]) == {}
    assert [*unbounded_renderings(MODULES[RENDERER])] == ["render_jinja_template"]
    assert [*unbounded_renderings("tokenizer.apply_chat_template(chat, tokenize=False)")] != []
    assert [*unbounded_renderings("jinja2.Environment().from_string(text).render()")] != []


# Every reader of rows has a bound.
MOST = 2000
LONG = {"question": Random(0).randbytes(500_000).hex(), "answer": "1"}
"""A row beyond every bound that follows from `MOST`, and from the bytes that a reader takes at once. It packs badly."""


def _separated(path: Path, delimiter: str) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([LONG.keys(), LONG.values()])


def _parquet(path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra data")
    table = pytest.importorskip("pyarrow").Table.from_pylist([LONG])
    parquet.write_table(table, path)


def _zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("samples/1.json", json.dumps(LONG))


def _database(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE metrics (id INTEGER, run_name TEXT, metrics TEXT)")
        row = json.dumps(LONG | {"_type": "trackio.table"})
        connection.execute("INSERT INTO metrics VALUES (1, 'run', ?)", [row])
    connection.close()


def _zstandard(path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra data")
    with pyarrow.output_stream(str(path), compression="zstd") as file:
        file.write(json.dumps(LONG).encode() + b"\n")


HOSTILE: dict[str, Callable[[Path], Any]] = {
    ".jsonl": lambda path: path.write_text(json.dumps(LONG) + "\n"),
    ".ndjson": lambda path: path.write_text(json.dumps(LONG) + "\n"),
    ".json": lambda path: path.write_text(json.dumps([LONG])),
    ".csv": lambda path: _separated(path, ","),
    ".tsv": lambda path: _separated(path, "\t"),
    ".parquet": _parquet,
    ".eval": _zip,
    ".db": _database,
    ".gz": lambda path: path.write_bytes(gzip.compress(json.dumps(LONG).encode() + b"\n")),
    ".zst": _zstandard,
}
"""What writes a file of each suffix with one row that is too long. A new suffix needs a line here."""


def reads_too_much(read: Callable[[Path], Iterable[DataRow]], path: Path) -> bool:
    """Whether a row beyond the bound is read, from a file of the suffix that `HOSTILE` writes."""
    HOSTILE[path.suffix](path)
    try:
        return any(LONG["question"] in str(row.fields) for row in read(path))
    except InputError:
        return False


@pytest.fixture
def low(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds are low."""
    monkeypatch.setattr(readers, "LONGEST_ROW", MOST)
    monkeypatch.setattr(files, "LONGEST_LINE", MOST)


@pytest.mark.parametrize("suffix", readers.READERS)
def test_every_reader_of_problems_has_a_bound(low, tmp_path, suffix):
    assert not reads_too_much(read_file, tmp_path / f"rows{suffix}")


@pytest.mark.parametrize(
    "name",
    [
        *(f"rows{suffix}" for suffix in (*files.TEXTS, *files.TABLES, files.ZIP, files.DATABASE)),
        *(f"rows.jsonl{suffix}" for suffix in files.COMPRESSED),
    ],
)
def test_every_reader_of_rollouts_has_a_bound(low, tmp_path, name):
    assert not reads_too_much(lambda path: files.records(path, print), tmp_path / name)


def test_a_reader_without_a_bound_is_found(low, tmp_path, monkeypatch):
    def whole(path: Path, bad: Any) -> Iterator[DataRow]:
        yield from (DataRow(str(path), json.loads(line)) for line in path.read_text().splitlines())

    monkeypatch.setitem(readers.READERS, ".jsonl", whole)
    assert reads_too_much(read_file, tmp_path / "rows.jsonl")
    monkeypatch.undo()
    assert reads_too_much(read_file, tmp_path / "rows.jsonl"), "with its usual bound, the row is none too long"


# Every folder that is deleted is ours.
OURS = {
    "cooper_base/files/durable.py": "`delete` itself, and the hidden folder beside what it will be",
    "cooper_base/files/folder_lock.py": "an empty folder that the lock has made",
    "cooper_base/files/owned_folder.py": "files with a mark, and the hidden folder that is renamed once it is whole",
    "cooper_lab/arena/cache.py": "the cache's own folders, by names with the hash of what they are made from",
    "cooper_lab/arena/run_cells.py": "inside the arena's OwnedFolder",
    "cooper_lab/cli/demo.py": "inside the demo's OwnedFolder",
    "cooper_rl/record/checkpoint.py": "checkpoints with the state of this store, and hidden folders of theirs",
    "cooper_rl/run/checkpoint_content.py": "the hidden folder, and the run's own `final` and `best`",
    "cooper_rl/adapters/audit/repair.py": "the optimizer, in the hidden folder of `new_folder`",
}
"""Modules that delete folders, and whose these are."""


def deletions(text: str) -> Iterator[str]:
    deleting = ("rmtree", ".rmdir", "removedirs")
    yield from (name for name, _ in calls(tree_of(text)) if name == "delete" or name.endswith(deleting))


def test_only_folders_with_an_owner_are_deleted():
    assert faulty(deletions, apart=OURS) == {}, "say in OURS whose folder it is, or write it as an OwnedFolder"
    assert all([*deletions(MODULES[name])] for name in OURS), "a module that deletes nothing needs no line"
    assert [*deletions("import shutil\nshutil.rmtree(out, ignore_errors=True)")] == ["shutil.rmtree"]
    owners = [name for name, text in MODULES.items() if " OwnedFolder(" in text]
    assert {"cooper_lab/cli/demo.py", "cooper_lab/cli/arena.py"} <= {*owners}


# Every file is written by the room `files`, which follows no link.
ELSEWHERE = {
    "cooper_base/files/durable.py": "the one place",
    "cooper_rl/record/checkpoint.py": "renames whole checkpoints",
    "cooper_rl/engines/scale/vllm/engines.py": "a temporary folder",
    "cooper_base/cli/console.py": "opens the null device",
    "cooper_verify/rules/processes/child.py": "opens the null device",
    "cooper_verify/rules/processes/worker.py": "opens the null device",
}
OPENING_TO_WRITE = {"open", "io.open", "io.FileIO", "FileIO"}


def writes(text: str) -> Iterator[str]:
    """Calls that write a file by its name. What libraries write goes into a folder that `new_folder` or `folder_aside`
    has made."""
    for name, call in calls(tree_of(text)):
        given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
        modes = [value.value for value in given if isinstance(value, ast.Constant) and isinstance(value.value, str)]
        opens = name in OPENING_TO_WRITE or name.endswith(".open")
        to_write = opens and any(len(mode) < 4 and {*mode} & {*"wax+"} for mode in modes)
        moves = name in ("os.open", "os.replace", "os.rename", "os.truncate", "shutil.move", "shutil.copy")
        if to_write or moves or name.endswith((".write_text", ".write_bytes", ".touch")):
            yield name


def test_every_file_is_written_by_the_room_files():
    assert faulty(writes, apart=ELSEWHERE) == {}, "write it by cooper_base/files"
    assert all([*writes(MODULES[name])] for name in ELSEWHERE), "a module that writes nothing needs no line"


@pytest.mark.parametrize("planted", ["path.write_text(x)", "path.open('a+')", "open(x, mode='w')", "os.replace(a, b)"])
def test_a_file_that_is_written_elsewhere_is_found(planted):
    assert [*writes(planted)] == [planted.partition("(")[0]]


@pytest.mark.parametrize(
    "command", [["demo"], ["arena", "--design", "rule", "--hole", "none", "--seeds", "1"]], ids=lambda words: words[0]
)
def test_a_command_that_deletes_runs_leaves_a_folder_of_somebody(tmp_path, command):
    kept = tmp_path / "rule" / "notes.txt"
    kept.parent.mkdir()
    kept.write_text("a year of work")
    ended = CliRunner().invoke(commands, [*command, "--output-dir", str(tmp_path)])
    assert isinstance(ended.exception, InputError), ended.output
    assert "so none of them is overwritten" in str(ended.exception)
    assert kept.read_text() == "a year of work"


# Every cache knows the content it was made from.
HASHES = ("sha256(", "content_hash(", "file_hash(", "text_key(", "short_hash(", "digest_of(")
READING = (".read_text", ".read_bytes", ".open", "open", "read_regular", "read_fields", "json.load", "parse_yaml")


def stale_caches(text: str) -> Iterator[str]:
    """Journals in a module that hashes nothing, and cached functions that read the file which their argument names."""
    tree = tree_of(text)
    if not any(hashing in text for hashing in HASHES):
        yield from (name for name, _ in calls(tree) if name == "Journal")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.args.args and _is_cached(node):
            yield from (f"{node.name} calls {name}" for name, _ in calls(node) if name.endswith(READING))


def _is_cached(function: ast.FunctionDef) -> bool:
    names = [ast.unparse(decorator).partition("(")[0] for decorator in function.decorator_list]
    is_method = function.args.args[0].arg == "self"  # of a `cached_property`, which its object holds
    return not is_method and any(name.rpartition(".")[2] in ("cache", "lru_cache") for name in names)


def test_every_cache_knows_what_it_was_made_from():
    assert faulty(stale_caches) == {}
    assert sum("Journal(" in text for text in MODULES.values()) >= 4


@pytest.mark.parametrize(
    "planted",
    [
        "with Journal(path, {'model': name}) as journal:\n    journal.put(name, 1)",
        "@cache\ndef settings(path: Path):\n    return path.read_text()",
        "@functools.lru_cache(maxsize=None)\ndef settings(path):\n    return json.load(open(path))",
    ],
)
def test_a_cache_that_does_not_is_found(planted):
    assert [*stale_caches(planted)] != []


# Every `sys.exit` of user code is a fault: a thread would end by it without a word.
NO_USER_CODE = {
    "cooper_base/cli/ending.py": "ends the process",
    "cooper_base/files/folder_lock.py": "logs a line",
    "cooper_base/data/hub.py": "asks the hub",
    "cooper_lab/arithmetic/pool.py": "watches the parent process",
    "cooper_verify/rules/processes/child.py": "kills a process",
    "cooper_verify/graders/apart.py": "reads requests",
    "cooper_verify/clients/chat.py": "an event loop with our own coroutines",
    "cooper_base/config/user_functions.py": "an event loop, whose calls hold what they raise, as test_exits.py shows",
}
"""Modules that start threads which run no code of a user, and what these do."""


def silent_exits(text: str) -> Iterator[str]:
    """Threads in a module whose target catches no SystemExit. Executors hold it in their futures."""
    tree = tree_of(text)
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for name, call in calls(tree):
        if name.rpartition(".")[2] not in ("Thread", "Timer"):
            continue
        targets = [ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg == "target"]
        target = functions.get(targets[0].removeprefix("self.")) if targets else None
        if target is None or not _catches_exits(target, functions, {target.name}):
            yield ast.unparse(call)


def _catches_exits(function: ast.FunctionDef, functions: dict[str, ast.FunctionDef], seen: set[str]) -> bool:
    """Whether the function, or one of its module that it calls, catches SystemExit."""
    handled = [
        ast.unparse(node.type) for node in ast.walk(function) if isinstance(node, ast.ExceptHandler) and node.type
    ]
    if any(name in caught for caught in handled for name in ("SystemExit", "BaseException")):
        return True
    if any(name == "exits_are_faults" for name, _ in calls(function)):
        return True
    called = {name.removeprefix("self.") for name, _ in calls(function)} & functions.keys() - seen
    return any(_catches_exits(functions[name], functions, seen | called) for name in called)


def test_no_thread_ends_by_an_exit_of_user_code():
    assert faulty(silent_exits, apart=NO_USER_CODE) == {}
    assert all([*silent_exits(MODULES[name])] for name in NO_USER_CODE), "a module that needs no exception has one"


@pytest.mark.parametrize(
    "planted",
    [
        "def work():\n    user()\nThread(target=work, daemon=True).start()",
        "def work():\n    try:\n        user()\n    except Exception:\n        pass\nThread(target=work).start()",
        "threading.Thread(target=user.score).start()",
        "threading.Timer(5, user).start()",
    ],
)
def test_a_thread_that_does_is_found(planted):
    assert [*silent_exits(planted)] != []


# Everything that is printed passes one escape.
PRINTERS = ("print", "typer.echo", "click.echo", "typer.secho", "Console", "rich.print", "sys.stdout.write")
PRINTERS += ("sys.stderr.write", "traceback.print_exc", "traceback.print_exception")
APART = {"cooper_verify/rules/processes/child.py": "writes JSON to its parent"}


def unescaped(text: str) -> Iterator[str]:
    """Calls that print past the consoles of `cooper_base.cli`, which write control characters out."""
    yield from (name for name, _ in calls(tree_of(text)) if name in PRINTERS)


def test_everything_that_is_printed_passes_one_escape():
    assert faulty(unescaped, apart=APART) == {}, (
        "print with say, show_table, print_result or stdout() of cli/console.py"
    )
    assert [*unescaped("from rich.console import Console\nConsole().print(name)")] == ["Console"]
    assert [*unescaped("typer.echo(name)")] != []
