"""Rewards and graders that packages on the Python index ship, each as a function of question, reference and completion.

Runs in the environment of one package, without Cooper: `python rewards.py NAME` reads answers as JSON lines from
standard input and writes a score for each; `python rewards.py --problems NAME COUNT` writes problems of its own.
"""

import asyncio
import functools
import importlib
import importlib.machinery
import json
import os
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

Score = Callable[[str, Any, str], Any]
"""(question, reference, completion) -> what the reward pays."""
REWARDS: dict[str, tuple[str, Callable[[], Score]]] = {}
"""What each reward is for, and how it is made, by `package:name`."""


def reward(name: str, what: str) -> Callable[[Callable[[], Score]], Callable[[], Score]]:
    def add(make: Callable[[], Score]) -> Callable[[], Score]:
        REWARDS[name] = what, make
        return make

    return add


def bare(package: str) -> None:
    """Lets modules of a package be imported without its `__init__.py`, where that imports torch or a server."""
    parts = package.split(".")
    for end in range(1, len(parts) + 1):
        name = ".".join(parts[:end])
        if name in sys.modules:
            continue
        found = next(folder for entry in sys.path if (folder := Path(entry, *parts[:end])).is_dir())
        module = types.ModuleType(name)
        module.__path__ = [str(found)]
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        sys.modules[name] = module


def stub(name: str, **values: Any) -> None:
    """Stands in for a module that the reward imports and does not use for its score."""
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(values)


def of_module(path: str, **options: Any) -> Score:
    """A function of (completion, reference) at `module:name`."""
    module, _, name = path.partition(":")
    function = getattr(importlib.import_module(module), name)
    return lambda question, reference, completion: function(completion, reference, **options)


# verl

VERL = "verl.utils.reward_score"
for _name, _what, _path, _options in (
    ("gsm8k", "number after ####", f"{VERL}.gsm8k:compute_score", {}),
    ("gsm8k flexible", "last number", f"{VERL}.gsm8k:compute_score", {"method": "flexible"}),
    ("math_reward", "last box", f"{VERL}.math_reward:compute_score", {}),
    ("math_dapo", "Answer: line or last box", f"{VERL}.math_dapo:compute_score", {}),
    ("math_dapo strict", "last box", f"{VERL}.math_dapo:compute_score", {"strict_box_verify": True}),
    ("geo3k", "box and thought tags, mathruler", f"{VERL}.geo3k:compute_score", {}),
):

    @reward(f"verl:{_name}", _what)
    def _(path: str = _path, options: dict[str, Any] = _options) -> Score:
        bare("verl.utils.reward_score")
        return of_module(path, **options)


for _name, _what, _path in (
    ("search_r1 em", "exact match in the answer tag", f"{VERL}.search_r1_like_qa_em:compute_score"),
    ("search_r1 subem", "reference anywhere in the answer tag", f"{VERL}.search_r1_like_qa_em:compute_score_subem"),
):

    @reward(f"verl:{_name}", _what)
    def _(path: str = _path) -> Score:
        bare("verl.utils.reward_score")
        score = of_module(path)
        return lambda question, reference, completion: score(question, {"target": [reference]}, completion)


# SkyRL-gym

GYM = "skyrl_gym.envs"
for _name, _what, _path, _options in (
    ("gsm8k", "number after ####", f"{GYM}.gsm8k.utils:compute_score", {}),
    ("gsm8k flexible", "last number", f"{GYM}.gsm8k.utils:compute_score", {"method": "flexible"}),
    ("aime", "Answer: line", f"{GYM}.aime.utils:compute_score", {}),
    ("aime strict", "last box", f"{GYM}.aime.utils:compute_score", {"strict_box_verify": True}),
):

    @reward(f"skyrl-gym:{_name}", _what)
    def _(path: str = _path, options: dict[str, Any] = _options) -> Score:
        bare(path.partition(":")[0].rpartition(".")[0])
        return of_module(path, **options)


for _name, _what in (
    ("compute_score", "exact match in the answer tag"),
    ("compute_score_subem", "reference in the tag"),
):

    @reward(f"skyrl-gym:search {_name.removeprefix('compute_')}", _what)
    def _(name: str = _name) -> Score:
        bare(f"{GYM}.search")
        score = of_module(f"{GYM}.search.utils:{name}")
        return lambda question, reference, completion: score(question, {"target": [reference]}, completion)


# TRL


def _trl(module: str, name: str, **options: Any) -> Score:
    bare("trl.rewards")
    stub("trl.import_utils", is_math_verify_available=lambda: True)
    function = getattr(importlib.import_module(f"trl.rewards.{module}"), name)
    function = function(**options) if name.startswith("get_") else function

    def score(question: str, reference: str, completion: str) -> Any:
        ids = completion.split()  # words stand for tokens
        return function(completions=[[{"content": completion}]], solution=[reference], completion_ids=[ids])[0]

    return score


