"""The methods that a bench compares: rule, reward model and judge behind one interface."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cooper_rl.data.labelled import Asked
from cooper_rl.data.problem import Problem
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.errors import InputError
from cooper_rl.rewards.model.input import RewardModelInput
from cooper_rl.rewards.rule.base import RuleConfig
from cooper_rl.rewards.rule.kinds.maths import MathsRule, rule_settings
from cooper_rl.verifyrm.label.judge import build_judge, judge_settings
from cooper_rl.verifyrm.label.judge_config import JudgeConfig
from cooper_rl.verifyrm.train.config import ScoringConfig


@dataclass(frozen=True)
class Opinion:
    """A method's opinion of one completion.

    `verdict` is one of the rule's (`correct`, `wrong`, `unparsed`, `timeout`), or `yes`, `no`, `unreadable` or
    `too_long`; `correct` and `yes` accept. `probability` is that of being right, for methods that give one. `failed`
    says that the method gave no answer at all and may be asked again.
    """

    verdict: str
    probability: float | None = None
    failed: bool = False

    @property
    def accepts(self) -> bool:
        return self.verdict in ("correct", "yes")


class Method(Protocol):
    """One way of telling right completions from wrong ones."""

    def settings(self) -> dict[str, Any]:
        """The settings that decide its opinions, as JSON values."""
        ...

    def opinions(self, rows: Sequence[Asked]) -> list[Opinion]:
        """One opinion per row, in order."""
        ...

    def close(self) -> None:
        """Release processes and connections."""
        ...


class RuleMethod:
    """A rule. Without `rule` it is `maths` with this number of workers."""

    def __init__(self, workers: int = 1, rule: RuleConfig | None = None) -> None:
        self._settings = rule_settings(rule)
        self._rule = (MathsRule(workers=workers) if rule is None else rule).build()

    def settings(self) -> dict[str, Any]:
        """See `Method`."""
        return {"kind": "rule"} | self._settings

    def opinions(self, rows: Sequence[Asked]) -> list[Opinion]:
        """See `Method`."""
        asked = [(Problem(row.question, row.question, row.answer), row.completion) for row in rows]
        return [Opinion(verdict) for verdict in self._rule.verify_problems(asked)]

    def close(self) -> None:
        """See `Method`."""
        self._rule.close()


class RewardModelMethod:
    """A VerifyRM, which accepts if sigmoid(logit) > 1/2. It is loaded when it is first asked."""

    def __init__(self, config: ScoringConfig) -> None:
        self._config = config
        self._loaded: tuple[TorchRewardModelLearner, RewardModelInput] | None = None

    def settings(self) -> dict[str, Any]:
        """See `Method`."""
        c = self._config
        return {"kind": "reward_model", "model": c.model, "max": c.max_input_tokens, "autocast": c.autocast}

    def opinions(self, rows: Sequence[Asked]) -> list[Opinion]:
        """See `Method`. A question that leaves no room for the completion is `too_long`."""
        if self._loaded is None:
            learner = TorchRewardModelLearner.from_config(self._config, 0, trainable=False)
            self._loaded = learner, RewardModelInput(learner.tokenizer, self._config.max_input_tokens)
        learner, encoder = self._loaded
        encoded = [_encoded(encoder, row) for row in rows]
        fits = [token_ids for token_ids in encoded if token_ids is not None]
        scores = iter(learner.score(fits).double().sigmoid().tolist() if fits else [])
        return [Opinion("too_long") if ids is None else _from_probability(next(scores)) for ids in encoded]

    def close(self) -> None:
        """See `Method`."""


class JudgeMethod:
    """A language model that says yes or no. When it is first asked, it is loaded or its server is checked."""

    def __init__(self, config: JudgeConfig) -> None:
        self._config = config
        self._judge = None

    def settings(self) -> dict[str, Any]:
        """See `Method`."""
        return judge_settings(self._config)

    def opinions(self, rows: Sequence[Asked]) -> list[Opinion]:
        """See `Method`."""
        if self._judge is None:
            self._judge = build_judge(self._config)
            self._judge.check()
        return [Opinion(said.verdict, said.probability, said.failed) for said in self._judge.judge(rows)]

    def close(self) -> None:
        """See `Method`."""
        if self._judge is not None:
            self._judge.close()


def _encoded(encoder: RewardModelInput, row: Asked) -> list[int] | None:
    try:
        return encoder.encode(row.question, row.answer, row.completion)
    except InputError:
        return None


def _from_probability(probability: float) -> Opinion:
    return Opinion("yes" if probability > 0.5 else "no", probability)
