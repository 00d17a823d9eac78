"""A kind of run is one recipe: over the fields' defaults, under the user's settings, merged field by field."""

from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from cooper_base.cli.main import commands
from cooper_base.config.base import Config, merge
from cooper_rl import InputError, build_config, load_config
from cooper_rl.engines.losses.policy import KLConfig
from cooper_rl.engines.losses.reward_model import PairwiseLoss
from cooper_rl.policy.advantages import GRPO, AdvantageConfig
from cooper_rl.policy.config import AlgorithmConfig
from cooper_rl.policy.estimators import DrGRPO
from cooper_rl.reward.cooptimization_config import CooptimizationConfig
from cooper_rl.reward.kinds.earned import EarnedConfig
from cooper_rl.reward.pairs.base import PAIRS
from cooper_rl.reward.recipes import RECIPES
from cooper_rl.reward.reward_config import CooperRewardConfig, RewardModelConfig
from cooper_rl.run_config import RunConfig
from cooper_rl.service.config import ServeConfig

RUN: dict[str, Any] = {
    "policy": {"model": "m"},
    "problems": {"source": "p.jsonl"},
    "reward_model": {"model": "rm"},
}
OWN = {"kind": "function", "function": "a:b"}
ASSISTANT = {"kind": "corrupter", "function": "cooptimization_cases:flip"}


class Own(AdvantageConfig):
    """An advantage without a field `kind`."""

    def advantages(self, rewards, completions=None):
        return rewards


def test_settings_win_over_the_recipe_and_the_recipe_over_the_defaults(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump({**RUN, "kind": "paper", "algorithm": {"min_spread": 0.2, "minibatches": 2}}))
    config = load_config(path, ["algorithm.minibatches=4"])
    assert (config.algorithm.min_spread, config.algorithm.minibatches) == (0.2, 4)
    assert [PAIRS.kind_of(part) for part in config.cooptimization.pairs] == ["assistant"]
    assert config.cooptimization.skip_gradient_share == CooptimizationConfig().skip_gradient_share


@pytest.mark.parametrize(
    ("given", "advantages"),
    [
        ({}, GRPO(std_floor=0.2)),
        ({"kind": "grpo"}, GRPO(std_floor=0.2)),
        ({"kind": "grpo", "std_floor": 0.0}, GRPO()),
        ({"kind": "dr_grpo"}, DrGRPO()),
        (GRPO(), GRPO(std_floor=0.2)),
        (DrGRPO(), DrGRPO()),
        (Own(), Own()),
    ],
)
def test_a_part_of_the_same_kind_keeps_the_recipes_fields_and_another_kind_replaces_it(given, advantages):
    assert build_config({**RUN, "algorithm": {"advantages": given}}).algorithm.advantages == advantages
    if (given and "kind" in dict(given)) or isinstance(given, Config):
        in_python = RunConfig.model_validate(
            {**RUN, "algorithm": AlgorithmConfig.model_validate({"advantages": given})}
        )
        assert in_python.algorithm.advantages == advantages


@pytest.mark.parametrize(
    ("kl", "expected"),
    [
        ({}, KLConfig(clamp=10)),
        ({"kind": "k3", "coefficient": 0.01}, KLConfig(coefficient=0.01, clamp=10)),
        (KLConfig(coefficient=0.01), KLConfig(coefficient=0.01, clamp=10)),
        ({"clamp": None}, KLConfig()),
        ({"kind": "k2"}, KLConfig(kind="k2")),
        (None, None),
    ],
)
def test_the_paper_clamps_k3_as_verl_does(kl, expected):
    assert build_config({**RUN, "kind": "paper", "algorithm": {"kl": kl}}).algorithm.kl == expected


def test_the_loss_of_the_paper_keeps_its_anchor_beside_other_settings():
    loss = build_config({**RUN, "kind": "paper", "cooptimization": {"loss": {"kind": "pairwise"}}}).cooptimization.loss
    assert loss == PairwiseLoss(anchor=0)


@pytest.mark.parametrize("cooptimization", [{"pairs_per_problem": 2}, CooptimizationConfig(pairs_per_problem=2)])
def test_one_setting_of_cooptimization_leaves_the_others_as_the_recipe_has_them(cooptimization):
    config = build_config({**RUN, "cooptimization": cooptimization}).cooptimization
    assert (config.pairs_per_problem, config.skip_gradient_share) == (2, 0.2)


@pytest.mark.parametrize(
    "model",
    [
        {"reward_model": {"model": "rm", "kind": "yes_no"}},
        {"reward_model": RewardModelConfig(model="rm")},
    ],
)
def test_the_recipe_says_that_the_model_learns_however_it_is_written(model):
    assert build_config({**RUN, **model}).learns
    assert not build_config({**RUN, **model, "kind": "static"}).learns


def test_rewards_replace_what_the_recipe_pays_and_nothing_else_of_it():
    """`rewards: [{kind: earned}]` is the same run with and without `kind: cooper`: it has its floor."""
    whole = build_config({**RUN, "kind": "cooper"})
    assert build_config({**RUN, "rewards": [{"kind": "earned"}]}) == whole == build_config(RUN)
    paid = build_config({**RUN, "rewards": [{"kind": "rule"}, OWN]})
    assert [part.kind for part in paid.rewards] == ["rule", "function"]
    assert paid.model_copy(update={"rewards": whole.rewards}) == whole


