"""The request for robots.txt: its headers and meta, and its redirects."""

from __future__ import annotations

import gzip
import inspect
import json
import threading
import time
from pathlib import Path
from select import select

import pytest
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.settings import default_settings

from tests.helpers.running.crawling import ADDON, crawl, run_crawl
from tests.helpers.sites import Answer, ForwardProxy, Site
from tests.helpers.sites.faults import Exchange, Fault, FaultLab

SHUT = "User-agent: *\nDisallow: /back/\n"


def test_a_robots_txt_request_has_no_cookies_and_no_referer() -> None:
    set_cookie = Answer("hello", headers={"Set-Cookie": "session=7; Path=/"})
    with Site(answers={"/": set_cookie}) as first, Site(SHUT) as second:
        # Cookies depend on the host and not on the port, so the page of the second site gets the first one's.
        seen = crawl(
            f"{first.url}/",
            spider="following.Then",
            arguments={"then": f"{second.url}/page"},
            settings={**ADDON, "DEFAULT_REQUEST_HEADERS": {"Cookie": "setting=1", "Referer": "http://a/"}},
        )
    assert len(seen.pages) == 2
    robots, page = second.hits
    assert robots.target == "/robots.txt"
    assert page.target == "/page"
    assert {"session=7", "setting=1"} & set(page.headers["cookie"].split("; "))
    assert "referer" in page.headers
    assert not {"cookie", "referer", "authorization"} & robots.headers.keys()


@pytest.mark.parametrize(
    ("settings", "arguments", "request_headers", "sent"),
    [
        ({"USER_AGENT": "SettingBot/1.0"}, {}, {}, "SettingBot/1.0"),
        ({"USER_AGENT": "SettingBot/1.0"}, {"user_agent": "SpiderBot/2.0"}, {}, "SpiderBot/2.0"),
        (
            {"DEFAULT_REQUEST_HEADERS": {"user-agent": "HeaderBot/3.0"}},
            {"user_agent": "SpiderBot/2.0"},
            {},
            "HeaderBot/3.0",
        ),
        (
            {"USER_AGENT": "SettingBot/1.0"},
            {"user_agent": "SpiderBot/2.0"},
            {"User-Agent": "RequestBot/4.0"},
            "RequestBot/4.0",
        ),
    ],
    ids=["setting", "spider", "default headers", "request"],
)
def test_the_user_agent_of_the_page_is_sent_and_selects_the_record(
    settings: dict[str, object], arguments: dict[str, str], request_headers: dict[str, str], sent: str
) -> None:
    name = sent.partition("/")[0]
    robots = f"User-agent: {name}\nDisallow: /for-{name}\n\nUser-agent: *\nDisallow: /for-others\n"
    with Site(robots) as site:
        targets = (f"/for-{name}", "/for-others")
        seen = crawl(
            *({"url": site.url + target, "headers": request_headers} for target in targets),
            settings={**ADDON, **settings},
            arguments=arguments,
            deprecated="The 'user_agent' spider attribute",
        )
    assert [drop.url for drop in seen.drops] == [f"{site.url}/for-{name}"]
    assert {hit.headers["user-agent"] for hit in site.hits} == {sent}
    assert len(site.hits) == 2


def test_a_page_that_is_sent_without_a_user_agent_obeys_the_default_record() -> None:
    with Site("User-agent: FooBot\nDisallow: /a\n\nUser-agent: *\nDisallow: /b\n") as site:
        pages = [{"url": f"{site.url}/{name}", "headers": {"User-Agent": None}} for name in "ab"]
        crawl(*pages, settings={**ADDON, "USER_AGENT": "FooBot/1.0"})
    assert site.pages() == ["/a"]
    assert "user-agent" not in site.hits[-1].headers


