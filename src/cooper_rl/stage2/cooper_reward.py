"""The co-trained reward as one object: it scores answers and learns from them once per step."""

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from threading import RLock
from typing import Any, Self, get_args

import torch

from cooper_rl.engines.base import Metrics
from cooper_rl.engines.clock import MEASURED, Clock
from cooper_rl.engines.local.models import load_tokenizer
from cooper_rl.errors import InputError
from cooper_rl.rewards.base import Closes, Remembers, Scores
from cooper_rl.rewards.context import RewardModel, StepContext
from cooper_rl.rewards.input import RewardModelInput
from cooper_rl.rewards.kinds.plain import build_sum, read_by
from cooper_rl.rewards.shaping import shaped
from cooper_rl.rollouts import AnswerGroup, Ragged
from cooper_rl.rules.rule import UserVerdict
from cooper_rl.rules.verifier import Verifier
from cooper_rl.stage2.pairs import Pair
from cooper_rl.stage2.reward_config import CooperRewardConfig, RewardInputs, check_outline, outline, read_reward_inputs
from cooper_rl.stage2.scored import OpenStep, ProbeSet, Scored, ScoredGroup, Updated, answer_metrics
from cooper_rl.stage2.stage2 import Cooptimizer

MODEL_FOLDER, STATE_FILE = "reward_model", "reward.json"
VERDICTS = get_args(UserVerdict)
FALSE_ACCEPTS = "reward_model/false_accept_rate"
OF_ANSWERS = ("rule/", "gold/accuracy", "function/")
"""Beginnings of the names of metrics that no reward model's weights change."""


