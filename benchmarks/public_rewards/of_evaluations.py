"""Graders that packages for evaluation and for checking answers ship."""

import functools
import importlib
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from registry import Score, absent, alone, bare, found_at, reward, rewards_of, stub, waited

# lm-eval: the filter and the metric of a task's file, or its own `process_results`


def _filtered(pattern: str, select: int, ignored: tuple[str, ...]) -> Score:
    def plain(text: str) -> str:
        return functools.reduce(lambda left, regex: re.sub(regex, "", left), ignored, text).lower()

    def score(question: str, reference: str, completion: str) -> float:
        matches = re.findall(pattern, completion)
        match = matches[select] if matches else "[invalid]"
        given = next((group for group in match if group), "") if isinstance(match, tuple) else match
        return float(plain(given.strip()) == plain(reference))

    return score


_GSM8K = (",", r"\$", "(?s).*#### ", r"\.$")
_PUNCTUATION = (r"[!-/:-@\[-`{-~]",)
rewards_of(
    "lm-eval",
    _filtered,
    [
        ("gsm8k strict-match", "number after ####", (r"#### (\-?[0-9\.\,]+)", 0, _GSM8K), {}),
        ("gsm8k flexible-extract", "last number", (r"(-?[$0-9.,]{2,})|(-?[0-9]+)", -1, _GSM8K), {}),
        ("gsm8k_cot_zeroshot strict-match", "The answer is", (r"The answer is (\-?[0-9\.\,]+).", 0, _GSM8K), {}),
        (
            "gsm8k_platinum_cot_llama strict-match",
            "The final answer is",
            (r"The final answer is ((-?[$0-9.,]{2,})|(-?[0-9]+))", -1, _GSM8K),
            {},
        ),
        ("mgsm_en_cot", "The answer is", (r"The answer is (\-?[0-9\.\,]+)", 0, _PUNCTUATION), {}),
    ],
)


def _lm_eval(module: str, results: Callable[..., Any]) -> Score:
    bare(f"lm_eval.tasks.{module}")
    absent("datasets")
    utils = importlib.import_module(f"lm_eval.tasks.{module}.utils")
    return lambda question, reference, completion: results(utils.process_results, reference, completion)


rewards_of(
    "lm-eval",
    _lm_eval,
    [
        ("aime", "dollars or box", ("aime", lambda f, ref, text: f({"Answer": ref}, [text])["exact_match"]), {}),
        (
            "hendrycks_math",
            "between the dollars",
            ("hendrycks_math", lambda f, ref, text: f({"solution": rf"\boxed{{{ref}}}"}, [text])["exact_match"]),
            {},
        ),
        (
            "minerva_math",
            "Minerva's sentence, sympy or Math-Verify",
            (
                "minerva_math",
                lambda f, ref, text: max(f({"answer": ref, "solution": rf"\boxed{{{ref}}}"}, [text]).values()),
            ),
            {},
        ),
        (
            "leaderboard_math",
            "Minerva's sentence, sympy",
            ("leaderboard.math", lambda f, ref, text: f({"answer": ref}, [text])["exact_match"]),
            {},
        ),
        (
            "putnam_axiom",
            "box, sympy",
            ("putnam_axiom", lambda f, ref, text: f({"answer": ref}, [text])["exact_match"]),
            {},
        ),
        (
            "agieval_math",
            "box, dollars or text",
            ("agieval", lambda f, ref, text: f({"answer": ref}, [text])["acc"]),
            {},
        ),
        (
            "hrm8k",
            "box, dollars or text",
            ("hrm8k.default", lambda f, ref, text: f({"answer": ref}, [text])["exact_match"]),
            {},
        ),
        (
            "jfinqa",
            "answer line, within 1 %",
            ("jfinqa", lambda f, ref, text: f({"answer": ref}, [text])["numerical_match"]),
            {},
        ),
        ("drop", "words in common (F1)", ("drop", lambda f, ref, text: f({"answers": [(ref,)]}, [text])["f1"]), {}),
    ],
)


# Inspect


def _inspect(name: str, *arguments: Any, **options: Any) -> Score:
    scorer = importlib.import_module("inspect_ai.scorer")
    made = getattr(scorer, name)(*arguments, **options)

    def score(question: str, reference: str, completion: str) -> Any:
        state = SimpleNamespace(output=SimpleNamespace(completion=completion))
        value = waited(made(state, scorer.Target(reference))).value
        return {"C": 1.0, "I": 0.0}.get(value, value)

    return score


rewards_of(
    "inspect-ai",
    _inspect,
    [
        ("match end", "at the end", ("match",), {}),
        ("match begin", "at the beginning", ("match", "begin"), {}),
        ("match any", "anywhere in the text", ("match", "any"), {}),
        ("match exact", "the whole text", ("match", "exact"), {}),
        ("match end numeric", "last number", ("match",), {"numeric": True}),
        ("match any numeric", "any number", ("match", "any"), {"numeric": True}),
        ("includes", "anywhere in the text", ("includes",), {}),
        ("answer line", "ANSWER: line", ("answer", "line"), {}),
        ("answer word", "ANSWER: word", ("answer", "word"), {}),
        ("exact", "the whole text, normalised", ("exact",), {}),
        ("f1", "words in common (F1)", ("f1",), {}),
        ("math", "box, formula or last line, sympy", ("math",), {}),
    ],
)


