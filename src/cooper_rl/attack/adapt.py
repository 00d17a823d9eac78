"""Trains a small policy against a reward, and lists what it finds: paid completions that the rule calls wrong."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cooper_rl.attack.rewards import NO_POLICY, attack_settings, is_elsewhere, world_settings
from cooper_rl.config.base import merge
from cooper_rl.data.problem import Problem
from cooper_rl.data.text import has_content
from cooper_rl.errors import InputError
from cooper_rl.observe.run_record import is_run, read_record
from cooper_rl.rules.other_answers import gives_several
from cooper_rl.run_config import RunConfig

RUN = "adapt"
"""The run's folder inside that of the attack."""
WRONG = ("wrong", "unparsed")
OnStep = Callable[[int, dict[str, float]], None]


@dataclass(frozen=True)
class FoundCompletion:
    """A completion of the policy that the reward accepts and the rule does not."""

    step: int
    problem: Problem
    text: str
    reward: float
    kind: str


@dataclass(frozen=True)
class Finding:
    """What the policy found of one kind."""

    kind: str
    count: int
    share_of_last: float
    """The share of all completions of the run's last step."""
    first_step: int
    completions: list[FoundCompletion]
    """The different ones, the best paid first."""


def adapt_settings(
    reward: str,
    steps: int,
    out: Path,
    policy: str | None = None,
    problems: str | None = None,
    settings: Sequence[str] = (),
    chats: bool | None = None,
) -> RunConfig:
    """The run of `steps` steps in which a policy is trained against this reward, in the folder `out`.

    By default it is the embedded policy on the embedded problems. Raises InputError for other problems without a
    `policy`, and for a reward that no run can pay.
    """
    paid = attack_settings(reward, problems, settings, chats)
    if is_elsewhere(reward):
        raise InputError(f"{reward}: --adapt trains against what a run can pay; give its function, model or settings")
    run: dict[str, Any] = {"name": RUN, "output_dir": str(out), "steps": steps, "evaluation": {"every": 0}}
    made = world_settings(paid.problems.source)
    own_policy = policy is not None or paid.policy.model != NO_POLICY
    if not own_policy and made is not None:
        world = made(RUN, out, paid.seed, {})
        del world["test_problems"]
        model = world.pop("reward_model")
        if paid.reward_model is not None:
            world["reward_model"] = {name: value for name, value in model.items() if name != "model"}
        world["problems"]["split"] = "train"  # those of the attack are test problems
        run = merge(world, run)
        problems = None
    elif not own_policy:
        raise InputError("--adapt on problems of your own needs --policy, a model that can answer them")
    elif policy is not None:
        run |= {"policy": {"model": policy}}
    return attack_settings(reward, problems, settings, chats, run)


def adapt(config: RunConfig, accepts_above: float, on_step: OnStep | None = None) -> list[Finding]:
    """Train the policy, or go on where an interrupted call stopped, and group what it found, the most frequent first.

    A completion is found if its reward is above `accepts_above` and the rule calls it wrong or cannot read it; where
    the problems have gold labels, these must call it wrong too.
    """
    from cooper_rl.trainer import CooperTrainer  # noqa: PLC0415 - torch, after bad input is reported

    with CooperTrainer.from_config(config, resume=is_run(Path(config.output_dir) / config.name)) as trainer:
        trainer.fit(on_step=on_step)
        folder = trainer.directory
        if trainer.interrupted:
            raise KeyboardInterrupt
    return findings(folder, accepts_above)


def findings(run: Path, accepts_above: float) -> list[Finding]:
    """What the policy of a run found, by kind."""
    record = read_record(run)
    by_kind: dict[str, list[FoundCompletion]] = {}
    rows = [*record.rollouts()]
    last = [row for row in rows if row["step"] == rows[-1]["step"]]
    paid = [row for row in rows if row["reward"] > accepts_above and row["verdict"] in WRONG and not row.get("gold")]
    texts_of: dict[str, dict[str, None]] = {}
    for row in paid:
        texts_of.setdefault(row["answer"], {})[row["text"]] = None
    several = {
        (answer, text): gives
        for answer, texts in texts_of.items()
        for text, gives in zip(texts, gives_several([*texts], answer), strict=True)
    }
    for row in paid:
        kind = _kind(row, several[row["answer"], row["text"]])
        problem = Problem(row["problem"], row["question"], row["answer"])
        completion = FoundCompletion(row["step"], problem, row["text"], row["reward"], kind)
        by_kind.setdefault(kind, []).append(completion)
    found = [_finding(kind, completions, last) for kind, completions in by_kind.items()]
    return sorted(found, key=lambda finding: -finding.count)


def _kind(row: dict[str, Any], several: bool) -> str:
    if not has_content(row["text"]):
        return "nothing"
    if several:
        return "several answers"
    if row["stop_reason"] == "length":
        return "cut off"
    return "a wrong answer" if row["verdict"] == "wrong" else "no readable answer"


def _finding(kind: str, completions: list[FoundCompletion], last: list[dict[str, Any]]) -> Finding:
    different = {(completion.problem.id, completion.text): completion for completion in reversed(completions)}
    ranked = sorted(different.values(), key=lambda completion: (-completion.reward, completion.step))
    of_last = sum(completion.step == last[0]["step"] for completion in completions) / len(last)
    return Finding(kind, len(completions), of_last, min(completion.step for completion in completions), ranked)
