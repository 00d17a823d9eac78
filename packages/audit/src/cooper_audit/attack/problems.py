"""The problems of an attack, and the rules that check their references."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from cooper_audit.attack.common import COMPARED
from cooper_audit.attack.questions import questions
from cooper_audit.attack.wrappers import FORMS, stated
from cooper_base.config.base import mapping_of
from cooper_base.config.checking import Settings, check_settings, read_settings, with_overrides
from cooper_base.config.user_functions import added
from cooper_base.data.problem import Problem
from cooper_base.errors import InputError
from cooper_verify.grader import Asked, Grader
from cooper_verify.graders.apart import GraderApart, opinions_on_each
from cooper_verify.graders.function import FunctionGrader
from cooper_verify.graders.written import (
    RuleSettings,
    form_by_text,
    form_of,
    open_grader,
    rule_settings_in,
    settings_of,
)
from cooper_verify.problems.config import ProblemsConfig
from cooper_verify.problems.loading import load_problems
from cooper_verify.rules.verifier import Verifier

EMBEDDED: dict[str, Any] = {"source": "arithmetic", "split": "test"}
"""The problems of an attack that trains a policy or a reward model, where nobody names others: those of the embedded
world that no run trains on."""


QUESTIONS = 200
"""Questions of our own that an attack draws from."""


class AttackSettings(RuleSettings):
    """What an attack takes besides the grader: settings by the names that a run has for them."""

    problems: ProblemsConfig | None = None
    """The problems. By default the questions of `questions.py`."""
    seed: int = Field(default=0, ge=0)
    """Seeds the problems that are drawn and the patterns."""
    threads: int | None = Field(default=None, ge=1)
    """CPU threads for tensor work, where the grader is a model in this process."""


def attack_settings(
    written: str, problems: str | None = None, settings: Sequence[str] = (), trains: bool = False
) -> AttackSettings:
    """The settings of an attack on the grader that is written here.

    `problems` is a file or a data set, by default what a run's YAML file names, or else the attack's own questions, and
    with `trains` the embedded arithmetic problems. `settings` ("problems.format=gsm8k") win over all. Those of sections
    that the grader has, or with `trains` the run that `--policy` and `--repair` train in, are left to be checked there.
    Raises InputError for anything else that does not fit.
    """
    form, names = form_by_text(written), AttackSettings.model_fields
    values: dict[str, Any] = {}
    if form == "rule":
        values = rule_settings_in(written).values
    elif form == "run":
        values = {name: value for name, value in read_settings(written).values.items() if name in names}
    of_grader = settings_of(settings, "judge") if form == "judge" else []
    if trains or form in ("run", "reward_model"):
        own = settings_of(settings, *names)
    else:
        own = [setting for setting in settings if setting not in of_grader]
    if problems is not None:
        values["problems"] = {"source": problems}
    given = mapping_of(values.get("problems")) | mapping_of(with_overrides({}, own).get("problems"))
    if "source" not in given and (trains or given):
        values["problems"] = EMBEDDED | mapping_of(values.get("problems"))
        if EMBEDDED["source"] not in added("problems"):
            raise InputError("name the problems of the attack with --problems; embedded ones come with cooper-rl[lab]")
    return check_settings(AttackSettings, Settings(with_overrides(values, own), written, overrides=own))


NO_USER_CODE = ("judge", "reward_model", "service")
"""Graders that are asked from this process: they run no code of the user's."""


def open_apart(written: str, settings: Sequence[str], chats: bool | None) -> Grader:
    """As `open_attacked`, in a process of its own if it may run code of the user's."""
    if form_by_text(written) in NO_USER_CODE or (written in COMPARED.values() and not settings):
        return open_attacked(written, settings, chats)
    return GraderApart(open_attacked, written, settings, chats)


def open_attacked(written: str, settings: Sequence[str], chats: bool | None) -> Grader:
    """The grader that is written here. A function that reads nothing in texts gets chats, and the other way round,
    unless `chats` says what it takes. Raises InputError as `open_grader` does."""
    if form_of(written) != "function":
        return open_grader(written, settings, chats)
    grader = FunctionGrader(written, chats)
    if chats is None and grader.takes_chats is not None:
        other = FunctionGrader(written, not grader.takes_chats)
        if not _reads(grader) and _reads(other):
            return other
    return grader


def _reads(grader: Grader) -> bool:
    """Whether a right answer in any form is paid otherwise than an empty one. False if it raises on them all."""
    problem = questions(1)[0]
    texts = ["", *(stated(form, problem.answer) for form in FORMS.values())]
    opinions = opinions_on_each(grader, [Asked(problem, text) for text in texts])
    empty, *scores = [opinion.score for opinion in opinions]
    return any(score != empty for score in scores)


def read_attack_problems(settings: AttackSettings, grader: Grader) -> list[Problem]:
    """The problems of an attack. Where the grader reads references, those that do not verify are left out, as in a run.

    Raises InputError as `load_problems` does, and for a problem that lacks what the grader needs.
    """
    if settings.problems is None:
        problems = questions(QUESTIONS, settings.seed)
    else:
        with Verifier(settings.rule, settings.rules) as verifier:
            problems = load_problems(settings.problems, verifier if grader.reads_reference else None).problems
    grader.check(problems)
    return problems
