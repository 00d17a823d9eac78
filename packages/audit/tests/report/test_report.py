"""What a report keeps of a run: bounded, true to the record, and safe to open."""

import json
import math
from collections import Counter
from typing import get_args

import pytest

from cooper_audit.report.first_screen import next_steps
from cooper_audit.report.report import embedded_json, write_report
from cooper_audit.report.report_completions import PAGE_BYTES, PER_STEP, STEPS, read_pairs
from cooper_audit.run.run_record import read_run, read_runs, runs_in
from cooper_audit.run.verdict import RunVerdict, State
from cooper_base.errors import InputError
from cooper_base.files.durable import read_regular
from runs.recorded_run import completion, data_of, group, sample_of, write_lines, write_run


def steps(count, **metrics):
    return [{"step": step, "reward/mean": 0.5, **metrics} for step in range(1, count + 1)]


def test_the_stages_have_their_seconds_and_the_most_memory_of_any_step(tmp_path):
    timed = {"time/step": 3.0, "time/sample": 1.0, "time/update_policy": 2.0}
    rows = [
        {"step": 1, **timed, "memory/sample": 700.4, "memory/update_policy": 900.0, "memory/peak": 950.0},
        {"step": 2, **timed, "memory/sample": 800.0, "memory/update_policy": 850.0, "memory/peak": 1234.0},
    ]
    run = data_of(write_report(write_run(tmp_path / "run", rows)))["runs"][0]
    assert [(stage["name"], stage["seconds"], stage["memory"]) for stage in run["stages"]] == [
        ("whole steps", 6, 1234),
        ("update policy", 4, 900),
        ("sample", 2, 800),
    ]
    assert run["facts"]["memory"] == "1,234 MiB at most"


def test_the_gallery_holds_what_gold_calls_wrong_and_was_paid_best_score_first(tmp_path):
    said = [
        completion("paid nothing", 0.2, gold=False),
        completion("a", 0.7, gold=False),
        completion("b", 0.9, gold=True, verdict="unparsed"),
        completion("c", 0.8, gold=False, verdict="correct"),
    ]
    sample = sample_of(read_run(write_run(tmp_path / "run", steps(1), lambda step: [group("p", *said)])))
    assert [item["text"] for item in sample.gallery] == ["c", "a"]
    assert sample.fooled == [(1, 2 / 4, 2, 3)]


def test_without_gold_the_rule_says_what_is_wrong(tmp_path):
    said = [completion("a", 0.7), completion("b", 0.9, verdict="correct"), completion("c", 0.8, verdict="timeout")]
    sample = sample_of(read_run(write_run(tmp_path / "run", steps(1), lambda step: [group("p", *said)])))
    assert [item["text"] for item in sample.gallery] == ["a"]


def test_every_step_is_in_the_gallery_and_a_text_only_once_in_a_step(tmp_path):
    """A hack that everybody has found must not hide the steps before it."""

    def groups(step):
        score = 0.6 if step < 10 else 0.99
        return [group(str(n), *[completion(f"{step} or {n % 6}", score, gold=False)] * 4) for n in range(12)]

    sample = sample_of(read_run(write_run(tmp_path / "run", steps(20), groups)))
    assert {item["step"] for item in sample.gallery} == set(range(1, 21))
    for step in range(1, 21):
        texts = [item["text"] for item in sample.gallery if item["step"] == step]
        assert len(set(texts)) == len(texts) == PER_STEP


def payments_of(folder, groups, count=1):
    return data_of(write_report(write_run(folder, steps(count), groups)))["runs"][0]["payments"]


def test_a_paid_and_wrong_completion_stands_beside_the_right_one_that_is_most_like_it(tmp_path):
    said = [
        completion("2 + 2 = 4 or 5", 0.9, gold=False),
        completion("2 + 2 = 4", 0.6, gold=True),
        completion("four", 0.1, gold=True),
        completion("2 + 2 = 4 or", 0.95, gold=True),  # paid more
        completion("7", 0.2, gold=False),
    ]
    [payment] = payments_of(tmp_path / "run", lambda step: [group("p", *said)])
    assert payment["share"] == 0.2
    assert (payment["wrong"]["text"], payment["right"]["text"]) == ("2 + 2 = 4 or 5", "2 + 2 = 4")
    assert payment["wrong"]["parts"] == [["2 + 2 = 4", False], [" or 5", True]]
    assert payment["right"]["parts"] == [["2 + 2 = 4", False]]


