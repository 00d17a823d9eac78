"""`cooper eval --harness`: what lm-evaluation-harness reports of a model is what the model itself says."""

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest
import torch
import yaml
from transformers import AutoModelForCausalLM, AutoTokenizer

from cooper_lab.arithmetic.problems import arithmetic_problems
from cooper_lab.arithmetic.world import ASSETS
from cooper_rl import InputError, MissingExtraError
from cooper_rl.evaluation.harness import check_tasks, harness_results

POLICY = str(ASSETS / "policy")
EVAL = [sys.executable, "-c", "from cooper_rl.cli.main import app; app()", "eval", POLICY]
installed = pytest.mark.skipif(find_spec("lm_eval") is None, reason="lm-eval is not installed (the extra `harness`)")


@pytest.mark.skipif(find_spec("lm_eval") is not None, reason="lm-eval is installed")
def test_without_the_harness_the_extra_is_named():
    with pytest.raises(MissingExtraError, match="the extra `harness`"):
        check_tasks(["gsm8k"])


@pytest.fixture
def tasks(tmp_path):
    """A task of short answers and one of two choices, on arithmetic, as their YAML files."""
    problems = arithmetic_problems("test", 24)
    rows = [{"asked": f"{one.question}\n", "answer": one.answer, "gold": 0} for one in problems]
    for row, other in zip(rows, reversed(rows), strict=True):
        row["wrong"] = other["answer"] if other["answer"] != row["answer"] else "999"
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = {
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(tmp_path / "rows.jsonl")}, "cache_dir": str(tmp_path / "cache")},
        "test_split": "test",
        "doc_to_text": "{{asked}}",
        "target_delimiter": "",
    }
    metric = {"aggregation": "mean", "higher_is_better": True}
    said = {
        "task": "said",
        "output_type": "generate_until",
        "doc_to_target": "{{answer}}",
        "generation_kwargs": {"until": ["<none>"], "max_gen_toks": 48, "do_sample": False},
        "filter_list": [
            {
                "name": "stated",
                "filter": [{"function": "regex", "regex_pattern": "answer: (.*)"}, {"function": "take_first"}],
            }
        ],
        "metric_list": [{"metric": "exact_match", **metric}],
    }
    pick = {
        "task": "pick",
        "output_type": "multiple_choice",
        "doc_to_choice": "{{[answer, wrong]}}",
        "doc_to_target": "gold",
        "metric_list": [{"metric": "acc", **metric}],
    }
    for task in (said, pick):
        (tmp_path / f"{task['task']}.yaml").write_text(yaml.safe_dump(data | task))
    return [str(tmp_path / "said.yaml"), str(tmp_path / "pick.yaml")], rows


@installed
def test_values_are_those_of_the_model(tasks):
    files, rows = tasks
    found = harness_results(POLICY, files, check_tasks(files), None, 4, "cpu")
    model: Any = AutoModelForCausalLM.from_pretrained(POLICY).double()
    tokenizer = AutoTokenizer.from_pretrained(POLICY)

    def logprob(asked, said):
        prompt, whole = (tokenizer(text, return_tensors="pt")["input_ids"] for text in (asked, asked + said))
        logprobs = model(whole).logits[0, :-1].log_softmax(-1).gather(1, whole[0, 1:, None])[:, 0]
        return logprobs[prompt.shape[1] - 1 :].sum().item()

    right, picked = [], []
    with torch.no_grad():
        for row in rows:
            prompt = tokenizer(row["asked"], return_tensors="pt")
            tokens = model.generate(**prompt, do_sample=False, max_new_tokens=48)[0, prompt["input_ids"].shape[1] :]
            stated = re.findall("answer: (.*)", tokenizer.decode(tokens, skip_special_tokens=True))
            right.append(bool(stated) and stated[0] == row["answer"])
            picked.append(logprob(row["asked"], row["answer"]) > logprob(row["asked"], row["wrong"]))
    values = {(one.task, one.metric): one.value for one in found}
    assert values == {("said", "exact_match (stated)"): sum(right) / 24, ("pick", "acc"): sum(picked) / 24}
    assert 0 < sum(right) < 24
    assert all(one.shots == 0 and one.error is not None for one in found)


@installed
def test_an_unknown_task_is_named():
    with pytest.raises(InputError, match=r"no task 'gsm9k'.*lm_eval ls tasks"):
        check_tasks(["gsm8k", "gsm9k"])


@installed
def test_the_command_prints_both_models(tasks):
    command = [
        sys.executable,
        "-c",
        "from cooper_rl.cli.main import app; app()",
        "eval",
        POLICY,
        "--harness",
        tasks[0][1],
    ]
    done = subprocess.run([*command, "--against", POLICY, "--limit", "8"], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    assert re.search(r"pick\s*│ acc\s*│ 0\s*│ 0\.\d{4} ± 0\.\d{4}\s*│ 0\.\d{4} ± 0\.\d{4}", done.stdout)


def test_settings_that_the_tasks_have_are_refused():
    command = [*EVAL, "--harness", "gsm8k", "--max-tokens", "9"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 2
    assert "--max-tokens with --harness" in done.stderr
