"""Completes drafts in waves. A wave is rows that enter the batch together; it may enter while others are under way."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int

from cooper_rl.engines.kernels.grouped_cache import filling_gaps
from cooper_rl.engines.local.decoding import DecodingBatch
from cooper_rl.engines.local.drafts import Drafts
from cooper_rl.engines.local.drawing import RowNoise, draw_tokens
from cooper_rl.engines.local.stops import StopRule
from cooper_rl.engines.sampling import SamplingParams

ENTER_ABOVE = 0.25
"""Rows enter a batch under way once this share of its places is free. A prefill of few prompts is slow, and so is
attention in many small waves; a batch that is not quite full costs little."""


@dataclass(frozen=True)
class Work:
    """What is drawn, and how."""

    prompts: Sequence[Sequence[int]]
    drafts: Drafts
    params: SamplingParams
    rule: StopRule
    seed: int
    leave_above: float
    """Finished rows leave the batch once they are at least this share of their wave."""
    keep_order: bool
    """Whether the others keep their order then. It costs copies, but a row's place shows in its last digits."""


class Wave:
    """Rows under way that entered together, so all have the same number of tokens after their prompt."""

    def __init__(self, work: Work, batch: DecodingBatch, rows: Int[np.ndarray, " rows"]) -> None:
        """Prefill the prompts of the drafts `rows`. Drafts of one prompt must be neighbours."""
        drafts = work.drafts
        prompts, samples = drafts.prompt[rows].tolist(), drafts.sample[rows].tolist()
        counts = Counter(prompts)
        self.batch = batch
        self._work = work
        self._rows = rows
        self._slots = np.arange(len(rows))  # indices of `rows` that are still in the batch
        self._noise = RowNoise(work.seed, list(zip(prompts, samples, strict=True)))
        self._step = 0
        self.logits = batch.prefill([work.prompts[prompt] for prompt in counts], list(counts.values()))
        self.tokens = torch.empty(0, dtype=torch.long)
        """The last token of each row, once one is drawn."""
        self._stop_ids = torch.tensor(sorted(work.rule.token_ids), device=self.logits.device, dtype=torch.long)

    def __len__(self) -> int:
        """Rows in the batch; 0 once all completions are finished."""
        return len(self._slots)

    def draw(self) -> None:
        """Draw a token for every row from `logits`. Then let finished rows leave, if there are enough of them."""
        work, rows = self._work, self._rows[self._slots]
        uniforms = torch.from_numpy(self._noise.uniforms(self._step, self._slots))
        forbidden = self._stop_ids if self._step < work.params.min_tokens else None
        tokens, logprobs = draw_tokens(self.logits, uniforms, work.params, forbidden)
        self._step += 1
        work.drafts.extend(rows, tokens.cpu().numpy(), logprobs.cpu().numpy(), work.rule)
        going = np.flatnonzero(work.drafts.open(rows))
        if not len(going):
            self._slots = going
        elif len(going) <= (1 - work.leave_above) * len(rows):
            kept = torch.from_numpy(going)
            kept = kept if work.keep_order else filling_gaps(kept)
            self._slots = self._slots[kept.numpy()]
            kept = kept.to(tokens.device)
            self.batch.keep(kept)
            tokens = tokens.index_select(0, kept)
        self.tokens = tokens


def complete(queue: Int[np.ndarray, " B"], work: Work, max_rows: int, new_batch: Callable[[], DecodingBatch]) -> None:
    """Complete the drafts `queue`, at most `max_rows` (0: all) at a time.

    The next wave enters once there is room for it, or, if the model's cache cannot hold rows of different ages, once
    the one before it has ended.
    """
    size = max_rows or len(queue)
    under_way: list[Wave] = []
    while len(queue) or under_way:
        free = size - sum(map(len, under_way))
        enough = free >= min(len(queue), ENTER_ABOVE * size)
        if len(queue) and (not under_way or (enough and under_way[0].batch.can_be_joined)):
            count = _whole_groups(work.drafts.prompt[queue], free)
            under_way.append(Wave(work, new_batch(), queue[:count]))
            queue = queue[count:]
        for wave in under_way:
            wave.draw()
        under_way = [wave for wave in under_way if len(wave)]
        logits = DecodingBatch.step_together([wave.batch for wave in under_way], [wave.tokens for wave in under_way])
        for wave, its_own in zip(under_way, logits, strict=True):
            wave.logits = its_own


def _whole_groups(prompts: Int[np.ndarray, " B"], most: int) -> int:
    """The largest number of rows up to `most` that does not divide a prompt's rows, or `most` if there is none."""
    if len(prompts) <= most:
        return len(prompts)
    ends = np.flatnonzero(np.diff(prompts[: most + 1])) + 1
    return int(ends[-1]) if len(ends) else most
