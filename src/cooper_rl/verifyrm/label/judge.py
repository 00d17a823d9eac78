"""Judges: a language model, local or behind a server, gives each completion the verdict yes, no or unreadable."""

from collections.abc import Sequence
from typing import Any, Protocol

from transformers import PreTrainedTokenizerBase

from cooper_rl.clients.chat import ChatClient
from cooper_rl.clients.chat_config import HANDLING
from cooper_rl.data.labelled import Asked
from cooper_rl.data.prompts import render_chat
from cooper_rl.engines.local.sampler import NativeSampler
from cooper_rl.engines.sampling import SamplingParams
from cooper_rl.errors import InputError
from cooper_rl.rewards.judging.verdict import Judgement, from_probabilities, judgement_of
from cooper_rl.rewards.judging.verdict_prompt import NO, YES, judge_chat, parse_reply
from cooper_rl.verifyrm.label.judge_config import ChatJudgeConfig, JudgeConfig, LocalJudgeConfig


class Judge(Protocol):
    """Says whether completions agree with their reference answers.

    A reply that cannot be read gives the verdict `unreadable` and never an exception.
    """

    def judge(self, rows: Sequence[Asked]) -> list[Judgement]:
        """One judgement per row, in order."""
        ...

    def check(self) -> None:
        """Raises InputError if the judge cannot be reached."""
        ...

    def close(self) -> None:
        """Release connections and threads."""
        ...


def build_judge(config: JudgeConfig) -> Judge:
    """The configured judge, with its model loaded. Raises InputError for an unusable folder, key or tokenizer."""
    if isinstance(config, ChatJudgeConfig):
        return ChatJudge(config)
    return LocalJudge(config)


def judge_settings(config: JudgeConfig) -> dict[str, Any]:
    """The settings that decide a judge's verdicts, for a journal. Speed and retries are not among them."""
    return config.model_dump(mode="json", exclude={*HANDLING, "max_rows", "device"})


class ChatJudge:
    """A language model behind an OpenAI-compatible server."""

    def __init__(self, config: ChatJudgeConfig) -> None:
        self._read_first_token = config.read == "first_token"
        if self._read_first_token:
            config = config.model_copy(update={"max_tokens": 1, "top_logprobs": config.top_logprobs or 20})
        self._client = ChatClient(config)

    def judge(self, rows: Sequence[Asked]) -> list[Judgement]:
        """See `Judge`."""
        chats = [judge_chat(row.question, row.answer, row.completion) for row in rows]
        return [judgement_of(reply, self._read_first_token) for reply in self._client.submit(chats).result()]

    def check(self) -> None:
        """See `Judge`. With `first_token` it also checks that the server sends probabilities."""
        self._client.check()
        if self._read_first_token:
            [reply] = self._client.submit([judge_chat("What is 1 + 1?", "2", "2")]).result()
            if not reply.first_token:
                raise InputError(
                    f"chat server {self._client.config.base_url}: sends no token probabilities; set judge.read: text"
                )

    def close(self) -> None:
        """See `Judge`."""
        self._client.close()


class LocalJudge:
    """A causal language model in this process. It is asked through its chat template if it has one."""

    def __init__(self, config: LocalJudgeConfig) -> None:
        self._config = config
        self._sampler = NativeSampler.from_folder(
            config.model, device=config.device, max_rows=config.max_rows, autocast=config.autocast
        )
        self._tokenizer = self._sampler.tokenizer
        self._yes, self._no = _first_tokens(self._tokenizer, YES), _first_tokens(self._tokenizer, NO)
        if config.read == "first_token" and (not self._yes or not self._no or self._yes & self._no):
            raise InputError(f"{config.model}: yes and no are not single tokens; set judge.read: text")

    def judge(self, rows: Sequence[Asked]) -> list[Judgement]:
        """See `Judge`. A question that fills the model's context gets the verdict `unreadable`."""
        prompts = [self._prompt(row) for row in rows]
        room = self._sampler.room(self._config.max_tokens)
        fits = [i for i, prompt in enumerate(prompts) if room is None or len(prompt) <= room]
        judged = [Judgement("unreadable", detail="the prompt exceeds the judge's context") for _ in rows]
        for i, judgement in zip(fits, self._ask([prompts[i] for i in fits]), strict=True):
            judged[i] = judgement
        return judged

    def check(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""

    def _ask(self, prompts: list[list[int]]) -> list[Judgement]:
        if self._config.read == "text":
            params = SamplingParams(temperature=0.0, max_tokens=self._config.max_tokens)
            replies = self._sampler.sample(prompts, 1, params, seed=0)
            return [Judgement(parse_reply(reply), detail=reply) for reply in replies.texts]
        if not prompts:
            return []
        probabilities = self._sampler.next_token_logits(prompts).double().softmax(dim=1)
        yes = probabilities[:, sorted(self._yes)].sum(dim=1).tolist()
        no = probabilities[:, sorted(self._no)].sum(dim=1).tolist()
        return [from_probabilities({"yes": p, "no": q}) for p, q in zip(yes, no, strict=True)]

    def _prompt(self, row: Asked) -> list[int]:
        chat = judge_chat(row.question, row.answer, row.completion, self._config.max_completion_chars)
        text = render_chat(self._tokenizer, chat)
        return list(self._tokenizer.encode(text, add_special_tokens=not self._tokenizer.chat_template))


def _first_tokens(tokenizer: PreTrainedTokenizerBase, words: Sequence[str]) -> set[int]:
    """Tokens that are one of the words. Words of several tokens are left out: their first token means other things."""
    encoded = [tokenizer.encode(word, add_special_tokens=False) for word in words]
    return {ids[0] for ids in encoded if len(ids) == 1 and ids[0] != tokenizer.unk_token_id}
