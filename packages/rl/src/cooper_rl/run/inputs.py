"""Reads everything a run needs besides its models, and checks it before torch and transformers are imported.

Those two take seconds to import, and a user should not have to wait that long to hear of a mistyped file name.
"""

import json
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from cooper_base.config.base import records_within
from cooper_base.config.user_functions import load_function
from cooper_base.data.labelled import LabelledCompletion
from cooper_base.data.problem import Problem, location
from cooper_base.errors import InputError
from cooper_rl.data.chat_rendering import chat_without_template
from cooper_rl.engines.model_folder import check_model_folder, lacks_chat_template
from cooper_rl.policy.environments.environment import Environments
from cooper_rl.reward.base import RewardConfig
from cooper_rl.reward.kinds.earned import EarnedConfig
from cooper_rl.reward.monitor_config import read_held_out
from cooper_rl.reward.reward_config import RewardInputs, read_reward_inputs, reads_environment, reads_model
from cooper_rl.run.callbacks import load_callback
from cooper_rl.run_config import RunConfig
from cooper_verify.problems.config import ProblemsConfig, same_form
from cooper_verify.problems.loading import load_problems
from cooper_verify.rules.verifier import Verifier

logger = logging.getLogger(__name__)


NOTED = 5
"""Most references that a note quotes."""


@dataclass(frozen=True)
class Inputs:
    """Problems, labelled rows and the inputs of the reward.

    `test_problems` has the problems of `test_problems` under the name "" and those of `more_test_problems` under their
    own. It is empty if the run has no evaluation, as is `held_out` if no file is configured.
    """

    reward: RewardInputs
    problems: list[Problem]
    test_problems: dict[str, list[Problem]]
    held_out: list[LabelledCompletion]
    environments: Environments | None
    """The environment of the rollouts, if there is one."""
    notes: dict[str, int] = field(default_factory=dict)
    """Notes on the data for the run's record: message → number of problems."""


def read_inputs(config: RunConfig) -> Inputs:
    """Read and check everything. Raises InputError for anything a user can put right; see the readers.

    Quick checks come first: local files before the hub, and the hub before the reference answers.
    """
    for sink in config.sinks:
        sink.check()
    for path in config.callbacks:
        load_callback(path)
    for learner in (config.policy, *config.scorers):
        if learner.lora is not None:
            learner.lora.check()
    reward = read_reward_inputs(config)
    held_out = read_held_out(config.monitor, reward.replayed) if config.monitor is not None else []
    check_model_folder(config.policy.model)
    _check_chat(config)
    config.engine.check(config.policy, config.rollout)
    path = config.rollout.environment
    environments = None if path is None else Environments(path)
    if environments is not None and reads_environment(config.parts) and not environments.has_reward:
        raise InputError(f"rewards: kind environment pays what get_reward() returns, and {path} has no such method")
    _say_what_is_alike(config)
    notes: dict[str, int] = {}
    problems = _problems(config.problems, "problems", config, reward.verifier, environments, notes)
    for name, data in config.more_problems.items():
        more = _problems(data, f"more_problems.{name}", config, reward.verifier, environments, notes)
        problems += [replace(problem, id=f"{name}/{problem.id}", set=name) for problem in more]
    if twice := [name for name, count in Counter(problem.id for problem in problems).items() if count > 1]:
        raise InputError(f"more_problems: the id {twice[0]!r} is used twice; rename the set")
    for part in (*config.rewards, *config.shaping, *config.pair_parts):
        part.check_problems(problems)
    _say_what_is_judged(config, problems, reward.verifier)
    _say_what_learns_nothing(config)
    if environments is not None:
        environments.check(problems[0])
    test_problems = {
        name: _problems(data, _test_section(name), config, reward.verifier, environments, notes)
        for name, data in config.test_sets.items()
    }
    for name, tested in test_problems.items():
        _say_what_is_trained_on(problems, tested, _test_section(name), notes)
    reward.check_servers(config)
    return Inputs(reward, problems, test_problems, held_out, environments, notes)


def _check_chat(config: RunConfig) -> None:
    """Log that prompts are plain text, without a chat template. Raises InputError where a set requires one."""
    if not lacks_chat_template(config.policy.model):
        return
    sets = {
        "problems": config.problems,
        **{f"more_problems.{name}": data for name, data in config.more_problems.items()},
    }
    for section, data in sets.items():
        if data.prompt.chat:
            raise chat_without_template(config.policy.model, f"{section}.prompt")
    if any(data.prompt.chat is None for data in sets.values()):
        logger.info("%s has no chat template, so it reads prompts as plain text", config.policy.model)


