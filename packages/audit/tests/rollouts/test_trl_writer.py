"""What TRL's own trainer writes with `log_completions`, with batches that are reused and evaluations between them, and
what it sends to Weights & Biases, which keeps it on disk."""

from typing import Any

import pytest

from cooper_audit.rollouts import Options, audit
from cooper_audit.rollouts.reading import Source, read_steps
from cooper_audit.rollouts.references import References
from cooper_lab.arithmetic.problems import arithmetic_problems
from cooper_verify.rules.kinds.exact import ExactRule

pytest.importorskip("trl", reason="needs the extra trl")
pytestmark = pytest.mark.slow
STEPS, BATCH, EVALUATED = 6, 8, 4


def longer(completions, **_):
    return [len(text) / 10 for text in completions]


def sometimes(completions, **_):
    return [1.0 if place % 2 else None for place in range(len(completions))]


@pytest.mark.parametrize("every", [1, 3, 5])
def test_its_parquet_reads_as_rows_of_each_step_that_was_logged(tmp_path, tiny_models, monkeypatch, every):
    from datasets import Dataset
    from transformers import AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer  # pyright: ignore[reportPrivateImportUsage]

    wandb = pytest.importorskip("wandb", reason="needs the extra wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    problems = {split: arithmetic_problems(split, 16) for split in ("train", "test")}
    data = {
        split: Dataset.from_list([{"prompt": one.question + "\n"} for one in problems[split]]) for split in problems
    }
    settings = {
        **{"output_dir": str(tmp_path / "run"), "max_steps": STEPS, "logging_steps": every, "log_completions": True},
        **{
            "per_device_train_batch_size": BATCH,
            "num_generations": 4,
            "max_completion_length": 12,
            "num_iterations": 2,
        },
        **{"eval_strategy": "steps", "eval_steps": EVALUATED, "per_device_eval_batch_size": 4, "save_strategy": "no"},
        **{
            "report_to": ["wandb"],
            "use_cpu": True,
            "bf16": False,
            "gradient_checkpointing": False,
            "disable_tqdm": True,
        },
    }
    rewards: list[Any] = [longer, sometimes]
    trainer = GRPOTrainer(
        model=str(tiny_models / "policy"),
        reward_funcs=rewards,
        args=GRPOConfig(**settings),
        train_dataset=data["train"],
        eval_dataset=data["test"],
        processing_class=AutoTokenizer.from_pretrained(tiny_models / "policy"),
    )
    with wandb.init(dir=tmp_path, project="audit"):
        trainer.train()
    wandb.teardown()  # other tests of this process inherit no service
    source = Source()
    steps = dict(read_steps([tmp_path / "run" / "completions"], source))
    assert source.format is not None
    assert (source.format.name, source.rewards) == ("trl", ["longer", "sometimes"])
    logged = {step for step in range(1, STEPS + 1) if step % every == 0 or step % EVALUATED == 0}
    assert set(steps) <= logged | {STEPS}, "the end of the training is logged too"
    if every == 1:
        assert source.left_out["a batch that was logged again"] >= BATCH
    for row in (row for rows in steps.values() for row in rows):
        assert row.reward - len(row.answer.text) / 10 in (pytest.approx(0.0, abs=1e-5), pytest.approx(1.0))
    answers = {one.question + "\n": one.answer for split in problems for one in problems[split]}
    options = Options(ExactRule(), references=References(answers))
    result = audit([tmp_path / "run" / "completions"], tmp_path / "audit", options)
    assert result.checked == sum(map(len, steps.values()))
    tracked = dict(read_steps([tmp_path / "wandb"], Source()))
    assert said(tracked) == said(steps) != {}


def said(steps):
    """The rows of steps without an evaluation, which overwrites the Parquet. In the tracker it is a further table."""
    return {
        step: [(row.prompt, row.answer.text, row.reward, row.advantage) for row in rows]
        for step, rows in steps.items()
        if step not in (EVALUATED, STEPS)
    }
