"""The names of the metrics that a run can record, as docs/metrics.md explains them."""

import re
from collections.abc import Collection, Iterator

from cooper_base.errors import did_you_mean

_MODEL = "mean std rule_agreement false_accept_rate true_accept_rate"
_HELD_OUT = "heard rule_avg gold_avg gold_avg_heard gold_avg_silent cut_off_rate"
_NAMES = {
    "reward": "mean std group_spread non_finite no_opinion shaped_mean shaped_std shaped_group_spread "
    "shaped_non_finite shaped_no_opinion after_kl_mean after_kl_std after_kl_group_spread mean_heard mean_silent "
    "wrong_paid paid_wrong wrong_paid_less wrong_paid/<kind> paid_wrong/<kind> wrong_paid_less/<kind> "
    "wrong_paid_beside_right wrong_paid_alone wrong_level wrong_level_variance wrong_paid_by_level",
    "function": "<name>",
    "grader": "mean no_opinion failures",
    "earned": "weight verdicts",
    "rule": "accuracy wrong unparsed timeout heard lost faults <name>_accuracy <name>_unparsed <name>_share",
    "gold": "accuracy accuracy_heard accuracy_silent reward_model_accuracy",
    "test": _HELD_OUT,
    "reward_model": f"{_MODEL} non_finite mean_heard mean_silent kept_when_swapped_heard kept_when_swapped_silent "
    "kept_when_near "
    "pair_accuracy_before pair_accuracy_after pair_accuracy_before_<origin> pair_accuracy_after_<origin> pair_accuracy "
    "margin loss unpaired_loss unpaired_accuracy labelled_loss labelled_accuracy judged_loss judged_accuracy "
    "tie_loss tie_gap skipped tie_skipped unpaired_skipped labelled_skipped judged_skipped "
    "learning_rate grad_norm skipped_updates probe_drift probe_shift",
    "monitor": "accuracy precision recall specificity roc_auc ece loss attack_rate attack_<pattern> bare_right_rate",
    "pairs": "count <origin>_valid_rate problems_with_positive reference_solution_positives unpaired_negatives "
    "steps_without remembered replayed",
    "assistant": "attempts accepted failures_<kind> rejected_<reason>",
    "policy": "usable_groups unverified_advantage trained_completions loss ratio clip_fraction "
    "advantage_share_<reward> kl_to_old mismatch_kl truncated_fraction drifted_fraction reference_kl learning_rate "
    "grad_norm skipped_updates",
    "process": "usable_groups",
    "rollout": "tokens mean_length cut_off_rate entropy_estimate lag resampled resample_draws flat_groups "
    "unfilled_groups non_finite_logits agreement_heard agreement_silent",
    "environment": "turns reward calls failed_calls timeouts cut_results lost unanswered fault_rate",
    "time": "step verify_cpu <part>",
    "memory": "peak <part>",
    "gpu_memory": "<part>",
    "watch": "faults reward_hacking lost_parts",
    "sinks": "failures dropped",
    "checkpoint": "failed_writes",
    "engine": "recoveries",
}
"""By area. `<…>` stands for any name, but for those of functions and test sets, which a run knows. What a part from
outside the framework records, its settings say (`Config.metric_names`)."""
OF_REFERENCES = "reward_model/kept_when"
"""Beginnings of the names of metrics for which the reward model has to read the reference answer."""
AREAS = frozenset(_NAMES)
"""What comes before the slash in our names."""
OPEN = frozenset({"policy", "reward_model", "process", "engine", "time", "memory", "gpu_memory", "assistant"})
"""Areas in which a loss, an engine or an assistant from outside Cooper may record further metrics."""


def area_of(name: str) -> str:
    """What comes before the slash."""
    return name.partition("/")[0]


def metric_names(functions: Collection[str], test_sets: Collection[str]) -> Iterator[str]:
    """The names that a run with these functions and further test sets can record, besides those of its other parts."""
    for area, names in _NAMES.items():
        for name in names.split():
            if area == "function":
                yield from (f"{area}/{function}" for function in functions)
            else:
                yield f"{area}/{name}"
    yield from (f"test/{test_set}/{name}" for test_set in test_sets for name in _HELD_OUT.split())


def fault_of_metric(name: str, names: Collection[str], has_outside_parts: bool) -> str | None:
    """Why no run with these `names` records this metric, with the remedy; None if it may.

    With parts from outside Cooper, any name may be one of theirs, unless it lies in an area that is ours alone.
    """
    stems = {name, name.removesuffix("_after"), re.sub(r"_\d+$", "", name)}  # `_2`: of a second one of that name
    patterns = [re.sub(r"<\w+>", r"[\\w.:-]+", re.escape(known)) for known in names]
    if any(re.fullmatch(pattern, stem) for pattern in patterns for stem in stems):
        return None
    if has_outside_parts and (area_of(name) not in AREAS or area_of(name) in OPEN):
        return None
    plain = [known for known in names if "<" not in known]
    remedy = did_you_mean(name, plain, "docs/metrics.md lists them all")
    return f"no run with these settings records a metric {name!r}; {remedy}"
