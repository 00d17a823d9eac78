"""The checks of OpenEnv's validation: what they measure of a package, and that OpenEnv finds them."""

import sys
import tomllib
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from cooper_audit.attack.openenv import AdversarialFloor, GameabilityGap

RUBRICS = """
import re

class Rubric:
    def __call__(self, action, observation):
        return self.forward(action, observation)

    def named_rubrics(self):
        return iter(())


class Boxed(Rubric):
    def forward(self, action, observation):
        return float(action.message.strip() == r"\\boxed{" + observation.answer + "}")


class Somewhere(Rubric):
    def forward(self, action, observation):
        return float(observation.answer in action.message)


class PaysLength(Rubric):
    def forward(self, action, observation):
        right = action.message.strip() == r"\\boxed{" + observation.answer + "}"
        return 1.0 if right else min(len(action.message) / 1000, 0.4)


class OfTests(Rubric):
    def forward(self, action, observation):
        return observation.tests_passed
"""


class Status(Enum):
    PASS, FAIL, SKIP, ERROR = "pass", "fail", "skip", "error"


@dataclass
class Result:
    check_id: str
    status: Status
    measured: dict[str, Any]
    evidence: list[str]
    remediation: str | None
    duration_s: float


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a check on a package with this reward, with OpenEnv's classes, or stand-ins where it is not installed."""
    if find_spec("openenv") is None:
        for name, of in {"report": {"CheckResult": Result}, "types": {"CheckStatus": Status}}.items():
            monkeypatch.setitem(sys.modules, f"openenv.validation.{name}", vars_as_module(name, of))
        for name in ("openenv", "openenv.validation"):
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
    (tmp_path / "server").mkdir()
    (tmp_path / "server" / "rubrics.py").write_text(RUBRICS)

    def checked(check, declared: str | None):
        path = tmp_path / "pyproject.toml"
        path.write_text("" if declared is None else f"[tool.cooper]\n{declared}\n")
        manifest = SimpleNamespace(reward=SimpleNamespace(range=(0.0, 1.0)))
        return check().run(SimpleNamespace(root=tmp_path, manifest=manifest))

    return checked


def vars_as_module(name: str, of: dict[str, Any]) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(of)
    return module


@pytest.fixture(autouse=True)
def afresh():
    from cooper_audit.attack.openenv import attacked

    attacked.cache_clear()


def test_a_sound_rubric_passes_both(run):
    gap = run(GameabilityGap, 'reward = "server/rubrics.py:Boxed"')
    floor = run(AdversarialFloor, 'reward = "server/rubrics.py:Boxed"')
    assert (gap.status.value, floor.status.value) == ("pass", "pass")
    assert gap.measured["gap"] < 0.1
    assert floor.measured["patterns_above"] == []
    assert (gap.check_id, floor.check_id) == ("statistical.gameability_gap", "statistical.adversarial_floor")


def test_the_reference_anywhere_fails_both_with_an_exploit(run):
    gap = run(GameabilityGap, 'reward = "server/rubrics.py:Somewhere"')
    floor = run(AdversarialFloor, 'reward = "server/rubrics.py:Somewhere"')
    assert (gap.status.value, floor.status.value) == ("fail", "fail")
    assert "answer_list" in floor.measured["patterns_above"]
    assert any("answer_list is accepted in 100%" in line for line in floor.evidence)
    assert gap.remediation


def test_a_part_for_length_is_above_the_floor(run):
    floor = run(AdversarialFloor, 'reward = "server/rubrics.py:PaysLength"')
    assert floor.status.value == "fail"
    assert floor.measured["worst"] == "long_and_formatted"
    assert floor.measured["floor"] == 0.0


def test_what_declares_no_reward_is_skipped_and_what_cannot_be_attacked_is_an_error(run):
    skipped = run(GameabilityGap, None)
    assert (skipped.status.value, "pyproject.toml" in skipped.remediation) == ("skip", True)
    failed = run(GameabilityGap, 'reward = "server/rubrics.py:OfTests"')
    assert failed.status.value == "error"
    assert "tests_passed" in failed.evidence[0]
    typo = run(GameabilityGap, 'rewards = "server/rubrics.py:Boxed"')
    assert (typo.status.value, "[tool.cooper] has rewards" in typo.evidence[0]) == ("error", True)


def test_the_package_adds_both_by_entry_points():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    added = project["entry-points"]["openenv.validation.graders"]
    loaded = {EntryPoint(name, value, "openenv.validation.graders").load() for name, value in added.items()}
    assert loaded == {GameabilityGap, AdversarialFloor}


def test_openenv_s_registry_selects_them_at_its_last_level():
    graders = pytest.importorskip("openenv.validation.graders", reason="needs openenv")
    from openenv.validation.types import Level  # pyright: ignore[reportMissingImports]

    registry = graders.GraderRegistry()
    for check in (GameabilityGap, AdversarialFloor):
        registry.register(check())
    manifest = SimpleNamespace(capabilities=SimpleNamespace())
    chosen = [grader.check_id for grader in registry.select(manifest, Level.STATISTICAL)]
    assert {"statistical.gameability_gap", "statistical.adversarial_floor"} <= {*chosen}
    assert not {*chosen} & {grader.check_id for grader in registry.select(manifest, Level.SEMANTIC)}
