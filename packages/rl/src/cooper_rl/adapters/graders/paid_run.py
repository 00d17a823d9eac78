"""The settings of a run that pays a written grader, for what trains against it or with it."""

from collections.abc import Sequence
from typing import Any

from cooper_base.config.base import mapping_of, merge
from cooper_base.config.checking import Settings, check_settings, read_settings, with_overrides
from cooper_base.errors import InputError
from cooper_rl.engines.model_folder import check_reward_model_folder
from cooper_rl.reward.kinds.plain import RewardModelReward, RuleReward
from cooper_rl.run_config import RunConfig
from cooper_verify.graders.written import form_of, rule_settings_in

NO_POLICY = "-"
"""The policy of settings that only name a reward."""
EMBEDDED: dict[str, Any] = {"source": "arithmetic", "split": "test"}
"""The problems of settings that name none: those of the embedded world that no run trains on."""


def paid_run(
    written: str,
    problems: str | None = None,
    settings: Sequence[str] = (),
    chats: bool | None = None,
    more: dict[str, Any] | None = None,
) -> RunConfig:
    """The settings of a run that pays this grader, one of `WRITTEN`.

    `problems` is a file or a data set. `settings` ("problems.format=gsm8k") win over all, `more` over the grader's.
    `chats` is that of a function in TRL's style. Raises InputError for anything that does not fit, and for a grader
    that only stands in a list of rewards: a judge, the service, a rubric, a grader of the user's own.
    """
    values = merge(merge({"policy": {"model": NO_POLICY}}, _paid(written, chats)), more or {})
    if problems is not None:
        values["problems"] = {"source": problems}
    given = mapping_of(values.get("problems")) | mapping_of(with_overrides({}, settings).get("problems"))
    if "source" not in given:
        values["problems"] = EMBEDDED | mapping_of(values.get("problems"))
    config = check_settings(RunConfig, Settings(with_overrides(values, settings), written, overrides=settings))
    for scorer in config.scorers:
        check_reward_model_folder(scorer.model, scorer.kind)
    return config


def _paid(written: str, chats: bool | None) -> dict[str, Any]:
    """The settings of a run that say what it pays."""
    form = form_of(written)
    if form == "rule":
        return {"kind": "rule", **rule_settings_in(written).values}
    if form == "run":
        return read_settings(written).values
    if form == "function":
        return {"kind": "function", "rewards": [{"kind": "function", "function": written, "chats": chats}]}
    if form == "reward_model":
        return {"kind": "static", "reward_model": {"model": written}}
    raise InputError(
        f"{written}: a policy is trained against the rewards of a run; write kind: function and rewards: [{written!r}] "
        "into a YAML file, and give that"
    )


def pays_plainly(config: RunConfig) -> bool:
    """Whether the run pays the rule's verdict or the reward model's probability and nothing else."""
    plain = [type(part) in (RuleReward, RewardModelReward) and part.weight == 1 for part in config.rewards]
    return plain == [True] and not config.shaping
