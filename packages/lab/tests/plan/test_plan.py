"""A plan: its formulas against figures worked out before, the shipped configurations, and what it advises."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from transformers import AutoConfig
from typer.testing import CliRunner

from cooper_base.cli.main import commands
from cooper_base.errors import InputError
from cooper_lab.plan.advice import advice
from cooper_lab.plan.devices import DEVICES, GB, device_called
from cooper_lab.plan.memory import fits, frozen, kv_room, logits, shares, states, trained
from cooper_lab.plan.report import checkpoint_bytes, report
from cooper_lab.plan.setup import Layout, Learning, Setup, Work, engine_of, layout_of, setup_of
from cooper_lab.plan.shapes import known_models, shape_of
from cooper_rl.engines.config import LoraConfig
from cooper_rl.engines.local.learner import freeze_layers
from cooper_rl.engines.local.models import load_policy, load_reward_model
from cooper_rl.engines.local.numerics import halve_frozen, largest_chunk
from cooper_rl.engines.scale.ray import ClusterEngine
from cooper_rl.run_config import load_config
from repository import ROOT

CONFIGS = ROOT / "configs"
H100 = DEVICES["h100"]
WORK = Work(samples=2048, prompt=150, completion=950)
"""NeMo-RL's published shape."""


def _setup(model: str, judge: str, **layout) -> Setup:
    def learning(name: str, reward_model: bool = False) -> Learning:
        return Learning(shape_of(name, reward_model), 8192, checkpointing=True, bfloat16=True)

    return Setup(learning(model), learning(judge, True), WORK, Layout(**layout, sampler_kind="vllm"))


def test_what_is_left_for_the_cache_is_what_nobody_holds():
    setup = _setup("Qwen/Qwen2.5-7B", "Qwen/Qwen2.5-1.5B", policy=5, sampler=3)
    sampler = shares(setup, H100)[-1]
    assert (sampler.role, round(sampler.left / GB, 1)) == ("sampler", 56.8)
    assert round(kv_room(setup, H100) / 1e6, 1) == 3.0
    assert setup.policy.shape.layers * setup.policy.shape.kv_size * 2 == 56 * 1024


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("Qwen/Qwen2.5-0.5B", 494_032_768),
        ("Qwen/Qwen2.5-1.5B-Instruct", 1_543_714_304),
        ("Qwen/Qwen2.5-7B", 7_615_616_512),
        ("Qwen/Qwen2.5-72B", 72_706_203_648),
        ("meta-llama/Llama-3.1-8B", 8_030_261_248),
        ("HuggingFaceTB/SmolLM2-135M", 134_515_008),
    ],
)
def test_published_models_have_their_published_sizes(name, params):
    assert shape_of(name).params == params


def test_a_folders_shape_is_its_models(tiny_models):
    policy, reward_model = (str(tiny_models / name) for name in ("policy", "reward_model"))
    assert shape_of(policy).params == load_policy(policy).num_parameters()
    assert shape_of(reward_model, reward_model=True).params == load_reward_model(reward_model).num_parameters()
    # Two of the layer's matrices are 32 x 64, one is 64 x 32, four are 32 x 32.
    assert shape_of(policy, lora=LoraConfig(rank=4)).adapter_params == 4 * (3 * 96 + 4 * 64)


def test_a_config_alone_is_enough(tmp_path):
    AutoConfig.for_model(**known_models()["meta-llama/Llama-3.1-8B"]).save_pretrained(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]
    assert shape_of(str(tmp_path)).params == shape_of("meta-llama/Llama-3.1-8B").params


