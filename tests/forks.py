"""Commands in processes of their own that begin with everything imported.

Importing torch and transformers takes seconds. A fork server does it once; after that every command starts as a real
process within a moment. There is one fork server in a process, and one list of what it imports.
"""

import multiprocessing
import os
import runpy
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "cooper_base.cli.main",
        "cooper_rl.cli.train",
        "cooper_rl.run.trainer",
        "cooper_rl.service.server",
        "cooper_audit.report.report",
        "torch.utils.tensorboard.writer",
        "transformers.models.qwen2.modeling_qwen2",
        "transformers.models.qwen2.tokenization_qwen2",
        "transformers.generation.configuration_utils",
        "transformers.utils.chat_template_utils",
    ]
)


def start_script(script: Path, output: Path, hub: Path, folder: Path | None = None) -> BaseProcess:
    """Start a script as `python script.py` does, in its own folder or in another one, with `hub` as the cache of the
    Hugging Face hub. What it prints goes to `output`."""
    process = FORKS.Process(target=_run, args=(script, output, hub, folder or script.parent))
    process.start()
    return process


def _run(script: Path, output: Path, hub: Path, folder: Path) -> None:
    from huggingface_hub import constants

    os.environ["MPLBACKEND"], constants.HF_HUB_CACHE = "Agg", str(hub)
    with output.open("wb", buffering=0) as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    os.chdir(folder)
    sys.argv, sys.path[:0] = [script.name], [str(script.parent)]
    runpy.run_path(str(script), run_name="__main__")
