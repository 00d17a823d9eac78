import pytest
from pydantic import ValidationError

from cooper_rl.errors import InputError
from cooper_rl.stage2.assistant import ChatAssistantConfig, CorrupterAssistant, build_assistant
from cooper_rl.stage2.config import CooptimizationConfig
from cooper_rl.stage2.presets import COOPER, PAPER


def test_the_cooper_preset_is_the_default():
    assert CooptimizationConfig.model_validate(COOPER) == CooptimizationConfig()


def test_the_paper_preset_has_none_of_our_remedies():
    paper = CooptimizationConfig.model_validate(PAPER)
    assert (paper.negatives, paper.positives, paper.anchor) == (("assistant",), ("rollout",), 0.0)
    assert (paper.replay.pairs_per_step, paper.replay.labelled, paper.epochs) == (0, None, 1)
    assert (paper.pairs_per_problem, paper.before_policy) == (1, None)


def test_the_kind_of_an_assistant_decides_its_settings():
    config = CooptimizationConfig.model_validate(
        {"assistant": {"kind": "chat", "base_url": "http://x/v1", "model": "m"}}
    )
    assert isinstance(config.assistant, ChatAssistantConfig)
    assert (config.assistant.temperature, config.assistant.tries) == (0.7, 3)
    with pytest.raises(ValidationError, match="base_url"):
        CooptimizationConfig.model_validate({"assistant": {"kind": "corrupter", "function": "a:b", "base_url": "x"}})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"negatives": []}, "at least one"),
        ({"negatives": ["assistant", "assistant"]}, "twice"),
        ({"replay": {"capacity": 0}}, "capacity"),
        ({"replay": {"labelled": "x.jsonl", "labelled_per_step": 0}}, "labelled_per_step"),
    ],
)
def test_contradictions_are_refused(settings, message):
    with pytest.raises(ValidationError, match=message):
        CooptimizationConfig.model_validate(settings)


def test_an_assistant_is_built_only_if_needed_and_then_required(verifier):
    assert build_assistant(CooptimizationConfig(negatives=("on_policy",)), verifier) is None
    with pytest.raises(InputError, match=r"cooptimization\.assistant"):
        build_assistant(CooptimizationConfig(), verifier)
    corrupter = {"kind": "corrupter", "function": "cooptimization_cases:flip"}
    config = CooptimizationConfig.model_validate({"assistant": corrupter})
    assert isinstance(build_assistant(config, verifier), CorrupterAssistant)
    config = CooptimizationConfig.model_validate({"assistant": corrupter | {"function": "cooptimization_cases:flop"}})
    with pytest.raises(InputError, match="flop"):
        build_assistant(config, verifier)
