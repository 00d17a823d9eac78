"""A model's folder or hub name, measured on any number of sets of problems with one engine."""

from collections.abc import Callable, Mapping
from typing import Any

from cooper_base.closing import Closing
from cooper_base.data.problem import Problem
from cooper_rl.data.prompts import PromptEncoder
from cooper_rl.engines.config import Autocast, SamplingParams
from cooper_rl.engines.local import LocalEngine
from cooper_rl.engines.local.device import set_threads
from cooper_rl.engines.local.sampler import NativeSampler
from cooper_rl.policy.accuracy import EvaluationResult, HeldOut, gold_of
from cooper_verify.problems.config import ProblemsConfig
from cooper_verify.problems.loading import load_problems
from cooper_verify.rules.kinds.maths import MathsRule
from cooper_verify.rules.rule import RuleConfig
from cooper_verify.rules.verifier import Verifier


class FolderEvaluator(Closing):
    """Measures one model, which is loaded once. Close it at the end, or use it in a `with` statement."""

    def __init__(
        self,
        model: str,
        engine: Any = LocalEngine(),  # noqa: B008 - a frozen record
        rule: RuleConfig | None = None,
        autocast: Autocast = "auto",
        max_rows: int = 0,
        threads: int | None = None,
        rules: Mapping[str, RuleConfig] | None = None,
    ) -> None:
        """`engine` is of kind local or vllm. `rule` is `maths` by default; `rules` are further rules that problems
        name. `autocast` and `max_rows` are for the native sampler. Raises InputError as the samplers do."""
        set_threads(threads)
        if isinstance(engine, LocalEngine):
            self.sampler = NativeSampler.from_folder(model, autocast=autocast, max_rows=max_rows)
        else:
            self.sampler = engine.sampler_of_folder(model)
        self._verifier = Verifier(MathsRule() if rule is None else rule, rules)

    def close(self) -> None:
        self._verifier.close()

    def evaluate(
        self,
        data: ProblemsConfig,
        params: SamplingParams,
        k: int,
        batch_size: int = 16,
        seed: int = 0,
        progress: Callable[[int, int], None] | None = None,
        on_first: Callable[[Problem, str], None] | None = None,
        section: str = "problems",
    ) -> dict[str, EvaluationResult]:
        """Sample k completions of every problem; label them with the `rule` and, where the problems have it, `gold`.

        `batch_size` counts problems. `on_first` is called with the first problem and its prompt before anything is
        sampled. Raises InputError for unusable problems, naming the `section` of their settings, and for prompts that
        do not fit.
        """
        problems = load_problems(data, self._verifier, section, held_out=True).problems
        encoder = PromptEncoder(self.sampler.tokenizer, data.prompt, self.sampler.room(params.max_tokens))
        asked = encoder.fitting(problems)
        if on_first is not None and asked:
            on_first(asked[0], encoder.decode(encoder.encode(asked[0])))
        held_out = HeldOut(asked, encoder, params, k, batch_size, gold_of(data))
        return held_out.evaluate(self.sampler, self._verifier, seed, progress)
