"""The core without its features, and with features that raise in each of their events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scrapy_norobots.features import FEATURES
from tests.crawls.test_sites import FOR_EVER, RETRY, Closed
from tests.helpers.running.crawling import crawl, run_crawl
from tests.helpers.sites import Site, page
from tests.helpers.spiders.raising import ALL_ON, subscriptions

RULES = "User-agent: *\nDisallow: /back/\nCrawl-delay: 0.02\nContent-Signal: ai-train=no\n"
PATHS = ["/a", "/b", "/back/a", "/back/b", "/robots.txt"]


def test_the_core_obeys_without_any_feature(mode: str) -> None:
    with Site(RULES) as site:
        urls = [site.url + path for path in PATHS]
        done = crawl(*urls, spider="raising.Raising")
    assert sorted(done.pages) == sorted(url for url in urls if "/back/" not in url)
    assert [drop.type for drop in done.drops] == ["RobotsForbidden"] * 2
    assert "norobots/passed" not in done.stats  # the report counts it


def test_a_crawl_that_is_over_leaves_nothing_in_memory(mode: str, tmp_path: Path) -> None:
    settings = {
        **ALL_ON,
        "NOROBOTS_EVIDENCE": str(tmp_path / "evidence"),
        "NOROBOTS_REPORT": str(tmp_path / "report.html"),
        "NOROBOTS_STORE": f"sqlite:///{tmp_path}/robots.sqlite",
    }
    with Site(RULES, {"/a": page("/back/linked", "/b")}) as site:
        for wanted in ({}, settings):
            done = crawl(f"{site.url}/a", settings=wanted, arguments={"follow": True}, frees=True)
            assert len(done.pages) > 1
            assert done.notes["freed"]


def test_every_feature_but_the_spider_middleware_subscribes() -> None:
    """A feature that subscribes to nothing needs its setting in `ALL_ON`, or no test breaks it."""
    names = {feature.__name__.rpartition(".")[2] for feature in FEATURES}
    assert {feature for feature, _ in subscriptions()} == names - {"metatag"}


@pytest.mark.parametrize(("feature", "event"), subscriptions())
def test_a_feature_that_raises_lets_nothing_forbidden_pass(feature: str, event: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        **(FOR_EVER if event == "wait" else RETRY),
        **ALL_ON,
        "CLOSESPIDER_TIMEOUT": 5 if event == "wait" else 0,
        "NOROBOTS_EVIDENCE": str(tmp_path / "evidence"),
        "NOROBOTS_REPORT": str(tmp_path / "report.html"),
        "NOROBOTS_RETRY_CLOSED_MAX": 1,
        "NOROBOTS_STORE": f"sqlite:///{tmp_path}/robots.sqlite",
    }
    written = ""
    with Site(RULES, {"/a": page("/back/linked")}) as site, Site(Closed(6)) as closed:
        overridden = {"url": f"{site.url}/c", "meta": {"dont_obey_robotstxt": True}}
        requests: list[Any] = [*(one.url + path for path in PATHS for one in (site, closed)), overridden]
        for _ in range(2 if event == "recalled" else 1):
            done = run_crawl(
                *requests,
                settings=settings,
                spider="raising.Raising",
                arguments={"feature": feature, "event": event, "follow": True},
            )
            written += done.stdout + done.stderr
        targets = [*site.targets(), *closed.targets()]
    assert "BugError" in written  # the feature got the event
    assert not [target for target in targets if target.startswith("/back/")]
    if event not in ("opened", "statements"):  # which the crawl needs to start
        assert "'finish_reason': '" in written or '"finish_reason": "' in written
