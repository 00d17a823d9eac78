"""VerifyBench and VerifyBench-Hard by their names on the hub."""

from pathlib import Path

from cooper_rl import InputError

HUB = "ZJU-REAL/VerifyBench"
FILES = {HUB: "verify_bench.jsonl", f"{HUB}-Hard": "verify_bench_hard.jsonl"}
"""The names that `bench` takes in place of a file, and the file of the data set `HUB` that each stands for."""


def file_of(path: Path) -> Path:
    """A file, or the file that a name of `FILES` stands for, downloaded once. Raises InputError without the hub."""
    name = FILES.get(path.as_posix())
    if name is None or path.exists():
        return path
    from huggingface_hub import hf_hub_download  # noqa: PLC0415 - slow to import
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError  # noqa: PLC0415

    try:
        return Path(hf_hub_download(HUB, name, repo_type="dataset"))
    except (OSError, HfHubHTTPError, LocalEntryNotFoundError) as error:
        raise InputError(
            f"{path}: cannot be read from the hub ({error}); download {name} from "
            f"https://huggingface.co/datasets/{HUB} and name the file"
        ) from error
