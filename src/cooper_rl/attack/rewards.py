"""The rewards that can be attacked: Cooper's own, judges, the service and rubrics, behind one method."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

from cooper_rl.config.base import mapping_of, merge, records_within
from cooper_rl.config.strict_yaml import parse_yaml
from cooper_rl.config.user_functions import added, load_added, load_object, source_file
from cooper_rl.config_checking import Settings, check_settings, read_settings, with_overrides
from cooper_rl.data.answer import Answer, AnswerGroup
from cooper_rl.data.labelled import LabelledCompletion
from cooper_rl.data.loading import load_problems
from cooper_rl.data.problem import Problem
from cooper_rl.engines.config import LearnerConfig, ScorerConfig
from cooper_rl.engines.model_folder import check_reward_model_folder, local_folder
from cooper_rl.errors import InputError, MissingExtraError
from cooper_rl.rewards.kinds.function import FunctionRewardConfig
from cooper_rl.rewards.kinds.plain import RewardModelReward, RuleReward, check_problems
from cooper_rl.rules.verifier import Verifier
from cooper_rl.run_config import RunConfig
from cooper_rl.service.client import RewardClient, UnavailableError
from cooper_rl.verifyrm.config import JudgeConfig, read_judge

WRITTEN = (
    "rule, rule:KIND, the folder of a reward model, package.module:function, file.py:function, a YAML file with "
    "`judge:` or with the rewards of a run, http://host:port of `cooper serve`, or verifiers:ENVIRONMENT"
)
PATIENCE_S = 10.0
"""Seconds for which a service that does not answer is asked again."""
NO_POLICY = "-"
"""The policy of settings that only name a reward."""
EMBEDDED: dict[str, Any] = {"source": "arithmetic", "split": "test"}
"""The problems of an attack where nobody names others."""
READING = ScorerConfig.model_fields.keys() - LearnerConfig.model_fields.keys() | {"model", "attention", "autocast"}
"""Settings of a reward model that decide its scores. The others are for a repair."""
Asked = tuple[Problem, str]
"""A problem and a completion."""


class AttackedReward(ABC):
    """A reward under attack."""

    accepts_above: float | None = None
    """The score above which an answer is accepted; None for a reward whose scale nobody knows."""

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        self.name = name
        """How the user wrote it."""
        self.settings = {"reward": name, **settings}
        """What decides its scores, as JSON values: an attack is continued only if these are the same."""

    @abstractmethod
    def scores(self, asked: Sequence[Asked]) -> list[float | None]:
        """One score for each, in order; None where a server did not answer. Answers to a problem stand together."""

    def close(self) -> None:
        """Release processes and connections."""
        return


class CooperAttacked(AttackedReward):
    """A reward that a run of Cooper could pay: the rule, a reward model, a function, and their sums and shapings."""

    def __init__(self, name: str, config: RunConfig) -> None:
        """Loads the reward model, if there is one."""
        from cooper_rl.stage2.cooper_reward import CooperReward  # noqa: PLC0415 - torch, after bad input is reported

        super().__init__(name, _what_decides(config))
        plain = [type(part) in (RuleReward, RewardModelReward) and part.weight == 1 for part in config.rewards]
        if plain == [True] and not config.shaping:
            self.accepts_above = 0.5
        self._reward = CooperReward.from_config(config, total_steps=1)

    def scores(self, asked: Sequence[Asked]) -> list[float | None]:
        scored = self._reward.score(_groups(asked), train=False)
        return [float(reward) for row in scored.rewards for reward in row]

    def close(self) -> None:
        self._reward.close()


class AttackedJudge(AttackedReward):
    """A language model that writes a verdict. It is loaded, or its server checked, when it is first asked."""

    accepts_above = 0.5

    def __init__(self, name: str, config: JudgeConfig) -> None:
        from cooper_rl.verifyrm.methods import JudgeMethod  # noqa: PLC0415 - as above

        self._judge = JudgeMethod(config)
        super().__init__(name, self._judge.settings())

    def scores(self, asked: Sequence[Asked]) -> list[float | None]:
        rows = [LabelledCompletion(problem.question, problem.answer, text, 0.0) for problem, text in asked]
        return [None if opinion.failed else opinion.score for opinion in self._judge.opinions(rows)]

    def close(self) -> None:
        self._judge.close()


class AttackedService(AttackedReward):
    """`cooper serve`. It scores the answers as those of an evaluation, from which it never learns."""

    def __init__(self, url: str) -> None:
        """Raises InputError if it cannot be reached. The token is that in COOPER_TOKEN."""
        self._client = RewardClient(url, timeout_s=PATIENCE_S)
        try:
            version = self._client.info()["version"]
        except UnavailableError as error:
            raise InputError(f"{url}: {error}; start `cooper serve`, or give a judge as a YAML file") from error
        super().__init__(url, {"version": version})

    def scores(self, asked: Sequence[Asked]) -> list[float | None]:
        return [reward for row in self._client.score(_groups(asked), train=False).rewards for reward in row]

    def close(self) -> None:
        self._client.close()


class AttackedRubric(AttackedReward):
    """A rubric of verifiers (0.1.9 to 0.3): it scores groups of states, the answers to one problem."""

    def __init__(self, name: str, rubric: Any) -> None:
        super().__init__(name, {"functions": [getattr(part, "__name__", repr(part)) for part in rubric.funcs]})
        self._rubric = rubric

    def scores(self, asked: Sequence[Asked]) -> list[float | None]:
        return [float(score) for group in _groups(asked) for score in asyncio.run(self._of_group(group))]

    async def _of_group(self, group: AnswerGroup) -> list[Any]:
        problem = group.problem
        prompt = problem.messages or [{"role": "user", "content": problem.question}]
        states = [
            {
                "prompt": prompt,
                "completion": [{"role": "assistant", "content": answer.text}],
                "answer": problem.answer,
                "info": problem.metadata,
                "task": problem.metadata.get("task", "default"),
                "trajectory": [],
            }
            for answer in group.answers
        ]
        await self._rubric.score_group(states)
        return [state["reward"] for state in states]


def attack_settings(
    reward: str,
    problems: str | None = None,
    settings: Sequence[str] = (),
    chats: bool | None = None,
    more: dict[str, Any] | None = None,
) -> RunConfig:
    """The settings of a run that pays this reward, as `cooper attack` has them.

    `reward` is one of `WRITTEN`; for a judge, the service and a rubric the run pays the rule. `problems` is a file or a
    data set, by default the embedded arithmetic problems that no run trains on. `settings` ("problems.format=gsm8k")
    win over all, `more` over the reward's. `chats` is that of a function in TRL's style. Raises InputError for anything
    that does not fit.
    """
    values = merge(merge({"policy": {"model": NO_POLICY}}, _paid(reward, chats)), more or {})
    if problems is not None:
        values["problems"] = {"source": problems}
    asked = mapping_of(values.get("problems")) | mapping_of(with_overrides({}, settings).get("problems"))
    if "source" not in asked:
        values["problems"] = EMBEDDED | mapping_of(values.get("problems"))
    config = check_settings(RunConfig, Settings(with_overrides(values, settings), reward, overrides=settings))
    for scorer in config.scorers:
        check_reward_model_folder(scorer.model, scorer.kind)
    return config


def _paid(reward: str, chats: bool | None) -> dict[str, Any]:
    """The settings of a run that say what it pays."""
    if is_elsewhere(reward):
        return {"kind": "rule"}
    kind, colon, rest = reward.partition(":")
    if kind == "rule":
        try:
            rule = parse_yaml(rest)[0] if colon else "maths"
        except ValueError as error:
            raise InputError(f"{reward}: {error}") from error
        return {"kind": "rule", "rule": rule if isinstance(rule, dict) else {"kind": rest.strip() or "maths"}}
    if _is_yaml(reward):
        return read_settings(reward).values
    if colon:
        return {"kind": "function", "rewards": [{"kind": "function", "function": reward, "chats": chats}]}
    if "/" not in reward and not Path(reward).is_dir():
        raise InputError(f"{reward}: no such reward; write {WRITTEN}")
    return {"kind": "static", "reward_model": {"model": reward}}


def _is_yaml(reward: str) -> bool:
    return reward.endswith((".yaml", ".yml"))


def is_elsewhere(reward: str) -> bool:
    """Whether the reward is not one that a run of Cooper can pay: a judge, the service or a rubric."""
    if reward.startswith(("http://", "https://", "verifiers:")):
        return True
    if _is_yaml(reward):
        return "judge" in read_settings(reward).values
    return ":" in reward and reward.partition(":")[0] != "rule" and _is_rubric(load_object(reward, "function"))


def _is_rubric(found: Any) -> bool:
    return hasattr(found, "score_group") and hasattr(found, "funcs")


def open_reward(reward: str, config: RunConfig) -> AttackedReward:
    """The reward, ready to score. `config` is that of `attack_settings`. Raises InputError for one that is not there,
    and MissingExtraError for a rubric without verifiers."""
    if not is_elsewhere(reward):
        return CooperAttacked(reward, config)
    if _is_yaml(reward):
        return AttackedJudge(reward, read_judge(Path(reward)))
    if reward.startswith("verifiers:"):
        return AttackedRubric(reward, _rubric_of(reward.partition(":")[2]))
    return AttackedService(reward) if "://" in reward else AttackedRubric(reward, load_object(reward))


def _rubric_of(environment: str) -> Any:
    try:
        import verifiers  # noqa: PLC0415 # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingExtraError("a rubric needs verifiers: pip install 'verifiers>=0.1.9,<0.4'") from error
    if not hasattr(verifiers, "load_environment"):
        raise InputError(f"verifiers:{environment}: this version has no rubrics; install 'verifiers>=0.1.9,<0.4'")
    rubric = verifiers.load_environment(environment).rubric
    if not _is_rubric(rubric):
        raise InputError(f"verifiers:{environment}: its rubric has no score_group; install 'verifiers>=0.1.9,<0.4'")
    return rubric


def world_settings(source: str) -> Callable[..., dict[str, Any]] | None:
    """The function of (name, output_dir, seed, chosen) that gives the settings with which a made world trains its
    embedded policy; None if the world has none. It is `RUN_SETTINGS` in the world's module."""
    if source not in added("problems"):
        return None
    made = load_added("problems", source)
    return getattr(import_module(made.__module__), "RUN_SETTINGS", None)


