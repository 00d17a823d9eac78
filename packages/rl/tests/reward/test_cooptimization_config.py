import pytest
from pydantic import ValidationError

from cooper_base.errors import InputError
from cooper_rl import build_config
from cooper_rl.engines.losses.reward_model import PairLoss, PairwiseLoss
from cooper_rl.reward.cooptimization import Cooptimizer
from cooper_rl.reward.cooptimization_config import CooptimizationConfig
from cooper_rl.reward.pairs.assistant import CorrupterAssistant
from cooper_rl.reward.pairs.chat_assistant import ChatAssistantConfig
from cooper_rl.reward.pairs.sources.assistant import AssistantPairs
from cooper_rl.reward.pairs.sources.near_reference import NearReferencePairs
from cooper_rl.reward.pairs.sources.on_policy import OnPolicyPairs

RULE_RUN = {"kind": "rule", "policy": {"model": "m"}, "problems": {"source": "arithmetic"}}
PAPER_RUN = {**RULE_RUN, "kind": "paper", "reward_model": {"model": "rm"}}


def cooptimization_of(kind):
    return build_config({**RULE_RUN, "kind": kind, "reward_model": {"model": "rm"}}).cooptimization


def test_cooper_differs_from_the_defaults_of_cooptimization_in_near_references_and_what_its_updates_skip():
    cooper = cooptimization_of("cooper")
    own = {"pairs": (OnPolicyPairs(), NearReferencePairs())}  # and an assistant's, where one is described
    own |= {"skip_gradient_share": 0.2}
    assert cooper == CooptimizationConfig().model_copy(update=own)
    assert cooptimization_of("rule") == CooptimizationConfig()
    assert CooptimizationConfig().pairs == (AssistantPairs(), OnPolicyPairs())
    assert cooper.positives == ("rollout", "reference_solution")
    assert (cooper.pairs_per_problem, cooper.epochs, cooper.before_policy) == (4, 1, 0.1)
    assert (cooper.replay.pairs_per_step, cooper.loss) == (32, PairwiseLoss(anchor=0.5))
    assert (OnPolicyPairs().order, OnPolicyPairs().unread) == ("hardest", ("several_answers", "cut_off", "keeps_score"))


def test_the_paper_has_none_of_our_remedies():
    paper = cooptimization_of("paper")
    assert paper.pairs == (AssistantPairs(),)
    assert (paper.positives, paper.loss) == (("rollout",), PairwiseLoss(anchor=0))
    assert (paper.replay.pairs_per_step, paper.replay.labelled, paper.epochs) == (0, None, 1)
    assert (paper.pairs_per_problem, paper.before_policy) == (1, None)


def test_the_kind_of_an_assistant_decides_its_settings():
    config = CooptimizationConfig.model_validate(
        {"assistant": {"kind": "chat", "base_url": "http://x/v1", "model": "m"}}
    )
    assert isinstance(config.assistant, ChatAssistantConfig)
    assert (config.assistant.temperature, config.assistant.tries) == (0.7, 3)
    with pytest.raises(ValidationError, match="base_url"):
        CooptimizationConfig.model_validate({"assistant": {"kind": "corrupter", "function": "a:b", "base_url": "x"}})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pairs": []}, "no source of pairs"),
        ({"pairs": [{"kind": "shelf.weighted_pairs:Overpaid"}]}, "no source of pairs"),
        ({"positives": []}, "at least one"),
        ({"pairs": [{"kind": "assistant"}, {"kind": "assistant"}]}, "twice"),
    ],
)
def test_contradictions_are_refused(settings, message):
    with pytest.raises(ValidationError, match=message):
        CooptimizationConfig.model_validate(settings)


def test_an_assistant_is_built_only_if_needed_and_then_required(verifier):
    assert CooptimizationConfig(pairs=(OnPolicyPairs(),)).build_assistant(verifier) is None
    with pytest.raises(InputError, match=r"cooptimization\.assistant is missing, but cooptimization\.pairs lists"):
        Cooptimizer(CooptimizationConfig(), verifier)
    corrupter = {"kind": "corrupter", "function": "cooptimization_cases:flip"}
    config = CooptimizationConfig.model_validate({"assistant": corrupter})
    assert isinstance(config.build_assistant(verifier), CorrupterAssistant)
    config = CooptimizationConfig.model_validate({"assistant": corrupter | {"function": "cooptimization_cases:flop"}})
    with pytest.raises(InputError, match="flop"):
        config.build_assistant(verifier)


class OnlyTheGap(PairLoss):
    """A loss of the user's."""

    scale: float = 1.0

    def pair_loss(self, positive_logits, negative_logits, weights):
        return PairwiseLoss(anchor=0).pair_loss(self.scale * positive_logits, self.scale * negative_logits, weights)


def test_the_loss_of_the_pairs_is_a_kind_and_its_settings_merge_with_the_recipes():
    config = build_config({**PAPER_RUN, "cooptimization": {"loss": {"kind": "pairwise"}}})
    assert config.cooptimization.loss == PairwiseLoss(anchor=0)
    own = {"kind": f"{__name__}:OnlyTheGap", "scale": 2.0}
    config = build_config({**PAPER_RUN, "cooptimization": {"loss": own}})
    assert config.cooptimization.loss == OnlyTheGap(scale=2)
