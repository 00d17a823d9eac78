"""Ways of telling right completions from wrong ones: a rule, a reward model, a judge."""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from cooper_rl.data.labelled import Asked
from cooper_rl.data.problem import Problem
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.errors import InputError
from cooper_rl.evaluation.config import ScoringConfig
from cooper_rl.persist.durable import Journal
from cooper_rl.rewards.input import RewardModelInput
from cooper_rl.rules.kinds.maths import MathsRule, rule_settings
from cooper_rl.rules.rule import RuleConfig
from cooper_rl.verifyrm.config import JudgeConfig
from cooper_rl.verifyrm.label import LazyJudge, judge_settings

CHUNK = 128
"""Number of completions after which the opinions are written down. An interruption loses at most this many."""


@dataclass(frozen=True)
class Opinion:
    """A method's opinion of one completion.

    `verdict` is one of the rule's (`correct`, `wrong`, `unparsed`, `timeout`, `silent`), or `yes`, `no`, `unreadable`
    or `too_long`; `correct` and `yes` accept, and `silent` counts in no measure. `probability` is that of being right,
    for methods that give one. `failed` says that the method gave no answer at all and may be asked again.
    """

    verdict: str
    probability: float | None = None
    failed: bool = False

    @property
    def accepts(self) -> bool:
        return self.verdict in ("correct", "yes")

    @property
    def score(self) -> float:
        """The probability, or 1 for a verdict that accepts and 0 for any other."""
        return float(self.accepts) if self.probability is None else self.probability


class Method(Protocol):
    """One way of telling right completions from wrong ones. It may have nothing to close."""

    def settings(self) -> dict[str, Any]:
        """The settings that decide its opinions, as JSON values."""
        ...

    def opinions(self, rows: Sequence[Asked]) -> list[Opinion]:
        """One opinion per row, in order."""
        ...

    def close(self) -> None:
        """Release processes and connections."""
        return


class RuleMethod(Method):
    """A rule. Without `rule` it is `maths` with this number of workers."""

    def __init__(self, workers: int = 1, rule: RuleConfig | None = None) -> None:
        self._settings = {"kind": "rule"} | rule_settings(rule)
        self._rule = (MathsRule(workers=workers) if rule is None else rule).build()

    def settings(self) -> dict[str, Any]:
        return self._settings

    def opinions(self, rows: Sequence[Asked]) -> list[Opinion]:
        asked = [(Problem(row.question, row.question, row.answer), row.completion) for row in rows]
        return [Opinion(verdict) for verdict in self._rule.verify_problems(asked)]

    def close(self) -> None:
        self._rule.close()


class RewardModelMethod(Method):
    """A VerifyRM, which accepts if sigmoid(logit) > 1/2. It is loaded when it is first asked."""

    def __init__(self, config: ScoringConfig) -> None:
        self._config = config
        self._loaded: tuple[TorchRewardModelLearner, RewardModelInput] | None = None

    def settings(self) -> dict[str, Any]:
        c = self._config
        how: dict[str, Any] = {"asked": [c.words, c.ask]} if c.kind == "yes_no" else {}
        how |= {"input": c.input} if c.input != "tagged" else {}
        return {"kind": "reward_model", "model": c.model, "max": c.max_input_tokens, "autocast": c.autocast, **how}

    def opinions(self, rows: Sequence[Asked]) -> list[Opinion]:
        """See `Method`. A question that leaves no room for the completion is `too_long`."""
        if self._loaded is None:
            learner = TorchRewardModelLearner.from_config(self._config, 0, trainable=False)
            self._loaded = learner, RewardModelInput.of(self._config, learner.tokenizer)
        learner, encoder = self._loaded
        inputs = encoder.encode_each([(row.question, row.answer, row.completion) for row in rows])
        fits = [(number, token_ids) for number, token_ids in enumerate(inputs) if not isinstance(token_ids, InputError)]
        opinions = [Opinion("too_long")] * len(rows)
        scores = learner.score([token_ids for _, token_ids in fits]).double().sigmoid().tolist() if fits else []
        for (number, _), probability in zip(fits, scores, strict=True):
            opinions[number] = Opinion("yes" if probability > 0.5 else "no", probability)
        return opinions


class JudgeMethod(Method):
    """A language model that says yes or no. When it is first asked, it is loaded or its server is checked."""

    def __init__(self, config: JudgeConfig) -> None:
        self._config = config
        self._judge = LazyJudge(config)

    def settings(self) -> dict[str, Any]:
        return judge_settings(self._config)

    def opinions(self, rows: Sequence[Asked]) -> list[Opinion]:
        return [Opinion(said.verdict, said.probability, said.failed) for said in self._judge.judge(rows)]

    def close(self) -> None:
        self._judge.close()


def opinions_in_chunks(method: Method, asked: Sequence[Asked], path: Path) -> Iterator[list[Opinion]]:
    """A method's opinions of all rows, in chunks that a journal keeps. A judge whose server failed is asked again."""

    def ask(rows: Sequence[Asked]) -> list[dict[str, Any]]:
        return [asdict(opinion) for opinion in method.opinions(rows)]

    with Journal(path, method.settings()) as journal:
        for start in range(0, len(asked), CHUNK):
            chunk = asked[start : start + CHUNK]
            text = "\0".join(f"{row.question}\0{row.answer}\0{row.completion}" for row in chunk)
            key = f"{start} {zlib.crc32(text.encode()):08x}"
            values = journal.completed(key, chunk, ask, lambda opinion: opinion["failed"])
            yield [Opinion(**value) for value in values]
