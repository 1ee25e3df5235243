"""A spider's own request for a robots.txt shares the plugin's download."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.crawls.test_components import scrapy
from tests.helpers.running.crawling import ADDON, Crawl, crawl
from tests.helpers.running.project import make_project
from tests.helpers.sites import Answer, Hit, Site

RULES = "User-agent: *\nDisallow: /back/\n"


def answers_of(seen: Crawl) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = seen.notes["answers"]
    return answers


def test_a_sitemap_spider_and_the_middleware_share_one_download(mode: str) -> None:
    with Site() as site:
        sitemap = (
            '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
            f"<url><loc>{site.url}/open</loc></url><url><loc>{site.url}/back/1</loc></url></urlset>"
        )
        robots = f"{RULES}Sitemap: {site.url}/sitemap.xml\n"
        site.answers["/robots.txt"] = Answer(robots, headers={"Content-Type": "text/plain"})
        site.answers["/sitemap.xml"] = Answer(sitemap, headers={"Content-Type": "application/xml"})
        seen = crawl(f"{site.url}/robots.txt", spider="following.FromSitemaps")
    assert seen.pages == [f"{site.url}/open"]
    assert site.targets() == ["/robots.txt", "/sitemap.xml", "/open"]
    assert seen.stats["norobots/shared"] == 1
    assert seen.stats["robotstxt/forbidden"] == 1
    assert seen.log_lines(f"Crawled (200) <GET {site.url}/robots.txt>", "['norobots']")


@pytest.mark.parametrize("robots_first", [True, False])
def test_the_response_equals_the_download(mode: str, robots_first: bool) -> None:
    def robots(hit: Hit) -> Answer:
        return Answer(RULES, headers={"Content-Type": "text/plain; charset=utf-8", "ETag": '"1"'})

    with Site(robots) as site:
        urls = [f"{site.url}/robots.txt", f"{site.url}/", f"{site.url}/robots.txt#again"]
        seen = crawl(
            *({"url": url, "dont_filter": True} for url in (urls if robots_first else reversed(urls))),
            spider="noting.Answers",
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


def test_the_response_to_a_redirected_file_has_the_final_url() -> None:
    with Site(RULES, host="127.0.0.2") as target:
        moved = Answer(status=301, headers={"Location": f"{target.url}/their/rules"})
        target.answers["/their/rules"] = Answer(RULES, headers={"Content-Type": "text/plain"})
        with Site(moved) as site:
            seen = crawl(f"{site.url}/", f"{site.url}/robots.txt", spider="noting.Answers")
    [served] = [answer for answer in answers_of(seen) if answer["flags"]]
    assert (served["url"], served["body"]) == (f"{target.url}/their/rules", RULES)
    assert len(site.robots_hits()) == 1


@pytest.mark.parametrize("status", [403, 404])
def test_an_error_page_is_requested_from_the_site(status: int) -> None:
    """A snapshot does not keep the body of an error page."""
    with Site(Answer("Gone fishing", status=status)) as site:
        seen = crawl(f"{site.url}/robots.txt", spider="noting.Answers")
    [answer] = answers_of(seen)
    assert (answer["status"], answer["body"], answer["flags"]) == (status, "Gone fishing", [])


@pytest.mark.parametrize("ttl", [3600, 0], ids=["fresh", "confirmed by a 304"])
def test_a_file_that_another_process_downloaded_is_not_served(ttl: int, tmp_path: Path) -> None:
    def robots(hit: Hit) -> Answer:
        status = 304 if "if-none-match" in hit.headers else 200
        return Answer(RULES, status=status, headers={"Content-Type": "text/plain", "ETag": '"1"'})

    store = f"sqlite:///{tmp_path / 'robots.sqlite'}"
    settings = {**ADDON, "NOROBOTS_STORE": store, "NOROBOTS_TTL": ttl, "NOROBOTS_TTL_MIN": 0}
    with Site(robots) as site:
        crawl(f"{site.url}/", settings=settings)
        site.hits.clear()
        seen = crawl(f"{site.url}/robots.txt", spider="noting.Answers", settings=settings)
    [answer] = answers_of(seen)
    assert (answer["status"], answer["body"], answer["flags"]) == (200, RULES, [])
    assert "if-none-match" not in site.robots_hits()[-1].headers


# Commands for users

SAMPLES = {
    "a file": Answer(RULES, headers={"Content-Type": "text/plain"}),
    "none": Answer("Gone", status=404),
}


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("spider", ["default", "checked"])
def test_the_fetch_command_shows_what_the_site_sends(sample: str, spider: str, tmp_path: Path) -> None:
    with Site(SAMPLES[sample]) as site:
        options = ["--spider", spider] if spider != "default" else []
        folder = make_project(tmp_path, site.url)
        done = scrapy("fetch", *options, f"{site.url}/robots.txt", folder=folder)
    assert done.stdout == f"{SAMPLES[sample].body!s}\n", done.stderr
    assert site.targets() == ["/robots.txt"]


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_shell_shows_what_the_site_sends(sample: str, tmp_path: Path) -> None:
    """On every fetch, even if the store of the project has a copy."""
    with Site(SAMPLES[sample]) as site:
        url = f"{site.url}/robots.txt"
        folder = make_project(tmp_path, site.url)
        store = ["-s", "NOROBOTS_STORE=sqlite:///robots.sqlite"]
        scrapy("fetch", f"{site.url}/open", *store, folder=folder)
        site.hits.clear()
        code = f"[response.text, fetch('{site.url}/'), fetch('{url}'), response.text]"
        done = scrapy("shell", url, *store, "-c", code, folder=folder)
    text = SAMPLES[sample].body
    assert done.stdout.strip() == str([text, None, None, text]), done.stderr
    assert site.targets() == ["/robots.txt", "/", "/robots.txt"]


def test_the_shell_does_not_wait_for_a_closed_site(tmp_path: Path) -> None:
    answers = [Answer(status=503)]
    with Site(lambda _: answers.pop() if answers else Answer(RULES)) as site:
        options = ["-s", "NOROBOTS_RETRY_TIMES=0", "-s", "NOROBOTS_ERROR_TTL=0.2", "-c", "response"]
        done = scrapy("shell", f"{site.url}/", *options, folder=make_project(tmp_path, site.url))
    assert site.targets() == ["/robots.txt"], done.stderr
    assert "answered 503, and NOROBOTS_STATUS_POLICY denies" in done.stderr


def test_the_shell_obeys_the_rules_for_the_user_agent_of_its_spider(tmp_path: Path) -> None:
    with Site("User-agent: SpiderBot\nDisallow: /\n") as site:
        folder = make_project(tmp_path, site.url)
        spiders = folder / "spiders.py"
        spiders.write_text(spiders.read_text().replace("name =", 'user_agent = "SpiderBot/1.0"\n    name ='))
        done = scrapy("shell", "--spider", "checked", f"{site.url}/", "-c", "response", folder=folder)
    assert site.targets() == ["/robots.txt"], done.stderr
    assert site.hits[0].headers["user-agent"] == "SpiderBot/1.0"


def test_the_view_command_shows_what_the_site_sends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER", "true")
    with Site(RULES) as site:
        done = scrapy("view", f"{site.url}/robots.txt", folder=make_project(tmp_path, site.url))
    assert site.targets() == ["/robots.txt"]
    assert "['norobots']" not in done.stderr


def test_after_a_failure_the_spider_requests_the_file_itself() -> None:
    answers = [Answer(status=503), Answer(RULES)]
    with Site(lambda hit: answers.pop(0)) as site:
        seen = crawl(
            f"{site.url}/robots.txt", spider="noting.Answers", settings={**ADDON, "RETRY_ENABLED": False}
        )
    [answer] = answers_of(seen)
    assert (answer["status"], answer["body"], answer["flags"]) == (200, RULES, [])


SPECIAL_HEADERS = (
    "Authorization", "Cache-Control", "Cookie", "If-Match", "If-Modified-Since", "If-None-Match",
    "If-Unmodified-Since", "Pragma", "range",
)  # fmt: skip


def test_special_requests_are_sent_to_the_site() -> None:
    special: list[dict[str, Any]] = [
        *({"headers": {name: "x"}} for name in SPECIAL_HEADERS),
        *({"meta": {name: True}} for name in ("dont_redirect", "dont_obey_robotstxt")),
        {"method": "POST", "body": "a=b"},
        {"body": "a=b"},
        {"cookies": {"a": "b"}},
    ]
    with Site(RULES) as site:
        requests = [{"url": f"{site.url}/robots.txt", "dont_filter": True, **one} for one in special]
        seen = crawl(*requests, spider="noting.Answers")
    assert len(site.hits) == len(answers_of(seen)) == len(special)
    assert "norobots/shared" not in seen.stats
    assert "robotstxt/request_count" not in seen.stats


def test_a_stale_copy_is_not_served() -> None:
    answers = [Answer(RULES), Answer(status=503), Answer("new")]
    settings = {**ADDON, "RETRY_ENABLED": False, "NOROBOTS_TTL": 0, "NOROBOTS_TTL_MIN": 0}
    with Site(lambda hit: answers.pop(0)) as site:
        seen = crawl(
            *(f"{site.url}/{path}" for path in ("", "robots.txt")),
            spider="tests.helpers.spiders.noting.Answers",
            settings={**settings, "CONCURRENT_REQUESTS": 1},
        )
    assert (answers_of(seen)[-1]["body"], answers_of(seen)[-1]["flags"]) == ("new", [])


def test_a_site_that_forbids_everything_still_shows_its_robots_txt() -> None:
    with Site("User-agent: *\nDisallow: /\n") as site:
        seen = crawl(f"{site.url}/robots.txt", f"{site.url}/", spider="noting.Answers")
    assert [answer["url"] for answer in answers_of(seen)] == [f"{site.url}/robots.txt"]
    assert len(site.hits) == 1


def test_a_redirect_that_cannot_be_followed_is_left_to_the_spider() -> None:
    """A spider may follow more redirects than the plugin."""

    def robots(hit: Hit) -> Answer:
        return Answer(status=302, headers={"Location": "/hop/1"})

    with Site(robots) as site:
        for hop in range(1, 6):
            site.answers[f"/hop/{hop}"] = Answer(status=302, headers={"Location": f"/hop/{hop + 1}"})
        site.answers["/hop/6"] = Answer("at last")
        seen = crawl(
            f"{site.url}/robots.txt",
            spider="noting.Answers",
            settings={**ADDON, "NOROBOTS_STATUS_POLICY": {"3xx": "allow"}},
        )
    assert [answer["body"] for answer in answers_of(seen)] == ["at last"]


def test_scrapys_http_cache_does_not_store_shared_responses(tmp_path: Path) -> None:
    settings = {**ADDON, "HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")}
    with Site(RULES) as site:
        for _ in range(2):
            seen = crawl(f"{site.url}/robots.txt", spider="noting.Answers", settings=settings)
            assert [answer["flags"] for answer in answers_of(seen)] == [["norobots"]]
    assert len(site.robots_hits()) == 2


def test_the_response_has_the_headers_of_the_snapshot() -> None:
    headers = {"X-Robots-Tag": "nofollow", "Content-Type": "text/plain"}
    with Site(Answer(RULES, headers=headers)) as site:
        seen = crawl(
            f"{site.url}/robots.txt", spider="noting.MetaNotes", settings={**ADDON, "NOROBOTS_META": True}
        )
    assert seen.notes["follow"] == [False]
