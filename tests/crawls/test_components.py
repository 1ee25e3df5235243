"""The plugin with Scrapy's and third-party components: real ones, except for services.

The table in docs/components.md states what these tests show.
"""

from __future__ import annotations

import base64
import io
import json
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.running import processes
from tests.helpers.running.crawling import ADDON, crawl
from tests.helpers.running.project import make_project
from tests.helpers.sites import Answer, ForwardProxy, Hit, Site, page

RULES = "User-agent: *\nDisallow: /back/\n"


@pytest.fixture
def site() -> Iterator[Site]:
    with Site(RULES) as one:
        yield one


@pytest.fixture
def other() -> Iterator[Site]:
    """A site on another host, with the same rules."""
    with Site(RULES, host="127.0.0.2") as one:
        yield one


def redirect(to: str) -> Answer:
    return Answer(status=302, headers={"Location": to})


def dropped(seen: Any) -> list[str]:
    assert {drop.type for drop in seen.drops} <= {"RobotsForbidden"}
    return sorted(drop.url for drop in seen.drops)


# Download handlers that render; all of them need the asyncio reactor


def playwright(**settings: Any) -> dict[str, Any]:
    """Settings with the real scrapy-playwright and the Chromium of this machine."""
    pytest.importorskip("scrapy_playwright")
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("chromium is not installed")
    handler = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"
    return {
        **ADDON,
        "DOWNLOAD_HANDLERS": {"http": handler, "https": handler},
        "PLAYWRIGHT_LAUNCH_OPTIONS": {
            "executable_path": browser,
            "args": ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        },
        "PLAYWRIGHT_CONTEXTS": {"default": {"ignore_https_errors": True}},
        **settings,
    }


def rendered(site: Site) -> dict[str, bool]:
    """The requests to the site, and whether a browser sent them. A browser may request an icon."""
    return {
        hit.target: "sec-fetch-mode" in hit.headers or "rendered" in hit.headers
        for hit in site.hits
        if hit.target != "/favicon.ico"
    }


def test_playwright_renders_pages_but_not_robots_txt(tls: tuple[Path, Path]) -> None:
    with Site(RULES, tls=tls) as site:
        seen = crawl(
            {"url": f"{site.url}/open", "meta": {"playwright": True, "playwright_context": "default"}},
            {"url": f"{site.url}/back/1", "meta": {"playwright": True}},
            f"{site.url}/plain",
            settings=playwright(),
            mode="asyncio",
        )
    assert rendered(site) == {
        "/robots.txt": False,
        "/open": True,
        "/plain": False,
    }
    assert len(site.robots_hits()) == 1
    assert dropped(seen) == [f"{site.url}/back/1"]
    assert seen.stats["playwright/request_count/navigation"] == 1


def test_a_middleware_that_renders_by_default_does_not_render_robots_txt(site: Site) -> None:
    """A limit: requests of the browser itself are not checked. What a page loads in it can be left out."""
    site.answers["/moved"] = redirect("/back/1")
    site.answers["/open"] = Answer(
        '<html><body><img src="/back/2"></body></html>', headers={"Content-Type": "text/html"}
    )
    settings = playwright(
        DOWNLOADER_MIDDLEWARES={"tests.helpers.components.middlewares.RenderAll": 543},
        PLAYWRIGHT_ABORT_REQUEST="tests.helpers.components.handlers.is_no_document",
    )
    seen = crawl(
        *(site.url + path for path in ("/moved", "/open", "/back/3")), settings=settings, mode="asyncio"
    )
    assert rendered(site) == {"/robots.txt": False, "/moved": True, "/back/1": True, "/open": True}
    assert dropped(seen) == [f"{site.url}/back/3"]


def test_a_handler_that_renders_by_default_can_recognize_robots_txt(site: Site) -> None:
    handlers = {"DOWNLOAD_HANDLERS": {"http": "tests.helpers.components.handlers.RenderingByDefault"}}
    plainly = {"DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.RobotsTxtPlainly": 200}}
    meta = {"render": True}
    seen = crawl(
        f"{site.url}/open",
        {"url": f"{site.url}/1", "meta": meta},
        settings={**ADDON, **handlers, **plainly},
        mode="asyncio",
    )
    assert len(seen.pages) == 2
    assert rendered(site) == {
        "/robots.txt": False,
        "/open": True,
        "/1": True,
    }


