"""A text on which the rule raises costs its verdict and nothing else: in the reward, in a run, and in the service."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from cooper_audit.run.run_record import read_metrics
from cooper_base.data.answer import Answer, AnswerGroup
from cooper_rl import CooperReward, CooperRewardConfig, CooperTrainer, InputError, Problem, build_config
from cooper_verify.faults import FAULTS_FILE
from planted import RAISES, RAISING, reading_raises
from service.served import Served

ON_SOME = RAISING.replace('"zz 12" in text', '"boxed" not in text and len(text) % 3 == 0')
"""Raises on a third of what a policy writes, and on no reference."""
FUNCTION = {"kind": "function", "function": "test_text_faults:fragile"}


def fragile(problem, completion):
    if completion.text == RAISES:
        raise ZeroDivisionError("mine")
    return 1.0


def eight() -> list[AnswerGroup]:
    texts = [RAISES if place == 5 else f"It is {12 + place % 2}." for place in range(8)]
    return [AnswerGroup("g", Problem("p", "5 + 7 = ?", "12"), [Answer(text) for text in texts])]


SAID = ["unparsed" if place == 5 else ("correct", "wrong")[place % 2] for place in range(8)]


def faults_in(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / FAULTS_FILE).read_text().splitlines()]


@pytest.fixture
def reward_settings(tiny_models) -> dict[str, Any]:
    model = {"model": str(tiny_models / "reward_model"), "learning_rate": 1e-2, "max_input_tokens": 160}
    on_policy = {"pairs": [{"kind": "on_policy"}]}
    return {"kind": "cooper_model", "reward_model": model, "cooptimization": on_policy}


def test_one_text_of_eight_is_unparsed_and_the_reward_learns_from_the_others(reward_settings, tmp_path, monkeypatch):
    config = CooperRewardConfig.model_validate(reward_settings)
    with reading_raises(tmp_path, monkeypatch), CooperReward.from_config(config) as reward:
        scored = reward.score(eight(), step=1)
        assert scored.verdicts == [SAID]
        assert reward.update(scored).metrics["pairs/count"] > 0


def test_a_function_of_the_users_that_raises_ends_the_step(reward_settings):
    settings = reward_settings | {"rewards": [FUNCTION]}
    config = CooperRewardConfig.model_validate(settings)
    with CooperReward.from_config(config) as reward, pytest.raises(ZeroDivisionError, match="mine"):
        reward.score(eight(), step=1)


def test_a_run_goes_on_counts_its_faults_and_writes_their_texts_down(settings, tmp_path, monkeypatch):
    changes = {"kind": "rule", "steps": 2, "evaluation": {"every": 0}, "test_problems": None}
    kept = {name: value for name, value in settings.items() if name not in ("reward_model", "cooptimization")}
    config = build_config({**kept, **changes})
    with reading_raises(tmp_path, monkeypatch, ON_SOME), CooperTrainer.from_config(config) as trainer:
        trainer.fit()
        folder = trainer.directory
    counted = [row["rule/faults"] for row in read_metrics(folder) if row["step"]]
    assert len(counted) == 2
    of_verdicts = [fault for fault in faults_in(folder) if fault["where"].endswith("fast_reading")]
    # The watch over parts reads the stated answers once more, behind the step and its metrics.
    assert 0 < len(of_verdicts) < sum(counted) < len(faults_in(folder))
    texts = {fault["texts"][2] for fault in of_verdicts}
    paths = sorted((folder / "rollouts").iterdir())
    rows = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    said = {one["text"]: one["verdict"] for row in rows for one in row["completions"]}
    assert {said[text] for text in texts} == {"unparsed"}
    assert len(texts) < len(said)


def test_a_reference_that_raises_is_named_before_the_run(settings, tmp_path, monkeypatch):
    source = tmp_path / "rows.jsonl"
    rows = [{"question": f"{number}?", "answer": answer} for number, answer in enumerate(["1", "zz 12"])]
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    problems = {"source": str(source), "max_bad_rows": 0}
    changes = {"problems": problems, "test_problems": None, "evaluation": {"every": 0}}
    config = build_config({**settings, **changes})
    with reading_raises(tmp_path, monkeypatch), pytest.raises(InputError, match=r"rows\.jsonl:2: answer 'zz 12'"):
        CooperTrainer.from_config(config)


def test_the_service_answers_a_request_with_such_a_text_again_and_again(reward_settings, tmp_path):
    script = f'import os\nos.environ.pop("COOPER_STRICT", None)\n{RAISING}'
    served = Served(tmp_path / "one", reward_settings | {"threads": 1}, script).start()
    try:
        with served.client() as client:
            for _ in range(2):
                assert client.score(eight(), train=False).verdicts == [SAID]
            assert client.score(eight(), step=1).verdicts == [SAID]
            client.update(1)
        assert len(faults_in(tmp_path / "one" / "served")) >= 1
        assert faults_in(tmp_path / "one" / "served")[0]["error"] == "ZeroDivisionError: planted"
    finally:
        served.end(signal.SIGKILL)
