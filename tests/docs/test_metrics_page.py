"""docs/metrics.md explains every metric that runs write, and no other."""

import json
import re
from typing import Any

import pytest

from cooper_audit.run.metric_names import metric_names
from cooper_base.config.base import merge
from cooper_base.config.user_functions import load_object
from cooper_base.errors import InputError
from cooper_lab.arithmetic.arms import ASSETS
from cooper_rl import CooperTrainer, build_config
from cooper_rl.policy.advantages import ADVANTAGES
from cooper_rl.reward.base import REWARDS, SHAPINGS
from cooper_rl.reward.pairs.base import PAIRS
from repository import ROOT

PAGE = ROOT / "docs" / "metrics.md"
TIES = ("shelf.ties:TwoRightPairs", "shelf.ties:IrrelevantQuestionPairs")
LABELLED = str(ASSETS / "labelled.jsonl")
MODEL = {"model": str(ASSETS / "reward_model"), "max_input_tokens": 160}
PROBLEMS = {
    "source": "arithmetic",
    "limit": 24,
    "gold": "cooper_lab.arithmetic.problems:gold",
    "prompt": {"template": "{question}\n"},
}
TINY: dict[str, Any] = {
    "threads": 1,
    "steps": 1,
    "problems_per_step": 4,
    "policy": {"model": str(ASSETS / "policy")},
    "problems": PROBLEMS,
    "test_problems": {**PROBLEMS, "split": "test", "limit": 4},
    "more_test_problems": {"two": {**PROBLEMS, "split": "test", "limit": 4}},
    "evaluation": {"every": 1, "k": 1},
    "rollout": {"n": 4, "max_tokens": 48},
    "cooptimization": {
        "assistant": {"kind": "corrupter", "function": "cooper_lab.arithmetic.corruption:corrupt"},
        "pairs": [{"kind": "assistant"}, {"kind": "on_policy"}, {"kind": "swapped_reference"}],
        "before_policy": 0.0,
    },
    "checkpoint": {"every": 0},
}
RUNS: dict[str, dict[str, Any]] = {
    "hybrid": {
        "kind": "cooper_model",
        "reward_model": MODEL,
        "rewards": [
            {"kind": "hybrid"},
            {"kind": "function", "function": "docs.test_metrics_page:ends", "weight": 0.1},
            {"kind": "rule:exact", "weight": 0.1},
        ],
        "rollout": {"resample": 1},
        "algorithm": {
            "kl": {"kind": "k1", "where": "reward"},
            "advantages": {"kind": "shelf.outliers:WithoutOutliers", "max_z": 1.5},
            "loss": {"kind": "cispo"},
        },
        "cooptimization": {
            "pairs": [{"kind": kind} for kind in ("assistant", "on_policy", "swapped_reference", *TIES)],
            "skip_gradient_share": 0.1,
            "replay": {"pairs_per_step": 2, "labelled": LABELLED},
        },
    },
    "shaped": {
        "kind": "cooper_model",
        "reward_model": MODEL,
        "problems": {"source": "PROBLEMS", "rule_field": "rule", "gold": None},
        "shaping": [{"kind": "par", "references": "accepted"}, {"kind": "gate"}],
        "cooptimization": {"pairs": [{"kind": "on_policy"}], "assistant": None, "skip_gradient_share": 0.1},
    },
    "silent": {
        "reward_model": MODEL,
        "rule": {"kind": "partial", "only": "cooper_lab.arena.silence:is_drawn"},
        "cooptimization": {"positives": ["rollout"], "pairs": [{"kind": "on_policy"}], "assistant": None},
    },
    "other_ways": {
        "kind": "cooper_model",
        "reward_model": MODEL,
        "rewards": [{"kind": "appeals"}],
        "shaping": [{"kind": "fpo"}],
        "cooptimization": {
            "pairs": [{"kind": "on_policy"}, {"kind": "best_worst"}, {"kind": "iterated"}],
            "assistant": None,
        },
    },
    "labelled": {
        "kind": "cooper_model",
        "reward_model": MODEL,
        "cooptimization": {"pairs": [{"kind": "outcomes"}], "assistant": None, "skip_gradient_share": 0.1},
    },
    "environment": {
        "kind": "rule",
        "rollout": {"environment": "policy.environments.worlds:Adder", "max_turns": 2},
        "evaluation": {"every": 0},
    },
    "several_models": {
        "kind": "cooper_model",
        "reward_model": MODEL,
        "rewards": [
            {"kind": "shelf.ensemble:Ensemble", "others": [MODEL]},
            {"kind": "earned", "weight": 0.5},
            {"kind": "rule_then_model", "weight": 0.5},
        ],
        "shaping": [
            {"kind": "shelf.constraints:Constraints", "constraints": [{"reward": {"kind": "rule"}, "at": 0.5}]}
        ],
        "monitor": {"labelled": LABELLED, "rows": 24, "every": 1, "attacked_problems": 2},
        "algorithm": {
            "recompute_old_logprobs": True,
            "loss": {"kind": "ppo_clip", "truncated_importance_sampling": 2.0, "drift": "product"},
        },
    },
}
"""Settings over those of the tests' tiny run. Together they switch on everything that writes a metric."""

