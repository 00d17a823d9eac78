"""Finds a model's folder, or its name on the hub, and checks that a folder is complete. Needs no torch."""

from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from huggingface_hub import hf_hub_download, snapshot_download, try_to_load_from_cache
from huggingface_hub.errors import EntryNotFoundError, GatedRepoError, HFValidationError, RepositoryNotFoundError
from huggingface_hub.utils import validate_repo_id

from cooper_base.data.hub import ask_the_hub
from cooper_base.data.strict_json import parse_json
from cooper_base.errors import InputError
from cooper_base.files.owned_folder import check_new
from cooper_rl.engines.config import YesNo
from cooper_rl.engines.model_limits import check_sizes, check_templates, has_template


def local_folder(path: str) -> Path | None:
    """The model's folder, or None for a name that the hub or its cache serves ("owner/name" or "name").

    Raises InputError for a path without a folder, a name close to that of an existing folder, a name that the hub does
    not know, and if the hub cannot be reached.
    """
    folder = Path(path)
    if folder.is_dir():
        return folder
    if folder.is_file():
        raise InputError(f"{path}: is a file and not the folder of a model; name the folder that holds config.json")
    nearest = _nearest_folder(folder) if path else None
    if nearest or _looks_local(path):
        remedy = f"did you mean {nearest}?" if nearest else "give a folder or a Hugging Face name like owner/name"
        raise InputError(f"{path or '(empty)'}: no such model folder; {remedy}")
    _ask_the_hub(path)
    return None


def weight_files(path: str) -> list[Path]:
    """The files of weights in a model's folder, in order; none for a name that the hub serves."""
    folder = local_folder(path)
    return [] if folder is None else sorted(folder.glob("*.safetensors"))


def _looks_local(path: str) -> bool:
    try:
        validate_repo_id(path)
    except HFValidationError:
        return True
    parent = Path(path).parent
    return not path or path.startswith((".", "/", "~")) or (str(parent) != "." and parent.is_dir())


def _nearest_folder(folder: Path) -> Path | None:
    """An existing folder whose path is almost the same, unless the hub's cache has a model of this name."""
    if _cached(str(folder)):
        return None
    found = Path(folder.anchor)
    for part in folder.relative_to(found).parts:
        if not (found / part).is_dir():
            names = []
            with suppress(OSError):  # a folder that cannot be read gives no suggestions
                names = [entry.name for entry in found.iterdir() if entry.is_dir()]
            part = next(iter(get_close_matches(part, names, n=1, cutoff=0.8)), None)
            if part is None:
                return None
        found /= part
    return found


def _cached(name: str) -> Path | None:
    """The folder of a model's files in the hub's cache, as many as have been downloaded; None if none have."""
    with suppress(HFValidationError):
        for file in ("config.json", *_TOKENIZERS):
            if isinstance(path := try_to_load_from_cache(name, file), str):
                return Path(path).parent
    return None


def download(name: str, weights: bool) -> None:
    """Download a model of the hub into the cache, so that the checks can read its files before it is loaded: the files
    of its tokenizer or, with `weights`, its safetensors. Does nothing for a folder, or for files that are in the cache.

    Raises InputError like `local_folder`, and what huggingface_hub raises.
    """
    if local_folder(name) is not None:
        return
    cached = _cached(name)
    if cached is None or not any(cached.glob("*.safetensors" if weights else "tokenizer_config.json")):
        kinds = ("*.json", "model.safetensors", "model-*.safetensors") if weights else _BESIDE_WEIGHTS
        snapshot_download(name, allow_patterns=[*kinds])


@cache
def _ask_the_hub(name: str) -> None:
    """Ask the hub once, unless the model is in its local cache. A positive answer is remembered."""
    if _cached(name):
        return
    neither = f"{name}: no such folder in {Path.cwd()}, so it was taken for a Hugging Face name,"
    try:
        ask_the_hub(name, "config.json")
    except (GatedRepoError, EntryNotFoundError):  # the model exists; loading it reports the problem
        return
    except RepositoryNotFoundError as error:
        raise InputError(
            f"{neither} but the hub has no such model, or you may not read it; correct the path or the name, "
            "or log in (hf auth login) if the model is private"
        ) from error
    # No narrower type will do: network errors come from whichever HTTP library the hub's version uses.
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise InputError(
            f"{neither} but the hub cannot be reached ({reason}); correct the path, or download the model first"
        ) from error


_BESIDE_WEIGHTS = ("*.json", "*.jinja", "*.txt", "*.model")
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json", "vocab.txt", "spiece.model")
ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"  # the files of a peft folder
YES_NO = "yes_no"
"""The key in config.json under which a model's question is recorded. An adapter's folder has no config.json, so there
the record is a file of its own."""


def check_model_folder(path: str) -> None:
    """Raises InputError for a folder that is missing or lacks a tokenizer, config.json or safetensors weights. The
    files of a model on the hub are checked as far as they are in its cache, and all when it is loaded.
    """
    check_tokenizer(path)
    check_weights(path)


def check_reward_model_folder(path: str, kind: str | None = None) -> None:
    """Raises InputError like `check_model_folder`, and for a folder whose config names another kind of model."""
    check_model_folder(path)
    if kind == "yes_no" or (kind is None and local_folder(path) and recorded(path)):
        return
    while base := adapter_base(path):
        path = base
    if (folder := local_folder(path)) is None:
        return
    name: Any = None
    with suppress(ValueError, LookupError, TypeError):  # loading the model reports a file that cannot be read
        name = parse_json((folder / "config.json").read_text(encoding="utf-8"))["architectures"][0]
    check_head(path, name if isinstance(name, str) else "")


