"""One grader, in a process of its own: verdicts on the cases that come as JSON lines, or what its import costs.

Only the standard library, `measure.py` and the grader are used, so that it runs in any environment (`graders.py`).
Each grader is the project's own function from the project's own file. What that file imports besides and the
environment lacks (torch, ray, a logger) is replaced by `Absent`, which no grader calls while it grades.
"""

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions, version
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.speed.measure import cpu_seconds

Grader = Callable[[str, str], "bool | str | None"]
"""Of a reference and a completion: whether the grader accepts, or a verdict; None is no opinion."""


class _AbsentType(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent

    def __call__(cls, *given: Any, **named: Any) -> Any:
        if cls is Absent:
            return given[0] if len(given) == 1 and callable(given[0]) else Absent  # a decorator leaves what it gets
        return super().__call__(*given, **named)

    def __getitem__(cls, item: Any) -> Any:
        return Absent

    def __or__(cls, other: Any) -> Any:
        return Absent

    __ror__ = __or__


class Absent(metaclass=_AbsentType):
    """Whatever a module that is not installed would have held."""


class _AbsentModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent


class _AbsentFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module below the packages of these names."""

    def __init__(self, *packages: str) -> None:
        self._packages = packages

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        above = any(name == package or name.startswith(f"{package}.") for package in self._packages)
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if above else None

    def create_module(self, spec: Any) -> ModuleType:
        return _AbsentModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def _file_of(package: str, path: str) -> Path:
    """A file of an installed package, whose own `__init__` is not run."""
    spec = importlib.util.find_spec(package)
    assert spec is not None, f"{package} is not installed"
    assert spec.origin is not None
    return Path(spec.origin).parent / path


def _module(name: str, file: Path) -> Any:
    where = [str(file.parent)] if file.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=where)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _folder(name: str, folder: Path) -> None:
    """A package of this name whose `__init__` is not run."""
    module = sys.modules[name] = ModuleType(name)
    module.__path__ = [str(folder)]


def _delimited(reference: str) -> str:
    """A formula between dollars, as Math-Verify's documentation asks for."""
    return reference if "$" in reference or "\\boxed" in reference else f"${reference}$"


def ours(options: argparse.Namespace) -> Grader:
    from cooper_verify import RuleVerifier

    return RuleVerifier().verify


def trl(options: argparse.Namespace) -> Grader:
    rewards = _file_of("trl", "rewards/accuracy_rewards.py")
    _folder("trl", rewards.parents[1])
    sys.modules["trl.import_utils"] = _AbsentModule("trl.import_utils")
    _folder("trl.rewards", rewards.parent)
    reward = _module("trl.rewards.accuracy_rewards", rewards).accuracy_reward

    def accepts(reference: str, completion: str) -> bool | None:
        (paid,) = reward([[{"content": completion}]], [_delimited(reference)])
        return None if paid is None else paid == 1.0

    return accepts


def _verl(path: str) -> Any:
    scores = _file_of("verl", "utils/reward_score")
    _folder("verl", scores.parents[1])
    _folder("verl.utils", scores.parent)
    _folder("verl.utils.reward_score", scores)
    sys.meta_path.append(_AbsentFinder("ray", "torch", "tensordict"))
    name = "verl.utils.reward_score." + path.removesuffix("/__init__.py").removesuffix(".py")
    return _module(name, scores / path)


def verl_math_verify(options: argparse.Namespace) -> Grader:
    """What `compute_score` calls in a pool of processes."""
    score = _verl("math_verify.py")._verify_in_subprocess
    return lambda reference, completion: score(f"\\boxed{{{reference}}}", completion) == 1.0


def verl_math_dapo(options: argparse.Namespace) -> Grader:
    score = _verl("math_dapo.py").compute_score
    return lambda reference, completion: bool(score(completion, reference)["acc"])


def verl_prime_math(options: argparse.Namespace) -> Grader:
    score = _verl("prime_math/__init__.py").compute_score
    return lambda reference, completion: bool(score(completion, reference)[0])


def reward_doctor(options: argparse.Namespace) -> Grader:
    from reward_doctor.reference import robust_match  # pyright: ignore[reportMissingImports]

    return lambda reference, completion: robust_match(completion, reference) == 1.0


def open_instruct(options: argparse.Namespace) -> Grader:
    folder = options.open_instruct / "open_instruct"
    _folder("open_instruct", folder)
    absent = ["context_window_checker", "logger_utils", "if_functions", "IFEvalG", "judge_utils", "rubrics", "utils"]
    sys.meta_path.insert(0, _AbsentFinder(*(f"open_instruct.{name}" for name in absent), "requests"))
    verifier = _module("open_instruct.ground_truth_utils", folder / "ground_truth_utils.py").MathVerifier()
    return lambda reference, completion: verifier([], completion, reference).score == 1.0


def lighteval(options: argparse.Namespace) -> Grader:
    metrics = _file_of("lighteval", "metrics")
    for name, folder in (("lighteval", metrics.parent), ("lighteval.metrics", metrics)):
        _folder(name, folder)
    absent = [
        "metrics.sample_preparator",
        "metrics.metrics_sample",
        "metrics.metrics_corpus",
        "metrics.normalizations",
        "models",
    ]
    sys.meta_path.insert(0, _AbsentFinder(*(f"lighteval.{name}" for name in absent), "lighteval.tasks.requests"))
    dynamic = _module("lighteval.metrics.dynamic_metrics", metrics / "dynamic_metrics.py")
    metric = dynamic.MultilingualExtractiveMatchMetric(
        gold_extraction_target=(dynamic.ExprExtractionConfig(), dynamic.LatexExtractionConfig()),
        pred_extraction_target=(
            dynamic.ExprExtractionConfig(),
            dynamic.LatexExtractionConfig(boxed_match_priority=0),
        ),
        precision=5,
    )

    class Row:
        """What the metric asks of a document and of a model's response."""

        def __init__(self, reference: str, completion: str) -> None:
            self.choices = self.golds = [reference]
            self.final_text = [completion]
            self.specific: Any = None

        def get_golds(self) -> list[str]:
            return self.golds

    def accepts(reference: str, completion: str) -> bool:
        row = Row(_delimited(reference), completion)
        return metric.compute(row, row) == 1.0

    return accepts


GRADERS: dict[str, Callable[[argparse.Namespace], Grader]] = {
    "ours": ours,
    "trl": trl,
    "verl_math_verify": verl_math_verify,
    "lighteval": lighteval,
    "verl_math_dapo": verl_math_dapo,
    "verl_prime_math": verl_prime_math,
    "reward_doctor": reward_doctor,
    "open_instruct": open_instruct,
}


def grade(grader: Grader, cpu_s: float) -> None:
    """Answer the cases of standard input. One that takes more CPU seconds than `cpu_s` ends the process."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, 10 * cpu_s)
    _graded(grader, "1", "Answer: \\boxed{x^2}")
    print(json.dumps({"ready": True}), file=_REPLIES, flush=True)
    for line in sys.stdin:
        case = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, cpu_s)
        before = cpu_seconds()
        reply = _graded(grader, case["reference"], case["completion"])
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps({**reply, "cpu_s": cpu_seconds() - before}), file=_REPLIES, flush=True)


def _graded(grader: Grader, reference: str, completion: str) -> dict[str, Any]:
    try:
        return {"verdict": grader(reference, completion)}
    except BaseException as error:  # noqa: BLE001 - a grader that raises has refused, and is counted
        return {"verdict": False, "raised": type(error).__name__}


def import_cost(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Modules and CPU seconds until the first verdict can be asked for, and the size of what had to be installed."""
    before, start = set(sys.modules), time.process_time()
    grader = GRADERS[name](options)
    seconds, modules = time.process_time() - start, [module for module in sys.modules if module not in before]
    _graded(grader, "x+1", "Answer: \\boxed{1+x}")
    if name == "ours":  # its processes import these
        import cooper_verify.rules.verdicts.symbolic  # noqa: F401
    owners = packages_distributions()
    names = {owner for module in sys.modules for owner in owners.get(module.partition(".")[0], [])}
    names -= {"pip", "setuptools"}
    size = sum(_size(owner) for owner in names)
    return {"modules": len(modules), "import_cpu_s": seconds, "mib": size / 2**20, "versions": _versions(sorted(names))}


def _size(name: str) -> int:
    """Bytes of a distribution's files; of an editable one, of its source."""
    package = distribution(name)
    files = [Path(str(package.locate_file(file))) for file in package.files or []]
    if any("__editable__" in file.name or file.name == "direct_url.json" for file in files):
        spec = importlib.util.find_spec(name.replace("-", "_"))
        assert spec is not None
        assert spec.origin is not None
        files = [*Path(spec.origin).parent.rglob("*.py")]
    return sum(file.stat().st_size for file in files if file.is_file())


def _versions(names: list[str]) -> dict[str, str]:
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def corpus() -> list[dict[str, Any]]:
    """reward-doctor's cases: those whose verdict it does not call contested."""
    from reward_doctor import corpus as doctor  # pyright: ignore[reportMissingImports]

    return [
        {"reference": case.reference, "completion": case.completion, "right": case.expect} for case in doctor.load()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["grade", "import", "corpus"])
    parser.add_argument("--grader", choices=[*GRADERS], default="ours")
    parser.add_argument("--cpu-s", type=float, default=20.0)
    parser.add_argument("--open-instruct", type=Path, help="a checkout of the project, which is no package")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if options.task == "corpus":
        print(json.dumps(corpus()), file=_REPLIES)
    elif options.task == "import":
        print(json.dumps(import_cost(options.grader, options)), file=_REPLIES)
    else:
        grade(GRADERS[options.grader](options), options.cpu_s)


if __name__ == "__main__":
    _REPLIES = os.fdopen(os.dup(1), "w")  # graders print
    os.dup2(2, 1)
    main()
