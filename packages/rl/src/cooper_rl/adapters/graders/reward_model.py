"""A reward model in this process as a grader."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cooper_base.errors import InputError
from cooper_rl.adapters.graders.config import READING
from cooper_rl.adapters.graders.paid_run import paid_run, pays_plainly
from cooper_rl.adapters.graders.run_reward import RunReward
from cooper_rl.engines.config import ScorerConfig
from cooper_rl.engines.local import LocalEngine
from cooper_rl.engines.model_folder import weight_files
from cooper_verify.grader import TOO_LONG, Asked, Grader, Opinion, hashes_of

if TYPE_CHECKING:
    from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
    from cooper_rl.engines.reward_input import RewardModelInput


class RewardModelGrader(Grader):
    """A reward model, which accepts if sigmoid(logit) > 1/2. It is loaded when it is first asked."""

    accepts_above = 0.5
    gives_probabilities = True
    compares_answers = False

    def __init__(self, config: ScorerConfig, threads: int | None = None) -> None:
        """`threads` is the number of CPU threads for tensor work, by default as `set_threads` has it."""
        self.name = config.model
        self.reads_reference = config.reads_reference
        self._config, self._threads = config, threads
        self._loaded: tuple[TorchRewardModelLearner, RewardModelInput] | None = None

    def settings(self) -> dict[str, Any]:
        """The settings that decide the scores, with the contents of the model's files."""
        values = self._config.model_dump(mode="json", include=set(READING))
        return {"kind": "reward_model", "reward_model": values, "files": hashes_of(weight_files(self._config.model))}

    def grade(self, answers: Sequence[Asked], /) -> list[Opinion]:
        """`correct` and `wrong` with the probability, in single precision, as a run pays it. A question that leaves no
        room for the completion is `unparsed`. Raises InputError for a folder that cannot be loaded."""
        learner, encoder = self._model()
        inputs = encoder.encode_each([(problem.question, problem.answer, text) for problem, text in answers])
        fits = [(number, token_ids) for number, token_ids in enumerate(inputs) if not isinstance(token_ids, InputError)]
        opinions = [Opinion("unparsed", 0.0, TOO_LONG)] * len(answers)
        scores = learner.score([token_ids for _, token_ids in fits]).float().sigmoid().tolist() if fits else []
        for (number, _), probability in zip(fits, scores, strict=True):
            opinions[number] = Opinion("correct" if probability > 0.5 else "wrong", probability)
        return opinions

    def close(self) -> None:
        self._loaded = None

    def _model(self) -> "tuple[TorchRewardModelLearner, RewardModelInput]":
        if self._loaded is None:
            # torch, after bad input is reported
            from cooper_rl.engines.local.device import set_threads  # noqa: PLC0415
            from cooper_rl.engines.local.reward_model import TorchRewardModelLearner  # noqa: PLC0415
            from cooper_rl.engines.reward_input import RewardModelInput  # noqa: PLC0415

            set_threads(self._threads)
            learner = TorchRewardModelLearner.from_config(self._config, 0, trainable=False)
            self._loaded = learner, RewardModelInput.of(self._config, learner.tokenizer)
        return self._loaded


def open_reward_model(written: str, settings: Sequence[str]) -> Grader:
    """The reward model in a folder or on the hub, with settings of the run that would pay it. If these make the run pay
    something else than its probability, or load it elsewhere, it is that run's reward. Raises InputError for what does
    not fit."""
    config = paid_run(written, settings=settings)
    if config.reward_model is None or not pays_plainly(config) or not isinstance(config.engine, LocalEngine):
        return RunReward(written, config)
    return RewardModelGrader(config.reward_model, config.threads)
