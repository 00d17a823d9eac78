"""From a configuration and its inputs to the parts of a run. Prompts are checked before any weights are loaded."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cooper_rl.config.user_functions import load_function
from cooper_rl.cooptimization.stage2 import Cooptimizer
from cooper_rl.data.config import ProblemsConfig
from cooper_rl.data.labelled import LabelledCompletion
from cooper_rl.data.loading import load_problems
from cooper_rl.data.problem import Problem
from cooper_rl.data.prompts import PromptEncoder, prompt_room
from cooper_rl.data.stream import ProblemStream
from cooper_rl.engines.base import Metrics
from cooper_rl.engines.local.device import set_threads
from cooper_rl.engines.local.models import check_reward_model, context_length, load_tokenizer
from cooper_rl.engines.local.policy import TorchPolicyLearner
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.local.sampler import NativeSampler
from cooper_rl.engines.sampling import Sampler, SamplingParams
from cooper_rl.evaluation.accuracy import EvaluationResult, evaluate, rejudge
from cooper_rl.evaluation.monitor import Monitor
from cooper_rl.inputs import Inputs, read_inputs
from cooper_rl.rewards.base import Reward
from cooper_rl.rewards.combine.hybrid import HybridReward
from cooper_rl.rewards.combine.weighted_sum import WeightedSum
from cooper_rl.rewards.function import FunctionReward
from cooper_rl.rewards.model.input import RewardModelInput
from cooper_rl.rewards.model.reward import RewardModelReward
from cooper_rl.rewards.rule.base import RuleConfig
from cooper_rl.rewards.rule.kinds.maths import MathsRule
from cooper_rl.rewards.rule.reward import RuleReward
from cooper_rl.rewards.rule.routing import Verifier
from cooper_rl.run_config import RunConfig

logger = logging.getLogger(__name__)

Gold = Callable[[Problem, str], bool]


@dataclass(frozen=True)
class HeldOut:
    """Test problems and how to measure on them."""

    problems: list[Problem]
    encoder: PromptEncoder
    params: SamplingParams
    k: int
    batch_size: int
    gold: Gold | None

    def judge(
        self, sampler: Sampler, verifier: Verifier, seed: int, on_progress: Callable[[int, int], None] | None = None
    ) -> dict[str, EvaluationResult]:
        """Sample k completions a problem and judge them by `rule` and, where the problems know it, by `gold`."""

        by_rule = evaluate(
            sampler,
            self.encoder,
            self.problems,
            verifier.accepts,
            self.params,
            self.k,
            seed,
            self.batch_size,
            on_progress,
        )
        if self.gold is None:
            return {"rule": by_rule}
        return {"rule": by_rule, "gold": rejudge(by_rule, self.problems, self.gold)}

    def measure(self, sampler: Sampler, verifier: Verifier, seed: int) -> Metrics:
        """`test/rule_avg` and, where gold is known, `test/gold_avg`: mean accuracy over k samples a problem."""
        judged = self.judge(sampler, verifier, seed)
        metrics = {f"test/{judge}_avg": result.avg_at_k.mean for judge, result in judged.items()}
        return metrics | {"test/cut_off_rate": judged["rule"].truncated}


@dataclass(frozen=True)
class LearningJudge:
    """The reward model where it learns, with its input format and what makes its pairs."""

    learner: TorchRewardModelLearner
    encoder: RewardModelInput
    cooptimizer: Cooptimizer


@dataclass(frozen=True)
class Parts:
    """Everything a run works with.

    `reference` is None without a KL term, `judge` where no reward model learns; `hybrid` is the part of `reward` that
    has state of its own, if there is one.
    """

    stream: ProblemStream
    prompt_encoder: PromptEncoder
    sampler: Sampler
    policy: TorchPolicyLearner
    reference: TorchPolicyLearner | None
    verifier: Verifier
    reward: Reward
    hybrid: HybridReward | None
    judge: LearningJudge | None
    test_set: HeldOut | None
    monitor: Monitor | None

    def close(self) -> None:
        """End the verifier's processes and the assistant's connections."""
        self.verifier.close()
        if self.judge is not None:
            self.judge.cooptimizer.close()


def assemble(config: RunConfig, inputs: Inputs | None = None) -> Parts:
    """Build every part. Raises InputError for data, prompts, models or settings that do not fit together.

    `inputs` are what `read_inputs(config)` returns, where a caller has read them before it imported this module.
    """
    inputs = read_inputs(config) if inputs is None else inputs
    verifier = inputs.verifier
    set_threads(config.threads)
    if config.uses_reward_model and config.reward_model is not None:
        check_reward_model(config.reward_model.model)
    _warn_of_truncation(config.rollout)
    tokenizer = load_tokenizer(config.policy.model)
    room = prompt_room(context_length(config.policy.model), config.rollout.max_tokens)
    prompt_encoder = PromptEncoder(tokenizer, config.problems.prompt, room)
    stream = ProblemStream(prompt_encoder.fitting(inputs.problems), config.problems_per_step, config.seed)
    test_set = _test_set(config, inputs.test_problems, tokenizer, room)

    policy = TorchPolicyLearner.from_config(config.policy, config.steps * config.algorithm.minibatches)
    needs_reference = config.algorithm.pulls_in("loss") or config.algorithm.pulls_in("reward")
    reference = TorchPolicyLearner.from_config(config.policy, 0, trainable=False) if needs_reference else None
    reward_model, encoder, judge = None, None, None
    if config.reward_model is not None and config.uses_reward_model:
        updates = config.steps * config.cooptimization.epochs
        reward_model = TorchRewardModelLearner.from_config(config.reward_model, updates, config.trains_reward_model)
        encoder = RewardModelInput(reward_model.tokenizer, config.reward_model.max_input_tokens)
        if config.trains_reward_model:
            cooptimizer = Cooptimizer(config.cooptimization, verifier, inputs.assistant, config.seed, inputs.replayed)
            judge = LearningJudge(reward_model, encoder, cooptimizer)
    main = _main_reward(config, verifier, reward_model, encoder)
    extra = [FunctionReward(reward.function, reward.weight, reward.batched) for reward in config.extra_rewards]
    rewards = [main, *extra] if main is not None else extra
    return Parts(
        stream=stream,
        prompt_encoder=prompt_encoder,
        sampler=NativeSampler(tokenizer, max_rows=config.rollout.max_rows, autocast=config.policy.autocast),
        policy=policy,
        reference=reference,
        verifier=verifier,
        reward=rewards[0] if len(rewards) == 1 else WeightedSum(rewards),
        hybrid=main if isinstance(main, HybridReward) else None,
        judge=judge,
        test_set=test_set,
        monitor=_monitor(config, reward_model, encoder, inputs.held_out),
    )


def _warn_of_truncation(sampling: SamplingParams) -> None:
    if sampling.truncations:
        logger.warning(
            "rollout (%s): some tokens are never drawn, and the policy's log-probabilities, ratios and gradient do not "
            "know that; importance sampling does not correct it. For exact gradients leave these settings at their "
            "defaults and shape the samples with rollout.temperature alone",
            ", ".join(sampling.truncations),
        )


def _main_reward(
    config: RunConfig,
    verifier: Verifier,
    reward_model: TorchRewardModelLearner | None,
    encoder: RewardModelInput | None,
) -> Reward | None:
    """What the kind of run rewards; None where the user's functions are all there is."""
    if config.kind == "function":
        return None
    if reward_model is None or encoder is None:
        return RuleReward(verifier)
    if config.kind == "hybrid":
        return HybridReward(RuleReward(verifier), RewardModelReward(reward_model, encoder), config.hybrid)
    return RewardModelReward(reward_model, encoder)