class CooperReward:
    """Scores answers and, if it has a reward model that learns, trains that model on them.

    A step is any number of `score` calls followed by one `update`. The only input is problems and texts. All methods
    are safe to call from several threads. A call made during an update waits until the update ends, so every score
    comes from one version of the model. The process's global random states are neither read nor changed.
    """

    def __init__(
        self, config: CooperRewardConfig, inputs: RewardInputs, models: dict[str, RewardModel], gold: str | None = None
    ) -> None:
        """`models` are those of `config.used_models`, in the same order; for `gold` see `StepContext`."""
        self.config = config
        self.models = models
        self.learning = None if config.learning_model is None else models[config.learning_model]
        """The reward model that learns, if there is one."""
        self.verifier: Verifier = inputs.verifier
        self.version = 0
        """Number of updates of the reward model so far."""
        self.last_step = 0
        """The last step whose update is done."""
        self._reward = build_sum(config.rewards)
        self._shaping = [part.build() for part in config.shaping]
        self._gold = gold
        self._recorded = dict.fromkeys([*filter(None, [config.learning_model]), *read_by(config.shaping)])
        """Models whose scores are parts of the reward's, even if no reward uses them."""
        self._cooptimizer: Cooptimizer | None = None
        if self.learning is not None:
            known = (inputs.verifier, inputs.assistant, config.seed, inputs.replayed)
            self._cooptimizer = Cooptimizer(config.cooptimization, *known)
        self._probes = ProbeSet()
        self.open_step: OpenStep | None = None
        """The step under way, if there is one."""
        self._last: Updated | None = None
        self._lock = RLock()

    @classmethod
    def from_config(
        cls,
        config: CooperRewardConfig,
        total_steps: int | None = None,
        inputs: RewardInputs | None = None,
        gold: str | None = None,
    ) -> Self:
        """Load the reward models that `config` (a `CooperRewardConfig` or a whole `RunConfig`) names.

        `total_steps` is the length of the run, which a falling schedule needs and a `RunConfig` knows already. `inputs`
        is the result of `read_reward_inputs(config)`, which is called if they are missing. Raises InputError for
        invalid settings, files or models.
        """
        inputs = read_reward_inputs(config) if inputs is None else inputs
        steps = total_steps if total_steps is not None else config.planned_steps
        models: dict[str, RewardModel] = {}
        for name, settings in config.used_models.items():
            if steps is None and settings.learns and settings.schedule != "constant":
                why = f"{settings.schedule} needs the length of the run; give total_steps"
                raise InputError(f"reward_models.{name}.schedule: {why}")
            epochs = config.cooptimization.epochs
            learner = config.engine.reward_model(settings.for_updates(epochs), (steps or 0) * epochs, settings.learns)
            encoder = RewardModelInput.of(settings, load_tokenizer(settings.model))
            models[name] = RewardModel(learner, encoder)
        return cls(config, inputs, models, gold)

    def check(self, groups: Sequence[AnswerGroup]) -> None:
        """Raises InputError for a rule that does not exist, and for an answer that nobody can judge: without a verdict
        of its own, it needs a rule and a reference."""
        self.verifier.check([group.problem for group in groups])
        for group in groups:
            problem = group.problem
            outside = self.verifier.needs_verdicts(problem)
            heard = not outside and (problem.answer or not self.config.needs_references)
            for i, answer in enumerate(group.answers):
                if answer.verdict in VERDICTS or (answer.verdict is None and heard):
                    continue
                why = "the rule of its problem is `outside`" if outside else "its problem has no reference answer"
                why = f"the verdict {answer.verdict!r}" if answer.verdict is not None else f"no verdict, and {why}"
                raise InputError(
                    f"group {group.id}: answer {i} has {why}; give it a verdict (correct, wrong, unparsed, or silent "
                    f"if nobody knows){'' if outside else ', or the problem a reference answer'}"
                )

    def score(self, groups: Sequence[AnswerGroup], *, step: int | None = None, train: bool = True) -> Scored:
        """Score these groups with the current version of the model. With `train`, the assistant starts to write.

        `step` defaults to the step under way or, if there is none, the next one. The groups of all calls in a step add
        up; their order does not matter. A group is identified by its id, and a repeated group gets its stored scores.
        With `train=False` nothing is stored and the groups never become pairs. State across steps, such as the running
        mean of `hybrid`, changes only in `update`, but the groups of one call are weighted together, by `earned` with
        those of the step's earlier calls. Raises InputError as `check` does, if the step's update is done, if another
        step is under way, or if an id comes back with other content.
        """
        self.check(groups)
        with self._lock:
            if not train:
                return self._pay(self._context(groups))
            opened = self._opened(step)
            if not groups:
                raise InputError(f"step {opened.number}: there are no groups to score")
            clock = Clock()
            if new := opened.unseen(groups):
                context = self._context(new)
                context.others_of_step = [call.context for call in opened.calls]
                with clock.measure("verify"):
                    _ = context.verdicts
                with clock.measure("reward"):
                    scored = self._pay(context, opened.number)
                self._add(opened, scored, scored.by_group())
                opened.journaled = False
            found = opened.scored(groups)
            return replace(found, metrics=found.metrics | clock.parts())

    def score_calls(self, calls: Sequence[Sequence[AnswerGroup]]) -> list[Scored]:
        """What `score(groups, train=False)` returns for the groups of every call, computed in one batch.

        The answers of a call are weighted together, as in `score`, so a batch is more than one long call. Logits may
        differ in the last bits from those of separate calls.
        """
        with self._lock:
            together = self._context([group for groups in calls for group in groups])
            _ = together.verdicts, [together.logits(name) for name in together.model_names]
            places = iter(range(len(together.groups)))
            contexts = [StepContext.joined([(together, next(places)) for _ in groups]) for groups in calls]
            return [self._pay(context) for context in contexts]

    def admit(self, step: int, groups: Sequence[ScoredGroup]) -> None:
        """Add new groups to the step with results of `score_calls` that the caller has written to a journal.

        The assistant starts to write for whole groups. A partial group waits until it is admitted as a whole. Raises
        InputError as `score` does.
        """
        with self._lock:
            opened = self.open_step = self._opened(step)
            for one in groups:
                if one.partial:
                    opened.add_group(one)
            if whole := [one for one in groups if not one.partial]:
                context = self._context([one.group for one in whole])
                logits = {name: [one.logits[name] for one in whole] for name in self.models}
                context.recall([one.verdicts for one in whole], logits)
                scores = Scores(Ragged.of([one.rewards for one in whole], torch.float32))
                self._add(opened, Scored.of(context, scores, self.version, opened.number), whole)

    def update(self, step: int, keep: Collection[str] | None = None) -> Updated:
        """Wait for the assistant, then train the reward model on the step's pairs. A step is updated only once.

        `keep` holds the ids of the groups that become pairs; by default all do. A repeated call for the last step
        returns the first call's result. Raises InputError for an earlier step, for a step other than the one under way,
        and for an id in `keep` that was not scored.
        """
        with self._lock:
            if self._last is not None and step == self._last.step:
                return self._last
            opened = self._opened(step)
            if unknown := [name for name in keep or () if name not in opened.groups]:
                raise InputError(f"step {step}: keep names groups that were not scored: {', '.join(unknown[:5])}")
            return self._finished(opened, *self._train(opened, keep))

    def step_metrics(self) -> Metrics:
        """Metrics of all answers of the step under way, as the alarm reads them: of rewards, verdicts, the first reward
        model's scores if they were admitted, and `rollout/cut_off_rate`. Empty if nothing was scored."""
        with self._lock:
            if self.open_step is None or not self.open_step.groups:
                return {}
            groups = [one.in_order() for _, one in sorted(self.open_step.groups.items())]
            context = self._context([one.group for one in groups])
            logits = {name: [one.logits[name] for one in groups] for name in self.models if name in groups[0].logits}
            context.recall([one.verdicts for one in groups], logits)
            rewards = Ragged.of([one.rewards for one in groups], torch.float32)
            parts = context.model_parts(context.model_names[0]) if logits else {}
            cut_off = [not answer.stopped for one in groups for answer in one.group.answers]
            scores = Scores(rewards, parts)
            share = {"rollout/cut_off_rate": sum(cut_off) / len(cut_off)}
            return answer_metrics(context, scores) | share

    def learns_first(self, scored: Scored) -> bool:
        """Whether stage 2 should come before the policy's update: see `cooptimization.before_policy`."""
        limit = self.config.cooptimization.before_policy
        return limit is not None and self.learning is not None and scored.metrics.get(FALSE_ACCEPTS, 0.0) > limit

    def update_and_rescore(self, step: int, groups: Sequence[AnswerGroup] | None = None) -> tuple[Updated, Scored]:
        """`update`, then the step's answers, or those of `groups`, scored with the model as it is now, which pays.

        Verdicts and gold labels stay, and every group of the step is scored again, in the order of the `score` calls.
        State across steps moves once, by the scores that pay. The metrics that a model's weights can change are there,
        named `<metric>_after`. Raises InputError as `update` does, and for a step that is already updated.
        """
        with self._lock:
            opened = self._opened(step)
            metrics, pairs = self._train(opened, None)
            fresh = [call.context.afresh() for call in opened.calls]
            for context in fresh:
                context.others_of_step = [other for other in fresh if other is not context]
            paid = replace(opened, calls=[self._pay(context, step) for context in fresh])
            updated = self._finished(paid, metrics, pairs)
            found = paid.scored(paid.answered if groups is None else groups)
        of_models = {name: value for name, value in found.metrics.items() if not name.startswith(OF_ANSWERS)}
        metrics = {f"{name}_after": value for name, value in of_models.items()}
        return updated, replace(found, version=updated.version, metrics=metrics)

    def forget_step(self) -> None:
        """Drop the step under way, so that it can be scored again."""
        with self._lock:
            self.open_step = None

    def save(self, folder: str | Path) -> None:
        """Write the model that learns as a Hugging Face folder `reward_model/`, and the rest as `reward.json`.

        Raises InputError while a step is under way, because a checkpoint does not store its groups, unless all of them
        came through `admit` and so are in a journal.
        """
        with self._lock:
            if (opened := self.open_step) is not None and not opened.journaled:
                raise InputError(f"step {opened.number} is under way; call update({opened.number}), then save")
            folder = Path(folder)
            folder.mkdir(parents=True, exist_ok=True)
            if self.learning is not None:
                self.learning.learner.save(folder / MODEL_FOLDER)
            (folder / STATE_FILE).write_text(json.dumps(self._state()), encoding="utf-8")

    def load(self, folder: str | Path) -> None:
        """Restore exactly what `save` wrote. A step under way is discarded.

        Raises InputError if the folder holds no saved reward, or one with different rewards, shapings or models.
        """
        with self._lock:
            path = Path(folder) / STATE_FILE
            if not path.is_file():
                raise InputError(
                    f"{path}: no such file; a checkpoint of an earlier version of Cooper cannot be resumed"
                )
            state = json.loads(path.read_text(encoding="utf-8"))
            check_outline(self.config, state["outline"])
            if self.learning is not None and self._cooptimizer is not None:
                self.learning.learner.load(Path(folder) / MODEL_FOLDER)
                self._cooptimizer.restore(state["cooptimizer"])
            for part, own in zip(self._remembering, state["memories"], strict=True):
                part.restore(own)
            self._probes.restore(state["probes"])
            self.version, self.last_step = state["version"], state["last_step"]
            last = state["last"]
            self._last = Updated(**{**last, "pairs": [Pair(**pair) for pair in last["pairs"]]}) if last else None
            self.open_step = None

    def close(self) -> None:
        """End the verifier's processes and all connections."""
        self.verifier.close()
        for part in (self._reward, *self._shaping):
            if isinstance(part, Closes):
                part.close()
        if self._cooptimizer is not None:
            self._cooptimizer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def _opened(self, step: int | None) -> OpenStep:
        """The step under way, or a new one."""
        if (opened := self.open_step) is not None:
            if step not in (None, opened.number):
                raise InputError(
                    f"step {step}: step {opened.number} was scored but not updated; call "
                    f"update({opened.number}) first, with keep=[] to train on none of its groups"
                )
            return opened
        number = self.last_step + 1 if step is None else step
        if number <= self.last_step:
            raise InputError(
                f"step {number}: step {self.last_step} is already updated; to go back, load a checkpoint from before "
                f"step {number}"
            )
        return OpenStep(number)

    def _context(self, groups: Sequence[AnswerGroup]) -> StepContext:
        return StepContext(groups, self.verifier, self.models, self._gold)

    def _pay(self, context: StepContext, step: int | None = None) -> Scored:
        if self.learning is not None:  # even if no reward uses it: pairs need its logits before the update
            context.logits(context.model_names[0])
        scores = self._reward.score(context)
        parts = dict(scores.parts)
        for name in self._recorded:
            parts |= context.model_parts(name)
        final = shaped(Scores(scores.rewards, parts, scores.metrics), self._shaping, context)
        return Scored.of(context, final, self.version, step)

    def _add(self, opened: OpenStep, scored: Scored, groups: Sequence[ScoredGroup]) -> None:
        """Add newly scored groups to the step and set the assistant to work on them."""
        if self._cooptimizer is not None:
            opened.stage2.append(self._cooptimizer.start(scored.context, opened.number))
        opened.add_call(scored)
        for one in groups:
            opened.add_group(one)
        self.open_step = opened

    def _finished(self, opened: OpenStep, metrics: Metrics, pairs: list[Pair]) -> Updated:
        """End the step. `opened` holds the answers as they were paid, by which state across steps moves."""
        for part in self._remembering:
            part.commit([call.context for call in opened.calls])
        self.version += self._cooptimizer is not None
        self.last_step, self.open_step = opened.number, None
        self._last = Updated(opened.number, self.version, pairs, metrics)
        return self._last

    def _train(self, opened: OpenStep, keep: Collection[str] | None) -> tuple[Metrics, list[Pair]]:
        if self._cooptimizer is None or self.learning is None:
            return {}, []
        clock, model = Clock(), self.learning
        with clock.measure("wait_for_assistant"):
            pairs = self._cooptimizer.finish(opened.stage2, keep)
        with clock.measure("update_reward_model"):
            pairs, picked = self._cooptimizer.filtered(pairs, self.models)
            pairs, metrics = self._cooptimizer.update(pairs, model.learner, model.encoder)
        with clock.measure("probe"):
            metrics |= self._probes.measure(model.learner, model.encoder, opened.answered)
        return metrics | picked | clock.parts(), pairs

    def _state(self) -> dict[str, Any]:
        last = None
        if (updated := self._last) is not None:  # without times and memory, so that equal runs write equal checkpoints
            metrics = {name: value for name, value in updated.metrics.items() if not name.startswith(MEASURED)}
            pairs = [asdict(pair) for pair in updated.pairs]
            last = {"step": updated.step, "version": updated.version, "pairs": pairs, "metrics": metrics}
        return {
            "outline": outline(self.config),
            "version": self.version,
            "last_step": self.last_step,
            "last": last,
            "cooptimizer": self._cooptimizer.state() if self._cooptimizer is not None else None,
            "memories": [part.state() for part in self._remembering],
            "probes": self._probes.state(),
        }

    @property
    def _remembering(self) -> list[Remembers]:
        return [part for part in (self._reward, *self._shaping) if isinstance(part, Remembers)]
