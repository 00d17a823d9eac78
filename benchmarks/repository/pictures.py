"""Draws every picture of a page in docs/ again: the report (also dark, and on a phone), the audit, the arena.

    cooper demo --out runs/demo
    PYTHONPATH=packages/audit/tests/rollouts python -m benchmarks.repository.pictures runs/demo

The report is of the demo's runs, the audit of its static arm as verl writes it, the arena of the cells in
`benchmarks/results/arena.json`. `docs/pictures.json` then says which templates each was drawn from, and a test says
when they have changed. It needs Chromium (or Chrome) with its chromedriver, and selenium.
"""

import argparse
import base64
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DRAWN = DOCS / "pictures.json"
REPORT = ROOT / "packages/audit/src/cooper_audit/report/page"
ARENA = ROOT / "packages/lab/src/cooper_lab/arena/templates"
PICTURES = {
    "report.png": (REPORT, 1180, 880, False),
    "report-dark.png": (REPORT, 1180, 1300, True),
    "report-phone.png": (REPORT, 390, 1300, False),
    "audit.png": (REPORT, 1180, 1600, False),
    "arena-page.png": (ARENA, 1240, 2600, False),
}
"""For each picture the templates of its page, its width and height in pixels, and whether it is dark."""


def digest_of(folder: Path) -> str:
    """Of the templates, scripts and styles in a folder."""
    parts = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix in (".j2", ".js", ".css"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in parts)).hexdigest()[:16]


def audited(run: Path, folder: Path) -> Path:
    """The page of the audit of a run, written as verl writes its rollouts."""
    from benchmarks.runs.audit_dumps import rows_of
    from dumps import WRITERS  # pyright: ignore[reportMissingImports] - beside the audit's tests

    (folder / "rollouts").mkdir()
    for step, rows in rows_of(run):
        WRITERS["verl-v1"](folder / "rollouts", step, rows)
    graders = ["--grader", "exact=rule:exact", "--grader", "numeric=rule:numeric"]
    options = ["--out", str(folder / "audit"), "--fail-on", "never", *graders]
    cooper = Path(sys.executable).with_name("cooper")
    subprocess.run([cooper, "audit", folder / "rollouts", *options], check=True)
    return folder / "audit" / "report.html"


def arena(page: Path) -> Path:
    """The arena's page of the recorded cells."""
    from cooper_lab.arena.comparison import summarise
    from cooper_lab.arena.page import write_page

    cells = json.loads((ROOT / "benchmarks/results/arena.json").read_text(encoding="utf-8"))
    write_page(page, summarise(cells) | {"missing": 0, "holes": {}}, cells, {})
    return page


def draw(names: Iterable[str], demo: Path, scratch: Path) -> None:
    """Draw these pictures, and record their templates."""
    from cooper_audit.report.report import write_report
    from cooper_lab.arithmetic.arms import ARMS
    from cooper_lab.arithmetic.picture import TITLE
    from runs.browser import browser, open_page

    arms = {demo / arm: ARMS[arm].label for arm in ARMS if (demo / arm / "final").is_dir()}
    colours = [ARMS[folder.name].colour for folder in arms]
    report = write_report(list(arms), scratch / "report.html", TITLE, labels=arms, colours=colours)
    hacked = write_report(demo / "static", scratch / "static.html", ARMS["static"].label)
    pages = {"report.png": report, "report-dark.png": hacked, "report-phone.png": report}
    drawn = json.loads(DRAWN.read_text(encoding="utf-8")) if DRAWN.exists() else {}
    for name in names:
        page = pages.get(name) or (
            audited(demo / "static", scratch) if name == "audit.png" else arena(scratch / "arena.html")
        )
        folder, width, height, dark = PICTURES[name]
        with browser(scratch / f"{name}-profile", "--hide-scrollbars") as driver:
            open_page(driver, page, width, height, dark)
            driver.execute_async_script("setTimeout(arguments[0], 1500)")  # charts are drawn once they have a width
            picture = driver.execute_cdp_cmd("Page.captureScreenshot", {})["data"]
        (DOCS / name).write_bytes(base64.b64decode(picture))
        drawn[name] = digest_of(folder)
        print(DOCS / name, flush=True)
    DRAWN.write_text(json.dumps(drawn, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("demo", type=Path, help="the folder of `cooper demo`")
    parser.add_argument("--only", nargs="+", choices=PICTURES, default=list(PICTURES))
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests"))
    with tempfile.TemporaryDirectory() as scratch:
        draw(arguments.only, arguments.demo, Path(scratch))
