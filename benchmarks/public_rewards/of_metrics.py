"""Graders that compare an answer with its reference, of packages for checking and for metrics."""

import importlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from registry import Score, absent, alone, bare, found_at, of_module, reward, rewards_of, stub, waited


def _one(names: tuple[tuple[str, str], ...]) -> list[tuple[str, str, tuple[Any, ...], dict[str, Any]]]:
    """Rewards whose maker takes nothing but their name."""
    return [(name, what, (name,), {}) for name, what in names]


# Math-Verify, mathruler, reward-doctor


@reward("math-verify:verify", "box, formula or last number")
def _() -> Score:
    library = importlib.import_module("math_verify")
    return lambda question, reference, completion: library.verify(library.parse(reference), library.parse(completion))


@reward("mathruler:grade_answer", "last box, sympy")
def _() -> Score:
    grader = importlib.import_module("mathruler.grader")
    return lambda question, reference, completion: grader.grade_answer(
        grader.extract_boxed_content(completion), reference
    )


rewards_of(
    "reward-doctor",
    lambda name: of_module(f"reward_doctor.reference:{name}"),
    _one(
        (
            ("exact_match", "the whole text"),
            ("substring_match", "anywhere in the text"),
            ("last_number", "last number"),
            ("boxed_exact", "the only box"),
            ("robust_match", "its recommended matcher"),
        )
    ),
)


# DSPy, AdalFlow, OpenAI's evals, DeepEval, lighteval


rewards_of(
    "dspy",
    alone,
    [
        (name, what, ("dspy.evaluate", f"dspy.evaluate.metrics:{path}", ("dspy.dsp", "dspy.utils")), {})
        for name, what, path in (
            ("em_score", "the whole text, normalised", "em_score"),
            ("f1_score", "words in common (F1)", "f1_score"),
            ("hotpot_f1_score", "words in common (F1)", "hotpot_f1_score"),
            ("precision_score", "words in common (precision)", "precision_score"),
        )
    ],
)


@reward("dspy:answer_exact_match frac .8", "words in common, most of them")
def _() -> Score:
    bare("dspy.evaluate")
    absent("dspy.dsp", "dspy.utils")
    function = found_at("dspy.evaluate.metrics:answer_exact_match")
    return lambda question, reference, completion: function(
        SimpleNamespace(answer=reference), SimpleNamespace(answer=completion), frac=0.8
    )


def _adalflow(name: str) -> Score:
    bare("adalflow.eval")
    absent("adalflow.optim", "adalflow.eval.base")
    made = found_at("adalflow.eval.answer_match_acc:AnswerMatchAcc")(type=name)
    return lambda question, reference, completion: made.compute_single_item(completion, reference)


rewards_of(
    "adalflow",
    _adalflow,
    _one(
        (
            ("exact_match", "the whole text, normalised"),
            ("fuzzy_match", "anywhere in the text, normalised"),
            ("f1_score", "words in common (F1)"),
        )
    ),
)


def _evals(name: str) -> Score:
    bare("evals.elsuite")
    bare("evals.prompt")
    absent("evals.prompt.base", "evals.record")
    stub("evals.record", record_match=lambda *arguments, **options: None)
    vars(importlib.import_module("evals"))["CompletionFn"] = object
    if name == "match":
        match = found_at("evals.api:record_and_check_match")
        return lambda question, reference, completion: match(question, completion, reference) == reference
    utils = importlib.import_module("evals.elsuite.utils")
    if name == "includes":
        return lambda question, reference, completion: utils.get_answer(completion, reference) is not None
    if name == "f1_score":
        return lambda question, reference, completion: utils.f1_score(completion, [reference])
    return lambda question, reference, completion: utils.fuzzy_match(completion, reference)


rewards_of(
    "evals",
    _evals,
    _one(
        (
            ("match", "at the beginning"),
            ("includes", "anywhere in the text"),
            ("fuzzy_match", "either inside the other, normalised"),
            ("f1_score", "words in common (F1)"),
        )
    ),
)