# Eval Protocol


def _eval_protocol(module: str, name: str, **options: Any) -> Score:
    bare("eval_protocol.rewards")

    class Message(SimpleNamespace):
        pass

    stub(
        "eval_protocol.models",
        Message=Message,
        ChatCompletionContentPartParam=dict,
        ChatCompletionContentPartTextParam=dict,
        EvaluateResult=SimpleNamespace,
        MetricResult=SimpleNamespace,
    )
    stub("eval_protocol.typed_interface", reward_function=lambda function=None, **_: function or (lambda each: each))
    absent("eval_protocol.reward_function")
    function = found_at(f"eval_protocol.rewards.{module}:{name}")

    def score(question: str, reference: str, completion: str) -> float:
        messages = [Message(role="user", content=question), Message(role="assistant", content=completion)]
        given = [Message(role="assistant", content=reference)] if module.startswith("accuracy") else reference
        return function(messages=messages, ground_truth=given, **options).score

    return score


rewards_of(
    "eval-protocol",
    _eval_protocol,
    [
        ("math_reward", "box, tag, #### or any number", ("math", "math_reward"), {}),
        ("accuracy_reward", "extracted answer, text or number", ("accuracy", "accuracy_reward"), {}),
        (
            "list_comparison_math_reward",
            "a list of numbers",
            ("list_comparison_math_reward", "list_comparison_math_reward"),
            {},
        ),
        (
            "cosine_scaled_accuracy_length_reward",
            "accuracy scaled by length",
            ("accuracy_length", "cosine_scaled_accuracy_length_reward"),
            {"max_length": 100},
        ),
        ("length_reward", "length (alone)", ("length", "length_reward"), {"target_length": 50}),
        ("format_reward", "thought and answer tags (alone)", ("format", "format_reward"), {}),
        ("repetition_penalty_reward", "repetition (alone)", ("repetition", "repetition_penalty_reward"), {}),
        ("reasoning_steps_reward", "words of steps (alone)", ("reasoning_steps", "reasoning_steps_reward"), {}),
    ],
)


# OpenCompass and EvalScope


def _opencompass(module: str) -> Any:
    bare("opencompass.datasets")
    bare("opencompass.utils")
    bare("opencompass.openicl.icl_evaluator")
    absent("datasets", "opencompass.openicl.icl_evaluator.icl_base_evaluator", "opencompass.registry", "mmengine")
    evaluator = type("BaseEvaluator", (), {"__init__": lambda self, *arguments, **options: None})
    stub("opencompass.openicl", BaseEvaluator=evaluator, __path__=sys_path_of("opencompass.openicl"))
    vars(importlib.import_module("opencompass.openicl.icl_evaluator"))["BaseEvaluator"] = evaluator
    vars(importlib.import_module("opencompass.utils"))["get_data_path"] = str
    stub("opencompass.datasets.base", BaseDataset=object)
    return importlib.import_module(f"opencompass.{module}")


def sys_path_of(package: str) -> list[str]:
    return list(importlib.import_module(package).__path__)


def _evaluated(module: str, evaluator: str, postprocess: str | None, several: bool = False) -> Score:
    found = _opencompass(module)
    process = (lambda text: text) if postprocess is None else getattr(found, postprocess)
    options = {"lang": "en"} if postprocess == "mgsm_postprocess" else {}

    def score(question: str, reference: str, completion: str) -> float:
        references = [[reference] if several else reference]
        result = getattr(found, evaluator)().score([process(completion, **options)], references)
        return result.get("accuracy", result.get("score")) / 100

    return score


@reward("opencompass:math_postprocess_v2, is_equiv", "box or sentence, text rules")
def _() -> Score:
    maths = _opencompass("datasets.math")
    evaluator = maths.MATHEvaluator(version="v2")
    return lambda question, reference, completion: evaluator.is_equiv(maths.math_postprocess_v2(completion), reference)


@reward("opencompass:math_postprocess, is_equiv", "sentence or box, text rules")
def _() -> Score:
    maths = _opencompass("datasets.math")
    evaluator = maths.MATHEvaluator(version="v1")
    return lambda question, reference, completion: evaluator.is_equiv(maths.math_postprocess(completion), reference)


@reward("opencompass:math_intern", "box or sentence, text rules")
def _() -> Score:
    maths = _opencompass("datasets.math_intern")
    return lambda question, reference, completion: maths.is_equiv(maths.math_intern_postprocess(completion), reference)


