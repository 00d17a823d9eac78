"""Figures on the pages are those of the committed results from which they follow."""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from statistics import mean
from typing import Any

import pytest
from benchmarks.arena.alarm_roc import alarm_report
from benchmarks.arena.arena_table import kinds_of_designs

from cooper_audit.statistics import mean_interval
from repository import ROOT

RESULTS = ROOT / "benchmarks" / "results"
ARENA, WATCH = "packages/lab/src/cooper_lab/arena/README.md", "benchmarks/runs/alarm.md"
WORLD = "packages/lab/src/cooper_lab/arithmetic/README.md"
WORD_PROBLEMS = ("gain", "loss", "bags", "share")
Runs = list[dict[str, Any]]


def runs(name: str) -> Runs:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def rows_of(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]


def alarm_phrases() -> list[tuple[str, str]]:
    every, kinds = runs("arena"), kinds_of_designs()
    learning = [run for run in every if kinds.get(run["design"]) != "no reward model learns"]
    fixed = [run for run in every if kinds.get(run["design"]) == "no reward model learns"]
    all_, co, static = map(alarm_report, (every, learning, fixed))
    own = alarm_report([run for run in learning if run["design"] != "paper"])
    now, others = all_["today"], all_["cross_validated"]
    silence = [*chain(*(runs(file.stem) for file in RESULTS.glob("silence_*.json")))]
    hushed = alarm_report([run for run in silence if run["heard"] < 1])
    silent = alarm_report(silence)
    members = all_["disagreement"]
    return [
        (ARENA, f"{all_['hacked']} of the {all_['runs']} runs are hacked"),
        (ARENA, f"the alarm finds {now['hits']} of the {all_['hacked']} and goes off in {now['false_alarms']} of "),
        (ARENA, f" of the other {all_['runs'] - all_['hacked']}. "),
        (ARENA, f"on the {static['runs']} runs without co-training its area is {static['auc']:.3f} and it finds "),
        (ARENA, f"{static['today']['hits']} of {static['hacked']}, with two false alarms"),
        (ARENA, f"on the {co['runs']} co-trained ones {co['auc']:.2f}, and {co['today']['hits']} of {co['hacked']} "),
        (ARENA, f"it is {own['auc']:.2f}, and {own['today']['hits']} of {own['hacked']} with seven false"),
        (ARENA, f"on all other holes it finds {others['hits']}, with eight false alarms"),
        (ARENA, f"It is late in {len(all_['late'])} of the {now['hits']}"),
        (ARENA, f"Of the {members['runs']} runs of ensembles {members['hacked']} are hacked"),
        (ARENA, f"its fall has an area of {members['fall']:.2f}, its rise {members['rise']:.2f}"),
        (WATCH, f"On [the arena's {all_['runs']} runs]"),
        (WATCH, f"it finds {now['hits']} of {all_['hacked']} hacked runs, with {now['false_alarms']} false alarms"),
        (WATCH, f"(area under the ROC curve {co['auc']:.2f} against {static['auc']:.3f})"),
        (WATCH, f"On the {silent['runs']} runs of the arena's [section on silent rules]"),
        (
            WATCH,
            f"it finds {silent['today']['hits']} of {silent['hacked']} hacked runs, with "
            f"{silent['today']['false_alarms']} false alarms",
        ),
        (WATCH, f"In {hushed['runs']} of these runs the rule is silent on some problems"),
        (
            WATCH,
            f"there it finds {hushed['today']['hits']} of {hushed['hacked']} hacked runs, with "
            f"{hushed['today']['false_alarms']} false alarms",
        ),
    ]


def test_phrases_about_the_alarm_have_the_saved_runs_figures():
    """In one test, because all come of one reading of the runs, which every worker would do."""
    assert [f"{name}: {phrase}" for name, phrase in alarm_phrases() if phrase not in page(name)] == []


NOT_MEASURED = "not measured"
SPEEDS = [  # in the order of the page
    "step_vs_trl_tiny",
    "step_vs_trl_tiny_free_lengths",
    "cooper_step_vs_grpo_step_tiny",
    "scoring_vs_padded_tiny",
    "sampler_vs_generate_tiny",
    "verdicts_vs_raw",
    "step_vs_trl_smollm2",
    "sampler_vs_generate_8_equal",
    "sampler_vs_vllm_8_equal",
    "sampler_vs_generate_32_equal",
    "sampler_vs_vllm_32_equal",
    "sampler_vs_generate_128_equal",
    "sampler_vs_vllm_128_equal",
    "sampler_vs_vllm_128_equal_bfloat16",
    "sampler_vs_generate_8_unequal",
    "sampler_vs_vllm_8_unequal",
    "sampler_vs_generate_32_unequal",
    "sampler_vs_vllm_32_unequal",
    "sampler_vs_generate_128_unequal",
    "sampler_vs_vllm_128_unequal",
    "sampler_vs_vllm_128_unequal_bfloat16",
    "sampler_vs_vllm_512_by_128_unequal",
]


