"""TRL's GRPOTrainer with a reward model that learns: one object is the reward function and has the callback."""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Self

from transformers import TrainerCallback

from cooper_audit.run.hacking_alarm import HACKING, HackingAlarm
from cooper_audit.run.pay_tracks import BESIDE, LEVEL, PAY
from cooper_audit.run.watch_rules import Watch, WatchRule
from cooper_base.data.answer import Answer, AnswerGroup
from cooper_base.data.verdict import UserVerdict
from cooper_base.errors import InputError, did_you_mean
from cooper_rl.adapters.rows import (
    FOLDER,
    AnsweredProblem,
    Columns,
    consecutive,
    folder_in,
    gathered,
    on_first,
    or_none,
)
from cooper_rl.engines.base import Metrics
from cooper_rl.policy.environments.environment import verdict_of
from cooper_rl.reward.cooper_reward import CooperReward
from cooper_rl.reward.kinds.earned import EarnedConfig
from cooper_rl.reward.reward_config import CooperRewardConfig
from cooper_rl.reward.scored import Scored, Updated
from cooper_rl.service.client import RewardClient
from cooper_verify.faults import isolated

logger = logging.getLogger(__name__)

LOGGED = frozenset(
    {
        *("reward/mean", "reward/no_opinion", "rule/accuracy", "rule/unparsed", "rule/heard", "gold/accuracy"),
        *("reward_model/mean", "reward_model/rule_agreement", "reward_model/false_accept_rate", "reward_model/loss"),
        *("reward_model/pair_accuracy_before", "pairs/count"),
        # These tell the alarm of problems on which the rule is silent,
        *("reward/mean_heard", "reward/mean_silent", "reward_model/mean_heard", "rollout/agreement_silent"),
        "reward_model/kept_when_swapped_silent",
        *(*PAY, *BESIDE, *LEVEL),  # and these what is paid
        *("version", "scored_by_version", "time/score", "time/update"),
    }
)
"""The metrics that are logged, as far as there are any, unless all are."""


class StepKeeper:
    """A `CooperReward` with the verbs of the service's client: it keeps what was scored until the step is updated."""

    def __init__(self, reward: CooperReward) -> None:
        self.reward = reward
        self._calls: list[Scored] = []

    def score(self, groups: Sequence[AnswerGroup], *, step: int | None = None, train: bool = True) -> Scored:
        """See `CooperReward.score`. The calls of a step add up."""
        if not train:
            return self.reward.score(groups, train=False)
        self._calls.append(self.reward.score(groups, step=step, earlier=self._calls))
        return self._calls[-1]

    def update(self, step: int) -> Updated:
        calls, self._calls = self._calls, []
        return self.reward.update(calls, step=step)

    def save(self, folder: str | Path) -> None:
        self.reward.save(folder)

    def load(self, folder: str | Path) -> None:
        """Restore what `save` wrote. Answers of a step under way are dropped."""
        self._calls = []
        self.reward.load(folder)


Scorer = CooperReward | StepKeeper | RewardClient


