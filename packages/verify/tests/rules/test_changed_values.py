"""Words, letters and signs that make the number beside them another value, a conditional one, or none at all.

Each list holds ways of one kind, and every way is tried wherever people write it: inside a box, behind it, in a
sentence. No way may be `correct` for the bare number, and what only repeats the question may not cost a right answer.
"""

from functools import cache

import pytest

from cooper_base.data.problem import Problem
from cooper_base.data.verdict import Verdict
from cooper_verify.rules.kinds.maths import RuleVerifier
from cooper_verify.rules.rule import OneRule, Rule

SCALES = [
    *[
        "thousand",
        "million",
        "bn",
        "tn",
        "dozen",
        "lakh",
        "crore",
        "kk",
        "gross",
        "ppm",
        "ppb",
        "bp",
        "bps",
        "basis points",
    ],
    *[
        "\u2030",
        "per mille",
        "mio",
        "Tsd.",
        "mld",
        "milyon",
        "ribu",
        "juta",
        "\u0442\u044b\u0441.",
        "\u043c\u043b\u043d",
    ],
    *[
        "\u4e07",
        "\ub9cc",
        "tri\u1ec7u",
        "\u0623\u0644\u0641",
        "\u0939\u091c\u093c\u093e\u0930",
        "k dollars",
        "M people",
    ],
]
CONDITIONS = [
    *["if even", "if n is even", "for even n", "for all odd n", "for n > 2", "for x<1", "when x>0", "unless n is 1"],
    *[
        "whenever n>0",
        "where n is odd",
        "with n even",
        "provided n>1",
        "provided that x>0",
        "assuming n>2",
        "otherwise",
    ],
    *["except when n is 3", "as long as n > 3", "such that x>0", "as n grows", "given n > 3"],
]
REJECTIONS = ["is wrong", "(incorrect)", "rejected", "(extraneous)", "impossible", "is not the answer"]
BASES = ["in hex", "(hex)", "octal", "in binary", "in base 7", "(mod 5)"]
WAYS = [
    *[r"\boxed{{12\text{{ {}}}}}", r"\boxed{{12\ \mathrm{{{}}}}}", r"\boxed{{12}}\text{{ {}}}"],
    *[r"The answer is $12\text{{ {}}}$.", "The answer is 12 {}.", r"\boxed{{12}} {}"],
]


@cache
def rule(kind: str) -> Rule:
    return OneRule.model_validate({"rule": {"kind": kind}}).rule.build()


def verdicts(kind: str, answer: str, texts: list[str], question: str = "What is it?") -> list[Verdict]:
    return rule(kind).verify_problems([(Problem("p", question, answer), text) for text in texts])


@pytest.mark.parametrize("words", [*SCALES, *CONDITIONS, *REJECTIONS, *BASES])
def test_a_changed_number_is_not_the_number(words: str):
    texts = [way.format(words) for way in WAYS]
    assert [
        text for text, verdict in zip(texts, verdicts("maths", "12", texts), strict=True) if verdict == "correct"
    ] == []
    in_box = [way.format(words) for way in WAYS[:1]]
    assert verdicts("numeric", "12", in_box) != ["correct"]


def test_an_attached_letter_may_mean_thousands_and_a_spaced_one_is_a_unit():
    attached = [
        r"\boxed{12\text{K}}",
        r"\boxed{12K}",
        "The answer is 12K.",
        r"\boxed{12\text{k}}",
        r"\boxed{12\text{M}}",
    ]
    for answer in ("12", "12000"):
        assert "correct" not in (found := verdicts("maths", answer, attached))
        assert answer == "12" or "wrong" not in found[:4]
    assert verdicts("maths", "300", [r"\boxed{300\text{ K}}", r"\boxed{300~\mathrm{K}}"]) == ["correct"] * 2
    for kind in ("maths", "numeric"):
        in_kelvins = [r"\boxed{300\text{K}}", "The answer is 300K.", "The answer is 300 K.", r"\boxed{300\,\mathrm{K}}"]
        assert verdicts(kind, "300 K", in_kelvins) == ["correct"] * 4
    assert verdicts("numeric", "12", ["12 M", "12 k", r"\boxed{12\text{K}}"]) == ["unparsed"] * 3


