"""The packages run no code that comes with data: no pickle, no eval, no shell, no foreign model code."""

import ast
from collections.abc import Iterator

import pytest

from repository import ROOT, SOURCES

FILES = [path for source in SOURCES for path in sorted(source.rglob("*.py"))]
OWN_JOBS = "packages/lab/src/cooper_lab/arithmetic/pool.py"
"""Sends jobs to processes that it starts itself as pickles, and reads none from a file or a network."""
PICKLING = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
EVALUATING = {"eval", "exec", "compile", "os.system", "os.popen", "yaml.load", "yaml.full_load", "yaml.unsafe_load"}


def faults(source: str) -> Iterator[str]:
    """The calls and imports in a module's source that could run someone else's code."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            yield from (f"import {name}" for name in names if name.split(".")[0] in PICKLING)
        if isinstance(node, ast.Call):
            name, given = ast.unparse(node.func), {k.arg: ast.unparse(k.value) for k in node.keywords}
            if name in EVALUATING:
                yield name
            if name == "torch.load" and given.get("weights_only") != "True":
                yield "torch.load without weights_only=True"
            if name.startswith("np.load") and given.get("allow_pickle") == "True":
                yield "np.load with pickle"
            if given.get("shell", "False") != "False":
                yield f"{name} with a shell"
            if given.get("trust_remote_code", "False") != "False":
                yield f"{name} with foreign code"
        if isinstance(node, ast.Dict):
            settings = {ast.unparse(k): ast.unparse(v) for k, v in zip(node.keys, node.values, strict=True) if k}
            if settings.get("'trust_remote_code'", "False") != "False":
                yield "trust_remote_code in a dictionary"


def test_the_packages_have_no_way_to_run_foreign_code():
    assert len(FILES) > 250
    found = {
        str(path.relative_to(ROOT)): list(faults(path.read_text(encoding="utf-8")))
        for path in FILES
        if path != ROOT / OWN_JOBS
    }
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from dill import loads",
        "eval(text)",
        "yaml.load(text, Loader=Loader)",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "subprocess.run(text, shell=True)",
        "AutoModel.from_pretrained(path, trust_remote_code=True)",
        "options = {'trust_remote_code': True}",
    ],
)
def test_each_of_them_would_be_found(source: str):
    assert len(list(faults(source))) == 1
