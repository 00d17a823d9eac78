"""Uploads of models to the Hugging Face hub."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from cooper_base.errors import InputError

LEFT_OUT = ("trainer_state/**", "manifest.json")
"""Files of a checkpoint's folder that do not belong to the model."""


def push_models(folder: Path, repositories: Mapping[str, str | None], private: bool) -> Iterator[str]:
    """Upload each model in `folder` that has a repository; yields the address of each.

    All folders are checked before the first upload. Raises InputError for a folder without such a model, for no
    repository at all, and if the hub refuses.
    """
    from huggingface_hub import HfApi  # noqa: PLC0415 - its import takes a while
    from huggingface_hub.errors import HFValidationError, HTTPError  # noqa: PLC0415  # pyright: ignore[reportPrivateImportUsage]

    wanted = {name: repository for name, repository in repositories.items() if repository}
    if not wanted:
        raise InputError("name a repository: --policy me/my-policy, --reward-model me/my-verifyrm, or both")
    for name in wanted:
        if not (folder / name / "config.json").is_file() and not (folder / name / "adapter_config.json").is_file():
            raise InputError(f"{folder / name}: no model here; a run leaves its models in final/ when it has ended")
    hub = HfApi()
    for name, repository in wanted.items():
        try:
            hub.create_repo(repository, private=private, exist_ok=True)
            message = f"{name.replace('_', ' ').capitalize()} trained with Cooper"
            done = hub.upload_folder(
                repo_id=repository, folder_path=folder / name, commit_message=message, ignore_patterns=list(LEFT_OUT)
            )
        except (OSError, HTTPError, HFValidationError) as error:
            raise InputError(
                f"{repository}: the hub at {hub.endpoint} refused the upload: {error}; check the name, and the token "
                "(`hf auth login`, or HF_TOKEN)"
            ) from error
        yield done.commit_url
