"""What a model folder must hold, told from its file names alone: torch and transformers are not needed for it."""

from pathlib import Path

from cooper_rl.errors import InputError

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


def local_folder(path: str) -> Path | None:
    """The folder, or None for a hub name ("owner/name" or "name"); raises InputError where it is neither."""
    folder = Path(path)
    if folder.is_dir():
        return folder
    looks_local = path.startswith((".", "/", "~")) or "\\" in path or path.count("/") > 1
    beside_folders = str(folder.parent) != "." and folder.parent.is_dir()
    if not path or looks_local or beside_folders:
        raise InputError(
            f"{path or '(empty)'}: no such model folder; give a folder or a Hugging Face name like owner/name"
        )
    return None


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
