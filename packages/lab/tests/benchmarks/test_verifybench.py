"""VerifyBench by its name on the hub: read from the cache of the hub's library, and shown beside what is published."""

from pathlib import Path

import pytest

from cooper_base.errors import InputError
from cooper_lab.benchmarks.bench import bench, read_bench
from cooper_lab.benchmarks.bench_report import markdown, write_bench
from cooper_lab.benchmarks.verifybench import FILES, HUB, beside_published, file_of
from cooper_verify.rules.kinds.maths import RuleVerifier
from repository import SHARED

SAMPLE = SHARED / "data" / "labelled" / "verifybench_format_sample.jsonl"
ROW = '{"question": "1 + 1?", "answer": "2", "completion": "It is %d.", "gold_correct": %s}\n'


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of the hub's library that holds both files."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / "datasets--ZJU-REAL--VerifyBench"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("1234")
    snapshot = folder / "snapshots" / "1234"
    snapshot.mkdir(parents=True)
    for number, name in enumerate(FILES.values()):
        (snapshot / name).write_text(ROW % (2, "true") + ROW % (3 + number, "false"))
    return snapshot


def test_a_name_of_the_hub_stands_for_its_file(cache):
    assert file_of(Path(HUB)) == cache / "verify_bench.jsonl"
    assert file_of(Path(f"{HUB}-Hard")) == cache / "verify_bench_hard.jsonl"
    assert file_of(Path("own.jsonl")) == Path("own.jsonl")


def test_without_the_hub_the_message_says_where_the_file_is(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(InputError, match=r"download verify_bench.jsonl from https://huggingface.co/datasets/ZJU-REAL"):
        file_of(Path(HUB))


def test_what_is_published_stands_beside_ours(cache, tmp_path):
    rule = RuleVerifier()
    result = bench(read_bench(file_of(Path(HUB))), {"rule": rule}, [], tmp_path, 0)
    rule.close()
    rows = {
        name: (published, ours) for name, published, ours in beside_published([Path(HUB)], result, {"rule": "rule"})
    }
    assert rows["VerifyRM-1.5B"] == ("89.42", "")
    assert rows["Math-Verify"][0] == "79.93"
    assert rows["Math-Verify"][1].startswith("rule 100.00 [")
    assert beside_published([Path(f"{HUB}-Hard")], result, {"rule": "rule"}) == []
    published = beside_published([Path(HUB)], result, {"rule": "rule"})
    assert "| VerifyRM-1.5B | 89.42 |  |" in markdown(result, published)
    write_bench(result, tmp_path, published)
    assert "<td>89.42</td>" in (tmp_path / "bench.html").read_text()


@pytest.mark.skipif(not SAMPLE.is_file(), reason="the labelled data are not beside the checkout")
def test_real_rows_of_the_format_are_read():
    assert len(read_bench(SAMPLE)) == 16
