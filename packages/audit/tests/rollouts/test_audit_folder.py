"""The folder of an audit: whose files it changes, and that everything in it is about the same rollouts."""

import json
import subprocess
import sys

import pytest
from courses import write
from dumps import write_lines

from cooper_audit.rollouts import Options, audit, read_labels
from cooper_audit.rollouts.auditing import audit_folder
from cooper_audit.rollouts.references import References
from cooper_base.errors import InputError
from cooper_verify.rules.kinds.exact import ExactRule

EXACT = Options(ExactRule())
ROW = {"input": "What is 2 + 3?", "output": "5", "gts": "5", "score": 1.0, "uid": "a_b_0_0"}
HOLD = """
import sys, pathlib
from cooper_audit.rollouts.auditing import audit_folder
folder = audit_folder(pathlib.Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".") and path.name != "audited.jsonl"
    }


def test_of_two_audits_by_turns_in_one_folder_the_last_one_is_whole(tmp_path):
    first, second = write(tmp_path / "a", "healthy", steps=2), write(tmp_path / "b", "hacked", steps=3)
    for dump in (first, second, first):
        audit([dump], tmp_path / "audit", EXACT)
    audit([first], tmp_path / "alone", EXACT)
    both = [contents(tmp_path / name) for name in ("audit", "alone")]
    for name in ("config.yaml", "report.html"):  # which has the folder's name
        both = [{path: data for path, data in inner.items() if path != name} for inner in both]
    assert both[0] == both[1]


def test_an_audit_that_is_interrupted_leaves_no_verdict_on_other_rollouts(tmp_path):
    audit([write(tmp_path / "a", "healthy", steps=4)], tmp_path / "audit", EXACT)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit([write(tmp_path / "b", "hacked", steps=4)], tmp_path / "audit", EXACT, progress=stop)
    assert not {"audit.json", "config.yaml", "metrics.jsonl"} & contents(tmp_path / "audit").keys()


def test_other_options_are_another_audit(tmp_path):
    dump = write(tmp_path / "dump", "hacked", "nemo-rl", steps=2)  # which holds no references
    result = audit([dump], tmp_path / "audit", EXACT)
    rows = [json.loads(line) for line in (tmp_path / "dump" / "train_data_step1.jsonl").read_text().split("\n")[:-1]]
    answers = {row["content"][0][0]: "5" for row in rows}
    referred = audit([dump], tmp_path / "audit", Options(ExactRule(), references=References(answers)))
    assert result.checked == 0 < referred.checked
    shown = [json.loads(line) for line in (tmp_path / "audit/rollouts/000001.jsonl").read_text().split("\n")[:-1]]
    assert {row["answer"] for row in shown} == {"5"}, "the page shows the reference that was found"


def test_labels_that_somebody_wrote_are_kept(tmp_path):
    dump = write(tmp_path / "dump", "hacked", "nemo-rl", steps=2)
    path = audit([dump], tmp_path / "audit").to_label
    assert path is not None
    rows = [json.loads(line) | {"label": 1} for line in path.read_text().split("\n")[:-1]]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    labelled = path.read_bytes()
    assert audit([dump], tmp_path / "audit").to_label == path, "the same sample"
    other = audit([write(tmp_path / "other", "healthy", "nemo-rl", steps=2)], tmp_path / "audit").to_label
    assert other is not None
    assert other != path
    assert path.read_bytes() == labelled
    assert set(read_labels(path).values()) == {True}


def test_files_of_somebodys_among_the_audits_are_neither_deleted_nor_replaced(tmp_path):
    dump = write(tmp_path / "dump", "healthy", steps=2)
    audit([dump], tmp_path / "audit", EXACT)
    for name in ("000002.jsonl", "000009.jsonl"):
        path = tmp_path / "audit" / "rollouts" / name
        path.write_text("the trainer's\n")
        with pytest.raises(InputError, match=f"{name}: holds what `cooper audit` did not write"):
            audit([dump], tmp_path / "audit", EXACT)
        assert path.read_text() == "the trainer's\n"
        path.unlink()


def test_a_second_audit_is_refused_until_the_first_is_killed(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path / "audit")]
    first = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    first.stdout.readline()
    dump = write(tmp_path / "dump", "healthy", steps=2)
    with pytest.raises(InputError, match=f"another call is writing in this folder .process {first.pid}"):
        audit([dump], tmp_path / "audit", EXACT)
    first.kill()
    first.communicate()
    audit([dump], tmp_path / "audit", EXACT)
    with audit_folder(tmp_path / "audit"), pytest.raises(InputError, match="another call is writing"):
        audit([dump], tmp_path / "audit", EXACT)


STRANGE = [f"one{end}two 5" for end in "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e\r"] + ["half \ud800 5"]


@pytest.mark.parametrize("field", ["input", "output", "gts"])
def test_any_character_in_any_text_is_read_and_labelled(tmp_path, field):
    rows = [{**ROW, "step": 1, "uid": f"{place}_0_0", field: text} for place, text in enumerate(STRANGE)]
    write_lines(tmp_path / "known" / "1.jsonl", rows)
    assert audit([tmp_path / "known"], tmp_path / "audit", EXACT).checked == len(STRANGE)
    write_lines(tmp_path / "unknown" / "1.jsonl", [row | {"gts": None} for row in rows])
    path = audit([tmp_path / "unknown"], tmp_path / "unlabelled", EXACT).to_label
    assert path is not None
    path.write_text(path.read_text(encoding="utf-8").replace('"label": null', '"label": 1'), encoding="utf-8")
    labelled = audit([tmp_path / "unknown"], tmp_path / "labelled", Options(ExactRule(), labels=read_labels(path)))
    assert labelled.checked == len(STRANGE)


HUGE = [1e308, -1e308, 1e39, float("inf"), float("-inf"), float("nan"), 10**400, "1e999"]


def test_a_reward_that_no_trainer_computes_is_left_out_and_counted(tmp_path):
    rows = [
        {**ROW, "step": step, "output": f"{step}", "score": value} for step in (1, 2) for value in (1.0, *HUGE, -1.0)
    ]
    write_lines(tmp_path / "dump" / "1.jsonl", rows)
    result = audit([tmp_path / "dump"], tmp_path / "audit", EXACT)
    assert (result.checked, result.source.left_out["a row without a reward"]) == (4, 2 * len(HUGE))
    metrics = [json.loads(line) for line in (tmp_path / "audit" / "metrics.jsonl").read_text().split("\n")[:-1]]
    assert [row["reward/mean"] for row in metrics] == [0.0, 0.0]


@pytest.mark.parametrize(
    "parts", [[1e308, 1e308], [float("inf"), 1.0], [1.0, 10**400]], ids=["sum", "infinity", "digits"]
)
def test_parts_that_are_too_large_are_no_reward_and_nan_counts_in_nothing(tmp_path, parts):
    row = {"step": 1, "prompt": "2 + 3?", "completion": "5", "advantage": 0.0}
    named = {f"part_{place}": value for place, value in enumerate(parts)}
    write_lines(tmp_path / "dump" / "1.jsonl", [row | named, row | {"part_0": float("nan"), "part_1": 0.5}])
    result = audit([tmp_path / "dump"], tmp_path / "audit", EXACT)
    assert result.source.left_out == {"a row without a reward": 1}
