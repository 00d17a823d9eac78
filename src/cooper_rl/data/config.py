"""Where the problems come from, which fields hold what, and how a problem becomes a prompt."""

import os
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from cooper_rl.config.base import Config

Format = Literal["gsm8k", "svamp", "asdiv", "mawps", "math", "math500", "olympiadbench", "math_odyssey", "deepmath"]
SourceKind = Literal["file", "arithmetic", "hub"]

ARITHMETIC = "arithmetic"
FILE_SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet")


class PromptConfig(Config):
    """How a question is put to the policy."""

    system: str | None = None
    """System message. Without a chat template it stands before the prompt, followed by an empty line."""
    template: str = "{question}\nPlease reason step by step, and put your final answer within \\boxed{}."
    """The user's message; `{question}` is replaced, every other brace is kept as it is."""
    chat: bool | None = None
    """Use the tokenizer's chat template: null when it has one, true demands one, false never."""
    chat_arguments: dict[str, Any] = Field(default_factory=dict)
    """Extra variables for the chat template, such as `enable_thinking: false`."""
    max_prompt_tokens: int | None = Field(default=None, ge=1)
    """Longest prompt allowed, in tokens; null leaves only the model's context as the limit."""
    too_long: Literal["error", "skip"] = "error"
    """What a prompt over the limit does: stop the run before training, or leave the problem out and count it."""

    @field_validator("template")
    @classmethod
    def _has_question(cls, template: str) -> str:
        if "{question}" not in template:
            raise ValueError("the prompt template must contain {question}")
        return template


class ProblemsConfig(Config):
    """One set of problems."""

    source: str
    """A .jsonl, .json, .csv, .tsv or .parquet file, `arithmetic` for the embedded world, or a Hugging Face data set."""
    format: Format | None = None
    """A ready-made mapping. Without it, `question`, `answer` and `solution` name the fields."""
    question: str | None = None
    """Field with the question; several are joined as sentences: `Body+Question`. Default: `question`."""
    answer: str | None = None
    """Field with the reference answer. Default: `answer`."""
    solution: str | None = None
    """Field with a reference solution that ends in the answer, if the data has one."""
    id: str | None = None
    """Field with a unique name of the problem. Default: file name and line."""
    rule: str | None = None
    """The rule for these problems: a name of the run's `rules`, or a kind such as `choice`. Default: the run's
    `rule`."""
    rule_field: str | None = None
    """Field in which a row names its rule in the same way; where it is empty, `rule` counts."""
    split: str | None = None
    """Split of a Hugging Face dataset or of the arithmetic world. Default: `train`."""
    subset: str | None = None
    """Configuration name of a Hugging Face dataset, such as `main`."""
    shuffle_seed: int | None = None
    """Shuffle the problems with this seed before `skip` and `limit`; null keeps the file's order."""
    skip: int = Field(default=0, ge=0)
    """Leave out this many problems first: the rest of a file whose first `limit` problems serve training."""
    limit: int | None = Field(default=None, ge=1)
    """Keep at most this many problems. The arithmetic world makes this many (default 512)."""
    seed: int = 0
    """Seed of the arithmetic world."""
    max_bad_rows: int | float = Field(default=0.1, ge=0)
    """Bad rows (empty fields, answers that do not verify against themselves) after which the run refuses:
    an integer is a count, a float a fraction of all rows."""
    prompt: PromptConfig = Field(default_factory=PromptConfig)
    """How a question is put to the policy."""
    gold: str | None = Field(default=None, pattern=r"^[\w.]+:\w+$")
    """`package.module:function` with the trusted label, `(problem, completion text) -> bool`; evaluation only."""

    @property
    def kind(self) -> SourceKind:
        """Which reader serves `source`. A file of another type is a file too; reading it says what is the matter."""
        if self.source == ARITHMETIC:
            return "arithmetic"
        known = Path(self.source).suffix.lower() in FILE_SUFFIXES
        return "file" if known or os.path.isfile(os.path.expanduser(self.source)) else "hub"

    @model_validator(mode="after")
    def _consistent(self) -> "ProblemsConfig":
        named = [name for name in ("question", "answer", "solution", "id") if getattr(self, name) is not None]
        if self.format is not None and named:
            raise ValueError(f"format {self.format!r} already says which fields to read: remove {', '.join(named)}")
        if self.kind == "arithmetic" and (self.format is not None or named or self.subset is not None):
            raise ValueError("the arithmetic world has no fields: remove format, subset and field names")
        if self.kind == "arithmetic" and self.rule_field is not None:
            raise ValueError("the arithmetic world has no fields: remove rule_field; rule serves all its problems")
        if self.kind == "file" and (self.split is not None or self.subset is not None):
            raise ValueError("a file has no split or subset: name the file of the split, or use skip and limit")
        if isinstance(self.max_bad_rows, float) and self.max_bad_rows > 1:
            raise ValueError("max_bad_rows as a fraction lies between 0 and 1; write a count as an integer")
        return self
