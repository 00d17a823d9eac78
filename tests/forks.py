"""Commands in processes of their own that begin with everything imported.

Importing torch and transformers takes seconds. A fork server does it once; after that every command starts as a real
process within a moment. There is one fork server in a process, and one list of what it imports.
"""

import multiprocessing

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
