"""RewardBench, RewardBench 2 and RewardMATH: metrics on worked examples, tie rules, and bad rows."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cooper_base.errors import InputError
from cooper_lab.benchmarks import BENCHMARKS, benchmark_named
from cooper_lab.benchmarks.candidates import Candidates
from cooper_lab.benchmarks.rows import SECTIONS
from cooper_rl.cli.verifyrm import verifyrm
from cooper_rl.engines.config import ScorerConfig
from cooper_rl.reward.scorer import load_scorer


def problem(scores: list[float], right: int = 1, subset: str = "all", id: str = "0") -> Candidates:
    return Candidates(id, "q", "", [f"c{i}" for i in range(len(scores))], right, subset, "file:1", scores)


def measured(name: str, items: list[Candidates]):
    return BENCHMARKS[name].measure(items, [item.scores or [] for item in items])


def file_of(folder: Path, rows: list[dict]) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_tie_counts_against_the_right_solution_of_rewardmath():
    items = [problem([3.0, 1, 2]), problem([2.0, 2, 1]), problem([0.0, 1, 2]), problem([1.0, 1, 2])]
    found = measured("rewardmath", items)
    assert found.summary == pytest.approx(
        {"accuracy": 1 / 4, "mrr": (1 + 1 / 2 + 1 / 3 + 1 / 3) / 4, "accuracy_ties_right": 2 / 4}
    )


def test_rewardmath_groups_solutions_by_problem_and_reads_files_of_scores(tmp_path):
    rows = [
        {"problem": "1+1?", "answer": "2", "eval_solution": ["a", "b"], "solution_type": kind, "problem_id": 7}
        for kind in ("rejected", "chosen", "rejected")
    ]
    rows[1]["eval_solution"] = ["So", "2"]
    (item,) = BENCHMARKS["rewardmath"].read(file_of(tmp_path, rows))
    assert (item.completions, item.reference, item.right) == (["So\n2", "a\nb", "a\nb"], "2", 1)
    scored = {"problem": "1+1?", "solution_reference": ["x", "human_to_GPT-4"], "score": [0.5, 2.0]}
    (item,) = BENCHMARKS["rewardmath"].read(file_of(tmp_path, [scored]))
    assert item.scores == [2.0, 0.5]


PAIR = {"pair_id": "x", "question": "1+1?", "source": "mmlu-pro-math", "response_A": "3", "response_B": "2"}


def test_judgebench_puts_the_right_response_first_and_a_tie_is_wrong(tmp_path):
    rows = [
        PAIR | {"label": "B>A", "scores": [0.1, 0.9]},
        PAIR | {"label": "A>B", "scores": [0.1, 0.9]},
        PAIR | {"label": "A>B", "source": "livebench-math", "scores": [0.5, 0.5]},
        PAIR | {"label": "A>B", "source": "livecodebench", "scores": [2, 1]},
    ]
    items = BENCHMARKS["judgebench"].read(file_of(tmp_path, rows))
    assert (items[0].completions, items[0].right, items[0].scores) == (["2", "3"], 1, [0.9, 0.1])
    assert measured("judgebench", items).summary == pytest.approx(
        {"coding": 1.0, "knowledge": 0.5, "math": 0.0, "overall": 0.5}
    )


def test_the_ties_score_of_a_worked_example():
    """Gap over spread is 3 in the first problem and 0.1 in the second: 0.6 + 0.1 + 0.1 + 0.01 * 0.123865."""
    items = [
        problem([6.0, 5.0, 2.0, 1.0], right=2, subset="Ties", id="tied:1"),
        problem([9.0, 1.0], subset="Ties", id="ref:1"),
        problem([10.0, 5.0, 4.5], right=2, subset="Ties", id="tied:2"),
        problem([8.0, 1.0], subset="Ties", id="ref:2"),
    ]
    assert measured("rewardbench2", items).summary["ties_score"] == pytest.approx(0.80123865, abs=1e-8)


def test_equal_right_scores_give_the_full_margin_and_none_without_a_gap():
    tied, ref = problem([1.0, 1.0, 0.0], 2, "Ties", "tied:1"), problem([1.0, 0.0], 1, "Ties", "ref:1")
    assert measured("rewardbench2", [tied, ref]).summary["ties_score"] == pytest.approx(1.01)
    flat = [problem([1.0, 1.0, 1.0], 2, "Ties", "tied:1"), problem([1.0, 1.0], 1, "Ties", "ref:1")]
    assert measured("rewardbench2", flat).summary["ties_score"] == 0.0


def test_a_right_answer_in_a_tie_of_k_counts_one_kth_in_rewardbench_2():
    items = [problem([1.0, 1.0, 0.0, 1.0], subset="Math"), problem([1.0, 0.0, 0.0, 0.0], subset="Math")]
    items += [problem([0.0, 1.0, 0.0, 0.0], subset="Focus")]
    found = measured("rewardbench2", items)
    assert found.summary == pytest.approx({"Math": 2 / 3, "Focus": 0.0, "score": 1 / 3})


def test_rewardbench_weights_subsets_inside_a_section():
    items = [problem([1.0, 0.0], subset="math-prm"), problem([0.0, 0.0], subset="hep-go")]
    items += [problem([1.0, 0.0], subset="alpacaeval-easy")]
    found = measured("rewardbench", items)
    assert found.summary == pytest.approx(
        {"Reasoning": 984 / (984 + 164), "Chat": 1.0, "score": (984 / (984 + 164) + 1) / 2}
    )
    sums = {name: sum(weights.values()) for name, weights in SECTIONS.items()}
    assert sums == {"Chat": 358, "Chat Hard": 456, "Safety": 740, "Reasoning": 2 * 984}


def test_rm_bench_compares_every_style_with_every_other_and_averages_domains(tmp_path):
    """Chat: 6 of 9 comparisons are won. Safety: right answers win by style alone, in two rows that are pooled."""
    row = {"prompt": "q", "chosen": ["a", "b", "c"], "rejected": ["d", "e", "f"]}
    rows = [
        {**row, "domain": "chat", "score_chosen": [1, 2, 3], "score_rejected": [0, 1, 2]},
        {**row, "domain": "safety-refuse", "score_chosen": [0, 1, 2], "score_rejected": [0, 1, 2]},
        {**row, "domain": "safety-response", "score_chosen": [0, 1, 2], "score_rejected": [0, 1, 2]},
    ]
    found = measured("rmbench", BENCHMARKS["rmbench"].read(file_of(tmp_path, rows)))
    assert found.summary == pytest.approx(
        {"score": (6 / 9 + 3 / 9) / 2, "hard": 0.0, "normal": 0.5, "easy": 1.0, "chat": 6 / 9, "safety": 3 / 9}
    )
    named = tmp_path / "math_filtered.jsonl"
    named.write_text(json.dumps(row))
    (item,) = BENCHMARKS["rmbench"].read(named)
    assert (item.subset, item.completions, item.right, item.scores) == ("math", list("abcdef"), 3, None)


@pytest.mark.parametrize(
    ("name", "row", "words"),
    [
        ("judgebench", PAIR | {"label": "A=B"}, "write A>B or B>A"),
        ("judgebench", PAIR | {"label": "A>B", "source": "gsm8k"}, "'source' is 'gsm8k'; it begins with mmlu-pro"),
        ("rmbench", {"prompt": "q", "chosen": ["a"] * 3, "rejected": ["b"] * 3}, "'rows.jsonl' is none of the domains"),
        ("rmbench", {"prompt": "q", "chosen": ["a"] * 3, "rejected": ["b"], "domain": "chat"}, "3 and 1 texts"),
        ("rewardbench", {"prompt": "q", "chosen": "a", "subset": "hep-go"}, "'rejected' is missing"),
        ("rewardbench", {"prompt": "q", "chosen": "a", "rejected": " ", "subset": "hep-go"}, "'rejected' is empty"),
        ("rewardbench", {"prompt": "q", "chosen": "a", "rejected": "b", "subset": "hep-ada"}, "'subset' is 'hep-ada'"),
        ("rewardbench2", {"id": "1", "prompt": "q", "chosen": "a", "rejected": ["b"], "subset": "Math"}, "'chosen' is"),
        (
            "rewardbench2",
            {"id": "1", "prompt": "q", "chosen": ["a"], "rejected": ["b"], "subset": "Ties"},
            "ref:NUMBER or tied:NUMBER",
        ),
        (
            "rewardbench2",
            {"id": "1", "prompt": "q", "chosen": ["a"], "rejected": ["b"], "subset": "Math", "scores": [1]},
            "list of 2 finite numbers",
        ),
        (
            "rewardmath",
            {"problem": "q", "problem_id": 0, "eval_solution": ["a"], "solution_type": "good"},
            "write chosen or rejected",
        ),
        (
            "rewardmath",
            {"problem": "q", "problem_id": 0, "eval_solution": ["a"], "solution_type": "rejected"},
            "needs one chosen",
        ),
        ("rewardmath", {"problem": "q", "solution_reference": ["x", "y"], "score": [1, 2]}, "human_to_GPT-4 once"),
    ],
)
def test_a_bad_row_is_named_with_file_and_line(tmp_path, name, row, words):
    with pytest.raises(InputError, match=words) as raised:
        BENCHMARKS[name].read(file_of(tmp_path, [row]))
    assert f"{tmp_path / 'rows.jsonl'}:1:" in str(raised.value)


def test_an_unknown_benchmark_and_an_empty_file_are_refused(tmp_path):
    with pytest.raises(InputError, match="there are judgebench, rewardbench, rewardbench2, rewardmath, rmbench"):
        benchmark_named("rewardbench3")
    for benchmark in BENCHMARKS.values():
        with pytest.raises(InputError, match="holds no rows"):
            benchmark.read(file_of(tmp_path, []))


def cooper(*arguments: object) -> None:
    CliRunner().invoke(verifyrm, [str(argument) for argument in arguments], catch_exceptions=False)


def test_a_reward_model_is_measured_and_a_judge_is_refused(tiny_models, tmp_path):
    rows = [
        {"id": f"{i}", "prompt": f"{i}+1=", "chosen": [str(i + 1)], "rejected": ["7", "9"], "subset": "Math"}
        for i in range(3)
    ]
    data, model = file_of(tmp_path, rows), tiny_models / "reward_model"
    options = ["bench", data, "--benchmark", "rewardbench2", "--out", tmp_path / "out"]
    cooper(*options, "--reward-model", f"tiny={model}")
    found = json.loads((tmp_path / "out" / "benchmark.json").read_text())["models"]["tiny"]
    loaded = load_scorer(ScorerConfig(model=str(model)))
    rows_read = [[(f"{i}+1=", "", text) for text in (str(i + 1), "7", "9")] for i in range(3)]
    expected = [loaded.learner.score(loaded.encoder.encode_all(row)).tolist() for row in rows_read]
    assert found["summary"]["Math"] == pytest.approx(sum(row[0] > max(row[1:]) for row in expected) / 3)
    with pytest.raises(InputError, match="holds no scores of its own"):
        cooper(*options)
    with pytest.raises(InputError, match="leave out --judge"):
        cooper(*options, "--judge", "judge.yaml")
