"""Names that a user gives (functions, parts and metrics of own classes, columns of data) never replace Cooper's own."""

import csv
import json

import pytest

from cooper_audit.report.report import write_report
from cooper_rl import CooperTrainer, InputError, RewardConfig, Scores, ShapingConfig, StepContext, build_config
from cooper_verify.problems.config import ProblemsConfig
from cooper_verify.problems.loading import read_problems
from cooper_verify.verdict_file import verify_file

OURS = {
    *("text", "tokens", "stop_reason", "version", "reward", "verdict", "verify_s", "advantage", "gold"),
    *("reward_model", "logit", "rule", "unshaped", "step", "problem", "prompt", "question", "answer", "completions"),
    *("reward_after", "logit_after", "digest", "score", "pair", "transcript", "pieces", "logprobs", "after_kl"),
}


def _quarter(problem, completion):
    return 0.25


globals().update(dict.fromkeys(OURS, _quarter))
"""A function of every name that the record, the page or a reward uses itself."""


class Greedy(RewardConfig):
    """A reward of a user's own, which calls everything by names that are Cooper's."""

    def score(self, context: StepContext) -> Scores:
        constant = context.correct.like(context.correct.flat * 0 + 0.5)
        parts = {**dict.fromkeys(OURS, constant), "rule": context.correct}
        return Scores(constant, parts, {"reward/mean": 99.0, "policy/loss": 99.0, "mine/mean": 99.0})


class Doubling(ShapingConfig):
    def shape(self, rewards, context):
        return rewards.like(2 * rewards.flat)

    def metrics(self, context):
        return {"rule/accuracy": 99.0}


def _run(settings, **changes):
    quick = {"steps": 1, "evaluation": {"every": 0}, "test_problems": None, "checkpoint": {"every": 0}}
    with CooperTrainer.from_config(build_config({**settings, **quick, **changes})) as trainer:
        trainer.fit(on_step=lambda step, metrics: None)
    lines = (trainer.directory / "rollouts" / "000001.jsonl").read_text().splitlines()
    metrics = json.loads((trainer.directory / "metrics.jsonl").read_text().splitlines()[-1])
    return trainer.directory, [json.loads(line) for line in lines], metrics


def test_a_function_of_any_name_leaves_the_record_as_it_is(settings):
    functions = [
        {"kind": "function", "function": f"run.test_users_names:{name}", "weight": 0.5 / len(OURS)}
        for name in sorted(OURS)
    ]
    folder, groups, metrics = _run(settings, kind="cooper", rewards=[{"kind": "earned"}, *functions])
    _, plain, _ = _run(settings, kind="cooper", name="plain")
    for group, without in zip(groups, plain, strict=True):
        for row, other in zip(group["completions"], without["completions"], strict=True):
            added = {name: value for name, value in row.items() if name not in other}
            assert added == {f"function/{name}": 0.25 for name in OURS}
            assert {**row, "verify_s": 0, "reward": 0, "advantage": 0}.items() >= {
                **other,
                **{"verify_s": 0, "reward": 0, "advantage": 0},
            }.items()
            assert row["reward"] == pytest.approx(other["reward"] + 0.125)
    assert {name for name in metrics if name.startswith("function/")} == {f"function/{name}" for name in OURS}
    assert "function/text" in write_report(folder).read_text()


def test_the_parts_and_metrics_of_own_classes_have_a_namespace(settings):
    mine, shaping = {"kind": "run.test_users_names:Greedy"}, [{"kind": "run.test_users_names:Doubling"}]
    _, groups, metrics = _run(
        settings, rewards=[{"kind": "rule"}, mine], shaping=shaping, kind="rule", reward_model=None
    )
    for group in groups:
        for row in group["completions"]:
            assert row["unshaped"] == row["rule"] + 0.5
            assert row["reward"] == 2 * row["unshaped"]
            assert row["rule"] == float(row["verdict"] == "correct")  # passed on, and the same part
            assert {name for name in row if "/" in name} == {f"part/{name}" for name in OURS - {"rule"}}
    assert metrics["part/reward/mean"] == metrics["part/policy/loss"] == metrics["mine/mean"] == 99
    assert metrics["part/rule/accuracy"] == 99
    assert max(metrics["reward/mean"], metrics["rule/accuracy"]) < 2


def test_two_functions_of_one_name_stay_apart_from_a_third_that_is_named_like_the_second(
    settings, tmp_path, monkeypatch
):
    for module, names in {"one_m": "f", "two_m": "f", "three_m": "f_2"}.items():
        (tmp_path / f"{module}.py").write_text(f"def {names}(problem, completion): return {len(module)}\n")
    monkeypatch.syspath_prepend(tmp_path)
    rewards = [{"kind": "function", "function": one} for one in ("three_m:f_2", "one_m:f", "two_m:f")]
    _, groups, _ = _run(settings, kind="function", rewards=rewards, reward_model=None)
    row = groups[0]["completions"][0]
    assert {name: value for name, value in row.items() if "/" in name} == {
        "function/f": 5,
        "function/f_2": 7,
        "function/f_3": 5,
    }


def test_a_rule_whose_name_has_a_meaning_of_its_own_is_refused(settings):
    with pytest.raises(InputError, match=r"rules\.silent"):
        build_config({**settings, "rules": {"silent": {"kind": "exact"}}})


def test_ids_of_two_sets_are_told_apart(settings, tmp_path):
    for name, id in (("a", "two/1"), ("b", "1")):
        rows = [
            {"question": f"{name} 1 + 1?", "answer": "2", "id": id},
            {"question": f"{name}?", "answer": "3", "id": 9},
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = {name: {"source": str(tmp_path / f"{name}.jsonl"), "id": "id"} for name in ("a", "b")}
    with pytest.raises(InputError, match="'two/1' is used twice"):
        _run(settings, kind="rule", problems=data["a"], more_problems={"two": data["b"]}, problems_per_step=2)


def test_a_column_of_the_data_keeps_its_value(tmp_path):
    path = tmp_path / "places.jsonl"
    path.write_text('{"question": "Where?", "answer": "2", "location": "Paris"}\n')
    [problem] = read_problems(ProblemsConfig(source=str(path))).problems
    assert problem.metadata == {"location": "Paris"}
    assert problem.location == f"{path}:1"


def test_verdicts_keep_the_fields_of_their_names_that_the_input_has(tmp_path):
    path, out = tmp_path / "in.csv", tmp_path / "out.jsonl"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(
            [["answer", "completion", "verdict", "seconds"], ["2", r"\boxed{2}", "human no", "7"]]
        )
    for _ in range(2):  # the second call continues after the first
        verify_file(path, out)
    [row] = map(json.loads, out.read_text().splitlines())
    assert (row["verdict"], row["input/verdict"], row["input/seconds"]) == ("correct", "human no", "7")
