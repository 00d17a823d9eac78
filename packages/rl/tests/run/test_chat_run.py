"""A reward model that reads chats: co-trained, resumed, served, measured and trained by the commands."""

import json
import logging
import shutil

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from typer.testing import CliRunner

from cooper_audit.run.run_record import read_metrics
from cooper_base.cli.main import commands
from cooper_rl import InputError, build_config
from cooper_rl.reward.cooper_reward import CooperReward
from cooper_rl.run.inputs import read_inputs
from cooper_rl.service.config import ServeConfig
from run.test_lora_run import _fit, _timeless
from run.yes_and_no import yes_and_no
from service.answered import CORRUPTER, groups

TEMPLATE = """\
{%- for message in messages %}
{{- '<question>' if message.role == 'user' else '<completion>' }}{{ message.content }}<|end|>
{%- endfor %}"""
pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing")


@pytest.fixture
def chat_model(tiny_models, tmp_path):
    folder = tmp_path / "chat_model"
    shutil.copytree(tiny_models / "reward_model", folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return {"model": str(folder), "input": "chat", "learning_rate": 1e-2, "max_input_tokens": 160}


@pytest.fixture
def chatting(settings, chat_model):
    """Settings of a run with that reward model."""
    return {**settings, "steps": 2, "reward_model": chat_model, "checkpoint": {"every": 1}, "evaluation": {"every": 1}}


@pytest.mark.slow
@pytest.mark.parametrize("input_format", ["chat", "chat_with_reference"])
def test_a_run_co_trains_it_and_resumes_bit_for_bit(chatting, input_format):
    chatting["reward_model"]["input"] = input_format
    whole = _fit({**chatting, "name": "whole"})
    assert any(row.get("pairs/count", 0) > 0 for row in read_metrics(whole.directory))
    _fit(chatting, steps=1)
    resumed = _fit(chatting, resume=True)
    assert _timeless(resumed) == _timeless(whole)
    last = whole.directory / "checkpoints/000002/reward_model"
    # What the model card prints is what the model says.
    code = (last / "README.md").read_text().partition("```python\n")[2].partition("```")[0]
    found: dict = {}
    exec(code.replace('"reward_model"', repr(str(last))), found)
    asked = "What is 3 + 4?" + ("\n\nReference answer: 7" if input_format == "chat_with_reference" else "")
    text = f"<question>{asked}<|end|><completion>3 + 4 = 7. The answer is \\boxed{{7}}.<|end|>"
    assert found["text"] == text
    model, tokenizer = AutoModelForSequenceClassification.from_pretrained(last), AutoTokenizer.from_pretrained(last)
    assert found["score"] == pytest.approx(model(torch.tensor([tokenizer.encode(text)])).logits.item(), abs=1e-6)


def test_a_frozen_model_pays_without_references_and_the_log_says_what_is_off(chatting, tmp_path, caplog):
    rows = [{"question": f"{a} + {a}?"} for a in range(10)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    own = {"source": str(tmp_path / "rows.jsonl")}
    changed = {"problems": own, "test_problems": None, "evaluation": {"every": 0}, "rule": {"kind": "silent"}}
    changed |= {"kind": "static", "rewards": [{"kind": "reward_model", "pays": "logit"}]}
    with caplog.at_level(logging.INFO):
        trainer = _fit({**chatting, **changed})
    assert "reads no reference answer, so what swaps references is off" in caplog.text
    metrics = read_metrics(trainer.directory)[-1]
    assert "rollout/agreement_silent" in metrics
    assert not any("swapped" in name for name in metrics)
    with pytest.raises(InputError, match="answer"):
        read_inputs(
            build_config({**chatting, **changed, "reward_model": {**chatting["reward_model"], "input": "tagged"}})
        )


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        (
            {"cooptimization": {"pairs": [{"kind": "swapped_reference"}]}},
            "swapped_reference scores .* other references",
        ),
        ({"watch": [{"metric": "reward_model/kept_when_swapped_silent", "above": 0.5}]}, "watch.0.metric: .*chat_with"),
        ({"reward_model": {"model": "m", "input": "chat", "kind": "yes_no"}}, "input: chat is for a model with a head"),
    ],
)
def test_what_needs_a_reference_is_refused_where_it_was_asked_for(chatting, changed, fault):
    with pytest.raises(InputError, match=fault):
        build_config({**chatting, **changed})
    if "reward_model" not in changed:
        chatting["reward_model"] |= {"input": "chat_with_reference"}
        build_config({**chatting, **changed})


def test_a_folder_without_a_template_is_refused_before_anything_is_loaded(chatting, tiny_models):
    chatting["reward_model"]["model"] = str(tiny_models / "reward_model")
    with pytest.raises(InputError, match="the tokenizer has no chat template"):
        read_inputs(build_config(chatting))


def test_the_service_reward_scores_learns_and_restores(chat_model, tmp_path):
    config = ServeConfig.model_validate(
        {"threads": 1, "reward_model": chat_model, "cooptimization": {"assistant": CORRUPTER}}
    )
    with CooperReward.from_config(config) as reward, CooperReward.from_config(config) as other:
        before = reward.score(groups(10), train=False).logits
        reward.update(reward.score(groups(10)))
        reward.save(tmp_path / "saved")
        other.load(tmp_path / "saved")
        after = reward.score(groups(10), train=False).logits
        assert after != before
        assert other.score(groups(10), train=False).logits == after


@pytest.mark.slow  # the commands are tried on a reward model of another input in test_yes_no_run.py
def test_the_commands_train_it_and_measure_it(chat_model, tmp_path):
    rows = yes_and_no()
    data, out = tmp_path / "rows.jsonl", tmp_path / "rm"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    unreferenced = tmp_path / "unreferenced.jsonl"
    without = [{name: value for name, value in row.items() if name != "reference_answer"} for row in rows]
    unreferenced.write_text("".join(json.dumps(row) + "\n" for row in without))
    settings = ["input=chat", "learning_rate=2e-2", "epochs=12", "max_input_tokens=160"]
    settings += ["device=cpu", "threads=1", "batch_size=16", "evaluate_every=10", "warmup_steps=2"]
    measured = ["--reward-model", str(out), "--out", str(tmp_path / "bench"), "input=chat", "max_input_tokens=160"]
    for arguments in (
        ["train", str(unreferenced), "--model", chat_model["model"], "--out", str(out), *settings],
        ["bench", str(data), "--no-rule", "--attacks", "2", *measured],
    ):
        result = CliRunner().invoke(commands, ["verifyrm", *arguments])
        assert result.exit_code == 0, result.output
    bench = json.loads((tmp_path / "bench" / "bench.json").read_text())
    assert bench["methods"]["rm"]["overall"]["accuracy"]["mean"] > 0.95
