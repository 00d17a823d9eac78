"""A study: its models, arms, sets of problems and settings, at the paper's scale or tiny."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from benchmarks.paper.published import LABELS, ROWS

from cooper_base.cli.console import record_from
from cooper_base.config.checking import with_overrides
from cooper_lab.arithmetic.world import ASSETS
from cooper_rl import InputError, RunConfig, SamplingParams, VerifyRMConfig, build_config, merge

MODELS = {"qwen2.5-1.5b": "Qwen/Qwen2.5-1.5B-Instruct", "llama-3.2-1b": "meta-llama/Llama-3.2-1B-Instruct"}
VERIFYRM_BASE = "Qwen/Qwen2.5-Math-1.5B-Instruct"
ARMS = tuple(ROWS)
NEED_VERIFYRM = ("static", "paper", "cooper")

FILES = {
    "train": ("gsm8k_train.jsonl", "gsm8k"),
    "gsm8k": ("gsm8k_test.jsonl", "gsm8k"),
    "svamp": ("svamp.json", "svamp"),
    "math500": ("math500.jsonl", "math500"),
    "olympiadbench": ("olympiadbench_en_text.jsonl", "olympiadbench"),
    "math_odyssey": ("math_odyssey.jsonl", "math_odyssey"),
}
"""Files of `--data`, by what they are for, and how they are read."""

VERIFYRM: dict[str, Any] = {
    "model": VERIFYRM_BASE,
    "learning_rate": 2e-5,
    "weight_decay": 0.01,
    "epochs": 3.0,
    "batch_size": 64,
    "max_input_tokens": 2048,
    "autocast": "bfloat16",
    "gradient_checkpointing": True,
    "tokens_per_microbatch": 16384,
    "evaluate_every": 200,
    "patience": None,
    # The paper's reward model has neither of these; ours has, by default (docs/verifyrm.md).
    "robustness": 0.0,
    "balance_classes": False,
    "calibrate": False,
}
MAX_CHARACTERS = {"full": 8000, "tiny": 700}
"""Longer rows are left out of VerifyRM's training, as in the released script (full)."""

TINY: dict[str, Any] = {
    "engine": {"kind": "local"},
    "steps": 6,
    "problems_per_step": 16,
    "threads": 1,
    "policy": {
        "model": str(ASSETS / "policy"),
        "learning_rate": 5e-4,
        "warmup_steps": 0,
        "autocast": "off",
        "gradient_checkpointing": False,
    },
    "reward_model": {
        "learning_rate": 3e-4,
        "max_input_tokens": 160,
        "autocast": "off",
        "gradient_checkpointing": False,
    },
    "rollout": {"n": 8, "max_tokens": 32},
    "cooptimization": {"assistant": {"kind": "corrupter", "function": "benchmarks.paper.study:wrong_number"}},
    "evaluation": {"every": 3, "k": 2},
}
"""Over the protocol: the embedded world's policy of 0.7 M parameters, for minutes on one core."""
TINY_VERIFYRM: dict[str, Any] = {
    "model": str(ASSETS / "reward_model"),  # trained further: from the policy it would take thousands of updates
    "learning_rate": 3e-4,
    "epochs": 1.0,
    "batch_size": 32,
    "max_input_tokens": 160,
    "autocast": "off",
    "gradient_checkpointing": False,
    "evaluate_every": 20,
    "threads": 1,
}
TINY_ROWS = 400
"""Most rows that the tiny VerifyRM is trained on."""
TINY_CONTEXT = 2048
"""Characters of a real problem and its answer that the tiny model is given a context for; its own is 256."""
PLAIN = {"template": "{question}\n"}