for _name, _what, _module, _options in (
    ("accuracy_reward", "box, Math-Verify", "accuracy_rewards", {}),
    ("reasoning_accuracy_reward", "box after the thought, Math-Verify", "accuracy_rewards", {}),
    ("get_cosine_scaled_reward", "accuracy scaled by length", "accuracy_rewards", {"max_len": 100}),
    ("think_format_reward", "thought tags (format alone)", "format_rewards", {}),
    (
        "get_repetition_penalty_reward",
        "repetition (penalty alone)",
        "other_rewards",
        {"ngram_size": 3, "max_penalty": -1.0},
    ),
    (
        "get_soft_overlong_punishment",
        "length (penalty alone)",
        "other_rewards",
        {"max_completion_len": 100, "soft_punish_cache": 20},
    ),
):
    REWARDS[f"trl:{_name}"] = _what, functools.partial(_trl, _module, _name, **_options)


# ms-swift


def _swift(name: str) -> Score:
    bare("swift.rewards")
    stub("swift.infer_engine", InferRequest=object)
    stub("transformers")
    stub("transformers.utils", strtobool=lambda text: text == "True")
    args = SimpleNamespace(
        cosine_min_len_value_wrong=-0.5,
        cosine_max_len_value_wrong=0.0,
        cosine_min_len_value_correct=1.0,
        cosine_max_len_value_correct=0.5,
        cosine_max_len=100,
        repetition_n_grams=3,
        repetition_max_penalty=-1.0,
        soft_max_length=100,
        soft_cache_length=20,
    )
    made = importlib.import_module("swift.rewards.orm").orms[name](args)

    def score(question: str, reference: str, completion: str) -> Any:
        if name == "math":
            request = SimpleNamespace(messages=[{"role": "assistant", "content": completion}])
            return made([request], [reference])[0]
        return made(completions=[completion], solution=[reference], response_token_ids=[completion.split()])[0]

    return score


for _name, _what in (
    ("accuracy", "answer tag or box, Math-Verify"),
    ("math", "first box, sympy"),
    ("cosine", "accuracy scaled by length"),
    ("format", "thought and answer tags (format alone)"),
    ("react_format", "thought and action (format alone)"),
    ("repetition", "repetition (penalty alone)"),
    ("soft_overlong", "length (penalty alone)"),
):
    REWARDS[f"ms-swift:{_name}"] = _what, functools.partial(_swift, _name)


# one function each


@reward("openrlhf:grade_answer", "last box, sympy")
def _() -> Score:
    bare("openrlhf.utils")
    utils = importlib.import_module("openrlhf.utils.math_utils")
    return lambda question, reference, completion: utils.grade_answer(utils.extract_boxed_answer(completion), reference)


@reward("mathruler:grade_answer", "last box, sympy")
def _() -> Score:
    grader = importlib.import_module("mathruler.grader")
    return lambda question, reference, completion: grader.grade_answer(
        grader.extract_boxed_content(completion), reference
    )


for _name, _what in (("grade_answer", "box, sympy"), ("grade_answer_math_verify", "box, Math-Verify")):

    @reward(f"tinker-cookbook:{_name}", _what)
    def _(name: str = _name) -> Score:
        bare("tinker_cookbook.recipes.math_rl")
        grading = importlib.import_module("tinker_cookbook.recipes.math_rl.math_grading")

        def score(question: str, reference: str, completion: str) -> Any:
            try:
                given = grading.extract_boxed(completion)
            except ValueError:  # its environment pays nothing where there is no box
                return 0.0
            return getattr(grading, name)(given, reference)

        return score


@reward("math-verify:verify", "box, formula or last number")
def _() -> Score:
    library = importlib.import_module("math_verify")
    return lambda question, reference, completion: library.verify(library.parse(reference), library.parse(completion))


for _name, _what in (
    ("exact_match", "the whole text"),
    ("substring_match", "anywhere in the text"),
    ("last_number", "last number"),
    ("boxed_exact", "the only box"),
    ("robust_match", "its recommended matcher"),
):

    @reward(f"reward-doctor:{_name}", _what)
    def _(name: str = _name) -> Score:
        return of_module(f"reward_doctor.reference:{name}")


# lm-eval: the filter and the metric of the task's file