def test_the_speeds_beside_peers_are_those_of_the_saved_benchmarks():
    _, table = page("benchmarks/speed/README.md").split("| comparison, median (min to max) |")
    rows = rows_of(table.split("\n\n")[0])[1:]
    saved = [json.loads((RESULTS / name).read_text())["comparisons"] for name in ("family_26.json", "latest.json")]
    assert [row[1:3] for row in rows] == [[cell_of(comparisons.get(name)) for comparisons in saved] for name in SPEEDS]


def cell_of(comparison: dict[str, Any] | None) -> str:
    if comparison is None:
        return NOT_MEASURED
    ratio = comparison["ratio"]
    return f"{ratio['median']:.2f} ({ratio['min']:.2f} to {ratio['max']:.2f})"


SHORT = {  # of benchmarks/speed/README.md: the names of a row, and whether it tells the inverse
    "GRPO step against TRL, embedded, 0.66 M": (["step_vs_trl_tiny"], True, 1),
    "the same, completions end by themselves, embedded": (["step_vs_trl_tiny_free_lengths"], True, 1),
    "GRPO step against TRL, SmolLM2-135M": (["step_vs_trl_smollm2"], True, 1),
    "sampler against `generate`, batch 128, SmolLM2-135M": (["sampler_vs_generate_128_equal"], False, 1),
    "sampler against vLLM, batch 8, equal / unequal lengths, SmolLM2-135M": (
        ["sampler_vs_vllm_8_equal", "sampler_vs_vllm_8_unequal"],
        False,
        2,
    ),
    "sampler against vLLM, batch 128, equal / unequal lengths, SmolLM2-135M": (
        ["sampler_vs_vllm_128_equal", "sampler_vs_vllm_128_unequal"],
        False,
        2,
    ),
    "reward scoring against padded batches, embedded": (["scoring_vs_padded_tiny"], True, 1),
    "rule verdicts against raw Math-Verify, –": (["verdicts_vs_raw"], False, 1),
}


def test_the_short_table_of_speeds_is_that_of_the_saved_benchmarks():
    _, table = page("benchmarks/speed/README.md").split("| comparison | model |")
    saved = [json.loads((RESULTS / name).read_text())["comparisons"] for name in ("family_26.json", "latest.json")]
    shown = {f"{row[0]}, {row[1]}": row[2:] for row in rows_of(table.split("\n\n")[0])[1:]}
    for label, (names, is_inverse, digits) in SHORT.items():
        for cell, comparisons in zip(shown.pop(label), saved, strict=True):
            medians = [comparisons[name]["ratio"]["median"] for name in names if name in comparisons]
            figures = " / ".join(f"{1 / value if is_inverse else value:.{digits}f}" for value in medians)
            assert cell == (figures or NOT_MEASURED), label
    assert shown == {}


def section(begin: str, end: str) -> str:
    return page(ARENA).split(begin)[1].split(end)[0]


BY_HOLE = [
    ("silence_report", "**Holes and silences", "**The default with near references"),
    ("silence_units", "**A rule that cannot read units**", "**Rules that slip**"),
    ("silence_slips", "**Rules that slip**", "```bash"),
]


@pytest.mark.parametrize(("file", "begin", "end"), BY_HOLE)
def test_gold_under_silent_rules_is_that_of_the_saved_runs(file: str, begin: str, end: str):
    head, _, *rows = rows_of(section(begin, end))
    saved = sorted(runs(file), key=lambda run: (run["seed"], run["planting"]))
    for row in rows:
        design = re.findall(r"`(\w+)`", row[0])[-1]
        for name, cell in zip(head, row, strict=True):
            if name.startswith("`") and cell != "–":
                values = [run["gold_end"] for run in saved if (run["design"], f"`{run['hole']}`") == (design, name)]
                assert cell == " ".join(f"{value:.2f}" for value in values), (design, name)


