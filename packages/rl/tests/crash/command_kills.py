"""`python -m crash.command_kills KILLS SEED [COMMAND]`: kills commands that train a reward model and begin anew.

`cooper verifyrm train` and `cooper attack --repair` are killed KILLS times each with SIGKILL, at random times and
before random changes of what they write, and called again with the same words unless the output has its name already.
Every file that they leave is compared with those of a call that was left alone, and nothing else may lie beside it.
"""

import json
import sys
import tempfile
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random

from cooper_lab.arithmetic.world import ASSETS
from crash.process import kill, start_command

REWARD_MODEL = str(ASSETS / "reward_model")
COMMANDS = ("verifyrm train", "attack --repair")
SOUND_OR_NOT = (0, 3, 4, 5)
"""Exit codes of an attack that has ended by itself."""


def words_of(command: str, folder: Path) -> list[str]:
    """The command's words for the output `folder/out`."""
    out = str(folder / "out")
    if command == "verifyrm train":
        few = ["batch_size=16", "epochs=1", "evaluate_every=4", "warmup_steps=1", "threads=1", "learning_rate=1e-4"]
        return [*command.split(), str(folder / "rows.jsonl"), "--model", REWARD_MODEL, "--out", out, *few]
    return ["attack", REWARD_MODEL, "--limit", "4", "--repair", out, "--repair-steps", "2"]


def killed(command: str, folder: Path, seconds: float, changes: int, random: Random) -> BaseProcess:
    """A call that has ended, usually because it was killed."""
    log = folder / "log"
    die_at = random.randint(1, changes) if random.random() < 0.5 else 0
    process = start_command(words_of(command, folder), folder / "out", log, die_at)
    if not die_at:
        process.join(random.uniform(0, seconds))
        kill(process, log)
    process.join()
    return process


def ended(command: str, folder: Path) -> None:
    process = start_command(words_of(command, folder), folder / "out", folder / "log")
    process.join()
    if process.exitcode not in SOUND_OR_NOT:
        raise RuntimeError((folder / "log").read_text())


def written(folder: Path) -> dict[str, object]:
    """What lies at the output and beside it, but for timings, the folder's own path, and a lock that a killed call has
    left behind a whole output."""
    files = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}
    ours = {name: path for name, path in files.items() if not name.startswith(("log", "rows", ".out.lock"))}
    return {name: plain(path, folder) for name, path in ours.items()}


def plain(path: Path, folder: Path) -> object:
    """The content of a file; of JSON, without seconds."""
    content = path.read_bytes().replace(str(folder).encode(), b"")
    if path.suffix != ".json":
        return content
    value = json.loads(content)
    return {k: v for k, v in value.items() if "seconds" not in k} if isinstance(value, dict) else value


def rows() -> str:
    values = [
        {"question": f"What is {n} + 3?", "reference_answer": str(n + 3), "completion": f"{n} + 3 = {given}."}
        | {"label": int(given == n + 3)}
        for n in range(24)
        for given in (n + 3, n + 4)
    ]
    return "".join(json.dumps(row) + "\n" for row in values)


def compared(command: str, kills: int, random: Random) -> int:
    """How many of the `kills` came out equal; prints each."""
    with tempfile.TemporaryDirectory() as base:
        folders = Path(base) / "undisturbed", Path(base) / "killed"
        for folder in folders:
            folder.mkdir()
            (folder / "rows.jsonl").write_text(rows())
        begin = time.monotonic()
        ended(command, folders[0])
        seconds = time.monotonic() - begin
        changes = int((folders[0] / "log.changes").read_text())
        expected = written(folders[0])
        print(f"{command}: {seconds:.1f} s, {changes} changes, {len(expected)} files", flush=True)
        equal = done = 0
        while done < kills:
            process = killed(command, folders[1], seconds, changes, random)
            if process.exitcode == -9:
                done += 1
                if command == "attack --repair" or not (folders[1] / "out").exists():  # the other one is whole
                    ended(command, folders[1])
                found = written(folders[1])
                differing = sorted(name for name in expected | found if expected.get(name) != found.get(name))
                equal += not differing
                print(f"kill {done}: {'; '.join(differing) or 'equal'}", flush=True)
            for path in sorted(folders[1].glob("**/*"), reverse=True):
                if path.name != "rows.jsonl":
                    path.rmdir() if path.is_dir() else path.unlink()
        return equal


def main(kills: str, seed: str, *commands: str) -> None:
    random = Random(int(seed))
    equal = {command: compared(command, int(kills), random) for command in commands or COMMANDS}
    print("; ".join(f"{command}: kills {kills}, equal {count}" for command, count in equal.items()))
    sys.exit(any(count < int(kills) for count in equal.values()))


if __name__ == "__main__":
    main(*sys.argv[1:])
