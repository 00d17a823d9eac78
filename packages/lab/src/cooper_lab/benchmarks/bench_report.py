"""The results of a bench on disk: an HTML page, Markdown tables, and JSON for programs."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from cooper_audit.attack.wrong_answers import ATTACKS
from cooper_audit.statistics import Estimate
from cooper_base.files.owned_file import write_owned
from cooper_lab.benchmarks import COMMAND
from cooper_lab.benchmarks.bench import MEASURES, BenchResult, Calibration, MethodResult
from cooper_lab.figures import figure_svg

HTML, MARKDOWN, JSON = "bench.html", "bench.md", "bench.json"


def write_bench(result: BenchResult, output_dir: Path) -> None:
    """Write `bench.html`, `bench.md` and `bench.json`, and `calibration-<method>.svg` for methods with probabilities.

    Model text in the page is escaped.
    """
    right = sum(row.labelled.label for row in result.rows) / len(result.rows)
    about = {"rows": len(result.rows), "right_share": right, "attacked_problems": result.attacked_problems}
    methods = {name: asdict(method) for name, method in result.methods.items()}
    for name, method in result.methods.items():
        del methods[name]["mistakes"]
        methods[name]["mean_attack_rate"] = mean_attack_rate(method) if method.attacks else None
    write_owned(output_dir / JSON, json.dumps({**about, "methods": methods}, indent=2), COMMAND)
    write_owned(output_dir / MARKDOWN, markdown(result), COMMAND)
    charts = {name: calibration_svg(m.calibration) for name, m in result.methods.items() if m.calibration}
    for name, chart in charts.items():
        write_owned(output_dir / f"calibration-{name}.svg", chart, COMMAND)
    loader = PackageLoader("cooper_lab.benchmarks")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    page = environment.get_template("bench.html.j2").render(
        **about,
        methods=result.methods,
        unheard=unheard(result),
        measures=MEASURES,
        breakdowns=breakdowns(result),
        attacks=attack_table(result.methods),
        mean_attack={name: mean_attack_rate(method) for name, method in result.methods.items()},
        charts=charts,
        cell=cell,
    )
    write_owned(output_dir / HTML, page, COMMAND)


def markdown(result: BenchResult) -> str:
    """The overall metrics, the accuracy by category and model, and the attack table, as Markdown."""
    names = list(result.methods)
    parts = [f"{len(result.rows)} completions; 95 % bootstrap intervals over problems in brackets.", ""]
    rows = [[name, *(cell(result.methods[name].overall.get(measure)) for measure in MEASURES)] for name in names]
    parts += _table(["method", *(measure.replace("_", " ") for measure in MEASURES)], rows)
    parts += ["", *unheard(result)]
    for title, breakdown in breakdowns(result).items():
        rows = [[value, str(count), *cells] for value, count, cells in breakdown]
        parts += ["", f"Accuracy by {title}:", "", *_table([title, "rows", *names], rows)]
    for name, method in result.methods.items():
        if method.judged:
            verdicts = list(method.judged["invalid"])
            rows = [
                [verdict_name, *(str(counts[verdict]) for verdict in verdicts)]
                for verdict_name, counts in method.judged.items()
            ]
            parts += ["", f"Verdicts of {name} by judgement:", "", *_table(["judgement", *verdicts], rows)]
    if result.attacked_problems:
        table = attack_table(result.methods)
        rows = [[name, *("" if rate is None else f"{rate:.3f}" for rate in rates)] for name, rates in table]
        means = ["mean over attacks", *(f"{mean_attack_rate(result.methods[name]):.3f}" for name in names)]
        heading = f"Share accepted for each attack pattern, {result.attacked_problems} problems, right answers last:"
        parts += ["", heading, "", *_table(["pattern", *names], [*rows, means])]
    for name, method in result.methods.items():
        if (c := method.calibration) is not None:
            parts += ["", f"{name}: expected calibration error {c.ece:.4f}, ROC-AUC {c.roc_auc:.4f}."]
    return "\n".join(parts) + "\n"


def unheard(result: BenchResult) -> list[str]:
    """A warning for every method with missing opinions."""
    return [
        f"{name}: {method.unheard} opinions are missing because its server failed, and count as rejections here. "
        "Run the same command again to ask for them."
        for name, method in result.methods.items()
        if method.unheard
    ]


def breakdowns(result: BenchResult) -> dict[str, list[tuple[str, int, list[str]]]]:
    """(value, rows, accuracy of every method) for each category and each model."""
    tables_by_title = {}
    for title, field in (("category", "category"), ("completion model", "model")):
        counts = sorted(Counter(getattr(row, field) for row in result.rows).items())
        tables = [getattr(method, f"by_{field}") for method in result.methods.values()]
        tables_by_title[title] = [
            (name, count, [cell(by[name].get("accuracy")) for by in tables]) for name, count in counts
        ]
    return tables_by_title


def attack_table(methods: Mapping[str, MethodResult]) -> list[tuple[str, list[float | None]]]:
    """(pattern, share accepted by each method). The controls come last and are marked as right."""
    patterns = list(dict.fromkeys(pattern for method in methods.values() for pattern in method.attacks))
    return [
        (pattern if pattern in ATTACKS else f"{pattern} (right)", [m.attacks.get(pattern) for m in methods.values()])
        for pattern in patterns
    ]


def mean_attack_rate(method: MethodResult) -> float:
    """Mean share of attack completions accepted. Every pattern has the same weight. NaN without attacks."""
    rates = [rate for pattern, rate in method.attacks.items() if pattern in ATTACKS]
    return sum(rates) / len(rates) if rates else float("nan")


def cell(estimate: Estimate | None) -> str:
    """`0.912 [0.890, 0.933]`, or a dash if there is no estimate."""
    return "–" if estimate is None else f"{estimate.mean:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def calibration_svg(calibration: Calibration) -> Markup:
    """A chart of the share of right completions against their probability, with the number in each bin below."""
    figure = Figure(figsize=(4.2, 4.6), layout="constrained")
    top, bottom = figure.subplots(2, 1, height_ratios=[4, 1], sharex=True)
    bins = calibration.bins
    top.plot([0, 1], [0, 1], color="#9aa4b2", linewidth=1)
    top.plot([b.probability for b in bins], [b.right for b in bins], marker="o", markersize=4)
    top.set_ylabel("share right", fontsize=8)
    bottom.bar([b.probability for b in bins], [b.count for b in bins], width=0.06)
    bottom.set_xlabel("probability of being right", fontsize=8)
    bottom.set_ylabel("rows", fontsize=8)
    for axes in (top, bottom):
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    return figure_svg(figure)


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(text.replace("|", "\\|").replace("\n", " ") for text in cells) + " |"

    return [line(header), "|" + "---|" * len(header), *map(line, rows)]
