"""The one way to write a grader, on a command line and in settings, and how it becomes one."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from cooper_base.config.base import Config
from cooper_base.config.checking import Settings, check_settings, read_settings, with_overrides
from cooper_base.config.strict_yaml import parse_yaml
from cooper_base.config.user_functions import brought_by_training, load_object, made
from cooper_base.errors import InputError
from cooper_verify.grader import Grader
from cooper_verify.graders.function import FunctionGrader
from cooper_verify.graders.judge import JudgeGrader, read_judge
from cooper_verify.graders.openenv_rubric import OpenEnvRubricGrader, is_openenv_rubric
from cooper_verify.graders.rubric import RubricGrader, is_rubric, rubric_of
from cooper_verify.rules.kinds.maths import MathsRule
from cooper_verify.rules.rule import RULES, RuleConfig
from cooper_verify.rules.verifier import Verifier

logger = logging.getLogger(__name__)

WRITTEN = (
    "rule, rule:KIND, the folder of a reward model, package.module:function, file.py:function, a YAML file with "
    "`judge:` or with the rewards of a run, http://host:port of `cooper serve`, or verifiers:ENVIRONMENT"
)
Form = Literal["rule", "function", "grader", "judge", "rubric", "environment", "reward_model", "run", "service"]
"""What a written grader is. `grader` is a class or an object of the user's, `rubric` one of verifiers or OpenEnv,
`environment` one of verifiers."""
BROUGHT: dict[Form, str] = {
    "reward_model": "a reward model",
    "run": "the rewards of a run",
    "service": "the client of `cooper serve`",
}
"""Graders that need training code. Entry points of the group `cooper.graders` bring them: a function of what is
written and of settings ("reward_model.max_input_tokens=160")."""


class RuleSettings(Config):
    """The rule of problems, and rules that problems may name."""

    rule: Annotated[RuleConfig, RULES] = MathsRule()
    """The rule: `maths`, `exact`, `choice`, `numeric`, or `package.module:function` for your own."""
    rules: dict[str, Annotated[RuleConfig, RULES]] = Field(default_factory=dict)
    """Further rules by name, for problems that name their rule."""


def form_by_text(written: str) -> Form | None:
    """The kind of grader that this text names, found without running the user's code; None for an object of theirs.
    Raises InputError for text that is no grader, and a file that does not exist or cannot be read."""
    if written.startswith(("http://", "https://")):
        return "service"
    if written.startswith("verifiers:"):
        return "environment"
    if written.endswith((".yaml", ".yml")):
        return "judge" if "judge" in read_settings(written).values else "run"
    kind, colon, _ = written.partition(":")
    if kind == "rule":
        return "rule"
    if colon or written.endswith(".py"):
        return None
    if "/" not in written and not Path(written).is_dir():
        raise InputError(f"{written}: no such grader; write {WRITTEN}")
    return "reward_model"


def form_of(written: str) -> Form:
    """What is written here. Raises InputError as `form_by_text` does, and for an object that does not exist."""
    if (form := form_by_text(written)) is not None:
        return form
    found = load_object(written, "function")
    if is_openenv_rubric(found) or (is_rubric(found) and not isinstance(found, type)):
        return "rubric"
    is_grader = issubclass(found, Grader) if isinstance(found, type) else isinstance(found, Grader)
    return "grader" if is_grader else "function"


def open_grader(written: str, settings: Sequence[str] = (), chats: bool | None = None) -> Grader:
    """The grader that is written here, ready to grade; large models load when they are first asked.

    `settings` ("rule.relative=0.1", "judge.max_tokens=32", "reward_model.max_input_tokens=160") are laid over it, as
    far as it has any; the others are left to the caller. `chats` says whether a function of TRL gets messages.

    Raises InputError for what is not there or does not fit, and MissingExtraError without the package that brings it.
    """
    form = form_of(written)
    if form in BROUGHT:
        grader = brought_by_training("graders", form, f"{written}: {BROUGHT[form]}")(written, settings)
    else:
        grader = _at_home(form, written, settings, chats)
    grader.name = written
    return grader


def _at_home(form: Form, written: str, settings: Sequence[str], chats: bool | None) -> Grader:
    if form == "rule":
        rules = written_rules(written, settings)
        return Verifier(rules.rule, rules.rules)
    if form == "judge":
        return JudgeGrader(read_judge(Path(written), settings_of(settings, "judge")))
    if form == "environment":
        return RubricGrader(written, rubric_of(written.partition(":")[2]))
    if form == "function":
        grader = FunctionGrader(written, chats)
        logger.info("%s: called as %s", written, grader.signature)
        return grader
    found = load_object(written, "function")
    made_of = made(written, found) if isinstance(found, type) else found
    if form == "rubric":
        return OpenEnvRubricGrader(written, made_of) if is_openenv_rubric(made_of) else RubricGrader(written, made_of)
    return made_of


def written_rules(written: str, settings: Sequence[str] = ()) -> RuleSettings:
    """The rule in `rule`, `rule:KIND` or `rule: {kind: KIND, …}`, with settings over it. Raises InputError."""
    return check_settings(RuleSettings, rule_settings_in(written, settings_of(settings, "rule", "rules")))


def rule_settings_in(written: str, settings: Sequence[str] = ()) -> Settings:
    """The settings of `rule`, `rule:KIND` or `rule: {kind: KIND, …}`, unchecked. Raises InputError for bad YAML."""
    _, colon, rest = written.partition(":")
    try:
        rule = parse_yaml(rest)[0] if colon else "maths"
    except ValueError as error:
        raise InputError(f"{written}: {error}") from error
    values = {"rule": rule if isinstance(rule, dict) else {"kind": rest.strip() or "maths"}}
    return Settings(with_overrides(values, settings), written, overrides=settings)


def check_settings_taken(written: str, settings: Sequence[str]) -> None:
    """Raises InputError for a setting that this grader does not have, where nothing else could take it."""
    form = form_of(written)
    if form in ("reward_model", "run"):  # these check them all
        return
    sections = {"rule": ("rule", "rules"), "judge": ("judge",)}.get(form, ())
    taken = settings_of(settings, *sections)
    if others := [setting for setting in settings if setting not in taken]:
        has = " and ".join(f"{section}.…" for section in sections) or "none"
        raise InputError(f"{others[0]}: no setting of the grader {written}; it has {has}")


def settings_of(settings: Sequence[str], *sections: str) -> list[str]:
    """Those of the settings key=value that are about these sections: `rule=exact`, `rule.relative=0.1`."""
    return [setting for setting in settings if setting.partition("=")[0].partition(".")[0] in sections]
