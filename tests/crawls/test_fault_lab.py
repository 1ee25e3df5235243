"""Every fault of the lab ends in its stated outcome, within the limits, in each way that Scrapy runs."""

from __future__ import annotations

import re

from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware

from tests.crawling import ADDON, crawl
from tests.faulttable import LIMITS, outcome
from tests.processes import ROOT
from tests.sites.faults import FAULTS, FaultLab

# Where Scrapy cannot undo an encoding, older versions of it take the mark away, and nobody knows.
HIDDEN = (
    set() if hasattr(HttpCompressionMiddleware, "_split_encodings") else {"an encoding that nobody knows"}
)
OUTCOMES = {fault.name: "rules" if fault.name in HIDDEN else fault.outcome for fault in FAULTS}


def test_each_fault_ends_in_its_outcome(mode: str) -> None:
    # More patience than for the table: a busy machine must not make a healthy host look dead.
    settings = {**ADDON, **LIMITS, "NOROBOTS_TIMEOUT": 5, "CONCURRENT_REQUESTS": 2 * len(FAULTS)}
    with FaultLab() as lab:
        urls = [f"{lab.origin(fault)}{target}" for fault in FAULTS for target in ("/open", "/back/")]
        seen = crawl(*urls, settings=settings, mode=mode)
        outcomes = {fault.name: outcome(seen.pages, lab.origin(fault)) for fault in FAULTS}
        assert outcomes == OUTCOMES
        # What was dropped for want of rules says so, and each such host is one warning.
        closed = {fault for fault in FAULTS if OUTCOMES[fault.name] == "closed"}
        assert {drop.url for drop in seen.drops if drop.type == "RobotsUnreachable"} == {
            f"{lab.origin(fault)}{target}" for fault in closed for target in ("/open", "/back/")
        }
        for fault in closed:
            assert len(seen.log_lines("WARNING: Nothing is fetched at", f" at {lab.origin(fault)}: ")) == 1
        assert seen.stats["norobots/unreachable"] == 2 * len(closed)
        assert seen.stats["norobots/origins/closed"] == len(closed)
        # A host is asked once, apart from where others' redirects lead; a loop ends after the hops allowed.
        asked = {
            name: [target for target in targets if "robots.txt" in target]
            for name, targets in lab.asked.items()
        }
        assert len(asked["redirects to itself"]) == len(asked["redirects on and on"]) == 6
        assert asked["a page that refreshes to another"] == ["/robots.txt"]


def test_the_docs_have_each_fault_with_its_outcome() -> None:
    page = (ROOT / "docs" / "faults.md").read_text()
    table = dict(re.findall(r"^\| (.+?) \| (rules|open|closed) \| ", page, re.MULTILINE))
    assert table == {fault.name: fault.outcome for fault in FAULTS}
