"""`python -m crash KILLS [SEED [KEPT]]`: kills training runs KILLS times and says whether they came out the same.

Runs that did not are copied to the folder KEPT.
"""

import logging
import sys
import tempfile
from pathlib import Path

from crash.trial import CrashTest

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("tensorboard").setLevel(logging.ERROR)
    wanted, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with tempfile.TemporaryDirectory() as folder:
        result = CrashTest(Path(folder), seed, Path(sys.argv[3]) if len(sys.argv) > 3 else None).run(wanted)
    lines = [*result.failures, *(f"{phase:14}{count:5}" for phase, count in result.phases.most_common())]
    lines.append(f"kills {result.kills}, equal {result.equal}")
    sys.stdout.write("\n".join(lines) + "\n")
    sys.exit(result.equal != result.kills)