def _monitor(
    config: RunConfig,
    reward_model: TorchRewardModelLearner | None,
    encoder: RewardModelInput | None,
    held_out: list[LabelledCompletion],
) -> Monitor | None:
    if config.monitor is None or reward_model is None or encoder is None:
        return None
    return Monitor(config.monitor, held_out, reward_model, encoder, config.seed)


def _gold(problems: ProblemsConfig) -> Gold | None:
    return load_function(problems.gold, ("problem", "completion_text")) if problems.gold else None


def _test_set(config: RunConfig, problems: list[Problem], tokenizer: Any, room: int | None) -> HeldOut | None:
    if config.test_problems is None or not problems:
        return None
    encoder = PromptEncoder(tokenizer, config.test_problems.prompt, room)
    evaluation = config.evaluation
    params = config.rollout.model_copy(update={"temperature": evaluation.temperature, "top_p": evaluation.top_p})
    gold = _gold(config.test_problems)
    return HeldOut(encoder.fitting(problems), encoder, params, evaluation.k, evaluation.batch_size, gold)


def evaluate_model(
    model: str,
    data: ProblemsConfig,
    params: SamplingParams,
    k: int,
    seed: int,
    batch_size: int,
    on_progress: Callable[[int, int], None] | None = None,
    threads: int | None = None,
    rule: RuleConfig | None = None,
) -> dict[str, EvaluationResult]:
    """Sample k completions a problem and judge them by `rule` and, where the problems know it, by `gold`.

    `rule` is `maths` unless given, and serves the problems that name none.
    """
    set_threads(threads)
    with Verifier(rule or MathsRule()) as verifier:
        problems = load_problems(data, verifier.fault).problems
        sampler = NativeSampler.from_folder(model)
        encoder = PromptEncoder(sampler.tokenizer, data.prompt, sampler.room(params.max_tokens))
        held_out = HeldOut(encoder.fitting(problems), encoder, params, k, batch_size, _gold(data))
        return held_out.judge(sampler, verifier, seed, on_progress)