def _say_what_is_judged(config: RunConfig, problems: Sequence[Problem], verifier: Verifier) -> None:
    """Log what it means for the reward model that the rule judges all of the problems, some, or none."""
    silent = sum(not verifier.hears(problem) for problem in problems)
    if config.learns and any(isinstance(reward, EarnedConfig) for reward in config.rewards):
        solutions = "reference_solution" in config.cooptimization.positives
        if not silent:
            logger.info(
                "the rule judges all %d problems: kind: rule, at half the price, ended about as high in such worlds",
                len(problems),
            )
        elif silent == len(problems) and not (solutions and any(problem.solution for problem in problems)):
            logger.warning(
                "the rule judges none of the %d problems, so nothing is known to be right: the reward model has weight "
                "0, and the policy learns nothing. Give some problems a rule or verdicts of their own, or solutions "
                "(cooptimization.positives); kind: cooper_model pays a model that nothing has tested",
                len(problems),
            )
    if config.learns and not reads_model(config.rewards) and not _reads_rule(config.rewards):
        logger.warning(
            "kind: %s trains a reward model, but rewards pays neither it nor the rule, so it decides nothing. Leave "
            "rewards out, add {kind: earned} to them, or write kind: function, which trains no model",
            config.kind,
        )
    if silent and config.learns and not any(part.writes_wrong_answers for part in config.cooptimization.pairs):
        reads_reference = config.reward_model is not None and config.reward_model.reads_reference
        swaps = "{kind: swapped_reference} to cooptimization.pairs, or " if reads_reference else ""
        logger.warning(
            "the rule is silent on %d of %d problems, and the reward model is shown only such wrong answers to them as "
            "cooptimization.pairs finds unread: the policy may learn to please it there. Add %san assistant",
            *(silent, len(problems), swaps),
        )


def _say_what_learns_nothing(config: RunConfig) -> None:
    """Warn of what is set and decides nothing, and of learning rates with which nothing is learned."""
    unread = config.monitor is None and not config.learns and not reads_model(config.parts)
    if config.reward_model is not None and unread:
        what = "reads no reward model, so reward_model is not loaded; remove it, or take kind: cooper"
        logger.warning("kind: %s %s", config.kind, what)
    rates = {"policy": config.policy.learning_rate}
    if config.reward_model is not None and config.learns:
        rates["reward_model"] = config.reward_model.learning_rate
    for name, rate in rates.items():
        if rate == 0 or rate >= RUINOUS:
            what = "learns nothing" if rate == 0 else "forgets all that it knows in a few steps"
            logger.warning("%s.learning_rate: with %g it %s; usual are 1e-7 to 1e-3", name, rate, what)


RUINOUS = 0.1
"""A learning rate by which each step of Adam moves every weight by about a tenth, more than most weights are."""


def _say_what_is_trained_on(
    problems: Sequence[Problem], tested: Sequence[Problem], section: str, notes: dict[str, int]
) -> None:
    """Log and note how many test problems are training problems, too: their accuracy is not that on new ones."""

    def asked(problem: Problem) -> str:
        return json.dumps(problem.messages or problem.question)

    trained = set(map(asked, problems))
    if both := sum(asked(problem) in trained for problem in tested):
        what = f"{section}: {both} of {len(tested)} questions are training problems too, and measure memory"
        logger.warning("%s. Take other rows: %s.split, or skip and limit", what, section)
        notes[what] = both


def _reads_rule(rewards: Sequence[RewardConfig]) -> bool:
    """Whether one of them, or one inside a sum, compares with the reference."""
    inside = [record for record in records_within(rewards) if isinstance(record, RewardConfig)]
    alone = [record for record in inside if sum(isinstance(r, RewardConfig) for r in records_within([record])) == 1]
    return any(record.needs_reference for record in alone)


def _test_section(name: str) -> str:
    return f"more_test_problems.{name}" if name else "test_problems"


def _say_what_is_alike(config: RunConfig) -> None:
    """Log which settings each further set of problems shares with `problems`, and which it does not."""
    sets = {f"more_problems.{name}": data for name, data in config.more_problems.items()}
    sets |= {_test_section(name): data for name, data in config.test_sets.items()}
    for section, data in sets.items():
        same, other = same_form(config.problems, data)
        as_there = f"as problems in {', '.join(same)}" if same else ""
        apart = f"unlike problems in {', '.join(other)}" if other else ""
        if comparison := "; ".join(filter(None, [as_there, apart])):
            logger.info("%s: %s", section, comparison)


def _problems(
    data: ProblemsConfig,
    section: str,
    config: RunConfig,
    verifier: Verifier,
    environments: Environments | None,
    notes: dict[str, int],
) -> list[Problem]:
    if data.gold:
        load_function(data.gold, ("problem", "completion_text"))
    # If the user's functions pay, the rule is only one metric among others and no reason to refuse a problem.
    rule = verifier if config.needs_references else None
    held_out = section.startswith(("test_problems", "more_test_problems"))
    loaded = load_problems(data, rule, section, held_out)
    problems = loaded.problems
    if count := len(loaded.unread):
        first = "; ".join(loaded.unread[:NOTED]) + (f"; and {count - NOTED} more" if count > NOTED else "")
        what = f"{section}: the rule cannot read {count} reference answers, and only the same text is `correct` there"
        notes[f"{what}: {first}"] = count
    verifier.check(problems)
    if waiting := next(filter(verifier.needs_verdicts, problems), None):
        _check_judge(waiting, config, environments)
    return problems


def _check_judge(problem: Problem, config: RunConfig, environments: Environments | None) -> None:
    """Raises InputError if nobody judges a problem whose rule is `outside`."""
    where = f"{location(problem)}: its rule is `outside`, but "
    if environments is None or not environments.has_reward:
        raise InputError(
            f"{where}nobody judges what this loop draws; name another rule, set rollout.environment to one with "
            "get_reward(), or let your trainer bring the verdicts (docs/trainers.md)"
        )
    if config.rollout.solved_at is None and not reads_environment(config.parts):
        raise InputError(
            f"{where}rollout.solved_at does not say from which get_reward() on a run is solved; set it (to 1.0, say), "
            "or pay what get_reward() returns as it is, with rewards: [{kind: environment}]"
        )
