"""How much of the code a reader opens and a completion passes: `make map`, or `python benchmarks/code_map.py SOURCE`.

One step of a small run in the embedded world is traced. SOURCE is a checkout to measure, by default this one; run it
with the PYTHONPATH of that checkout. How each figure is counted:

- algorithm: files that run code in `cooper_step` and belong to no room of the plumbing (PLUMBING).
- completion: files that run code in `CooperTrainer.step`, from the prompt to the updated weights and the record.
- pair: files that run code in `CooperReward.update`.
- configuration enters: functions that are handed a `RunConfig` before the first step. It climbs where code of a lower
  room calls code of a higher one meanwhile (the layers of tests/test_imports.py).
- rooms: folders and files directly under the package. Two rooms form a pair if each imports the other at run time.
"""

import importlib.util
import logging
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import yaml

PLUMBING = ("engines", "clients", "data", "config", "persist", "observe", "rules", "clock.py")
SOURCE = Path(next((one for one in sys.argv[1:] if not one.startswith("-")), Path(__file__).parents[1])).resolve()
PACKAGE = SOURCE / "src" / "cooper_rl"


class Trace:
    """The package's functions that run while it is active, by file, and the calls between them."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.configured: set[tuple[str, str]] = set()
        self.calls: set[tuple[str, str]] = set()

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
        above = frame.f_back
        while above is not None and _file(above) is None:
            above = above.f_back
        if above is not None:
            self.calls.add((_file(above) or "", name))


def main() -> None:
    """Trace one step and print the table."""
    from cooper_rl import CooperTrainer, build_config

    logging.disable(logging.WARNING)
    layers = _layers()
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
    climbs = {(low, high) for low, high in loading.calls if layers.rank(low) < layers.rank(high)}
    rows = [
        ("files and lines of cooper_rl", *_size(PACKAGE)),
        ("files and lines of cooper_lab", *_size(SOURCE / "src" / "cooper_lab")),
        ("algorithm: files and lines", len(algorithm), _lines(algorithm)),
        ("completion: files and lines", len(whole), _lines(whole)),
        ("pair: files and lines", len(steps[2].files), _lines(steps[2].files)),
        ("configuration enters, climbs", len(loading.configured), len(climbs)),
        ("rooms and pairs that import each other", *layers.rooms()),
        ("entries of the layer table, exceptions", *layers.table()),
        ("words and pages of docs", *_docs()),
    ]
    sys.stdout.write("\n".join(f"{name:42}{first:8,}{second:10,}" for name, first, second in rows) + "\n")
    if "-v" in sys.argv:
        for title, names in (("algorithm", algorithm), ("pair", steps[2].files), ("completion", whole)):
            sys.stdout.write(f"\n{title}\n  " + "\n  ".join(sorted(names)) + "\n")
        sys.stdout.write("\nclimbs\n  " + "\n  ".join(f"{low} -> {high}" for low, high in sorted(climbs)) + "\n")


class Layers:
    """The table of layers of a checkout, read from its own test."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def rank(self, file: str) -> tuple[int, int]:
        """The layer of a file, counted from the bottom, and its place inside the layer."""
        name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        return self._module.RANK.get(self._module.entry_of(name), (-1, 0))

    def rooms(self) -> tuple[int, int]:
        """Rooms, and pairs of them that import each other."""
        arrows = {(_room(one), _room(other)) for one, other in self._module.arrows()}
        pairs = {frozenset(arrow) for arrow in arrows if arrow[0] != arrow[1] and arrow[::-1] in arrows}
        return len({room for arrow in arrows for room in arrow}), len(pairs)

    def table(self) -> tuple[int, int]:
        """Entries and exceptions."""
        return len(self._module.RANK), len(getattr(self._module, "KNOWN", ()))


def _layers() -> Layers:
    spec = importlib.util.spec_from_file_location("layers", SOURCE / "tests" / "test_imports.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Layers(module)


def _settings(folder: str) -> dict[str, Any]:
    """The embedded world's settings, with a step of four problems."""
    home = next((SOURCE / "src").rglob("arithmetic.yaml"))
    models = next((SOURCE / "src").rglob("arithmetic/**/manifest.json")).parent
    settings = yaml.safe_load(home.read_text(encoding="utf-8"))
    parts = {part: {**settings.get(part, {}), "model": str(models / part)} for part in ("policy", "reward_model")}
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
    path = frame.f_code.co_filename
    return path.removeprefix(f"{PACKAGE}/") if path.startswith(f"{PACKAGE}/") else None


def _room(module: str) -> str:
    return module.split(".")[0]


def _lines(names: set[str]) -> int:
    return sum(len((PACKAGE / name).read_text(encoding="utf-8").splitlines()) for name in names)


def _size(folder: Path) -> tuple[int, int]:
    files = list(folder.rglob("*.py"))
    return len(files), sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)


def _docs() -> tuple[int, int]:
    pages = list((SOURCE / "docs").rglob("*.md"))
    return sum(len(page.read_text(encoding="utf-8").split()) for page in pages), len(pages)


if __name__ == "__main__":
    main()
