"""From a configuration to the parts of a run. Data and prompts are checked before any weights are loaded."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cooper_rl.cooptimization.assistant import build_assistant
from cooper_rl.cooptimization.stage2 import Cooptimizer
from cooper_rl.evaluation import EvaluationResult, evaluate, rejudge
from cooper_rl.learning.device import set_threads
from cooper_rl.learning.learner import Metrics
from cooper_rl.learning.models import context_length, load_tokenizer
from cooper_rl.learning.policy_learner import TorchPolicyLearner
from cooper_rl.learning.reward_learner import TorchRewardModelLearner
from cooper_rl.problems.config import ProblemsConfig
from cooper_rl.problems.dataloader import ProblemStream
from cooper_rl.problems.loading import load_problems
from cooper_rl.problems.problem import Problem
from cooper_rl.problems.prompts import PromptEncoder
from cooper_rl.rewards.functions import FunctionReward, load_function
from cooper_rl.rewards.hybrid import HybridReward
from cooper_rl.rewards.labelled import LabelledCompletion, read_labelled
from cooper_rl.rewards.reward_model import RewardModelReward
from cooper_rl.rewards.reward_model_input import RewardModelInput
from cooper_rl.rewards.rule import RuleReward
from cooper_rl.rewards.rule_verifier import RuleVerifier
from cooper_rl.rewards.scores import Reward
from cooper_rl.rewards.weighted_sum import WeightedSum
from cooper_rl.runs.config import RunConfig
from cooper_rl.sampling.native import NativeSampler
from cooper_rl.sampling.sampler import Sampler, SamplingParams
from cooper_rl.verifyrm.monitor import Monitor

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
        self, sampler: Sampler, verifier: RuleVerifier, seed: int, on_progress: Callable[[int, int], None] | None = None
    ) -> dict[str, EvaluationResult]:
        """Sample k completions a problem and judge them by `rule` and, where the problems know it, by `gold`."""

        def rule(problem: Problem, text: str) -> bool:
            return verifier.verify(problem.answer, text) == "correct"

        by_rule = evaluate(
            sampler, self.encoder, self.problems, rule, self.params, self.k, seed, self.batch_size, on_progress
        )
        if self.gold is None:
            return {"rule": by_rule}
        return {"rule": by_rule, "gold": rejudge(by_rule, self.problems, self.gold, seed)}

    def measure(self, sampler: Sampler, verifier: RuleVerifier, seed: int) -> Metrics:
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
    verifier: RuleVerifier
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


def assemble(config: RunConfig) -> Parts:
    """Build every part. Raises InputError for data, prompts, models or settings that do not fit together."""
    set_threads(config.threads)
    verifier = RuleVerifier(config.rule.workers, config.rule.timeout_s, text=config.rule.text)
    problems = load_problems(config.problems, verifier.verify, verifier.objection).problems
    tokenizer = load_tokenizer(config.policy.model)
    context = context_length(config.policy.model)
    room = None if context is None else context - config.rollout.max_tokens
    prompt_encoder = PromptEncoder(tokenizer, config.problems.prompt, room)
    stream = ProblemStream(prompt_encoder.fitting(problems), config.problems_per_step, config.seed)
    test_set = _test_set(config, verifier, tokenizer, room)
    _gold(config.problems)  # a gold function that cannot be called is told now
    assistant = build_assistant(config.cooptimization, verifier) if config.trains_reward_model else None
    if assistant is not None:
        assistant.check()  # before any weights are loaded
    replay = config.cooptimization.replay.labelled if config.trains_reward_model else None
    replayed = read_labelled(replay) if replay else []

    policy = TorchPolicyLearner.from_config(config.policy, config.steps * config.algorithm.minibatches)
    needs_reference = config.algorithm.pulls_in("loss") or config.algorithm.pulls_in("reward")
    reference = TorchPolicyLearner.from_config(config.policy, 0, trainable=False) if needs_reference else None
    reward_model, encoder, judge = None, None, None
    if config.reward_model is not None and config.kind != "rule":
        updates = config.steps * config.cooptimization.epochs
        reward_model = TorchRewardModelLearner.from_config(config.reward_model, updates, config.trains_reward_model)
        encoder = RewardModelInput(reward_model.tokenizer, config.reward_model.max_input_tokens)
        if config.trains_reward_model:
            cooptimizer = Cooptimizer(config.cooptimization, verifier, assistant, config.seed, replayed)
            judge = LearningJudge(reward_model, encoder, cooptimizer)
    main = _main_reward(config, verifier, reward_model, encoder)
    extra = [FunctionReward(reward.function, reward.weight) for reward in config.extra_rewards]
    return Parts(
        stream=stream,
        prompt_encoder=prompt_encoder,
        sampler=NativeSampler(tokenizer, max_rows=config.rollout.max_rows, autocast=config.policy.autocast),
        policy=policy,
        reference=reference,
        verifier=verifier,
        reward=WeightedSum([main, *extra]) if extra else main,
        hybrid=main if isinstance(main, HybridReward) else None,
        judge=judge,
        test_set=test_set,
        monitor=_monitor(config, reward_model, encoder, replayed),
    )


def _main_reward(
    config: RunConfig,
    verifier: RuleVerifier,
    reward_model: TorchRewardModelLearner | None,
    encoder: RewardModelInput | None,
) -> Reward:
    """What the kind of run rewards."""
    if reward_model is None or encoder is None:
        return RuleReward(verifier)
    if config.kind == "hybrid":
        return HybridReward(RuleReward(verifier), RewardModelReward(reward_model, encoder), config.hybrid)
    return RewardModelReward(reward_model, encoder)


def _monitor(
    config: RunConfig,
    reward_model: TorchRewardModelLearner | None,
    encoder: RewardModelInput | None,
    replayed: list[LabelledCompletion],
) -> Monitor | None:
    if config.monitor is None or reward_model is None or encoder is None:
        return None
    return Monitor(config.monitor, reward_model, encoder, config.seed, replayed)


def _gold(problems: ProblemsConfig) -> Gold | None:
    return load_function(problems.gold, ("problem", "completion_text")) if problems.gold else None


def _test_set(config: RunConfig, verifier: RuleVerifier, tokenizer: Any, room: int | None) -> HeldOut | None:
    if config.test_problems is None or not config.evaluation.every:
        return None
    encoder = PromptEncoder(tokenizer, config.test_problems.prompt, room)
    problems = encoder.fitting(load_problems(config.test_problems, verifier.verify, verifier.objection).problems)
    evaluation = config.evaluation
    params = config.rollout.model_copy(update={"temperature": evaluation.temperature, "top_p": evaluation.top_p})
    return HeldOut(problems, encoder, params, evaluation.k, evaluation.batch_size, _gold(config.test_problems))


def evaluate_model(
    model: str,
    data: ProblemsConfig,
    params: SamplingParams,
    k: int,
    seed: int,
    batch_size: int,
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[str, EvaluationResult]:
    """Sample k completions a problem and judge them by `rule` and, where the problems know it, by `gold`."""
    set_threads()
    with RuleVerifier() as verifier:
        problems = load_problems(data, verifier.verify).problems
        sampler = NativeSampler.from_folder(model)
        encoder = PromptEncoder(sampler.tokenizer, data.prompt, sampler.room(params.max_tokens))
        held_out = HeldOut(encoder.fitting(problems), encoder, params, k, batch_size, _gold(data))
        return held_out.judge(sampler, verifier, seed, on_progress)
