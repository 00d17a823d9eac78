"""A reward model that is trained on the check's labels of an audit: `cooper audit --retrain`."""

from collections.abc import Callable, Sequence
from functools import partial

from cooper_audit.rollouts.auditing import Audit, is_judged
from cooper_audit.rollouts.graders import Grade, RowToGrade, asked_of, check_texts, grade_of, groups_to_grade
from cooper_audit.rollouts.rollout import recorded, short_hash
from cooper_base.config.checking import Settings, check_settings, with_overrides
from cooper_base.data.labelled import LabelledCompletion, problem_key
from cooper_base.errors import InputError
from cooper_rl.adapters.graders.reward_model import RewardModelGrader
from cooper_rl.engines.model_folder import weight_files
from cooper_rl.verifyrm.config import VerifyRMConfig
from cooper_verify.grader import hashes_of

RETRAINED = "retrained"


def prepared_retraining(base: str, until: int, settings: Sequence[str]) -> Callable[[Audit], Grade]:
    """`retrained_grade` from the model `base`, with settings ("learning_rate=1e-4") that are checked now. Raises
    InputError for what does not fit."""
    values = with_overrides({"model": base}, settings)
    config = check_settings(VerifyRMConfig, Settings(values, "command line", overrides=settings))
    return partial(retrained_grade, config=config, until=until)


def retrained_grade(result: Audit, config: VerifyRMConfig, until: int) -> Grade:
    """A reward model that is trained on the check's labels of the steps up to `until`, on later steps of problems that
    it has not seen. What it would have paid for recorded answers is not what the policy would have become.

    Raises InputError where there are no such steps or labels of one class alone.
    """
    from cooper_rl.verifyrm.train import METRICS_FILE, train_verifyrm  # noqa: PLC0415 - torch, after bad input is told

    early = [
        row for row in recorded(result.directory, [s for s in result.steps if s <= until]) if is_judged(row["verdict"])
    ]
    check_texts(early)
    rows = [_labelled(row) for row in early]
    seen = {problem_key(row.question) for row in rows}
    later = recorded(result.directory, [step for step in result.steps if step > until])
    unseen = groups_to_grade(row for row in later if problem_key(row["question"]) not in seen)
    if not rows or not unseen:
        missing = "step up to it with labels" if not rows else "later step with other problems"
        raise InputError(
            f"--until {until}: there is no {missing}; the steps are {result.steps[0]} to {result.steps[-1]}"
        )
    weights = hashes_of(weight_files(config.model))
    learned = [f"{row.question}\0{row.answer}\0{row.completion}\0{row.label}" for row in rows]
    made_from = short_hash(config.model_dump_json(), *weights.values(), *learned)
    folder = result.directory / f"{RETRAINED}-{until}-{made_from}"
    if not (folder / METRICS_FILE).exists():
        train_verifyrm(config, rows, folder)
    grader = RewardModelGrader(config.model_copy(update={"model": str(folder)}), config.threads)
    path = result.directory / f"opinions-{folder.name}.jsonl"
    return grade_of(RETRAINED, grader, f"after step {until}, new problems", unseen, path)


def _labelled(row: RowToGrade) -> LabelledCompletion:
    asked = asked_of(row)
    label = float(row["verdict"] == "correct")
    return LabelledCompletion(asked.problem.question, asked.problem.answer, asked.completion, label)
