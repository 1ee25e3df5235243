"""A spider's own request for a robots.txt: one download for everybody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.crawling import ADDON, Crawl, crawl
from tests.sites import Answer, Hit, Site

RULES = "User-agent: *\nDisallow: /back/\n"


def answers_of(seen: Crawl) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = seen.notes["answers"]
    return answers


def test_a_sitemap_spider_and_the_middleware_ask_once(mode: str) -> None:
    with Site() as site:
        sitemap = (
            '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
            f"<url><loc>{site.url}/open</loc></url><url><loc>{site.url}/back/1</loc></url></urlset>"
        )
        robots = f"{RULES}Sitemap: {site.url}/sitemap.xml\n"
        site.answers["/robots.txt"] = Answer(robots, headers={"Content-Type": "text/plain"})
        site.answers["/sitemap.xml"] = Answer(sitemap, headers={"Content-Type": "application/xml"})
        seen = crawl(f"{site.url}/robots.txt", mode=mode, spider="tests.spiders.FromSitemaps")
    assert seen.pages == [f"{site.url}/open"]
    assert site.targets() == ["/robots.txt", "/sitemap.xml", "/open"]
    assert seen.stats["norobots/shared"] == 1
    assert seen.stats["robotstxt/forbidden"] == 1
    assert seen.log_lines(f"Crawled (200) <GET {site.url}/robots.txt>", "['norobots']")


@pytest.mark.parametrize("robots_first", [True, False])
def test_the_answer_is_what_came(mode: str, robots_first: bool) -> None:
    def robots(hit: Hit) -> Answer:
        return Answer(RULES, headers={"Content-Type": "text/plain; charset=utf-8", "ETag": '"1"'})

    with Site(robots) as site:
        urls = [f"{site.url}/robots.txt", f"{site.url}/", f"{site.url}/robots.txt#again"]
        seen = crawl(
            *({"url": url, "dont_filter": True} for url in (urls if robots_first else reversed(urls))),
            mode=mode,
            spider="tests.spiders.Answers",
        )
    assert len(site.robots_hits()) == 1
    served = [answer for answer in answers_of(seen) if answer["flags"]]
    assert served == 2 * [
        {
            "url": f"{site.url}/robots.txt",
            "status": 200,
            "type": "text/plain; charset=utf-8",
            "body": RULES,
            "flags": ["norobots"],
            "is_text": True,
        }
    ]


def test_a_redirected_file_comes_from_where_it_was() -> None:
    with Site(RULES, host="127.0.0.2") as target:
        moved = Answer(status=301, headers={"Location": f"{target.url}/their/rules"})
        target.answers["/their/rules"] = Answer(RULES, headers={"Content-Type": "text/plain"})
        with Site(moved) as site:
            seen = crawl(f"{site.url}/", f"{site.url}/robots.txt", spider="tests.spiders.Answers")
    [served] = [answer for answer in answers_of(seen) if answer["flags"]]
    assert (served["url"], served["body"]) == (f"{target.url}/their/rules", RULES)
    assert len(site.robots_hits()) == 1


@pytest.mark.parametrize("status", [403, 404])
def test_of_other_answers_no_body_is_kept(status: int) -> None:
    with Site(Answer("Gone fishing", status=status)) as site:
        seen = crawl(f"{site.url}/robots.txt", spider="tests.spiders.Answers")
    [served] = answers_of(seen)
    assert (served["status"], served["body"], served["flags"]) == (status, "", ["norobots"])
    assert len(site.robots_hits()) == 1


def test_a_failure_is_the_spiders_own_business() -> None:
    answers = [Answer(status=503), Answer(RULES)]
    with Site(lambda hit: answers.pop(0)) as site:
        seen = crawl(
            f"{site.url}/robots.txt",
            spider="tests.spiders.Answers",
            settings={**ADDON, "RETRY_ENABLED": False},
        )
    [answer] = answers_of(seen)
    assert (answer["status"], answer["body"], answer["flags"]) == (200, RULES, [])


@pytest.mark.parametrize(
    "request_",
    [
        {"method": "POST", "body": "a=b"},
        {"headers": {"If-None-Match": '"2"'}},
        {"headers": {"Range": "bytes=0-10"}},
        {"headers": {"Authorization": "Basic YTpi"}},
        {"headers": {"Cache-Control": "no-cache"}},
        {"cookies": {"a": "b"}},
        {"body": "a=b"},
        {"meta": {"dont_redirect": True}},
        {"meta": {"dont_obey_robotstxt": True}},
    ],
    ids=str,
)
def test_what_asks_for_something_else_goes_to_the_site(request_: dict[str, Any]) -> None:
    with Site(RULES) as site:
        seen = crawl({"url": f"{site.url}/robots.txt", **request_}, spider="tests.spiders.Answers")
    assert "norobots/shared" not in seen.stats
    assert "robotstxt/request_count" not in seen.stats


def test_it_can_be_turned_off() -> None:
    with Site(RULES) as site:
        seen = crawl(
            f"{site.url}/robots.txt",
            f"{site.url}/",
            spider="tests.spiders.Answers",
            settings={**ADDON, "NOROBOTS_SHARE_ROBOTSTXT": False},
        )
    assert len(site.robots_hits()) == 2
    assert not any(answer["flags"] for answer in answers_of(seen))


def test_a_site_that_is_not_to_be_fetched_still_shows_its_robots_txt() -> None:
    with Site("User-agent: *\nDisallow: /\n") as site:
        seen = crawl(f"{site.url}/robots.txt", f"{site.url}/", spider="tests.spiders.Answers")
    assert [answer["url"] for answer in answers_of(seen)] == [f"{site.url}/robots.txt"]
    assert len(site.hits) == 1


def test_what_leads_nowhere_is_the_spiders_own_business() -> None:
    """A spider may follow more redirects than the plugin."""

    def robots(hit: Hit) -> Answer:
        return Answer(status=302, headers={"Location": "/hop/1"})

    with Site(robots) as site:
        site.answers["/hop/1"] = Answer(status=302, headers={"Location": "/hop/2"})
        site.answers["/hop/2"] = Answer("at last")
        seen = crawl(
            f"{site.url}/robots.txt",
            spider="tests.spiders.Answers",
            settings={**ADDON, "NOROBOTS_REDIRECT_MAX": 1, "NOROBOTS_STATUS_POLICY": {"3xx": "allow"}},
        )
    assert [answer["body"] for answer in answers_of(seen)] == ["at last"]


def test_scrapys_http_cache_does_not_keep_what_is_answered(tmp_path: Path) -> None:
    settings = {**ADDON, "HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")}
    with Site(RULES) as site:
        for _ in range(2):
            seen = crawl(f"{site.url}/robots.txt", spider="tests.spiders.Answers", settings=settings)
            assert [answer["flags"] for answer in answers_of(seen)] == [["norobots"]]
    assert len(site.robots_hits()) == 2


def test_the_headers_that_count_come_along() -> None:
    headers = {"X-Robots-Tag": "nofollow", "Content-Type": "text/plain"}
    with Site(Answer(RULES, headers=headers)) as site:
        seen = crawl(
            f"{site.url}/robots.txt",
            spider="tests.spiders.MetaNotes",
            settings={**ADDON, "NOROBOTS_META": True},
        )
    assert seen.notes["follow"] == [False]