def zyte_api(hit: Hit) -> Answer:
    """Act like Zyte API: fetch a URL, and return its body or the page as a browser renders it."""
    asked = json.loads(hit.body)
    with urllib.request.urlopen(asked["url"]) as response:
        body, kind = response.read(), response.headers["Content-Type"]
    answer: dict[str, object] = {"url": asked["url"], "statusCode": 200}
    if "httpResponseBody" in asked:
        answer["httpResponseBody"] = base64.b64encode(body).decode()
        answer["httpResponseHeaders"] = [{"name": "Content-Type", "value": kind}]
    elif "browserHtml" in asked:
        answer["browserHtml"] = f"<html><head></head><body><pre>{body.decode()}</pre></body></html>"
    else:
        answer["product"] = {"url": asked["url"]}
    return Answer(json.dumps(answer), headers={"Content-Type": "application/json"})


@pytest.mark.parametrize(
    ("params", "transparent"),
    [
        ({}, True),
        ({"browserHtml": True, "geolocation": "IE"}, True),
        ({"product": True, "actions": [{"action": "scrollBottom"}]}, True),
        ({"browserHtml": True}, False),
    ],
    ids=["plain", "browser", "extraction", "on request"],
)
def test_zyte_api_returns_the_bytes_of_robots_txt(
    params: dict[str, Any], transparent: bool, site: Site
) -> None:
    with Site(answers={"/extract": zyte_api}, host="127.0.0.2") as api:
        settings = with_zyte_api(api, transparent=transparent, ZYTE_API_AUTOMAP_PARAMS=params)
        seen = crawl(f"{site.url}/open", f"{site.url}/back/1", settings=settings, mode="asyncio")
    assert dropped(seen) == [f"{site.url}/back/1"]
    assert site.targets() == ["/robots.txt", "/open"]
    assert not seen.log_lines("[scrapy_zyte_api", "WARNING")
    if transparent:
        robots, one = (json.loads(hit.body) for hit in api.hits)
        assert robots.pop("httpResponseBody") is True
        assert robots.keys() & params.keys() == params.keys() & {"geolocation"}
        assert one.items() >= params.items()
    else:
        assert api.hits == []


def with_zyte_api(api: Site, *, transparent: bool, **settings: Any) -> dict[str, Any]:
    """Settings with the real scrapy-zyte-api, and a site of this machine as the API."""
    pytest.importorskip("scrapy_zyte_api")
    return {
        "ADDONS": {**ADDON["ADDONS"], "scrapy_zyte_api.Addon": 500},
        "ZYTE_API_KEY": "none",
        "ZYTE_API_URL": f"{api.url}/",
        "ZYTE_API_TRANSPARENT_MODE": transparent,
        **settings,
    }


