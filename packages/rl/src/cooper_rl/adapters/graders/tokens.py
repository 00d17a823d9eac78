"""Reads rollouts that are token ids."""

from collections.abc import Callable, Sequence


def decoder_of(tokenizer: str) -> Callable[[Sequence[int]], str]:
    """Turns token ids into text, with the tokenizer in a folder or on the hub. Raises InputError for none."""
    from cooper_rl.engines.model_folder import check_model_folder  # noqa: PLC0415 - asks the hub

    check_model_folder(tokenizer)
    from transformers import AutoTokenizer  # noqa: PLC0415 - slow to import

    loaded = AutoTokenizer.from_pretrained(tokenizer)
    return lambda ids: loaded.decode(ids, skip_special_tokens=True)
