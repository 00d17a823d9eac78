"""Bytes on each device, as pure functions of shapes and layout."""

from dataclasses import dataclass

from cooper_lab.plan.devices import USABLE, Device
from cooper_lab.plan.setup import Learning, Setup

STATES, MOMENTS = 16, 8
"""Bytes a trained parameter takes (float32 weight, gradient and AdamW's two running means), and those of the running
means alone."""
SINGLE, HALF = 4, 2
"""Bytes a parameter in float32 and in bfloat16."""
FOUR_BIT = 0.5625
"""Bytes a parameter in 4-bit NormalFloat: half a byte, and a float32 scale for every 64 (QLoRA, arXiv 2305.14314).
Embeddings, which stay float32, are counted with it."""
LAYER_TENSORS = 26
"""Hidden-sized tensors that one layer keeps for its backward pass: inputs, norms, queries, keys, values, attention,
and an MLP about five times as wide, with its gate (counted for Qwen 2)."""
CHUNK, CHUNK_OF_CPU = 2**27, 2**24
"""Logits at a time (`largest_chunk`, engines/local/numerics.py)."""


@dataclass(frozen=True)
class Share:
    """The memory of one device of a role: bytes by name, and whether they fit."""

    role: str
    count: int
    held: dict[str, float]
    usable: float

    @property
    def total(self) -> float:
        """Memory of the device in bytes."""
        return sum(self.held.values())

    @property
    def left(self) -> float:
        """Free bytes; negative if the device does not hold everything."""
        return self.usable - self.total


def frozen(learning: Learning, device: Device, sharded: bool = False) -> float:
    """Bytes of the weights of a model that is not trained. On a GPU in bfloat16 its linear layers are held in bfloat16,
    unless they are sharded."""
    params, linear = learning.shape.params, learning.shape.linear_params
    if learning.four_bit:
        return FOUR_BIT * params
    return SINGLE * params - (0 if device.cpu or sharded or not learning.bfloat16 else (SINGLE - HALF) * linear)


def trained(learning: Learning) -> int:
    """Parameters."""
    if not learning.trains:
        return 0
    shape = learning.shape
    return shape.adapter_params if learning.adapted else shape.params - shape.frozen_params


def states(learning: Learning, devices: int, device: Device, sharded: bool) -> float:
    """Bytes of weights, gradients and AdamW's running means on each of `devices`. Running means that are kept elsewhere
    count in `activations`, during the update."""
    each = STATES - MOMENTS if learning.offload else STATES
    whole = learning.adapted or not learning.trains
    beside = frozen(learning, device, sharded) if whole else SINGLE * learning.shape.frozen_params
    return (beside + each * trained(learning)) / devices


def activations(learning: Learning, devices: int, device: Device, sharded: bool) -> float:
    """Bytes of a micro-batch's activations: the inputs of all layers and everything of one layer, or everything of all
    layers without checkpointing. If running means come to the device for the update, the larger of the two counts.

    Sharded learners compute in bfloat16 and gather two layers at a time. On one device autocast keeps the stream
    between layers in float32, and a bfloat16 copy of the trained weights while a pass runs.
    """
    shape, tokens = learning.shape, learning.tokens_per_microbatch
    passed = shape.layers - shape.frozen_layers  # backward
    size = HALF if learning.bfloat16 else SINGLE
    layer = tokens * shape.hidden * LAYER_TENSORS * size
    if not learning.trains:
        kept = layer
    elif learning.checkpointing:
        kept = passed * tokens * shape.hidden * (size if sharded else 4) + layer
    else:
        kept = max(1, passed) * layer
    copied = shape.params if device.cpu else trained(learning)
    copies = 2 * size * shape.params / shape.layers if sharded else (HALF * copied if learning.bfloat16 else 0)
    return max(kept + copies, MOMENTS * trained(learning) / devices if learning.offload else 0)


def logits(device: Device) -> float:
    """Bytes of a chunk of logits, its softmax and its gradient, in float32."""
    return 3 * SINGLE * (CHUNK_OF_CPU if device.cpu else CHUNK)


def kv_bytes_a_token(learning: Learning) -> int:
    """Bytes that a token takes in the key-value cache of all layers."""
    return learning.shape.layers * learning.shape.kv_size * (2 if learning.bfloat16 else 4)


