"""Settings of one learner, and of how a sampler draws tokens."""

from importlib.util import find_spec
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from cooper_base.config.base import Config
from cooper_base.errors import MissingExtraError

StopReason = Literal["stop", "length"]


def _written_in_yaml(value: Any) -> Any:
    """YAML reads `off` as false and `on` as true."""
    if isinstance(value, bool):
        return "bfloat16" if value else "off"
    return "bfloat16" if value == "on" else value


Autocast = Annotated[Literal["auto", "off", "bfloat16"], BeforeValidator(_written_in_yaml)]
Attention = Literal["auto", "flex", "sdpa", "padded"]


class LoraConfig(Config):
    """LoRA (Hu et al. 2021, arXiv 2106.09685): weights stay as they are, and the product of two thin matrices, B A
    times `alpha / rank`, is trained beside each of them. B starts at zero, so training starts at the model itself.

    Every linear layer but the head gets an adapter, because attention alone learns less (Dettmers et al. 2023, arXiv
    2305.14314). There is no dropout: a policy's log-probabilities have to be those of the sampler. A reward model's
    head is trained whole. LoRA wants about ten times the learning rate of full training."""

    rank: int = Field(default=32, ge=1)
    """Columns of B and rows of A."""
    alpha: float = Field(default=64.0, gt=0)
    """The product is multiplied by `alpha / rank`."""
    load_in_4bit: bool = False
    """Hold the frozen weights in 4-bit NormalFloat (QLoRA, arXiv 2305.14314). Needs bitsandbytes on this device."""

    def check(self) -> None:
        """Raises MissingExtraError where a library that this needs is missing."""
        if find_spec("peft") is None:
            raise MissingExtraError("lora: needs peft (the extra `lora`): pip install peft")
        if self.load_in_4bit and find_spec("bitsandbytes") is None:
            raise MissingExtraError(
                "lora.load_in_4bit: needs bitsandbytes: pip install bitsandbytes, or set load_in_4bit: false"
            )


class LearnerConfig(Config):
    """How one model is trained. Trained weights and optimizer states are always float32; on a GPU that multiplies in
    bfloat16, linear layers that are not trained are held in bfloat16, which changes no result."""

    model: str
    """A model folder, or a name on the Hugging Face hub. The adapter in a folder is merged into its base."""
    lora: LoraConfig | None = None
    """Train a low-rank adapter beside frozen weights; null trains every weight. A frozen model has none."""
    frozen_layers: int = Field(default=0, ge=0)
    """Do not train the embeddings and this many of the lowest layers (nor a language model's head that shares the
    embeddings' weights). The backward pass ends above them, and they have neither gradients nor running means. With
    `lora`, their adapters stay at zero."""
    learning_rate: float = Field(default=1e-6, ge=0)
    """Peak learning rate, reached after the warm-up."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Decoupled weight decay (AdamW), on weights with two or more dimensions only."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Decay of AdamW's running means of the gradient and of its square."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """A gradient with a larger norm is scaled down to this norm."""
    warmup_steps: int = Field(default=0, ge=0)
    """Steps of the run, at its start, over which the learning rate rises linearly to its peak. A step counts once,
    however many updates it has (`algorithm.minibatches`, `cooptimization.epochs`)."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """Learning rate after the warm-up; `linear` and `cosine` fall to 0 at the end of the run."""
    tokens_per_microbatch: int = Field(default=8192, ge=1)
    """Most tokens, padding included, in one forward and backward pass. Affects memory and speed, not the gradient."""
    attention: Attention = "auto"
    """Kernel of attention over packed rows: PyTorch's FlexAttention (`flex`; on a CPU without training) or its SDPA
    (`sdpa`). `auto` takes on a GPU `flex` if it passes a short trial, else `sdpa`. Where the model's attention allows
    it, rows are packed: a beginning that several rows share is computed once, and nothing is padded. `padded` never
    packs and computes by SDPA; use it where packing is suspected of an error."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, about a third more time."""
    autocast: Autocast = "auto"
    """Precision of the matrix products: `off` is float32 (TF32 on a GPU); `auto` is `bfloat16` on a GPU that has it,
    elsewhere `off`. A CPU with bfloat16 instructions holds packed copies of the weights of linear layers: 4 bytes a
    weight, 2 for a model that is not trained."""
    optimizer_offload: bool = False
    """Keep AdamW's running means in the machine's memory between updates: 8 bytes a trained weight less on a GPU while
    anything else is computed there, for two copies of them in each update."""
    device: str = "auto"
    """`auto` takes the first of CUDA, Apple's MPS and the CPU that is available; or a torch device such as `cuda:1`."""

    def for_updates(self, per_step: int) -> Self:
        """The settings of a learner with so many updates `per_step`. A learner counts its warm-up in updates."""
        return self.model_copy(update={"warmup_steps": self.warmup_steps * per_step})


class YesNo(Config):
    """What a causal language model is asked as a reward model; `config.json` has it under `yes_no`. The score is
    (logit(yes) - logit(no)) / temperature of the token after the question."""

    yes: int = Field(ge=0)
    """Id of the token that accepts."""
    no: int = Field(ge=0)
    """Id of the token that rejects."""
    ask: str
    """The question, after the input's three fields."""
    temperature: float = Field(default=1.0, gt=0)
    """Makes sigmoid(score) a probability."""


