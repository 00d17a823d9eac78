"""A causal language model in this process as a judge."""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from cooper_base.errors import InputError, value_or_raise
from cooper_rl.adapters.graders.config import LocalJudgeConfig
from cooper_rl.data.prompts import rendered_chats
from cooper_rl.engines.config import SamplingParams
from cooper_rl.engines.local.sampler import NativeSampler
from cooper_rl.engines.yes_no import NO, YES
from cooper_verify.grader import Asked
from cooper_verify.graders.judge import Judge
from cooper_verify.graders.judgement import Judgement, from_probabilities, judge_chat, parse_reply


class LocalJudge(Judge):
    """A causal language model in this process. It is asked through its chat template if it has one."""

    def __init__(self, config: LocalJudgeConfig) -> None:
        """Raises InputError for an unusable folder or tokenizer."""
        self._config = config
        self._sampler = NativeSampler.from_folder(
            config.model, device=config.device, max_rows=config.max_rows, autocast=config.autocast
        )
        self._tokenizer = self._sampler.tokenizer
        self._yes, self._no = _first_tokens(self._tokenizer, YES), _first_tokens(self._tokenizer, NO)
        if config.read == "first_token" and (not self._yes or not self._no or self._yes & self._no):
            raise InputError(f"{config.model}: yes and no are not single tokens; set judge.read: text")

    def judge(self, answers: Sequence[Asked], /) -> list[Judgement]:
        """One judgement for each answer, in order: `unreadable` for a question that fills the model's context."""
        most = self._config.max_completion_chars
        chats = [judge_chat(problem.question, problem.answer, text, most) for problem, text in answers]
        special = not self._tokenizer.chat_template
        texts: list[str] = [value_or_raise(text) for text in rendered_chats(self._tokenizer, chats)]
        prompts = [list(self._tokenizer.encode(text, add_special_tokens=special)) for text in texts]
        room = self._sampler.room(self._config.max_tokens)
        fits = [i for i, prompt in enumerate(prompts) if room is None or len(prompt) <= room]
        judged = [Judgement("unreadable", detail="the prompt exceeds the judge's context") for _ in answers]
        for i, judgement in zip(fits, self._ask([prompts[i] for i in fits]), strict=True):
            judged[i] = judgement
        return judged

    def _ask(self, prompts: list[list[int]]) -> list[Judgement]:
        if self._config.read == "text":
            params = SamplingParams(temperature=0.0, max_tokens=self._config.max_tokens)
            replies = self._sampler.sample(prompts, 1, params, seed=0)
            return [Judgement(parse_reply(reply), detail=reply) for reply in replies.texts]
        if not prompts:
            return []
        probabilities = self._sampler.next_token_logits(prompts).double().softmax(dim=1)
        yes, no = (probabilities[:, sorted(tokens)].sum(dim=1).tolist() for tokens in (self._yes, self._no))
        return [from_probabilities({"yes": p, "no": q}) for p, q in zip(yes, no, strict=True)]


def _first_tokens(tokenizer: PreTrainedTokenizerBase, words: Sequence[str]) -> set[int]:
    """Tokens that are one of the words. Words of several tokens are left out: their first token means other things."""
    encoded = [tokenizer.encode(word, add_special_tokens=False) for word in words]
    return {ids[0] for ids in encoded if len(ids) == 1 and ids[0] != tokenizer.unk_token_id}