def read_attack_problems(config: RunConfig) -> list[Problem]:
    """The problems of an attack. Where the reward reads references, those that do not verify are left out, as in a run.

    Raises InputError as `load_problems` does, and for a problem that lacks what a function takes.
    """
    with Verifier(config.rule, config.rules) as verifier:
        problems = load_problems(config.problems, verifier if config.needs_references else None).problems
    check_problems((*config.rewards, *config.shaping), problems)
    return problems


def _groups(asked: Sequence[Asked]) -> list[AnswerGroup]:
    return [
        AnswerGroup(f"{number:06d}", problem, [Answer(text) for _, text in rows])
        for number, (problem, rows) in enumerate(groupby(asked, key=lambda row: row[0]))
    ]


def _what_decides(config: RunConfig) -> dict[str, Any]:
    """What decides the scores of a run's reward, with the state of the files that it names."""
    values = config.model_dump(mode="json", include={"rewards", "shaping", "reward_model", "rule", "rules"})
    values["reward_model"] = {name: value for name, value in (values["reward_model"] or {}).items() if name in READING}
    functions = [part.function for part in records_within(config.parts) if isinstance(part, FunctionRewardConfig)]
    files = [path for function in functions if (path := source_file(function)) is not None]
    for scorer in config.scorers:
        folder = local_folder(scorer.model)
        files += sorted(folder.glob("*.safetensors")) if folder is not None else []
    values["files"] = {str(path): [path.stat().st_size, path.stat().st_mtime_ns] for path in files}
    return values
