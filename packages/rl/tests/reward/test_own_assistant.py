"""An assistant from outside the package writes the negatives of a run."""

import json
from concurrent.futures import Future

from cooper_base.config.base import Config
from cooper_rl import CooperTrainer, build_config
from cooper_rl.reward.pairs.assistant import Rewrites


class AlwaysSeven(Config):
    """Answers 7 to everything."""

    text: str = "7"

    def build(self, verifier):
        return AlwaysSevenAssistant(self.text)


class AlwaysSevenAssistant:
    def __init__(self, text):
        self.text = text

    def submit(self, requests):
        future = Future()
        future.set_result(Rewrites([self.text for _ in requests], {"attempts": len(requests)}))
        return future

    def check(self):
        pass

    def close(self):
        pass


def test_its_texts_become_pairs(settings):
    own = {"kind": f"{__name__}:AlwaysSeven", "text": "8"}
    cooptimization = {"assistant": own, "pairs": [{"kind": "assistant"}], "positives": ["reference_solution"]}
    with CooperTrainer.from_config(build_config({**settings, "steps": 1, "cooptimization": cooptimization})) as trainer:
        trainer.fit()
        pairs = (trainer.directory / "pairs" / "000001.jsonl").read_text().splitlines()
    assert pairs != []
    assert {json.loads(pair)["negative"] for pair in pairs} == {"8"}
