"""Each package alone in an empty environment: its README's example runs, and it stays small and quick.

`pytest -m slow -n 0 --log-cli-level=INFO tests/packaging/test_wheels.py` shows sizes and times.
"""

import logging
import re

import pytest

from bare_environment import Environment
from repository import ROOT

logger = logging.getLogger(__name__)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packages")]
MOST_MB = {"base": 60, "verify": 150, "audit": 250}
"""Largest size of everything that is installed, without pip. What torch takes depends on its build."""
LONG = [pytest.param(package, marks=pytest.mark.long) for package in ("rl", "lab")]


@pytest.fixture(scope="module")
def environments(built, tmp_path_factory):
    """The environment of a package, made when it is first asked for."""
    made: dict[str, Environment] = {}

    def environment_of(package: str) -> Environment:
        if package not in made:
            made[package] = Environment(package, built, tmp_path_factory.mktemp(package))
        return made[package]

    return environment_of


def example_of(package: str) -> tuple[str, str]:
    """The last block of a package's README: its language and its text. The first one installs the package."""
    blocks = re.findall(r"```(\w+)\n(.*?)```", (ROOT / "packages" / package / "README.md").read_text(), re.DOTALL)
    (_, install), (language, example) = blocks
    folders = re.findall(r"\./(packages/\w+)", install)
    assert install.startswith("pip install")
    assert folders[-1] == f"packages/{package}"
    assert all((ROOT / folder / "pyproject.toml").exists() for folder in folders)
    return language, example


@pytest.mark.parametrize("package", ["base", "verify", "audit", *LONG])
def test_a_package_alone_runs_its_example_and_stays_small(package, environments):
    environment = environments(package)
    language, example = example_of(package)
    _, imported = environment.python(f"import cooper_{package}")
    printed, ran = environment.python(example) if language == "python" else environment.run("sh", "-ec", example)
    logger.info("cooper-%s: %.0f MB, import %.2f s, example %.2f s", package, environment.megabytes, imported, ran)
    assert printed.strip()
    assert "Traceback" not in printed
    if package in MOST_MB:
        installed = {path.name for path in environment.home.iterdir()}
        assert environment.megabytes <= MOST_MB[package]
        assert not installed & {"torch", "transformers", "openai", "matplotlib", "pandas"}


def test_a_verdict_needs_no_numpy_and_comes_at_once(environments):
    environment = environments("verify")
    loaded = "import sys, cooper_verify; cooper_verify.RuleVerifier; print('numpy' in sys.modules)"
    assert environment.python(loaded)[0] == "False\n"
    code = "from cooper_verify import RuleVerifier\nwith RuleVerifier() as rule: print(rule.verify('0.5', 'It is {}.'))"
    for answer in ("1/2", r"\\boxed{\\frac{1}{2}}"):
        verdict, seconds = environment.python(code.format(answer))
        logger.info("cooper-verify: first verdict, with the start of Python: %.2f s", seconds)
        assert verdict == "correct\n"


def test_audit_imports_all_its_modules(environments):
    environment = environments("audit")
    code = (
        "import cooper_audit, importlib, pkgutil\n"
        "for module in pkgutil.walk_packages(cooper_audit.__path__, 'cooper_audit.'):\n"
        "    if module.name != 'cooper_audit.pytest_plugin':\n"  # which pytest alone loads
        "        importlib.import_module(module.name)\n"
        "import sys; print('matplotlib' in sys.modules, 'pandas' in sys.modules)"
    )
    assert environment.python(code)[0] == "False False\n"


@pytest.mark.parametrize(
    ("package", "command", "needs"),
    [
        ("verify", "train run.yaml", "cooper-rl"),
        ("verify", "audit rollouts", "cooper-audit"),
        ("verify", "demo", "cooper-lab"),
        ("audit", "serve serve.yaml", "cooper-rl"),
        ("audit", "attack models/verifyrm --problems problems.jsonl", "cooper-rl"),
        ("audit", "attack rule --problems problems.jsonl --policy embedded --adapt 2 --out out", "cooper-rl"),
        ("audit", "audit rollouts.jsonl --retrain models/verifyrm --until 5", "cooper-rl"),
    ],
)
def test_what_another_package_has_is_refused_with_its_name(package, command, needs, environments):
    environment = environments(package)
    (environment.folder / "models" / "verifyrm").mkdir(parents=True, exist_ok=True)
    row = '{"question": "1+%d?", "answer": "%d", "step": %d, "input": "1+%d?", "output": "%d", "gts": "%d", "score": 1}'
    rows = "\n".join(row % (n, n + 1, n, n, n + 1, n + 1) for n in range(20))
    for name in ("problems.jsonl", "rollouts.jsonl"):
        (environment.folder / name).write_text(f"{rows}\n")
    printed, _ = environment.run("cooper", *command.split(), status=2)
    assert f"needs the package {needs}" in " ".join(printed.split())


def test_a_judge_without_its_libraries_names_the_extra(environments):
    environment = environments("verify")
    code = (
        "from cooper_verify.clients.chat import ChatClient, ChatConfig\n"
        "try:\n"
        "    ChatClient(ChatConfig(base_url='http://localhost:1/v1', model='judge'))\n"
        "except ImportError as error:\n"
        "    print(type(error).__name__, error)"
    )
    printed, _ = environment.python(code)
    assert printed.startswith("MissingExtraError")
    assert "the extra `judges` of cooper-verify" in printed