def test_five_problems_are_shown_those_with_a_right_answer_that_was_paid_least_first(tmp_path):
    def groups(step):
        right = {1: [], 2: [completion("4", 0.1, gold=True)], 3: [completion("4", 0.7, gold=True)]}
        return [group(f"{step} {n}", completion(f"{step} {n} or", 0.9, gold=False), *right[step]) for n in range(3)]

    shown = payments_of(tmp_path / "run", groups, 3)
    assert [(one["step"], one["right"]["reward"]) for one in shown] == [(2, 0.1)] * 3 + [(3, 0.7)] * 2


def test_no_text_is_shown_twice_and_nothing_that_was_not_paid(tmp_path):
    same = [group(str(n), completion("or or", 0.9, gold=False)) for n in range(5)]
    assert len(payments_of(tmp_path / "same", lambda step: same)) == 1
    unpaid = [group("p", completion("5", 0.1, gold=False), completion("4", 0.9, gold=True))]
    assert payments_of(tmp_path / "unpaid", lambda step: unpaid) == []


@pytest.mark.parametrize("reward", [math.nan, math.inf])
def test_what_a_model_accepts_that_pays_nothing_yet_is_not_shown_as_paid(tmp_path, reward):
    """The rule is silent and the model's weight is 0: there is no opinion, though the model's score is high."""
    said = [
        completion("2 + 2 = 5", reward, gold=False, reward_model=0.9),
        completion("2 + 2 = 4", 0.6, gold=True),
    ]
    assert payments_of(tmp_path / "run", lambda step: [group("p", *said)]) == []
    said.append(completion("2 + 2 = 6", 0.8, gold=False))
    [payment] = payments_of(tmp_path / "more", lambda step: [group("p", *said)])
    assert (payment["wrong"]["text"], payment["right"]["text"]) == ("2 + 2 = 6", "2 + 2 = 4")


def test_right_answers_that_are_no_longer_paid_stand_beside_what_is_paid_more(tmp_path):
    def groups(step):
        unpaid = completion("it is 4", 0.9 if step <= 12 else 0.0, gold=True)
        said = [completion("it is 5", 0.2, gold=False), completion("3", 0.2, gold=False)]
        return [group(f"{step} {n}", completion(f"{n}: 4", 0.9, gold=True), unpaid, *said) for n in range(8)]

    rows = [{"step": n, "gold/accuracy": 0.5, "reward/mean": 0.55 if n <= 12 else 0.325} for n in range(1, 25)]
    [run] = data_of(write_report(write_run(tmp_path / "run", rows, groups)))["runs"]
    assert run["verdict"]["state"] == "right unpaid"
    assert {one["unpaid"]["text"] for one in run["unpaid"]} == {"it is 4"}
    assert all(one["paid"]["reward"] == 0.9 and one["step"] > 10 for one in run["unpaid"])


@pytest.mark.parametrize("long", [False, True])
def test_texts_of_any_length_are_compared_at_once(tmp_path, long):
    words = " ".join(map(str, range(20_000 if long else 20)))
    said = [completion(f"{words} or 5", 0.9, gold=False), completion(words, 0.6, gold=True)]
    [payment] = payments_of(tmp_path / "run", lambda step: [group("p", *said)])
    assert ("parts" in payment["wrong"]) is not long


def test_the_page_says_since_when_and_what_to_do_next(tmp_path):
    rows = [row | {"test/gold_avg": 0.9 - 0.04 * row["step"], "reward/mean": 0.04 * row["step"]} for row in steps(20)]
    folder = write_run(tmp_path / "run", rows)
    (folder / "checkpoints" / "000002").mkdir(parents=True)
    verdict = data_of(write_report(folder))["runs"][0]["verdict"]
    first = verdict["hacked_at"]
    assert (verdict["state"], verdict["onset"], verdict["since"]) == ("hacked", [first, first], f"since step {first}")
    assert verdict["next"][0] == "Leave its last policy unused. The checkpoint to go back to is that of step 2."


