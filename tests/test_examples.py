"""Every file in examples/ runs by itself and prints that its part was used."""

import json
import subprocess
import sys

import pytest

from forks import start_script
from repository import ROOT

EXAMPLES = ROOT / "examples"
QUICK = ("tiny_run",)
"""Those that `make test` runs; the others are slow tests."""


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[] if path.stem in QUICK else pytest.mark.slow)
        for path in sorted(EXAMPLES.glob("*.py"))
    ],
)
def test_an_example_runs_and_its_part_is_used(path, tmp_path):
    output, folder = tmp_path / "output", tmp_path / "folder"
    folder.mkdir()
    process = start_script(path, output, tmp_path / "hub", folder)
    process.join(300)
    process.kill()
    process.join()
    printed = output.read_text()
    assert process.exitcode == 0, printed
    words = path.stem.replace("_", " ")
    found = [line for line in printed.splitlines() if line.startswith((f"own {words}:", f"{words}:"))]
    assert found != [], printed
    assert list(folder.iterdir()) == [], "the example left files behind"


@pytest.mark.slow
def test_the_notebook_runs_from_its_first_cell_to_its_last(tmp_path):
    cells = json.loads((EXAMPLES / "notebook.ipynb").read_text())["cells"]
    code = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("1 reward ")
    assert "question" in ended.stdout  # the gallery
    assert (tmp_path / "runs" / "notebook" / "metrics.jsonl").read_text().count("\n") == 5
