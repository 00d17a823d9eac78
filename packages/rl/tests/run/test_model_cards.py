"""The models of a checkpoint have cards that say how to use them, and their code works in plain transformers."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from cooper_rl import CooperTrainer, Problem, build_config
from slow_members import first_fast

CARD = "---\nlicense: mit\npipeline_tag: other\n---\n# rm\n\nMade of 27 rows.\n"


def _train(settings: dict[str, Any], steps: int = 2, resume: bool = False) -> tuple[CooperTrainer, Path]:
    """A run and the folder of its last checkpoint."""
    with CooperTrainer.from_config(build_config({**settings, "steps": steps}), resume) as trainer:
        trainer.fit()
    return trainer, trainer.directory / "checkpoints" / f"{steps:06d}"


def _parts(card: str) -> tuple[dict[str, Any], str]:
    """The header of a card and its code."""
    (code,) = re.findall(r"```python\n(.*?)```", card, flags=re.DOTALL)
    return yaml.safe_load(card.split("---")[1]), code


def _run(code: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(folder)
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    exec(code, names)
    return names


@pytest.fixture
def with_card(settings, tmp_path):
    """Settings of a run whose reward model has a card."""
    folder = tmp_path / "rm"
    shutil.copytree(settings["reward_model"]["model"], folder)
    (folder / "README.md").write_text(CARD)
    return {**settings, "reward_model": {**settings["reward_model"], "model": str(folder)}}


def test_the_reward_model_card_gives_its_format_and_keeps_the_card_of_the_base(with_card, monkeypatch):
    trainer, checkpoint = _train(with_card)
    card = (checkpoint / "reward_model" / "README.md").read_text()
    header, code = _parts(card)
    assert (header["license"], header["pipeline_tag"]) == ("mit", "text-classification")
    assert "# Reward model of the run `run`, step 2" in card
    assert "Longer inputs were cut to 160 tokens" in card
    assert card.endswith("# rm\n\nMade of 27 rows.\n")
    model = trainer.parts.reward.learning
    assert model is not None
    tokens = model.encoder.encode("What is 3 + 4?", "7", "3 + 4 = 7. The answer is \\boxed{7}.")
    expected = model.learner.score([tokens]).sigmoid().item()
    assert _run(code, checkpoint, monkeypatch)["probability"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("chat", first_fast([False, True]))
def test_the_policys_card_gives_the_prompt_it_was_trained_on(settings, tmp_path, monkeypatch, chat):
    folder = tmp_path / "policy"
    shutil.copytree(settings["policy"]["model"], folder)
    if chat:
        text = "{% for m in messages %}{{ m.role }}: {{ m.content }}{{ thinking }}\n{% endfor %}"
        path = folder / "tokenizer_config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"chat_template": text}))
    prompt = {"template": '{question}\n"\\boxed{}"', "system": "Be 'brief'.", "chat_arguments": {"thinking": "?"}}
    problems = {**settings["problems"], "prompt": prompt}
    settings = {**settings, "kind": "rule", "problems": problems, "policy": {"model": str(folder)}}
    trainer, checkpoint = _train(settings, steps=1)
    card = (checkpoint / "policy" / "README.md").read_text()
    _, code = _parts(card)
    names = _run(code, checkpoint, monkeypatch)
    encoder = trainer.parts.prompt_encoder
    assert encoder.chat == chat
    assert names["inputs"]["input_ids"][0].tolist() == encoder.encode(Problem("p", "What is 3 + 4?", "7"))
    assert isinstance(names["completion"], str)
    assert "grpo, ppo_clip, token_mean" in card
    assert not (checkpoint / "reward_model").exists()


@pytest.mark.slow
def test_a_resumed_run_writes_the_same_cards(with_card, tmp_path):
    _, whole = _train(with_card)
    again = {**with_card, "output_dir": str(tmp_path / "again")}
    _train({**again, "checkpoint": {"every": 1}}, steps=1)
    _, resumed = _train({**again, "checkpoint": {"every": 1}}, resume=True)
    for name in ("policy", "reward_model"):
        assert (whole / name / "README.md").read_bytes() == (resumed / name / "README.md").read_bytes()


@pytest.mark.parametrize(
    "card", first_fast(["no header", "---\n: :[\n---\nodd", "---\n- 1\n---\nlist", b"\xff\xfe bytes"])
)
def test_a_card_that_no_machine_can_read_does_no_harm(with_card, card):
    (Path(with_card["reward_model"]["model"]) / "README.md").write_bytes(
        card if isinstance(card, bytes) else card.encode()
    )
    _, checkpoint = _train(with_card, steps=1)
    header, _ = _parts((checkpoint / "reward_model" / "README.md").read_text())
    assert "license" not in header