@pytest.mark.parametrize("state", [state for state in get_args(State) if state != "hacked"])
def test_every_verdict_says_what_to_do_next(tmp_path, state):
    run = read_run(write_run(tmp_path / "run", steps(3)))
    assert all(line.endswith(".") for line in next_steps(run, RunVerdict(state, "", []), None))


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("Power: by these rows …", "more rows"),
        ("Without a reward: the check fell …", "the same problems"),
        ("Unread form: the share …", "how an answer is written"),
        ("Not independent: the reward …", "a check that says more"),
        ("Since the first step: within a group …", "from the first step on"),
    ],
)
def test_the_next_step_of_an_audit_that_cannot_tell_follows_from_its_reason(tmp_path, reason, advice):
    audit = {"kind": "audit", "audit": {"state": "unknown", "sentence": "…", "guards": [reason], "basis": []}}
    folder, told = write_run(tmp_path / "run", steps(12), settings=audit), []
    verdict = data_of(write_report(folder, tell=told.append))["runs"][0]["verdict"]
    assert verdict["basis"] == [reason]
    assert any(advice in line for line in verdict["next"])
    assert told == [f"Cannot tell. {verdict['sentence']}", reason, *(f"next: {line}" for line in verdict["next"])]


def test_a_report_stays_small_however_long_its_run_and_its_texts(tmp_path):
    def groups(step):
        return [
            group(f"{step} {n}", *[completion(f"{step} {n} {i} " + "x" * 20_000, 0.9) for i in range(4)])
            for n in range(6)
        ]

    run = read_run(write_run(tmp_path / "run", steps(60), groups))
    sample = sample_of(run, 31)
    assert len(json.dumps(sample.gallery)) + len(json.dumps(sample.steps)) < 1.05 * PAGE_BYTES
    assert {1, 31, 60} <= sample.steps.keys()
    assert len(sample.steps) <= STEPS + 1
    text = sample.gallery[0]["text"]
    assert "14,0" in text.split("[…")[1]
    assert "characters left out" in text


def test_a_hack_has_the_first_later_pair_that_holds_it_with_its_logits(tmp_path):
    def pairs(step):
        pair = {"problem_id": "p", "question": "?", "answer": "4", "positive": "4", "negative": "4 or 5"}
        logits = {"negative_logit_before": 2.0 - step, "negative_logit_after": 1.0 - step}
        return [{**pair, **logits, "negative_origin": "on_policy"}] if step in (1, 3, 4) else []

    said = completion("4 or 5  \n", 0.9, gold=False)  # normalised before it becomes a negative
    run = read_run(write_run(tmp_path / "run", steps(4), lambda step: [group("p", said)] if step == 2 else [], pairs))
    gallery = sample_of(run).gallery
    counts = read_pairs(run, gallery)
    assert gallery[0]["pair"]["step"] == 3
    assert gallery[0]["pair"]["negative_logit_before"] == -1.0
    assert gallery[0]["pair"]["negative_logit_after"] == -2.0
    assert counts == {1: {"on_policy": 1}, 2: {}, 3: {"on_policy": 1}, 4: {"on_policy": 1}}


def test_a_run_is_read_once(tmp_path, monkeypatch):
    """By the verdict, the page and the parts together."""
    read = Counter()

    def counted(path, data=read_regular):
        read.update([path.parent.name] if path.parent.name == "rollouts" else [])
        return data(path)

    monkeypatch.setattr("cooper_audit.run.run_record.read_regular", counted)
    rows = steps(40, **{"rule/accuracy": 0.5})
    write_report(write_run(tmp_path / "run", rows, lambda step: [group("p", completion("a", 0.9))]))
    assert read == {"rollouts": 40}


def test_a_step_whose_completions_are_about_to_be_written_is_left_out(tmp_path):
    folder = write_run(tmp_path / "run", steps(3), lambda step: [group("p", completion("a", 0.9))] if step < 3 else [])
    sample = sample_of(read_run(folder))
    assert list(sample.steps) == [1, 2]
    assert [row[0] for row in sample.fooled] == [1, 2]


def test_a_run_that_is_still_written_or_was_cut_off_has_a_report(tmp_path):
    folder = write_run(tmp_path / "run", steps(3), lambda step: [group("p", completion("a", 0.9))])
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "reward/me')
    with (folder / "rollouts" / "000003.jsonl").open("a") as file:
        file.write('{"problem": "q", "completi')
    run = data_of(write_report(folder))["runs"][0]
    assert run["facts"]["steps"] == "3 of 20, interrupted"
    assert run["curves"]["steps"] == [1, 2, 3]
    assert len(run["gallery"]) == 3


