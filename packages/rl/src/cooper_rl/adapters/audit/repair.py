"""Trains a reward model on what an attack found in it, and attacks it again on patterns and problems kept apart."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

from cooper_audit.attack.attack import PLAIN, PLAIN_WRONG, AttackAnswer, AttackResult, draw_answers, summarise
from cooper_audit.attack.results import REPAIR_STEPS, FoundCompletion, Repair
from cooper_audit.attack.wrong_answers import FAMILIES
from cooper_base.data.answer import Answer, AnswerGroup
from cooper_base.errors import InputError
from cooper_base.files.durable import check_name, delete, read_fields, write_text
from cooper_base.files.folder_lock import FileLock
from cooper_base.files.hashes import content_hash
from cooper_base.files.owned_folder import check_new, new_folder
from cooper_rl.adapters.graders.paid_run import paid_run
from cooper_rl.adapters.graders.run_reward import RunReward
from cooper_rl.engines.model_folder import weight_files
from cooper_rl.run_config import RunConfig
from cooper_verify.grader import Asked, hashes_of

PROBLEMS_PER_STEP = 16
MOST_FOUND = 200
"""Completions of each kind that a policy found, at most, that the repair and its measurement use."""
FOUND = "found: "
"""The beginning of the names of patterns that a policy found. What follows is the kind, which may be a family too."""
MADE_FROM = "repaired.json"
"""The file of a repaired model that says, as a hash, of which model, attack and settings it is the repair."""
OnStep = Callable[[int, dict[str, float]], None]


def prepared_repair(
    reward: str, folder: Path, problems: str | None = None, settings: Sequence[str] = ()
) -> Callable[..., Repair]:
    """`repair` with settings of cooptimization that are checked now, for `cooper attack --repair`: pairs of a right
    answer and the wrong ones that score highest, with the answers' own labels as verdicts. Raises InputError for
    anything that is no reward model, and for a `folder` that holds anything but a repair."""
    _check_free(folder)
    if paid_run(reward, problems, settings).kind != "static":
        raise InputError(f"{reward}: --repair trains the folder of a reward model; no other reward learns")
    pairs = {"kind": "cooper_model", "cooptimization": {"pairs": [{"kind": "on_policy"}]}}
    return partial(repair, paid_run(reward, problems, settings, more=pairs))


def repair(
    config: RunConfig,
    result: AttackResult,
    folder: Path,
    steps: int = REPAIR_STEPS,
    found: Sequence[FoundCompletion] = (),
    plain: str = PLAIN,
    on_step: OnStep | None = None,
) -> Repair:
    """Write a repaired model into `folder`, and attack it again. Where that attack finds wrong answers that are
    accepted more often than before, the repair is refused, and no model stays in `folder`.

    `result` is the attack on the model as it is; `found` are completions that a policy found, which are a family of
    patterns for each kind. Half of the problems go into the repair, with every other family of wrong patterns, by the
    share that is accepted, plain wrong answers and two of three right ones; the second attack is on the other problems.
    A repair that was interrupted after its model was written goes on. Raises InputError for a folder in use, for one
    that holds the repair of something else, and for an attack that found nothing.
    """
    from cooper_rl.engines.local.device import set_threads  # noqa: PLC0415 - torch, after bad input is reported
    from cooper_rl.reward.cooper_reward import CooperReward  # noqa: PLC0415

    _check_free(folder)
    answers = [*result.answers, *_found_answers(found, plain, config.seed)]
    ids = [*dict.fromkeys(answer.problem.id for answer in answers)]
    seen = {*Random(f"repair {config.seed}").sample(ids, len(ids) // 2)}
    learned = _learned_patterns(answers, result)
    taught = [answer for answer in answers if answer.problem.id in seen and answer.pattern in learned]
    if not any(result.accepts(answer) for answer in taught if not answer.right):
        raise InputError(f"{result.reward}: the attack found too little to repair")
    groups = _groups(taught)
    set_threads(config.threads)
    made_from = _made_from(config, taught, steps)
    if not _is_repaired(folder, made_from):
        with new_folder(folder) as aside, CooperReward.from_config(config, total_steps=steps) as reward:
            order, count = Random(f"repair's order {config.seed}"), min(PROBLEMS_PER_STEP, len(groups))
            for step in range(1, steps + 1):
                updated = reward.update(reward.score(order.sample(groups, count), step=step))
                if on_step is not None:
                    on_step(step, updated.metrics)
            assert reward.learning is not None
            reward.learning.learner.save(aside)
            delete(aside / "trainer_state")  # the optimizer, from which nobody continues
            write_text(aside / MADE_FROM, json.dumps({"made_from": made_from}))
    kept = [answer for answer in answers if answer.problem.id not in seen and (answer.score is not None)]
    before, after = _attacks(config, kept, folder, result)
    repaired = Repair(folder, steps, len(groups), learned, before, after)
    if repaired.risen:
        delete(folder)
    return repaired


def _check_free(folder: Path) -> None:
    check_name(folder)
    if not (folder / MADE_FROM).is_file():
        check_new(folder)
        FileLock(folder).close()  # nobody else is writing it


def _made_from(config: RunConfig, taught: Sequence[AttackAnswer], steps: int) -> str:
    """A hash of all that decides the repaired weights: the model's files, the settings and the answers."""
    assert config.reward_model is not None
    files = hashes_of(weight_files(config.reward_model.model))
    answers = [[answer.pattern, answer.problem.id, answer.problem.question, answer.text] for answer in taught]
    values = [config.model_dump(mode="json"), [*files.values()], answers, steps]
    return content_hash(json.dumps(values, default=str).encode())