@pytest.mark.parametrize(
    ("meta", "kept"),
    [
        ({"zyte_api_automap": True}, {"geolocation": "IE"}),
        ({"zyte_api_automap": {"browserHtml": True, "geolocation": "FR"}}, {"geolocation": "FR"}),
        (
            {"zyte_api_automap": {"product": True, "geolocation": None, "ipType": "residential"}},
            {"ipType": "residential"},
        ),
        ({"zyte_api": {"browserHtml": True, "device": "mobile"}}, {"geolocation": "US", "device": "mobile"}),
        (
            {"zyte_api": {"httpResponseBody": True, "httpRequestMethod": "POST", "httpRequestText": "a=b"}},
            {"geolocation": "US"},
        ),
    ],
    ids=["automap", "automap a browser", "automap an extraction", "a browser", "a form"],
)
def test_a_page_that_asks_for_zyte_api_gets_its_robots_txt_from_there(
    meta: dict[str, Any], kept: dict[str, Any], site: Site
) -> None:
    """The site may have blocked the address of the user."""
    text = {"Content-Type": "text/plain"}
    site.answers["/robots.txt"] = lambda hit: Answer(
        RULES, status=200 if "Python-urllib" in hit.headers["user-agent"] else 403, headers=text
    )
    with Site(answers={"/extract": zyte_api}, host="127.0.0.2") as api:
        settings = with_zyte_api(
            api,
            transparent=False,
            ZYTE_API_AUTOMAP_PARAMS={"geolocation": "IE", "tags": {"team": "one"}},
            ZYTE_API_DEFAULT_PARAMS={"geolocation": "US", "screenshot": True},
            USER_AGENT="FooBot/1.0",
            ZYTE_API_WARN_ON_BAN_SENSITIVE_HEADERS=False,
        )
        seen = crawl(
            *({"url": f"{site.url}{path}", "meta": meta} for path in ("/open", "/back/1")),
            settings=settings,
            mode="asyncio",
        )
    assert dropped(seen) == [f"{site.url}/back/1"]
    robots, one = (json.loads(hit.body) for hit in api.hits)
    headers = robots.pop("customHttpRequestHeaders", [])
    assert headers == ([] if "zyte_api" in meta else [{"name": "User-Agent", "value": "FooBot/1.0"}])
    assert robots == {
        "url": f"{site.url}/robots.txt",
        "httpResponseBody": True,
        "httpResponseHeaders": True,
        **kept,
    }
    assert one["url"] == f"{site.url}/open"


def test_a_page_that_does_not_want_zyte_api_gets_its_robots_txt_without_it(site: Site) -> None:
    with Site(answers={"/extract": zyte_api}, host="127.0.0.2") as api:
        seen = crawl(
            {"url": f"{site.url}/open", "meta": {"zyte_api_automap": False}},
            settings=with_zyte_api(api, transparent=True),
            mode="asyncio",
        )
    assert seen.pages == [f"{site.url}/open"]
    assert site.robots_hits()[0].headers["accept-encoding"] == "identity"
    assert api.hits == []


@pytest.mark.parametrize("names_page", [True, False])
def test_a_request_that_a_middleware_sends_again_is_checked_again(
    names_page: bool, site: Site, other: Site
) -> None:
    settings = {
        **ADDON,
        "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.ThroughService": 725},
        "SERVICE": other.url,
        "NAMES_PAGE": names_page,
    }
    seen = crawl(f"{site.url}/open", f"{site.url}/back/1", settings=settings)
    assert site.targets() == ["/robots.txt"]
    assert dropped(seen) == [f"{site.url}/back/1"]
    assert len(other.robots_hits()) == (0 if names_page else 1)
    assert len(other.pages()) == 1


# HTTP cache


@pytest.mark.parametrize("policy", ["DummyPolicy", "RFC2616Policy"])
def test_cached_pages_are_checked_by_the_current_robots_txt(policy: str, site: Site, tmp_path: Path) -> None:
    for_long = {"Cache-Control": "max-age=9999", "Content-Type": "text/plain"}
    site.answers["/robots.txt"] = Answer("User-agent: *\nDisallow:\n", headers=for_long)
    site.answers["/open"] = site.answers["/back/1"] = Answer("page", headers=for_long)
    settings = {
        **ADDON,
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": str(tmp_path),
        "HTTPCACHE_POLICY": f"scrapy.extensions.httpcache.{policy}",
    }
    urls = [f"{site.url}/back/1", f"{site.url}/open"]
    first = crawl(*urls, settings=settings)
    assert sorted(first.pages) == urls
    site.answers["/robots.txt"] = Answer(RULES, headers=for_long)
    site.hits.clear()
    second = crawl(*urls, settings=settings)
    assert second.pages == [f"{site.url}/open"]
    assert dropped(second) == [f"{site.url}/back/1"]
    assert second.stats["httpcache/hit"] == 1
    assert site.targets() == ["/robots.txt"]