class GRPOReward:
    """`GRPOTrainer(reward_funcs=[reward], callbacks=[reward.callback], …)`.

    A step of the reward is an optimizer step for which TRL sampled. One version of the reward model scores all of its
    completions, and the reward model is trained when it ends. If TRL uses a generation for several optimizer steps, the
    first of them counts. Evaluation is scored and never trained on. With several processes, the first owns the reward
    and scores for all. The reward is saved in TRL's checkpoints, and `resume_from_checkpoint` restores it.
    """

    NAME = __name__ = "cooper"  # under which TRL logs the reward; a class has a `__name__` of its own
    log_all = False
    """Whether TRL's log gets every metric of docs/metrics.md, and not only those in `LOGGED`."""

    solved_at: float | None = None
    """From which value an environment's `get_reward()` says that its answer is correct, as `rollout.solved_at` of
    Cooper's own loop; below it is wrong. None leaves the verdict to the rule."""

    def __init__(
        self, scorer: Scorer | None, columns: Columns | None = None, resume_from: str | Path | None = None
    ) -> None:
        """Only the first process needs a `scorer`. `resume_from` is TRL's checkpoint if it is not in `output_dir`."""
        self.scorer = StepKeeper(scorer) if isinstance(scorer, CooperReward) else scorer
        self.columns, self.resume_from = columns or Columns(), resume_from
        self.callback = GRPOCallback(self)
        self.learned: Metrics = {}
        """The metrics of the last update."""
        self.watch = Watch([WatchRule(metric=HACKING, action="ignore")])
        """The default watch rules (docs/watch.md) on this reward's metrics, but for the alarm, which `HackingCallback`
        has. What they say is logged as a warning."""
        self._scored: Metrics = {}
        self._open: int | None = None
        self._groups = 0

    @classmethod
    def from_config(
        cls,
        config: CooperRewardConfig | Mapping[str, Any],
        columns: Columns | None = None,
        total_steps: int | None = None,
    ) -> Self:
        """Load the reward, with several processes only in the first. For `config` and `total_steps` see
        `CooperReward`."""
        first = int(os.environ.get("RANK", "0")) == 0  # what launchers set, before anything has started
        return cls(CooperReward.from_config(config, total_steps) if first else None, columns)

    def on_init_end(self, *_: Any, **__: Any) -> None:
        """The first that a trainer calls on a callback, which this is not."""
        raise InputError("GRPOTrainer got the reward among its callbacks; pass callbacks=[reward.callback]")

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]],
        trainer_state: Any,
        log_metric: Callable[[str, float], None],
        **columns: Any,
    ) -> list[float | None]:
        """One reward per completion, None without an opinion: TRL then leaves the completion out of its group.

        An environment with an attribute `verdict` judges its own completion, and with `solved_at` one whose
        `get_reward()` owns the reward. Where it raises, its completion has no verdict (`silent`), as in Cooper's own
        loop, and the fault is logged and counted (`rule/faults`).

        Raises InputError if a column is missing or the rows are not whole groups.
        """
        args, model = self.callback.args, self.callback.model
        if args is None:
            raise InputError("GRPOTrainer got the reward without its callback; add callbacks=[reward.callback]")
        self.columns.check(columns.keys())
        ends = self.callback.end_tokens
        own: list[AnsweredProblem] = []
        for i, (completion, ids) in enumerate(zip(completions, completion_ids, strict=True)):
            row = {name: values[i] for name, values in columns.items() if isinstance(values, list)}
            stopped = bool(ids) and ids[-1] in ends
            verdict = self._verdict_or_silent(row.get("environments")) or self.columns.verdict_in(row)
            answer = Answer.of(completion, stopped, tokens=len(ids), token_ids=ids, verdict=verdict)
            own.append((self.columns.problem(row), answer))
        step = trainer_state.global_step + 1 if model.training else None
        size = args.num_generations if model.training else args.num_generations_eval or args.num_generations
        rows = gathered(own, args.world_size)
        rewards, metrics = on_first(lambda: self._score(rows, size, step), args.process_index, args.world_size)
        for name, value in self.logged(metrics).items() if args.process_index == 0 else ():
            log_metric(name, value)
        return or_none(rewards[args.process_index * len(own) :][: len(own)])

    def _verdict_or_silent(self, environment: Any) -> UserVerdict | None:
        def ask(environments: Sequence[Any]) -> list[UserVerdict | None]:
            return [*map(self._verdict_of, environments)]

        def nobody(environment: Any) -> UserVerdict | None:
            return "silent"

        where = f"{type(environment).__name__}.get_reward"
        [verdict] = isolated(where, ask, [environment], nobody, lambda _: [], users_too=True)
        return verdict

    def _verdict_of(self, environment: Any) -> UserVerdict | None:
        verdict = getattr(environment, "verdict", None)
        if verdict is not None or self.solved_at is None or not hasattr(environment, "get_reward"):
            return verdict
        reward = environment.get_reward()
        return verdict_of(asyncio.run(reward) if asyncio.iscoroutine(reward) else reward, self.solved_at)

    def logged(self, metrics: Metrics) -> Metrics:
        """What TRL's log gets of these metrics, under its names."""
        return {f"{self.__name__}/{name}": value for name, value in metrics.items() if self.log_all or name in LOGGED}

    def update(self) -> None:
        """Train the reward model on the answers scored since the last update, if there are any."""
        if self._open is not None and self.scorer is not None:
            start = perf_counter()
            learned = self.scorer.update(self._open)
            self.learned = {**learned.metrics, "version": float(learned.version), "time/update": perf_counter() - start}
            fired, _ = self.watch.observe(self._open, self._scored | self.learned)
            for firing in fired:
                logger.warning("step %d: %s", self._open, firing.message)
            self._open, self._groups = None, 0

    def _score(self, rows: list[AnsweredProblem], size: int, step: int | None) -> tuple[list[float], Metrics]:
        if self.scorer is None:
            raise InputError("the first process has no scorer; give it a CooperReward or the service's client")
        groups, start = consecutive(rows, size, self._groups), perf_counter()
        scored = self.scorer.score(groups, step=step, train=step is not None)
        metrics = {**scored.metrics, "scored_by_version": float(scored.version)}
        metrics["time/score"] = perf_counter() - start
        if step is not None:
            self._open, self._groups = step, self._groups + len(groups)
            cut_off = sum(not answer.stopped for _, answer in rows) / len(rows)
            self._scored = {**metrics, "rollout/cut_off_rate": cut_off}
            metrics = {**self.learned, **metrics}
        return [reward for group in scored.rewards for reward in group], metrics


