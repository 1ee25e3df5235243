"""Faults of other implementations that do not occur here, as far as no other file tests them."""

from __future__ import annotations

import threading

from tests.helpers.running.crawling import ADDON, crawl
from tests.helpers.sites import Answer, ForwardProxy, Hit, Site, page

RULES = "User-agent: *\nDisallow: /back/\n"


def test_a_default_port_does_not_make_another_origin() -> None:
    with Site(RULES) as site, ForwardProxy({"town.example": site}) as proxy:
        urls = ("http://town.example/1", "http://town.example:80/2", "http://TOWN.example:/3")
        seen = crawl(*({"url": url, "meta": {"proxy": proxy.url}} for url in urls))
    assert len(seen.pages) == 3
    assert [hit.target for hit in proxy.hits if "robots" in hit.target] == ["http://town.example/robots.txt"]


def test_a_query_is_not_part_of_the_origin() -> None:
    with Site(RULES) as site:
        crawl(f"{site.url}?a=1", f"{site.url}/?b=2", f"{site.url}/c?d=/e")
    assert len(site.robots_hits()) == 1


def test_a_rotating_user_agent_is_checked_as_it_is_sent() -> None:
    robots = "User-agent: FooBot\nDisallow: /a\n\nUser-agent: BarBot\nDisallow: /b\n"
    with Site(robots) as site:
        seen = crawl(
            *(
                {"url": f"{site.url}{target}", "headers": {"User-Agent": f"{name}/1.0"}, "dont_filter": True}
                for name in ("FooBot", "BarBot")
                for target in ("/a", "/b")
            )
        )
    sent = {(hit.headers["user-agent"], hit.target) for hit in site.hits if hit.target != "/robots.txt"}
    assert sent == {("FooBot/1.0", "/b"), ("BarBot/1.0", "/a")}
    assert len(seen.drops) == 2
    assert len(site.robots_hits()) == 1


def test_a_redirecting_first_page_causes_one_download() -> None:
    with Site(RULES, {"/": Answer(status=301, headers={"Location": "/home"})}) as site:
        crawl(f"{site.url}/")
    assert site.targets() == ["/robots.txt", "/", "/home"]


def test_a_filtered_link_causes_no_download() -> None:
    with Site(RULES, host="localhost") as other, Site() as site:
        site.answers["/"] = page(f"{other.url}/open")
        arguments = {"follow": True, "allowed_domains": ["127.0.0.1"]}
        crawl(f"{site.url}/", arguments=arguments)
    assert site.pages() == ["/"]
    assert other.hits == []


def test_a_stopped_crawl_ends(mode: str) -> None:
    asked, over = threading.Event(), threading.Event()

    def robots(hit: Hit) -> Answer:
        asked.set()
        over.wait(60)
        return Answer(RULES)

    settings = {**ADDON, "RETRY_ENABLED": False, "NOROBOTS_TIMEOUT": 1}
    with Site(robots) as site, Site(answers={"/": Answer(before=lambda: asked.wait(60))}) as other:
        stops = {"url": f"{other.url}/", "meta": {"dont_obey_robotstxt": True}}
        urls = [f"{site.url}/{i}" for i in range(40)]
        seen = crawl(
            stops, *urls, settings=settings, mode=mode, spider="tests.helpers.spiders.stopping.StopsEarly"
        )
        over.set()
    assert site.pages() == []
    assert seen.stats["finish_reason"] == "enough"
    assert len(site.robots_hits()) == 1
