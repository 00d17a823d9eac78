"""A step to be planned: models, its work, and which role runs on which devices."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from cooper_lab.plan.shapes import Shape, shape_of
from cooper_rl import InputError, LearnerConfig, RunConfig
from cooper_rl.engines.losses.policy import pulls_in

SamplerKind = Literal["native", "vllm"]


@dataclass(frozen=True)
class Layout:
    """Devices of each role. A role with 0 devices of its own shares the policy's."""

    policy: int
    reward_model: int = 0
    sampler: int = 0
    tensor_parallel: int = 1
    sampler_kind: SamplerKind = "native"
    reserved: float = 0.0
    """Share of a learner's memory that vLLM holds for itself, its weights included; 0: what is left."""
    asleep: bool = False
    """Whether vLLM gives that memory back while the learners work."""

    def __post_init__(self) -> None:
        if self.policy < 1:
            raise InputError("a plan needs at least one device for the policy")
        if self.sampler_devices % self.tensor_parallel:
            raise InputError(
                f"--tensor-parallel {self.tensor_parallel} does not divide the {self.sampler_devices} sampling devices"
            )

    @property
    def reward_model_devices(self) -> int:
        """Number of devices over which the reward model is sharded."""
        return self.reward_model or self.policy

    @property
    def sampler_devices(self) -> int:
        """Number of devices that sample."""
        return self.sampler or self.policy

    @property
    def sharded(self) -> bool:
        """Whether learners are divided over processes, which hold frozen weights in float32."""
        return self.devices > 1

    @property
    def devices(self) -> int:
        """Number of all devices."""
        return self.policy + self.reward_model + self.sampler


@dataclass(frozen=True)
class Learning:
    """How one model is held and trained."""

    shape: Shape
    tokens_per_microbatch: int
    checkpointing: bool
    bfloat16: bool
    trains: bool = True
    reference: bool = False
    """Whether a frozen copy is held besides the model."""
    four_bit: bool = False
    offload: bool = False
    """Whether AdamW's moments are on the device during its own update only."""

    @property
    def adapted(self) -> bool:
        """Whether an adapter is trained instead of the weights."""
        return self.shape.adapter_params > 0


@dataclass(frozen=True)
class Work:
    """The work of a step, in sequences and tokens."""

    samples: int
    prompt: int
    completion: int
    rows: int = 0
    """Most completions that a device samples at once; 0 is all of its own."""

    @property
    def tokens(self) -> int:
        """Prompts and completions of all samples."""
        return self.samples * (self.prompt + self.completion)


@dataclass(frozen=True)
class Setup:
    """A step to be planned. Without `reward_model` none is used."""

    policy: Learning
    reward_model: Learning | None
    work: Work
    layout: Layout


def layout_of(engine: Any) -> Layout:
    """The layout of a configuration's engine: one device, or as many as the engine has processes (`policy_ranks`,
    `samplers`)."""
    ranks, reward_model = getattr(engine, "policy_ranks", 1), getattr(engine, "reward_model_ranks", 0)
    samplers: Any = getattr(engine, "samplers", None)
    if getattr(engine, "kind", "") == "vllm":
        asleep = getattr(engine, "sleep", False) is not False  # null: where the two share a device
        layout = Layout(ranks, tensor_parallel=engine.tensor_parallel, sampler_kind="vllm")
        return replace(layout, reserved=engine.gpu_memory_utilization, asleep=asleep)
    if getattr(samplers, "kind", "native") == "native":
        return Layout(policy=ranks, reward_model=reward_model)
    tensor_parallel = samplers.tensor_parallel
    devices = samplers.engines * tensor_parallel
    return Layout(ranks, reward_model, devices, tensor_parallel, sampler_kind="vllm")


def engine_of(layout: Layout) -> str | None:
    """The setting of an engine with this layout; None if there is none."""
    if layout.devices == 1:
        return f"engine={{kind: {'vllm' if layout.sampler_kind == 'vllm' else 'local'}}}"
    if (layout.sampler_kind == "vllm") != bool(layout.sampler):
        return None
    ranks = {"policy_ranks": layout.policy, "reward_model_ranks": layout.reward_model}
    settings = ["kind: cluster", *(f"{name}: {count}" for name, count in ranks.items() if count)]
    if layout.sampler:
        engines = layout.sampler // layout.tensor_parallel
        settings.append(f"samplers: {{kind: vllm, engines: {engines}, tensor_parallel: {layout.tensor_parallel}}}")
    return f"engine={{{', '.join(settings)}}}"


def setup_of(
    config: RunConfig, layout: Layout, prompt: int, completion: int | None, stands_for: str = "", cpu: bool = False
) -> Setup:
    """The step of a configuration. `completion` is the mean length, else the most that is allowed.

    `stands_for` is a model of the reward model's shape, for one that is not made yet; on a `cpu`, `autocast: auto` is
    float32. Raises InputError as `shape_of`, and for a model that cannot be divided as the layout says.
    """
    models = config.scorers
    pulls = pulls_in(config.algorithm.kl, "loss") or pulls_in(config.algorithm.kl, "reward")
    policy = learning(config.policy, reference=pulls and config.policy.lora is None, cpu=cpu)
    if policy.shape.heads % layout.tensor_parallel:
        raise InputError(
            f"--tensor-parallel {layout.tensor_parallel} does not divide the {policy.shape.heads} heads of "
            f"{policy.shape.name}"
        )
    length = min(completion or config.rollout.max_tokens, config.rollout.max_tokens)
    try:
        reward_model = learning(models[0], reward_model=True, stands_for=stands_for, cpu=cpu) if models else None
    except InputError as error:
        raise InputError(f"{error}; if it is not made yet, give one of its shape: --reward-model-like") from error
    samples = config.problems_per_step * config.rollout.n
    return Setup(policy, reward_model, Work(samples, prompt, length, config.rollout.max_rows), layout)


def learning(
    config: LearnerConfig, reference: bool = False, reward_model: bool = False, stands_for: str = "", cpu: bool = False
) -> Learning:
    """How a learner of these settings is held."""
    trains = not reward_model or bool(getattr(config, "learns", True))
    reward_model = reward_model and getattr(config, "kind", None) != "yes_no"  # that one is as large as a policy
    return Learning(
        shape=shape_of(
            config.model, reward_model, config.lora if trains else None, stands_for, config.frozen_layers * trains
        ),
        tokens_per_microbatch=config.tokens_per_microbatch,
        checkpointing=config.gradient_checkpointing,
        bfloat16=config.autocast == "bfloat16" or (config.autocast == "auto" and not cpu),
        trains=trains,
        reference=reference,
        four_bit=config.lora is not None and config.lora.load_in_4bit,
        offload=config.optimizer_offload and not cpu,
    )