@pytest.mark.parametrize(
    ("spider", "sent", "pages"),
    [
        ("Renaming", "OpenedBot/5.0", ["/b", "/c"]),
        ("SchedulesWhenOpened", "SpiderBot/2.0", ["/b", "/c", "/c"]),
        ("RenamingTooLate", "FooBot/1.0", ["/b", "/c"]),
    ],
)
def test_the_user_agent_at_the_opening_of_a_spider_selects_the_record(
    spider: str, sent: str, pages: list[str]
) -> None:
    name = sent.partition("/")[0]
    with Site(f"User-agent: {name}\nDisallow: /a\n\nUser-agent: *\nDisallow: /b\n") as site:
        crawl(
            *(f"{site.url}/{name}" for name in "cab"),
            settings={**ADDON, "USER_AGENT": "FooBot/1.0"},
            spider=f"configured.{spider}",
            deprecated="The 'user_agent' spider attribute",
        )
    assert site.pages() == pages
    assert {hit.headers["user-agent"] for hit in site.hits} == {sent}


def test_robotstxt_user_agent_selects_the_record_and_is_not_sent() -> None:
    robots = "User-agent: catalogue\nDisallow: /a\n\nUser-agent: *\nDisallow: /b\n"
    settings = {**ADDON, "USER_AGENT": "FooBot/1.0", "ROBOTSTXT_USER_AGENT": "TownCatalogue"}
    with Site(robots) as site:
        seen = crawl(f"{site.url}/a", f"{site.url}/b", settings=settings)
    assert [drop.url for drop in seen.drops] == [f"{site.url}/a"]
    assert {hit.headers["user-agent"] for hit in site.hits} == {"FooBot/1.0"}


KNOWS_ALLOW_OFFSITE = "allow_offsite" in inspect.getsource(OffsiteMiddleware)


@pytest.mark.parametrize(
    "meta",
    [
        pytest.param(
            {"allow_offsite": True},
            marks=pytest.mark.skipif(
                not KNOWS_ALLOW_OFFSITE, reason="this version of Scrapy has no such key"
            ),
        ),
        {},
    ],
    ids=["allow_offsite", "dont_filter"],
)
def test_a_robots_txt_request_is_not_filtered_as_offsite(meta: dict[str, bool]) -> None:
    with Site(SHUT) as site:
        seen = crawl(
            {"url": f"{site.url}/back/", "meta": meta, "dont_filter": not meta},
            arguments={"allowed_domains": ["elsewhere.example"]},
        )
    assert [drop.line for drop in seen.drops] == [2]
    assert site.targets() == ["/robots.txt"]


def redirect(to: str, status: int = 302) -> Answer:
    return Answer("User-agent: *\nDisallow: /\n", status, {"Location": to})


@pytest.mark.parametrize("host", ["www..town.invalid", f"{'a' * 64}.invalid"])
def test_a_host_name_that_twisted_cannot_encode_ends_with_an_error(host: str, mode: str) -> None:
    """Twisted's resolver for IPv6 never says that it could not look up such a name."""
    is_renamed = hasattr(default_settings, "TWISTED_DNS_RESOLVER")
    settings = {
        **ADDON,
        "TWISTED_DNS_RESOLVER" if is_renamed else "DNS_RESOLVER": "scrapy.resolver.CachingHostnameResolver",
        "NOROBOTS_TIMEOUT": 0.5,
        "NOROBOTS_RETRY_TIMES": 0,
    }
    done = run_crawl(f"http://{host}/", settings=settings)
    assert [drop["type"] for drop in json.loads(done.stdout)["drops"]] == ["RobotsUnreachable"]


@pytest.mark.parametrize("statuses", [(301, 308), (302, 303), (307, 301)])
def test_rules_behind_a_redirect_apply_to_the_first_origin(statuses: tuple[int, int], mode: str) -> None:
    first, second = statuses
    with Site("User-agent: *\nDisallow: /back/\n") as target:
        hops = {
            "/robots.txt": redirect("/moved/robots.txt", first),
            "/moved/robots.txt": redirect(f"{target.url}/robots.txt#top", second),
        }
        with Site(answers=hops) as site:
            urls = [f"{one.url}/back/" for one in (site, target)]
            seen = crawl(*urls, f"{site.url}/")
    assert {drop.url for drop in seen.drops} == set(urls)
    assert f"line 2 of {target.url}/robots.txt" in seen.drops[0].text
    assert site.targets() == ["/robots.txt", "/moved/robots.txt", "/"]
    # Once for the first site and once for its own: origins do not share rules.
    assert target.targets() == ["/robots.txt", "/robots.txt"]


