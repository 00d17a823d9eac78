"""What a run reads besides its models. All of it is checked before torch and transformers are imported.

Importing those two takes seconds; a mistyped file name should not.
"""

from dataclasses import dataclass

from cooper_rl.config.user_functions import load_function
from cooper_rl.cooptimization.negatives.assistant import Assistant, build_assistant
from cooper_rl.data.config import ProblemsConfig
from cooper_rl.data.labelled import LabelledCompletion, read_labelled
from cooper_rl.data.loading import load_problems
from cooper_rl.data.problem import Problem
from cooper_rl.engines.model_folder import check_model_folder, check_reward_model_folder
from cooper_rl.evaluation.monitor_rows import read_held_out
from cooper_rl.rewards.reward_function import RewardFunction
from cooper_rl.rewards.rule.routing import Verifier
from cooper_rl.run_config import RunConfig


@dataclass(frozen=True)
class Inputs:
    """Problems, labelled rows, and the two that judge them without a model of ours: rule verifier and assistant.

    `test_problems` are empty without an evaluation, `replayed` and `held_out` where no file is configured.
    """

    verifier: Verifier
    problems: list[Problem]
    test_problems: list[Problem]
    assistant: Assistant | None
    replayed: list[LabelledCompletion]
    held_out: list[LabelledCompletion]


def read_inputs(config: RunConfig) -> Inputs:
    """Read and check everything. Raises InputError for whatever a user can put right; see the readers.

    What takes least time is looked at first: files here before the hub, the hub before every reference answer.
    """
    for sink in config.sinks:
        sink.check()
    for reward in config.extra_rewards:
        RewardFunction(reward.function, reward.batched)
    verifier = Verifier(config.rule, config.rules)
    assistant = build_assistant(config.cooptimization, verifier) if config.trains_reward_model else None
    replay = config.cooptimization.replay.labelled if config.trains_reward_model else None
    replayed = read_labelled(replay) if replay else []
    held_out = read_held_out(config.monitor, replayed) if config.monitor is not None else []
    if config.uses_reward_model and config.reward_model is not None:
        check_reward_model_folder(config.reward_model.model)
    check_model_folder(config.policy.model)
    problems = _problems(config.problems, config, verifier)
    measured = config.test_problems if config.evaluation.every else None
    test_problems = _problems(measured, config, verifier) if measured is not None else []
    if assistant is not None:
        assistant.check()
    return Inputs(verifier, problems, test_problems, assistant, replayed, held_out)


def _problems(data: ProblemsConfig, config: RunConfig, verifier: Verifier) -> list[Problem]:
    if data.gold:
        load_function(data.gold, ("problem", "completion_text"))
    # Where the user's functions pay, the rule is a metric among others, and no reason to refuse a problem.
    if config.kind == "function":
        problems = load_problems(data, fault=None).problems
        verifier.check(problems)
        return problems
    return load_problems(data, verifier.fault).problems
