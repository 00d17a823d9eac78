"""What a run of Cooper pays as a grader: rewards, their sums and their shapings."""

import math
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from cooper_base.config.base import records_within
from cooper_base.config.user_functions import source_file
from cooper_base.data.answer import Answer, AnswerGroup
from cooper_base.data.problem import Problem
from cooper_rl.adapters.graders.config import READING
from cooper_rl.adapters.graders.paid_run import paid_run, pays_plainly
from cooper_rl.engines.model_folder import weight_files
from cooper_rl.reward.kinds.function import FunctionRewardConfig
from cooper_rl.reward.kinds.grader import GraderRewardConfig
from cooper_rl.reward.reward_config import comparing_part
from cooper_rl.run_config import RunConfig
from cooper_verify.grader import Asked, Grader, Opinion, hashes_of
from cooper_verify.graders.written import open_grader

if TYPE_CHECKING:
    from cooper_rl.reward.cooper_reward import CooperReward


class RunReward(Grader):
    """The reward of a run. Its models load when it is first asked."""

    def __init__(self, name: str, config: RunConfig) -> None:
        self.name = name
        self.accepts_above = 0.5 if pays_plainly(config) else None
        self.reads_reference = config.needs_references
        self.gives_verdicts = self.accepts_above is not None
        self.compares_answers = comparing_part(config.rewards, config.shaping) is not None
        self._config = config
        self._reward: CooperReward | None = None

    def settings(self) -> dict[str, Any]:
        """What decides the reward, with the contents of the files that it names."""
        config = self._config
        values = config.model_dump(mode="json", include={"rewards", "shaping", "reward_model", "rule", "rules"})
        model = values["reward_model"] or {}
        values["reward_model"] = {name: value for name, value in model.items() if name in READING}
        functions = [part.function for part in records_within(config.parts) if isinstance(part, FunctionRewardConfig)]
        files = [path for function in functions if (path := source_file(function)) is not None]
        graders = [part.kind for part in records_within(config.parts) if isinstance(part, GraderRewardConfig)]
        if graders:
            values["graders"] = [open_grader(written).settings() for written in graders]
        for scorer in config.scorers:
            files += weight_files(scorer.model)
        return {"kind": "run", **values, "files": hashes_of(files)}

    def check(self, problems: Sequence[Problem]) -> None:
        for part in (*self._config.rewards, *self._config.shaping):
            part.check_problems(problems)

    def grade(self, answers: Sequence[Asked], /) -> list[Opinion]:
        """What the run pays; with a verdict if it pays the rule's or the reward model's probability alone."""
        scored = self._opened().score(groups_of(answers), train=False)
        return [self._opinion(float(reward)) for row in scored.rewards for reward in row]

    def close(self) -> None:
        if self._reward is not None:
            self._reward.close()
            self._reward = None

    def _opened(self) -> "CooperReward":
        if self._reward is None:
            from cooper_rl.engines.local.device import set_threads  # noqa: PLC0415 - torch, after bad input is reported
            from cooper_rl.reward.cooper_reward import CooperReward  # noqa: PLC0415

            set_threads(self._config.threads)
            self._reward = CooperReward.from_config(self._config, total_steps=1)
        return self._reward

    def _opinion(self, reward: float) -> Opinion:
        if math.isnan(reward):
            return Opinion("silent", None)
        if self.accepts_above is None:
            return Opinion("silent", reward)
        return Opinion("correct" if reward > self.accepts_above else "wrong", reward)


def groups_of(answers: Sequence[Asked]) -> list[AnswerGroup]:
    """The answers to each problem, which stand together, as a group."""
    return [
        AnswerGroup(f"{number:06d}", problem, [Answer(text) for _, text in rows])
        for number, (problem, rows) in enumerate(groupby(answers, key=lambda asked: asked.problem))
    ]


def open_run(written: str, settings: Sequence[str]) -> RunReward:
    """The rewards of a run's YAML file, with settings of the run over it. Raises InputError for what does not fit."""
    return RunReward(written, paid_run(written, settings=settings))