class GRPOCallback(TrainerCallback):
    """The trainer's state that `GRPOReward` needs, and its work at the trainer's events."""

    def __init__(self, reward: GRPOReward) -> None:
        self.reward = reward
        self.args: Any = None
        self.model: Any = None
        self.end_tokens: set[int] = set()

    def on_init_end(self, args, state, control, model: Any = None, processing_class: Any = None, **kwargs):
        self.args, self.model = args, model
        tokenizer = getattr(processing_class, "tokenizer", processing_class)
        more = getattr(model.generation_config, "eos_token_id", None)
        self.end_tokens = {tokenizer.eos_token_id, *(more if isinstance(more, list) else [more])} - {None}
        scorer, scales = self.reward.scorer, getattr(args, "scale_rewards", False)
        earned = isinstance(scorer, StepKeeper) and any(
            isinstance(r, EarnedConfig) for r in scorer.reward.config.rewards
        )
        if earned and scales not in (False, "none"):
            logger.warning(
                "scale_rewards=%r divides the rewards of a group by their spread, which makes full size of the little "
                "that kind: cooper pays while its reward model is not trusted; set scale_rewards=False, or use kind: "
                "cooper_model",
                scales,
            )

    def on_train_begin(self, args, state, control, model=None, train_dataloader=None, **kwargs):
        """Check the columns and rows before the first sample, and load the reward if TRL resumes."""
        self.model = model
        data = getattr(train_dataloader, "dataset", None)
        if columns := getattr(data, "column_names", None):
            self.reward.columns.check(columns)
            self.reward.columns.check_rows(data)
        if state.global_step and args.process_index == 0 and self.reward.scorer is not None:
            given = self.reward.resume_from
            self.reward.scorer.load(Path(given) / FOLDER if given else folder_in(args, state))

    def on_step_end(self, args, state, control, **kwargs):
        self.reward.update()

    def on_log(self, args, state, control, logs=None, **kwargs):
        """Put the update's metrics into their own step's row; `log_metric` gives them to trackers one step late."""
        if logs is not None and "loss" in logs:
            found = self.reward.logged(self.reward.learned)
            logs |= found
            state.log_history[-1] |= found

    def on_save(self, args, state, control, **kwargs):
        if args.process_index == 0 and self.reward.scorer is not None:
            self.reward.scorer.save(folder_in(args, state))


class HackingCallback(TrainerCallback):
    """The reward-hacking alarm (docs/watch.md) on what GRPOTrainer logs, with Cooper's reward or any other.

    `accuracy` is the name in the logs of a measure that says how many completions are right, such as the mean of an
    exact checker among the `reward_funcs` (whose weight may be 0); with `GRPOReward` it is not needed. The number of
    signs is logged as `watch/reward_hacking`. With `stop`, a sign ends the training.
    """

    def __init__(self, accuracy: str | None = None, stop: bool = False) -> None:
        self.alarm, self.signs, self.stop = HackingAlarm(), list[str](), stop
        self._names = {"reward/mean": "reward", "rollout/cut_off_rate": "completions/clipped_ratio"}
        self._names["rule/accuracy"] = accuracy or f"{GRPOReward.NAME}/rule/accuracy"

    def on_train_begin(self, args, state, control, **kwargs):
        """See again what the steps before a resume have logged."""
        self.alarm = HackingAlarm()
        for row in state.log_history:
            self.alarm.observe(int(row["step"]), self._read(row))

    def on_log(self, args, state, control, logs=None, **kwargs):
        """Raises InputError if TRL logs a reward but not the accuracy."""
        if logs is None or "reward" not in logs:
            return
        metrics = self._read(logs)
        if "rule/accuracy" not in metrics:
            missing, known = self._names["rule/accuracy"], [name for name in logs if "/" in name]
            remedy = did_you_mean(missing, known, f"there are {', '.join(known)}", cutoff=0.9)
            raise InputError(f"accuracy: {missing!r} is not logged; {remedy}")
        before, self.signs = self.signs, self.alarm.observe(state.global_step, metrics)
        found = {HACKING: float(len(self.signs))}
        logs |= found
        state.log_history[-1] |= found
        if self.signs and not before:
            logger.warning("step %d: signs of reward hacking: %s", state.global_step, "; ".join(self.signs))
        control.should_training_stop |= bool(self.signs) and self.stop

    def _read(self, logs: Mapping[str, Any]) -> dict[str, float]:
        own = f"{GRPOReward.NAME}/"
        found = {name.removeprefix(own): value for name, value in logs.items() if name.startswith(own)}
        given = {name: logs[theirs] for name, theirs in self._names.items() if theirs in logs}
        return {name: value for name, value in (found | given).items() if isinstance(value, int | float)}
