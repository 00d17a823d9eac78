"""The figures that the paper (arXiv 2508.05613) prints, what it leaves open, and what we chose instead."""

LABELS = {
    "gsm8k": "GSM8K",
    "svamp": "SVAMP",
    "math500": "MATH500",
    "olympiadbench": "OlympiadBench-EN",
    "math_odyssey": "MathOdyssey",
}
"""The paper's names of the five sets of problems, in its order."""

TABLE: dict[str, dict[str, tuple[float, ...]]] = {
    "qwen2.5-1.5b": {
        "base": (74.10, 84.60, 54.63, 20.17, 39.33),
        "rule": (76.44, 87.26, 57.55, 23.33, 42.83),
        "static": (30.78, 72.04, 29.70, 1.43, 11.89),
        "paper": (77.02, 87.65, 58.05, 23.22, 44.17),
    },
    "llama-3.2-1b": {
        "base": (50.39, 71.33, 29.58, 6.41, 34.77),
        "rule": (56.56, 72.24, 34.20, 7.95, 40.02),
        "static": (36.32, 59.35, 20.70, 0.22, 7.39),
        "paper": (57.14, 73.45, 34.88, 8.02, 39.98),
    },
}
"""avg@8 in per cent, by model, arm and set. Means are computed from these cells: the paper's own, 54.93 and 38.91 for
two of the rows of Qwen, do not follow from them. `cooper`, our default, is no row of the paper."""

ROWS = {
    "base": "no training",
    "rule": "rule",
    "static": "static VerifyRM",
    "paper": "Cooper as published",
    "cooper": "Cooper, our default",
}

CHOICES = (
    ("training problems", "not published; the released script trains on GSM8K", "GSM8K, training split"),
    ("problems a step", "not published; 4 in the released script", "32"),
    ("longest completion in training", "not published; 512 in the released script", "1,024 tokens"),
    ("longest completion in evaluation", "not published", "2,048 tokens"),
    ("assistant", "not published", "Qwen2.5-7B-Instruct behind a server of your own"),
    ("step that is evaluated", "not published; curves end at step 180", "180, the last"),
    ("batch of VerifyRM's training", "16,384 in the released script, so about 11 updates", "64"),
    ("schedule of VerifyRM's learning rate", "not published", "10 updates of warm-up, then a cosine"),
    ("SVAMP", "300 or 1,000 problems: not published", "all 1,000"),
    ("final answers", "not published", "the rule `maths`"),
)
"""What the paper does not say or its code contradicts, and what is chosen here."""

ROWS_AT = (
    "dataset/VerifyRM_training_data.parquet of github.com/ZJU-REAL/cooper, also fiowhahf/VerifyRM_training_data on the "
    "Hugging Face hub (58.7 K rows, Apache-2.0)"
)
"""Where VerifyRM's training rows are."""


def mean(cells: "tuple[float, ...] | list[float]") -> float:
    """The mean over the sets."""
    return sum(cells) / len(cells)