PLANS = {
    "qwen2.5-1.5b-paper": {
        "layout": {"policy": 1, "sampler_kind": "vllm", "reserved": 0.12},
        "judge": "Qwen/Qwen2.5-Math-1.5B-Instruct",
    },
    "llama-3.2-1b-paper": {
        "layout": {"policy": 1, "sampler_kind": "vllm", "reserved": 0.12},
        "judge": "Qwen/Qwen2.5-Math-1.5B-Instruct",
    },
    "qwen2.5-1.5b-paper-8gpu": {
        "layout": {"policy": 4, "sampler": 4, "sampler_kind": "vllm"},
        "judge": "Qwen/Qwen2.5-Math-1.5B-Instruct",
    },
    "7b-lora": {"layout": {"policy": 1, "sampler_kind": "vllm", "reserved": 0.4}, "judge": "Qwen/Qwen2.5-1.5B"},
    "7b-8gpu": {"layout": {"policy": 5, "sampler": 3, "sampler_kind": "vllm"}, "judge": "Qwen/Qwen2.5-1.5B"},
    "14b-two-nodes": {
        "layout": {"policy": 8, "sampler": 8, "sampler_kind": "vllm"},
        "judge": "Qwen/Qwen2.5-7B",
    },
}


@pytest.mark.parametrize("name", PLANS)
def test_the_shipped_configurations_fit_where_they_say(name):
    plan = PLANS[name]
    setup = setup_of(load_config(CONFIGS / f"{name}.yaml"), Layout(**plan["layout"]), 150, None, plan["judge"])
    assert fits(setup, H100)
    assert not fits(setup, replace(H100, memory=12 * GB))


PLANNED = [path for path in sorted(CONFIGS.glob("*.yaml")) if "cooper plan" in path.read_text()]


def test_every_configuration_for_a_gpu_says_how_it_is_planned():
    on_cpus = {"real-0.5b", "real-135m"}
    assert {path.stem for path in CONFIGS.glob("*.yaml")} - {path.stem for path in PLANNED} == on_cpus


@pytest.mark.parametrize("path", PLANNED, ids=lambda path: path.stem)
def test_the_command_in_a_configurations_comment_says_that_it_fits(path: Path):
    comment = "".join(line.lstrip("#").rstrip(" \\\n") for line in path.open() if line.startswith("#   "))
    words = comment[comment.index("cooper plan") :].split()[2:]
    assert words[0] == f"configs/{path.name}"
    planned = _command(str(path), *words[1:])
    assert planned.exit_code == 0, planned.output
    if "--devices" not in words:  # the layout is the engine's
        assert planned.output.startswith(f"{layout_of(load_config(path).engine).devices} x h100")


def _command(*words: str):
    return CliRunner().invoke(commands, ["plan", *words])


def test_the_command_says_what_does_not_fit_and_what_would(tmp_path):
    words = (str(CONFIGS / "7b-8gpu.yaml"), "--sampler-devices", "0", "--reward-model-like", "Qwen/Qwen2.5-1.5B")
    one, eight = (_command(*words, "--device", "h100", "--devices", count) for count in ("1", "8"))
    assert (one.exit_code, eight.exit_code) == (1, 0)
    assert "IT DOES NOT FIT: policy" in one.output
    assert "It fits with 'policy.lora={rank: 32}'\n" in one.output
    assert "15.2" in eight.output
    assert "It fits as planned. The run itself takes 8 devices, and no engine has this layout" in eight.output


def test_devices_that_the_run_would_not_use_are_said_with_the_engine_that_uses_them():
    words = (str(CONFIGS / "own-data.yaml"), "policy.model=Qwen/Qwen2.5-1.5B", "--device", "h100")
    words += ("--reward-model-like", "Qwen/Qwen2.5-1.5B")
    one, eight = _command(*words), _command(*words, "--devices", "8")
    assert one.output.endswith("\n\nIt fits.\n")
    engine = "engine={kind: cluster, policy_ranks: 8}"
    expected = f"It fits as planned. The run itself takes 1 device; to run as planned, add '{engine}'.\n"
    assert eight.output.endswith(f"\n\n{expected}")
    assert _command(words[0], engine, *words[1:]).output == eight.output.replace(expected, "It fits.\n")


