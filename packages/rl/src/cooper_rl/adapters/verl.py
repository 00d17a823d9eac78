"""verl: a reward manager that asks the service, and checkpoints of both together; see docs/trainers/verl.md."""

# pyright: reportMissingImports=false

from pathlib import Path
from typing import Any

from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase
from verl.trainer.ppo.checkpoint_callback import CheckpointCallback
from verl.utils.checkpoint.checkpoint_manager import find_latest_ckpt_path

from cooper_base.data.thoughts import Decoder
from cooper_base.data.transcript import turns_in
from cooper_base.errors import InputError
from cooper_rl.adapters.rows import FOLDER
from cooper_rl.adapters.served import async_client, client, columns, end_step, read_row, single


class CooperRewardManager(RewardManagerBase):
    """The first answer of a step ends the step before: verl has no hook that all its trainers call at the end."""

    def __init__(self, config: Any, tokenizer: Any, compute_score: Any, **unused: Any) -> None:
        super().__init__(config, tokenizer, compute_score)
        self._step = 0

    async def run_single(self, data: Any) -> dict[str, Any]:
        """The reward of the last of these sequences. Raises InputError if a row lacks question, answer or split."""
        item = data[-1:][0]
        fields = item.non_tensor_batch
        if "global_steps" not in fields or "uid" not in fields:
            raise InputError("verl did not say which step and group an answer belongs to; set trainer.use_v1=True")
        row = {**fields.get("extra_info", {}), "answer": fields.get("reward_model", {}).get("ground_truth")}
        where = f"extra_info of {fields['data_source']}"
        problem, train = read_row(row, where)
        completion, stopped = await self.loop.run_in_executor(None, self._read, item)
        verdict = columns().verdict_in({**row, **fields.get("tool_extra_fields", {})}, where)
        # `uid` is new in every step, and `session_id` counts the samples of its prompt.
        group = single(problem, completion, stopped, str(fields["uid"]), str(fields.get("session_id", 0)), verdict)
        step = int(fields["global_steps"])
        if train:
            await self._end_before(step)
        scored = await async_client().score([group], step=step if train else None, train=train, partial=True)
        # verl requires the same keys from every answer.
        extra = {"cooper_version": scored.version, "cooper_verdict": scored.verdicts[0][0]}
        return {"reward_score": scored.for_all()[0][0], "reward_extra_info": extra}

    def _read(self, item: Any) -> tuple[str | list[dict[str, str]], bool]:
        """The completion, as messages if it has several turns, and whether it stopped by itself."""
        ids = item.batch["responses"]
        ids = ids[: int(item.batch["attention_mask"][-len(ids) :].sum())]
        limit = self.config.actor_rollout_ref.rollout.response_length
        end = self.tokenizer.eos_token_id
        stopped = len(ids) < limit or int(ids[-1]) == end
        cuts = [place for place, token in enumerate(ids.tolist()) if token == end]
        starts = [0, *(place + 1 for place in cuts)]
        # A turn ends at its token, not at a text that looks like it, which a policy could write.
        turns = turns_in([self.tokenizer.decode(ids[a:b]) for a, b in zip(starts, [*cuts, len(ids)], strict=True)])
        return turns if len(turns) > 1 else Decoder(self.tokenizer).text(ids.tolist()), stopped

    async def _end_before(self, step: int) -> None:
        if step <= self._step:
            return
        opened = (await async_client().info())["open"]
        if opened is not None and opened["step"] < step:
            await async_client().update(opened["step"])  # once, however many workers ask
        self._step = step


class CooperCheckpoint(CheckpointCallback):
    """Saves the service's reward with verl's checkpoint, and restores it if verl resumes."""

    def __init__(self, config: Any = None) -> None:
        super().__init__(config)
        if config is not None and (folder := _resumed(config.trainer)) is not None:
            client().load(folder / FOLDER)

    def on_save(self, trainer: Any, global_step: int, checkpoint_dir: str, **unused: Any) -> None:
        """End the step, because verl saves before the step ends, and save."""
        end_step()
        client().save(Path(checkpoint_dir) / FOLDER)


def _resumed(trainer: Any) -> Path | None:
    if trainer.resume_mode == "resume_path":
        return Path(trainer.resume_from_path).absolute()
    if trainer.resume_mode != "auto":
        return None
    found = find_latest_ckpt_path(str(Path(trainer.default_local_dir).absolute()))
    return Path(found) if found else None
