"""Rules whose verdicts are wrong for a known share of the answers, as functions of problem and completion.

Which answers these are is drawn by their hash: the same text always gets the same verdict, and no form of answer is
favoured, so a policy can learn nothing from the slips but the answers themselves.
"""

import hashlib

from cooper_base.data.verdict import UserVerdict
from cooper_lab.arithmetic.problems import gold
from cooper_rl import Problem


def slips_0(problem: Problem, completion_text: str) -> UserVerdict:
    """Never wrong."""
    return _verdict(problem, completion_text, missed=0, accepted=0)


def slips_2(problem: Problem, completion_text: str) -> UserVerdict:
    """Wrong about 2 % of the right answers and 2 % of the wrong ones."""
    return _verdict(problem, completion_text, missed=0.02, accepted=0.02)


def slips_4(problem: Problem, completion_text: str) -> UserVerdict:
    """Wrong about 4 % of the right answers and 4 % of the wrong ones."""
    return _verdict(problem, completion_text, missed=0.04, accepted=0.04)


def paper_rule(problem: Problem, completion_text: str) -> UserVerdict:
    """Rejects 37 % of the right answers and accepts 2.6 % of the wrong ones.

    Where half of the answers are right, as at the start, that is the recall of .63 and the precision of .96 that
    arXiv 2508.05613 reports of its rule.
    """
    return _verdict(problem, completion_text, missed=0.37, accepted=0.026)


def _verdict(problem: Problem, text: str, missed: float, accepted: float) -> UserVerdict:
    drawn = int.from_bytes(hashlib.sha256(f"slip {problem.question} {text}".encode()).digest()[:4]) / 2**32
    right = gold(problem, text)
    slips = drawn < (missed if right else accepted)
    return "correct" if right != slips else "wrong"
