"""Every fault of the lab ends in its stated outcome, within the limits, in each way that Scrapy runs."""

from __future__ import annotations

import re
from typing import Any

from tests.crawling import ADDON, crawl
from tests.faulttable import LIMITS, outcome
from tests.processes import ROOT
from tests.sites.faults import FAULTS, Fault, FaultLab


def check_outcomes(lab: FaultLab, faults: list[Fault], mode: str, settings: dict[str, Any]) -> None:
    """Crawl hosts of the lab, all at once."""
    urls = [f"{lab.origin(fault)}{target}" for fault in faults for target in ("/open", "/back/")]
    seen = crawl(*urls, settings={**settings, "CONCURRENT_REQUESTS": len(urls)}, mode=mode)
    outcomes = {fault.name: outcome(seen.pages, lab.origin(fault)) for fault in faults}
    assert outcomes == {fault.name: fault.outcome for fault in faults}
    # What was dropped for want of rules says so, and each such host is one warning.
    closed = {fault for fault in faults if fault.outcome == "closed"}
    assert {drop.url for drop in seen.drops if drop.type == "RobotsUnreachable"} == {
        f"{lab.origin(fault)}{target}" for fault in closed for target in ("/open", "/back/")
    }
    for fault in closed:
        assert len(seen.log_lines("Nothing is fetched at", f" at {lab.origin(fault)}: ")) == 1
    assert seen.stats["norobots/unreachable"] == 2 * len(closed)
    assert seen.stats["norobots/origins/closed"] == len(closed)


def test_each_fault_ends_in_its_outcome(mode: str) -> None:
    with FaultLab() as lab:
        # A busy machine makes no host look dead: what ends by itself has all the time that it needs.
        for hangs, timeout in ((False, 60), (True, 1)):
            faults = [fault for fault in FAULTS if fault.hangs is hangs]
            check_outcomes(lab, faults, mode, {**ADDON, **LIMITS, "NOROBOTS_TIMEOUT": timeout})
        # A host is asked once, apart from where others' redirects lead; a loop ends after the hops allowed.
        asked = {
            name: [target for target in targets if "robots.txt" in target]
            for name, targets in lab.asked.items()
        }
        assert len(asked["redirects to itself"]) == len(asked["redirects on and on"]) == 6
        assert asked["a page that refreshes to another"] == ["/robots.txt"]


def test_the_docs_have_each_fault_with_its_outcome() -> None:
    page = (ROOT / "docs" / "fault-table.md").read_text()
    table = dict(re.findall(r"^\| (.+?) \| (rules|open|closed) \| ", page, re.MULTILINE))
    assert table == {fault.name: fault.outcome for fault in FAULTS}
