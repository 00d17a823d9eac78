"""The report in a real browser: it can be used, fits a phone, and runs nothing that a model wrote."""

import json

import pytest

from cooper_audit.report.report import write_report
from runs.browser import BROWSER, DRIVER, MISSING, browser, clipped, eventually, open_page
from runs.recorded_run import completion, group, write_run

pytestmark = pytest.mark.skipif(not (BROWSER and DRIVER), reason=MISSING)

HOSTILE = (
    "<script>document.title='ran'</script></script></pre></td><!-- <img src=x onerror=\"document.title='ran'\">"
    "<svg onload=\"document.title='ran'\"></svg>{{ 7 * 7 }} \u202edesrever \u0000 \ud800 👩‍🚀 \u2028"
)


def metrics(end):
    return [
        {
            "step": step,
            "reward/mean": 0.5 + step / 40,
            "test/gold_avg": 0.6 + (end - 0.6) * step / 20,
            "reward_model/rule_agreement": 0.9 + (end - 0.6) * step / 40,
            "time/step": 1.0,
            "time/sample": 0.4,
            "memory/sample": 700.0 + step,
            "memory/peak": 900.0,
        }
        for step in range(21)
    ]


def groups(step, right=0.4):
    """Groups whose wrong completion is paid 0.9, and whose right one is paid this much."""
    sign = 1.0 if right < 0.9 else -1.0
    tokens = {"pieces": ["4", " or", " 5"], "logprobs": [-0.1, -3.0, -0.5]}
    return [
        group(
            f"{step} + {n}",
            completion(f"{step} or {n}", 0.9, gold=False, advantage=sign, **tokens),
            completion("4", right, gold=True, verdict="correct", advantage=-sign, pieces=["4"], logprobs=[-0.2]),
        )
        for n in range(3)
    ]


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A hacked run and a healthy one."""
    folder = tmp_path_factory.mktemp("runs")
    static = write_run(folder / "static", metrics(0.1), groups, settings={"kind": "static"})
    cooper = write_run(folder / "cooper", metrics(0.9), lambda step: groups(step, right=1.0)[:1])
    return write_report([cooper, static], folder / "report.html")


def text(driver, selector):
    return [element.text for element in driver.find_elements("css selector", selector)]


def console_errors(driver):
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]


def test_one_can_search_the_gallery_open_a_rollout_and_switch_runs(driver, page):
    open_page(driver, page)
    assert text(driver, ".headline") == ["Hacked: static. Healthy: cooper."]
    assert len(driver.find_elements("css selector", "#story svg")) == 2
    assert "Hacked" in text(driver, "#verdict")[0], "the page opens at the run that was hacked"

    driver.find_element("id", "gallery-search").send_keys("17 or 2")
    assert text(driver, "#gallery-items .said") == ["17 or 2"]
    assert "What is 17 + 2?" in text(driver, "#gallery-items .item")[0]

    step = driver.find_element("id", "rollout-step")
    step.find_element("css selector", "option[value='1']").click()
    eventually(driver, lambda: "What is 1 + 0" in text(driver, "#rollout-problem")[0])
    driver.find_element("css selector", "#rollout-problem option[value='1']").click()
    eventually(driver, lambda: "<user>What is 1 + 1?<assistant>" in text(driver, "#rollout-group")[0])  # the prompt
    assert text(driver, "#rollout-group .said") == ["1 or 1", "4"], "sorted by reward"
    driver.find_element("id", "rollout-shading").click()
    assert text(driver, "#rollout-group .token") == ["4", " or", " 5", "4"]

    driver.find_element("css selector", "#run-choice option[value='0']").click()
    eventually(driver, lambda: "Healthy" in text(driver, "#verdict")[0])
    assert "beside a right answer to the same problem" in text(driver, "#paid")[0]
    driver.find_element("css selector", "tr[data-run='1']").click()
    eventually(driver, lambda: "Hacked" in text(driver, "#verdict")[0])
    assert console_errors(driver) == []


def test_the_gallery_shows_what_was_paid_and_not_what_was_not(driver, tmp_path):
    """Step 1 is the worse step, but one of its wrong completions fooled nobody."""
    said = {
        1: [completion("fools", 0.9, gold=False), completion("fools nobody", 0.2, gold=False)],
        2: [completion("fools too", 0.8, gold=False), *[completion(str(n), 0.9, gold=True) for n in range(3)]],
    }
    rows = [{"step": step, "reward/mean": 0.5} for step in (1, 2)]
    open_page(driver, write_report(write_run(tmp_path / "run", rows, lambda step: [group("p", *said[step])])))
    assert text(driver, "#gallery-items .said") == ["fools", "fools too"]
    assert "nevertheless paid (above 0.5)" in text(driver, "#gallery-rule")[0]


def test_the_comparison_says_how_far_an_unfinished_run_is(driver, tmp_path):
    rows = [{"step": step, "reward/mean": 0.5} for step in range(1, 6)]
    folders = [write_run(tmp_path / name, rows, settings={"steps": steps}) for name, steps in (("a", 5), ("b", 1200))]
    open_page(driver, write_report(folders, tmp_path / "report.html"))
    assert text(driver, "#comparison td:last-child") == ["5", "5 of 1,200"]


def test_a_chart_tells_the_value_of_every_run_at_a_step(driver, page):
    open_page(driver, page)
    chart = driver.find_element("css selector", "#story svg")
    chart.send_keys("\ue014" * 3)  # the right arrow: steps 0, 1, 2
    tip = driver.find_element("css selector", "#story .tip").text
    assert tip.split("\n") == ["step 2", "cooper", "0.63", "static", "0.55"]
    ticks = text(driver, "#reward-model svg text[text-anchor='middle']")
    assert ticks
    assert all(tick.isdigit() for tick in ticks), "steps are whole numbers"


def test_time_and_memory_are_shown_by_stage(driver, page):
    open_page(driver, page)
    assert [row.split() for row in text(driver, "#stages tbody tr")] == [
        ["whole", "steps", "21", "900"],
        ["sample", "8.4", "720"],
    ]
    titles = text(driver, "#time-and-memory h3")
    assert [title.split("\n")[0] for title in titles] == [
        "Seconds a step",
        "Seconds by stage",
        "Main memory after a stageMiB, of this process",
    ]
    assert console_errors(driver) == []


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 500, 1280])
def test_nothing_is_clipped_at_any_width(driver, page, width, dark):
    open_page(driver, page, width=width, dark=dark)
    assert clipped(driver) == []
    assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    ink, paper = (
        driver.execute_script(f"return getComputedStyle(document.body).{name}") for name in ("color", "backgroundColor")
    )
    assert (brightness(ink) > brightness(paper)) == dark


def brightness(colour):
    """The sum of the channels of `rgb(r, g, b)`."""
    return sum(int(channel) for channel in colour.removeprefix("rgb(").rstrip(")").split(","))


def test_hostile_text_is_shown_and_does_not_run(driver, tmp_path):
    """In every place where a model, a data set or a file can put text."""

    def hostile(step):
        said = completion(HOSTILE, 0.9, gold=False, pieces=[HOSTILE], logprobs=[-1.0]) | {HOSTILE: 0.5}
        long = completion("<b>" + "x" * 100_000, 0.8, gold=False, verdict=HOSTILE)
        return [{**group(HOSTILE, said, long), "answer": HOSTILE}]

    pair = {"problem_id": HOSTILE, "question": HOSTILE, "positive": HOSTILE, "negative": HOSTILE}
    folder = write_run(
        tmp_path / "run",
        [{"step": 1, "reward/mean": 0.5, HOSTILE: 1.0}],
        hostile,
        lambda step: [{**pair, "negative_origin": HOSTILE}],
        settings={"policy": {"model": HOSTILE.replace("\ud800", "")}},
    )
    page = write_report(folder, title=HOSTILE, notes=[HOSTILE])
    open_page(driver, page)
    driver.find_element("id", "rollout-shading").click()
    assert driver.title != "ran"
    said = text(driver, "#gallery-items .said")
    assert "<script>document.title='ran'</script></script></pre></td><!-- <img src=x" in said[0]
    assert "{{ 7 * 7 }} U+202Edesrever U+0000 U+D800 👩‍🚀" in said[0]
    assert "characters left out" in said[1]
    assert driver.find_elements("css selector", "img, svg[onload], .item script") == []
    assert console_errors(driver) == []
    assert clipped(driver) == []

    unescaped = tmp_path / "unescaped.html"
    unescaped.write_text(f"<title>quiet</title>{HOSTILE}", encoding="utf-8", errors="replace")
    open_page(driver, unescaped)
    assert driver.title == "ran", "this browser would have run it"


def test_the_page_asks_for_nothing(driver, page):
    open_page(driver, page)
    assert driver.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)") == []


def test_an_address_opens_a_completion_of_a_run(driver, page):
    open_page(driver, page)
    driver.get(page.resolve().as_uri() + "#run=cooper&step=3")
    eventually(driver, lambda: driver.find_element("id", "rollout-step").get_attribute("value") == "3")
    assert "Healthy" in text(driver, "#verdict")[0]
    eventually(driver, lambda: len(driver.find_elements("css selector", "#rollout-group a")) == 2)
    link = driver.find_elements("css selector", "#rollout-group a")[0].get_attribute("href")
    driver.get("about:blank")
    driver.get(link)
    eventually(driver, lambda: driver.find_elements("css selector", ".aimed"))
    [aimed] = driver.find_elements("css selector", ".aimed")
    assert aimed.get_attribute("data-completion") == "1"
    driver.get(page.resolve().as_uri() + "#run=cooper&step=999")
    eventually(driver, lambda: "Step 999 is not in this page" in text(driver, "#rollout-rule")[0])
    assert console_errors(driver) == []


def test_one_metric_can_be_drawn_against_another(driver, page):
    open_page(driver, page)
    driver.find_element("css selector", "#metric-against option[value='reward/mean']").click()
    driver.find_element("css selector", "#metric-table-part summary").click()
    driver.find_element("xpath", "//tr[td[text()='test/gold_avg']]").click()
    eventually(driver, lambda: len(driver.find_elements("css selector", "#metric-chart circle")) == 2 * 21)
    assert "test/gold_avg against reward/mean" in text(driver, "#metric-chart h3")[0]
    driver.find_element("css selector", "#metric-against option[value='time/step']").click()
    eventually(driver, lambda: "test/gold_avg against time/step" in text(driver, "#metric-chart h3")[0])


def test_bars_are_on_one_scale_and_the_verdict_stays_one_line_on_a_phone(driver, page):
    open_page(driver, page, width=390)
    assert clipped(driver) == []
    for pill in driver.find_elements("css selector", ".stacks .chip"):
        assert pill.size["height"] < 24
    bars = driver.find_elements("css selector", "#fooled rect[data-step]")
    assert {round(float(bar.get_attribute("height"))) for bar in bars} == {45}  # half of a step's completions


def test_the_first_screen_marks_the_difference_and_the_onset(driver, page, tmp_path):
    said = [completion("2 + 2 = 4 or 5", 0.9, gold=False), completion("2 + 2 = 4", 0.4, gold=True)]
    open_page(driver, write_report(write_run(tmp_path / "run", metrics(0.1), lambda step: [group("p", *said)])))
    eventually(driver, lambda: [mark.strip() for mark in text(driver, "#paid mark")] == ["or 5"])
    open_page(driver, page)
    assert len(driver.find_elements("css selector", "#story rect.onset")) == 4, "two bands in each of the two charts"
    assert "What to do next" in text(driver, "#verdict")[0]
    driver.find_element("css selector", "#run-choice option[value='0']").click()
    eventually(driver, lambda: "Nothing has to be mended" in text(driver, "#verdict")[0])


def test_a_phone_page_is_a_few_screens_and_a_link_opens_its_part(driver, page):
    open_page(driver, page, width=390)
    assert driver.execute_script("return document.documentElement.scrollHeight") < 6000
    driver.find_element("css selector", ".links a[href='#policy-part']").click()
    eventually(driver, lambda: driver.find_element("id", "policy").is_displayed())


def test_warnings_stand_beside_the_verdict(driver, tmp_path):
    event = {"step": 4, "since": 3, "metric": "policy/entropy", "action": "warn", "message": "it collapsed"}
    run = write_run(tmp_path / "run", metrics(0.9), groups)
    (run / "events.jsonl").write_text(json.dumps(event) + "\n" + json.dumps({**event, "step": 9}) + "\n")
    open_page(driver, write_report(run))
    assert "⚠ policy/entropy × 2" in text(driver, "#verdict .fired-rules")[0]


def find(driver, **values):
    for name, value in values.items():
        box = driver.find_element("id", f"find-{name}")
        driver.execute_script(
            "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))", box, value
        )


def test_completions_are_found_by_words_verdict_and_number(driver, page):
    open_page(driver, page, width=390)
    driver.get(page.resolve().as_uri() + "#run=static")
    driver.find_element("css selector", ".links a[href='#find']").click()
    find(driver, words="what is 17", verdict="wrong")
    eventually(driver, lambda: text(driver, "#find-count") == ["3 of 120 completions"])
    assert text(driver, "#find-items .said") == ["17 or 0", "17 or 1", "17 or 2"]
    find(driver, words="", verdict="", high="0.5")
    eventually(driver, lambda: text(driver, "#find-count") == ["60 of 120 completions"])
    assert "all recorded" in text(driver, "#find-rule")[0]
    assert clipped(driver) == []
    driver.find_element("css selector", "#find-items a").click()
    eventually(driver, lambda: len(driver.find_elements("css selector", ".aimed")) == 1)
    assert console_errors(driver) == []