@pytest.mark.parametrize("layout", [Layout(1), Layout(4, 2), Layout(5, 0, 4, 2, "vllm", reserved=0.0)])
def test_an_engine_that_is_advised_has_the_layout(layout):
    engine = engine_of(layout)
    assert engine is not None
    assert layout_of(load_config(CONFIGS / "7b-8gpu.yaml", [engine]).engine) == layout


def test_advice_is_the_fewest_changes_that_help():
    setup = _setup("Qwen/Qwen2.5-7B", "Qwen/Qwen2.5-1.5B", policy=8)
    tight = replace(H100, memory=40 * GB)
    assert fits(setup, replace(H100, memory=45 * GB))
    assert advice(setup, tight) == [
        "policy.optimizer_offload=true reward_model.optimizer_offload=true",
        "--tensor-parallel 2",
        "'policy.lora={rank: 32}'",
        "--devices 16",
    ]
    assert advice(setup, replace(H100, memory=1 * GB)) == []


def test_layouts_come_from_the_engine():
    assert layout_of(load_config(CONFIGS / "own-data.yaml").engine) == Layout(policy=1)
    assert layout_of(load_config(CONFIGS / "7b-8gpu.yaml").engine) == Layout(5, sampler=3, sampler_kind="vllm")
    assert layout_of(load_config(CONFIGS / "7b-lora.yaml").engine) == Layout(
        1, sampler_kind="vllm", reserved=0.4, asleep=True
    )
    assert layout_of(SimpleNamespace(policy_ranks=6, reward_model_ranks=2)) == Layout(policy=6, reward_model=2)
    samplers = {"kind": "vllm", "engines": 2, "tensor_parallel": 4}
    engine = ClusterEngine.model_validate({"policy_ranks": 32, "reward_model_ranks": 8, "samplers": samplers})
    assert layout_of(engine) == Layout(32, 8, sampler=8, tensor_parallel=4, sampler_kind="vllm")


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ({"policy": 0}, "at least one device"),
        ({"policy": 6, "tensor_parallel": 4}, "does not divide the 6 sampling devices"),
    ],
)
def test_layouts_that_cannot_be_are_refused(layout, words):
    with pytest.raises(InputError, match=words):
        Layout(**layout)


def test_models_and_devices_that_are_not_known_are_refused(tmp_path):
    config = load_config(CONFIGS / "7b-8gpu.yaml")
    with pytest.raises(InputError, match="does not divide the 28 heads"):
        setup_of(config, Layout(8, tensor_parallel=8), 150, None, "Qwen/Qwen2.5-1.5B")
    with pytest.raises(InputError, match="--reward-model-like"):
        setup_of(config, Layout(8), 150, None)
    with pytest.raises(InputError, match="not in the table"):
        device_called("h1000")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "no such model"}))
    with pytest.raises(InputError, match="cannot be read as a model's config"):
        shape_of(str(tmp_path))


def test_lora_and_a_missing_reference_take_memory_off():
    config = load_config(CONFIGS / "qwen2.5-1.5b-paper.yaml")
    judge = "Qwen/Qwen2.5-Math-1.5B-Instruct"
    whole = setup_of(config, Layout(1), 150, None, judge)
    adapted = config.model_copy(update={"policy": config.policy.model_copy(update={"lora": LoraConfig()})})
    light = setup_of(adapted, Layout(1), 150, None, judge)
    before, after = (shares(setup, H100)[0].held for setup in (whole, light))
    assert "reference" in before
    assert "reference" not in after
    embeddings = 151_936 * 1536  # shared with the head, so float32 like the norms; linear layers are in bfloat16
    frozen = 2 * (1.5437 * GB - embeddings) + 4 * embeddings
    assert after["policy"] == pytest.approx(frozen + 16 * light.policy.shape.adapter_params, rel=1e-3)


