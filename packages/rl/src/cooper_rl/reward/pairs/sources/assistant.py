"""The assistant's negatives: wrong versions of the positives."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice
from typing import TYPE_CHECKING, ClassVar, Literal

from cooper_base.errors import InputError
from cooper_rl.reward.pairs.assistant import REJECTIONS, RewriteRequest, RewritingSource
from cooper_rl.reward.pairs.base import PAIRS, MadePairs, Pair, PairGroup, PairInputs, PairSourceConfig, valid_rate

if TYPE_CHECKING:
    from cooper_rl.reward.context import StepContext
    from cooper_rl.reward.pairs.assistant import Assistant, Started


@PAIRS.register
class AssistantPairs(PairSourceConfig):
    """Pairs of a positive and a wrong version of it, which `cooptimization.assistant` writes."""

    writes_wrong_answers: ClassVar[bool] = True

    kind: Literal["assistant"] = "assistant"

    def build(self, inputs: PairInputs) -> AssistantSource:
        """Raises InputError without an assistant."""
        if inputs.assistant is None:
            raise InputError(
                "cooptimization.assistant is missing, but cooptimization.pairs lists assistant; describe one "
                "(kind: chat with base_url and model, or kind: corrupter with function), or set "
                "pairs: [{kind: on_policy}]; kind: cooper has the pairs that need none if you leave pairs out"
            )
        return AssistantSource(inputs.assistant, inputs.config.pairs_per_problem)


class AssistantSource(RewritingSource):
    """Asks for `count` wrong versions of each group with a positive."""

    def __init__(self, assistant: Assistant, count: int) -> None:
        super().__init__(assistant, REJECTIONS)
        self._count = count

    def requests(self, groups: Sequence[PairGroup], context: StepContext) -> dict[str, list[RewriteRequest]]:
        return {
            group.id: [
                RewriteRequest.of(group.problem, text, group.random("pairs").getrandbits(31))
                for text in islice(cycle(group.positives), self._count)
            ]
            for group in groups
        }

    def pair(self, group: PairGroup, request: RewriteRequest, text: str) -> Pair:
        return group.pair(request.whole(request.text), request.whole(text), "assistant")

    def pairs(self, groups: Sequence[PairGroup], started: Sequence[Started]) -> MadePairs:
        made = super().pairs(groups, started)
        return MadePairs(made.pairs, {**made.metrics, **valid_rate("assistant", made.pairs, groups, self._count)})