@pytest.mark.parametrize(
    ("name", "begin", "end", "arms", "shown"),
    [
        (
            *(ARENA, "**The dose without solutions**", "Gold on silent"),
            *(["`rule`", "`cooper` without solutions"], "{0:.2f} ({1:.2f} to {2:.2f})"),
        ),
        (WORLD, "## The dose", "The less the rule", ["rule", "Cooper"], "{0:.2f}"),
    ],
)
def test_the_dose_without_solutions_is_that_of_the_saved_runs(
    name: str, begin: str, end: str, arms: list[str], shown: str
):
    head, _, *rows = rows_of(page(name).split(begin)[1].split(end)[0])
    assert [row[0] for row in rows] == arms
    for row, design in zip(rows, ("rule", "cooper_unsolved"), strict=True):
        for dose, cell in zip(head[1:], row[1:], strict=True):
            values = _doses(design, dose)
            assert len(values) == 5
            assert cell == shown.format(mean(values), min(values), max(values)), (design, dose)


def _doses(design: str, dose: str) -> list[float]:
    """Gold at the end by seed. `static` does not read the rule: its runs are of one dose."""
    of = [run for run in runs("dose_unsolved") if run["design"] == design]
    at = [run for run in of if run["hole"] == f"answer_lists@heard_{dose}"] or of
    return [run["gold_end"] for run in sorted(at, key=lambda run: run["seed"])]


def test_the_pictures_doses_are_those_of_the_saved_runs():
    drawn = json.loads((ROOT / "packages/lab/src/cooper_lab/arithmetic/dose.json").read_text(encoding="utf-8"))
    for arm, doses in drawn.items():
        for dose, values in doses.items():
            saved = _doses("cooper_unsolved" if arm == "cooper" else arm, dose)
            assert values == pytest.approx(saved, abs=1e-3), (arm, dose)


DECIDES, HEADLINE = "benchmarks/real_model/decides.md", "benchmarks/real_model/headline.md"


def gold_at_the_end(arm: str, part: str = "all") -> dict[int, float]:
    """By unit, in one setting of a language model."""
    return {run["unit"]: run["gold"][part][-1] for run in runs("decides") if run["arm"] == arm}


def test_gold_of_a_language_model_is_that_of_the_saved_runs():
    head, _, *rows = rows_of(page(DECIDES).split("## Results")[1].split("\n- ")[0])
    arms = [cell.strip("`") for cell in head[2:]]
    assert set(arms) == {run["arm"] for run in runs("decides")}
    starts = {run["unit"]: {part: gold[0] for part, gold in run["gold"].items()} for run in runs("decides")}
    for label, *cells in rows:
        shown = [re.sub(r"\*|\(.*\)", "", cell).strip() for cell in cells]
        if label.startswith("mean, "):
            part = label.split()[1]
            golds = [[start[part] for start in starts.values()], *(gold_at_the_end(arm, part).values() for arm in arms)]
            assert shown == [f"{mean(values):.2f}" for values in golds], label
        else:
            unit = int(label.split(", ")[-1])
            golds = [starts[unit]["all"], *(gold_at_the_end(arm)[unit] for arm in arms)]
            assert shown == [f"{value:.2f}" for value in golds], label


@pytest.mark.parametrize(
    ("name", "phrase"),
    [
        (DECIDES, "by {0:.3f} on average (95 % interval {1:.3f} to {2:.3f}, Student's t over units)"),
        ("docs/real-model.md", "above the rule by {0:.3f} (95 % interval {1:.3f} to {2:.3f}) on all problems"),
    ],
)
def test_coopers_gain_on_a_language_model_is_that_of_the_saved_runs(name: str, phrase: str):
    ours, rule = gold_at_the_end("cooper"), gold_at_the_end("rule")
    assert phrase.format(*mean_interval([ours[unit] - rule[unit] for unit in sorted(ours)])) in page(name)


@pytest.mark.parametrize("name", [HEADLINE, "docs/real-model.md", "README.md"])
def test_the_headline_is_that_of_the_saved_runs(name):
    golds = {(run["unit"], run["arm"]): run["gold"]["all"][-1] for run in runs("headline")}
    units = sorted({unit for unit, _ in golds})
    better = max(("rule", "rule_kl"), key=lambda arm: mean(golds[unit, arm] for unit in units))
    gain = mean_interval([golds[unit, "cooper"] - golds[unit, better] for unit in units])
    phrase = "{:.3f} above the better rule (95 % interval {:.3f} to {:.3f}".format(*gain)
    assert phrase.replace("-", "−") in page(name)


