"""The tables, the summary and the picture of the public rewards are those of the saved results."""

import json

from benchmarks.public_rewards.page import (
    BEGIN,
    END,
    OURS,
    PAGE,
    PICTURE,
    RESULTS,
    ROOT,
    TABLES,
    groups,
    not_meant_for_answers,
    package_of,
    picture,
    summary,
    tables,
)


def test_the_pages_show_the_saved_results():
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    on_page = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert on_page == summary(results)
    assert TABLES.read_text(encoding="utf-8") == tables(results)
    assert PICTURE.read_text(encoding="utf-8") == picture(results["rewards"])
    assert all(name.partition(":")[2] for name in results["rewards"])


def test_the_readme_counts_the_saved_results():
    checks = groups(json.loads(RESULTS.read_text(encoding="utf-8"))["rewards"])["checks"]
    verdicts = [row["verdict"] for name, row in checks.items() if package_of(name) != OURS]
    contain, overlap, _ = not_meant_for_answers({n: r for n, r in checks.items() if package_of(n) != OURS})
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"{contain + overlap} that look for the reference in the text or count common words" in readme
    phrase = f"Of {len(verdicts)} rewards and graders that packages ship, {verdicts.count('gameable')} [accept a wrong"
    assert phrase in readme
