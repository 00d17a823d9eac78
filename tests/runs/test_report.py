"""The report shows the record of a run, and never runs markup that a model wrote."""

import json

from cooper_rl.observe.report.report import hack_gallery, write_report


def _run_folder(tmp_path, completions):
    for folder in ("rollouts", "pairs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "config.yaml").write_text("name: run\n")
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "reward/mean": 0.5}\n{"step": 2, "reward/mean": 0.7}\n')
    row = {"problem": "1", "question": "1 < 2?", "answer": "yes", "completions": completions}
    (tmp_path / "rollouts" / "000002.jsonl").write_text(json.dumps(row) + "\n")
    return tmp_path


def test_markup_in_a_completion_is_shown_not_run(tmp_path):
    folder = _run_folder(tmp_path, [{"text": "<script>alert(1)</script>", "verdict": "wrong", "reward": 0.9}])
    page = write_report(folder).read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<svg" in page


def test_faults_are_listed_with_the_action_taken(tmp_path):
    folder = _run_folder(tmp_path, [])
    event = {"step": 7, "since": 5, "metric": "reward/mean", "action": "rollback", "message": "reward/mean < 0"}
    (folder / "events.jsonl").write_text(json.dumps(event | {"back_to": 4}) + "\n")
    page = write_report(folder).read_text()
    assert "<td>7</td><td>5</td><td>reward/mean &lt; 0</td><td>rollback to step 4</td>" in page


def test_gallery_ranks_rejected_completions_by_reward(tmp_path):
    completions = [
        {"text": "a", "verdict": "wrong", "reward": 0.2, "gold": False},
        {"text": "b", "verdict": "unparsed", "reward": 0.9, "gold": True},
        {"text": "c", "verdict": "wrong", "reward": 0.8, "gold": False},
    ]
    assert [row["text"] for row in hack_gallery(_run_folder(tmp_path, completions))] == ["c", "a"]
