"""The tables and the picture of docs/public-rewards.md are those of the saved results."""

import json

from benchmarks.public_rewards.page import BEGIN, END, PAGE, PICTURE, RESULTS, picture, tables


def test_the_page_shows_the_saved_results():
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    on_page = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert on_page == tables(results)
    assert PICTURE.read_text(encoding="utf-8") == picture(results["rewards"])
    assert all(name.partition(":")[2] for name in results["rewards"])
