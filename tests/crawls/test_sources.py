"""Sources of robots.txt files: ``robots-check --store``, and downloads as a crawl makes them."""

from __future__ import annotations

import json
import time
from pathlib import Path

from scrapy_norobots.standard import Origin
from tests.helpers.running.commands import conversation, run, words
from tests.helpers.running.crawling import crawl
from tests.helpers.samples.filled_stores import CITY, HOUR, SLOW, SOCKET, TOWN, VILLAGE, fill, snapshots
from tests.helpers.sites import Answer, Site


def test_urls_are_checked_with_a_store(tmp_path: Path, store: str, mode: str) -> None:
    urls = [
        f"{origin}/staff/" for origin in (TOWN, CITY, VILLAGE, SOCKET, Origin("http", "other.example", 80))
    ]
    done = run(tmp_path, "robots-check", *SLOW, "--store", store, "-", stdin="\n".join(2 * urls), mode=mode)
    assert words(done) == 2 * ["forbidden", "allowed", "forbidden", "unknown", "unknown"]
    ends = [line.partition(" [")[2] for line in done.stdout.splitlines()[:3]]
    assert ends == ["3 h old]", "30 h old, no longer fresh]", "2 days old]"]
    assert "http://other.example is not in the store" in done.stdout
    assert (done.returncode, done.stderr) == (2, "")


def test_answers_in_json_have_the_age_of_an_entry(tmp_path: Path, store: str) -> None:
    urls = [f"{TOWN}/", f"{CITY}/", "http://other.example/"]
    done = run(tmp_path, "robots-check", "--json", "--compare", "--store", store, *urls, mode="asyncio")
    town, city, other = map(json.loads, done.stdout.splitlines())
    assert 3 * HOUR <= town["age"] < 4 * HOUR
    assert (town["fresh"], city["fresh"], other["fresh"]) == (True, False, None)
    assert (town["rfc9309"], city["rfc9309"], other["rfc9309"]) == ("allowed", "allowed", None)
    assert (other["answer"], other["reason"], other["age"]) == ("unknown", "error", None)


def test_nothing_is_downloaded_for_origins_that_are_not_in_the_store(tmp_path: Path) -> None:
    fill(f"sqlite:///{tmp_path}/robots.sqlite", snapshots(time.time()))
    with Site("User-agent: *\nDisallow: /") as site:
        done = run(tmp_path, "robots-check", "--store", "sqlite:///robots.sqlite", f"{site.url}/")
    assert (words(done), site.hits) == (["unknown"], [])


def test_entries_of_a_crawl_are_found(tmp_path: Path, mode: str) -> None:
    value = f"sqlite:///{tmp_path}/robots.sqlite"
    with Site("User-agent: *\nDisallow: /staff/") as site:
        settings = {"ADDONS": {"scrapy_norobots.Addon": 500}, "NOROBOTS_STORE": value}
        crawl(f"{site.url}/", mode=mode, settings=settings)
        done = run(
            tmp_path, "robots-check", "--store", value, f"{site.url}/staff/", f"{site.url}/", mode=mode
        )
        listed = run(tmp_path, "robots-store", value, "list")
    assert words(done) == ["forbidden", "allowed"]
    assert listed.stdout.startswith(f"{site.url}: rules, 31 bytes, ")
    assert site.targets() == ["/robots.txt", "/"]


def test_closed_site_is_not_waited_for(tmp_path: Path, mode: str) -> None:
    """A crawl would hold its requests and retry them after ten minutes."""
    settings = [
        'ADDONS={"scrapy_norobots.Addon": 500}', "NOROBOTS_ERROR_TTL=600", "NOROBOTS_RETRY_CLOSED=2",
        "RETRY_ENABLED=False",
    ]  # fmt: skip
    options = [option for setting in settings for option in ("-s", setting)]
    with (
        Site(Answer(status=503)) as closed,
        Site("User-agent: *\nDisallow: /staff/") as site,
        conversation(tmp_path, *options, mode=mode) as talk,
    ):
        assert talk.ask(f"{closed.url}/").startswith("unknown ")
        assert talk.ask(f"{site.url}/").startswith("allowed ")
        assert talk.ask(f"{closed.url}/a").startswith("unknown ")
        assert talk.end() == 2
    assert (closed.targets(), site.targets()) == (["/robots.txt"], ["/robots.txt"])
