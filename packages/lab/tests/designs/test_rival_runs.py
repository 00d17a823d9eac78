"""Each other way to learn a reward beside the policy trains in the embedded world, resumes, moves what it should."""

import json
import math

import pytest
import torch
from benchmarks.arena.league import designs

from cooper_base.clock import MEASURED
from cooper_lab.arena.designs import fill_in
from cooper_lab.arithmetic.arms import RULE
from cooper_lab.arithmetic.build_models import MAX_INPUT_TOKENS
from cooper_lab.arithmetic.twins import tokenizer_of
from cooper_lab.arithmetic.world import ASSETS, TWINS, run_settings
from cooper_lab.designs.implicit import implicit_folder
from cooper_rl import CooperTrainer, InputError, build_config, merge, read_metrics
from cooper_rl.engines.local.models import load_reward_model
from cooper_rl.step import cooper_step
from slow_members import first_fast

DESIGNS = designs()
LEARNING = (
    "iterated_1",
    "iterated_5_on",
    "best_worst",
    "varl",
    "prime",
    "prime_after",
    "ipvrm",
    "cooper_fpo",
    "cooper_lexicographic",
)
FROZEN = (
    "static_fpo",
    "static_fpo_relaxed",
    "static_grad_reg",
    "noise_corrected",
    "appeals",
    "merged",
    "static_implicit",
)


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """The start of every twin, which has learned nothing; the shipped reward model where a design reads the cell's."""
    folder = tmp_path_factory.mktemp("twins")
    paths = {f"$reward_model{member}": str(ASSETS / "reward_model") for member in ("", "_1", "_2")}
    for twin in TWINS:
        paths[f"$reward_model_{twin}"] = str(folder / twin)
        if twin == "chat":
            load_reward_model(str(ASSETS / "policy"), new_head_seed=0).save_pretrained(folder / twin)
            tokenizer_of(twin).save_pretrained(folder / twin)
        elif "input" in TWINS[twin]:
            implicit_folder(ASSETS / "policy", folder / twin)
    return paths


@pytest.fixture
def run_of(models, tmp_path):
    """The settings of a short run of a design, whose rule judges 35 % of the problems."""
    small = {"problems_per_step": 8, "rollout": {"n": 4}, "evaluation": {"every": 0}, "checkpoint": {"every": 1}}
    small |= {"problems": {"limit": 100}, "test_problems": {"limit": 8}}  # reading all 4,000 takes as long as the steps
    small |= {"rule": RULE, "steps": 3, "reward_model": {"learning_rate": 1e-3, "max_input_tokens": MAX_INPUT_TOKENS}}

    def settings(design, name="run", **more):
        chosen = merge(fill_in(DESIGNS[design].settings, models), merge(small, more))
        return run_settings(name, tmp_path, 0, chosen)

    return settings


def fit(settings, resume=False, until=None):
    with CooperTrainer.from_config(build_config(settings), resume=resume) as trainer:
        trainer.fit(lambda step, _: trainer.request_stop() if step == until else None)
        model = trainer.parts.reward.model
    rows = [{k: v for k, v in row.items() if not k.startswith(MEASURED)} for row in read_metrics(trainer.directory)]
    weights = [learner.model.state_dict() for learner in (trainer.parts.policy, *([model.learner] if model else []))]  # pyright: ignore[reportAttributeAccessIssue]
    return rows, [{name: tensor.clone() for name, tensor in of_model.items()} for of_model in weights]


def moved(weights, folder):
    """Whether weights differ from those of a folder."""
    from safetensors.torch import load_file

    start = load_file(f"{folder}/model.safetensors")
    return not all(torch.equal(weights[name], start[name]) for name in start)


@pytest.mark.slow
@pytest.mark.parametrize("design", [*LEARNING, *FROZEN])
def test_a_run_resumes_bit_for_bit(design, run_of, models):
    steps = 3 if design == "varl" else 2  # whose first update is in the second step
    whole, weights = fit(run_of(design, "whole", steps=steps))
    fit(run_of(design, steps=steps), until=1)
    resumed, after = fit(run_of(design, steps=steps), resume=True)
    assert json.dumps(resumed) == json.dumps(whole)
    for one, other in zip(weights, after, strict=True):
        assert all(torch.equal(one[name], other[name]) for name in one)
    check_what_moved(design, weights, models)