@pytest.mark.parametrize(
    ("location", "asked"),
    [
        ("/robots.txt", 6),  # a loop: the first request and five hops
        ("ftp://127.0.0.1/robots.txt", 1),
        ("http://127.0.0.1:99999/", 1),
        ("http://[", 1),
        ("", 1),
    ],
    ids=["loop", "ftp", "bad port", "no URL", "empty"],
)
def test_a_redirect_that_cannot_be_followed_closes_the_origin_temporarily(location: str, asked: int) -> None:
    with Site(redirect(location)) as site:
        denied = crawl(f"{site.url}/a")
        seen = crawl(f"{site.url}/a", settings={**ADDON, "NOROBOTS_STATUS_POLICY": "rfc9309"})
    (drop,) = denied.drops
    assert drop.type == "RobotsUnreachable"
    assert drop.retry_after is not None
    assert seen.pages == [f"{site.url}/a"]
    assert len(site.robots_hits()) == 2 * asked


def test_credentials_in_a_redirect_are_not_sent() -> None:
    with Site(SHUT) as target, Site() as site:
        location = target.url.replace("//", "//user:secret@") + "/robots.txt"
        site.answers["/robots.txt"] = redirect(location)
        seen = crawl(f"{site.url}/back/")
    assert [drop.line for drop in seen.drops] == [2]
    assert "authorization" not in target.hits[0].headers


def test_the_proxy_of_the_page_is_used(mode: str) -> None:
    with Site(SHUT) as site, ForwardProxy({"town.example": site}) as proxy:
        via = {"proxy": proxy.url.replace("//", "//me:pw@")}
        pages = ("http://town.example/back/", "http://town.example/open")
        seen = crawl(*({"url": url, "meta": via} for url in pages))
    if mode == "no reactor" and "The 'proxy' request meta key is not supported by" in seen.log:
        pytest.skip("this version of Scrapy has no proxies without a reactor")
    assert [drop.line for drop in seen.drops] == [2]
    assert seen.pages == ["http://town.example/open"]
    assert proxy.targets() == ["http://town.example/robots.txt", "http://town.example/open"]
    for hit in proxy.hits:
        assert hit.headers["proxy-authorization"].startswith("Basic ")
    assert site.targets() == ["/robots.txt", "/open"]
    for hit in site.hits:
        assert hit.headers["via"] == "1.1 test-proxy"
        assert "proxy-authorization" not in hit.headers


@pytest.mark.parametrize("status", [407, 511])
def test_an_error_of_the_proxy_is_not_saved(status: int, tmp_path: Path) -> None:
    settings = {**ADDON, "NOROBOTS_STORE": f"sqlite:///{tmp_path}/robots.sqlite", "RETRY_ENABLED": False}
    with Site(Answer(status=status)) as proxy, Site(SHUT) as site:
        through = {"url": f"{site.url}/open", "meta": {"proxy": proxy.url}}
        proxy.answers[f"{site.url}/robots.txt"] = Answer(status=status)
        closed = crawl(through, settings=settings)
        seen = crawl(f"{site.url}/open", f"{site.url}/back/", settings=settings)
    (drop,) = closed.drops
    assert f"robots.txt answered {status}, and NOROBOTS_STATUS_POLICY denies" in drop.text
    assert drop.retry_after is not None
    assert proxy.pages() == [f"{site.url}/robots.txt"]
    assert seen.pages == [f"{site.url}/open"]
    assert [drop.line for drop in seen.drops] == [2]


def test_proxy_credentials_are_not_sent_without_a_proxy() -> None:
    with Site(SHUT) as site:
        request = {"url": f"{site.url}/open", "headers": {"Proxy-Authorization": "Basic bWU6cHc="}}
        crawl({**request, "meta": {"proxy": None}})
    assert site.targets() == ["/robots.txt", "/open"]
    assert not any("proxy-authorization" in hit.headers for hit in site.hits)


