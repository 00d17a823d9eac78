"""Finds a model: a local folder or a name on the Hugging Face hub. Anything else is an error within seconds."""

from difflib import get_close_matches
from functools import cache
from pathlib import Path

from huggingface_hub import get_hf_file_metadata, hf_hub_url, try_to_load_from_cache
from huggingface_hub.errors import EntryNotFoundError, GatedRepoError, HFValidationError, RepositoryNotFoundError
from huggingface_hub.utils import validate_repo_id

from cooper_rl.errors import InputError

HUB_TIMEOUT_S = 5.0
"""Seconds to wait for the hub's answer whether it has a model. Without a network transformers waits 46 s."""


def local_folder(path: str) -> Path | None:
    """The model's folder, or None for a name that the hub or its cache serves ("owner/name" or "name").

    Raises InputError for a path without a folder, for a name close to that of an existing folder, for a name that the
    hub does not know, and if the hub cannot be reached.
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
    """An existing folder whose path is almost the same, unless the hub's cache has a model of this name."""
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
    except OSError:  # a folder that cannot be read gives no suggestions
        return []


def _in_cache(name: str) -> bool:
    try:
        return any(isinstance(try_to_load_from_cache(name, file), str) for file in ("config.json", "tokenizer.json"))
    except HFValidationError:
        return False


@cache
def _ask_the_hub(name: str) -> None:
    """Ask the hub once, without retries, unless the model is in its local cache. A positive answer is remembered."""
    if _in_cache(name):
        return
    neither = f"{name}: no such folder in {Path.cwd()}, so it was taken for a Hugging Face name,"
    try:
        get_hf_file_metadata(hf_hub_url(name, "config.json"), timeout=HUB_TIMEOUT_S)
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