def test_gold_of_the_headlines_units_is_that_of_the_saved_runs():
    saved = {(run["unit"], run["arm"]): run["gold"] for run in runs("headline")}
    shown = 0
    tables = [part.partition("\n\n")[0] for part in re.split(r"\n\n(?=\| unit \d)", page(HEADLINE))[1:]]
    for head, _, *rows in map(rows_of, tables):
        unit, arms = int(head[0].removeprefix("unit ").removesuffix(", gold")), [cell.strip("`") for cell in head[2:]]
        for label, start, *cells in rows:
            golds = [saved[unit, arm][label.split()[0]] for arm in arms]
            assert {f"{gold[0]:.3f}" for gold in golds} == {start}, (unit, label)
            assert [f"{gold[-1]:.3f}" for gold in golds] == cells, (unit, label)
            shown += len(cells)
    assert shown == 3 * len(saved)


def test_gold_of_the_headlines_further_arms_is_that_of_the_saved_runs():
    saved = {(run["unit"], run["arm"]): run["gold"] for run in runs("headline_again")}
    table = page(HEADLINE).split("## What of the further arms has run")[1].split("\n\n")[2]
    head, _, *rows = rows_of(table)
    arms = [cell.strip("`") for cell in head[3:]]
    for unit, part, start, *cells in rows:
        golds = [saved.get((int(unit), arm)) for arm in arms]
        assert {f"{gold[part][0]:.3f}" for gold in golds if gold} == {start}, (unit, part)
        assert [f"{gold[part][-1]:.3f}" if gold else "–" for gold in golds] == cells, (unit, part)
    assert len(rows) == 3 * len({unit for unit, _ in saved})
    assert {arm for _, arm in saved} == {*arms}


@pytest.mark.parametrize("name", [HEADLINE, "docs/real-model.md", "docs/co-training.md", "README.md"])
def test_what_cooper_gains_over_the_rule_and_a_fixed_model_is_that_of_the_saved_runs(name):
    golds = {(run["unit"], run["arm"]): run["gold"]["all"][-1] for run in runs("headline_again")}
    gains = [golds[unit, "cooper"] - golds[unit, "rule_then_static"] for unit in sorted({unit for unit, _ in golds})]
    phrase = "{:.3f}, {:.3f} and {:.3f} above it (mean {:.3f}, {:.3f} to {:.3f})".format(*gains, *mean_interval(gains))
    assert phrase.replace("-", "−") in page(name)


def test_what_a_better_planting_changes_is_that_of_the_saved_runs():
    runs_of_table = runs("cotraining-A-report")
    golds = {(run["design"], run["hole"], run["planting"]): run["gold_end"] for run in runs_of_table}
    again = {(run["design"], run["hole"], run["planting"]): run for run in runs("cotraining-A-replanted")}
    assert {run["verdict"] for run in again.values()} == {"healthy"}
    means = [
        mean(of[design, *place] - golds["cooper", *place] for name, *place in again if name == design)
        for of in ({key: run["gold_end"] for key, run in again.items()}, golds)
        for design in ("prime", "prime_frozen", "rule_then_implicit")
    ]
    phrase = "PRIME ends {:.3f}, without learning {:.3f}, `rule_then_implicit` {:.3f}; "
    phrase += "in the table {:.3f}, {:.3f} and {:.3f}"
    assert phrase.format(*means).replace("-", "−") in page("docs/co-training-measured.md")


def test_what_a_better_planting_changes_in_table_b_is_that_of_the_saved_runs():
    golds = {(run["design"], run["hole"], run["planting"]): run["gold_end"] for run in runs("cotraining-B-report")}
    again = runs("cotraining-B-replanted")
    assert {run["verdict"] for run in again} == {"healthy"}
    means = []
    for of_run in (lambda run: run["gold_end"], lambda run: golds[run["design"], run["hole"], run["planting"]]):
        for design in ("prime", "prime_frozen"):
            own = [run for run in again if run["design"] == design]
            means.append(mean(of_run(run) - golds["cooper", run["hole"], run["planting"]] for run in own))
    phrase = "PRIME ends {:.3f} above Cooper and {:.3f} without learning, in the table {:.3f} and {:.3f} in these runs"
    assert phrase.format(*means) in page("docs/co-training-measured.md")
    starts = [run["reward_model_start"] for run in again if not run["hole"].startswith("kind_noise")]
    ends = [end(start[what] for start in starts) for what in ("hacks", "right") for end in (min, max)]
    phrase = "accept {:.2f} to {:.2f} of the hacks at the start and {:.2f} to {:.2f} of the right answers"
    assert phrase.format(*ends) in page("docs/co-training-measured.md")


