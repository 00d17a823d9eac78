"""A headless browser that opens pages from disk, with no way out to a network that the page could use."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSER = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), "")
DRIVER = shutil.which("chromedriver") or ""
MISSING = "no Chromium (or Chrome) with its chromedriver on this machine"


@contextmanager
def browser(profile: Path, *more: str) -> Iterator[Any]:
    """A driver of its own, closed at the end. `profile` is an empty folder, `more` are further arguments."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={profile}",
        *more,
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def open_page(driver: Any, page: Path, width: int = 1280, height: int = 900, dark: bool = False) -> None:
    """Open a page from disk in a window of that size in CSS pixels."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    still = {"name": "prefers-reduced-motion", "value": "reduce"}  # a click must not meet a page that scrolls
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme, still]})
    driver.get(page.resolve().as_uri())
    # On a busy machine `get` has returned before the page's scripts had run.
    eventually(
        driver,
        lambda: driver.execute_script("return location.protocol === 'file:' && document.readyState === 'complete'"),
    )


def eventually(driver: Any, check: Callable[[], object]) -> None:
    """Wait until `check` holds: the page unpacks rollouts, and follows an address, after a click has returned."""
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, 60, poll_frequency=0.1).until(lambda _: check())


def clipped(driver: Any) -> list[str]:
    """Elements that stick out of the window to the right, but for those inside a frame that scrolls."""
    return driver.execute_script(
        """
        const scrolls = (element) => element && element !== document.body && element !== document.documentElement
          && (["auto", "scroll"].includes(getComputedStyle(element).overflowX) || scrolls(element.parentElement));
        return [...document.querySelectorAll("body *")]
          .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
          .filter((element) => !scrolls(element.parentElement))
          .map((element) => `${element.tagName} ${element.className} ${element.id}`);
        """
    )
