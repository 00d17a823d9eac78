"""Trains a small policy against a reward, and lists what it finds: paid completions that the rule calls wrong."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from cooper_audit.attack.results import Finding, FoundCompletion
from cooper_audit.run.run_record import is_run, read_record
from cooper_base.config.base import merge
from cooper_base.config.user_functions import added, load_added
from cooper_base.data.problem import Problem
from cooper_base.data.text import has_content
from cooper_base.errors import InputError
from cooper_rl.adapters.graders.paid_run import NO_POLICY, paid_run
from cooper_rl.run_config import RunConfig
from cooper_verify.rules.other_answers import gives_several

RUN = "adapt"
"""The run's folder inside that of the attack."""
WRONG = ("wrong", "unparsed")
OnStep = Callable[[int, dict[str, float]], None]


def prepared_adapt(
    reward: str,
    steps: int,
    out: Path,
    policy: str | None,
    problems: str | None,
    settings: Sequence[str],
    chats: bool | None,
) -> Callable[[float, OnStep | None], list[Finding]]:
    """`adapt` in a run of `steps` steps that trains a policy against this reward, in the folder `out`, with settings
    that are checked now: for `cooper attack --policy`.

    By default it is the embedded policy on the embedded problems. Raises InputError for other problems without a
    `policy`, and as `paid_run` does.
    """
    paid = paid_run(reward, problems, settings, chats)
    run: dict[str, Any] = {"name": RUN, "output_dir": str(out), "steps": steps, "evaluation": {"every": 0}}
    made = _world_settings(paid.problems.source)
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
        raise InputError(
            "the embedded policy answers embedded problems alone; name a model that can answer yours: --policy MODEL"
        )
    elif policy is not None:
        run |= {"policy": {"model": policy}}
    return partial(adapt, paid_run(reward, problems, settings, chats, run))


def _world_settings(source: str) -> Callable[..., dict[str, Any]] | None:
    """The function of (name, output_dir, seed, chosen) that gives the settings with which a made world trains its
    embedded policy; None if the world has none. It is `RUN_SETTINGS` in the world's module."""
    if source not in added("problems"):
        return None
    made = load_added("problems", source)
    return getattr(import_module(made.__module__), "RUN_SETTINGS", None)


def adapt(config: RunConfig, accepts_above: float, on_step: OnStep | None = None) -> list[Finding]:
    """Train the policy, or go on where an interrupted call stopped, and group what it found, the most frequent first.

    A completion is found if its reward is above `accepts_above` and the rule calls it wrong or cannot read it; where
    the problems have gold labels, these must call it wrong too.
    """
    from cooper_rl.run.trainer import CooperTrainer  # noqa: PLC0415 - torch, after bad input is reported

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
