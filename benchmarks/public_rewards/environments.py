"""What is installed for each package, and what could not be tried."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

MATHS = ("math-verify[antlr4_13_2]", "pylatexenc", "numpy")
MATHS_11 = ("math-verify", "antlr4-python3-runtime==4.11.*", "pylatexenc", "numpy")
PACKAGES: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "reward-doctor": (["reward-doctor"], []),
    "skyrl-gym": (["skyrl-gym"], []),
    "crfm-helm": (["crfm-helm"], ["nltk", "numpy"]),
    "dspy": (["dspy"], []),
    "adalflow": (["adalflow"], []),
    "evals": (["evals"], []),
    "deepeval": (["deepeval"], ["typing_extensions"]),
    "lighteval": (["lighteval"], ["numpy"]),
    "autoevals": ([], ["autoevals"]),
    "openevals": (["openevals"], ["typing_extensions"]),
    "ragas": (["ragas"], ["rapidfuzz"]),
    "opik": (["opik"], ["rapidfuzz"]),
    "py-openjudge": (["py-openjudge"], [*MATHS, "levenshtein", "pydantic"]),
    "mlx-lm-lora": (["mlx-lm-lora"], []),
    "alignrl": (["alignrl"], []),
    "forge-rl": (["forge-rl"], []),
    "gensyn-genrl": (["gensyn-genrl"], []),
    "google-tunix": (["google-tunix"], ["sympy", "pylatexenc", "antlr4-python3-runtime==4.11.*", "numpy"]),
    "oumi": (["oumi"], []),
    "eval-protocol": (["eval-protocol"], []),
    "inspect-ai": ([], ["inspect-ai", "latex2sympy2-extended==1.11.0", "antlr4-python3-runtime==4.11.*"]),
    "opencompass": (["opencompass"], ["numpy"]),
    "lm-eval": (["lm-eval"], [*MATHS_11, "scipy"]),
    "verl": (["verl", "mathruler"], [*MATHS, "tqdm"]),
    "mathruler": (["mathruler"], ["sympy", "pylatexenc", "tqdm"]),
    "openrlhf": (["openrlhf"], MATHS),
    "tinker-cookbook": (["tinker-cookbook"], MATHS),
    "trl": (["trl"], MATHS),
    "ms-swift": (["ms-swift"], MATHS_11),
    "math-verify": ([], MATHS),
    "atroposlib": (["atroposlib"], [*MATHS, "pyyaml"]),
    "trinity-rft": (["trinity-rft", "verl"], [*MATHS, "regex", "word2number"]),
    "areal": (["areal"], MATHS),
    "gem-llm": (["gem-llm"], MATHS),
    "retrain": (["retrain"], MATHS),
    "aligntune": (["aligntune"], ["sympy", "pylatexenc", "antlr4-python3-runtime==4.11.*", "numpy"]),
    "verifiers": (["verifiers==0.1.9"], MATHS),
    "rm-gallery": (["rm-gallery"], MATHS),
    "evalscope": (["evalscope"], [*MATHS, "pydantic", "word2number"]),
    "reasoning-gym": ([], ["reasoning-gym"]),
}
"""What is installed for each package: without what it needs, and with it. None of them needs torch."""
NOT_TRIED = {
    "verl:math_verify": "its worker processes import verl, which needs torch",
    "lm-eval:minerva_math": "takes seconds for an answer: was not through after ten minutes",
    "lm-eval:leaderboard_math": "takes seconds for an answer, as minerva_math does, whose code it has",
    "nemo-gym": "its verifiers are servers, and no version of it installs on Python 3.11",
    "verifiers 0.4": "ships judges and no rubrics of its own; 0.1.9 is in the table",
    "textpolicy": "no version of it installs here",
    "llm-rewards": "its rewards are written in torch",
    "llm-reasoners": "ships searches and no reward of an answer",
    "ms-swift:math": "calls OpenCompass's evaluator of MATH, which is in the table",
    "py-openjudge:word_overlap": "splits words with jieba, which its environment does not have",
    "pydantic-evals": "its Equals and Contains take the reference as a setting: opik's are the same checks",
    "arize-phoenix-evals": "its exact match compares two texts with ==, as six in the table do",
}


def install(package: str, folder: Path) -> str | None:
    """Installs the package into a folder; what pip said if it cannot be had."""
    alone, whole = PACKAGES[package]
    python = getattr(sys, "_base_executable", sys.executable)
    done = folder / ".installed"
    if done.exists():
        return None
    for names, options in ((whole, []), (alone, ["--no-deps"])):
        if names:
            command = [python, "-m", "pip", "install", "-q", "--no-compile", "--target", str(folder), *options, *names]
            finished = subprocess.run(command, capture_output=True, text=True, check=False)
            if finished.returncode:
                return finished.stderr.strip().splitlines()[-1][:300]
    done.touch()
    return None


def version_of(package: str, folder: Path) -> str:
    """The version that is installed."""
    name = package.replace("-", "_")
    found = [*folder.glob(f"{name}-*.dist-info")] or [*folder.glob(f"{package}-*.dist-info")]
    return found[0].name.removesuffix(".dist-info").rpartition("-")[2] if found else "?"
