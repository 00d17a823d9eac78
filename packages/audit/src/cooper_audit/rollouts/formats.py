"""The formats in which trainers write their rollouts: a row of a table each, with the keys that identify it and the
paths to our fields.

A path is a chain of keys, `response.output`. A number is a place in a list, `-1` the last. `*` stands for every item:
numbers are then summed. `a|b` is `b` where a row has no `a`. `path(REGEX)` is the first group of the regular
expression's last match in the value, `$path` the place of the file, `$others` the sum of the numbers that no other path
names, and `$file`, for a step alone, the number of the file among those with rollouts.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from cooper_audit.rollouts.unrolling import (
    EVALUATION,
    LOGGED,
    DumpRecord,
    as_value,
    chats_in,
    episodes_of_prime,
    number,
    record_of_gym,
    sample_of_inspect,
    total,
    trajectories_of_art,
    trajectories_of_rllm,
)
from cooper_base.errors import InputError, did_you_mean

FIELDS = ("step", "group", "prompt", "completion", "reference", "reward", "advantage", "cut", "failed")
"""What an audit reads of a row. `cut` says that the completion was cut off: true, or a reason such as `length`;
`failed` that its grading failed, so that its reward is none: true, or what went wrong."""
FAULTS = (
    *("error", "errors", "grading_error", "failure_reason", "is_timeout", "timed_out"),
    *("metadata.failure_reason", "metadata.error"),
    *("mask_sample", "instance_config.mask_sample", "_ng_failure_class"),  # NeMo-Gym: its reward is a placeholder
)
"""Where writers of any format say what went wrong with a row: true, a text, a list of faults. A number is a metric."""
ENDED = ("termination_reason", "info.termination_reason")
"""Where they say how a row ended."""
ENDED_BADLY = re.compile(r"(?:\w*_)?(?:error|timeout)|exception|failed|crash")
"""Reasons with which nothing was graded: `timeout`, rLLM's `grading_error`, `verifier_timeout`, `sandbox_error`."""
ENDED_EARLY = ("length", "truncat", "max_t")
"""Parts of the reasons of a completion that was cut off, such as `max_turns_exceeded`."""
STOPPED = ("finish_reason", "stop_reason", "status")
"""Where they say how a completion ended, be its row graded or not: slime's `truncated`, an engine's `length`."""
FLAGS = ("is_timeout", "timed_out", "mask_sample")
"""Of `FAULTS` those that are yes or no, also as numbers."""
TRUNCATED = ("is_truncated", "truncated")
"""Where writers of any format say that a completion was cut off."""
PHASES = ("split", "phase", "mode", "metadata.split", "extra_info.split")
OF_EVALUATION = ("is_eval", "is_validation", "is_val", "validate")
"""Where writers of any format say that a row is of an evaluation: by its name, or as yes or no."""
REFERENCE = (
    "reference_answer|ground_truth|expected_answer|correct_answer|gold_answer|reference|gold|answer|solution|target"
)
"""Where writers of any format keep the right answer. `answer` comes behind names that cannot mean the model's own."""
_OBJECTS = ("reward_model", "reward_spec", "extra_info", "metadata", "info")
_INSIDE = [f"{place}.{name}" for place in _OBJECTS for name in REFERENCE.split("|")]
"""Places in a row's objects in which writers of no known format keep the right answer, as verl's data sets do."""
_PLAIN_REWARDS = "total_reward|final_reward|reward|reward_score|score"
_PLAIN_STEPS = "global_step|training_step|train_step|policy_step|rollout_step|step|iteration"
"""Where writers of no known format keep them. Names that can mean but one thing come first: beside `global_step`,
`step` may be a turn, and beside `total_reward`, `reward` a part of it."""
OTHERS = "$others"
_SUMMED = f"total_reward|final_reward|reward|{OTHERS}"
"""The parts of a reward, unless a column has their total."""
_NOT_PAID = re.compile(r"\w+_(?:id|idx|index)|(?:\w+_)?(?:seed|epoch)|gen_step|global_step|entropy|is_truncated")
"""Numbers that are no rewards, where the reward is `$others`."""
_NUMBERS_A_ROW = ("id", "idx", "index")
"""What whole numbers of these names do; what a reward function of the name returned is written with a point."""
FILE = "$file"
_PLAIN = re.compile(r"[^().|]++(?>(?:\.[^().|]++)*)\Z")