def shares(setup: Setup, device: Device) -> list[Share]:
    """The memory of every kind of device in the layout at its fullest moment."""
    layout, usable = setup.layout, device.memory * USABLE
    learner = _policy(setup, device)
    reward = _reward_model(setup, device)
    sampler = sampler_weights(setup, device)
    held_parts = []
    if not layout.reward_model:
        # Only one model computes at a time, so the larger of their two temporary needs counts.
        learner = _together(learner, reward)
    if layout.reserved:
        learner = _with_reserved(learner, layout.reserved * device.memory, layout.asleep)
    elif not layout.sampler:
        learner = _with_sampler(learner, sampler, setup, device)
    held_parts.append(Share("policy", layout.policy, learner, usable))
    if layout.reward_model:
        held_parts.append(Share("reward model", layout.reward_model, reward, usable))
    if layout.sampler:
        held_parts.append(Share("sampler", layout.sampler, {"sampler's weights": sampler, **_cache(setup)}, usable))
    return held_parts


def sampler_weights(setup: Setup, device: Device) -> float:
    """Bytes of the sampler's own copy of the weights on each of its devices. The native sampler needs none on a
    learner's only device."""
    layout = setup.layout
    if layout.sampler_kind == "vllm":
        return HALF * setup.policy.shape.params / layout.tensor_parallel
    return frozen(setup.policy, device) if layout.sharded else 0


def rows_at_once(setup: Setup) -> int:
    """Number of completions that one native sampler samples together."""
    samples = -(-setup.work.samples // setup.layout.sampler_devices)
    return min(samples, setup.work.rows or samples)


def kv_room(setup: Setup, device: Device) -> float:
    """Number of tokens that fit into the caches of all vLLM samplers, in the rest of their memory."""
    if setup.layout.reserved:
        room = max(0.0, setup.layout.reserved * device.memory - sampler_weights(setup, device))
    else:
        room = max(0.0, shares(setup, device)[-1 if setup.layout.sampler else 0].left)
    whole = 2 * setup.policy.shape.layers * setup.policy.shape.kv_size  # bfloat16
    return room * setup.layout.sampler_devices / whole


def _policy(setup: Setup, device: Device) -> dict[str, float]:
    policy, where = setup.policy, (setup.layout.policy, device, setup.layout.sharded)
    held = {"policy": states(policy, *where)}
    if policy.reference:
        held["reference"] = frozen(policy, device, setup.layout.sharded) / setup.layout.policy
    return held | {"activations": activations(policy, *where) + logits(device)}


def _reward_model(setup: Setup, device: Device) -> dict[str, float]:
    model, where = setup.reward_model, (setup.layout.reward_model_devices, device, setup.layout.sharded)
    return {} if model is None else {"reward model": states(model, *where), "activations": activations(model, *where)}


def _together(first: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    most = max(held.get("activations", 0.0) for held in (first, other))
    states = {name: held for name, held in (first | other).items() if name != "activations"}
    return states | {"activations": most}


def _with_reserved(learner: dict[str, float], reserved: float, asleep: bool) -> dict[str, float]:
    """The learner's memory with vLLM beside it. If vLLM sleeps while the learner works, the larger of its share and the
    learner's activations counts."""
    if not asleep:
        return learner | {"vLLM, reserved": reserved}
    if reserved <= learner["activations"]:
        return learner
    states = {name: held for name, held in learner.items() if name != "activations"}
    return states | {"vLLM (activations are less)": reserved}


def _with_sampler(learner: dict[str, float], weights: float, setup: Setup, device: Device) -> dict[str, float]:
    """The learner's memory with the native sampler beside it. The sampler's cache, and on a CPU the packed copy of the
    weights that it samples with, never exist at the same time as the learner's activations, so the larger counts.
    """
    cache = _cache(setup).get("key-value cache", 0.0)
    if device.cpu and setup.layout.sampler_kind == "native":
        cache += SINGLE * setup.policy.shape.params
    held = learner | ({"sampler's weights": weights} if weights else {})
    if cache > learner["activations"]:
        held["cache (activations are less)"] = cache
        del held["activations"]
    return held


def _cache(setup: Setup) -> dict[str, float]:
    """Bytes of the native sampler's cache. vLLM fills the memory that is left: see `kv_room`."""
    if setup.layout.sampler_kind == "vllm":
        return {}
    length = setup.work.prompt + setup.work.completion
    return {"key-value cache": float(rows_at_once(setup) * length * kv_bytes_a_token(setup.policy))}


def fits(setup: Setup, device: Device) -> bool:
    """Whether every device holds its share, and vLLM at least one completion on each engine."""
    if any(share.left < 0 for share in shares(setup, device)):
        return False
    engines = setup.layout.sampler_devices // setup.layout.tensor_parallel
    needed = engines * (setup.work.prompt + setup.work.completion)
    return setup.layout.sampler_kind == "native" or kv_room(setup, device) >= needed
