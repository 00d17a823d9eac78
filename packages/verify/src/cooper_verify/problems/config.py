"""Settings of problems: their source, the meaning of its fields, and the prompt."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from cooper_base.config.base import Config, mapping_of
from cooper_base.config.user_functions import added

Format = Literal[
    "gsm8k",
    "svamp",
    "asdiv",
    "mawps",
    "math",
    "math500",
    "olympiadbench",
    "math_odyssey",
    "deepmath",
    "verl",
    "open_instruct",
    "prime_rl",
]
CHATS = ("verl", "open_instruct")
"""Formats whose rows are chats."""

FILE_SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet")


class PromptConfig(Config):
    """How a question is presented to the policy."""

    system: str | None = None
    """System message. Without a chat template, it comes before the user's message, followed by an empty line."""
    template: str = "{question}\nPlease reason step by step, and put your final answer within \\boxed{}."
    """The user's message. `{question}` is replaced; all other braces stay as they are."""
    chat: bool | None = None
    """Whether to use the tokenizer's chat template: null uses it if it exists, true requires it, false ignores it."""
    chat_arguments: dict[str, Any] = Field(default_factory=dict)
    """Extra variables for the chat template, such as `enable_thinking: false`."""
    max_prompt_tokens: int | None = Field(default=None, ge=1)
    """Maximum length of a prompt in tokens. With null, only the model's context limits it. Problems with a longer
    prompt are left out, with a warning."""

    @field_validator("template")
    @classmethod
    def _has_question(cls, template: str) -> str:
        if "{question}" not in template:
            raise ValueError("the prompt template must contain {question}")
        return template


class ProblemsConfig(Config):
    """A set of problems and how to read it."""

    source: str
    """A .jsonl, .json, .csv, .tsv or .parquet file, `arithmetic` for the embedded world, `reasoning_gym` with
    `tasks`, or a Hugging Face data set: its name or a folder, also one of `save_to_disk`."""
    tasks: dict[str, dict[str, Any]] | None = None
    """Tasks of reasoning-gym (extra `reasoning-gym`) by name, each with its own settings and a `weight` (default 1):
    `{gcd: {max_value: 60, weight: 2}, spell_backward: {}}`. A `partial` rule can name what it may judge:
    `only: {task: [gcd]}`."""
    format: Format | None = None
    """A ready-made mapping of fields: of a data set, or of the rows that another trainer reads (`verl`,
    `open_instruct`, `prime_rl`). Without it, `question`, `answer` and `solution` name the fields. A field inside
    another has a dotted name, such as `reward_model.ground_truth`."""
    messages: str | None = None
    """Field with a whole chat: a list of `{role, content}`, such as system, few-shot and user turns. The chat is asked
    as it is, without `prompt.template`; `prompt.system` comes before a chat without a system turn. A last turn of the
    assistant is the beginning of the reply: the policy goes on from there, and rewards see what it adds. If that turn
    already holds the reference answer, it is removed, and the log says so."""
    question: str | None = None
    """Field with the question. Several fields are joined as sentences: `Body+Question`. Default: `question`,
    or the last user turn of `messages`."""
    answer: str | None = None
    """Field with the reference answer. Default: `answer`."""
    solution: str | None = None
    """Field with a reference solution that ends in the answer, if the data has one."""
    id: str | None = None
    """Field with a unique name of the problem. Default: file name and number of the row."""
    weight: float | None = Field(default=None, gt=0)
    """Share of every step's groups that are of this set, relative to the weights of `more_problems`. Null in all sets
    mixes them as one: each weighs as much as it has problems. With `rollout.resample` it is the share of the groups
    that the policy learns from, as far as the set has groups that teach something: they replace those that do not."""
    pass_rate: str | None = None
    """Field with the share of right answers that was measured before, in [0, 1], with which `curriculum` begins."""
    rule: str | None = None
    """The rule for these problems: a name from the run's `rules`, or a kind such as `choice`. Default: the run's
    `rule`."""
    rule_field: str | None = None
    """Field in which a row names its own rule in the same way. If the field is empty, `rule` applies."""
    split: str | None = None
    """Split of a Hugging Face data set, or `train` or `test` of a made world. Default: `train`."""
    subset: str | None = None
    """Configuration name of a Hugging Face data set, such as `main`."""
    shuffle_seed: int | None = None
    """Seed with which the problems are shuffled before `skip` and `limit`; null keeps the file's order."""
    skip: int = Field(default=0, ge=0)
    """Leave out this many problems at the start, for example those that another configuration uses for training."""
    limit: int | None = Field(default=None, ge=1)
    """Keep at most this many problems. A made world makes this many (default 512)."""
    seed: int = 0
    """Seed of a made world."""
    max_bad_rows: int | float = Field(default=0.1, ge=0)
    """Most bad rows (lines that cannot be read, missing or empty fields, answers that do not verify against themselves)
    that a run accepts. An integer is a count, a float a fraction of all rows."""
    unverified: Literal["drop", "silent"] = "drop"
    """What becomes of a problem whose reference answer does not verify against itself. `drop` counts it as a bad row;
    `silent` keeps it, with the rule silent on it: the reward model pays for it, and reads the reference. A
    formula that the rule cannot read does verify, as the same text: `drop` keeps it and lists it in a warning, and with
    `silent` the rule is silent on it too."""
    prompt: PromptConfig = Field(default_factory=PromptConfig)
    """How a question is put to the policy."""
    gold: str | None = Field(default=None, pattern=r"^[\w.]+:\w+$")
    """`package.module:function` that gives the trusted label, `(problem, completion text) -> bool`; evaluation only."""

    @property
    def kind(self) -> Literal["file", "made", "hub"]:
        """The kind of reader for `source`; `made` is `reasoning_gym`, or a world that an installed package adds. A
        folder is read as a data set of the hub, also where it has a file's suffix, as Spark writes them."""
        if _is_made(self.source):
            return "made"
        path = Path(self.source).expanduser()
        return "file" if path.is_file() or (path.suffix.lower() in FILE_SUFFIXES and not path.is_dir()) else "hub"

    @model_validator(mode="after")
    def _consistent(self) -> "ProblemsConfig":
        if (self.source == "reasoning_gym") != bool(self.tasks):
            raise ValueError("source: reasoning_gym and tasks belong together: tasks: {gcd: {}, spell_backward: {}}")
        fields = ("messages", "question", "answer", "solution", "id")
        named = [name for name in fields if getattr(self, name) is not None]
        if self.format is not None and named:
            raise ValueError(f"format {self.format!r} already says which fields to read: remove {', '.join(named)}")
        if self.kind == "made" and (self.format or named or self.subset or self.pass_rate):
            raise ValueError(f"the {self.source} world has no fields: remove format, subset and field names")
        if self.kind == "made" and self.rule_field is not None:
            raise ValueError(
                f"the {self.source} world has no fields: remove rule_field; rule applies to all its problems"
            )
        if self.kind == "file" and (self.split is not None or self.subset is not None):
            raise ValueError("a file has no split or subset: name the file of the split, or use skip and limit")
        if (self.messages is not None or self.format in CHATS) and self.prompt.template != PromptConfig().template:
            raise ValueError("messages are asked as they are: remove prompt.template, or name a question field instead")
        if isinstance(self.max_bad_rows, float) and self.max_bad_rows > 1:
            raise ValueError("max_bad_rows as a fraction must lie between 0 and 1; write a count as an integer")
        return self