@dataclass(frozen=True)
class Format:
    name: str
    keys: frozenset[str]
    """What every row of the format has."""
    paths: Mapping[str, str]
    unroll: Callable[[DumpRecord], Iterator[DumpRecord]] | None = None
    """Makes rows of a line that is a graph or a list of messages."""
    left_out: str = ""
    """A regular expression for the files beside the rollouts that hold none, such as evaluations."""
    steps_overlap: bool = False
    """Whether rows of a step may be in several folders of a run, or in several tables of a tracker."""
    given: Mapping[str, str] = field(default_factory=dict)
    """The paths that the user gave, which some row must have."""


def _format(name: str, keys: str, paths: Mapping[str, str], **more: Any) -> Format:
    return Format(name, frozenset(keys.split()), paths, **more)


def _references_in(place: str) -> str:
    return "|".join(f"{place}.{name}" for name in REFERENCE.split("|"))


_VERL = {"step": "step", "prompt": "input", "completion": "output", "reference": "gts", "reward": "score"}
_TABLE = {"prompt": "prompt", "completion": "completion", "reference": REFERENCE}
_TRACE = {"prompt": "prompt", "completion": "messages", "reward": "metadata.reward|metadata.score"}
_TRACE |= {"step": f"metadata.step|metadata.global_step|metadata.rollout_id|metadata.model_version|{LOGGED}"}
_TRACE |= {"group": "metadata.group_id|metadata.group_index", "advantage": "metadata.advantage"}
_TRACE |= {"reference": f"{_references_in('metadata')}|metadata.label"}
_TRACE |= {"cut": "|".join(f"metadata.{name}" for name in (*TRUNCATED, *STOPPED))}
_ART = {"step": r"$path((\d++)\.(?:parquet|jsonl))", "prompt": "prompt", "completion": "messages"}
_ART |= {"reference": _references_in("metadata"), "reward": "reward", "cut": "cut"}
_OF_ART: dict[str, Any] = {"unroll": trajectories_of_art, "left_out": r"/(?:val|eval|test)/\d++\.(?:parquet|jsonl)\Z"}
FORMATS = (
    # trainer.rollout_data_dir; the keys of the transfer queue are {prompt}_{rollout}_{output}
    _format("verl-v1", "input output score step uid", _VERL | {"group": r"uid(^(.*)_\d++_\d++$)|uid"}),
    _format("verl-v0", "input output score step", _VERL),
    _format(
        "trl",
        "step prompt completion advantage",
        _TABLE | {"step": "step", "advantage": "advantage", "reward": _SUMMED},
    ),
    _format(
        "ms-swift",
        "prompt completion advantages",
        _TABLE | {"step": "step|gen_step", "advantage": "advantages", "reward": _SUMMED},
    ),
    _format("ms-swift-ray", "gen_step prompt completion reward", _TABLE | {"step": "gen_step", "reward": "reward"}),
    # values in lists of one; `content` has the messages without their roles
    _format(
        "nemo-rl",
        "content rewards input_lengths idx",
        {"step": r"$path(step_?(\d++))", "prompt": "content.:-1", "completion": "content.-1", "reward": "rewards"}
        | {"reference": REFERENCE},
        left_out=r"val_data_step",
    ),
    _format(
        "nemo-gym",
        "responses_create_params response reward",
        {
            "step": r"step|$path(step_?(\d++))",
            "group": "_ng_task_index|_task_index",
            "prompt": "prompt",
            "completion": "messages",
            "reference": "expected_answer|responses_create_params.metadata.expected_answer|" + REFERENCE,
            "reward": "reward",
            "cut": "response.incomplete_details.reason|response.status",
        },
        unroll=record_of_gym,
    ),
    # prime-rl's episodes, and verifiers' own traces; `effective` repeats `all`
    _format(
        "prime-rl",
        "traces",
        {
            "step": r"$path(step_(\d++))",
            "group": "task.key|task.hash|task.data.idx",
            "prompt": "prompt",
            "completion": "messages",
            "reference": _references_in("task.data"),
            "reward": "reward",
            "cut": "cut",
        },
        unroll=episodes_of_prime,
        left_out=r"/eval/|/effective/",
    ),
    _format(
        "verifiers",
        "example_id prompt completion reward is_truncated",
        _TABLE
        | {"step": r"step|$path(step_?(\d++))", "group": "example_id", "reward": "reward", "cut": "is_truncated"},
    ),
    # the version of the policy stands for the step
    _format(
        "areal",
        "task_id sample_idx prompt completion reward tail_version",
        _TABLE | {"step": "tail_version", "group": "task_id", "reward": "reward"},
        left_out=r"eval-rollout",
        steps_overlap=True,
    ),
    # a line is a whole step in columns
    _format(
        "roll",
        "global_step prompt responses scores",
        {"step": "global_step", "prompt": "prompt", "completion": "responses", "reward": "scores"}
        | {"reference": "ground_truth"},
    ),
    _format(
        "rllm",
        "trajectories task training_step",
        {"step": "training_step", "group": "task_hash", "prompt": "prompt", "completion": "messages"}
        | {"reference": _references_in("task"), "reward": "reward"},
        unroll=trajectories_of_rllm,
        left_out=r"/val_step_",
    ),
    # OpenPipe's table of trajectories, and the lines that it wrote before
    _format("art", "group_index reward metadata messages", _ART | {"group": "group_index"}, **_OF_ART),
    _format("art-jsonl", "trajectories", _ART, **_OF_ART),
    _format(
        "inspect",
        "id epoch target messages output scores",
        {
            "step": r"$path(step_?(\d++))",
            "group": "id",
            "prompt": "prompt",
            "completion": "messages",
            "reference": "target",
            "cut": "cut",
        }
        | {"reward": "scores.*"},
        unroll=sample_of_inspect,
    ),
    _format(
        "open-instruct",
        "step prompt_idx prompt_tokens response_tokens reward",
        {"step": "step", "group": "prompt_idx", "prompt": "prompt_tokens", "completion": "response_tokens"}
        | {"reference": "ground_truth", "reward": "reward", "advantage": "advantage", "cut": "finish_reason"},
        left_out=r"_metadata\.jsonl",
    ),
    # what slime, AReaL and TRL's asynchronous GRPO log to trackio; a version of the policy stands for the step
    _format("trackio", "trackio_trace metadata", _TRACE, unroll=chats_in("trackio_trace"), steps_overlap=True),
    # its training data are pickles, its evaluations are not
    _format(
        "skyrl",
        "input_prompt output_response score env_extras",
        {"step": r"$path(global_step_(\d++))", "prompt": "input_prompt", "completion": "output_response"}
        | {"reward": "score.*|score", "cut": "stop_reason"}
        | {"reference": "|".join(f"env_extras.{key}.ground_truth" for key in ("reward_spec", "reward_model"))},
        left_out=r"aggregated_results",
    ),
    # without advantages, until the middle of 2025; rows of no trainer look like it
    _format(
        "trl-2025",
        "step prompt completion",
        _TABLE | {"step": _PLAIN_STEPS, "reward": f"{_PLAIN_REWARDS}|rewards.total|rewards.*|{OTHERS}"},
    ),
    _format(
        "ms-swift-2025",
        "gen_step prompt completion",
        _TABLE | {"step": "gen_step", "reward": f"reward|{OTHERS}"},
    ),
)
"""More special formats come first: the first whose keys a row has is its format."""
PLAIN = "plain"
_NAMES = {
    "prompt": "prompt question problem query instruction input user_prompt prompts",
    "completion": "completion response output generation model_output model_response model_answer generated_text "
    "solution_str completions responses",
    "reward": f"{_PLAIN_REWARDS.replace('|', ' ')} rewards rm_score",
    "step": f"train/global_step {_PLAIN_STEPS.replace('|', ' ')} _step",
    "reference": f"{REFERENCE.replace('|', ' ')} gts label gt targets",
    "group": "group group_id prompt_id problem_id question_id example_id uid",
    "advantage": "advantage advantages",
}
"""What columns of files of no trainer's format are called, also in capitals or in several words."""
_CHATS = ("messages", "conversation", "chat", "transcript")
_NUMBERED = (
    r"$path((?:(?:step|iter|iteration|update|rollout)[_-]?|/)(\d++)[^/]*\Z)"
    r"|$path((?:step|iter|iteration|update)[_-]?(\d++))"
)
"""The step in a file's place: a name such as `rollout_7.jsonl` or `7.jsonl`, or a folder such as `step_7`."""