for _name, _what, _pattern, _select in (
    ("gsm8k strict-match", "number after ####", r"#### (\-?[0-9\.\,]+)", 0),
    ("gsm8k flexible-extract", "last number", r"(-?[$0-9.,]{2,})|(-?[0-9]+)", -1),
):

    @reward(f"lm-eval:{_name}", _what)
    def _(pattern: str = _pattern, select: int = _select) -> Score:
        ignored = (",", r"\$", "(?s).*#### ", r"\.$")

        def plain(text: str) -> str:
            return functools.reduce(lambda left, regex: re.sub(regex, "", left), ignored, text).lower()

        def score(question: str, reference: str, completion: str) -> float:
            matches = re.findall(pattern, completion)
            match = matches[select] if matches else "[invalid]"
            given = next((group for group in match if group), "") if isinstance(match, tuple) else match
            return float(plain(given.strip()) == plain(reference))

        return score


for _name, _what, _results in (
    ("aime", "dollars or box", lambda utils, ref, text: utils.process_results({"Answer": ref}, [text])["exact_match"]),
    (
        "hendrycks_math",
        "between the dollars",
        lambda utils, ref, text: utils.process_results({"solution": rf"\boxed{{{ref}}}"}, [text])["exact_match"],
    ),
    (
        "minerva_math",
        "Minerva's sentence, sympy or Math-Verify",
        lambda utils, ref, text: max(
            utils.process_results({"answer": ref, "solution": rf"\boxed{{{ref}}}"}, [text]).values()
        ),
    ),
    (
        "drop",
        "words in common (F1)",
        lambda utils, ref, text: utils.process_results({"answers": [(ref,)]}, [text])["f1"],
    ),
):

    @reward(f"lm-eval:{_name}", _what)
    def _(name: str = _name, results: Callable[..., Any] = _results) -> Score:
        bare(f"lm_eval.tasks.{name}")
        stub("datasets", Dataset=object)
        utils = importlib.import_module(f"lm_eval.tasks.{name}.utils")
        return lambda question, reference, completion: results(utils, reference, completion)


# Inspect


def _inspect(name: str, *args: Any, **options: Any) -> Score:
    scorer = importlib.import_module("inspect_ai.scorer")
    made = getattr(scorer, name)(*args, **options)

    def score(question: str, reference: str, completion: str) -> Any:
        state = SimpleNamespace(output=SimpleNamespace(completion=completion))
        value = asyncio.run(made(state, scorer.Target(reference))).value
        return {"C": 1.0, "I": 0.0}.get(value, value)

    return score


for _label, _what, _name, _args, _options in (
    ("match end", "at the end", "match", (), {}),
    ("match begin", "at the beginning", "match", ("begin",), {}),
    ("match any", "anywhere in the text", "match", ("any",), {}),
    ("match exact", "the whole text", "match", ("exact",), {}),
    ("match end numeric", "last number", "match", (), {"numeric": True}),
    ("match any numeric", "any number", "match", ("any",), {"numeric": True}),
    ("includes", "anywhere in the text", "includes", (), {}),
    ("answer line", "ANSWER: line", "answer", ("line",), {}),
    ("answer word", "ANSWER: word", "answer", ("word",), {}),
    ("exact", "the whole text, normalised", "exact", (), {}),
    ("f1", "words in common (F1)", "f1", (), {}),
    ("math", "box, formula or last line, sympy", "math", (), {}),
):
    REWARDS[f"inspect-ai:{_label}"] = _what, functools.partial(_inspect, _name, *_args, **_options)


# Eval Protocol


def _eval_protocol(module: str, name: str, **options: Any) -> Score:
    bare("eval_protocol.rewards")
    models = importlib.import_module("eval_protocol.models")
    function = getattr(importlib.import_module(f"eval_protocol.rewards.{module}"), name)

    def score(question: str, reference: str, completion: str) -> float:
        messages = [
            models.Message(role="user", content=question),
            models.Message(role="assistant", content=completion),
        ]
        return function(messages=messages, ground_truth=reference, **options).score

    return score


for _module, _name, _what, _options in (
    ("math", "math_reward", "box, tag, #### or any number", {}),
    ("accuracy", "accuracy_reward", "extracted answer, text or number", {}),
    ("list_comparison_math_reward", "list_comparison_math_reward", "a list of numbers", {}),
    ("accuracy_length", "cosine_scaled_accuracy_length_reward", "accuracy scaled by length", {"max_length": 100}),
    ("length", "length_reward", "length alone", {"target_length": 50}),
    ("format", "format_reward", "thought and answer tags (format alone)", {}),
    ("repetition", "repetition_penalty_reward", "repetition (penalty alone)", {}),
    ("reasoning_steps", "reasoning_steps_reward", "words of steps (format alone)", {}),
):
    REWARDS[f"eval-protocol:{_name}"] = _what, functools.partial(_eval_protocol, _module, _name, **_options)


