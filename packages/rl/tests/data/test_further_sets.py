"""A further set of problems has the form of the first one, and what a user sets in it wins, setting by setting."""

import json
import logging

import pytest

from cooper_rl import CooperTrainer, InputError, build_config
from cooper_rl.run.inputs import read_inputs
from cooper_rl.run_config import load_config
from cooper_verify.problems.config import ProblemsConfig, PromptConfig

MINE = {"template": "Mine: {question}", "system": "Be brief."}


def _config(problems, test=None, **more):
    settings = {"kind": "rule", "policy": {"model": "m"}, "problems": {"source": "a.jsonl", **problems}, **more}
    if test is not None:
        settings |= {"test_problems": {"source": "b.jsonl", **test}, "evaluation": {"every": 1}}
    return build_config(settings)


def _form(data: ProblemsConfig, *names: str):
    return [getattr(data, name) for name in names]


def test_what_describes_the_data_is_taken_and_what_selects_it_is_not():
    form = {"question": "body", "answer": "final", "solution": "work", "id": "key", "rule": "exact", "rule_field": "r"}
    form |= {"unverified": "silent", "gold": "m:f", "prompt": {**MINE, "chat": False, "max_prompt_tokens": 9}}
    selection = {"limit": 7, "skip": 2, "shuffle_seed": 5, "seed": 3, "max_bad_rows": 4, "pass_rate": "p"}
    config = _config({**form, **selection}, {})
    assert config.test_problems == ProblemsConfig.model_validate({"source": "b.jsonl", **form})
    hub = _config({"source": "some/data", "split": "train", "subset": "main"}, {"source": "other/data"}).test_problems
    assert hub is not None
    assert _form(hub, "split", "subset") == [None, None]


@pytest.mark.parametrize(
    ("first", "own", "expected"),
    [
        ({"prompt": MINE}, {"prompt": {"system": None}}, {"prompt": {"template": MINE["template"]}}),
        ({"prompt": MINE}, {"prompt": {"template": "{question}"}}, {"prompt": {**MINE, "template": "{question}"}}),
        ({"question": "body", "answer": "final"}, {"answer": "a"}, {"question": "body", "answer": "a"}),
        ({"question": "body", "gold": "m:f"}, {"question": None, "gold": None}, {}),
        ({"format": "gsm8k"}, {}, {"format": "gsm8k"}),
        ({"format": "gsm8k"}, {"answer": "a"}, {"answer": "a"}),
        ({"format": "gsm8k"}, {"format": None}, {}),
        ({"format": "gsm8k"}, {"format": "svamp"}, {"format": "svamp"}),
        ({"question": "body", "id": "key"}, {"format": "svamp"}, {"format": "svamp"}),
        ({"messages": "chat"}, {}, {"messages": "chat"}),
        ({"messages": "chat"}, {"question": "q"}, {"question": "q"}),
        ({"messages": "chat"}, {"prompt": MINE}, {"prompt": MINE}),
        ({"question": "body", "prompt": MINE}, {"messages": "c"}, {"messages": "c", "prompt": {"system": "Be brief."}}),
        ({"question": "body", "rule_field": "r", "rule": "exact"}, {"source": "arithmetic"}, {"rule": "exact"}),
        ({"source": "arithmetic", "prompt": MINE}, {}, {"prompt": MINE}),
    ],
)
def test_what_the_set_says_itself_wins(first, own, expected):
    assert _config(first, own).test_problems == ProblemsConfig(**{"source": own.get("source", "b.jsonl"), **expected})


def test_every_further_set_takes_the_form_of_the_first_of_its_kind():
    more = {"more_problems": {"x": {"source": "c.jsonl"}}, "more_test_problems": {"y": {"source": "d.jsonl"}}}
    config = _config({"question": "body", "prompt": MINE}, {"prompt": {"system": "Think."}}, **more)
    assert config.more_problems["x"] == ProblemsConfig(
        source="c.jsonl", question="body", prompt=PromptConfig.model_validate(MINE)
    )
    asked = PromptConfig(template=MINE["template"], system="Think.")
    assert config.more_test_problems["y"] == ProblemsConfig(source="d.jsonl", question="body", prompt=asked)
    assert build_config(config.model_dump(mode="json")) == config  # a run's config.yaml says all of it