def test_gold_of_a_hole_in_the_policys_own_words_is_that_of_the_saved_runs():
    saved = {(run["design"], run["hole"]): run for run in runs("cotraining-A-sampled")}
    table = (
        page("docs/co-training-measured.md")
        .split("](../benchmarks/results/cotraining-A-sampled.json)):\n\n")[1]
        .split("\n\n")[0]
    )
    head, _, *rows = rows_of(table.replace("\n    ", "\n").strip())
    for arm, *cells in rows:
        for name, cell in zip(head[1:], cells, strict=True):
            run = saved.pop((arm.strip("`"), name.strip("`")))
            hacked = ", hacked" if run["verdict"] == "hacked" else ""
            assert cell == f"{run['gold_end']:.2f} ({run['worst_family']:.2f}){hacked}", (arm, name)
    assert saved == {}


def test_gold_of_word_problems_under_a_wrong_convention_is_that_of_the_saved_runs():
    saved = {(run["design"], run["hole"]): run for run in runs("cotraining-A-convention")}
    after = page("docs/co-training-measured.md").split("](../benchmarks/results/cotraining-A-convention.json)):\n\n")[1]
    head, _, *rows = rows_of(after.split("\n\n")[0].replace("\n    ", "\n").strip())
    for arm, *cells in rows:
        for name, cell in zip(head[1:], cells, strict=True):
            if cell == "–":
                continue
            run = saved.pop((arm.strip("`"), name.strip("`")))
            golds = [run["test_families"][family] for family in WORD_PROBLEMS]
            hacked = ", hacked" if run["verdict"] == "hacked" else ""
            assert cell == f"{mean(golds):.2f} ({min(golds):.2f}){hacked}", (arm, name)
            assert run["hacked_share"] <= 0.02
    assert saved == {}


def test_gold_after_three_times_the_steps_is_that_of_the_saved_runs():
    saved = {(run["design"], run["planting"]): run for run in runs("cotraining-A-longer")}
    words = {key: mean(run["test_families"][family] for family in WORD_PROBLEMS) for key, run in saved.items()}
    left = dict(saved)
    measured = page("docs/co-training-measured.md")
    after = measured.split("](../benchmarks/results/cotraining-A-longer.json)):\n\n")[1]
    _, _, *rows = rows_of(after.split("\n\n")[0].replace("\n    ", "\n").strip())
    for arm, *cells in rows:
        for planting in range(3):
            of_run = cells[2 * planting : 2 * planting + 2]
            if of_run == ["–", "–"]:
                continue
            key = (arm.strip("`"), planting)
            run = left.pop(key)
            gold = f"{dict(run['gold_curve'])[20]:.2f} → {run['gold_end']:.2f} ({words[key]:.2f})"
            assert of_run == [gold, f"{run['hacked_share']:.3f}"], key
            assert run["alarm"] is None or arm != "`cooper`"
    assert left == {}

    def ends(design: str, values: Mapping[tuple[str, int], float]) -> list[str]:
        return [f"{values[design, planting]:.2f}" for planting in range(3) if (design, planting) in values]

    gold = {key: run["gold_end"] for key, run in saved.items()}
    one, two, three = (
        f"{own} and {other}" for own, other in zip(ends("cooper", gold), ends("rule", gold), strict=True)
    )
    summary = page("docs/co-training.md")
    assert f"({one}, {two}; the third {three}), since it loses" in summary
    phrase = "ends at {}, {} and {}, with the rule at {}, {} and {}, and [no alarm"
    assert phrase.format(*ends("cooper", words), *ends("rule", words)) in summary
    phrase = "with the first two: {} and {}, on word problems {} and {} (without learning {} and {})"
    assert phrase.format(*ends("prime", gold), *ends("prime", words), *ends("prime_frozen", words)) in summary
    near = ends("cooper_near", gold)
    above = {
        arm: difference([gold["cooper_near", planting] - gold[arm, planting] for planting in range(3)])
        for arm in ("cooper", "rule")
    }
    phrase = "it ends at {}, {} and {}: {} above Cooper without them ({}) and {} above the rule ({}), on word problems "
    phrase = phrase.format(*near, *above["cooper"], *above["rule"]) + "at {}, {} and {}."
    assert phrase.format(*ends("cooper_near", words)) in summary
    assert (
        "It ends {} above `cooper` ({}, three models) and {} above the rule ({})".format(
            *above["cooper"], *above["rule"]
        )
        in measured
    )
    readme = page("README.md")
    pairs = ", ".join(f"{own} and {other}" for own, other in zip(near, ends("rule", gold), strict=True))
    phrase = "with each of three planted models ({}; mean {}, {})".format(pairs, *above["rule"])
    assert f"Cooper ends above the rule {phrase}" in readme
    assert "it ends at {}, {} and {}, [takes up".format(*ends("cooper", gold)) in readme
    assert "PRIME ends at {} and {} with the first two".format(*ends("prime", gold)) in readme


