"""SkyRL's environment, made by its own registry, and its callback events."""

# pyright: reportMissingImports=false

from types import SimpleNamespace

import pytest
from rows import row_of, texts_of

from cooper_rl import InputError

skyrl_gym = pytest.importorskip("skyrl_gym", reason="skyrl-gym is not installed")


@pytest.fixture(scope="module", autouse=True)
def registered():
    skyrl_gym.register(id="cooper", entry_point="cooper_rl.adapters.skyrl:CooperEnv")


def episode(problem, text: str, split: str = "train"):
    env = skyrl_gym.make("cooper", env_config={}, extras=row_of(problem, split) | {"max_turns": 1})
    prompt, _ = env.init([{"role": "user", "content": problem.question}])
    assert prompt[0]["content"] == problem.question
    return env.step(text)


def test_an_episode_gets_the_reward_of_the_service(service, problems):
    found = [episode(problem, text) for problem in problems for text in texts_of(problem)]
    assert all(one["done"] and 0 < one["reward"] < 1 for one in found)
    assert [one["metadata"]["verdict"] for one in found[:2]] == ["correct", "wrong"]
    episode(problems[0], "so 4", split="test")
    assert service.info()["open"] == {"step": 1, "groups": 8, "answers": 32}


@pytest.mark.parametrize("missing", ["question", "answer", "split"])
def test_a_row_that_lacks_something_is_told_before_it_is_sampled_for(service, problems, missing):
    row = {name: value for name, value in row_of(problems[0]).items() if name != missing}
    with pytest.raises(InputError, match=f"a row's extras has no .*'{missing}'"):
        skyrl_gym.make("cooper", env_config={}, extras=row)


def test_the_callback_ends_steps_and_keeps_checkpoints_together(service, problems, tmp_path):
    callbacks = pytest.importorskip("skyrl.train.utils.callbacks", reason="this skyrl has no callbacks")
    from cooper_rl.adapters.skyrl_callback import CooperCallback

    handler = callbacks.CallbackHandler([CooperCallback()])
    settings = SimpleNamespace(ckpt_path=str(tmp_path), resume_mode="latest", resume_path=None)
    trainer = SimpleNamespace(cfg=SimpleNamespace(trainer=settings))

    def fire(event: str, step: int, **fields) -> None:
        given = callbacks.CallbackInput(global_step=step, epoch=0, total_steps=2, steps_per_epoch=2, **fields)
        getattr(handler, event)(trainer, given, callbacks.TrainingControl())

    fire("on_train_start", 0)
    for step in (1, 2):
        episode(problems[step], texts_of(problems[step])[0])
        fire("on_step_end", step)
        fire("on_save", step, ckpt_path=str(tmp_path / f"global_step_{step}"))
    assert service.last_step == 2
    fire("on_train_start", 1)
    assert service.last_step == 1