def check_head(path: str, architecture: str, new_head: bool = False) -> None:
    """Raises InputError if a model of this `architecture` has no reward head and does not get a new one. An empty
    architecture passes."""
    if not architecture or architecture.endswith("ForSequenceClassification"):
        return
    if not architecture.endswith(("ForCausalLM", "LMHeadModel", "Model")):
        raise InputError(f"{path}: cannot make a reward model from a {architecture}; use a causal or one-label model")
    if not new_head:
        raise InputError(
            f"{path}: a {architecture} has no reward head, and a new one would score at random; train a reward model "
            "from it with `cooper verifyrm train`, give the folder of a reward model, or ask it (kind: yes_no)"
        )


def recorded(path: str) -> YesNo | None:
    """The question that the model of this folder or name was saved with as a reward model; None for any other model.
    Raises InputError for a record that cannot be read, and as `adapter_base` does.
    """
    folder, base = local_folder(path), adapter_base(path)
    if folder and base and not (folder / f"{YES_NO}.json").is_file():
        return recorded(base)
    file = (folder / (f"{YES_NO}.json" if base else "config.json")) if folder else hf_hub_download(path, "config.json")
    try:
        values = parse_json(Path(file).read_text(encoding="utf-8"))
        found = values if base else values.get(YES_NO)
        return None if found is None else YesNo.model_validate(found)
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(f"{file}: {YES_NO}: cannot be read ({error})") from error


def padding_token(path: str) -> int | None:
    """The id of the padding token in the config of a model's folder or name; None if it has none."""
    from transformers import AutoConfig  # noqa: PLC0415 - the checks of a run's input do without it

    while base := adapter_base(path):
        path = base
    # Not from the file, which leaves out what is a default of its kind of model.
    return AutoConfig.from_pretrained(path, trust_remote_code=False).get_text_config().pad_token_id


def lacks_chat_template(path: str) -> bool:
    """Whether the tokenizer of a model on this machine has no chat template."""
    folder = local_folder(path) or _cached(path)
    return folder is not None and not has_template(folder)


def no_chat_template(model: str) -> InputError:
    """That a reward model's input shall be a chat, which its tokenizer has no template for."""
    return InputError(
        f"{model}: the tokenizer has no chat template, so reward_model.input cannot be a chat; add "
        "chat_template.jinja to the folder, or set input: tagged for a VerifyRM"
    )


def check_merge(source: str, target: Path) -> None:
    """Raises InputError for a source without adapter and a target in use."""
    check_new(target)
    if adapter_base(source) is None:
        raise InputError(f"{source}: holds no adapter; it is a plain model folder already")


def adapter_base(path: str) -> str | None:
    """The model that the adapter in a folder adapts; None if the folder is not that of an adapter. Raises InputError
    for an adapter that names no base, or itself.
    """
    folder = local_folder(path)
    if folder is None or not (folder / ADAPTER_CONFIG).is_file() or (folder / "config.json").is_file():
        return None
    file = folder / ADAPTER_CONFIG
    try:
        base = parse_json(file.read_text(encoding="utf-8"))["base_model_name_or_path"]
    except (ValueError, LookupError, TypeError) as error:
        raise InputError(f"{file}: names no base_model_name_or_path ({error})") from error
    if not isinstance(base, str) or not base or (Path(base).is_dir() and Path(base).samefile(folder)):
        raise InputError(f"{file}: base_model_name_or_path: {base!r} is no model that an adapter could adapt")
    return base


def check_tokenizer(path: str) -> None:
    """Raises InputError for a folder without a tokenizer, or with a chat template that costs too much."""
    folder = local_folder(path)
    if folder and not any((folder / name).is_file() for name in _TOKENIZERS):
        if not (folder / "config.json").is_file() and (inner := next(folder.glob("*/config.json"), None)):
            raise InputError(f"{path}: no model in this folder; did you mean {inner.parent}?")
        raise InputError(f"{path}: no tokenizer in this folder; save the model's tokenizer there (save_pretrained)")
    if checked := folder or _cached(path):
        check_templates(checked)


def check_weights(path: str) -> None:
    """Raises InputError for a folder that lacks config.json or safetensors weights, or whose config does not fit the
    weights. For a folder with an adapter, the adapter's weights and the base are checked.
    """
    folder = local_folder(path)
    if folder and (base := adapter_base(path)) is not None:
        if not (folder / ADAPTER_WEIGHTS).is_file():
            raise InputError(f"{path}: an adapter without {ADAPTER_WEIGHTS}; save it with safetensors")
        check_weights(base)
        return
    if folder and not (folder / "config.json").is_file():
        raise InputError(f"{path}: no config.json in this folder; it is not a Hugging Face model folder")
    if folder and not any(folder.glob("*.safetensors")):
        if any(folder.glob("*.bin")):
            raise InputError(
                f"{path}: only pickled weights (*.bin) in this folder, and reading those can run code; if you trust "
                "them, load the model elsewhere and convert it to safetensors with save_pretrained"
            )
        raise InputError(f"{path}: no weights in this folder (*.safetensors)")
    if folder:
        check_sizes(folder)
    elif (cached := _cached(path)) and any(cached.glob("*.safetensors")) and (cached / "config.json").exists():
        check_sizes(cached)
