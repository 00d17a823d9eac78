"""The learners of this process, for the policy and the reward model. A checkpoint is a Hugging Face folder with a
folder `trainer_state`: counters, and AdamW's moments by parameter name, in one file for each process that held rows.
"""

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cooper_base.errors import InputError
from cooper_base.files.durable import read_fields, write_text
from cooper_base.progress import BrokenOff, tell
from cooper_rl.engines.base import Learner, Lengths, Metrics, PerToken, PolicyBatch, PolicyLearner
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.cpu import drop_decoder, use_fast_linear
from cooper_rl.engines.local import adapter, packing
from cooper_rl.engines.local.adapter import adapter_off
from cooper_rl.engines.local.attention import Kernel, choose_kernel, enable_packing, packed_hidden_states
from cooper_rl.engines.local.device import keep_freed_memory, resolve_device
from cooper_rl.engines.local.logprobs import check_prompts, gather_logprobs, token_logprobs
from cooper_rl.engines.local.models import disk_errors, load_to_train
from cooper_rl.engines.local.numerics import allow_tf32, exact_float32, halve_frozen, in_bfloat16, largest_chunk
from cooper_rl.engines.local.optimizer import fetch_moments, learning_rate_factor, offload_moments, restore_moments
from cooper_rl.engines.local.packing import length_mask
from cooper_rl.engines.losses.policy import PolicyLossInputs, PolicyLossOutputs, PolicyObjective, policy_loss
from cooper_rl.engines.model_folder import ADAPTER_WEIGHTS
from cooper_rl.records import Column, offsets_of

logger = logging.getLogger(__name__)

_FOLDER = "trainer_state"
_COUNTERS = ("steps", "skipped_updates", "total_steps")