def test_a_crawl_from_the_cache_alone_needs_a_store(tmp_path: Path) -> None:
    settings = {
        **ADDON,
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_IGNORE_MISSING": False,
        "HTTPCACHE_DIR": str(tmp_path),
        "NOROBOTS_STORE": f"sqlite:///{tmp_path}/robots.db",
        "RETRY_ENABLED": False,
    }
    with Site(RULES) as site:
        urls = [f"{site.url}/open", f"{site.url}/back/1"]
        crawl(*urls, settings=settings)
    settings["HTTPCACHE_IGNORE_MISSING"] = True
    with_store = crawl(*urls, settings=settings)
    without = crawl(*urls, settings={**settings, "NOROBOTS_STORE": "memory"})
    assert with_store.pages == [f"{site.url}/open"]
    assert dropped(with_store) == [f"{site.url}/back/1"]
    assert without.pages == []
    assert {drop.type for drop in without.drops} == {"RobotsUnreachable"}


# Media pipelines


def media_settings(pipeline: str, folder: Path, **settings: Any) -> dict[str, Any]:
    return {
        **ADDON,
        "ITEM_PIPELINES": {f"scrapy.pipelines.{pipeline.lower()}.{pipeline}Pipeline": 1},
        f"{pipeline.upper()}_STORE": str(folder),
        **settings,
    }


def check_files(seen: Any, folder: Path, field: str, expected: list[str]) -> None:
    """Check that an item has exactly these files, and that they exist."""
    files = seen.notes["item"][field]
    assert sorted(file["url"] for file in files) == sorted(expected)
    assert all((folder / file["path"]).is_file() for file in files)
    assert sum(path.is_file() for path in folder.rglob("*")) == len(expected)


def test_forbidden_files_are_not_downloaded(site: Site, other: Site, mode: str, tmp_path: Path) -> None:
    urls = [f"{one.url}{path}" for one in (site, other) for path in ("/a.pdf", "/back/b.pdf", "/c.pdf")]
    seen = crawl(
        f"{site.url}/",
        spider="items.Items",
        arguments={"item": {"file_urls": urls}},
        settings=media_settings("Files", tmp_path),
    )
    check_files(seen, tmp_path, "files", [url for url in urls if "/back/" not in url])
    assert site.pages() == ["/", "/a.pdf", "/c.pdf"]
    assert other.pages() == ["/a.pdf", "/c.pdf"]
    assert [len(one.robots_hits()) for one in (site, other)] == [1, 1]
    assert seen.stats["robotstxt/forbidden"] == 2
    assert len(seen.log_lines("DEBUG: Forbidden by robots.txt: <GET ", "/back/b.pdf> ")) == 2
    assert not seen.log_lines("WARNING: Forbidden by robots.txt")  # it is no start request
    assert not seen.log_lines("ERROR")