def test_what_near_references_cost_in_table_a_is_that_of_the_saved_runs():
    saved = {(run["design"], run["hole"], run["planting"]): run for run in runs("cotraining-A-report")}
    pairs = [(run, saved["cooper", *key]) for (design, *key), run in saved.items() if design == "cooper_near"]
    ends = [[run["reward_model_end_accepts"] for run in arm] for arm in zip(*pairs, strict=True)]
    (near, j), (without, j_without) = ([mean(end[what] for end in arm) for what in ("hacks", "j")] for arm in ends)
    measured, summary = page("docs/co-training-measured.md"), page("docs/co-training.md")
    phrase = (
        f"accepts {near:.2f} of the written hacks where it accepts {without:.2f} without them, with a J of {j:.2f} "
    )
    assert f"{phrase}and not {j_without:.2f}" in measured
    assert f"accepts {near:.2f} of the hacks, without near references {without:.2f}" in summary
    models: dict[str, list[float]] = {}
    for run, other in pairs:
        models.setdefault(run["hole"].partition("@")[0], []).append(run["gold_end"] - other["gold_end"])
    below, interval = difference([mean(golds) for golds in models.values()])
    assert f"({below}, {interval}, five models)".replace("(-", "(−") in summary
    assert f"ends {below.strip('-')} below itself without them ({interval}, five planted models)" in measured


def difference(values: Sequence[float]) -> tuple[str, str]:
    """The mean and its 95 % interval by Student's t, as the pages write them."""
    middle, low, high = mean_interval(values)
    return f"{middle:.3f}", f"{low:.3f} to {high:.3f}".replace("-", "−")


def test_what_the_alarm_sees_on_a_language_model_is_that_of_the_saved_runs():
    alarms = [(run["arm"], run["unit"], int(run["alarm"])) for run in runs("decides") if run["alarm"] != "none"]
    lost = ("static", "paper", "static_kl", "rule_then_static")
    by_arm = [sum(arm == one for arm, *_ in alarms) for one in lost]
    with_a = sum(unit in (10, 13) for _, unit, _ in alarms)
    steps = [step for *_, step in alarms]
    assert sum(by_arm) == len(alarms), "none in the runs of `rule`, `cooper` and `cooper_refs`"
    for phrase in (
        f"finds {len(alarms)} of the 20 runs",
        "({}, {}, {} and {}; at steps {} to {})".format(*by_arm, min(steps), max(steps)),
        f"With reward model a it finds all {with_a}, with b {len(alarms) - with_a} of 12",
    ):
        assert phrase in page(DECIDES)


def test_the_milder_count_is_that_of_the_saved_runs():
    last = {(run["arm"], run["unit"]): run["last_steps"] for run in runs("decides")}
    twice = last.pop(("cooper_refs", 12))
    phrase = f"{twice['right_in_every_box']:.2f} of that run's training completions are right in the last ten steps"
    assert f"{phrase}, {twice['gold']:.2f} by gold" in page(DECIDES)
    moved = max(counts["right_in_every_box"] - counts["gold"] for counts in last.values())
    assert f"no other run moves by more than {moved:.2f}" in page(DECIDES)


@pytest.mark.parametrize(
    ("part", "phrase"),
    [("silent", "it is {0:.3f} ({1:.3f} to {2:.3f}) above"), ("judged", "more: {0:.3f} ({1:.3f} to {2:.3f})")],
)
def test_coopers_gain_by_part_is_that_of_the_saved_runs(part: str, phrase: str):
    ours, rule = gold_at_the_end("cooper", part), gold_at_the_end("rule", part)
    gain = mean_interval([ours[unit] - rule[unit] for unit in sorted(ours)])
    assert phrase.format(*gain).replace("-", "\u2212") in page(DECIDES)
