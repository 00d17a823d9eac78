"""What a model folder must hold, told from its file names alone: torch and transformers are not needed for it."""

from cooper_rl.errors import InputError
from cooper_rl.learning.model_source import local_folder

_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
)


def check_model_folder(path: str) -> None:
    """Raises InputError for a missing folder and for one without tokenizer, config.json or safetensors weights.

    A name on the hub passes; it is looked up when the model is loaded.
    """
    check_tokenizer(path)
    check_weights(path)


def check_tokenizer(path: str) -> None:
    """Raises InputError for a folder without tokenizer."""
    folder = local_folder(path)
    if folder and not any((folder / name).is_file() for name in _TOKENIZER_FILES):
        raise InputError(f"{path}: no tokenizer in this folder; save the model's tokenizer there (save_pretrained)")


def check_weights(path: str) -> None:
    """Raises InputError for a folder without config.json, without weights, or with nothing but pickled ones."""
    folder = local_folder(path)
    if folder and not (folder / "config.json").is_file():
        raise InputError(f"{path}: no config.json in this folder; it is not a Hugging Face model folder")
    if folder and not any(folder.glob("*.safetensors")):
        if any(folder.glob("*.bin")):
            raise InputError(
                f"{path}: only pickled weights (*.bin) in this folder, and reading those can run code; convert them to "
                "safetensors: load the model where you trust it, then save_pretrained"
            )
        raise InputError(f"{path}: no weights in this folder (*.safetensors)")