def named_paths(names: Iterable[Any]) -> dict[str, str]:
    """Of a row's columns those that are called like our fields."""
    named = {re.sub(r"[\s-]+", "_", str(name).strip().casefold()): str(name) for name in names}
    return {
        field: named[column]
        for field, columns in _NAMES.items()
        if (column := next((name for name in columns.split() if name in named), None)) and _PLAIN.match(named[column])
    }


def plain_format(record: DumpRecord, given: Mapping[str, str]) -> Format | None:
    """The format of a row whose columns say what they are, where the paths in `given` do not; None unless it has a
    reward, and a prompt with a completion or the messages of both.
    """
    paths = named_paths(record)
    paths.setdefault("step", _NUMBERED)
    if isinstance(record.get(paths.get("reward", "")), Mapping):  # its parts
        paths["reward"] = "|".join(f"{paths['reward']}.{part}" for part in ("total", "total_reward", "*"))
    if "reference" not in paths:
        inside = next((path for path in _INSIDE if _at(record, tuple(path.split("."))) is not None), None)
        paths |= {"reference": inside} if inside else {}
    unroll, paths = None, {**paths, **given}
    if "completion" not in paths and (chat := next((name for name in record if str(name).casefold() in _CHATS), None)):
        unroll, paths = chats_in(chat), {**paths, "prompt": "prompt", "completion": "messages", **given}
    if not {"prompt", "completion", "reward"} <= paths.keys():
        return None
    return Format(PLAIN, frozenset(), paths, unroll, given=given)


