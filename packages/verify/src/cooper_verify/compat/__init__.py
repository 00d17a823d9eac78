"""Drop-ins: the rule behind the functions that other projects' callers already call.

| in place of | here |
|---|---|
| Math-Verify's `parse`, `verify`, `math_metric`, its extraction configs and `TimeoutException` | the same names |
| verl's `reward_score.math_verify.compute_score`, `default_compute_score` and custom reward function | the same names |
| TRL's `accuracy_reward` | `accuracy_reward` |
| a reward function of a `verifiers` rubric | `correct_answer` |

They return what those return and never raise. They work in any thread, process and event loop, because time is limited
in processes that can be killed, not by signals. Each file says what differs.
"""

from cooper_verify.compat.math_verify import ExprExtractionConfig as ExprExtractionConfig
from cooper_verify.compat.math_verify import LatexExtractionConfig as LatexExtractionConfig
from cooper_verify.compat.math_verify import StringExtractionConfig as StringExtractionConfig
from cooper_verify.compat.math_verify import TimeoutException as TimeoutException
from cooper_verify.compat.math_verify import math_metric as math_metric
from cooper_verify.compat.math_verify import parse as parse
from cooper_verify.compat.math_verify import verify as verify
from cooper_verify.compat.trl import accuracy_reward as accuracy_reward
from cooper_verify.compat.verifiers import correct_answer as correct_answer
from cooper_verify.compat.verl import compute_score as compute_score
from cooper_verify.compat.verl import default_compute_score as default_compute_score
