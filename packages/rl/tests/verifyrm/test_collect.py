"""Collecting: every model answers every problem once, and failures are counted and repeated."""

import json

import pytest
from pyarrow import parquet

from chat_server import ChatServer, completion
from cooper_base.config.checking import Settings, check_settings
from cooper_base.errors import InputError
from cooper_rl.verifyrm.collect import COLUMNS, collect
from cooper_rl.verifyrm.config import CollectConfig


def echo(request, number):
    text = request["messages"][-1]["content"]
    return completion(f"{text} seed {request.get('seed', 0) % 2}", finish_reason="length" if "cut" in text else "stop")


def settings(tmp_path, tiny_models, url, **changes):
    values = {
        "output": str(tmp_path / "completions.parquet"),
        "n": 2,
        "batch_size": 3,
        "threads": 1,
        "models": [
            {
                "name": "tiny",
                "kind": "local",
                "model": str(tiny_models / "policy"),
                "sampling": {"max_tokens": 6},
                "device": "cpu",
            },
            {"name": "served", "kind": "chat", "base_url": url, "model": "m", "max_retries": 0},
        ],
        "datasets": [
            {"name": "sums", "source": "arithmetic", "limit": 4, "prompt": {"template": "{question}\n"}},
            {"name": "more", "source": "arithmetic", "limit": 2, "split": "test", "prompt": {"template": "{question}"}},
        ],
    }
    return check_settings(CollectConfig, Settings(values | changes))


def rows_of(config):
    return parquet.read_table(config.output).to_pylist()


def test_the_table_has_every_model_and_dataset_and_the_documented_columns(tmp_path, tiny_models):
    seen = []
    with ChatServer(echo) as server:
        config = settings(tmp_path, tiny_models, server.url)
        collected = collect(config, lambda done, total: seen.append((done, total)))
    rows = rows_of(config)
    assert tuple(rows[0]) == COLUMNS
    assert rows == collected.rows
    assert {(row["model"], row["dataset"]) for row in rows} == {
        (m, d) for m in ("tiny", "served") for d in ("sums", "more")
    }
    assert len({row["id"] for row in rows}) == len(rows)
    for (_model, dataset), count in collected.counts.items():
        assert count["stop"] + count["length"] == 2 * (4 if dataset == "sums" else 2)
        assert count["kept"] + count["duplicate"] == count["stop"] + count["length"]
    assert seen[-1] == (24, 24)


def test_equal_completions_of_a_problem_are_kept_once(tmp_path, tiny_models):
    with ChatServer(lambda request, number: completion("always this\n")) as server:
        config = settings(tmp_path, tiny_models, server.url)
        collected = collect(config)
    assert collected.counts["served", "sums"]["duplicate"] == 4
    assert sum(row["model"] == "served" for row in collected.rows) == 6


def test_an_interrupted_collection_continues_and_ends_with_the_same_table(tmp_path, tiny_models):
    with ChatServer(echo) as server:
        config = settings(tmp_path, tiny_models, server.url)
        collect(config)
        whole, asked = rows_of(config), len(server.requests)
        journal = tmp_path / "completions.journal.jsonl"
        lines = journal.read_text().splitlines(keepends=True)
        journal.write_text("".join(lines[:2]) + lines[2][:-5])  # two local batches and a line cut short
        assert asked == 13  # and the check
        collect(config)
        assert len(server.requests) == 2 * asked  # the served model had not begun
        assert rows_of(config) == whole
        collect(config)
        assert len(server.requests) == 2 * asked
        more = settings(tmp_path, tiny_models, server.url, models=[*config.model_dump(mode="json")["models"], {
            "name": "third", "kind": "chat", "base_url": server.url, "model": "m", "temperature": 0.0,
        }])  # fmt: skip
        collect(more)
        assert len(server.requests) == 3 * asked


def test_failed_requests_are_counted_and_only_they_are_asked_again(tmp_path, tiny_models):
    broken = {"on": True}

    def flaky(request, number):
        text = request["messages"][-1]["content"]
        return completion(text, status=400 if broken["on"] and number % 5 == 3 else 200)

    with ChatServer(flaky) as server:
        config = settings(tmp_path, tiny_models, server.url, models=[
            {"name": "served", "kind": "chat", "base_url": server.url, "model": "m", "max_retries": 0, "concurrency": 1}
        ])  # fmt: skip
        first = collect(config)
        failed = sum(count["http_4xx"] for count in first.counts.values())
        assert failed >= 2
        broken["on"] = False
        before = len(server.requests)
        second = collect(config)
    assert sum(count["http_4xx"] for count in second.counts.values()) == 0
    assert len(server.requests) - before <= 2 * failed + 1  # whole problems, and the check


def test_a_changed_setting_is_refused_and_a_changed_model_is_asked_again(tmp_path, tiny_models):
    with ChatServer(echo) as server:
        collect(settings(tmp_path, tiny_models, server.url))
        with pytest.raises(InputError, match=r"other settings \(n\)"):
            collect(settings(tmp_path, tiny_models, server.url, n=3))
        asked = len(server.requests)
        warmer = settings(tmp_path, tiny_models, server.url).model_dump(mode="json")
        warmer["models"][1]["temperature"] = 1.0
        collect(check_settings(CollectConfig, Settings(warmer)))
        assert len(server.requests) == 2 * asked


def test_an_unreachable_server_and_bad_data_are_reported_before_the_table_is_written(tmp_path, tiny_models):
    with ChatServer(echo) as server:
        url = server.url
    config = settings(tmp_path, tiny_models, url, models=[
        {"name": "served", "kind": "chat", "base_url": url, "model": "m", "max_retries": 0}
    ])  # fmt: skip
    with pytest.raises(InputError, match="check base_url"):
        collect(config)
    (tmp_path / "bad.jsonl").write_text(json.dumps({"question": "1+1?"}) + "\n")
    with pytest.raises(InputError, match="'answer'"):
        collect(settings(tmp_path, tiny_models, url, datasets=[{"name": "d", "source": str(tmp_path / "bad.jsonl")}]))
    assert not config.output.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"output": "table.txt"}, "parquet or .jsonl"),
        ({"models": []}, "at least 1"),
        ({"datasets": [{"name": "a", "source": "arithmetic"}] * 2}, "'a' is used twice"),
        ({"datasets": [{"name": "a", "sorce": "arithmetic"}]}, "datasets.0.sorce.*did you mean 'source'"),
    ],
)
def test_a_wrong_configuration_is_named(tmp_path, tiny_models, changes, message):
    with pytest.raises(InputError, match=message):
        settings(tmp_path, tiny_models, "http://127.0.0.1:1/v1", **changes)
