"""The co-trained reward as one object: it scores answers and learns from them once per step."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any, Self, get_args

from cooper_base.clock import Clock
from cooper_base.closing import Closing
from cooper_base.config.checking import Settings, check_settings
from cooper_base.data.answer import AnswerGroup
from cooper_base.data.verdict import UserVerdict
from cooper_base.errors import InputError
from cooper_base.files.durable import read_fields, write_text
from cooper_rl.engines.base import Metrics
from cooper_rl.engines.local.models import load_tokenizer
from cooper_rl.engines.reward_input import RewardModelInput
from cooper_rl.reward.base import Closes, Remembers, Scores
from cooper_rl.reward.context import RewardModel, StepContext
from cooper_rl.reward.cooptimization import Cooptimizer
from cooper_rl.reward.kinds.plain import build_sum
from cooper_rl.reward.pairs.base import Pair
from cooper_rl.reward.reward_config import (
    CooperRewardConfig,
    RewardInputs,
    check_outline,
    comparing_part,
    outline,
    read_reward_inputs,
)
from cooper_rl.reward.scored import ProbeSet, Scored, Updated
from cooper_rl.reward.shaping import shaped
from cooper_verify.rules.verifier import Verifier

MODEL_FOLDER, STATE_FILE = "reward_model", "reward.json"
_STATE = {"outline": dict, "version": int, "last_step": int, "cooptimizer": dict | None}
_STATE |= {"memories": list, "probes": dict}
VERDICTS = get_args(UserVerdict)
FALSE_ACCEPTS = "reward_model/false_accept_rate"
OF_ANSWERS = ("rule/", "gold/accuracy", "function/")
"""Beginnings of the names of metrics that no reward model's weights change."""


