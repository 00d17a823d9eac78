"""The report in a real browser: the text of a model is shown as text, and none of it runs."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from cooper_rl.observe.report.report import write_report

BROWSER = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), "")
HOSTILE = (
    "<script>document.title='ran'</script></pre></td></table><img src=x onerror=\"document.title='ran'\">"
    "<svg onload=\"document.title='ran'\"></svg>{{ 7 * 7 }}<!-- \u202e"
)


@pytest.mark.skipif(not BROWSER, reason="no Chromium or Chrome on this machine")
def test_hostile_model_text_is_shown_and_does_not_run(tmp_path: Path):
    for folder in ("rollouts", "pairs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "config.yaml").write_text(f"name: {HOSTILE}\n", encoding="utf-8")
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"step": 1, "reward/mean": 0.5, HOSTILE: 1.0}) + "\n")
    completion = {"text": HOSTILE, "verdict": "wrong", "reward": 0.9}
    row = {"problem": "1", "question": HOSTILE, "answer": HOSTILE, "completions": [completion]}
    pair = {"question": HOSTILE, "positive": HOSTILE, "negative": HOSTILE, "negative_origin": "assistant"}
    (tmp_path / "rollouts" / "000001.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "pairs" / "000001.jsonl").write_text(json.dumps(pair) + "\n")

    def shown(page: Path) -> str:
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
        done = subprocess.run(
            [*command, "--virtual-time-budget=2000", "--dump-dom", page.as_uri()],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    dom = shown(write_report(tmp_path))
    assert "<title>ran</title>" not in dom
    assert "&lt;script&gt;document.title='ran'&lt;/script&gt;" in dom
    assert "{{ 7 * 7 }}" in dom
    unescaped = tmp_path / "unescaped.html"
    unescaped.write_text(f"<title>quiet</title>{HOSTILE}", encoding="utf-8")
    assert "<title>ran</title>" in shown(unescaped), "this browser would have run it"
