"""The packages run no code that comes with data: no pickle, no eval, no shell, no foreign model code."""

import ast
from collections.abc import Iterator

import pytest

from repository import ROOT, SOURCES, tree_of

pytestmark = pytest.mark.xdist_group("sources")

FILES = [path for source in SOURCES for path in sorted(source.rglob("*.py"))]
OWN_JOBS = "packages/lab/src/cooper_lab/arithmetic/pool.py"
"""Sends jobs to processes that it starts itself as pickles, and reads none from a file or a network."""
PICKLING = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
EVALUATING = {"eval", "exec", "compile", "os.system", "os.popen", "yaml.load", "yaml.full_load", "yaml.unsafe_load"}

SAYING = {"weights_only", "allow_pickle", "shell", "trust_remote_code"}
"""Arguments that decide it."""


def faults(tree: ast.Module) -> Iterator[str]:
    """The calls and imports in a module that could run someone else's code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            yield from (f"import {name}" for name in names if name.split(".")[0] in PICKLING)
        if isinstance(node, ast.Call):
            name, given = dotted(node.func), {k.arg: ast.unparse(k.value) for k in node.keywords if k.arg in SAYING}
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
            for key, value in zip(node.keys, node.values, strict=True):
                if getattr(key, "value", None) == "trust_remote_code" and ast.unparse(value) != "False":
                    yield "trust_remote_code in a dictionary"


def dotted(function: ast.expr) -> str:
    """`a.b` for the function of a call `a.b()`; empty before the first dot if that is no name."""
    if isinstance(function, ast.Attribute):
        return f"{dotted(function.value)}.{function.attr}"
    return function.id if isinstance(function, ast.Name) else ""


def test_the_packages_have_no_way_to_run_foreign_code():
    assert len(FILES) > 250
    found = {str(path.relative_to(ROOT)): list(faults(tree_of(path))) for path in FILES if path != ROOT / OWN_JOBS}
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
    assert len(list(faults(ast.parse(source)))) == 1