@dataclass(frozen=True)
class Study:
    """One model with some arms. `folder` holds all results."""

    model: str
    arms: tuple[str, ...]
    folder: Path
    scale: str = "full"
    """`full` or `tiny`."""
    data: Path | None = None
    """Folder of problems in files (`FILES`), instead of the hub or, at the tiny scale, the embedded world."""
    labelled: Path | None = None
    """VerifyRM's training rows, instead of the public ones."""
    verifyrm: str | None = None
    """An existing VerifyRM to use."""
    overrides: tuple[str, ...] = ()
    """Settings of every run: key=value."""

    def __post_init__(self) -> None:
        for name, given, allowed in (("--model", [self.model], MODELS), ("--arms", self.arms, ARMS)):
            if unknown := [value for value in given if value not in allowed]:
                raise InputError(f"{name}: {unknown[0]!r} is none of {', '.join(allowed)}")
        if self.data is not None:
            missing = [name for name, _ in FILES.values() if not (self.data / name).is_file()]
            if missing:
                files = ", ".join(missing)
                raise InputError(f"--data {self.data}: has no {files}; benchmarks/paper/README.md says where they are")

    @property
    def trained(self) -> tuple[str, ...]:
        """The arms that are trained."""
        return tuple(arm for arm in self.arms if arm != "base")

    @property
    def needs_verifyrm(self) -> bool:
        """Whether VerifyRM has to be trained first."""
        return self.verifyrm is None and any(arm in NEED_VERIFYRM for arm in self.arms)

    @property
    def verifyrm_folder(self) -> str:
        """The folder or name of VerifyRM, which may not exist yet."""
        return self.verifyrm or str(self.folder / "verifyrm")

    def settings(self, arm: str) -> dict[str, Any]:
        """The settings of an arm's run. It evaluates itself on MATH500 alone, for the curve; see `test_sets`."""
        given = merge(protocol(self.model), ARM_SETTINGS.get(arm, {}))
        if arm == "cooper":  # our default in all but the assistant
            given["cooptimization"] = {"assistant": given["cooptimization"]["assistant"]}
        given = merge(given, {"name": arm, "output_dir": str(self.folder / "runs")})
        given["reward_model"]["model"] = self.verifyrm_folder
        given = merge(given, {"evaluation": {"every": 20, "k": 2}} if self.scale == "full" else TINY)
        if self.scale == "tiny" and self.data is not None:
            given["policy"]["model"] = str(self.folder / "models" / "tiny")
            given["reward_model"]["max_input_tokens"] = 800
            given["rollout"]["max_tokens"] = 48
        given["problems"] = self._problems("train", given["problems"])
        sets = {"math500": given.pop("test_problems"), **given.pop("more_test_problems")}
        given["test_problems"] = self._problems("math500", sets["math500"])
        return with_overrides(given, self.overrides)

    def config(self, arm: str) -> RunConfig:
        """The checked settings of an arm. Raises InputError."""
        return build_config(self.settings(arm))

    def test_sets(self) -> dict[str, dict[str, Any]]:
        """The five sets that every arm is measured on at its end, by name, in the paper's order."""
        given = protocol(self.model)
        sets = {"math500": given["test_problems"], **given["more_test_problems"]}
        return {name: self._problems(name, sets[name]) for name in LABELS}

    @property
    def k(self) -> int:
        """Samples a problem in that measurement."""
        return 8 if self.scale == "full" else 2

    def sampling(self) -> SamplingParams:
        """How that measurement samples: as the paper says, and at most so many tokens."""
        tokens = 2048 if self.scale == "full" else (32 if self.data is None else 48)
        return SamplingParams(temperature=0.7, top_p=0.95, max_tokens=tokens)

    def verifyrm_config(self, settings: tuple[str, ...] = ()) -> VerifyRMConfig:
        """How VerifyRM is trained; `settings` are key=value."""
        values = VERIFYRM if self.scale == "full" else merge(VERIFYRM, TINY_VERIFYRM)
        if self.scale == "tiny" and self.data is not None:
            values = values | {"model": str(self.folder / "models" / "tiny"), "max_input_tokens": 800}
        given = {name: value for name, value in values.items() if value is not None}
        return record_from(VerifyRMConfig, given, ["patience=null", *settings])

    def _problems(self, name: str, of_the_hub: Mapping[str, Any]) -> dict[str, Any]:
        if self.data is not None:
            file, read_as = FILES[name]
            settings: dict[str, Any] = {"source": str(self.data / file), "format": read_as}
            few = {"limit": 64 if name == "train" else 4, "prompt": PLAIN | {"max_prompt_tokens": TINY_CONTEXT - 64}}
            return settings | few if self.scale == "tiny" else settings
        if self.scale == "full":
            return dict(of_the_hub)
        split = {"limit": 512} if name == "train" else {"limit": 16, "split": "test", "seed": list(LABELS).index(name)}
        return {"source": "arithmetic", "prompt": PLAIN, **split}


AS_PUBLISHED: dict[str, Any] = {"min_spread": 0.0, "kl": {"clamp": 10.0}}
"""What `kind: paper` sets of the algorithm, for the paper's other arms."""
ARM_SETTINGS: dict[str, dict[str, Any]] = {
    "rule": {"kind": "rule", "algorithm": AS_PUBLISHED},
    "static": {"kind": "static", "algorithm": AS_PUBLISHED},
    "paper": {},
    "cooper": {"kind": "cooper"},
}
"""Over the protocol, which is that of `paper`."""


def protocol(model: str) -> dict[str, Any]:
    """The settings of the paper's own arm with one of the `MODELS`: those of `configs/MODEL-paper.yaml`."""
    given = yaml.safe_load((Path(__file__).parent / "protocol.yaml").read_text(encoding="utf-8"))
    return merge(given, {"name": f"{model}-paper", "policy": {"model": MODELS[model]}})


def wrong_number(problem: Any, completion_text: str, attempt: int, seed: int) -> str:
    """A wrong solution for the tiny scale: the completion, with another number in the place of its last one."""
    head, digits, tail = _last_number(completion_text)
    return f"{head}{int(digits) + attempt + 1}{tail}"


def _last_number(text: str) -> tuple[str, str, str]:
    end = (
        max((place for place, character in enumerate(text) if character.isascii() and character.isdigit()), default=-1)
        + 1
    )
    start = end
    while start and text[start - 1].isascii() and text[start - 1].isdigit():
        start -= 1
    return (text[:start], text[start:end], text[end:]) if end else (f"{text} ", "0", "")
