"""Gives rule verdicts on labelled completions. Engines: cooper, raw (Math-Verify as its documentation shows it).

python benchmarks/speed/verdicts.py cooper --data real_completions.parquet --rows 1500
"""

import random
from pathlib import Path

from math_verify import parse, verify

from cooper_base.data.readers import read_file
from cooper_rl import RuleVerifier
from measure import Meter, report
from workload import arguments


def main() -> None:
    parser = arguments(__doc__, "cooper", "raw")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=1500)
    options = parser.parse_args()
    rows = [row.fields for row in read_file(options.data)]
    drawn = random.Random(options.seed).sample(rows, options.rows)
    pairs = [(row["reference_answer"], row["completion"]) for row in drawn]
    meter = Meter()
    if options.engine == "cooper":
        with RuleVerifier() as verifier:
            verifier.verify("x+1", r"\boxed{1+x}")
            with meter.measure():
                accepted = sum(verdict == "correct" for verdict in verifier.verify_many(pairs))
    else:
        verify(parse("$1$"), parse("1"))
        with meter.measure():
            accepted = sum(verify(parse(f"${answer}$"), parse(completion)) for answer, completion in pairs)
    report(meter, len(pairs), accepted=accepted)


if __name__ == "__main__":
    main()