def _deepeval(name: str) -> Score:
    bare("deepeval.scorer")
    absent(*("deepeval.metrics", "deepeval.models", "deepeval.benchmarks", "deepeval.config", "deepeval.confident"))
    absent(
        *(
            "click",
            "requests",
            "pydantic",
            "rich",
            "tqdm",
            "opentelemetry",
            "tenacity",
            "aiohttp",
            "nest_asyncio",
            "dotenv",
        )
    )
    absent(*("deepeval.constants", "deepeval.errors", "deepeval.test_run", "deepeval.tracing", "deepeval.test_case"))
    function = getattr(found_at("deepeval.scorer.scorer:Scorer"), name)
    if name == "quasi_contains_score":
        return lambda question, reference, completion: function([reference], completion)
    return lambda question, reference, completion: function(reference, completion)


rewards_of(
    "deepeval",
    _deepeval,
    _one(
        (
            ("exact_match_score", "the whole text"),
            ("quasi_exact_match_score", "the whole text, normalised"),
            ("quasi_contains_score", "the whole text, one of several"),
        )
    ),
)


# autoevals, openevals, Ragas, Opik, OpenJudge, RM-Gallery, Pydantic Evals, Phoenix


@reward("autoevals:Levenshtein", "distance between the texts")
def _() -> Score:
    made = found_at("autoevals.string:Levenshtein")()
    return lambda question, reference, completion: made.eval(output=completion, expected=reference).score


@reward("autoevals:ExactMatch", "the whole text")
def _() -> Score:
    made = found_at("autoevals.value:ExactMatch")()
    return lambda question, reference, completion: made.eval(output=completion, expected=reference).score


def _openevals(path: str) -> Score:
    bare("openevals.string")
    absent("langsmith", "langchain_core", "langchain", "openai")
    function = found_at(path)
    return lambda question, reference, completion: function(completion, reference)


rewards_of(
    "openevals",
    _openevals,
    [
        ("exact_match", "the whole text", ("openevals.exact:_scorer",), {}),
        ("levenshtein_distance", "distance between the texts", ("openevals.string.levenshtein:_scorer",), {}),
    ],
)


def _ragas(name: str) -> Score:
    bare("ragas.metrics")
    absent("langchain_core", "ragas.dataset_schema", "ragas.run_config")
    stub("ragas.metrics.base", MetricType=SimpleNamespace(SINGLE_TURN="single"), SingleTurnMetric=object)
    made = found_at(f"ragas.metrics._string:{name}")()
    return lambda question, reference, completion: waited(
        made._single_turn_ascore(SimpleNamespace(reference=reference, response=completion), None)
    )


rewards_of(
    "ragas",
    _ragas,
    _one(
        (
            ("ExactMatch", "the whole text"),
            ("StringPresence", "anywhere in the text"),
            ("NonLLMStringSimilarity", "distance between the texts"),
        )
    ),
)


def _opik(module: str, name: str) -> Score:
    bare("opik.evaluation.metrics.heuristics")
    absent("opik.exceptions")
    stub("opik.evaluation.metrics.base_metric", BaseMetric=_Named)
    stub("opik.evaluation.metrics.score_result", ScoreResult=SimpleNamespace)
    metrics = importlib.import_module("opik.evaluation.metrics")
    for each in ("base_metric", "score_result"):
        setattr(metrics, each, importlib.import_module(f"opik.evaluation.metrics.{each}"))
    made = found_at(f"opik.evaluation.metrics.heuristics.{module}:{name}")()
    return lambda question, reference, completion: made.score(output=completion, reference=reference).value


class _Named:
    def __init__(self, name: str = "", *arguments: Any, **options: Any) -> None:
        self.name = name


