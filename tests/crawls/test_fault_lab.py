"""Each fault of the lab has its stated outcome, within the limits, in each mode of Scrapy."""

from __future__ import annotations

from typing import Any

from tests.helpers.running import faulttable
from tests.helpers.running.crawling import ADDON, crawl, uses_httpx
from tests.helpers.running.faulttable import LIMITS, outcome
from tests.helpers.sites.faults import FAULTS, Fault, FaultLab, no_alert


def check_outcomes(lab: FaultLab, faults: list[Fault], mode: str, settings: dict[str, Any]) -> None:
    """Crawl hosts of the lab at the same time."""
    urls = [f"{lab.origin(fault)}{target}" for fault in faults for target in ("/open", "/back/")]
    seen = crawl(*urls, settings={**settings, "CONCURRENT_REQUESTS": len(urls)}, timeout=250)
    outcomes = {fault.name: outcome(seen.pages, lab.origin(fault)) for fault in faults}
    assert outcomes == {fault.name: fault.outcome for fault in faults}
    # The exception of a request without rules says so, and each such host logs one warning.
    closed = {fault for fault in faults if fault.outcome == "closed"}
    assert {drop.url for drop in seen.drops if drop.type == "RobotsUnreachable"} == {
        f"{lab.origin(fault)}{target}" for fault in closed for target in ("/open", "/back/")
    }
    for fault in closed:
        assert len(seen.log_lines(f": requests to {lab.origin(fault)} are dropped (")) == 1
    assert seen.stats["norobots/unreachable"] == 2 * len(closed)
    assert seen.stats["norobots/origins/closed"] == len(closed)


def test_each_fault_has_its_expected_outcome(mode: str) -> None:
    # httpx hides how TLS ends.
    hidden = [fault for fault in FAULTS if uses_httpx(mode) and fault.play is no_alert]
    with FaultLab() as lab:
        # Hosts that respond at some time get a long timeout, so that none looks dead on a busy machine.
        for hangs, timeout in ((False, 60), (True, 1)):
            faults = [fault for fault in FAULTS if fault.hangs is hangs and fault not in hidden]
            check_outcomes(lab, faults, mode, {**ADDON, **LIMITS, "NOROBOTS_TIMEOUT": timeout})
        # Each host gets one request, except as the target of redirects; a loop ends after the allowed hops.
        asked = {
            name: [target for target in targets if "robots.txt" in target]
            for name, targets in lab.asked.items()
        }
        assert len(asked["redirect to itself"]) == len(asked["endless redirects"]) == 6
        assert asked["HTML page with a META refresh"] == ["/robots.txt"]


def test_the_file_and_the_page_have_each_fault_with_its_outcome() -> None:
    table = faulttable.read()
    assert {row["robots.txt"]: row["this plugin"] for row in table} == {
        fault.name: fault.outcome for fault in FAULTS
    }
    differ = {(row["this plugin"], row["Scrapy's own"]) for row in table} - {
        (one, one) for one in ("rules", "open", "closed")
    }
    assert differ == set(faulttable.SECTIONS)
    assert faulttable.PAGE.read_text().endswith(faulttable.sections(table))