# Atropos


def _atropos(module: str, name: str) -> Score:
    bare("atroposlib.envs.reward_fns")
    function = getattr(importlib.import_module(f"atroposlib.envs.reward_fns.{module}"), name)
    return lambda question, reference, completion: function(
        [[{"role": "assistant", "content": completion}]], solution=[reference]
    )[0]


for _module, _name, _what in (
    ("accuracy_reward", "accuracy_reward", "box or #### or sentence, Math-Verify"),
    ("cascading_r1_math_reward", "cascading_r1_math_reward", "answer tag and format, Math-Verify"),
    ("r1_reward", "r1_reward", "answer tag and format"),
    ("format_reward", "format_reward", "tags (format alone)"),
):
    REWARDS[f"atroposlib:{_name}"] = _what, functools.partial(_atropos, _module, _name)


# OpenCompass and EvalScope


@reward("opencompass:math_postprocess_v2, is_equiv", "box or sentence, text rules")
def _() -> Score:
    maths = _opencompass("math")
    evaluator = maths.MATHEvaluator(version="v2")
    return lambda question, reference, completion: float(
        evaluator.is_equiv(maths.math_postprocess_v2(completion), reference)
    )


@reward("opencompass:gsm8k_postprocess", "last number")
def _() -> Score:
    gsm8k = _opencompass("gsm8k")

    def score(question: str, reference: str, completion: str) -> float:
        evaluated = gsm8k.Gsm8kEvaluator().score([gsm8k.gsm8k_postprocess(completion)], [reference])
        return evaluated["accuracy"] / 100

    return score


def _opencompass(module: str) -> Any:
    def register(*args: Any, **options: Any) -> Any:
        return args[0] if args and callable(args[0]) else lambda each: each

    registered = SimpleNamespace(register_module=register)
    names = ("LOAD_DATASET", "TEXT_POSTPROCESSORS", "ICL_EVALUATORS")
    bare("opencompass.datasets")
    stub("datasets", Dataset=object, DatasetDict=dict)
    evaluator = type("BaseEvaluator", (), {"__init__": lambda self, *args, **options: None})
    stub("opencompass.openicl", BaseEvaluator=evaluator)
    stub("opencompass.openicl.icl_evaluator", BaseEvaluator=evaluator)
    stub("opencompass.registry", **dict.fromkeys(names, registered))
    stub("opencompass.utils", get_data_path=str)
    stub("opencompass.datasets.base", BaseDataset=object)
    return importlib.import_module(f"opencompass.datasets.{module}")


@reward("evalscope:extract_answer, math_equal", "box, sentence or last number")
def _() -> Score:
    bare("evalscope.metrics")
    bare("evalscope.api")
    stub("evalscope.api.metric", MetricUnavailableError=type("MetricUnavailableError", (Exception,), {}))
    maths = importlib.import_module("evalscope.metrics.math")
    return lambda question, reference, completion: float(maths.math_equal(maths.extract_answer(completion), reference))


# reasoning-gym: each scorer with the questions of its own task

SEED = 0


@functools.cache
def _task(name: str, count: int) -> Any:
    library = importlib.import_module("reasoning_gym")
    return library.create_dataset(name, seed=SEED, size=count)


def _gym_reward(name: str, count: int) -> Score:
    task, extract = _task(name, count), importlib.import_module("reasoning_gym.utils").extract_answer
    entries = {task[number]["question"]: task[number] for number in range(count)}
    return lambda question, reference, completion: task.score_answer(extract(completion), entries[question])


def main() -> None:
    if sys.argv[1] == "--names":
        factory = importlib.import_module("reasoning_gym.factory")
        print(json.dumps(sorted(factory.DATASETS)))
        return
    if sys.argv[1] == "--problems":
        task = _task(sys.argv[2].partition(":")[2], int(sys.argv[3]))
        print(json.dumps([{"question": row["question"], "answer": str(row["answer"])} for row in task]))
        return
    name = sys.argv[1]
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the reward prints is no score
    if name.startswith("reasoning-gym:"):
        score = _gym_reward(name.partition(":")[2], int(sys.argv[2]))
    else:
        score = REWARDS[name][1]()
    replies.write(json.dumps({"ready": True}) + "\n")
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            value = score(asked["question"], asked["answer"], asked["completion"])
            value = value.get("score") if isinstance(value, dict) else value
            reply = {"score": None if value is None else float(value)}
        except Exception as error:  # noqa: BLE001 - of any library: it is reported
            reply = {"score": None, "raised": f"{type(error).__name__}: {error}"[:200]}
        replies.write(json.dumps(reply) + "\n")


if __name__ == "__main__":
    main()
