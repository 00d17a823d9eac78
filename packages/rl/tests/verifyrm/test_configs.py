"""The shipped configurations load, and the paper's has the values of the paper."""

from pathlib import Path

import pytest

from cooper_base.config.checking import check_settings, read_settings
from cooper_rl.adapters.graders.config import LocalJudgeConfig
from cooper_rl.engines.losses.policy import KLConfig
from cooper_rl.engines.losses.reward_model import PairwiseLoss
from cooper_rl.reward.pairs.base import PAIRS
from cooper_rl.reward.pairs.chat_assistant import ChatAssistantConfig
from cooper_rl.run_config import load_config
from cooper_rl.verifyrm.config import CollectConfig
from cooper_verify.graders.judge import read_judge
from repository import ROOT

CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_every_shipped_configuration_loads(path: Path):
    config = load_config(path)
    assert config.name == path.stem
    assert config.test_problems is not None
    same_file = config.test_problems.source == config.problems.source
    assert not same_file or config.test_problems.skip >= (config.problems.limit or 10**9)


@pytest.mark.parametrize("path", [path for path in CONFIGS if "paper" in path.name], ids=lambda path: path.name)
def test_the_papers_hyper_parameters(path: Path):
    config = load_config(path)
    assert (config.rollout.n, config.rollout.temperature, config.steps) == (16, 1.0, 180)
    assert (config.policy.learning_rate, config.policy.warmup_steps, config.policy.max_grad_norm) == (1e-6, 20, 1.0)
    assert config.algorithm.kl == KLConfig(kind="k3", coefficient=0.001, where="loss", clamp=10)
    model = config.reward_model
    assert model is not None
    assert (model.learning_rate, model.weight_decay) == (1e-5, 0.01)
    cooptimization, evaluation = config.cooptimization, config.evaluation
    assert isinstance(cooptimization.assistant, ChatAssistantConfig)
    assert (cooptimization.assistant.temperature, cooptimization.assistant.tries) == (0.7, 3)
    assert [PAIRS.kind_of(part) for part in cooptimization.pairs] == ["assistant"]
    assert (cooptimization.positives, cooptimization.loss) == (("rollout",), PairwiseLoss(anchor=0))
    assert (evaluation.k, evaluation.temperature, evaluation.top_p) == (8, 0.7, 0.95)


def test_the_shipped_collect_and_judge_files_load():
    folder = ROOT / "configs" / "verifyrm"
    collect = check_settings(CollectConfig, read_settings(folder / "collect.yaml"))
    assert {model.kind for model in collect.models} == {"local"}
    assert isinstance(read_judge(folder / "judge.yaml"), LocalJudgeConfig)
