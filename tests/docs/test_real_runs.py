"""The tables of real runs are those of the saved results, and every run was read."""

from collections import Counter

from benchmarks.real_runs.results import BEGIN, LONG_PAGE, PAGE, TABLES, correlation, filled, load

from cooper_audit.run.finding import ACCUSED
from repository import ROOT


def test_the_pages_show_the_saved_results():
    results = load()
    for page in (PAGE, LONG_PAGE):
        text = page.read_text(encoding="utf-8")
        assert filled(text, results) == text
    assert BEGIN.format("verdicts") in PAGE.read_text(encoding="utf-8")
    assert all(BEGIN.format(name) in LONG_PAGE.read_text(encoding="utf-8") for name in TABLES)


def test_every_run_was_read_by_a_person():
    results = load()
    assert set(results["readings"]) == set(results["runs"])
    assert all(reading["why"] for reading in results["readings"].values())


def test_the_readme_has_the_audit_s_recall_beside_its_price():
    results = load()
    runs = {name: run for name, run in results["runs"].items() if "-trl-" in name}
    read = {name: results["readings"][name]["verdict"].split()[0].rstrip(",") for name in runs}
    count = Counter(read.values())
    convicted = Counter(read[name] for name, run in runs.items() if run["audit"]["state"] in ACCUSED)
    assert count == {"honest": count["honest"], "hacked": count["hacked"]}
    assert convicted == {"hacked": convicted["hacked"]}
    phrase = f"Of {len(runs)} real runs of TRL it accuses none of the {count['honest']} honest ones and convicts "
    phrase += f"[{convicted['hacked']} of the {count['hacked']} hacked]"
    assert phrase in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_rank_correlation_is_spearmans_with_equal_values_at_their_mean_place():
    def of(worst: float, paid: float) -> tuple[dict, dict]:
        return {"worst": ["a", worst], "wrong": worst}, {"last": {"paid wrong": paid}}

    # ranks 1, 2.5, 2.5, 4, 5 beside 2, 1, 3, 4, 5: 1 - 6 * (1 + 2.25 + 0.25) / 120, less the ties
    values = {"substring": (0.0, 0.2), "subem": (0.5, 0.1), "r1": (0.5, 0.3), "steps": (0.8, 0.4), "length": (1.0, 0.5)}
    pairs = {name: of(*pair) for name, pair in values.items()}
    results = {
        "attacks": {name: attack for name, (attack, _) in pairs.items()},
        "runs": {f"{name}-trl-0": run for name, (_, run) in pairs.items()},
    }
    rho, low, high, count = correlation(results, "worst")
    assert (round(rho, 4), count) == (0.8208, 5)
    assert low < rho < high