class TorchLearner(Learner):
    """A Hugging Face model trained in this process.

    The model stays in evaluation mode, even in training: dropout would make the learner's log-probabilities differ from
    the sampler's, on whose ratio the losses are built. With `config.lora` only a low-rank adapter is trained and saved.

    The optimizer is made at the first `optim_step`, so a learner that only scores costs no more than its model.
    `steps` counts all calls of `optim_step` and drives the schedule, so that step t of a run has the same learning rate
    whatever happened before; AdamW's own bias correction counts the applied updates only.
    """

    scores: ClassVar[bool] = False

    @classmethod
    def from_config(
        cls, config: LearnerConfig, total_steps: int, trainable: bool = True, new_head_seed: int | None = None
    ) -> Self:
        """Load `config.model` and its tokenizer, as `load_to_train` does."""
        model, tokenizer = load_to_train(config, cls.scores, new_head_seed)
        return cls(model, config, total_steps, tokenizer, trainable)

    def __init__(
        self,
        model: PreTrainedModel,
        config: LearnerConfig,
        total_steps: int,
        tokenizer: PreTrainedTokenizerBase | None = None,
        trainable: bool = True,
    ):
        self.device = resolve_device(config.device)
        lora = config.lora if trainable else None
        self.base_fingerprint = None if lora is None else adapter.add_adapter(model, lora, config.model)
        """None without an adapter."""
        self.model: PreTrainedModel = model.to(self.device).eval()  # pyright: ignore[reportArgumentType]
        self.tokenizer, self.config, self.trainable = tokenizer, config, trainable
        self.total_steps, self.steps, self.skipped_updates = total_steps, 0, 0
        self.optimizer: torch.optim.AdamW | None = None
        self.losses_finite = torch.tensor(True, device=self.device)
        self.run: Callable[..., Any] = lambda function, *arguments: function(*arguments)
        """Runs a pass through the model. A sharded model replaces this, because it must know when a pass begins and
        ends."""
        if self.base_fingerprint is None:
            self.model.requires_grad_(trainable)
        if self.device.type == "cpu":
            keep_freed_memory()
            use_fast_linear(self.model)
        self._packs = config.attention != "padded" and enable_packing(self.model)
        if trainable and config.gradient_checkpointing:
            _enable_checkpointing(self.model)
        self._plain_head = self._has_plain_head()
        self.settle(config, self.device)
        if self.bfloat16 and self.device.type == "cuda":
            halve_frozen(self.model, keep=self.model.get_output_embeddings() if self.scores else None)
        if trainable:
            freeze_layers(self.model, config.frozen_layers)  # after `halve_frozen`: their weights are saved too

    def settle(self, config: LearnerConfig, device: torch.device) -> None:
        """Choose for this device what `config` leaves open. Raises InputError for attention that cannot run here."""
        self.config, self.device = config, device
        self.bfloat16 = in_bfloat16(config.autocast, device)
        self.attention: Kernel = "sdpa"
        if self._packs and self._plain_head:
            how = (device, self.bfloat16, self.trainable)
            self.attention = choose_kernel(config.attention, self.model.config, *how)
        elif config.attention == "flex":
            raise InputError(
                "attention: flex takes causal models with full attention and a plain head, and not this "
                f"{type(self.model).__name__}; leave out attention"
            )
        allow_tf32(device)

    def describe(self) -> str:
        """What was chosen for the device, as text for the log."""
        gpu = f" ({torch.cuda.get_device_name(self.device)})" if self.device.type == "cuda" else ""
        products = "bfloat16" if self.bfloat16 else "TF32" if gpu else "float32"
        packed = "over packed rows" if self._packs and self._plain_head else "over padded rows"
        return f"{self.device}{gpu}, products in {products}, attention {self.attention} {packed}"

    def _has_plain_head(self) -> bool:
        """Whether the logits are just a linear head applied to the last hidden states."""
        # Some models scale or cap their logits (Gemma 2, Granite, Cohere).
        head: Any = self.model.get_output_embeddings()
        return isinstance(head, nn.Linear) and self._agrees(head, range(min(4, head.weight.shape[0])), slice(None))

    @torch.no_grad()
    def _agrees(self, head: Any, tokens: Sequence[int], at: slice | int) -> bool:
        """Whether applying this head gives the model's logits, found by a trial: that is safer than a list of
        models."""
        if not isinstance(head, nn.Linear):
            return False
        tokens_1T = torch.tensor([tokens], device=self.model.device)
        with exact_float32():
            hidden_1TH = self.model.base_model(tokens_1T, use_cache=False).last_hidden_state
            logits = self.model(tokens_1T, use_cache=False).logits
            return torch.allclose(head(hidden_1TH[:, at]), logits, rtol=1e-4, atol=1e-4)

    @property
    def learning_rate(self) -> float:
        c = self.config
        return c.learning_rate * learning_rate_factor(self.steps, c.warmup_steps, self.total_steps, c.schedule)

    def set_learning_rate(self, peak: float) -> None:
        """See `Learner`: set another peak learning rate in the same schedule."""
        self.config = self.config.model_copy(update={"learning_rate": peak})

    def optim_step(self) -> Metrics:
        """As in `Learner`. The update is also skipped if a loss since the last call was not finite."""
        optimizer, learning_rate = self._get_optimizer(), self.learning_rate
        for group in optimizer.param_groups:
            group["lr"] = learning_rate
        grad_norm = adapter.whole(nn.utils.clip_grad_norm_(self.model.parameters(), self.config.max_grad_norm))
        if bool(torch.isfinite(grad_norm) & self.losses_finite):
            if self.config.optimizer_offload:
                fetch_moments(optimizer)
            optimizer.step()
            if self.config.optimizer_offload:
                offload_moments(optimizer)
        else:
            self.skipped_updates += 1
            logger.warning("update %d skipped: gradient norm %s", self.steps, grad_norm.item())
        self.steps += 1
        self._clear_gradients()
        skipped = float(self.skipped_updates)
        return {"grad_norm": grad_norm.item(), "learning_rate": learning_rate, "skipped_updates": skipped}

    def save(self, directory: Path, weights: dict[str, Tensor] | None = None, rank: int = 0, ranks: int = 1) -> None:
        """Write a plain Hugging Face folder, or with LoRA peft's with the adapter alone, and `trainer_state/` in it.

        Gradients accumulated since the last `optim_step` are not saved. Raises OSError where the disk is full. Of a
        sharded model all processes take part, each with its rows of the moments, and the first has the whole `weights`.
        """
        counters = {name: getattr(self, name) for name in _COUNTERS}
        with disk_errors(directory):
            if self.base_fingerprint is not None:
                adapter.save_adapter(directory, self.model, self.base_fingerprint, writes=rank == 0)
            elif rank == 0:
                self.model.save_pretrained(directory, state_dict=weights)
            if rank == 0 and self.tokenizer is not None:
                self.tokenizer.save_pretrained(directory)
            folder = directory / _FOLDER
            folder.mkdir(parents=True, exist_ok=True)
            moments = {
                f"{name}:{key}": adapter.own(value).contiguous()
                for name, parameter in self.model.named_parameters()
                for key, value in (self.optimizer.state.get(parameter, {}) if self.optimizer else {}).items()
            }
            part = f"-{rank + 1:05d}-of-{ranks:05d}" if ranks > 1 else ""
            save_file(moments, folder / f"optimizer{part}.safetensors")
            if rank == 0:
                counters["config"] = self.config.model_dump(mode="json")
                write_text(folder / "state.json", json.dumps(counters, indent=1), durable=False)

    def load(self, directory: Path) -> None:
        """Restore weights, moments and counters, but no config. Raises InputError for no checkpoint of this model."""
        if self.base_fingerprint is not None:
            adapter.load_adapter(directory, self.model, self.base_fingerprint)
        elif (directory / ADAPTER_WEIGHTS).is_file():
            raise InputError(f"{directory}: holds an adapter; resume with the settings lora that it was trained with")
        folder = directory / _FOLDER
        parts = sorted(folder.glob("optimizer*.safetensors"))
        if not (folder / "state.json").is_file() or not parts:
            raise InputError(f"{directory}: this folder has no {_FOLDER}, so it is not a checkpoint of a learner")
        if self.trainable:
            restore_moments(parts, self.model, self._get_optimizer())
            if self.config.optimizer_offload:
                offload_moments(self._get_optimizer())
        counters = read_fields(
            folder / "state.json", dict.fromkeys(_COUNTERS, int), "load another checkpoint, or the model without it"
        )
        if self.base_fingerprint is None:
            self._restore_weights(directory)
        self.steps, self.skipped_updates, saved = (counters[k] for k in _COUNTERS)
        self._clear_gradients()
        if saved != self.total_steps:
            logger.warning(
                "%s: saved in a run of %d steps; the learning rate now follows this run's %d",
                *(directory, saved, self.total_steps),
            )

    def _get_optimizer(self) -> torch.optim.AdamW:
        if not self.trainable:
            raise RuntimeError("this learner is frozen (trainable=False)")
        if self.optimizer is None:
            c = self.config
            trained = [p for p in self.model.parameters() if p.requires_grad]
            groups = [
                {"params": [p for p in trained if p.ndim >= 2], "weight_decay": c.weight_decay},
                {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
            ]
            fused = self.device.type in ("cpu", "cuda")
            self.optimizer = torch.optim.AdamW(groups, lr=c.learning_rate, betas=c.betas, fused=fused)
        return self.optimizer

    def _clear_gradients(self) -> None:
        self.model.zero_grad()
        self.losses_finite = torch.tensor(True, device=self.device)

    def microbatches(self, *inputs: Column) -> list[list[int]]:
        """Rows of each micro-batch; row i is `inputs[0][i]`, with `inputs[1][i]` beside it where there are pairs."""
        lengths = np.max([column.lengths for column in inputs], axis=0).tolist()
        relatives = [family.rows for family in packing.families(list(inputs[0]))] if self._packs else None
        return packing.token_budget_batches(lengths, self.config.tokens_per_microbatch // len(inputs), relatives)

    def _hidden_states(self, token_ids: Sequence[np.ndarray]) -> tuple[Float[Tensor, "T H"], Int[Tensor, "B L"]]:
        """Last hidden states of a causal model (without a plain head its logits), and the place of every row's tokens.
        Rows are packed, or padded on the right without an attention mask, which causal attention does not need.
        """
        if self._packs and self._plain_head:
            packed = packing.pack_rows(token_ids, self.device)
            return packed_hidden_states(self.model, packed, self.attention), packed.places
        tokens_BL = packing.pad_tokens(token_ids, 0, self.device)
        places_BL = torch.arange(tokens_BL.numel(), device=self.device).view_as(tokens_BL)
        if not self._plain_head:
            return self.model(tokens_BL, use_cache=False).logits.flatten(0, 1), places_BL
        return self.model.base_model(tokens_BL, use_cache=False).last_hidden_state.flatten(0, 1), places_BL

    def _backward(self, inputs: Sequence[Column], loss_of: Callable[[list[int]], Any], count: int) -> Metrics:
        """Accumulate the gradient of `loss_of` each micro-batch's rows. Metrics are `loss` and means over `count`."""
        sums: dict[str, Tensor] = {}
        try:
            for rows in told(self.microbatches(*inputs), "gradients"):
                with self._training_pass():
                    output = loss_of(rows)
                self.losses_finite &= torch.isfinite(output.loss.detach())
                output.loss.backward()
                for name, value in {"loss": output.loss, **output.metric_sums}.items():
                    sums[name] = sums.get(name, torch.zeros_like(value)) + value.detach()
        except BrokenOff:
            self._clear_gradients()
            raise
        return {name: value.item() / (1 if name == "loss" else max(1, count)) for name, value in sums.items()}

    @contextmanager
    def _training_pass(self) -> Iterator[None]:
        if not self.trainable:
            raise RuntimeError("this learner is frozen (trainable=False)")
        drop_decoder(self.model)  # the pass needs the memory, and the weights are about to change
        # Transformers recomputes activations only in modules in training mode. Only the layers themselves are switched,
        # not the dropout inside. They are switched only here because in training mode they refuse the sampler's cache.
        layers = [m for m in self.model.modules() if getattr(m, "gradient_checkpointing", False)]
        try:
            for layer in layers:
                layer.training = True
            with self._autocast():
                yield
        finally:
            for layer in layers:
                layer.training = False

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.bfloat16)

    @torch.no_grad()
    def _restore_weights(self, directory: Path) -> None:
        # Transformers reads the folder, because it may have stored weights under other names or layouts than the model.
        saved, info = type(self.model).from_pretrained(directory, dtype=self.model.dtype, output_loading_info=True)  # pyright: ignore[reportGeneralTypeIssues]
        if info["missing_keys"] or info["mismatched_keys"]:
            raise InputError(f"{directory}: the weights do not fit this model")
        values = saved.state_dict()
        for name, tensor in self.model.state_dict().items():
            if name not in values or values[name].shape != tensor.shape:
                raise InputError(f"{directory}: no weight {name!r} of shape {tuple(tensor.shape)} in this folder")
            adapter.own(tensor).copy_(values[name][adapter.own_rows(tensor)] if tensor.ndim else values[name])


def told(batches: Sequence[list[int]], what: str) -> Iterator[list[int]]:
    """Yield the micro-batches one after the other, and report progress by their rows."""
    done, rows = 0, sum(map(len, batches))
    for batch in batches:
        tell(done, rows, "rows", what)
        yield batch
        done += len(batch)


class TorchPolicyLearner(TorchLearner, PolicyLearner):
    """A causal language model that implements `PolicyLearner`. Log-probabilities do not depend on the batch."""

    def describe(self) -> str:
        head: Any = self.model.get_output_embeddings()
        if not self._plain_head:
            return super().describe()
        chunk = f"of {largest_chunk(self.device) // head.weight.shape[0]:,} tokens at a time"
        return f"{super().describe()}, log-probabilities {chunk}"

    def forward_backward(self, batch: PolicyBatch, loss: PolicyObjective) -> Metrics:
        """Accumulate the gradient. Metrics are `loss` and the loss's own metrics as means over completion tokens."""

        def loss_of(rows: list[int]) -> PolicyLossOutputs:
            part = batch.take(rows)
            flat, mask = self.run(self._completion_logprobs, list(part.token_ids), part.lengths, batch.temperature)

            def padded(values: Float[Tensor, " N"]) -> Float[Tensor, "B C"]:
                return flat.new_zeros(mask.shape).masked_scatter(mask, values.to(flat))

            numbers = {name: padded(torch.from_numpy(values)) for name, values in part.flat.items()}
            trained = numbers.pop("trained", mask) != 0
            return policy_loss(PolicyLossInputs(padded(flat), mask=mask & trained, **numbers), loss.loss, loss.kl)

        return self._backward([batch.token_ids], loss_of, batch.count)

    def logprobs(self, token_ids: Column, lengths: Lengths, temperature: float = 1.0, adapter: bool = True) -> PerToken:
        """As in `PolicyLearner`, in the model's precision, at least float32."""
        places = Column(np.arange(lengths.sum()), offsets_of(lengths))
        results = np.empty(len(places.values), np.float64 if self.model.dtype == torch.float64 else np.float32)
        with nullcontext() if adapter else adapter_off(self.model):
            for rows in told(self.microbatches(token_ids), "log-probabilities"):
                with torch.no_grad(), self._autocast():
                    chosen = [token_ids[i] for i in rows]
                    flat, _ = self.run(self._completion_logprobs, chosen, lengths[rows], temperature)
                results[places.places(rows)] = flat.cpu().numpy()
        return results

    def _completion_logprobs(
        self, token_ids: list[np.ndarray], lengths: Lengths, temperature: float
    ) -> tuple[Float[Tensor, " N"], Bool[Tensor, "B C"]]:
        """Log-probabilities of all completion tokens, row after row, and the mask that lays them out as [B, C]."""
        check_prompts(np.array([len(row) for row in token_ids]), lengths)
        # The token at position t is predicted at t - 1, so the last one of a row is not read.
        inputs = [row[:-1] for row in token_ids]
        targets = np.concatenate([row[len(row) - n :] for row, n in zip(token_ids, lengths, strict=True)])
        targets_N = torch.from_numpy(targets.astype(np.int64)).to(self.device)
        lengths_B = torch.from_numpy(lengths).to(self.device)
        totals_B = torch.tensor([len(row) for row in inputs], device=self.device)
        states, places_BL = self._hidden_states(inputs)
        width = places_BL.shape[1]
        predicts_BL = length_mask(totals_B, width) & ~length_mask(totals_B - lengths_B, width)
        states = states.index_select(0, places_BL[predicts_BL])
        if self._plain_head:
            flat = token_logprobs(states, self.model.get_output_embeddings(), targets_N, temperature)  # pyright: ignore[reportArgumentType]
        else:
            flat = gather_logprobs(states, targets_N, temperature)
        return flat, length_mask(lengths_B, int(lengths.max()))


def freeze_layers(model: PreTrainedModel, layers: int) -> None:
    """Exclude the embeddings and the lowest `layers` layers from training, and their passes from the backward pass.
    Raises InputError if there are fewer.
    """
    if not layers:
        return
    stack = getattr(model.base_model, "layers", None)
    if not isinstance(stack, nn.ModuleList) or layers > len(stack):
        found = f"{len(stack)} layers" if isinstance(stack, nn.ModuleList) else "no list of layers"
        raise InputError(f"frozen_layers: {layers}, but this model has {found}; use frozen_layers: 0")
    model.get_input_embeddings().requires_grad_(False)
    stack[:layers].requires_grad_(False)
    # Transformers adds the hook for gradient checkpointing; it would extend the backward pass to the frozen layers.
    if hasattr(model, "_require_grads_hook"):
        model.disable_input_require_grads()


def _enable_checkpointing(model: PreTrainedModel) -> None:
    # The first name is transformers 5.x's later spelling of the second.
    enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
    enable({"use_reentrant": False})
    for layer in model.modules():
        if getattr(layer, "gradient_checkpointing", False):
            # A few layers (OPT) apply dropout depending on their own training flag, which `_training_pass` sets.
            for name in [n for n, value in vars(layer).items() if "dropout" in n and isinstance(value, float)]:
                setattr(layer, name, 0.0)