class ScorerConfig(LearnerConfig):
    """A reward model: how it reads its input and how it scores."""

    kind: Literal["head", "yes_no"] | None = None
    """How it scores: by a `head` with one output, or as a language model that is asked whether the completion agrees
    with the reference (`yes_no`): logit(yes) - logit(no) of the next token. Null: what the folder was saved as."""
    ask: str | None = None
    """For `yes_no`: the question, after question, reference and completion, to which yes or no is the reply, in the
    first spelling in which both are one token. Null: a default in English. It is part of the user's message if the
    tokenizer has a chat template."""
    input: Literal["tagged", "chat", "chat_with_reference"] = "tagged"
    """What a model with a head reads. `tagged` is VerifyRM's format: question, reference answer and completion between
    tags. `chat` is for reward models that people publish: the question as the user's turn and the completion as the
    assistant's, in the model's own chat template, without the reference. `chat_with_reference` ends the user's turn
    with the reference answer, for a model that learns to compare."""
    max_input_tokens: int = Field(default=2048, ge=16)
    """Maximum length of an input in tokens. Longer inputs lose the middle of the completion, never its end. Use the
    same limit for training and scoring."""

    @property
    def reads_reference(self) -> bool:
        """Whether the reference answer is part of the input."""
        return self.input != "chat"

    @model_validator(mode="after")
    def _asks_a_language_model(self) -> Self:
        if self.input != "tagged" and self.kind == "yes_no":
            raise ValueError(
                f"input: {self.input} is for a model with a head; kind: yes_no asks in a chat of its own, so set "
                "input: tagged"
            )
        if self.ask is not None and self.kind != "yes_no":
            raise ValueError("ask: is for a language model that is asked; set kind: yes_no")
        return self


class SamplingParams(Config):
    """How tokens are drawn. The defaults sample from the model's own distribution."""

    temperature: float = Field(default=1.0, ge=0)
    """Divides the logits; 0 always takes the most likely token. Learner and reference policy compute log-probabilities
    at the `rollout`'s temperature too: ratios, gradient, KL term and entropy are those of the distribution that is
    sampled."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Keep the smallest set of most likely tokens whose total probability reaches this."""
    top_k: int = Field(default=0, ge=0)
    """Keep this many most likely tokens; 0 keeps all."""
    max_tokens: int = Field(default=512, ge=1)
    """Longest completion. One that reaches this many tokens ends with the stop reason `length`."""
    min_tokens: int = Field(default=0, ge=0)
    """No stop token is drawn before this many tokens. Stop strings still end a completion."""
    stop: tuple[str, ...] = ()
    """A completion ends before the first of these strings."""
    stop_token_ids: tuple[int, ...] = ()
    """A completion ends with the first of these tokens or of the model's own end-of-sequence tokens."""
    thought: tuple[str, str] | None = None
    """The marks between which the model thinks before it replies, such as `["<scratch>", "</scratch>"]`. Null takes
    those of the common model families and those that the chat template names. Only the reply counts as an answer."""

    @model_validator(mode="after")
    def _lengths_agree(self) -> Self:
        if self.min_tokens > self.max_tokens:
            raise ValueError(f"min_tokens: {self.min_tokens} exceeds max_tokens: {self.max_tokens}")
        return self

    @property
    def truncations(self) -> list[str]:
        """The settings under which some tokens cannot be drawn at all, as "name: value"."""
        values = self.model_dump(include={"top_p", "top_k", "min_tokens"}, exclude_defaults=True)
        return [f"{name}: {value}" for name, value in values.items()]


class RolloutConfig(SamplingParams):
    """How the groups of a training step are sampled."""

    n: int = Field(default=8, ge=1)
    """Completions per problem."""
    max_rows: int = Field(default=0, ge=0)
    """Largest number of completions sampled at once; 0 samples the whole step together. Where the engine can, others
    enter as completions end."""
    resample: int = Field(default=0, ge=0)
    """Dynamic sampling (DAPO, arXiv 2503.14476): groups that teach nothing, because all their rewards are the same, are
    replaced by groups of other problems, drawn at most this many times a step. Groups that are still missing then
    stay as they were. The reward model learns from all groups that were drawn."""
    lag: int = Field(default=0, ge=0, le=1)
    """Updates of the policy between drawing completions and learning from them. At 1 the engine draws for the next step
    while this one learns, which saves time if it has devices of its own. Importance sampling, which is on then,
    corrects for the difference."""
    environment: str | None = Field(default=None, pattern=r"^[\w.]+:\w+$")
    """`package.module:Class` of an environment by TRL's contract `environment_factory`: its public methods are tools.
    `max_tokens` then bounds all turns together, with what the tools answer; `min_tokens` is of the first turn."""
    max_turns: int = Field(default=8, ge=1)
    """Most turns of the policy in an environment. A rollout that calls a tool in the last one counts as cut off."""
    tool_syntax: str | None = Field(default=None, pattern=r"^[\w.]+:\w+$")
    """`package.module:Class` that reads calls and writes results in the policy's own syntax. By default the tokenizer's
    chat template does; without one, Hermes tags."""
    solved_at: float | None = None
    """An environment's `get_reward()` of this or more is the verdict `correct`, less is `wrong`: for problems of the
    rule `outside`. Null gives no verdict, for rewards by degrees, which `rewards: [{kind: environment}]` pays as they
    are. On problems of other rules the rule judges the final reply."""
