"""Rewards that packages for training ship."""

import importlib
import logging
from types import SimpleNamespace
from typing import Any

from registry import Score, absent, alone, bare, batched, found_at, of_module, reward, rewards_of, stub, waited


def _search(folder: str, path: str) -> Score:
    bare(folder)
    score = of_module(path)
    return lambda question, reference, completion: score(question, {"target": [reference]}, completion)


# verl

VERL = "verl.utils.reward_score"
rewards_of(
    "verl",
    alone,
    [
        ("gsm8k", "number after ####", (VERL, f"{VERL}.gsm8k:compute_score"), {}),
        ("gsm8k flexible", "last number", (VERL, f"{VERL}.gsm8k:compute_score"), {"method": "flexible"}),
        ("math_reward", "last box", (VERL, f"{VERL}.math_reward:compute_score"), {}),
        ("math_dapo", "Answer: line", (VERL, f"{VERL}.math_dapo:compute_score"), {}),
        ("math_dapo strict", "last box", (VERL, f"{VERL}.math_dapo:compute_score"), {"strict_box_verify": True}),
        ("geo3k", "box and thought tags, mathruler", (VERL, f"{VERL}.geo3k:compute_score"), {}),
    ],
)
rewards_of(
    "verl",
    _search,
    [
        ("search_r1 em", "exact match in the answer tag", (VERL, f"{VERL}.search_r1_like_qa_em:compute_score"), {}),
        (
            "search_r1 subem",
            "reference anywhere in the answer tag",
            (VERL, f"{VERL}.search_r1_like_qa_em:compute_score_subem"),
            {},
        ),
    ],
)


@reward("verl:prime_math", "box or last line, sympy")
def _() -> Score:
    bare(VERL)
    absent("torch", "ray", "tensordict", "verl.utils.py_functional")
    score = found_at(f"{VERL}.prime_math:compute_score")
    return lambda question, reference, completion: score(completion, reference)[0]


# SkyRL-gym

GYM = "skyrl_gym.envs"
rewards_of(
    "skyrl-gym",
    alone,
    [
        ("gsm8k", "number after ####", (f"{GYM}.gsm8k", f"{GYM}.gsm8k.utils:compute_score"), {}),
        ("gsm8k flexible", "last number", (f"{GYM}.gsm8k", f"{GYM}.gsm8k.utils:compute_score"), {"method": "flexible"}),
        ("aime", "Answer: line", (f"{GYM}.aime", f"{GYM}.aime.utils:compute_score"), {}),
        ("aime strict", "last box", (f"{GYM}.aime", f"{GYM}.aime.utils:compute_score"), {"strict_box_verify": True}),
    ],
)
rewards_of(
    "skyrl-gym",
    _search,
    [
        (
            "search score",
            "exact match in the answer tag",
            (f"{GYM}.search", f"{GYM}.search.utils:compute_score"),
            {},
        ),
        (
            "search score_subem",
            "reference in the answer tag",
            (f"{GYM}.search", f"{GYM}.search.utils:compute_score_subem"),
            {},
        ),
    ],
)


# TRL


def _trl(module: str, name: str, **options: Any) -> Score:
    bare("trl.rewards")
    stub("trl.import_utils", is_math_verify_available=lambda: True)
    function = found_at(f"trl.rewards.{module}:{name}")
    function = function(**options) if name.startswith("get_") else function

    def score(question: str, reference: str, completion: str) -> Any:
        ids = completion.split()  # words stand for tokens
        return function(completions=[[{"content": completion}]], solution=[reference], completion_ids=[ids])[0]

    return score


rewards_of(
    "trl",
    _trl,
    [
        ("accuracy_reward", "box, Math-Verify", ("accuracy_rewards", "accuracy_reward"), {}),
        (
            "reasoning_accuracy_reward",
            "box after the thought, Math-Verify",
            ("accuracy_rewards", "reasoning_accuracy_reward"),
            {},
        ),
        (
            "get_cosine_scaled_reward",
            "accuracy scaled by length",
            ("accuracy_rewards", "get_cosine_scaled_reward"),
            {"max_len": 100},
        ),
        ("think_format_reward", "thought tags (alone)", ("format_rewards", "think_format_reward"), {}),
        (
            "get_repetition_penalty_reward",
            "repetition (alone)",
            ("other_rewards", "get_repetition_penalty_reward"),
            {"ngram_size": 3, "max_penalty": -1.0},
        ),
        (
            "get_soft_overlong_punishment",
            "length (alone)",
            ("other_rewards", "get_soft_overlong_punishment"),
            {"max_completion_len": 100, "soft_punish_cache": 20},
        ),
    ],
)


