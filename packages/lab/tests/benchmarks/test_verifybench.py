"""VerifyBench by its name on the hub: read from the cache of the hub's library."""

from pathlib import Path

import pytest

from cooper_base.errors import InputError
from cooper_lab.benchmarks.bench import read_bench
from cooper_lab.benchmarks.verifybench import FILES, HUB, file_of
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


@pytest.mark.skipif(not SAMPLE.is_file(), reason="the labelled data are not beside the checkout")
def test_real_rows_of_the_format_are_read():
    assert len(read_bench(SAMPLE)) == 16
