"""Labels completions with rule and judge, independently of each other, and keeps those on which they agree."""

import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerBase

from cooper_base.data.answer import Verdict
from cooper_base.data.labelled import LABELLED_FIELDS, Asked, read_rows, texts_of
from cooper_base.data.problem import Problem
from cooper_base.data.readers import Row
from cooper_base.errors import InputError
from cooper_base.files.durable import Journal, check_table_path, journal_path, write_table
from cooper_base.progress import awaited
from cooper_rl.data.prompts import render_chat
from cooper_rl.engines.config import SamplingParams
from cooper_rl.engines.local.device import set_threads
from cooper_rl.engines.local.sampler import NativeSampler
from cooper_rl.engines.yes_no import NO, YES
from cooper_rl.verifyrm.config import ChatJudgeConfig, JudgeConfig, LocalJudgeConfig
from cooper_verify.clients.chat import HANDLING, ChatClient
from cooper_verify.clients.limits import waiting_for
from cooper_verify.judges.judgement import (
    Judgement,
    JudgeVerdict,
    from_probabilities,
    judge_chat,
    judgement_of,
    parse_reply,
)
from cooper_verify.rules.kinds.maths import MathsRule, rule_settings
from cooper_verify.rules.rule import RuleConfig


def judge_settings(config: JudgeConfig) -> dict[str, Any]:
    """The settings that decide a judge's verdicts, for a journal."""
    return config.model_dump(mode="json", exclude={*HANDLING, "max_rows", "device"})


class ChatJudge:
    """A language model behind an OpenAI-compatible server. A reply that cannot be read is `unreadable`."""

    def __init__(self, config: ChatJudgeConfig) -> None:
        self._read_first_token = config.read == "first_token"
        self._client = ChatClient(config, first_token_only=self._read_first_token)

    def judge(self, rows: Sequence[Asked]) -> list[Judgement]:
        chats = [judge_chat(row.question, row.answer, row.completion) for row in rows]
        replies = awaited(self._client.submit(chats), waiting_for)
        return [judgement_of(reply, self._read_first_token) for reply in replies]

    def check(self) -> None:
        """Raises InputError if the server does not answer or, with `first_token`, sends no probabilities."""
        self._client.check()
        if self._read_first_token:
            [reply] = self._client.submit([judge_chat("What is 1 + 1?", "2", "2")]).result()
            if not reply.first_token:
                raise InputError(
                    f"chat server {self._client.config.base_url}: sends no token probabilities; set judge.read: text"
                )

    def close(self) -> None:
        self._client.close()


class LocalJudge:
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

    def judge(self, rows: Sequence[Asked]) -> list[Judgement]:
        """One judgement per row, in order: `unreadable` for a question that fills the model's context."""
        most = self._config.max_completion_chars
        chats = [judge_chat(row.question, row.answer, row.completion, most) for row in rows]
        special = not self._tokenizer.chat_template
        texts = [render_chat(self._tokenizer, chat) for chat in chats]
        prompts = [list(self._tokenizer.encode(text, add_special_tokens=special)) for text in texts]
        room = self._sampler.room(self._config.max_tokens)
        fits = [i for i, prompt in enumerate(prompts) if room is None or len(prompt) <= room]
        judged = [Judgement("unreadable", detail="the prompt exceeds the judge's context") for _ in rows]
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


def build_judge(config: JudgeConfig) -> ChatJudge | LocalJudge:
    return ChatJudge(config) if isinstance(config, ChatJudgeConfig) else LocalJudge(config)


class LazyJudge:
    """A judge that is loaded, or whose server is checked, when it is first asked."""

    def __init__(self, config: JudgeConfig) -> None:
        self._config = config
        self._judge: ChatJudge | LocalJudge | None = None

    def judge(self, rows: Sequence[Asked]) -> list[Judgement]:
        if self._judge is None:
            self._judge = build_judge(self._config)
            if isinstance(self._judge, ChatJudge):
                self._judge.check()
        return self._judge.judge(rows)

    def close(self) -> None:
        if isinstance(self._judge, ChatJudge):
            self._judge.close()


def _first_tokens(tokenizer: PreTrainedTokenizerBase, words: Sequence[str]) -> set[int]:
    """Tokens that are one of the words. Words of several tokens are left out: their first token means other things."""
    encoded = [tokenizer.encode(word, add_special_tokens=False) for word in words]
    return {ids[0] for ids in encoded if len(ids) == 1 and ids[0] != tokenizer.unk_token_id}


COLUMNS = (*LABELLED_FIELDS, "model", "dataset", "id", "rule", "judge", "judge_probability")
CHUNK = 64
"""Number of completions after which labels are written down. An interruption loses at most this many."""

NO_OPINION = ("silent", "timeout")
"""Verdicts that are neither a yes nor a no of the rule."""


