"""Asks the Hugging Face hub, with an answer or a fault within seconds."""

import threading
from concurrent.futures import Future
from typing import Any

HUB_TIMEOUT_S = 5.0
"""Without a network the hub's own libraries take from 26 to 46 s."""


def ask_the_hub(name: str, file: str, kind: str = "model") -> None:
    """Ask for a file of a model or a data set. Raises what huggingface_hub raises, and TimeoutError."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url  # noqa: PLC0415 - slow, and few commands ask

    answer: Future[Any] = Future()

    def ask() -> None:
        try:
            answer.set_result(get_hf_file_metadata(hf_hub_url(name, file, repo_type=kind), timeout=HUB_TIMEOUT_S))
        except Exception as error:  # noqa: BLE001 - the future tells it
            answer.set_exception(error)

    threading.Thread(target=ask, daemon=True).start()  # a name server that is silent has no timeout of ours
    try:
        answer.result(HUB_TIMEOUT_S + 1)
    except TimeoutError as error:
        raise TimeoutError(f"no answer within {HUB_TIMEOUT_S:g} s") from error


def why_silent(name: str, file: str, kind: str) -> str | None:
    """Why the hub cannot be asked for a file; None if it answers, whatever it says."""
    from huggingface_hub.errors import HfHubHTTPError  # noqa: PLC0415

    try:
        ask_the_hub(name, file, kind)
    except (HfHubHTTPError, ValueError):  # ValueError: no possible name
        return None
    # No narrower type will do: network errors come from whichever HTTP library the hub's version uses.
    except Exception as error:  # noqa: BLE001
        return str(error).strip().partition("\n")[0]
    return None
