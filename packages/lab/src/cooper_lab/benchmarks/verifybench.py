"""VerifyBench and VerifyBench-Hard by their names on the hub, with what is published about the first."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from cooper_audit.statistics import Estimate
from cooper_lab.benchmarks.bench import BenchResult
from cooper_rl import InputError

HUB = "ZJU-REAL/VerifyBench"
FILES = {HUB: "verify_bench.jsonl", f"{HUB}-Hard": "verify_bench_hard.jsonl"}
"""The names that `bench` takes in place of a file, and the file of the data set `HUB` that each stands for."""

PUBLISHED: tuple[tuple[str, float, str], ...] = (
    ("VerifyRM-1.5B", 89.42, "reward_model"),
    ("Math-Verify", 79.93, "rule"),
    ("xVerify-0.5B-I", 70.68, ""),
    ("Qwen3-1.7B as a judge", 81.10, ""),
    ("Qwen3-4B as a judge", 92.00, "judge"),
    ("Qwen3-8B as a judge", 94.00, ""),
    ("Qwen3-32B as a judge", 95.80, ""),
)
"""Accuracy in per cent on VerifyBench (arXiv 2508.05613 and 2505.15801), and the kind of our method beside it."""


def file_of(path: Path) -> Path:
    """A file, or the file that a name of `FILES` stands for, downloaded once. Raises InputError without the hub."""
    name = FILES.get(path.as_posix())
    if name is None or path.exists():
        return path
    from huggingface_hub import hf_hub_download  # noqa: PLC0415 - slow to import
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError  # noqa: PLC0415

    try:
        return Path(hf_hub_download(HUB, name, repo_type="dataset"))
    except (OSError, HfHubHTTPError, LocalEntryNotFoundError) as error:
        raise InputError(
            f"{path}: cannot be read from the hub ({error}); download {name} from "
            f"https://huggingface.co/datasets/{HUB} and name the file"
        ) from error


def beside_published(data: Sequence[Path], result: BenchResult, kinds: Mapping[str, str]) -> list[list[str]]:
    """Rows of (method, published accuracy, ours), in per cent, where `data` is VerifyBench alone; else none.

    `kinds` has the kind of each of our methods: `rule`, `reward_model` or `judge`. What is not measured is empty.
    """
    if [path.as_posix() for path in data] != [HUB] and [path.name for path in data] != [FILES[HUB]]:
        return []
    rows = []
    for name, published, kind in PUBLISHED:
        of_kind = [
            f"{method} {_percent(result.methods[method].overall['accuracy'])}"
            for method in kinds
            if kinds[method] == kind
        ]
        rows.append([name, f"{published:.2f}", "; ".join(of_kind)])
    return rows


def _percent(estimate: Estimate) -> str:
    return f"{100 * estimate.mean:.2f} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"