def chosen_format(name: str | None = None, given: Sequence[str] = ()) -> Callable[[DumpRecord], Format | None]:
    """A function that says of which format a row is: that of the name or else the first whose keys it has, with the
    paths of `given` (FIELD=PATH, as of `--map`) over its own. Of no trainer's format, other fields are read by name.

    Raises InputError for a format or a field that does not exist, and for a path that cannot be read.
    """
    names = [*(row_format.name for row_format in FORMATS), PLAIN]
    if name is not None and name not in names:
        raise InputError(
            f"--format {name!r} is not known; {did_you_mean(name, names, 'there are ' + ', '.join(names))}"
        )
    paths = dict(map(_mapped, given))
    formats = [
        replace(row_format, paths={**row_format.paths, **paths}, given=paths)
        for row_format in FORMATS
        if name in (None, row_format.name)
    ]

    def choose(record: DumpRecord) -> Format | None:
        chosen = next((row_format for row_format in formats if row_format.keys <= record.keys()), None)
        return plain_format(record, paths) if chosen is None and name in (None, PLAIN) else chosen

    return choose


def _mapped(text: str) -> tuple[str, str]:
    name, _, path = text.partition("=")
    hint = "" if name in FIELDS else "; fields: " + did_you_mean(name, FIELDS, f"there are {', '.join(FIELDS)}")
    if hint or not path:
        raise InputError(f"--map {text!r}: write FIELD=PATH, such as reward=scores.total{hint}")
    _alternatives(path)
    return name, path


@dataclass(frozen=True)
class _Alternative:
    keys: tuple[str, ...]
    pattern: re.Pattern[str] | None = None


@cache
def _alternatives(path: str) -> tuple[_Alternative, ...]:
    """A path in parts. Raises InputError for one that cannot be read."""
    parts, depth, start = [], 0, 0
    for place, character in enumerate(path + "|"):
        depth += (character == "(") - (character == ")")
        if character == "|" and depth == 0:
            parts.append(path[start:place])
            start = place + 1
    if depth:
        raise InputError(f"--map: {path!r} has a bracket without its other half")
    found = []
    for part in parts:
        keys, bracket, rest = part.partition("(")
        if not _PLAIN.match(keys) or (bracket and not rest.endswith(")")):
            raise InputError(f"--map: {path!r} is no path; write keys like response.output.0, or a|b, or key(REGEX)")
        try:
            found.append(_Alternative(tuple(keys.split(".")), re.compile(rest[:-1]) if bracket else None))
        except re.error as error:
            raise InputError(f"--map: {path!r}: {rest[:-1]!r} is no regular expression ({error})") from error
    return tuple(found)


