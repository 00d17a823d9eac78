"""OpenRLHF's function file, in its own executor where it is installed."""

import asyncio
import json

import pytest
from rows import row_of, texts_of

from cooper_rl import InputError

END = "<|end|>"


def test_labels_as_json_give_rewards_and_train(service, problems, monkeypatch):
    from cooper_rl.adapters.openrlhf import reward_func

    monkeypatch.setenv("COOPER_END_TOKEN", END)
    for problem in problems:
        for text in texts_of(problem):
            found = reward_func([f"ask {text}{END}"], ["ask "], [json.dumps(row_of(problem))])
            assert 0 < found["rewards"].item() < 1
            assert found["extra_logs"]["cooper_version"].item() == 0
    reward_func(["ask 1"], ["ask "], [json.dumps(row_of(problems[0], "test"))])
    assert service.info()["open"] == {"step": 1, "groups": 8, "answers": 32}
    learned = service.update(1)
    assert learned.version == 1
    assert learned.pairs


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("42", "is no JSON object"),
        ("{", "is no JSON"),
        ('{"answer": "1", "split": "train"}', "the label has no column 'question'"),
        ('{"question": "1", "split": "train"}', "the label has no column 'answer'"),
        ('{"question": "1", "answer": "1"}', "the label has no 'split'"),
        ('{"questoin": "1", "answer": "1", "split": "train"}', r"no column 'question' .*did you mean 'questoin'\?"),
    ],
)
def test_a_label_that_lacks_something_is_told(service, label, words):
    from cooper_rl.adapters.openrlhf import reward_func

    with pytest.raises(InputError, match=words):
        reward_func(["ask 1"], ["ask "], [label])


def test_special_tokens_are_no_part_of_the_answer(monkeypatch):
    from cooper_rl.adapters.openrlhf import _answer

    assert _answer("p so 4<|im_end|>\n", "p ") == ("so 4", True)
    assert _answer("p so 4</s>", "p ") == ("so 4", True)
    monkeypatch.setenv("COOPER_END_TOKEN", END)
    assert _answer(f"p so 4{END}", "p ") == ("so 4", True)
    assert _answer("p so 4", "p ") == ("so 4", False)
    with pytest.raises(InputError, match="does not begin with its prompt"):
        _answer("so 4", "p ")


def test_openrlhf_itself_finds_and_calls_the_function(service, problems, tmp_path):
    agent = pytest.importorskip("openrlhf.utils.agent", reason="openrlhf is not installed")
    (tmp_path / "reward.py").write_text("from cooper_rl.adapters.openrlhf import reward_func\n")
    executor = agent.SingleTurnAgentExecutor(str(tmp_path / "reward.py"))
    text = texts_of(problems[0])[0]
    label = json.dumps(row_of(problems[0]))
    (found,) = asyncio.run(executor._fetch_rewards_via_func([f"ask {text}"], ["ask "], [label]))
    assert 0 < found["rewards"].item() < 1
    assert service.info()["open"]["answers"] == 1