ELSEWHERE = (
    "part/",
    "judge/",
    "assistant/repair_",
    "pairs/repaired",
    "pairs/peer_",
    "pairs/lexicographic_",
    "process/",
    "sinks/",
    "gpu_memory/",
)
"""Metrics of parts that need a server, a tracker, a GPU, further models or own classes; their own tests read them."""


def ends(problem, completion) -> float:
    return float(completion.stopped)


def explained() -> dict[str, str]:
    """The name of every metric on the page, with `<…>` for what differs, and the rest of its row."""
    rows = re.findall(r"^\| (`[^|]+) \|(.*)\|$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: rest for names, rest in rows for name in re.findall(r"`([^`]+)`", names)}


def pattern(name: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"<\w+>", r"[\\w-]+", name))


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> set[str]:
    """The names of all metrics of the runs, which use the embedded models: they get some problems right."""
    folder, found = tmp_path_factory.mktemp("runs"), set()
    problems = folder / "problems.jsonl"
    rows = [{"question": f"{n} + {n} = ?", "answer": f"{2 * n}", "rule": ("maths", "exact")[n % 2]} for n in range(8)]
    problems.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, settings in RUNS.items():
        given = merge(TINY, {"name": name, "output_dir": str(folder), **settings})
        given["problems"]["source"] = given["problems"]["source"].replace("PROBLEMS", str(problems))
        with CooperTrainer.from_config(build_config(given)) as trainer:
            trainer.fit(on_step=lambda step, metrics: None)
        lines = (folder / name / "metrics.jsonl").read_text().splitlines()
        found |= {key for line in lines for key in json.loads(line)}
    return found


def test_every_metric_of_a_run_is_on_the_page(written):
    patterns = [pattern(name) for name in explained()]
    assert [name for name in sorted(written) if not any(one.fullmatch(name) for one in patterns)] == []


def test_nothing_is_on_the_page_that_no_run_writes(written):
    names = [name for name in explained() if not name.startswith(ELSEWHERE)]
    assert [name for name in names if not any(pattern(name).fullmatch(one) for one in written)] == []


def test_a_runs_configuration_is_checked_against_the_names_on_the_page():
    composed = {"step", "<area>/<metric>_after", "part/<area>/<metric>"}
    on_the_page = explained().keys() - composed - {"test/<name>/<metric>"}
    parts = [record for kinds in (ADVANTAGES, PAIRS, REWARDS, SHAPINGS) for record in kinds.records.values()]
    designs = (ROOT / "packages/lab/src/cooper_lab/designs/README.md").read_text(encoding="utf-8")
    parts += [load_object(kind, "class") for kind in re.findall(r"shelf\.\w+:\w+", designs)]
    of_parts = {name for record in parts for name in record.metric_names}
    assert {*metric_names(["<name>"], [])} | of_parts == on_the_page


def test_a_part_of_research_names_its_own_metrics():
    """A run without an ensemble records no disagreement, and a rule on it would never fire."""
    watch = [{"metric": "ensemble/disagreement", "above": 1}]
    run = merge(TINY, {"reward_model": MODEL, "watch": watch, "problems": {"source": "arithmetic"}})
    build_config(run | {"rewards": [{"kind": "shelf.ensemble:Ensemble", "others": [MODEL]}]})
    with pytest.raises(InputError, match="no run with these settings records a metric 'ensemble/disagreement'"):
        build_config(run)


def test_every_row_gives_meaning_unit_and_origin():
    cells = {name: [cell.strip() for cell in rest.split("|")] for name, rest in explained().items()}
    assert [name for name, row in cells.items() if len(row) != 3 or not all(row)] == []