def test_a_retried_page_keeps_the_credentials_of_its_proxy() -> None:
    """Scrapy moves them from the URL to a header; the robots.txt of a redirect target needs them too."""
    with Site(SHUT) as target, Site() as site:
        site.answers["/"] = Answer(status=302, headers={"Location": "http://other.example/back/"})
        with ForwardProxy({"town.example": site, "other.example": target}) as proxy:
            via = {"proxy": proxy.url.replace("//", "//me:pw@")}
            seen = crawl({"url": "http://town.example/", "meta": via})
    assert [drop.url for drop in seen.drops] == ["http://other.example/back/"]
    assert proxy.targets()[-1] == "http://other.example/robots.txt"
    assert len({hit.headers["proxy-authorization"] for hit in proxy.hits}) == 1


def test_an_incomplete_file_is_never_read() -> None:
    with Site(Answer(SHUT, headers={"Content-Length": "9999"})) as site:
        settings = {**ADDON, "RETRY_ENABLED": False, "DOWNLOAD_FAIL_ON_DATALOSS": False}
        seen = crawl(f"{site.url}/open", settings=settings)
    assert [drop.type for drop in seen.drops] == ["RobotsUnreachable"]
    assert site.pages() == []


@pytest.mark.parametrize("fail", [True, False])
def test_a_file_that_a_signal_handler_stops_is_not_read_and_the_log_says_why(
    fail: bool, mode: str, tmp_path: Path
) -> None:
    settings = {**ADDON, "RETRY_ENABLED": False, "NOROBOTS_STORE": f"sqlite:///{tmp_path}/robots.sqlite"}
    with Site(SHUT) as site:
        seen = crawl(
            f"{site.url}/open", settings=settings, spider="stopping.Stopping", arguments={"fail": fail}
        )
        assert site.pages() == []
        # It says nothing about the site, so another crawl does not find it in the store.
        other = crawl(f"{site.url}/open", settings=settings)
    (drop,) = seen.drops
    assert drop.type == "RobotsUnreachable"
    why = "(StopDownload: a signal handler of the project stopped the download)"
    assert f"{site.url}/robots.txt could not be downloaded {why}" in drop.text
    assert seen.log_lines("WARNING: ", why)
    assert other.pages == [f"{site.url}/open"]


def test_the_request_asks_for_no_compression() -> None:
    with Site(SHUT) as site:
        crawl(f"{site.url}/")
    robots, page = site.hits
    assert robots.headers["accept-encoding"] == "identity"
    assert "gzip" in page.headers["accept-encoding"]


def test_a_file_is_decoded_with_compression_disabled_in_scrapy() -> None:
    compressed = Answer(gzip.compress(SHUT.encode()), headers={"Content-Encoding": "gzip"})
    with Site(compressed) as site:
        seen = crawl(f"{site.url}/back/", settings={**ADDON, "COMPRESSION_ENABLED": False})
    assert [drop.line for drop in seen.drops] == [2]


def test_an_incomplete_compressed_file_is_not_obeyed_and_not_kept(tmp_path: Path) -> None:
    cut_off = Answer(gzip.compress((SHUT * 99).encode())[:-20], headers={"Content-Encoding": "gzip"})
    settings = {**ADDON, "NOROBOTS_STORE": f"sqlite:///{tmp_path}/robots.sqlite", "NOROBOTS_ERROR_TTL": 0}
    with Site(cut_off) as site:
        closed = crawl(f"{site.url}/open", settings=settings)
        site.answers["/robots.txt"] = Answer(SHUT)
        seen = crawl(f"{site.url}/open", f"{site.url}/back/", settings=settings)
    assert [drop.type for drop in closed.drops] == ["RobotsUnreachable"]
    assert "its gzip data is incomplete" in closed.drops[0].text
    assert [drop.line for drop in seen.drops] == [2]
    assert seen.pages == [f"{site.url}/open"]


def test_scrapys_http_cache_does_not_store_robots_txt(tmp_path: Path) -> None:
    cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path), "RETRY_ENABLED": False}
    with Site(Answer(status=503)) as site:
        crawl(f"{site.url}/open", settings={**ADDON, **cache})
        site.answers["/robots.txt"] = Answer(SHUT)
        seen = crawl(f"{site.url}/open", f"{site.url}/back/", settings={**ADDON, **cache})
    assert seen.pages == [f"{site.url}/open"]
    assert len(site.robots_hits()) == 2


