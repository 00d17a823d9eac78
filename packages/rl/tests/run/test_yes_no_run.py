"""A reward model that is asked (`kind: yes_no`): trained, measured, co-trained, served and resumed by the commands."""

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from typer.testing import CliRunner

from cooper_audit.run.run_record import read_metrics
from cooper_base.cli.main import commands
from cooper_rl.engines.model_folder import recorded
from cooper_rl.reward.cooper_reward import CooperReward
from cooper_rl.service.config import ServeConfig
from run.test_lora_run import _fit, _timeless
from run.yes_and_no import yes_and_no
from service.answered import CORRUPTER, groups

ASKED = {"kind": "yes_no", "ask": "?"}
pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing")


def run(*arguments: str) -> str:
    result = CliRunner().invoke(commands, list(arguments))
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def asked(settings, tiny_models):
    """Settings of a run whose reward model is the policy's own start, asked."""
    model = {"model": str(tiny_models / "policy"), "learning_rate": 1e-3, "max_input_tokens": 160}
    return {
        **settings,
        "steps": 2,
        "reward_model": model | ASKED,
        "checkpoint": {"every": 1},
        "evaluation": {"every": 1},
    }


@pytest.mark.slow
@pytest.mark.parametrize("lora", [None, {"rank": 4}])
def test_a_run_co_trains_it_and_resumes_bit_for_bit(asked, lora, tmp_path):
    asked["reward_model"]["lora"] = lora
    whole = _fit({**asked, "name": "whole"})
    assert any(row.get("pairs/count", 0) > 0 for row in read_metrics(whole.directory))
    _fit(asked, steps=1)
    resumed = _fit(asked, resume=True)
    assert _timeless(resumed) == _timeless(whole)
    last = "checkpoints/000002/reward_model"
    file = "model.safetensors" if lora is None else "adapter_model.safetensors"
    assert (resumed.directory / last / file).read_bytes() == (whole.directory / last / file).read_bytes()
    final = whole.directory / ("final/reward_model" if lora else last)  # adapters are merged at the end
    record = recorded(str(final))
    assert record is not None
    AutoModelForCausalLM.from_pretrained(final)
    # What the model card prints is what the model says.
    card = (final / "README.md").read_text()
    code = card.partition("```python\n")[2].partition("```")[0]
    code = code.replace('"reward_model"', repr(str(final)))
    found: dict = {}
    exec(code, found)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(final), AutoTokenizer.from_pretrained(final)
    text = "<question>What is 3 + 4?</question>\n<reference_answer>7</reference_answer>\n"
    text += "<completion>3 + 4 = 7. The answer is \\boxed{7}.</completion>?"
    logits = model(torch.tensor([tokenizer.encode(text)])).logits[0, -1]
    assert found["probability"] == pytest.approx((logits[record.yes] - logits[record.no]).sigmoid().item(), abs=1e-6)


@pytest.mark.slow
def test_the_commands_train_it_measure_it_and_use_the_folder_without_settings(
    asked, tiny_models, tmp_path, monkeypatch
):
    monkeypatch.setattr("cooper_rl.verifyrm.train.FEWEST_ROWS", 1)  # 12 rows are held out
    rows = yes_and_no()
    data, out = tmp_path / "rows.jsonl", tmp_path / "judge"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = ["kind=yes_no", 'ask="?"', "learning_rate=2e-2", "epochs=24", "max_input_tokens=160"]
    settings += ["device=cpu", "threads=1", "batch_size=16", "evaluate_every=10", "warmup_steps=2"]
    run("verifyrm", "train", str(data), "--model", str(tiny_models / "policy"), "--out", str(out), *settings)
    measured = json.loads((out / "verifyrm.json").read_text())
    assert measured["held_out"]["accuracy"] > 0.95
    record = recorded(str(out))
    assert record is not None
    assert record.temperature == pytest.approx(measured["calibration"]["temperature"])
    assert f"/ {record.temperature}).sigmoid()" in (out / "README.md").read_text()

    where = ["--reward-model", str(out), "--out", str(tmp_path / "bench"), "max_input_tokens=160"]
    run("verifyrm", "bench", str(data), "--no-rule", "--attacks", "0", *where)
    result = json.loads((tmp_path / "bench" / "bench.json").read_text())
    assert result["methods"]["rm"]["overall"]["accuracy"]["mean"] > 0.95

    model = {"model": str(out), "max_input_tokens": 160, "learning_rate": 1e-3}
    trainer = _fit({**asked, "reward_model": model, "steps": 1})
    assert recorded(str(trainer.directory / "checkpoints/000001/reward_model")) == record


@pytest.mark.slow
def test_the_service_reward_scores_learns_and_restores(tiny_models, tmp_path):
    model = {"model": str(tiny_models / "policy"), "learning_rate": 1e-2, "max_input_tokens": 160, **ASKED}
    config = ServeConfig.model_validate(
        {"threads": 1, "reward_model": model, "cooptimization": {"assistant": CORRUPTER}}
    )
    with CooperReward.from_config(config) as reward, CooperReward.from_config(config) as other:
        before = reward.score(groups(10), train=False).logits
        reward.update(reward.score(groups(10)))
        reward.save(tmp_path)
        other.load(tmp_path)
        after = reward.score(groups(10), train=False).logits
        assert after != before
        assert other.score(groups(10), train=False).logits == after
    assert (Path(tmp_path) / "reward_model" / "model.safetensors").is_file()
