"""What a model folder must hold, told from its file names alone: torch and transformers are not needed for it."""

from pathlib import Path

from cooper_rl.data.strict_json import parse_json
from cooper_rl.engines.model_source import local_folder
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


def check_reward_model_folder(path: str) -> None:
    """Raises InputError as `check_model_folder` does, and for a folder that claims another kind of model."""
    check_model_folder(path)
    folder = local_folder(path)
    if folder is not None:
        check_head(path, _architecture(folder / "config.json"))


def check_head(path: str, architecture: str, new_head: bool = False) -> None:
    """Raises InputError where such a model ("" is unknown) has no reward head, and may get no new one."""
    if not architecture or architecture.endswith("ForSequenceClassification"):
        return
    if not architecture.endswith(("ForCausalLM", "LMHeadModel", "Model")):
        raise InputError(f"{path}: cannot make a reward model from a {architecture}; use a causal or one-label model")
    if not new_head:
        raise InputError(
            f"{path}: a {architecture} has no reward head, and a new one would score at random; make a reward model of "
            "it with `cooper verifyrm train`, or give the folder of a reward model"
        )


def _architecture(config: Path) -> str:
    """What the model calls itself; empty where the file cannot be read, which loading it will tell."""
    try:
        names = parse_json(config.read_text(encoding="utf-8"))["architectures"]
        return names[0] if isinstance(names[0], str) else ""
    except (ValueError, LookupError, TypeError):
        return ""


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