rewards_of(
    "opencompass",
    _evaluated,
    [
        ("gsm8k", "last number", ("datasets.gsm8k", "Gsm8kEvaluator", "gsm8k_postprocess"), {}),
        ("mgsm", "last number after Answer:", ("datasets.mgsm", "MGSM_Evaluator", "mgsm_postprocess"), {}),
        ("math401", "the whole text, a number", ("datasets.math401", "Math401Evaluator", None), {}),
        ("bbh", "after 'the answer is'", ("datasets.bbh", "BBHEvaluator", None), {}),
        (
            "triviaqa",
            "first line or after 'answer is', words",
            ("datasets.triviaqa", "TriviaQAEvaluator", None, True),
            {},
        ),
        ("nq", "first line or after 'answer is', words", ("datasets.natural_question", "NQEvaluator", None, True), {}),
        (
            "EMEvaluator",
            "the text's beginning",
            ("openicl.icl_evaluator.icl_em_evaluator", "EMEvaluator", None, True),
            {},
        ),
    ],
)


@reward("evalscope:extract_answer, math_equal", "box, sentence or last number")
def _() -> Score:
    bare("evalscope.metrics")
    bare("evalscope.api")
    absent("evalscope.api.metric")
    stub("evalscope.api.metric", MetricUnavailableError=type("MetricUnavailableError", (Exception,), {}))
    maths = importlib.import_module("evalscope.metrics.math")
    return lambda question, reference, completion: maths.math_equal(maths.extract_answer(completion), reference)


# HELM

HELM = "helm.benchmark.metrics.evaluate_reference_metrics"
MATHS = "helm.benchmark.scenarios.math_scenario"
_HELM_AWAY = (
    *("datasets", "nltk.translate", "rouge_score", "helm.benchmark.adaptation", "helm.benchmark.metrics.statistic"),
    *("helm.benchmark.metrics.code_metrics_helper", "helm.benchmark.metrics.cleva_metrics_helper"),
    *("helm.benchmark.metrics.metric", "helm.benchmark.metrics.metric_name", "helm.benchmark.metrics.metric_service"),
    *("helm.benchmark.metrics.nltk_helper", "helm.benchmark.scenarios.code_scenario", "helm.benchmark.presentation"),
    *("helm.benchmark.scenarios.scenario", "helm.common"),
)
rewards_of(
    "crfm-helm",
    alone,
    [
        (name, what, ("helm.benchmark.metrics", path, _HELM_AWAY, True), {})
        for name, what, path in (
            ("exact_match", "the whole text", f"{HELM}:exact_match"),
            ("quasi_exact_match", "the whole text, normalised", f"{HELM}:quasi_exact_match"),
            ("prefix_exact_match", "at the beginning", f"{HELM}:prefix_exact_match"),
            ("quasi_prefix_exact_match", "at the beginning, normalised", f"{HELM}:quasi_prefix_exact_match"),
            ("exact_match_indicator", "last word", f"{HELM}:exact_match_indicator"),
            ("final_number_exact_match", "last number", f"{HELM}:final_number_exact_match"),
            ("cleva_math_result_match", "last expression", f"{HELM}:cleva_math_result_match"),
            ("f1_score", "words in common (F1)", f"{HELM}:f1_score"),
            ("math_equiv", "the whole text, text rules", f"{MATHS}:is_equiv"),
        )
    ],
)


@reward("crfm-helm:math_equiv_chain_of_thought", "last box, text rules")
def _() -> Score:
    score = alone("helm.benchmark.scenarios", f"{MATHS}:is_equiv_chain_of_thought", _HELM_AWAY)
    return lambda question, reference, completion: score(question, rf"\boxed{{{reference}}}", completion)


# lighteval


def _lighteval(name: str, normalizer: str | None, **options: Any) -> Score:
    bare("lighteval.metrics")
    absent("transformers", "huggingface_hub", "nltk", "scipy", "lighteval.metrics.imports", "lighteval.models")
    absent("lighteval.metrics.utils", "lighteval.tasks", "lighteval.utils", "pydantic")
    if normalizer is not None:
        normalize = found_at(f"lighteval.metrics.normalizations:{normalizer}")
        options |= {"normalize_gold": normalize, "normalize_pred": normalize}
    made = found_at(f"lighteval.metrics.metrics_sample:{name}")(**options)
    given = {"gsm8k_normalizer": "#### {}", "math_normalizer": r"\boxed{{{}}}"}.get(normalizer or "", "{}")
    return lambda question, reference, completion: made.compute_one_item(gold=given.format(reference), pred=completion)


rewards_of(
    "lighteval",
    _lighteval,
    [
        ("exact_match", "the whole text", ("ExactMatches", None), {"strip_strings": True}),
        ("prefix_exact_match", "at the beginning", ("ExactMatches", None), {"type_exact_match": "prefix"}),
        ("suffix_exact_match", "at the end", ("ExactMatches", None), {"type_exact_match": "suffix"}),
        ("quasi_exact_match", "the whole text, normalised", ("ExactMatches", "helm_normalizer"), {}),
        ("quasi_exact_match_gsm8k", "last number", ("ExactMatches", "gsm8k_normalizer"), {}),
        ("quasi_exact_match_math", "box or dollars, text rules", ("ExactMatches", "math_normalizer"), {}),
    ],
)
