"""The kind of a reference answer."""

import pytest

from cooper_verify.rules.verdicts.fast_path import reference_kind

KINDS = {
    "maths": [
        *[
            "12",
            "-5",
            "+5",
            "1,234",
            "3/4",
            "1 1/2",
            "1e-05",
            "6.02e23",
            r"6.02 \times 10^{23}",
            "10^{-8}",
            "0.0011_{2}",
        ],
        *["12 apples", "9 (apples)", "$12", "€20", "50%", r"90^\circ", "20 °C", "4ft", r"15\mbox{ cm}^2", "5 m/s"],
        *[r"8\sqrt{3}\text{ square inches}", r"1.85\ \text{USD}", r"\approx 8.24 \text{ mph}", r"12\text{ and }13"],
        *["5 ft 10 in", "12 thousand", r"12\text{ million}", "7 N", "7 \u20ac", "xy", "zyx"],
        *["x", "n", "i", "K", r"\pi", "pi", "2x+1", "x=3", "2xy", "ab + ac + bc", "2RC+R+C", "AB=9, CD=4", "p - q"],
        *[r"\sin x", "ln 2", "f(x)=x^2", "N2^{-N}", r"\frac{NO}{BO}=\frac{1}{\sqrt{6}}", r"S_{MBCN}:S=7:32", "1:2"],
        *["[1,2)", r"(-\infty, 3) \cup (3, \infty)", r"\{1,2,3\}", r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}"],
        *["x = 3 or x = 5", "3 or -3", "1,22", "27,93", r"k \in \mathbb{Z}", "π/2", "x²", r"\\frac{1}{5}"],
    ],
    "choice": [
        *["B", "(B)", "B.", "B)", r"\text{B}", r"\text{(E)}", r"(\text{E})", r"\mathbf{B}", "**B**", "(b)", "option C"],
        *["B) apple", "(D) 12", "A. 5", r"\textbf{(A)}\ 12", "A, C", "A and B", r"\text{A,B,E}", "C > B > A"],
    ],
    "exact": [
        *[
            "Tokyo",
            r"\text{Evelyn}",
            r"\mbox{four}",
            "even",
            "Yes",
            "No",
            "True",
            "None",
            "Mrs. Hilt",
            "Brand B",
            "東京",
        ],
        *["2024-01-05", "January 5, 2024", "June 20", "3 May", "1/5/2024", "11:30", "9 am", "12 noon", "500 BC"],
        *["10-12", "555-1234", "1.2.3", "3x5", "#5", "6th", "5'10", "5 km north", "10 Downing Street"],
        *["A+", "N/A", "p.m", "H2O", "CO_2", "NaCl", "x-axis", "twenty-one", ">", "(iv)", "A or B", "ab", "LQSX"],
        *[r"\angle ABC", r"\overline{CD}", "no solution", "at least 5", "Jim > Tim", "(cat)", "5 to 6", "A. Lincoln"],
        *["f(x)=ax+b, where b is an integer", "a. 3, b. 4", "infinity"],
    ],
}


@pytest.mark.parametrize(("reference", "kind"), [(text, kind) for kind, texts in KINDS.items() for text in texts])
def test_the_kind_of_a_reference(reference: str, kind: str):
    assert reference_kind(reference) == kind
