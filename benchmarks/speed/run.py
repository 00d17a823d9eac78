"""Runs every benchmark. Candidates take turns, each in its own process; ratios compare runs that followed each other.

    python benchmarks/speed/run.py --model MODEL_FOLDER --data real_completions.parquet --vllm PYTHON --repeats 3

Without `--model` only the embedded model is measured. Without `--data` or `--vllm` the comparisons that need them are
left out, and the output says so. Writes `benchmarks/results/latest.json` and prints it as Markdown.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results" / "latest.json"
PACKAGES = ("cooper-rl", "torch", "transformers", "trl", "math-verify")


@dataclass(frozen=True)
class Candidate:
    """A benchmark script with its arguments, and the interpreter that runs it."""

    script: str
    arguments: tuple[str, ...]
    python: str = sys.executable

    def run(self, threads: int, core: str | None) -> dict[str, Any]:
        """Run it and return its result line. Raises CalledProcessError, with the output, if it fails."""
        source = os.pathsep.join(str(path) for path in HERE.parents[1].glob("packages/*/src"))
        environment = os.environ | {"OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1", "PYTHONPATH": source}
        pinned = ["taskset", "-c", core] if core else []
        command = [*pinned, self.python, self.script, *self.arguments, "--threads", str(threads)]
        done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, check=False)
        lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
        if done.returncode or not lines:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
        return json.loads(lines[-1].removeprefix("RESULT "))


@dataclass(frozen=True)
class Comparison:
    """Ours and a peer, by CPU seconds per unit of work: ours divided by theirs (below 1 is faster), or the reverse."""

    name: str
    ours: Candidate
    peer: Candidate
    faster_is_above: bool = False


def comparisons(options: argparse.Namespace) -> list[Comparison]:
    found = []
    size = ("--problems", "8", "--n", "8", "--new-tokens", "32")
    step, free = (*size, "--steps", "3"), (*size, "--steps", "8", "--lengths", "free")
    found.append(Comparison("step_vs_trl_tiny", *_pair("step.py", ("cooper", *step), ("trl", *step))))
    found.append(Comparison("step_vs_trl_tiny_free_lengths", *_pair("step.py", ("cooper", *free), ("trl", *free))))
    both = Candidate("step.py", ("cooper", *step, "--kind", "cooper"))
    found.append(Comparison("cooper_step_vs_grpo_step_tiny", both, Candidate("step.py", ("cooper", *step))))
    found.append(Comparison("scoring_vs_padded_tiny", *_pair("scoring.py", ("cooper",), ("padded",))))
    found.append(_sampler("sampler_vs_generate_tiny", "embedded", "64", "48", "equal", "generate"))
    if options.data:
        data = ("--data", str(options.data.resolve()), "--rows", "12000")
        pair = _pair("verdicts.py", ("cooper", *data), ("raw", *data))
        found.append(Comparison("verdicts_vs_raw", *pair, faster_is_above=True))
    if options.model:
        model = ("--model", str(options.model.resolve()))
        step = ("--problems", "2", "--n", "8", "--new-tokens", "48", "--steps", "1", *model)
        pair = _pair("step.py", ("cooper", *step), ("trl", *step))
        found.append(Comparison("step_vs_trl_smollm2", *pair))
        for batch, lengths in product(("8", "32", "128"), ("equal", "unequal")):
            for peer in ("generate", "vllm"):
                if peer == "generate" or options.vllm:
                    name = f"sampler_vs_{peer}_{batch}_{lengths}"
                    found.append(_sampler(name, model[1], batch, "64", lengths, peer, options.vllm))
        if options.vllm:
            name, waves = "sampler_vs_vllm_512_by_128_unequal", ("--at-once", "128")
            found.append(_sampler(name, model[1], "512", "64", "unequal", "vllm", options.vllm, waves))
            for lengths in ("equal", "unequal"):
                name, more = f"sampler_vs_vllm_128_{lengths}_bfloat16", ("--dtype", "bfloat16")
                found.append(_sampler(name, model[1], "128", "64", lengths, "vllm", options.vllm, more))
    return found


def _pair(script: str, ours: tuple[str, ...], peer: tuple[str, ...]) -> tuple[Candidate, Candidate]:
    return Candidate(script, ours), Candidate(script, peer)


def _sampler(
    name: str,
    model: str,
    batch: str,
    tokens: str,
    lengths: str,
    peer: str,
    vllm: str | None = None,
    more: tuple[str, ...] = (),
) -> Comparison:
    work = ("--model", model, "--batch", batch, "--new-tokens", tokens, "--lengths", lengths, *more)
    python = vllm if peer == "vllm" and vllm else sys.executable
    return Comparison(
        name, Candidate("sampler.py", ("cooper", *work)), Candidate("sampler.py", (peer, *work), python), True
    )


def limits(options: argparse.Namespace) -> dict[str, Any]:
    """GFLOP/s of one core for matrix products of the model's shapes, for training and for decoding."""
    found = {}
    for model in ["embedded", *([str(options.model.resolve())] if options.model else [])]:
        name = "tiny" if model == "embedded" else "smollm2"
        for engine, rows in (("gemm", "2048"), ("training", "2048"), ("gemm", "128"), ("decoding", "128")):
            candidate = Candidate("limits.py", (engine, "--model", model, "--rows", rows))
            result = candidate.run(options.threads, options.core)
            found[f"{engine}_{rows}_{name}"] = {k: v for k, v in result.items() if "gflops" in k}
    return found


