"""The tables, the summary and the picture of the public rewards are those of the saved results."""

import json

from benchmarks.public_rewards.page import BEGIN, END, PAGE, PICTURE, RESULTS, TABLES, picture, summary, tables


def test_the_pages_show_the_saved_results():
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    on_page = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert on_page == summary(results)
    assert TABLES.read_text(encoding="utf-8") == tables(results)
    assert PICTURE.read_text(encoding="utf-8") == picture(results["rewards"])
    assert all(name.partition(":")[2] for name in results["rewards"])