def test_a_story_around_the_answer_costs_no_right_answer():
    texts = [
        *["She saves \\boxed{12} dollars if she hires the accountant.", "The answer is 12 for the given triangle."],
        *["The answer is 12 when rounded to the nearest integer.", "The answer is 12, where we used Heron's formula."],
        *["Thus \\boxed{12} for n = 5.", "\\boxed{12}, since n is even.", "Bill is on the $\\boxed{12}$th floor."],
        *[
            "Mary got $\\boxed{12}$ M&Ms in total.",
            "The answer is 12, assuming gravity.",
            r"\boxed{12\text{ mm}}",
        ],
        *[r"\boxed{12}\text{ cm}", "Is the answer 12? Yes, it is 12.", "So the answer is 12 if we round."],
        *[
            "I do not know if this is easy. The answer is 12.",
            "If it is right, the answer is 12.",
            "The answer is 12 miles.",
        ],
    ]
    question = (
        "How many dollars does she save if she hires the accountant? On which floor is Bill of the given triangle? n"
    )
    question += " is even, by Heron's formula. How many M&Ms has Mary got, if we round, assuming gravity, where"
    question += " the formula is used when the result is rounded to the nearest integer, and n = 5?"
    found = verdicts("maths", "12", texts, question)
    assert dict(zip(texts, found, strict=True)) == dict.fromkeys(texts, "correct")


def test_what_is_denied_or_asked_is_no_answer():
    denied = [
        "cannot be",
        "can't be",
        "isn't",
        "is not equal to",
        "is neither",
        "is no longer",
        "differs from",
        "is unlikely to be",
    ]
    texts = [f"The answer {verb} 12." for verb in denied]
    texts += [
        "I doubt that the answer is 12.",
        "I don't think the answer is 12.",
        "It is unclear whether the answer is 12.",
    ]
    texts += [
        "La respuesta no es 12.",
        "\u7b54\u3048\u306f12\u3067\u306f\u306a\u3044\u3002",
        "The answer is 12?",
        "~~12~~",
        "<del>12</del>",
    ]
    assert [
        text for text, verdict in zip(texts, verdicts("maths", "12", texts), strict=True) if verdict == "correct"
    ] == []
    for kind, answer in (("exact", "Paris"), ("choice", "B")):
        texts = [
            f"I doubt that the answer is {answer}.",
            rf"\boxed{{\text{{{answer}}}}}\text{{ is wrong}}",
            f"~~{answer}~~",
        ]
        texts += [
            f"The answer is {answer}, which is wrong.",
            rf"\boxed{{\neg {answer}}}",
            f"The answer is not {answer}.",
        ]
        assert "correct" not in verdicts(kind, answer, texts)
    assert verdicts("choice", "B", [r"\boxed{B'}", r"\boxed{B^\prime}", r"\boxed{B}"]) == [
        "unparsed",
        "unparsed",
        "correct",
    ]


def test_tags_entities_signs_of_money_and_spaces_carry_no_meaning():
    texts = [
        *[
            "<b>12</b>",
            "The answer is <strong>12</strong>.",
            "The answer is &nbsp;12.",
            "The answer is \u300c12\u300d.",
            "\u00ab12\u00bb",
        ],
        *[r"\boxed{\hspace{1em}12}", r"\boxed{\phantom{0}12}", r"\boxed{\pounds 12}", r"\boxed{\text{\u20ac}12}"],
        *[r"\boxed{\text{Rs. }12}", "The answer is \u20ac 12.", "<s>13</s> 12", "The answer is ~~13~~ 12."],
    ]
    texts = [text.replace(r"\u20ac", "\u20ac") for text in texts]
    assert dict(zip(texts, verdicts("maths", "12", texts), strict=True)) == dict.fromkeys(texts, "correct")
    assert verdicts("maths", "7 cm^2", [r"\boxed{7\text{ cm}<sup>2</sup>}"]) == ["correct"]
    assert "correct" not in verdicts(
        "maths", "12", ["12<sup>2</sup>", "12<sub>8</sub>", r"\boxed{12...}", "&minus;12 &lt; 13"]
    )
    with RuleVerifier() as verifier:
        assert verifier.verify("x^2", "The answer is x<sup>2</sup>.") == "correct"
        assert verifier.verify("a~~b", r"\boxed{a~~b}") == "correct"  # in LaTeX ~~ is two spaces


def test_a_box_that_is_not_closed_leaves_no_answer_of_any_kind():
    for kind, answer in (("exact", "Paris"), ("choice", "B"), ("maths", "7"), ("numeric", "7")):
        ends = [answer + r" \boxed{x", rf"The answer is {answer}. \boxed{{", rf"\boxed{{{answer}}} and \boxed{{Q"]
        assert verdicts(kind, answer, ends) == ["unparsed"] * 3, kind
        assert verdicts(kind, answer, [rf"\boxed{{x The answer is \boxed{{{answer}}}"]) == ["correct"], kind