def test_forbidden_images_are_not_downloaded(site: Site, other: Site, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    png = io.BytesIO()
    image.new("RGB", (8, 8)).save(png, "PNG")
    urls = [f"{one.url}{path}" for one in (site, other) for path in ("/a.png", "/back/b.png")]
    for one in (site, other):
        one.answers["/a.png"] = Answer(png.getvalue(), headers={"Content-Type": "image/png"})
    seen = crawl(
        f"{site.url}/",
        spider="items.Items",
        arguments={"item": {"image_urls": urls}},
        settings=media_settings("Images", tmp_path),
    )
    check_files(seen, tmp_path, "images", [f"{site.url}/a.png", f"{other.url}/a.png"])
    assert [len(one.robots_hits()) for one in (site, other)] == [1, 1]


def test_each_redirect_of_a_file_is_checked(site: Site, other: Site, mode: str, tmp_path: Path) -> None:
    targets = {
        "/here": "/file",
        "/barred": "/back/file",
        "/away": f"{other.url}/file",
        "/away-barred": f"{other.url}/back/file",
    }
    site.answers |= {path: redirect(target) for path, target in targets.items()}
    seen = crawl(
        f"{site.url}/",
        spider="items.Items",
        arguments={"item": {"file_urls": [site.url + path for path in targets]}},
        settings=media_settings("Files", tmp_path, MEDIA_ALLOW_REDIRECTS=True),
    )
    check_files(seen, tmp_path, "files", [f"{site.url}/here", f"{site.url}/away"])
    assert site.pages() == sorted(["/", "/file", *targets])
    assert other.targets() == ["/robots.txt", "/file"]


# Retries and redirects


def test_a_retried_page_is_checked_without_another_download(site: Site) -> None:
    answers = iter([Answer(status=503), Answer(status=503), page()])
    site.answers["/open"] = lambda hit: next(answers)
    seen = crawl(f"{site.url}/open")
    assert site.targets() == ["/robots.txt", "/open", "/open", "/open"]
    assert seen.pages == [f"{site.url}/open"]
    assert seen.stats["retry/count"] == 2
    assert seen.stats["norobots/passed"] == 3


def refresh(to: str) -> Answer:
    html = f'<html><head><meta http-equiv="refresh" content="0; url={to}"></head></html>'
    return Answer(html, headers={"Content-Type": "text/html"})


@pytest.mark.parametrize("hop", [redirect, refresh], ids=["redirect", "meta refresh"])
def test_each_redirect_of_a_page_is_checked(hop: Any, site: Site, other: Site, mode: str) -> None:
    site.answers |= {
        "/1": hop("/2"),
        "/2": hop(f"{other.url}/3"),
        "/barred": hop("/2/barred"),
        "/2/barred": hop("/back/1"),
        "/open": hop(f"{other.url}/open"),
    }
    other.answers |= {"/3": hop(f"{other.url}/4"), "/4": hop("/back/5"), "/open": hop(f"{site.url}/end")}
    seen = crawl(*(f"{site.url}{path}" for path in ("/1", "/barred", "/open")))
    assert seen.pages == [f"{site.url}/end"]
    assert dropped(seen) == [f"{site.url}/back/1", f"{other.url}/back/5"]
    assert site.pages() == ["/1", "/2", "/2/barred", "/barred", "/end", "/open"]
    assert other.pages() == ["/3", "/4", "/open"]
    assert [len(one.robots_hits()) for one in (site, other)] == [1, 1]


# Components that change requests


def test_the_robots_txt_of_offsite_hosts_is_not_downloaded(site: Site, other: Site) -> None:
    site.answers["/"] = page(f"{other.url}/link", "/moved", "/back/1")
    site.answers["/moved"] = redirect(f"{other.url}/target")
    seen = crawl(f"{site.url}/", arguments={"follow": True, "allowed_domains": ["127.0.0.1"]})
    assert other.hits == []
    assert site.targets() == ["/robots.txt", "/", "/moved"]
    assert [drop.url for drop in seen.drops if drop.type == "RobotsForbidden"] == [f"{site.url}/back/1"]


def test_http_auth_credentials_are_sent_to_their_domain_only(site: Site, other: Site) -> None:
    site.answers["/robots.txt"] = redirect(f"{other.url}/robots.txt")
    seen = crawl(
        f"{site.url}/open",
        f"{other.url}/open",
        arguments={"http_user": "me", "http_pass": "pw", "http_auth_domain": f"127.0.0.1:{site.port}"},
        deprecated="Use the HTTPAUTH_USER",
    )
    assert len(seen.pages) == 2
    assert all("authorization" in hit.headers for hit in site.hits)
    assert not any("authorization" in hit.headers for hit in other.hits)
    assert len(other.robots_hits()) == 2


def test_the_credentials_of_a_page_are_not_sent_for_robots_txt(site: Site) -> None:
    crawl({"url": f"{site.url}/open", "headers": {"Authorization": "Basic bWU6cHc="}})
    robots, one = site.hits
    assert "authorization" not in robots.headers
    assert "authorization" in one.headers


def test_cookies_of_robots_txt_are_not_stored(site: Site) -> None:
    site.answers["/robots.txt"] = Answer(RULES, headers={"Set-Cookie": "track=1; Path=/"})
    crawl(f"{site.url}/open")
    robots, one = site.hits
    assert "cookie" not in robots.headers
    assert "cookie" not in one.headers


def test_the_proxy_of_the_environment_is_used(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with ForwardProxy({"town.example": site}) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("//", "//me:pw@"))
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        seen = crawl("http://town.example/open", "http://town.example/back/1")
    assert dropped(seen) == ["http://town.example/back/1"]
    assert proxy.targets() == ["http://town.example/robots.txt", "http://town.example/open"]
    assert all("proxy-authorization" in hit.headers for hit in proxy.hits)


def test_the_proxy_of_the_environment_depends_on_the_scheme(
    site: Site, other: Site, tls: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A redirected page has the proxy for http in its meta; its robots.txt may be redirected to https."""
    site.answers["/"] = redirect("http://other.example/back/1")
    with (
        Site(RULES, tls=tls) as secure,
        ForwardProxy({"town.example": site, "other.example": other}) as proxy,
    ):
        other.answers["/robots.txt"] = redirect(f"{secure.url}/robots.txt")
        monkeypatch.setenv("http_proxy", proxy.url)
        for name in ("no_proxy", "NO_PROXY", "https_proxy", "HTTPS_PROXY"):
            monkeypatch.delenv(name, raising=False)
        seen = crawl("http://town.example/")
    assert dropped(seen) == ["http://other.example/back/1"]
    assert secure.targets() == ["/robots.txt"]


@pytest.mark.parametrize(("order", "line"), [(50, 2), (450, 5)])
def test_an_earlier_middleware_that_sets_the_user_agent_selects_the_record(
    order: int, line: int, site: Site
) -> None:
    site.answers["/robots.txt"] = Answer(
        "User-agent: turnbot\nDisallow: /\n\nUser-agent: *\nDisallow: /back/\n"
    )
    settings = {
        **ADDON,
        "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.OtherUserAgent": order},
    }
    seen = crawl(f"{site.url}/back/1", settings=settings)
    assert [drop.line for drop in seen.drops] == [line]


@pytest.mark.parametrize("order", [50, 450])
@pytest.mark.parametrize("name", ["UsualUserAgent", "OtherUserAgent"])
def test_a_middleware_that_sets_the_user_agent_sets_that_of_robots_txt_too(
    name: str, order: int, site: Site
) -> None:
    settings = {**ADDON, "DOWNLOADER_MIDDLEWARES": {f"tests.helpers.components.middlewares.{name}": order}}
    crawl(f"{site.url}/open", settings=settings)
    assert site.targets() == ["/robots.txt", "/open"]
    robots, page = (hit.headers["user-agent"] for hit in site.hits)
    assert robots == page
    assert page.endswith("Bot/1.0")


def test_delays_apply_to_robots_txt_like_to_any_request(site: Site) -> None:
    settings = {**ADDON, "DOWNLOAD_DELAY": 0.01, "AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_DEBUG": True}
    seen = crawl(f"{site.url}/open", settings=settings, spider="noting.Slots")
    assert seen.notes == {f"{site.url}/robots.txt": "127.0.0.1", f"{site.url}/open": "127.0.0.1"}
    assert len(seen.log_lines("[scrapy.extensions.throttle]", "slot: 127.0.0.1")) == 2


def test_robots_txt_is_downloaded_in_the_download_slot_of_the_page() -> None:
    with Site(RULES, host="0.0.0.0") as site:
        site.answers["/open"] = redirect("/end")
        site.answers["127.0.0.2/robots.txt"] = redirect(f"{site.url_of('127.0.0.9')}/robots.txt")
        hosts = [site.url_of(f"127.0.0.{number}") for number in range(2, 7)]
        seen = crawl(
            *({"url": f"{host}/open", "meta": {"download_slot": "all"}} for host in hosts),
            settings={**ADDON, "DOWNLOAD_SLOTS": {"all": {"delay": 0.01}}},
            spider="noting.Slots",
        )
    assert len(seen.notes) == 16
    assert set(seen.notes.values()) == {"all"}


def test_a_redirect_does_not_use_the_slot_of_another_host(site: Site, other: Site) -> None:
    """Scrapy keeps a redirected page in the slot of the first host; its robots.txt is on the second."""
    site.answers["/"] = redirect(f"{other.url}/open")
    seen = crawl(f"{site.url}/", spider="noting.Slots")
    assert seen.notes.pop(f"{other.url}/robots.txt") == "127.0.0.2"
    assert seen.notes.pop(f"{other.url}/open") == "127.0.0.1"
    assert set(seen.notes.values()) == {"127.0.0.1"}


def test_closespider_counts_robots_txt_like_scrapys_middleware(site: Site) -> None:
    settings = {"CLOSESPIDER_PAGECOUNT": 1, "ROBOTSTXT_OBEY": True}
    ours = crawl(f"{site.url}/open", settings={**ADDON, **settings})
    scrapys = crawl(f"{site.url}/open", settings=settings)
    for seen in (ours, scrapys):
        assert seen.stats["finish_reason"] == "closespider_pagecount"


# Spiders and commands


@pytest.mark.parametrize("spider", ["Following", "ByRules"])
def test_links_are_checked_in_each_way_to_follow_them(spider: str, site: Site) -> None:
    site.answers["/"] = page("/a", "/back/1", "/b", "/back/2")
    seen = crawl(f"{site.url}/", spider=f"following.{spider}")
    assert site.pages() == ["/", "/a", "/b"]
    assert dropped(seen) == [f"{site.url}/back/1", f"{site.url}/back/2"]
    assert len(site.robots_hits()) == 1


def test_downloads_by_a_callback_are_checked(site: Site, other: Site, mode: str) -> None:
    seen = crawl(
        f"{site.url}/",
        spider="asking.Downloading",
        arguments={"then": [f"{site.url}/a", f"{site.url}/back/a", f"{other.url}/b", f"{other.url}/back/b"]},
    )
    assert [told for told, _ in seen.notes["told"]] == [200, "RobotsForbidden", 200, "RobotsForbidden"]
    assert other.targets() == ["/robots.txt", "/b"]


def test_spider_middlewares_do_not_see_robots_txt(site: Site) -> None:
    settings = {**ADDON, "SPIDER_MIDDLEWARES": {"tests.helpers.components.middlewares.SeesResponses": 543}}
    seen = crawl(f"{site.url}/open", f"{site.url}/back/1", settings=settings)
    assert seen.notes["input"] == ["/open"]


def test_crawls_of_one_process_keep_their_own_settings(site: Site) -> None:
    site.answers["/robots.txt"] = Answer(status=403)
    beside = {"NOROBOTS_STATUS_POLICY": "rfc9309", "USER_AGENT": "OtherBot"}
    seen = crawl(f"{site.url}/a", beside=beside)
    assert [drop.type for drop in seen.drops] == ["RobotsUnreachable"]
    asked = sorted((hit.target, hit.headers["user-agent"].partition("/")[0]) for hit in site.hits)
    assert asked == [("/a", "OtherBot"), ("/robots.txt", "OtherBot"), ("/robots.txt", "Scrapy")]


def scrapy(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of Scrapy in a project."""
    return processes.run("scrapy", *arguments, "-s", "TELNETCONSOLE_ENABLED=0", cwd=folder)


def test_the_fetch_command_obeys(site: Site, tmp_path: Path) -> None:
    project = make_project(tmp_path, site.url)
    site.answers["/open"] = Answer("the open page")
    assert "the open page" in scrapy("fetch", f"{site.url}/open", folder=project).stdout
    done = scrapy("fetch", f"{site.url}/back/1", folder=project)
    assert done.stdout == ""
    assert "line 2 of" in done.stderr
    assert site.pages() == ["/open"]


def test_the_shell_obeys(site: Site, tmp_path: Path) -> None:
    project = make_project(tmp_path, site.url)
    code = f"[response and response.status, fetch('{site.url}/open'), response.status]"
    done = scrapy("shell", f"{site.url}/back/1", "-c", code, folder=project)
    assert "line 2 of" in done.stderr, done.stderr
    assert done.stdout.strip() == "[None, None, 200]"
    assert site.pages() == ["/open"]


def test_a_contract_about_a_forbidden_page_fails(site: Site, tmp_path: Path) -> None:
    done = scrapy("check", folder=make_project(tmp_path, site.url))
    assert done.returncode == 1
    assert "RobotsForbidden" in done.stderr
    assert site.pages() == ["/open"]
