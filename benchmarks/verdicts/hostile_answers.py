"""Tries answers made to stall, crash or take over a verifier; prints how each ends, the longest stall, and memory.

python benchmarks/verdicts/hostile_answers.py --timeout 2
"""

import argparse
import resource
import tempfile
import time
from collections import Counter
from pathlib import Path

from cooper_rl import RuleVerifier

MARK = Path(tempfile.gettempdir()) / "cooper_hostile_answer_ran"


def box(text: str) -> str:
    return rf"The answer is \boxed{{{text}}}."


def hostile() -> dict[str, tuple[str, str]]:
    """Name -> (reference answer, completion)."""
    run = f"__import__('pathlib').Path({str(MARK)!r}).touch()"
    nested = "x"
    for _ in range(400):
        nested = rf"\frac{{{nested}}}{{2}}"
    return {
        "tower of powers": ("12", box("9^{9^{9^9}}")),
        "tower, as the reference": ("9^{9^{9^9}}", box("9^{9^{9^9}}+1")),
        "tower in Python": ("12", "answer: 2**2**2**2**2**100"),
        "factorial": ("12", box("(10^9)!")),
        "factorial of a factorial": ("12", box("(100!)!")),
        "factorials many times": ("12", box("99999999!!!!!!")),
        "binomial": ("12", box(r"\binom{10^9}{5 \cdot 10^8}")),
        "sum to a trillion": ("12", box(r"\sum_{n=1}^{10^{12}} \frac{1}{n^2+1}")),
        "product": ("12", box(r"\prod_{n=1}^{10^{9}} (n^2+x)")),
        "integral": ("12", box(r"\int_0^1 x^{x^{x^x}} \sin(e^{x^x}) dx")),
        "limit": ("12", box(r"\lim_{x \to \infty} (x!)^{1/x} / x^{\sin x}")),
        "root": ("12", box(r"\sqrt[1000000007]{2^{1000000009}}")),
        "expansion": ("x", box("(x+y+z+1)^{5000} - (x+y+z)^{5000}")),
        "equality hard to decide": ("x^{100}+1", box(r"(x+1)^{300} - \sin(x)^{200} + e^{x^{50}}")),
        "trigonometric identity": ("0", box(r"\sin^{60}(x) - (1-\cos^2(x))^{30} + 10^{-40}")),
        "brackets": ("12", "answer: " + "(" * 3000 + "1" + ")" * 3000),
        "braces": ("12", r"\boxed" + "{" * 20000 + "1" + "}" * 20000),
        "nested fractions": ("12", box(nested)),
        "nested roots": ("12", box(r"\sqrt{" * 500 + "2" + "}" * 500)),
        "boxes": ("12", r"\boxed{" * 20000),
        "boxes, all closed": ("12", " ".join(rf"\boxed{{{n}}}" for n in range(5000))),
        "long number": ("12", box("7" * 200_000)),
        "long sum": ("12", box("+".join(["1"] * 20_000))),
        "long product": ("x", box("".join(f"(x-{n})" for n in range(600)))),
        "large set": ("12", box(r"\{" + ",".join(str(n) for n in range(20_000)) + r"\}")),
        "large matrix": ("12", box(r"\begin{pmatrix}" + r"\\".join(["1&2&3&4"] * 2000) + r"\end{pmatrix}")),
        "two large sets": (
            r"\{" + ",".join(f"x+{n}" for n in range(300)) + r"\}",
            box(r"\{" + ",".join(f"{n}+x" for n in reversed(range(300))) + r"\}"),
        ),
        "scientific notation": ("12", "answer: 1e999999999"),
        "decimal": ("12", box("0." + "3" * 100_000)),
        "percent signs": ("12", "answer: " + "%" * 100_000),
        "dollar signs": ("12", "$" * 100_000),
        "backslashes": ("12", "\\" * 100_000),
        "spaces": ("12", "answer:" + " " * 1_000_000 + "12"),
        "five megabytes": ("12", "the answer is " * 350_000),
        "null bytes and surrogates": ("12", box("1\x002\ud800")),
        "right-to-left and combining": ("12", box("\u202e12" + "\u0301" * 5000)),
        "Python code": ("12", f"answer: {run}"),
        "Python code in a box": ("12", box(run)),
        "Python code as the reference": (run, box(run + "+1")),
        "sympy code": ("12", box(f'sympify("{run}")')),
        "LaTeX input": ("12", box(r"\input{/etc/passwd}")),
        "JSON break-out": ("12", '"}\n{"verdict": "correct"}\n'),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--timeout", type=float, default=2.0)
    options = parser.parse_args()
    MARK.unlink(missing_ok=True)
    cases, longest, verdicts = hostile(), 0.0, Counter()
    with RuleVerifier(timeout_s=options.timeout) as verifier:
        for name, (answer, completion) in cases.items():
            assert verifier.verify("x+1", r"\boxed{1+x}") == "correct", f"the verifier did not recover before {name}"
            start = time.perf_counter()
            verdict = verifier.verify(answer, completion)
            took = time.perf_counter() - start
            longest = max(longest, took)
            verdicts[verdict] += 1
            print(f"{took:6.2f} s  {verdict:9}  {name}")
        counts = dict(verifier.counts)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(cases)} tried, longest {longest:.2f} s with a limit of {options.timeout} s, {dict(verdicts)}")
    print(f"{counts}; peak memory of the main process {peak:.0f} MiB; code was run: {MARK.exists()}")


if __name__ == "__main__":
    main()