def check_what_moved(design, weights, models):
    assert moved(weights[0], ASSETS / "policy")
    start = fill_in(DESIGNS[design].settings, models).get("reward_model", {}).get("model", models["$reward_model"])
    if design != "noise_corrected":  # which has no reward model
        retrained = design != "iterated_5_on"  # whose fifth step is not reached
        assert moved(weights[1], start) == (design in LEARNING and retrained)


SOON = ("prime", "varl", "ipvrm", "static_grad_reg", "appeals")
"""Each has a part of its own that no other of these has; the others take their step among the slow tests."""
STEPS = (*SOON, *(design for design in (*LEARNING, *FROZEN) if design not in SOON))


@pytest.mark.parametrize("design", first_fast(STEPS, len(SOON)))
def test_a_step_moves_what_it_should(design, run_of, models):
    _, weights = fit(run_of(design, steps=2 if design == "varl" else 1))  # whose first update is in the second step
    check_what_moved(design, weights, models)


def test_iterated_keeps_the_pairs_and_retrains_when_it_is_time(run_of):
    rows, _ = fit(
        run_of("iterated_1", cooptimization={"pairs": [{"kind": "on_policy"}, {"kind": "iterated", "every": 2}]})
    )
    steps = [row for row in rows if "pairs/pool" in row]
    assert [row["pairs/retrained"] for row in steps] == [0, 1, 0]
    assert [row["pairs/pool"] for row in steps] == [sum(row["pairs/count"] for row in steps[: i + 1]) for i in range(3)]
    assert "reward_model/loss" not in steps[0]
    assert steps[2]["reward_model/probe_drift"] == steps[1]["reward_model/probe_drift"] > 0


@pytest.mark.slow
def test_from_the_start_the_last_retraining_is_all_that_counts(run_of):
    """Retrained in step 2 alone, or in 1 and 2: the same pool from the same weights, if the policy does not move."""
    still = {"policy": {"learning_rate": 0.0}, "steps": 2}
    ends = []
    for every in (1, 2):
        pairs = [{"kind": "on_policy", "order": "random"}, {"kind": "iterated", "every": every}]
        run = run_of("iterated_1", f"every-{every}", **still, cooptimization={"pairs": pairs})
        ends.append(fit(run)[1][1])
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])


@pytest.mark.slow
def test_what_the_rule_is_silent_on_is_paid_by_the_process_and_not_learned_or_as_it_was_published(run_of):
    """Ours has no label there, and the process pays; the published labels are more, and all of the rest are wrong."""
    silent = {
        "rewards": [{"kind": "outcome", "silent": "unpaid"}],
        "cooptimization": {"pairs": [{"kind": "outcomes", "silent": "wrong"}]},
    }
    (ours,), (other,) = (fit(run_of("prime", name, steps=1, **more))[0] for name, more in [("ours", {}), ("o", silent)])
    assert 0 < ours["rule/heard"] < 1
    assert ours["reward/no_opinion"] == 0
    assert other["reward/no_opinion"] == pytest.approx(1 - other["rule/heard"])
    assert ours["reward_model/judged_loss"] == pytest.approx(math.log(2), abs=1e-4)  # every logit is 0 at the start
    assert ours["reward_model/judged_accuracy"] < other["reward_model/judged_accuracy"]


def test_prime_needs_an_implicit_reward_model(run_of):
    with pytest.raises(InputError, match="set engine: implicit"):
        build_config(run_of("cooper", algorithm={"advantages": {"kind": "prime"}}))


def test_the_corrected_rule_is_the_rule(run_of):
    """A group's mean and standard deviation undo the correction, up to the 1e-6 beside the deviation."""
    no_floor = {"algorithm": {"advantages": {"kind": "grpo"}}, "steps": 1}
    corrected, rule = (_first_advantages(run_of(design, design, **no_floor)) for design in ("noise_corrected", "rule"))
    assert corrected.abs().max() > 0.5
    torch.testing.assert_close(corrected, rule, rtol=2e-6, atol=0)


def _first_advantages(settings):
    config = build_config(settings)
    with CooperTrainer.from_config(config) as trainer:
        return cooper_step(config, trainer.parts, 1, seed=1).advantages.flat
