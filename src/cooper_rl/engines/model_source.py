"""Where a model is: a folder here, or a name on the Hugging Face hub. What is neither is told within seconds."""

from difflib import get_close_matches
from functools import cache
from pathlib import Path

from huggingface_hub import get_hf_file_metadata, hf_hub_url, try_to_load_from_cache
from huggingface_hub.errors import EntryNotFoundError, GatedRepoError, HFValidationError, RepositoryNotFoundError
from huggingface_hub.utils import validate_repo_id

from cooper_rl.errors import InputError

HUB_TIMEOUT_S = 5.0
"""Seconds for the one question whether the hub has a model. Transformers asks for 46 s where there is no network."""


def local_folder(path: str) -> Path | None:
    """The model's folder, or None for a name that the hub or its cache serves ("owner/name" or "name").

    Raises InputError for what looks like a path or nearly like a folder, and for a name that the hub does not know or
    that cannot be asked for.
    """
    folder = Path(path)
    if folder.is_dir():
        return folder
    nearest = _nearest_folder(folder) if path else None
    if nearest or _looks_local(path):
        remedy = f"did you mean {nearest}?" if nearest else "give a folder or a Hugging Face name like owner/name"
        raise InputError(f"{path or '(empty)'}: no such model folder; {remedy}")
    _ask_the_hub(path)
    return None


def _looks_local(path: str) -> bool:
    try:
        validate_repo_id(path)
    except HFValidationError:
        return True
    folder = Path(path)
    return not path or path.startswith((".", "/", "~")) or (str(folder.parent) != "." and folder.parent.is_dir())


def _nearest_folder(folder: Path) -> Path | None:
    """An existing folder whose path is spelled nearly like this one, unless the hub's cache has a model of the name."""
    if _in_cache(str(folder)):
        return None
    found = Path(folder.anchor)
    for part in folder.relative_to(found).parts:
        names = [part] if (found / part).is_dir() else get_close_matches(part, _folders_in(found), n=1, cutoff=0.8)
        if not names:
            return None
        found /= names[0]
    return found


def _folders_in(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir() if entry.is_dir()]
    except OSError:  # a folder that may not be read holds no suggestion
        return []


def _in_cache(name: str) -> bool:
    try:
        return any(isinstance(try_to_load_from_cache(name, file), str) for file in ("config.json", "tokenizer.json"))
    except HFValidationError:
        return False


@cache
def _ask_the_hub(name: str) -> None:
    """One question without retries, unless the model is in the hub's cache; remembered where the answer is yes."""
    if _in_cache(name):
        return
    neither = f"{name}: no such folder in {Path.cwd()}, so it was taken for a Hugging Face name,"
    try:
        get_hf_file_metadata(hf_hub_url(name, "config.json"), timeout=HUB_TIMEOUT_S)
    except (GatedRepoError, EntryNotFoundError):  # there is such a model; loading it says what is the matter
        return
    except RepositoryNotFoundError as error:
        raise InputError(
            f"{neither} which the hub does not have, or not for you; correct the path or the name, "
            "or log in (hf auth login) if the model is private"
        ) from error
    # No narrower type holds: the network's exceptions are those of the library that the hub's version works with.
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise InputError(
            f"{neither} and the hub cannot be asked ({reason}); correct the path, or download the model first"
        ) from error
