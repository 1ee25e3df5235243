"""Chromium for the tests, headless and without network access.

The tests of one worker share one: those of the xdist group "browser" in `make test`, and those of a file in
`make check`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium(profile: Path) -> Iterator[webdriver.Chrome]:
    """Start Chromium with a new profile; skip the test, with a message, if it is not installed."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for option in (*OPTIONS, f"--user-data-dir={profile}"):
        options.add_argument(option)
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    try:
        chrome.set_script_timeout(240)  # on a busy machine, axe takes more than the 30 s of the default
        yield chrome
    finally:
        chrome.quit()


def as_new(chrome: webdriver.Chrome) -> webdriver.Chrome:
    """Forget the screen, the media and the messages of an earlier test."""
    chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    chrome.get("about:blank")
    # A message is returned once, so the next test gets only its own. Selenium has no types for this call.
    chrome.get_log("browser")  # type: ignore[no-untyped-call]
    return chrome
