"""On-policy negatives: the policy's own completions that the rule rejects."""

import math
from collections.abc import Sequence
from random import Random

from cooper_rl.cooptimization.config import OnPolicyConfig
from cooper_rl.data.text import has_content, normalise
from cooper_rl.rollouts import Answer, AnswerGroup


def choose_on_policy_negatives(
    group: AnswerGroup,
    verdicts: Sequence[str],
    rm_logits: Sequence[float],
    positives: Sequence[str],
    count: int,
    config: OnPolicyConfig,
    rng: Random,
    trusted: Sequence[bool] | None = None,
) -> list[str]:
    """Up to `count` different wrong completions of a group, normalised.

    Completions that stopped on their own come first. Those cut at the length limit come last, because they would teach
    "unfinished is wrong" rather than "wrong is wrong". Within each kind, `config.order` decides. A text is never a
    negative if it is also a positive, if the rule accepts it anywhere in the group, or if it is `trusted` (see
    `OnPolicyConfig.agree_with`). `rm_logits` are the group's reward-model logits.
    """
    rows = list(zip(group.answers, verdicts, rm_logits, strict=True))
    right = [normalise(completion.text) for completion, verdict, _ in rows if verdict == "correct"]
    excluded = {*right, *positives}
    if trusted is not None:
        excluded |= {normalise(answer.text) for answer, known in zip(group.answers, trusted, strict=True) if known}
    if config.order == "random":
        rng.shuffle(rows)
    else:
        rows.sort(key=lambda row: -row[2] if math.isfinite(row[2]) else math.inf)
    rows.sort(key=lambda row: not row[0].stopped)  # stable sort: keeps the order within each kind
    texts = [normalise(completion.text) for completion, verdict, _ in rows if _is_wrong(completion, verdict, config)]
    return [text for text in dict.fromkeys(texts) if text not in excluded][:count]


def _is_wrong(completion: Answer, verdict: str, config: OnPolicyConfig) -> bool:
    if verdict == "unparsed":
        return config.trust_unparsed or not has_content(completion.text)
    return verdict == "wrong"
