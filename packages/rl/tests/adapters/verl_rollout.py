"""A rollout for verl's registry: transformers' `generate` in one Ray actor, one request at a time."""

# pyright: reportMissingImports=false

import os
from collections.abc import Iterable
from typing import Any

import ray
import torch
from transformers import AutoModelForCausalLM
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutReplica, TokenOutput


class Server:
    """What verl's agent loop asks for tokens."""

    def __init__(self, path: str, limit: int) -> None:
        torch.set_num_threads(1)
        self.model: Any = AutoModelForCausalLM.from_pretrained(path).eval()
        self.limit = limit
        self.step: int | None = None

    async def generate(self, prompt_ids: Any, sampling_params: dict[str, Any], **unused: Any) -> TokenOutput:
        """Tokens and their log-probabilities."""
        prompt = torch.tensor([[int(token) for token in prompt_ids]])
        temperature = sampling_params.get("temperature", 1.0)
        sampling = {"do_sample": True, "temperature": temperature} if temperature else {"do_sample": False}
        with torch.no_grad():
            found = self.model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                top_k=0,
                max_new_tokens=sampling_params.get("max_tokens") or self.limit,
                return_dict_in_generate=True,
                output_logits=True,
                **sampling,
            )
        tokens = found.sequences[0, prompt.shape[1] :].tolist()
        rows = [torch.log_softmax(row[0].float(), -1) for row in found.logits]
        logprobs = [row[token].item() for row, token in zip(rows, tokens, strict=True)]
        extra = {"global_steps": self.step}
        return TokenOutput(token_ids=tokens, log_probs=logprobs, stop_reason="completed", extra_fields=extra)

    async def load(self, weights: dict[str, torch.Tensor], step: int | None) -> None:
        """The policy's weights of this step."""
        assert not self.model.load_state_dict(weights, strict=False).unexpected_keys
        self.step = step

    async def nothing(self, *unused: Any, **more: Any) -> None:
        """There is no memory to give back."""

    wake_up = sleep = abort_all_requests = resume_generation = nothing
    clear_kv_cache = release_kv_cache = resume_kv_cache = nothing


class Replica(RolloutReplica):
    """Starts the server."""

    async def launch_servers(self) -> None:
        server = ray.remote(Server).options(name=_name(self.replica_rank))
        handle: Any = server.remote(self.model_config.path, self.config.response_length)
        self.servers, self._server_handle, self._server_address = [handle], handle, _name(self.replica_rank)
        await handle.nothing.remote()


class Adapter(BaseRollout):
    """In the trainer's worker: sends the weights after every step."""

    def __init__(self, config: Any, model_config: Any, device_mesh: Any, **unused: Any) -> None:
        super().__init__(config, model_config, device_mesh)
        self.sleep_level = 2

    async def resume(self, tags: list[str]) -> None: ...

    async def release(self) -> None: ...

    async def update_weights(
        self, weights: Iterable[tuple[str, torch.Tensor]], global_steps: int | None = None, **unused: Any
    ) -> None:
        copies = {name: tensor.detach().cpu().clone() for name, tensor in weights}
        server: Any = ray.get_actor(_name(int(os.environ["RANK"])))
        await server.load.remote(copies, global_steps)


def _name(rank: int) -> str:
    return f"transformers_server_{rank}"