def test_frozen_weights_count_as_they_are_held(tiny_models):
    """By the function that halves them: on a GPU in bfloat16, not in float32, on a CPU, or divided over processes."""
    folder = str(tiny_models / "policy")
    model = load_policy(folder).requires_grad_(False)
    single = sum(p.nbytes for p in model.parameters())
    halve_frozen(model)
    half = sum(p.nbytes for p in model.parameters())
    assert half < 0.75 * single
    learning = Learning(shape_of(folder), 64, checkpointing=False, bfloat16=True, trains=False)
    assert frozen(learning, H100) == half
    assert frozen(learning, H100, sharded=True) == single
    assert frozen(learning, replace(H100, cpu=True)) == single
    assert frozen(replace(learning, bfloat16=False), H100) == single


def test_a_chunk_of_logits_is_as_large_as_the_device_makes_it():
    for device, cpu in (("cuda", False), ("cpu", True)):
        assert logits(replace(H100, cpu=cpu)) == 3 * 4 * largest_chunk(torch.device(device))


def test_moments_off_the_device_leave_room_but_in_their_own_update():
    setup = _setup("Qwen/Qwen2.5-7B", "Qwen/Qwen2.5-1.5B", policy=8)
    config = replace(setup.policy, offload=True)
    before, after = (shares(replace(setup, policy=one), H100)[0].held for one in (setup.policy, config))
    assert before["policy"] - after["policy"] == 8 * setup.policy.shape.params / 8
    assert after["activations"] >= 8 * setup.policy.shape.params / 8
    assert sum(after.values()) < sum(before.values())


def test_vllm_beside_a_learner_holds_its_share_and_asleep_only_where_it_is_larger():
    config = load_config(CONFIGS / "qwen2.5-1.5b-paper.yaml")
    layout = replace(layout_of(config.engine), reserved=0.12, asleep=False)
    judge = "Qwen/Qwen2.5-Math-1.5B-Instruct"
    awake, asleep = (
        shares(setup_of(config, replace(layout, asleep=sleeps), 150, None, judge), H100)[0] for sleeps in (False, True)
    )
    assert awake.held["vLLM, reserved"] == 0.12 * H100.memory
    assert asleep.held["vLLM (activations are less)"] == 0.12 * H100.memory
    assert awake.total - asleep.total == pytest.approx(awake.held["activations"])


def test_the_whole_run_has_its_disk_and_its_assistant():
    config = load_config(CONFIGS / "qwen2.5-1.5b-paper.yaml")
    setup = setup_of(config, layout_of(config.engine), 150, None, "Qwen/Qwen2.5-Math-1.5B-Instruct")
    assert setup.reward_model is not None
    assert checkpoint_bytes(setup) / GB == pytest.approx(12 * (1.5437 + setup.reward_model.shape.params / GB), rel=0.01)
    said = report(setup, H100, config)
    assert "for up to 2 checkpoints" in said
    assert "The assistant, Qwen/Qwen2.5-7B-Instruct, is not among these devices" in said


def test_an_advice_fits_as_it_is_printed():
    said = _command(str(CONFIGS / "own-data.yaml"), *OWN_DATA, "policy.gradient_checkpointing=false")
    assert said.exit_code == 1
    words = next(line for line in said.output.splitlines() if "It fits with" in line).split("with ")[1].split()
    assert _command(str(CONFIGS / "own-data.yaml"), *OWN_DATA, *words).exit_code == 0  # as it was printed


OWN_DATA = ("policy.model=Qwen/Qwen2.5-1.5B", "--device", "h100", "--reward-model-like", "Qwen/Qwen2.5-1.5B")


@pytest.mark.parametrize("reward_model", [False, True])
def test_frozen_layers_are_held_without_states(tiny_models, reward_model):
    folder = tiny_models / ("reward_model" if reward_model else "policy")
    upper = shape_of(str(folder), reward_model, frozen_layers=1)
    model = (load_reward_model if reward_model else load_policy)(str(folder))
    freeze_layers(model, 1)
    learning = Learning(upper, 2048, checkpointing=False, bfloat16=False)
    assert trained(learning) == sum(one.numel() for one in model.parameters() if one.requires_grad)
    assert states(learning, 1, H100, sharded=False) == 4 * upper.params + 12 * trained(learning)
