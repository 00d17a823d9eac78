"""How much of the code a reader opens and a completion passes: `make map`; with `-v` it lists the files.

One step of a small run in the embedded world is traced. How each figure is counted:

- algorithm: files that run code in `cooper_step` and belong to no room of the plumbing (PLUMBING).
- completion: files that run code in `CooperTrainer.step`, from the prompt to the updated weights and the record.
- pair: files that run code in `CooperReward.update`.
- configuration enters: functions that are handed a `RunConfig` before the first step.
- rooms and floors of a package: as tests/test_imports.py counts them.
"""

import logging
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
SOURCES = [next((package / "src").iterdir()) for package in sorted((ROOT / "packages").iterdir())]
PACKAGES = f"{ROOT / 'packages'}/"
PLUMBING = (
    "cooper_base/",
    "cooper_verify/",  # what a rule says of an answer
    "cooper_audit/",
    "cooper_lab/",  # the world in which the step is traced
    *(f"cooper_rl/{room}/" for room in ("data", "engines", "record", "run")),
)


class Trace:
    """The files of the packages that run code while it is active, and the functions that are handed a `RunConfig`."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.configured: set[tuple[str, str]] = set()

    def __enter__(self) -> "Trace":
        threading.setprofile(self._see)
        sys.setprofile(self._see)
        return self

    def __exit__(self, *failure: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _see(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or (name := _file(frame)) is None:
            return
        self.files.add(name)
        if frame.f_code.co_name.startswith("<"):  # a comprehension is no place of its own
            return
        if any(type(value).__name__ == "RunConfig" for value in list(frame.f_locals.values())):
            self.configured.add((name, frame.f_code.co_name))


def main() -> None:
    """Trace one step and print the table."""
    from cooper_rl import CooperTrainer, build_config

    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        with Trace() as loading:
            trainer = CooperTrainer.from_config(build_config(_settings(folder)))
        steps = Trace(), Trace(), Trace()
        update = trainer.parts.reward.update
        with trainer:
            import cooper_rl.run.trainer as module

            _traced(module, "cooper_step", steps[0])
            trainer.parts.reward.update = _within(steps[2], update)
            with steps[1]:
                trainer.step()
    whole = steps[0].files | steps[1].files | steps[2].files
    inside = steps[0].files | steps[2].files
    algorithm = {name for name in inside if not name.startswith(PLUMBING)}
    rows = [
        *((f"{source.name}: files and lines", *_size(source)) for source in SOURCES),
        *((f"{source.name}: rooms and floors", *_rooms(source.name)) for source in SOURCES),
        ("algorithm: files and lines", len(algorithm), _lines(algorithm)),
        ("completion: files and lines", len(whole), _lines(whole)),
        ("pair: files and lines", len(steps[2].files), _lines(steps[2].files)),
        ("configuration enters: functions, files", len(loading.configured), len({f for f, _ in loading.configured})),
        ("words and pages of docs", *_docs()),
    ]
    sys.stdout.write("\n".join(f"{name:42}{first:8,}{second:10,}" for name, first, second in rows) + "\n")
    if "-v" in sys.argv:
        for title, names in (("algorithm", algorithm), ("pair", steps[2].files), ("completion", whole)):
            sys.stdout.write(f"\n{title}\n  " + "\n  ".join(sorted(names)) + "\n")


def _rooms(package: str) -> tuple[int, int]:
    """Rooms, and how many of them stand on one another."""
    sys.path.insert(0, str(ROOT / "tests"))
    from test_imports import floors, rooms_below

    below = rooms_below(package)
    return len(below), max(floors(below).values())


def _settings(folder: str) -> dict[str, Any]:
    """The embedded world's settings, with a step of four problems."""
    from cooper_lab.arithmetic.arms import ASSETS

    settings = yaml.safe_load((ASSETS.parent / "arithmetic.yaml").read_text(encoding="utf-8"))
    parts = {part: {**settings.get(part, {}), "model": str(ASSETS / part)} for part in ("policy", "reward_model")}
    return {**settings, **parts, "kind": "cooper", "name": "map", "output_dir": folder, "problems_per_step": 4}


def _within(trace: Trace, function: Callable[..., Any]) -> Callable[..., Any]:
    def traced(*args: Any, **kwargs: Any) -> Any:
        before = sys.getprofile()
        with trace:
            found = function(*args, **kwargs)
        sys.setprofile(before)
        return found

    return traced


def _traced(module: ModuleType, name: str, trace: Trace) -> None:
    setattr(module, name, _within(trace, getattr(module, name)))


def _file(frame: FrameType) -> str | None:
    """The file of a frame, from its package's name on; None for code of others."""
    return frame.f_code.co_filename.partition(PACKAGES)[2].partition("/src/")[2] or None


def _lines(names: set[str]) -> int:
    folders = {source.name: source.parent for source in SOURCES}
    return sum(len((folders[name.split("/")[0]] / name).read_text(encoding="utf-8").splitlines()) for name in names)


def _size(folder: Path) -> tuple[int, int]:
    files = list(folder.rglob("*.py"))
    return len(files), sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)


def _docs() -> tuple[int, int]:
    pages = list((ROOT / "docs").rglob("*.md"))
    return sum(len(page.read_text(encoding="utf-8").split()) for page in pages), len(pages)


if __name__ == "__main__":
    main()