def test_records_made_in_python_take_it_too():
    first = ProblemsConfig(source="a.jsonl", question="body", prompt=PromptConfig.model_validate(MINE))
    own = ProblemsConfig(source="b.jsonl", prompt=PromptConfig(system="Think."))
    settings = {"kind": "rule", "policy": {"model": "m"}, "problems": first, "test_problems": own}
    found = build_config({**settings, "evaluation": {"every": 1}}).test_problems
    assert found == ProblemsConfig(
        source="b.jsonl", question="body", prompt=PromptConfig(template=MINE["template"], system="Think.")
    )


def test_a_fault_in_what_was_taken_is_told_where_it_was_written(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text(
        "kind: rule\npolicy: {model: m}\nproblems:\n  source: a.jsonl\n  prompt:\n    template: no place\n"
        "test_problems: {source: b.jsonl}\n"
    )
    with pytest.raises(InputError) as fault:
        load_config(path)
    assert all(f"{path}:6: problems.prompt.template" in line for line in str(fault.value).splitlines())


def _write(path, **fields):
    rows = [{name: value.format(n) for name, value in fields.items()} for n in range(30)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.mark.parametrize("further", ["test_problems", "more_problems", "more_test_problems"])
@pytest.mark.parametrize(
    ("fields", "messages"),
    [
        ({"question": "{}?", "answer": "{}"}, ["set {0}.format, or {0}.question and {0}.answer"]),
        ({"body": "{}?", "answer": ""}, ["{0}.max_bad_rows allows", "{0}.unverified: silent"]),
        ({"body": "{}?", "answer": "1", "id": "same"}, ["choose another {0}.id field"]),
    ],
)
def test_messages_name_the_section_that_is_meant(settings, tmp_path, further, fields, messages):
    good = {"source": _write(tmp_path / "good.jsonl", body="Is it {}?", answer="{}"), "question": "body"}
    bad = {"source": _write(tmp_path / "bad.jsonl", **fields)} | ({"id": "id"} if "id" in fields else {})
    sets = {"test_problems": dict(good)}
    sets |= {"test_problems": bad} if further == "test_problems" else {further: {"x": bad}}
    section = further if further == "test_problems" else f"{further}.x"
    with pytest.raises(InputError) as fault:
        read_inputs(build_config({**settings, "kind": "rule", "problems": good, **sets}))
    assert all(message.format(section) in str(fault.value) for message in messages)


def test_a_run_asks_its_held_out_problems_in_the_same_way_and_says_so(settings, caplog):
    problems = {**settings["problems"], "prompt": {"template": "Now: {question}\n"}}
    test = {"source": "arithmetic", "split": "test", "limit": 6, "prompt": {"system": "Think."}}
    settings |= {"kind": "rule", "problems": problems, "test_problems": test}
    with caplog.at_level(logging.INFO), CooperTrainer.from_config(build_config(settings)) as trainer:
        held_out = trainer.parts.test_sets[0]
        assert held_out.encoder.text(held_out.problems[0]).endswith(f"Now: {held_out.problems[0].question}\n")
        assert held_out.gold is not None
    assert "test_problems: as problems in gold, prompt.template; unlike problems in prompt.system" in caplog.text


def test_held_out_problems_need_no_solutions(settings, tmp_path):
    first = {"source": _write(tmp_path / "a.jsonl", question="{}?", answer="{}", work="It is {}."), "solution": "work"}
    test = {"source": _write(tmp_path / "b.jsonl", question="Is it {}?", answer="{}")}
    config = build_config({**settings, "kind": "rule", "problems": first, "test_problems": test})
    assert len(read_inputs(config).test_problems[""]) == 30