def test_bodies_in_flight_respect_the_limit_and_small_files_arrive(mode: str, tmp_path: Path) -> None:
    """Large files arrive at once and never end. There is room for one of them, and for the small ones."""
    body = SHUT.encode() + b"#" * 90_000
    given_up = threading.Semaphore(0)
    over = threading.Event()

    def send_all_but_the_end(exchange: Exchange) -> None:
        try:
            exchange.answer("200 OK", body[:-1], f"Content-Length: {len(body)}")
            while not over.wait(0.02):
                if select([exchange.connection], [], [], 0)[0]:
                    raise ConnectionError
        except OSError:
            given_up.release()
        else:
            exchange.send(body[-1:])

    def send_all(exchange: Exchange) -> None:
        exchange.answer("200 OK", SHUT.encode())

    def let_the_last_one_end() -> None:
        for _ in large[1:]:
            given_up.acquire()
        over.set()

    large = [Fault(f"large {number}", "", send_all_but_the_end) for number in range(12)]
    small = [Fault(f"small {number}", "", send_all) for number in range(9)]
    settings = {
        **ADDON,
        "NOROBOTS_MAXSIZE": 100_000,
        "NOROBOTS_MEMORY_MAX": 200_000,
        "NOROBOTS_TIMEOUT": 60,
        "NOROBOTS_STORE": f"sqlite:///{tmp_path}/robots.sqlite",
    }
    with FaultLab([*large, *small]) as lab:
        threading.Thread(target=let_the_last_one_end, daemon=True).start()
        seen = crawl(*(f"{lab.origin(one)}/back/" for one in lab.faults), settings=settings)
        again = crawl(*(f"{lab.origin(one)}/back/" for one in lab.faults), settings=settings)
    assert [drop.line for drop in seen.drops].count(2) == 1 + len(small)
    assert sum("NOROBOTS_MEMORY_MAX" in drop.text for drop in seen.drops) == len(large) - 1
    # The store has no errors. A large file may be forgotten for the sake of another, and found there again.
    assert 1 + len(small) <= again.stats["norobots/store/hits"] < len(large) + len(small)


def test_middlewares_can_write_the_meta_as_json() -> None:
    ours = {"tests.helpers.components.middlewares.CopiesMeta": 200}
    with Site("User-agent: *\nDisallow: /b\n") as site:
        crawl(f"{site.url}/a", f"{site.url}/b", settings={**ADDON, "DOWNLOADER_MIDDLEWARES": ours})
    assert site.pages() == ["/a"]


def test_a_crawl_ends_if_a_middleware_was_cancelled_while_it_handled_robots_txt(mode: str) -> None:
    ours = {"tests.helpers.components.middlewares.CancelsRobotsTxt": 500}
    with Site() as site:
        seen = crawl(f"{site.url}/", settings={**ADDON, "DOWNLOADER_MIDDLEWARES": ours})
    assert (seen.pages, site.hits) == ([], [])


def test_a_try_with_the_same_request_has_the_whole_timeout(mode: str) -> None:
    ours = {"tests.helpers.components.middlewares.TriesTheSameAgain": 560}
    settings = {"NOROBOTS_TIMEOUT": 3, "NOROBOTS_RETRY_TIMES": 0, "DOWNLOADER_MIDDLEWARES": ours}
    seconds = [5, 2]
    with Site(Answer(before=lambda: time.sleep(seconds.pop(0)))) as site:
        seen = crawl(f"{site.url}/", settings={**ADDON, **settings})
        assert seen.pages == [f"{site.url}/"]
        assert len(site.robots_hits()) == 2


@pytest.mark.parametrize("name", ["SignsUrls", "DeadProxy"])
def test_a_download_handler_without_a_timeout_is_stopped(name: str, mode: str) -> None:
    settings = {
        **ADDON,
        "DOWNLOAD_HANDLERS": {"http": "tests.helpers.components.handlers.NeverEnds"},
        "DOWNLOADER_MIDDLEWARES": {f"tests.helpers.components.middlewares.{name}": 500},
        "NOROBOTS_TIMEOUT": 0.2,
        "RETRY_ENABLED": False,
    }
    seen = crawl("http://127.0.0.1:1/a", settings=settings)
    assert [drop.type for drop in seen.drops] == ["RobotsUnreachable"]
    assert "the download handler did not end the download within 0.2 s" in seen.drops[0].text