FIELDS = ("messages", "question", "answer", "solution", "id")
FORM = ("format", *FIELDS, "rule", "rule_field", "unverified", "gold")
"""What describes the form of the data and how answers are judged, besides the prompt."""


def with_form_of(base: Mapping[str, Any], further: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[str, ...]]]:
    """The settings of a `further` set of problems, with what the set `base` says of the data's form and the prompt
    where the further set does not say it, and the paths of what was taken.

    What selects the problems (source, split, limit, seeds, …) is never taken, nor what excludes something that
    `further` says: a `format` excludes field names, and `messages` exclude a question and a template.
    """
    prompt_settings = mapping_of(further.get("prompt"))
    taken = {name: base[name] for name in FORM if base.get(name) is not None and name not in further}
    prompt = {name: value for name, value in mapping_of(base.get("prompt")).items() if name not in prompt_settings}
    excluded: set[str] = set()
    if _is_made(further.get("source")):
        excluded |= {"format", "rule_field", *FIELDS}
    if further.get("format") is not None:
        excluded |= {*FIELDS}
    elif any(further.get(name) is not None for name in FIELDS):
        excluded |= {"format"}
    if further.get("question") is not None or "template" in prompt_settings:
        excluded |= {"messages"}
    if further.get("messages") is not None:
        excluded |= {"question"}
        prompt.pop("template", None)
    taken = {name: value for name, value in taken.items() if name not in excluded}
    merged = {**further, **taken}
    if prompt:
        merged["prompt"] = {**prompt, **prompt_settings}
    return merged, [*((name,) for name in taken), *(("prompt", name) for name in prompt)]


def same_form(base: "ProblemsConfig", further: "ProblemsConfig") -> tuple[list[str], list[str]]:
    """Settings of the form of `further`, by name: those that the user set as in `base`, and those that differ."""
    values = [
        {
            **{name: getattr(settings, name) for name in FORM},
            **{f"prompt.{name}": getattr(settings.prompt, name) for name in PromptConfig.model_fields},
        }
        for settings in (ProblemsConfig(source=further.source, tasks=further.tasks), base, further)
    ]
    usual, there, here = values
    same = [name for name in here if here[name] != usual[name] and here[name] == there[name]]
    return same, [name for name in here if here[name] != there[name]]


def _is_made(source: Any) -> bool:
    return source == "reasoning_gym" or source in added("problems")


class CurriculumConfig(Config):
    """Epochs that follow what the run has measured: of each problem the mean reward of its last group."""

    order: Literal["shuffled", "easy_first"] = "easy_first"
    """Order of an epoch: as always, or from the highest mean reward down. What has not been measured (in the first
    epoch all, unless `pass_rate` names a field) counts as one half."""
    rest: int = Field(default=0, ge=0)
    """Epochs for which a problem is left out after its group taught nothing, because all rewards were the same."""