rewards_of(
    "opik",
    _opik,
    [
        ("Equals", "the whole text", ("equals", "Equals"), {}),
        ("Contains", "anywhere in the text", ("contains", "Contains"), {}),
        ("LevenshteinRatio", "distance between the texts", ("levenshtein_ratio", "LevenshteinRatio"), {}),
    ],
)


def _openjudge(path: str, **options: Any) -> Score:
    bare("openjudge.graders.text")
    bare("openjudge.graders.math")
    absent("openjudge.evaluation_strategy", "openjudge.runner", "jieba", "nltk", "sklearn")
    stub("openjudge.graders.base_grader", BaseGrader=_Named, GraderMode=SimpleNamespace(POINTWISE=1))
    for name in ("GraderScore", "GraderError"):
        setattr(importlib.import_module("openjudge.graders.base_grader"), name, SimpleNamespace)
    found = found_at(path)
    if not isinstance(found, type):
        return lambda question, reference, completion: found(reference, completion, **options)[0]
    made = found(**options)
    return lambda question, reference, completion: (
        waited(made._aevaluate(response=completion, reference_response=reference)).score
    )


_TEXT = "openjudge.graders.text._utils"
rewards_of(
    "py-openjudge",
    _openjudge,
    [
        ("exact_match", "the whole text", (f"{_TEXT}.string_match_compute:compute_exact_match",), {}),
        ("prefix_match", "at the beginning", (f"{_TEXT}.string_match_compute:compute_prefix_match",), {}),
        ("suffix_match", "at the end", (f"{_TEXT}.string_match_compute:compute_suffix_match",), {}),
        ("substring_match", "anywhere in the text", (f"{_TEXT}.string_match_compute:compute_substring_match",), {}),
        ("char_overlap", "characters in common", (f"{_TEXT}.string_match_compute:compute_char_overlap",), {}),
        (
            "NumberAccuracyGrader",
            "numbers in their order",
            ("openjudge.graders.text.number_accuracy:NumberAccuracyGrader",),
            {},
        ),
        (
            "MathExpressionVerifyGrader",
            "any formula, Math-Verify",
            ("openjudge.graders.math.math_expression_verify:MathExpressionVerifyGrader",),
            {},
        ),
    ],
)


class _Registry:
    @staticmethod
    def register(name: str) -> Callable[[type], type]:
        return lambda each: each


class _Fields:
    """A record whose fields have the defaults of its class, as the package's base class gives it."""

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)


class _Record(SimpleNamespace):
    def __class_getitem__(cls, item: Any) -> Any:
        return cls


def _rm_gallery(module: str, name: str) -> Score:
    bare("rm_gallery.gallery.rm.math")
    absent("rm_gallery.core", "jieba", "tiktoken")
    stub("pydantic", Field=lambda default=None, **options: default)
    stub("rm_gallery.core.reward.base", BasePointWiseReward=_Fields)
    stub("rm_gallery.core.reward.registry", RewardRegistry=_Registry)
    stub("rm_gallery.core.reward.schema", RewardDimensionWithScore=_Record, RewardResult=_Record)
    made = found_at(f"rm_gallery.gallery.rm.{module}:{name}")()

    def score(question: str, reference: str, completion: str) -> float:
        answer = SimpleNamespace(content=completion, label={"reference": reference})
        return made._evaluate(SimpleNamespace(output=[SimpleNamespace(answer=answer)])).details[0].score

    return score


rewards_of(
    "rm-gallery",
    _rm_gallery,
    [
        ("AccuracyReward", "the whole text", ("general", "AccuracyReward"), {}),
        ("RougeReward", "words in common (ROUGE-L)", ("general", "RougeReward"), {}),
        ("NumberAccuracyReward", "numbers in their order", ("general", "NumberAccuracyReward"), {}),
        ("MathVerifyReward", "any formula, Math-Verify", ("math.math", "MathVerifyReward"), {}),
    ],
)
