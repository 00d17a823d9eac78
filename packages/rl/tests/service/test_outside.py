"""Verdicts from outside and runs of several turns over HTTP, and the alarm of the service."""

import json
from dataclasses import replace
from signal import SIGKILL

import httpx
import pytest

from cooper_rl import Answer, AnswerGroup, CooperReward, Problem
from cooper_rl.service.client import RefusedError
from cooper_rl.service.config import ServeConfig

OUTSIDE = {"rule": {"kind": "outside"}, "cooptimization": {"pairs": [{"kind": "on_policy"}]}}
CALL = {"role": "assistant", "content": "", "tool_calls": [{"name": "run", "arguments": {"code": "f()"}}]}


def run_of(number: int, verdict) -> Answer:
    turns = [CALL, {"role": "tool", "content": str(number)}, {"role": "assistant", "content": f"it is {number}"}]
    return Answer.of(turns, verdict=verdict)


def groups(step: int) -> list[AnswerGroup]:
    answers = [run_of(1, "correct"), run_of(2, "wrong"), run_of(3, "unparsed"), Answer("4", verdict="silent")]
    return [AnswerGroup(f"g{step}-{p}", Problem(f"p{p}", f"Run {p}.", ""), answers) for p in range(2)]


def test_verdicts_and_runs_are_those_of_the_reward_in_process(make_server, reward_settings):
    server = make_server(reward=OUTSIDE)
    client = server.client()
    with CooperReward.from_config(ServeConfig.model_validate({**reward_settings, **OUTSIDE})) as in_process:
        for step in (1, 2):
            ours, theirs = in_process.score(groups(step), step=step), client.score(groups(step), step=step)
            assert (ours.rewards, ours.logits, ours.verdicts) == (theirs.rewards, theirs.logits, theirs.verdicts)
            assert theirs.verdicts == [["correct", "wrong", "unparsed", "silent"]] * 2
            pairs = in_process.update(ours).pairs
            assert client.update(step).pairs == pairs != []
            assert pairs[0].positive == run_of(1, None).transcript
    client.score(groups(3), step=3)
    server.end(SIGKILL)  # the journal knows messages and verdicts
    server.start()
    assert client.score(groups(3), step=3).verdicts == [["correct", "wrong", "unparsed", "silent"]] * 2
    other = replace(groups(3)[0], answers=[run_of(1, "wrong"), *groups(3)[0].answers[1:]])
    with pytest.raises(RefusedError, match="409: group g3-0: step 3 has scored other content under this id"):
        client.score([other], step=3)
    assert client.last_step == 2


def test_an_answer_that_nobody_can_judge_is_refused(make_server):
    client = make_server(reward=OUTSIDE).client()
    with pytest.raises(RefusedError, match="422: group g: answer 0 has no verdict, and the rule of its problem"):
        client.score([AnswerGroup("g", Problem("p", "?", "7"), [Answer("7")])])
    body = {"groups": [{"id": "g", "problem": {"id": "p", "question": "?"}, "completions": [{"stopped": True}]}]}
    found = httpx.post(f"{client.url}/v1/score", json=body)
    assert (found.status_code, found.json()) == (422, {"error": "completions: one has neither text nor messages"})
    body["groups"][0]["completions"] = [{"text": "7", "verdict": "perhaps"}]
    assert "completions.0.verdict: Input should be 'correct'" in httpx.post(f"{client.url}/v1/score", json=body).text
    body["groups"][0]["completions"] = [{"messages": [{"role": "wizard"}]}]
    assert "role 'wizard' is not known" in httpx.post(f"{client.url}/v1/score", json=body).json()["error"]
    given = {"question": "?", "completion": [CALL], "verdict": "wrong"}
    reply = httpx.post(f"{client.url}/classify?commit=count:9", json={"input": json.dumps(given)})
    assert reply.status_code == 200


def test_the_alarm_is_a_gauge_an_event_and_survives_a_kill(make_server):
    """Endless completions: more and more are cut off, while what pays, the verdicts, rises."""
    settings = {**OUTSIDE, "kind": "rule", "reward_model": None, "cooptimization": {}}
    server = make_server(reward=settings, checkpoint_every=5)
    client = server.client()

    def play(first: int, last: int) -> None:
        for step in range(first, last + 1):
            right, cut = min(9, 3 + step // 3), step // 2
            answers = [Answer(str(i), stopped=i >= cut, verdict="correct" if i < right else "wrong") for i in range(10)]
            client.score([AnswerGroup("g", Problem("p", "?", "7"), answers)], step=step)
            client.update(step)

    def gauge() -> float:
        text = httpx.get(f"{client.url}/metrics").text
        (line,) = [one for one in text.splitlines() if one.startswith("cooper_reward_hacking_signs ")]
        return float(line.split()[1])

    events = server.folder / "served" / "events.jsonl"
    play(1, 8)
    assert gauge() == 0
    assert not events.exists()
    server.end(SIGKILL)
    server.start()
    play(9, 18)
    assert gauge() == 1
    (event,) = map(json.loads, events.read_text().splitlines())
    assert event["metric"] == "watch/reward_hacking"
    assert "1 - rollout/cut_off_rate fell" in event["message"]
    info = client.info()["reward_hacking"]
    assert info["since"] == event["step"] > 8
    server.end(SIGKILL)
    server.start()
    assert gauge() == 1
    assert client.info()["reward_hacking"] == info