@dataclass
class Values:
    """The fields of rows of one format."""

    format: Format
    rewards: dict[str, None] = field(default_factory=dict)
    """The columns that `$others` has summed, in order."""

    def of(self, record: DumpRecord, name: str, place: str) -> Any:
        """A field's value in a row of the file at `place`; None if the row does not have it."""
        path = self.format.paths.get(name)
        for alternative in () if path is None else _alternatives(path):
            value = self._value(record, alternative, place)
            if value is not None:
                return value
        return None

    def has(self, record: DumpRecord, name: str, place: str) -> bool:
        """Whether a row has the field, be it null."""
        return self.of(record, name, place) is not None or any(
            not alternative.pattern and (alternative.keys[0] in (OTHERS, FILE) or _holds(record, alternative.keys))
            for alternative in _alternatives(self.format.paths[name])
        )

    def cut(self, record: DumpRecord, place: str) -> Any:
        """What says whether a completion was cut off; None if nothing does."""
        if (said := self.of(record, "cut", place)) is not None:
            return said
        named = next((record[name] for name in TRUNCATED if record.get(name) is not None), None)
        ended = [*_how_it_ended(record), *(str(record[name]).lower() for name in STOPPED if record.get(name))]
        return named if named is not None or not ended else any(part in one for one in ended for part in ENDED_EARLY)

    def has_failed(self, record: DumpRecord, place: str) -> bool:
        """Whether a row says that its grading failed."""
        if "failed" in self.format.paths:
            return _is_fault(self.of(record, "failed", place))
        said = [_at(record, tuple(path.split("."))) for path in FAULTS]
        said += [bool(flag) for name in FLAGS if isinstance(flag := record.get(name), int | float)]
        ended_badly = any(map(ENDED_BADLY.fullmatch, _how_it_ended(record)))
        return record.get("ok") is False or any(map(_is_fault, said)) or ended_badly

    def _value(self, record: DumpRecord, alternative: _Alternative, place: str) -> Any:
        if alternative.keys == (OTHERS,):
            return self._others(record)
        if alternative.keys == ("$path",):
            value: Any = place
        else:
            value = _at(record, alternative.keys)
        if alternative.pattern is None or value is None:
            return value
        matches = list(alternative.pattern.finditer(str(value)))  # of a path the last, which is next to the file
        return (matches[-1][1] if alternative.pattern.groups else matches[-1][0]) if matches else None

    def _others(self, record: DumpRecord) -> float | None:
        named = {alternative.keys[0] for path in self.format.paths.values() for alternative in _alternatives(path)}
        only_texts = all(isinstance(value, str) for value in record.values())  # as in a CSV file
        columns = {
            name: number(value) if only_texts else value
            for name, value in record.items()
            if name not in named
            and not _NOT_PAID.fullmatch(name)
            and not (name in _NUMBERS_A_ROW and str(value).lstrip("-").isdecimal())
        }
        columns = {name: value for name, value in columns.items() if isinstance(value, int | float)}
        self.rewards |= dict.fromkeys(columns)
        return total(columns.values())


def _at(value: Any, keys: tuple[str, ...]) -> Any:
    for place, key in enumerate(keys):
        if isinstance(value, str) and value[:1] in ("{", "["):  # an object that a writer made text of
            value = as_value(value)
        if key == "*":
            items = list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, list) else []
            inner = [found for item in items if (found := _at(item, keys[place + 1 :])) is not None]
            summed = total(inner)
            return (inner or None) if summed is None else summed
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list) and key == ":-1":
            value = value[:-1]
        elif isinstance(value, list) and key.lstrip("-").isdecimal() and -len(value) <= int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def _holds(value: Any, keys: tuple[str, ...]) -> bool:
    inside = _at(value, keys[:-1])
    return isinstance(inside, Mapping) and keys[-1] in inside


def paths_in(record: Mapping[Any, Any], depth: int = 3) -> Iterator[str]:
    """The paths of a row's values, down to so many keys."""
    for key, value in record.items():
        if isinstance(value, Mapping) and value and depth > 1:
            yield from (f"{key}.{path}" for path in paths_in(value, depth - 1))
        else:
            yield str(key)


def is_of_evaluation(record: DumpRecord) -> bool:
    """Whether a row says that an evaluation wrote it."""
    phases = (_at(record, tuple(path.split("."))) for path in PHASES)
    named = any(isinstance(phase, str) and EVALUATION.search(phase) for phase in phases)
    return named or any(record.get(name) in (True, 1) for name in OF_EVALUATION)


def _how_it_ended(record: DumpRecord) -> list[str]:
    said = [_at(record, tuple(path.split("."))) for path in ENDED]
    return [str(one).lower() for one in said if one is not None]


def _is_fault(said: Any) -> bool:
    if isinstance(said, str):
        return said.strip().lower() not in ("", "false", "none", "null", "nan", "0", "0.0", "ok", "no", "[]", "{}")
    return said is True or (isinstance(said, list | Mapping) and bool(said))