def test_a_run_that_has_only_begun_has_a_report(tmp_path):
    run = data_of(write_report(write_run(tmp_path / "run", [])))["runs"][0]
    assert run["verdict"]["name"] == "Cannot tell"
    assert run["gallery"] == run["curves"]["steps"] == []


def test_a_folder_without_a_run_is_named(tmp_path):
    with pytest.raises(InputError, match="nor a folder of runs"):
        runs_in(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        runs_in(tmp_path / "absent")
    write_run(tmp_path / "one", steps(1))
    write_run(tmp_path / "two", steps(1))
    assert [path.name for path in runs_in(tmp_path)] == ["one", "two"]


def test_runs_of_one_name_are_told_apart(tmp_path):
    folders = [write_run(tmp_path / seed / "cooper", steps(1)) for seed in ("seed-0", "seed-1")]
    assert [run.label for run in read_runs(folders)] == ["seed-0/cooper", "seed-1/cooper"]


def test_several_runs_have_intervals_seeds_and_the_settings_that_differ(tmp_path):
    def metrics(end):
        return [{"step": s, "reward/mean": 0.5, "test/rule_avg": 0.5 + (end - 0.5) * s / 10} for s in range(11)]

    folders = []
    for seed, end in ((0, 0.8), (1, 0.9)):
        folders.append(write_run(tmp_path / f"seed-{seed}", metrics(end), settings={"seed": seed}))
        write_lines(folders[-1] / "sessions.jsonl", [{"after_step": 0, "command": ["cooper"], "test_problems": 100}])
    folders.append(write_run(tmp_path / "static", metrics(0.6), settings={"kind": "static"}))
    data = data_of(write_report(folders, tmp_path / "report.html"))
    figures = data["runs"][0]["figures"]
    assert (figures["start"], figures["best"], figures["end"]) == (0.5, 0.8, 0.8)
    assert (figures["low"], figures["high"]) == pytest.approx((0.711, 0.867), abs=0.001)  # Wilson, 80 of 100
    assert data["runs"][2]["figures"]["low"] is None  # nobody wrote how many problems there are
    assert data["seeds"] == [
        {
            "runs": ["seed-0", "seed-1"],
            "mean": 0.85,
            "low": pytest.approx(0.85 - 12.706 * 0.05, abs=1e-4),
            "high": pytest.approx(0.85 + 12.706 * 0.05, abs=1e-4),
            "truth": "rule accuracy on held-out problems",
        }
    ]
    assert data["differences"] == [
        {"key": "kind", "values": ["cooper", "cooper", "static"]},
        {"key": "seed", "values": ["0", "1", "0"]},
    ]


def test_a_long_run_is_drawn_by_means_of_neighbouring_steps(tmp_path):
    rows = [{"step": step, "reward/mean": float(step)} for step in range(1, 4001)]
    write_lines(write_run(tmp_path / "run", []) / "metrics.jsonl", rows)
    curve = data_of(write_report(tmp_path / "run"))["runs"][0]["curves"]
    assert curve["averaged"] == 4
    assert curve["steps"][:2] == [4, 8]
    assert curve["columns"]["reward/mean"][:2] == [2.5, 6.5]


def test_faults_are_listed_with_the_action_taken(tmp_path):
    folder = write_run(tmp_path / "run", steps(8))
    event = {"step": 7, "since": 5, "metric": "reward/mean", "action": "rollback", "message": "reward/mean < 0"}
    write_lines(folder / "events.jsonl", [event | {"back_to": 4}])
    assert data_of(write_report(folder))["runs"][0]["events"] == [event | {"back_to": 4}]


@pytest.mark.parametrize(
    "text", ["</script><script>alert(1)</script>", "<!-- <script>", "\u2028 \ud800 \u0000 \u202e", "]]>", "{{ 7 * 7 }}"]
)
def test_no_text_ends_the_data_of_the_page(text):
    embedded = embedded_json({text: [text, float("nan"), float("inf")]})
    assert not set("<>&\u2028") & set(embedded)
    embedded.encode("utf-8")
    assert json.loads(embedded) == {text: [text, "NaN", "Infinity"]}
