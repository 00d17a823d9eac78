"""Folders with an adapter as plain model folders."""

import logging
from pathlib import Path

from cooper_rl.data.strict_json import parse_json
from cooper_rl.engines.local.models import load_policy, load_reward_model, load_tokenizer
from cooper_rl.engines.model_folder import ADAPTER_CONFIG, adapter_base
from cooper_rl.errors import InputError

logger = logging.getLogger(__name__)


def merge_folder(source: str, target: Path) -> None:
    """Write the model of a folder with an adapter to `target`, merged, as a Hugging Face folder with its tokenizer.

    Raises InputError for a source without adapter, a target in use, and as `load_policy` does.
    """
    if target.exists():
        raise InputError(f"{target}: already in use; choose another folder or remove it")
    if adapter_base(source) is None:
        raise InputError(f"{source}: holds no adapter; it is a plain model folder already")
    task = parse_json((Path(source) / ADAPTER_CONFIG).read_text(encoding="utf-8")).get("task_type")
    tokenizer = load_tokenizer(source)
    model = load_reward_model(source) if task == "SEQ_CLS" else load_policy(source)
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
    logger.info("%s: merged into its base, in %s", source, target)