class CooperReward(Closing):
    """Scores answers and, if it has a reward model that learns, trains that model on them.

    A step is one or more `score` calls, and one `update` on what they returned. Between the two, this object holds
    nothing of the step. The only input is problems and texts. All methods are safe to call from several threads. A call
    made during an update waits until the update ends, so every score comes from one version of the model. The process's
    global random states are neither read nor changed.
    """

    def __init__(
        self, config: CooperRewardConfig, inputs: RewardInputs, model: RewardModel | None, gold: str | None = None
    ) -> None:
        """`model` is that of `config.loaded_model`; for `gold` see `StepContext`."""
        self.config = config
        self.model = model
        """The reward model, if one is loaded."""
        self.learning = model if config.learns else None
        """The same, if it learns."""
        self.verifier: Verifier = inputs.verifier
        self.version = 0
        """Number of updates of the reward model so far."""
        self.last_step = 0
        """The last step whose update is done."""
        self._reward = build_sum(config.rewards)
        self._shaping = [part.build() for part in config.shaping]
        self._gold = gold
        self._planned_steps = config.planned_steps
        self._needs_references = config.needs_references  # once: to say so, a grader among the rewards is opened
        self._learns_from_solutions = config.learns and "reference_solution" in config.cooptimization.positives
        self._cooptimizer: Cooptimizer | None = None
        if self.learning is not None:
            arguments = (inputs.verifier, inputs.assistant, config.seed, inputs.replayed)
            self._cooptimizer = Cooptimizer(config.cooptimization, *arguments)
        self._probes = ProbeSet()
        self._lock = RLock()

    @classmethod
    def from_config(
        cls,
        config: CooperRewardConfig | Mapping[str, Any],
        total_steps: int | None = None,
        inputs: RewardInputs | None = None,
        gold: str | None = None,
    ) -> Self:
        """Load the reward model that `config` (a `CooperRewardConfig`, its settings, or a whole `RunConfig`) names.

        `total_steps` is the length of the run, which a falling schedule needs and a `RunConfig` knows already. `inputs`
        is the result of `read_reward_inputs(config)`, which is called if they are missing. Raises InputError for
        invalid settings, files or models.
        """
        if not isinstance(config, CooperRewardConfig):
            config = check_settings(CooperRewardConfig, Settings(config))  # pyright: ignore[reportArgumentType] - it is checked there
        inputs = read_reward_inputs(config) if inputs is None else inputs
        steps = total_steps if total_steps is not None else config.planned_steps
        model, settings = None, config.loaded_model
        if settings is not None:
            if steps is None and settings.learns and settings.schedule != "constant":
                why = f"{settings.schedule} needs the length of the run; give total_steps"
                raise InputError(f"reward_model.schedule: {why}")
            epochs = config.cooptimization.epochs
            learner = config.engine.reward_model(settings.for_updates(epochs), (steps or 0) * epochs, settings.learns)
            model = RewardModel(learner, RewardModelInput.of(settings, load_tokenizer(settings.model)))
        return cls(config, inputs, model, gold)

    def check(self, groups: Sequence[AnswerGroup], *, one_at_a_time: bool = False) -> None:
        """Raises InputError for a rule that does not exist, and for an answer that nobody can judge: without a verdict
        of its own, it needs a rule and a reference. With `one_at_a_time`, other answers to the same problems come in
        other calls; then also for a reward or shaping that compares the answers of a group."""
        if one_at_a_time and (setting := comparing_part(self.config.rewards, self.config.shaping)) is not None:
            raise InputError(
                f"{setting} compares the answers of a group, but they come one at a time, so each would be compared "
                "with itself; send whole groups (TRL, slime with --group-rm, or your own client without `partial`), or "
                "take a reward that reads each answer by itself. A class of your own that does so says "
                "`compares_answers = False`, and a function takes one completion"
            )
        self.verifier.check([group.problem for group in groups])
        for group in groups:
            problem = group.problem
            outside = self.verifier.needs_verdicts(problem)
            heard = not outside and (problem.answer or not self._needs_references)
            for i, answer in enumerate(group.answers):
                if answer.verdict in VERDICTS or (answer.verdict is None and heard):
                    continue
                why = "the rule of its problem is `outside`" if outside else "its problem has no reference answer"
                why = f"the verdict {answer.verdict!r}" if answer.verdict is not None else f"no verdict, and {why}"
                raise InputError(
                    f"group {group.id}: answer {i} has {why}; give it a verdict (correct, wrong, unparsed, or silent "
                    f"if nobody knows){'' if outside else ', or the problem a reference answer'}"
                )

    def score(
        self,
        groups: Sequence[AnswerGroup],
        *,
        step: int | None = None,
        train: bool = True,
        earlier: Sequence[Scored] = (),
    ) -> Scored:
        """Score these groups with the current version of the model. With `train`, the assistant starts to write.

        `step` defaults to the one after the last that was updated. A step may be scored in several calls, each with its
        own groups; `earlier` is what the calls before this one returned. The order of the groups does not matter. With
        `train=False` the groups never become pairs. State across steps, such as the running mean of `hybrid`, changes
        only in `update`, but the groups of one call are weighted together, by `earned` with those of `earlier`. Raises
        InputError as `check` does, if there are no groups, and if the step is already updated.
        """
        alone = bool(groups) and all(len(group.answers) == 1 for group in groups)
        self.check(groups, one_at_a_time=train and alone)
        with self._lock:
            context = self.context(groups)
            if not train:
                return self.pay(context)
            number = self._next_step(step)
            if not groups:
                raise InputError(f"step {number}: there are no groups to score")
            clock = Clock()
            context.others_of_step = [call.context for call in earlier]
            _check_ids(number, [*context.others_of_step, context])
            with clock.measure("verify"):
                _ = context.verdicts
            with clock.measure("reward"):
                scored = self.pay(context, number)
            scored = self.begin_pairs(scored)
            return replace(scored, metrics=scored.metrics | clock.parts())

    def update(
        self, scored: Scored | Sequence[Scored], *, step: int | None = None, keep: Collection[str] | None = None
    ) -> Updated:
        """Wait for the assistant, then train the reward model on the step's pairs.

        `scored` is what `score` returned for the step, of several calls a list of it. `keep` holds the ids of the
        groups that become pairs; by default all do. `step` is needed only to skip numbers in a step without answers.
        Raises InputError for answers that cannot be learned from: of an evaluation, of another step, scored before the
        last update, or twice in the step; and for an id in `keep` that was not scored.
        """
        calls = _calls_of(scored)
        with self._lock:
            number = self._step_of(calls, step)
            groups = {group.id for call in calls for group in call.context.groups}
            if unknown := [name for name in keep or () if name not in groups]:
                raise InputError(f"step {number}: keep names groups that were not scored: {', '.join(unknown[:5])}")
            metrics, pairs = self._train(calls, keep)
            return self._finished(number, [call.context for call in calls], metrics, pairs)

    def learns_first(self, scored: Scored) -> bool:
        """Whether cooptimization should come before the policy's update: see `cooptimization.before_policy`."""
        limit = self.config.cooptimization.before_policy
        if limit is None or self.learning is None:
            return False
        return limit == 0 or scored.metrics.get(FALSE_ACCEPTS, 0.0) > limit

    def update_and_rescore(self, scored: Scored, groups: Sequence[AnswerGroup]) -> tuple[Updated, Scored]:
        """`update`, then the step's answers scored with the model as it is now, which pays: those of `groups`.

        Verdicts and gold labels stay, and every group of the step is scored again, in the order of the `score` calls.
        State across steps moves once, by the scores that pay. The metrics that a model's weights can change are there,
        named `<metric>_after`. Raises InputError as `update` does.
        """
        calls = _calls_of(scored)
        with self._lock:
            number = self._step_of(calls, None)
            metrics, pairs = self._train(calls, None)
            fresh = [call.context.afresh() for call in calls]
            for context in fresh:
                context.others_of_step = [other for other in fresh if other is not context]
            paid = [self.pay(context, number) for context in fresh]
            updated = self._finished(number, fresh, metrics, pairs)
        again = Scored.joined(paid, groups)
        of_models = {name: value for name, value in again.metrics.items() if not name.startswith(OF_ANSWERS)}
        metrics = {f"{name}_after": value for name, value in of_models.items()}
        return updated, replace(again, version=updated.version, metrics=metrics)

    def save(self, folder: str | Path) -> None:
        """Write the model that learns as a Hugging Face folder `reward_model/`, and the rest as `reward.json`.

        This is the state after the last update. Answers scored since then are not in it.
        """
        with self._lock:
            folder = Path(folder)
            folder.mkdir(parents=True, exist_ok=True)
            if self.learning is not None:
                self.learning.learner.save(folder / MODEL_FOLDER)
            write_text(folder / STATE_FILE, json.dumps(self._state()), durable=False)

    def load(self, folder: str | Path) -> None:
        """Restore exactly what `save` wrote. Answers scored before can no longer be learned from.

        Raises InputError if the folder holds no saved reward, or one with different rewards, shapings or models.
        """
        with self._lock:
            path = Path(folder) / STATE_FILE
            if not path.is_file():
                raise InputError(
                    f"{path}: no such file, so it was not written with this reward; name the folder of a checkpoint "
                    "that was"
                )
            state = read_fields(path, _STATE, "restore another checkpoint")
            check_outline(self.config, state["outline"])
            if self.learning is not None and self._cooptimizer is not None:
                self.learning.learner.load(Path(folder) / MODEL_FOLDER)
                self._cooptimizer.restore(state["cooptimizer"])
            for part, memory in zip(self._remembering, state["memories"], strict=True):
                part.restore(memory)
            self._probes.restore(state["probes"])
            self.version, self.last_step = state["version"], state["last_step"]

    def close(self) -> None:
        """End the verifier's processes and all connections."""
        self.verifier.close()
        for part in (self._reward, *self._shaping):
            if isinstance(part, Closes):
                part.close()
        if self._cooptimizer is not None:
            self._cooptimizer.close()

    def context(self, groups: Sequence[AnswerGroup]) -> StepContext:
        """The answers, with nothing computed yet. `score` uses it, and whoever scores several calls in one batch."""
        context = StepContext(groups, self.verifier, self.model, self._gold)
        context.learns_from_solutions = self._learns_from_solutions
        context.planned_steps = self._planned_steps
        return context

    def pay(self, context: StepContext, step: int | None = None) -> Scored:
        """The rewards of these answers. Changes nothing and starts nothing."""
        context.steps_before = self.last_step if step is None else step - 1
        scores = self._reward.score(context)
        # Even if no reward reads the model: pairs need its logits before the update, and its scores are recorded.
        parts = scores.parts | (context.model_parts if context.has_model else {})
        unshaped = Scores(scores.rewards, parts, scores.metrics, scores.summands)
        paid = shaped(unshaped, self._shaping, context) if self._shaping else unshaped
        return Scored.of(context, paid, self.version, step)

    def begin_pairs(self, scored: Scored) -> Scored:
        """Choose positives among these answers of a step, and have the sources of pairs begin their work."""
        if self._cooptimizer is None or scored.step is None:
            return scored
        return replace(scored, started_pairs=self._cooptimizer.start(scored.context, scored.step))

    def _next_step(self, step: int | None) -> int:
        """The number of the step that comes next. Raises InputError for a step that is already updated."""
        if step is not None and step <= self.last_step:
            raise InputError(
                f"step {step}: step {self.last_step} is already updated; to go back, load a checkpoint from before "
                f"step {step}"
            )
        return self.last_step + 1 if step is None else step

    def _step_of(self, calls: Sequence[Scored], step: int | None) -> int:
        """The step that these calls scored. Raises InputError if they cannot be learned from together."""
        if any(call.step is None for call in calls):
            raise InputError("update: answers that were scored with train=False are never learned from")
        steps = sorted({call.step for call in calls if call.step is not None})
        if len(steps) > 1:
            raise InputError(f"update: answers of step {steps[0]} and step {steps[1]}; update one step after the other")
        number = self._next_step(*steps or [step])
        if step not in (None, number):
            raise InputError(f"step {step}: the answers were scored for step {number}")
        if old := [call.version for call in calls if call.version != self.version]:
            raise InputError(
                f"step {number}: version {old[0]} of the reward model scored its answers, but the model is at version "
                f"{self.version}; score them again"
            )
        _check_ids(number, [call.context for call in calls])
        return number

    def _finished(self, step: int, contexts: Sequence[StepContext], metrics: Metrics, pairs: Sequence[Pair]) -> Updated:
        """End the step. `contexts` hold the answers as they were paid, by which state across steps moves."""
        for part in self._remembering:
            part.commit(contexts)
        self.version += self._cooptimizer is not None
        self.last_step = step
        return Updated(step, self.version, list(pairs), metrics)

    def _train(self, calls: Sequence[Scored], keep: Collection[str] | None) -> tuple[Metrics, list[Pair]]:
        if self._cooptimizer is None or self.learning is None:
            return {}, []
        clock, model = Clock(), self.learning
        with clock.measure("wait_for_assistant"):
            pairs = self._cooptimizer.finish(
                [call.started_pairs for call in calls if call.started_pairs is not None], keep
            )
        with clock.measure("update_reward_model"):
            chosen, picked = self._cooptimizer.filtered(pairs, model)
            known = {row: logit for call in calls for row, logit in call.context.known_logits.items()}
            metrics: Metrics = {}
            if chosen is not None:
                pairs, metrics = self._cooptimizer.update(chosen, model.learner, model.encoder, known)
        with clock.measure("probe"):
            answered = [group for call in calls for group in call.context.groups]
            metrics |= self._probes.measure(model, answered)
        return metrics | picked | clock.parts(), pairs

    def _state(self) -> dict[str, Any]:
        return {
            "outline": outline(self.config),
            "version": self.version,
            "last_step": self.last_step,
            "cooptimizer": self._cooptimizer.state() if self._cooptimizer is not None else None,
            "memories": [part.state() for part in self._remembering],
            "probes": self._probes.state(),
        }

    @property
    def _remembering(self) -> list[Remembers]:
        return [part for part in (self._reward, *self._shaping) if isinstance(part, Remembers)]


def _check_ids(step: int, contexts: Sequence[StepContext]) -> None:
    """Raises InputError if two groups of a step have the same id."""
    counts = Counter(group.id for context in contexts for group in context.groups)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise InputError(f"step {step}: group {twice[0]} is in it twice; give every group of a step its own id")


def _calls_of(scored: Scored | Sequence[Scored]) -> list[Scored]:
    """The results of `score` calls, one by one."""
    results = [scored] if isinstance(scored, Scored) else scored
    return [call for result in results for call in result.calls or (result,)]
