"""A step to be planned: models, its work, and which role runs on which devices."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from cooper_lab.plan.shapes import Shape, shape_of
from cooper_rl import InputError, LearnerConfig, PairFilterConfig, RunConfig
from cooper_rl.reward.cooptimization_config import LABELLED_PER_STEP

SamplerKind = Literal["native", "vllm"]
REFERENCE_TOKENS = 150
"""Tokens that a reward model reads besides question and completion: the reference answer and its frame. Assumed."""


@dataclass(frozen=True)
class Layout:
    """Devices of each role. A role with 0 devices of its own shares the policy's."""

    policy: int
    reward_model: int = 0
    sampler: int = 0
    tensor_parallel: int = 1
    sampler_kind: SamplerKind = "native"
    lag: int = 0
    """Steps that sampling runs ahead of learning; above 0 only with samplers of their own."""
    reserved: float = 0.0
    """Share of a learner's memory that vLLM holds for itself, its weights included; 0: what is left."""
    asleep: bool = False
    """Whether vLLM gives that memory back while the learners work."""
    adapter_alone: bool = True
    """Whether samplers are sent an adapter alone, where one is trained."""

    def __post_init__(self) -> None:
        if self.policy < 1:
            raise InputError("a plan needs at least one device for the policy")
        if self.sampler_devices % self.tensor_parallel:
            raise InputError(
                f"--tensor-parallel {self.tensor_parallel} does not divide the {self.sampler_devices} sampling devices"
            )
        if self.lag and not self.sampler:
            raise InputError("--lag 1 needs samplers on devices of their own; give --sampler-devices")

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
    fused_logprobs: bool = False

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
    reward_input: int
    pairs: int = 0
    """Pairs of the reward model's update, from all sources."""
    replayed: int = 0
    """Sequences added from the replay buffer and labelled data."""
    epochs: int = 1
    logprob_passes: int = 0
    """Forward passes over the samples before the update: old log-probabilities, the reference's."""
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
        reserved, alone = engine.gpu_memory_utilization, _sends_adapters(engine)
        return replace(layout, reserved=reserved, asleep=asleep, adapter_alone=alone)
    if getattr(samplers, "kind", "native") == "native":
        return Layout(policy=ranks, reward_model=reward_model)
    tensor_parallel = samplers.tensor_parallel
    devices = samplers.engines * tensor_parallel
    alone = _sends_adapters(samplers)
    return Layout(ranks, reward_model, devices, tensor_parallel, sampler_kind="vllm", adapter_alone=alone)


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


def _sends_adapters(vllm: Any) -> bool:
    return vllm.url is None


def setup_of(
    config: RunConfig, layout: Layout, prompt: int, completion: int | None, stands_for: str = "", cpu: bool = False
) -> Setup:
    """The step of a configuration. `completion` is the mean length, else the most that is allowed.

    `stands_for` is a model of the reward model's shape, for one that is not made yet; on a `cpu`, `autocast: auto` is
    float32. Raises InputError as `shape_of`, and for a model that cannot be divided as the layout says.
    """
    models = config.scorers
    policy = learning(config.policy, reference=_pulls(config) and config.policy.lora is None, cpu=cpu)
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
    limit = models[0].max_input_tokens if models else 0
    work = _work(config, prompt, length, reward_input=min(prompt + length + REFERENCE_TOKENS, limit))
    return Setup(policy, reward_model, work, layout)


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
        fused_logprobs=config.fused_logprobs,
    )


def _pulls(config: RunConfig) -> bool:
    return config.algorithm.pulls_in("loss") or config.algorithm.pulls_in("reward")


def _work(config: RunConfig, prompt: int, completion: int, reward_input: int) -> Work:
    cooptimization = config.cooptimization
    learns = config.learns
    sources = [part for part in cooptimization.pairs if not isinstance(part, PairFilterConfig)]
    pairs = sum(source.most_pairs(cooptimization.pairs_per_problem) for source in sources)
    labelled = LABELLED_PER_STEP if cooptimization.replay.labelled else 0
    return Work(
        samples=config.problems_per_step * config.rollout.n,
        prompt=prompt,
        completion=completion,
        reward_input=reward_input,
        pairs=config.problems_per_step * pairs if learns else 0,
        replayed=2 * cooptimization.replay.pairs_per_step + labelled if learns else 0,
        epochs=cooptimization.epochs,
        logprob_passes=config.algorithm.recompute_old_logprobs + _pulls(config),
        rows=config.rollout.max_rows,
    )