# ms-swift


def _swift(name: str) -> Score:
    bare("swift.rewards")
    absent("swift.infer_engine", "transformers", "swift.utils")
    made = importlib.import_module("swift.rewards.orm").orms[name](
        SimpleNamespace(
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
    )

    def score(question: str, reference: str, completion: str) -> Any:
        if name == "math":
            request = SimpleNamespace(messages=[{"role": "assistant", "content": completion}])
            return made([request], [reference])[0]
        return made(completions=[completion], solution=[reference], response_token_ids=[completion.split()])[0]

    return score


rewards_of(
    "ms-swift",
    _swift,
    [
        (name, what, (name,), {})
        for name, what in (
            ("accuracy", "answer tag or box, Math-Verify"),
            ("math", "first box, sympy"),
            ("cosine", "accuracy scaled by length"),
            ("format", "thought and answer tags (alone)"),
            ("react_format", "thought and action (alone)"),
            ("repetition", "repetition (alone)"),
            ("soft_overlong", "length (alone)"),
        )
    ],
)


# OpenRLHF and tinker-cookbook


@reward("openrlhf:grade_answer", "last box, sympy")
def _() -> Score:
    bare("openrlhf.utils")
    utils = importlib.import_module("openrlhf.utils.math_utils")
    return lambda question, reference, completion: utils.grade_answer(utils.extract_boxed_answer(completion), reference)


def _tinker(name: str) -> Score:
    bare("tinker_cookbook.recipes.math_rl")
    grading = importlib.import_module("tinker_cookbook.recipes.math_rl.math_grading")

    def score(question: str, reference: str, completion: str) -> Any:
        try:
            given = grading.extract_boxed(completion)
        except ValueError:  # its environment pays nothing where there is no box
            return 0.0
        return getattr(grading, name)(given, reference)

    return score


rewards_of(
    "tinker-cookbook",
    _tinker,
    [
        ("grade_answer", "box, sympy", ("grade_answer",), {}),
        ("grade_answer_math_verify", "box, Math-Verify", ("grade_answer_math_verify",), {}),
    ],
)


# Atropos


def _atropos(module: str, name: str) -> Score:
    bare("atroposlib.envs.reward_fns")
    absent("torch", "transformers", "datasets")
    function = found_at(f"atroposlib.envs.reward_fns.{module}:{name}")
    return lambda question, reference, completion: function(
        [[{"role": "assistant", "content": completion}]], solution=[reference]
    )[0]


rewards_of(
    "atroposlib",
    _atropos,
    [
        ("accuracy_reward", "box or #### or sentence, Math-Verify", ("accuracy_reward", "accuracy_reward"), {}),
        (
            "cascading_r1_math_reward",
            "answer tag and format, Math-Verify",
            ("cascading_r1_math_reward", "cascading_r1_math_reward"),
            {},
        ),
        ("r1_reward", "answer tag and format", ("r1_reward", "r1_reward"), {}),
        ("format_reward", "tags (alone)", ("format_reward", "format_reward"), {}),
    ],
)


# Trinity-RFT


def _trinity(module: str, name: str) -> Score:
    bare("trinity.common.rewards")
    bare("trinity.utils")
    if name == "MathDAPORewardFn":  # compares with functions of verl
        bare("verl.utils.reward_score.prime_math")
        absent("verl.utils.py_functional")
    absent("torch", "ray", "trinity.common.experience", "trinity.common.constants")
    stub("trinity.utils.log", get_logger=logging.getLogger)
    made = found_at(f"trinity.common.rewards.{module}:{name}")()

    def score(question: str, reference: str, completion: str) -> float:
        options = {"response_token": None} if name == "MathDAPORewardFn" else {}
        truth = f"${reference}$" if name == "AccuracyReward" else reference  # it reads a truth as LaTeX alone
        return sum(made(response=completion, truth=truth, **options).values())

    return score


rewards_of(
    "trinity-rft",
    _trinity,
    [
        ("math_reward", "answer tag, Math-Verify, and format", ("math_reward", "MathRewardFn"), {}),
        ("math_boxed_reward", "last box, text rules", ("math_reward", "MathBoxedRewardFn"), {}),
        ("accuracy_reward", "box, Math-Verify", ("accuracy_reward", "AccuracyReward"), {}),
        ("math_dapo_reward", "box or Answer: line, sympy", ("dapo_reward", "MathDAPORewardFn"), {}),
    ],
)


# AReaL


def _areal(module: str, name: str) -> Score:
    bare("areal")
    stub("areal.utils", logging=logging)
    function = found_at(f"areal.reward.{module}:{name}")
    return lambda question, reference, completion: function(question, completion, [], [], answer=reference)


rewards_of(
    "areal",
    _areal,
    [
        ("gsm8k", "any formula, Math-Verify", ("gsm8k", "gsm8k_reward_fn"), {}),
        ("geometry3k", "in brackets or last number, Math-Verify", ("geometry3k", "geometry3k_reward_fn"), {}),
        ("clevr_count_70k", "last number in brackets", ("clevr_count_70k", "clevr_count_70k_reward_fn"), {}),
    ],
)


# GenRL, gem, Tunix


@reward("gensyn-genrl:correctness_reward", "first number after Answer:")
def _() -> Score:
    bare("genrl.examples.multistage_math")
    absent("genrl.state")
    function = found_at("genrl.examples.multistage_math.reward_utils:correctness_reward")
    return lambda question, reference, completion: function([completion], reference)[0]


def _gem(name: str) -> Score:
    bare("gem.utils")
    function = found_at(f"gem.utils.math_grader:{name}")
    return lambda question, reference, completion: function(completion, reference)[1]


rewards_of(
    "gem-llm",
    _gem,
    [
        (name, what, (name,), {})
        for name, what in (
            ("boxed_reward_fn", "box, sympy or Math-Verify"),
            ("r1_distill_qwen_math_reward_fn", "box after the thought"),
            ("answer_tag_reward_fn", "answer tag after the thought"),
            ("answer_tag_reward_fn_for_orz", "answer tag"),
        )
    ],
)


def _tunix(module: str, name: str) -> Score:
    absent("absl", "jax", "jaxtyping", "flax", "tunix.rl.agentic.rewards.reward", "tunix.rl.agentic.rewards")
    bare(module.rpartition(".")[0])
    return batched(found_at(f"{module}:{name}"))


TUNIX = "tunix.cli.reward_fn"
rewards_of(
    "google-tunix",
    _tunix,
    [
        ("gsm8k check_answer", "answer tag, near numbers paid", (f"{TUNIX}.gsm8k", "check_answer"), {}),
        ("gsm8k check_numbers", "first number in the answer tag", (f"{TUNIX}.gsm8k", "check_numbers"), {}),
        ("simple_math check_answer", "first number in the answer tag", (f"{TUNIX}.simple_math", "check_answer"), {}),
        ("gsm8k match_format_exactly", "tags (alone)", (f"{TUNIX}.gsm8k", "match_format_exactly"), {}),
        ("deepscaler_math", "box after the thought, sympy", ("tunix.utils.math_rewards", "math_reward"), {}),
    ],
)
rewards_of(
    "google-tunix",
    alone,
    [
        ("gsm8k_verl", "number after ####", (TUNIX, f"{TUNIX}.gsm8k_verl:compute_score"), {}),
        ("gsm8k_verl flexible", "last number", (TUNIX, f"{TUNIX}.gsm8k_verl:compute_score"), {"method": "flexible"}),
    ],
)


# Oumi, mlx-lm-lora, alignrl, forge-rl, retrain, verifiers


def _oumi(name: str, **options: Any) -> Score:
    bare("oumi.datasets.grpo.rewards")
    absent("oumi.core")
    rewards = "oumi.datasets.grpo.rewards"
    if name == "gsm8k_reward":
        function = found_at(f"{rewards}.gsm8k_reward:gsm8k_reward")
        return lambda question, reference, completion: function("", completion, reference, {}, **options)
    if name == "count_letters":
        count = found_at(f"{rewards}.count_letters_rewards:compute_letter_count_reward")
        return lambda question, reference, completion: count(completion, float(reference))
    length = found_at(f"{rewards}.completion_length_rewards:{name}")
    return lambda question, reference, completion: length([completion])[0]


rewards_of(
    "oumi",
    _oumi,
    [
        ("gsm8k", "number after ####", ("gsm8k_reward",), {}),
        ("gsm8k flexible", "last number", ("gsm8k_reward",), {"method": "flexible"}),
        ("count_letters", "only box, near numbers paid", ("count_letters",), {}),
        ("soft_20tokens_completions", "length (alone)", ("_soft_20tokens_completions",), {}),
    ],
)


def _mlx(name: str) -> Score:
    bare("mlx_lm_lora.trainer")
    return batched(found_at(f"mlx_lm_lora.trainer.grpo_reward_functions:{name}"))


rewards_of(
    "mlx-lm-lora",
    _mlx,
    [
        (name, what, (name,), {})
        for name, what in (
            ("r1_accuracy_reward_func", "answer tag, same text"),
            ("r1_int_reward_func", "a whole number in the tag (alone)"),
            ("r1_soft_format_reward_func", "tags in order (alone)"),
            ("r1_strict_format_reward_func", "tags (alone)"),
            ("r1_count_xml", "tags, each once (alone)"),
        )
    ],
)


def _alignrl(name: str) -> Score:
    bare("alignrl")
    return batched(found_at(f"alignrl.rewards:{name}"), key="solution", chats=True)


rewards_of(
    "alignrl",
    _alignrl,
    [
        ("math_verify_reward", "last box, sentence or equation", ("math_verify_reward",), {}),
        ("format_reward", "a box at the end (alone)", ("format_reward",), {}),
    ],
)


@reward("forge-rl:ExactMatchReward", "anywhere in the text")
def _() -> Score:
    bare("forge.core")
    made = found_at("forge.core.reward:ExactMatchReward")()
    return lambda question, reference, completion: made([question], [completion], references=[reference]).scores[0]


def _retrain(name: str) -> Score:
    bare("retrain")
    made = found_at(f"retrain.rewards:{name}")()
    return lambda question, reference, completion: made.score(completion, reference)


rewards_of(
    "retrain",
    _retrain,
    [
        ("BoxedMathReward", "last box, same text", ("BoxedMathReward",), {}),
        ("VerifiersMathReward", "last box, Math-Verify", ("VerifiersMathReward",), {}),
    ],
)


def _aligntune(module: str, name: str) -> Score:
    bare("aligntune.rewards")
    bare("aligntune.utils")
    absent("torch", "transformers", "datasets")
    config = SimpleNamespace(params={}, device="cpu", weight=1.0, cache_dir=None, model_name=None, reward_type=None)
    made = found_at(f"aligntune.rewards.{module}:{name}")(config)
    return lambda question, reference, completion: made.compute(completion, reference)


rewards_of(
    "aligntune",
    _aligntune,
    [
        ("MathCorrectnessReward", "####, box or sentence", ("core", "MathCorrectnessReward"), {}),
        ("MathReasoningReward", "answer, words of reasoning and format", ("core", "MathReasoningReward"), {}),
        ("CounterfactualMathReward", "answer and calculations", ("core", "CounterfactualMathReward"), {}),
        ("MathVerifiableReward", "####, box, sentence or last line", ("verifiable", "MathVerifiableReward"), {}),
        ("LengthReward", "length (alone)", ("core", "LengthReward"), {}),
    ],
)


@reward("verifiers:MathRubric", "box, Math-Verify")
def _() -> Score:
    bare("verifiers.rubrics")
    bare("verifiers.parsers")
    bare("verifiers.utils")
    absent("datasets", "verifiers.types", "verifiers.rubrics.rubric")
    rubric = found_at("verifiers.rubrics.math_rubric:MathRubric")
    parser = found_at("verifiers.parsers.maybe_think_parser:MaybeThinkParser")(
        found_at("verifiers.utils.data_utils:extract_boxed_answer")
    )
    stub_self = SimpleNamespace(timeout_seconds=5, logger=logging.getLogger("rubric"))

    async def at_once(function: Any, *arguments: Any) -> Any:
        return function(*arguments)

    stub_self.run_in_executor = at_once
    return lambda question, reference, completion: waited(
        rubric.correct_answer(stub_self, parser, completion, reference)
    )
