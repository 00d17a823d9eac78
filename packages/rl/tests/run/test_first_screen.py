"""The prompt and one rewarded completion are shown: on the screen, in the rollouts and in the report."""

import json

import pytest

from cooper_audit.report.report import write_report
from cooper_audit.run.run_record import read_events, read_run
from cooper_audit.run.verdict import verdict_of
from cooper_base.data.problem import Problem
from cooper_lab.arithmetic.arms import ASSETS
from cooper_rl import CooperTrainer, build_config
from cooper_rl.run.first_screen import LONGEST_BLOCK, best_example, describe_example, describe_prompt, describe_size
from runs.recorded_run import data_of


@pytest.fixture
def run(settings):
    problems = {**settings["problems"], "prompt": {"template": "Answer in \\boxed{}: {question}\n"}}
    policy = {**settings["policy"], "model": str(ASSETS / "policy")}
    return {**settings, "kind": "rule", "steps": 2, "evaluation": {"every": 0}, "problems": problems, "policy": policy}


def test_the_log_shows_the_first_prompt_before_training_and_an_example_after_its_first_step(run, caplog):
    caplog.set_level("INFO", "cooper_rl")
    with CooperTrainer.from_config(build_config(run)) as trainer:
        first = trainer.parts.stream.first
        trainer.fit(on_step=lambda step, metrics: caplog.records.append(f"step {step}"))
    said = [record if isinstance(record, str) else record.getMessage() for record in caplog.records]
    opening = f"Problem {first.id}, reference answer {first.answer}"
    prompt = next(n for n, text in enumerate(said) if text.startswith(opening))
    example = next(n for n, text in enumerate(said) if text.startswith("Highest reward of the first step"))
    assert prompt < example < said.index("step 1") < said.index("step 2")
    assert f"  | Answer in \\boxed{{}}: {first.question.splitlines()[0]}" in said[prompt]
    assert "rule says" in said[example]
    assert "  | Answer in \\boxed{}: " in said[example]


def test_rollouts_hold_the_prompt_as_the_policy_read_it_and_the_report_shows_one(run):
    with CooperTrainer.from_config(build_config(run)) as trainer:
        trainer.fit()
        encoder = trainer.parts.prompt_encoder
    rows = [json.loads(line) for line in (trainer.directory / "rollouts" / "000001.jsonl").read_text().splitlines()]
    for row in rows:
        assert row["prompt"] == f"Answer in \\boxed{{}}: {row['question']}\n"
        assert row["prompt"] == encoder.decode(encoder.encode(Problem("", row["question"], "")))
    run = data_of(write_report(trainer.directory))["runs"][0]
    assert {group["prompt"] for group in run["steps"]["1"]} <= {row["prompt"] for row in rows}


def _row(*completions, **changes):
    base = {"tokens": 3, "stop_reason": "stop", "verdict": "wrong", "advantage": 0.5, "gold": True}
    row = {"problem": "p1", "question": "1+1?", "answer": "2", "prompt": "<user>1+1?", **changes}
    return {**row, "completions": [{**base, **completion} for completion in completions]}


def test_the_example_is_the_best_paid_completion_of_the_step_with_all_its_rewards():
    rows = [
        _row({"text": "a", "reward": 0.2}, {"text": "b", "reward": float("nan")}),
        _row({"text": "c", "reward": 0.9, "rule": 0.0, "length": 0.9}, problem="p2"),
    ]
    example = best_example(rows)
    assert example is not None
    assert (example["text"], example["problem"]) == ("c", "p2")
    said = describe_example(example)
    assert "0.9 (rule 0, length 0.9; the rule says wrong)" in said
    assert "problem p2, reference answer 2" in said.lower()
    assert "  | <user>1+1?\nand wrote 3 tokens, ended by stop:\n  | c" in said
    assert best_example([]) is None


def test_the_example_says_what_was_paid_after_learning_and_keeps_the_machines_figures_to_itself():
    learned = {"rule": 0.0, "rule_after": 0.0, "reward_after": 0.25, "verify_s": 0.0}
    example = best_example([_row({"text": "c", "reward": 0.9, **learned})])
    assert example is not None
    said = describe_example(example)
    assert "0.9 (rule 0; the rule says wrong). Paid, once the reward model had learned from it: 0.25.\n" in said
    assert "_after" not in said
    assert "verify_s" not in said


def test_what_a_model_wrote_cannot_drive_the_terminal_and_long_texts_are_cut():
    said = describe_prompt(Problem("p", "q", ""), "a\x1b[2J\rb\nc" + "x" * 3 * LONGEST_BLOCK)
    assert "reference answer none" in said
    assert "  | a\\x1b[2J\\rb\n  | cx" in said
    assert f"[{2 * LONGEST_BLOCK + 9} characters]" in said


def test_references_that_the_rule_cannot_read_stand_in_events_and_report_also_after_a_resume(run, tmp_path):
    unread = [f"x^{n}+1 \\quad (x \\ge {n})" for n in range(7)]
    rows = [{"question": f"Question {n}?", "answer": answer} for n, answer in enumerate([*unread, "12"])]
    source = tmp_path / "problems.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = {**run, "problems": {"source": str(source), "prompt": run["problems"]["prompt"]}, "problems_per_step": 2}
    for resume, steps in ((False, 1), (True, 2)):
        with CooperTrainer.from_config(build_config({**run, "steps": steps}), resume=resume) as trainer:
            trainer.fit()
    (note,) = [event for event in read_events(trainer.directory) if event["action"] == "note"]
    assert note["values"] == [7]
    assert note["message"].startswith("problems: the rule cannot read 7 reference answers")
    assert f"{source}:1: problem" in note["message"]
    assert note["message"].endswith("; and 2 more")
    shown = data_of(write_report(trainer.directory))["runs"][0]
    assert note in shown["events"]
    verdict = verdict_of(read_run(trainer.directory))
    assert [signal.text for signal in verdict.signals if signal.state == "unknown"][-1] == note["message"]
    assert verdict.state != "faults"


def test_a_run_that_is_done_says_so_when_it_is_resumed(settings):
    config = build_config(settings)
    assert f"all {config.steps} steps are done; raise steps to go on" in describe_size(config, config.steps, [])
    assert "are done" not in describe_size(config, config.steps - 1, [])