def test_the_light_kind_only_makes_cooptimization_smaller():
    whole, light = (build_config({**RUN, "kind": kind}) for kind in ("cooper_model", "cooper_light"))
    smaller = {"before_policy": None, "pairs_per_problem": 1, "epochs": 1}
    expected = whole.cooptimization.model_copy(update=smaller)
    assert light == whole.model_copy(update={"kind": "cooper_light", "cooptimization": expected})


@pytest.mark.parametrize("record", [CooperRewardConfig, ServeConfig])
@pytest.mark.parametrize("kind", [kind for kind in RECIPES if kind != "function"])
def test_a_kind_pays_and_learns_the_same_in_a_run_and_for_other_trainers(record, kind):
    run = build_config({**RUN, "kind": kind})
    reward = record(kind=kind, reward_model=RewardModelConfig(model="rm"))
    for name in ("rewards", "learns", "cooptimization"):
        assert getattr(reward, name) == getattr(run, name)
    assert record.model_validate(reward.model_dump(mode="json")) == reward


def test_a_recipe_names_fields_whose_defaults_it_changes():
    for kind in RECIPES:
        rewards = {"rewards": [OWN]} if kind == "function" else {}
        config = build_config({**RUN, "kind": kind, "cooptimization": {"assistant": ASSISTANT}, **rewards})
        plain = RunConfig.model_construct()
        for section in ("algorithm", "cooptimization"):
            default = getattr(plain, section)
            changed = {name for name, value in getattr(config, section) if value != getattr(default, name)}
            assert changed - {"assistant"} == RECIPES[kind].get(section, {}).keys()


@pytest.mark.parametrize(
    ("kind", "without"),
    [
        ("cooper", ["on_policy", "near_reference"]),
        ("cooper_model", ["on_policy"]),
        ("cooper_light", ["on_policy"]),
        ("paper", ["assistant"]),
        ("gad", ["teacher"]),
    ],
)
@pytest.mark.parametrize("written", [{}, {"assistant": None, "epochs": 3}])
def test_recipes_go_without_the_pairs_of_an_assistant_that_is_not_described(kind, without, written):
    """But for `paper`, which has no others and so asks for one."""
    assert _pairs(build_config({**RUN, "kind": kind, "cooptimization": written})) == without
    described = {**written, "assistant": ASSISTANT}
    with_one = without if kind in ("paper", "gad") else ["assistant", *without]
    for stage_2 in (described, CooptimizationConfig.model_validate(described)):
        assert _pairs(build_config({**RUN, "kind": kind, "cooptimization": stage_2})) == with_one


def test_pairs_that_are_listed_stay_as_they_are():
    listed = {"pairs": [{"kind": "assistant"}, {"kind": "swapped_reference"}]}
    assert _pairs(build_config({**RUN, "cooptimization": listed})) == ["assistant", "swapped_reference"]


def _pairs(config: RunConfig) -> list[str]:
    return [PAIRS.kind_of(part) for part in config.cooptimization.pairs]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: hybrid", "run.yaml:4: kind: Input should be 'cooper'"),
        ("algorithm: {overlong: {kind: mask}}", "run.yaml:4: algorithm.overlong: Input should be 'keep' or 'mask'"),
        ("kind: null", "run.yaml:4: kind: Input should be 'cooper'"),
    ],
)
def test_a_value_that_a_setting_does_not_take_is_refused_with_those_that_it_does(tmp_path, text, message):
    written = yaml.safe_dump(RUN, sort_keys=True, default_flow_style=None)
    (tmp_path / "run.yaml").write_text(f"{written}{text}\n")
    assert len(written.splitlines()) == 3
    with pytest.raises(InputError, match=message):
        load_config(tmp_path / "run.yaml")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reward_model": None}, "kind: cooper needs a reward model: set reward_model.model"),
        ({"kind": "static", "reward_model": None}, "kind: static needs a reward model"),
        ({"reward_model": {"model": "rm", "learns": False}}, "kind: cooper trains the reward model"),
        ({"kind": "static", "reward_model": {"model": "rm", "learns": True}}, "kind: static trains no reward model"),
        ({"kind": "rule", "rewards": [EarnedConfig()]}, "kind: rule has no reward model, but rewards reads one"),
        ({"kind": "function"}, "kind: function pays only the rewards that you list"),
        ({"rewards": []}, "kind: cooper pays only the rewards that you list"),
    ],
)
def test_a_kind_that_its_models_contradict_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        build_config({**RUN, **changes})


@pytest.mark.parametrize("kind", RECIPES)
def test_cooper_config_prints_of_a_kind_what_runs(kind):
    printed = CliRunner().invoke(commands, ["config", "--kind", kind])
    assert printed.exit_code == 0, printed.output
    shown, run = yaml.safe_load(printed.stdout), {**RUN, "kind": kind}
    run |= {"rewards": [OWN]} if kind == "function" else {}
    run |= {"cooptimization": {"assistant": ASSISTANT}} if kind == "paper" else {}
    built = build_config(run)
    assert build_config(merge(run, shown)) == built
    assert shown.keys() == {"kind", *RECIPES[kind]}
    if built.learns:
        assert [pair["kind"] for pair in shown["cooptimization"]["pairs"]] == _pairs(built)
    if kind == "cooper":
        assert "    std_floor: 0.2  # default 0.0\n" in printed.stdout


def test_cooper_config_names_the_kinds_if_there_is_none_of_this_name():
    with pytest.raises(InputError, match=r"--kind papr: .*did you mean 'paper'"):
        CliRunner().invoke(commands, ["config", "--kind", "papr"], catch_exceptions=False)