def _is_repaired(folder: Path, made_from: str) -> bool:
    """Whether the folder holds this repair already. Raises InputError if it holds that of something else."""
    if not (folder / MADE_FROM).exists():
        return False
    if read_fields(folder / MADE_FROM, {"made_from": str}, "remove the folder")["made_from"] != made_from:
        raise InputError(
            f"{folder}: already in use, by the repair of another model, attack or settings; choose another folder for "
            "the repaired model"
        )
    return True


def _found_answers(found: Sequence[FoundCompletion], plain: str, seed: int) -> list[AttackAnswer]:
    """What a policy found, with right answers to the same problems beside it, which nobody has scored."""
    problems = {completion.problem.id: completion.problem for completion in found}
    if len({problem.answer for problem in problems.values()}) < 2:
        return []
    counts: dict[str, int] = {}
    drawn = draw_answers([*problems.values()], len(problems), seed, [plain])
    answers = [answer for answer in drawn if answer.right]
    for completion in found:
        counts[completion.kind] = counts.get(completion.kind, 0) + 1
        if counts[completion.kind] <= MOST_FOUND:
            answers.append(
                AttackAnswer(
                    f"{FOUND}{completion.kind}", completion.problem, completion.text, False, score=completion.reward
                )
            )
    return sorted(answers, key=lambda answer: answer.problem.id)


def _learned_patterns(answers: Sequence[AttackAnswer], result: AttackResult) -> frozenset[str]:
    """The patterns for the repair: every other family of wrong ones, plain wrong answers, and two of three right ones.

    Families are ordered by the share that is accepted, so that both sides have what the reward is gamed by. That the
    answer of another problem is wrong is no exploit but the reward's task, which a repair must not cost.
    """
    family_of = {name: family for family, names in FAMILIES.items() for name in names}
    wrong = {
        answer.pattern: family_of.get(answer.pattern, answer.pattern.removeprefix(FOUND))
        for answer in answers
        if not answer.right
    }
    shares: dict[str, list[bool]] = {}
    for answer in answers:
        if not answer.right:
            shares.setdefault(wrong[answer.pattern], []).append(result.accepts(answer))
    order = sorted(shares, key=lambda family: -sum(shares[family]) / len(shares[family]))
    families = {*order[::2], family_of[PLAIN_WRONG]}
    right = [*dict.fromkeys(answer.pattern for answer in answers if answer.right)]
    learned = [name for name, family in wrong.items() if family in families]
    return frozenset([*learned, *(name for place, name in enumerate(right) if place % 3 < 2)])


def _groups(answers: Sequence[AttackAnswer]) -> list[AnswerGroup]:
    """A group for each problem, with the labels as verdicts from outside: nobody has to check them."""
    by_problem: dict[str, list[AttackAnswer]] = {}
    for answer in answers:
        by_problem.setdefault(answer.problem.id, []).append(answer)
    return [
        AnswerGroup(
            id,
            rows[0].problem,
            [Answer(answer.text, verdict="correct" if answer.right else "wrong") for answer in rows],
        )
        for id, rows in by_problem.items()
    ]


def _attacks(
    config: RunConfig, answers: Sequence[AttackAnswer], folder: Path, result: AttackResult
) -> tuple[AttackResult, AttackResult]:
    """The attack with the scores as they are, and with those of the repaired model."""
    assert config.reward_model is not None
    model = config.reward_model.model_copy(update={"model": str(folder), "learns": False})
    reward = RunReward(str(folder), config.model_copy(update={"kind": "static", "reward_model": model}))
    try:
        opinions = reward.grade([Asked(answer.problem, answer.text) for answer in answers])
        again = [replace(answer, score=opinion.score) for answer, opinion in zip(answers, opinions, strict=True)]
        before, after = (summarise(reward, rows, result.accepts_above, result.forms) for rows in (answers, again))
        return replace(before, reward=result.reward, threshold=result.threshold), replace(
            after, threshold=result.threshold
        )
    finally:
        reward.close()