def precision(options: argparse.Namespace) -> dict[str, Any]:
    """How many times faster bfloat16 is than float32, ours and plain autocast, and by how much the results differ."""
    found = {}
    for work in ("training", "scoring", "sampling"):
        model = ("--model", str(options.model.resolve()), "--repeats", str(options.repeats))
        result = Candidate("precision.py", (work, *model)).run(options.threads, options.core)
        found[work] = {key: value for key, value in result.items() if key.split("_")[0] in ("autocast", "bfloat16")}
    return found


STABLE = {
    "step_vs_trl_tiny": "step_vs_trl_tiny",
    "step_vs_trl_smollm2": "step_vs_trl_smollm2",
    "sampler_vs_generate": "sampler_vs_generate_128_equal",
    "sampler_vs_vllm": "sampler_vs_vllm_128_equal",
}
"""Stable name -> the comparison it stands for."""


def headline(found: dict[str, Any]) -> dict[str, dict[str, float]]:
    """The figures that are followed over time, each with min, median and max; those not measured are left out."""
    comparisons = found["comparisons"]
    ratios = {name: comparisons[of]["ratio"] for name, of in STABLE.items() if of in comparisons}
    if "verdicts_vs_raw" in comparisons:
        seconds = comparisons["verdicts_vs_raw"]["ours_cpu"]
        rates = {low: 1 / seconds[high] for low, high in (("min", "max"), ("median", "median"), ("max", "min"))}
        ratios["verdicts_per_second"] = rates
    for work, result in found.get("precision", {}).items():
        ratios[f"bfloat16_{work}_times_faster"] = {one: result[f"bfloat16_{one}"] for one in ("min", "median", "max")}
    return ratios | found.get("shares", {})


def shares(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """The share of stage 2 in a step of the demo, and training against the best matrix product of the same shapes."""
    kinds = ("cooper", "cooper_light", "paper")
    stage2 = {f"stage2_share_{kind}": Candidate("stage2.py", (kind,)) for kind in kinds}
    model = str(options.model.resolve()) if options.model else "embedded"
    gemm, training = [], []
    for _ in range(options.repeats):
        for engine, rates in (("gemm", gemm), ("training", training)):
            candidate = Candidate("limits.py", (engine, "--model", model, "--rows", "2048"))
            result = candidate.run(options.threads, options.core)
            rates.append(max(result[key] for key in ("gflops", "gflops_torch", "gflops_onednn") if key in result))
    measured = {name: [] for name in stage2}
    for _ in range(options.repeats):
        for name, candidate in stage2.items():
            measured[name].append(candidate.run(options.threads, options.core)["share"])
    measured["gemm_share_training"] = [ours / best for ours, best in zip(training, gemm, strict=True)]
    return {name: summary(values) for name, values in measured.items()}


def summary(values: list[float]) -> dict[str, float]:
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def machine() -> dict[str, Any]:
    cpu = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.processor(),
    )
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return {"cpu": cpu, "cores": os.cpu_count(), "python": platform.python_version(), "versions": versions}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="folder of a real model; our figures use SmolLM2-135M-Instruct")
    parser.add_argument("--data", type=Path, help="labelled completions for the rule verdicts")
    parser.add_argument("--vllm", help="a Python interpreter that has vLLM for the CPU")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--core", help="pin every candidate to this core")
    parser.add_argument("--only", help="only comparisons whose name contains this, or limits, shares or precision")
    options = parser.parse_args()

    found: dict[str, Any] = {"machine": machine(), "threads": options.threads, "comparisons": {}}
    if RESULTS.exists() and options.only:
        found = json.loads(RESULTS.read_text())
    for comparison in comparisons(options):
        if options.only and options.only not in comparison.name:
            continue
        ratios, ours, peer = [], [], []
        for _ in range(options.repeats):
            ours.append(comparison.ours.run(options.threads, options.core))
            peer.append(comparison.peer.run(options.threads, options.core))
            ratio = (ours[-1]["cpu"] / ours[-1]["units"]) / (peer[-1]["cpu"] / peer[-1]["units"])
            ratios.append(1 / ratio if comparison.faster_is_above else ratio)
        found["comparisons"][comparison.name] = {
            "ratio": summary(ratios),
            **{
                f"{who}_{measure}": summary([result[measure] / (result["units"] if per else 1) for result in results])
                for who, results in (("ours", ours), ("peer", peer))
                for measure, per in (("cpu", True), ("wall", True), ("peak_mib", False))
            },
        }
        line = found["comparisons"][comparison.name]["ratio"]
        print(f"{comparison.name}: {line['median']:.3f} ({line['min']:.3f} to {line['max']:.3f})", flush=True)
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(found, indent=2) + "\n")
    for name, measure in {"limits": limits, "shares": shares, "precision": precision}.items():
        if options.only in (None, name) and (options.model or name != "precision"):
            found[name] = measure(options)
            print(json.dumps({name: found[name]}, indent=2), flush=True)
    found["headline"] = headline(found)
    RESULTS.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found["headline"], indent=2))
    print(f"results: {RESULTS}")


if __name__ == "__main__":
    main()