@dataclass(frozen=True)
class CollectedRow:
    question: str
    answer: str
    completion: str
    model: str
    dataset: str
    id: str


@dataclass(frozen=True)
class Labelled:
    """A row with the verdicts of rule and judge."""

    row: CollectedRow
    rule: Verdict
    judgement: Judgement

    @property
    def label(self) -> int | None:
        return agreed_label(self.rule, self.judgement.verdict)

    def fields(self) -> dict[str, Any]:
        """The row as the table's columns."""
        said = {"rule": self.rule, "judge": self.judgement.verdict, "judge_probability": self.judgement.probability}
        return {**asdict(self.row), "reference_answer": self.row.answer, **said, "label": self.label}


def agreed_label(rule: Verdict, judge: JudgeVerdict) -> int | None:
    """The label on which rule and judge agree, or None. `unparsed` counts as a no of the rule."""
    if rule in NO_OPINION or judge == "unreadable":
        return None
    said_yes = rule == "correct"
    return int(said_yes) if said_yes == (judge == "yes") else None


def label_completions(
    data: Path,
    judge_config: JudgeConfig,
    output: Path,
    rule: RuleConfig = MathsRule(),  # noqa: B008 - a frozen record
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Labelled]:
    """Label the completions of `data`. Rows with a label are written to `output`, the others to `disagreements_path`.

    Every labelled chunk is in a journal beside the output, so the same command continues after an interruption, and
    labels again the rows on which the judge's server failed. `progress` counts completions. Raises InputError, before
    any row is labelled, for bad rows, for another judge or rule than in the journal, and for a judge that does not
    answer.
    """
    check_table_path(output)
    set_threads(threads)
    rows = read_collected(data)
    labelled: list[Labelled] = []
    with (
        Journal(journal_path(output), judge_settings(judge_config) | rule_settings(rule)) as journal,
        closing(rule.build()) as by,
        closing(JudgeGrader(judge_config)) as judge,
    ):

        def verdicts(chunk: Sequence[CollectedRow]) -> list[list[Any]]:
            answers = [Asked(Problem(row.id, row.question, row.answer), row.completion) for row in chunk]
            by_rule, by_judge = by.verify_problems(answers), judge.judgements(answers)
            return [[rule, asdict(said)] for rule, said in zip(by_rule, by_judge, strict=True)]

        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            key = f"{start} {zlib.crc32(repr(chunk).encode()):08x}"
            values = journal.completed(key, chunk, verdicts, lambda value: value[1]["failed"])
            labelled += [
                Labelled(row, rule, Judgement(**said)) for row, (rule, said) in zip(chunk, values, strict=True)
            ]
            if progress is not None:
                progress(len(labelled), len(rows))
    write_table(output, [item.fields() for item in labelled if item.label is not None], COLUMNS)
    details = [{**item.fields(), "judge_reply": item.judgement.detail} for item in labelled if item.label is None]
    columns = [name for name in COLUMNS if name != "label"]
    write_table(disagreements_path(output), details, [*columns, "judge_reply"])
    return labelled


def disagreements_path(output: Path) -> Path:
    """Path of the file for the rows without a label."""
    return output.with_name(f"{output.stem}.disagreements.jsonl")


def confusion(labelled: Iterable[Labelled]) -> dict[tuple[str, str], Counter[tuple[Verdict, JudgeVerdict]]]:
    """Counts of (verdict of the rule, verdict of the judge) by (dataset, model)."""
    tables = defaultdict(Counter)
    for item in labelled:
        tables[item.row.dataset, item.row.model][item.rule, item.judgement.verdict] += 1
    return dict(tables)


def read_collected(path: Path) -> list[CollectedRow]:
    """A table of question, reference_answer, completion and, optionally, model, dataset and id. Raises InputError."""

    def read(row: Row) -> CollectedRow:
        model, dataset = (str(row.fields.get(name) or "-") for name in ("model", "dataset"))
        return CollectedRow(*texts_of(row), model, dataset, str(row.fields.get("id") or row.location))

    return read_rows(path, read, LABELLED_FIELDS[:3])


def agreement_counts(labelled: Sequence[Labelled]) -> dict[str, int]:
    """Numbers of rows kept as right and as wrong, and dropped; `judge not heard`: the judge's server failed on them."""
    silent = [item for item in labelled if item.rule in NO_OPINION or item.judgement.verdict == "unreadable"]
    right, wrong = (sum(item.label == value for item in labelled) for value in (1, 0))
    disagree = len(labelled) - right - wrong - len(silent)
    counts = {"right": right, "wrong": wrong, "disagree": disagree, "no opinion": len(silent)}
    return counts | {"judge not heard": sum(item.judgement.failed for item in labelled)}
