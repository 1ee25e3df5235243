"""`NoRobotsMiddleware`, in real crawls of real sites."""

from __future__ import annotations

import gzip
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from scrapy import Request, signals, version_info

from tests.helpers.running.crawling import ADDON, IN_ORDER, crawl, run_crawl, with_no_origin
from tests.helpers.sites import Answer, Site, page

ROBOTS = """\
# keep out of the back room
User-agent: *
Disallow: /back/   # staff only
Disallow: /draft
"""


def test_50_requests_at_once_share_one_download(mode: str) -> None:
    robots = Answer(ROBOTS, before=lambda: threading.Event().wait(0.5))  # so that all requests wait
    with Site(robots) as site:
        settings = {**ADDON, "CONCURRENT_REQUESTS": 50, "CONCURRENT_REQUESTS_PER_DOMAIN": 50}
        seen = crawl(*(f"{site.url}/{i}" for i in range(50)), settings=settings)
    assert len(seen.pages) == 50
    assert site.targets()[0] == "/robots.txt"
    assert len(site.robots_hits()) == seen.stats["robotstxt/request_count"] == 1


def test_a_dropped_request_names_file_line_and_rule() -> None:
    with Site(ROBOTS) as site:
        seen = crawl(f"{site.url}/back/door", f"{site.url}/drafts")
    assert {drop.url[len(site.url) :]: (drop.type, drop.line) for drop in seen.drops} == {
        "/back/door": ("RobotsForbidden", 3),
        "/drafts": ("RobotsForbidden", 4),
    }
    said = (
        f"line 3 of {site.url}/robots.txt, 'Disallow: /back/', in the record of line 2 for '*'",
        f"line 4 of {site.url}/robots.txt, 'Disallow: /draft', in the record of line 2 for '*'",
    )
    texts = [drop.text for drop in seen.drops]
    for sentence in said:
        assert [text for text in texts if sentence in text]
        assert len(seen.log_lines(" Forbidden by robots.txt: <GET", sentence)) == 1
    assert site.pages() == []


def test_only_dropped_start_requests_are_warnings() -> None:
    with Site(ROBOTS, {"/": page("/back/link")}) as site:
        seen = crawl(f"{site.url}/back/start", f"{site.url}/", arguments={"follow": True})
    assert len(seen.drops) == 2
    (line,) = seen.log_lines("[scrapy_norobots", "WARNING: Forbidden")
    assert f"Forbidden by robots.txt: <GET {site.url}/back/start> (line 3 of " in line
    assert len(seen.log_lines(f"DEBUG: Forbidden by robots.txt: <GET {site.url}/back/link> (line 3 of ")) == 1


def test_dropped_start_requests_do_not_fill_the_log() -> None:
    with Site(ROBOTS) as site:
        seen = crawl(*(f"{site.url}/back/{i}" for i in range(30)))
    assert len(seen.drops) == 30
    assert len(seen.log_lines("WARNING: Forbidden by robots.txt")) == 20
    assert len(seen.log_lines("DEBUG: Forbidden by robots.txt")) == 10


def test_text_from_robots_txt_is_escaped_in_log_and_message() -> None:
    hostile = "User-agent: *\nDisallow: /x\x1b[31m\u202e\x07\n"
    with Site(hostile) as site:
        seen = crawl(f"{site.url}/x%1B[31m%E2%80%AE%07/y")
    (drop,) = seen.drops
    assert drop.line == 2
    for text in (drop.text, *seen.log_lines("Forbidden by robots.txt")):
        assert text.isprintable()
    assert r"'Disallow: /x\x1b[31m\u202e\x07'" in drop.text


def test_robotstxt_obey_false_disables_the_plugin() -> None:
    with Site(ROBOTS) as site:
        seen = crawl(f"{site.url}/back/door", settings={**ADDON, "ROBOTSTXT_OBEY": False})
    assert site.targets() == ["/back/door"]
    assert seen.log_lines("INFO", "ROBOTSTXT_OBEY is False")


def test_urls_of_other_schemes_pass(tmp_path: Path) -> None:
    file = tmp_path / "back" / "a.txt"
    file.parent.mkdir()
    file.write_text("hello")
    seen = crawl("data:text/plain,back", file.as_uri(), "s3://bucket/back/", "about:blank")
    assert sorted(seen.pages) == ["data:text/plain,back", file.as_uri()]
    assert "robotstxt/request_count" not in seen.stats
    assert not [drop for drop in seen.drops if drop.type.startswith("Robots")]


def test_each_port_is_an_origin() -> None:
    with Site(ROBOTS) as one, Site("User-agent: *\nDisallow: /else\n") as other:
        crawl(*(f"{site.url}{path}" for site in (one, other) for path in ("/back/", "/else")))
    assert one.pages() == ["/else"]
    assert other.pages() == ["/back/"]
    assert len(one.robots_hits()) == len(other.robots_hits()) == 1


def test_http_and_https_are_different_origins(tls: tuple[Path, Path], mode: str) -> None:
    with Site("User-agent: *\nDisallow: /plain\n") as plain, Site(ROBOTS, tls=tls) as secure:
        crawl(*(f"{site.url}{path}" for site in (plain, secure) for path in ("/back/", "/plain")))
    assert plain.pages() == ["/back/"]
    assert secure.pages() == ["/plain"]
    assert len(plain.robots_hits()) == len(secure.robots_hits()) == 1


def test_spellings_of_an_origin_share_one_download() -> None:
    with Site(ROBOTS, host="localhost") as site:
        spellings = [
            site.url,
            site.url.replace("localhost", "LocalHost"),
            site.url.replace("//", "//user:secret@"),
        ]
        seen = crawl(*(f"{url}/back/{i}" for i, url in enumerate(spellings)))
    assert len(seen.drops) == 3
    (hit,) = site.hits
    assert hit.target == "/robots.txt"
    assert "authorization" not in hit.headers


def test_odd_spellings_of_a_forbidden_url_are_forbidden() -> None:
    spellings = ["/%62ack/a", "/./back/a", "/open/../back/a", "/b%61ck/%2e%2e/back/", "/back/a#top"]
    with Site(ROBOTS) as site:
        seen = crawl(*({"url": f"{site.url}{target}", "dont_filter": True} for target in spellings))
    assert len(seen.drops) == len(spellings)
    assert site.pages() == []


# Spellings that some download handler changes.
TRICKS = [
    "/user%3Aadmin", "/mail%40me", "/wow%21", "/a%2Cb", "/e%3Bf", "/q?u=%2Fsecret", "/r?a=%3A", "/s?a=%3F",
    "/x;?id=1", "/y;", "/r%C3%A9sum%C3%A9", "/o%20b", "/%2e%2e/%66oo/", "/p;v=1?q", "/%zz", "/c++",
    "/d%2B%2B", "/pa%2Fth", "/n%0Ad", "/h%23h", "/x/../dots", "/x/./dots%7e", "/dot/.", "/dots/z/..",
]  # fmt: skip


def test_the_url_that_is_sent_is_checked(mode: str) -> None:
    check_what_goes_out(mode, ADDON)


def test_the_url_that_aiohttp_sends_is_checked() -> None:
    pytest.importorskip("scrapy.core.downloader.handlers._aiohttp")
    check_what_goes_out(
        "asyncio",
        {**ADDON, "DOWNLOAD_HANDLERS": {"http": "tests.helpers.components.handlers.AiohttpBesideReactor"}},
    )


def test_the_url_that_the_http2_handler_sends_is_checked(tls: tuple[Path, Path]) -> None:
    pytest.importorskip("h2")
    from tests.helpers.sites.http2 import Http2Site  # it needs h2

    if version_info < (2, 16):
        pytest.skip("the HTTP/2 handler of this Scrapy does not work with new versions of pyOpenSSL")
    handler = "scrapy.core.downloader.handlers.http2.H2DownloadHandler"
    check_what_goes_out("asyncio", {**ADDON, "DOWNLOAD_HANDLERS": {"https": handler}}, Http2Site(tls))


def check_what_goes_out(mode: str, settings: dict[str, Any], server: Site | None = None) -> None:
    """If robots.txt forbids exactly the targets that were sent, the requests are dropped."""
    with server or Site() as site:
        requests = [{"url": f"{site.url}{trick}", "dont_filter": True} for trick in TRICKS]
        crawl(*requests, mode=mode, settings=settings)
        sent = site.pages()
        assert len(sent) == len(TRICKS)
        site.hits.clear()
        site.answers["/robots.txt"] = Answer(
            "User-agent: *\n" + "".join(f"Disallow: {one}\n" for one in sent)
        )
        seen = crawl(*requests, mode=mode, settings=settings)
    assert site.pages() == []
    assert {drop.type for drop in seen.drops} == {"RobotsForbidden"}


@pytest.mark.parametrize("trick", ["/x/../dots", "/dots/."])
def test_a_second_reading_is_asked_about_the_url_that_is_sent(trick: str, mode: str) -> None:
    settings = {**ADDON, "NOROBOTS_ALSO_OBEY": ["rfc9309"]}
    with Site("User-agent: *\nDisallow: /dots$\n") as site:  # only the second reading knows the $
        seen = crawl({"url": f"{site.url}{trick}"}, settings=settings)
    assert [drop.type for drop in seen.drops] == ["RobotsForbidden"]
    assert site.pages() == []


def test_a_url_without_an_origin_is_dropped() -> None:
    seen = crawl(*map(with_no_origin, ("http://127.0.0.1:99999/a", "http://127.0.0.1:no/b")))
    assert [drop.type for drop in seen.drops] == ["RobotsUnreachable"] * 2
    for drop, port in zip(sorted(seen.drops, key=lambda drop: drop.url), ("99999", "no"), strict=True):
        assert f"the URL is invalid: port '{port}' in " in drop.text


@pytest.mark.parametrize("has_host", [False, True], ids=["invalid URL", "invalid slot"])
def test_a_request_without_a_download_slot_fails_alone(has_host: bool) -> None:
    """Scrapy's default queue would not take it, but others do."""
    with Site(ROBOTS) as site:
        odd = {"url": f"{site.url}/odd", "meta": {"download_slot": []}}
        if not has_host:
            odd = with_no_origin("http://[::1/")
        urls = [f"{site.url}/{number}" for number in range(8)]
        settings = {**ADDON, **IN_ORDER, "CONCURRENT_REQUESTS": 2}
        seen = crawl(*urls[:4], {**odd, "dont_filter": True}, *urls[4:], settings=settings)
    assert len(seen.pages) == 8
    assert [drop.url for drop in seen.drops] == [odd["url"]]


# URLs that Scrapy accepts in a request, though the parser refuses some of them: "{host}" is a real site.
NO_PLAIN_URLS = (
    *(
        "{host}:x/",
        "http://{host}0000/",
        "http://{host}:/",
        "http://{host}:-1/",
        "http://[{host}/",
        "http://{host}]/",
    ),
    *("http://[::1/back/", "http://[x]:y/", "http://{host}\\back/", "http://u:p@{host}:7x/", "http://:80/"),
    *(
        "http:///back/",
        "http://",
        "http://?",
        "://{host}/back/",
        "1http://{host}/back/",
        "x?y=http://{host}/",
    ),
    *("FooBot/1.0 (http://{host}/)", "http:/x://back/", "h\xe9://{host}/"),
    *("http://.{host}/", "http://a..b/", "http://" + 70 * "\xe9" + ".example/", "about:blank", "data:,x"),
)


def is_accepted(url: str) -> bool:
    """Return whether Scrapy makes a request of a URL, and finds its host, on which its queue depends."""
    try:
        urlsplit(Request(url, meta={"verbatim_url": True}).url)
    except ValueError:
        return False
    return True


def test_a_crawl_only_drops_or_passes_a_url_that_is_none(mode: str, tmp_path: Path) -> None:
    settings = {
        **ADDON,
        "DNS_TIMEOUT": 2,
        "NOROBOTS_CRAWL_DELAY_MAX": 0.01,
        "NOROBOTS_EVIDENCE": str(tmp_path),
        "NOROBOTS_META": True,
        "NOROBOTS_RETRY_CLOSED": 0,
        "RETRY_ENABLED": False,
    }
    with Site(ROBOTS) as site:
        host = site.url.removeprefix("http://")
        urls = [url.replace("{host}", host) for url in NO_PLAIN_URLS]
        requests = [
            {"url": url, "meta": {"verbatim_url": True}, "dont_filter": True}
            for url in urls
            if is_accepted(url)
        ]
        assert len(requests) > 5
        seen = crawl(*requests, f"{site.url}/", settings=settings)
        assert not [target for target in site.targets() if "back" in target]
        assert "/" in site.pages()
    assert seen.stats["finish_reason"] == "finished"
    assert len(seen.pages) + len(seen.drops) == len(requests) + 1
    assert not seen.log_lines("ERROR", "scrapy_norobots")
    assert not seen.log_lines("norobots", "Traceback")


def test_white_space_in_a_url_does_not_bypass_a_rule(mode: str) -> None:
    tricks = ["/ba\tck/", "/\nback/", " /back/", "/back/\x1f", "/ba\rck/#x"]
    with Site(ROBOTS) as site:
        urls = [url for one in tricks for url in (f"{site.url}{one}", f"\x1f{site.url}{one.strip()}")]
        meta = {"meta": {"verbatim_url": True}, "dont_filter": True}
        run_crawl(*({"url": url, **meta} for url in urls if is_accepted(url)))
    assert not [target for target in site.pages() if "back" in target]


def test_a_request_for_an_origin_in_memory_does_not_wait(mode: str) -> None:
    with Site(ROBOTS) as site:
        seen = crawl(f"{site.url}/", spider="asking.InMemory")
    assert seen.notes == {"allowed": "passed at once", "forbidden": "RobotsForbidden at once"}


def test_cancelling_a_waiter_does_not_affect_others(mode: str) -> None:
    cancelled = threading.Event()
    slow = Answer(ROBOTS, before=lambda: cancelled.wait(10))
    with Site() as start, Site(slow, {"/cancelled": Answer(before=cancelled.set)}) as site:
        seen = crawl(f"{start.url}/", spider="asking.Cancelling", arguments={"other": site.url})
    assert seen.notes == {
        "first": "CancelledError",
        "second": "RobotsForbidden",
        "third": "passed",
        "last": "CancelledError",
        "later": "RobotsForbidden",
    }
    assert len(site.robots_hits()) == 1


@pytest.mark.skipif(not hasattr(signals, "robots_parsed"), reason="this version of Scrapy has no such signal")
@pytest.mark.parametrize("parser", ["StrictRobotParser", "Rfc9309RobotParser"])
def test_robots_parsed_is_sent_with_a_robot_parser(parser: str) -> None:
    settings = {**ADDON, "ROBOTSTXT_PARSER": f"scrapy_norobots.{parser}"}
    with Site(ROBOTS) as site, Site() as without:
        urls = f"{site.url}/", f"{site.url}/back/", f"{without.url}/"
        seen = crawl(*urls, spider="noting.Listening", settings=settings)
    assert seen.notes == {"parsed": [[parser, f"{site.url}/", False]], "delays": [None]}


@pytest.mark.skipif(not hasattr(signals, "robots_parsed"), reason="this version of Scrapy has no such signal")
@pytest.mark.parametrize("ttl", [0, 100])
def test_a_handler_of_robots_parsed_can_download_a_page_of_the_site(mode: str, ttl: int) -> None:
    with Site(ROBOTS) as site:
        seen = crawl(
            f"{site.url}/", spider="noting.DownloadsWhenParsed", settings={**ADDON, "NOROBOTS_TTL": ttl}
        )
    assert seen.pages == [f"{site.url}/"]
    assert seen.notes == {"status": 200}


def test_the_users_parser_decides_and_is_named() -> None:
    robots = "User-agent: *\nDisallow: /back/*.html\n"
    ours = {**ADDON, "ROBOTSTXT_OBEY": True}
    protego = {**ours, "ROBOTSTXT_PARSER": "scrapy.robotstxt.ProtegoRobotParser"}
    strict = {**ours, "ROBOTSTXT_PARSER": "scrapy_norobots.StrictRobotParser"}
    with Site(robots) as site:
        seen = crawl(f"{site.url}/back/a.html", settings=protego)
        assert [drop.type for drop in seen.drops] == ["RobotsForbidden"]
        assert "as read by ProtegoRobotParser" in seen.drops[0].text
        for settings in (ours, strict):
            assert crawl(f"{site.url}/back/a.html", settings=settings).drops == []


def test_the_users_parser_gets_the_crawler() -> None:
    settings = {**ADDON, "ROBOTSTXT_PARSER": "tests.helpers.components.parsers.ParserWithSettings"}
    with Site(ROBOTS) as site:
        seen = crawl(f"{site.url}/back/", settings=settings)
    assert [drop.type for drop in seen.drops] == ["RobotsForbidden"]


def test_the_strict_parser_works_with_scrapys_own_middleware() -> None:
    robots = "User-agent: *\nAllow: /back/\nDisallow: /back/\n\nDisallow: /stray\n"
    settings = {"ROBOTSTXT_OBEY": True, "ROBOTSTXT_PARSER": "scrapy_norobots.StrictRobotParser"}
    with Site(robots) as site:
        seen = crawl(f"{site.url}/back/a", f"{site.url}/stray", settings=settings)
    assert [(drop.url, drop.type) for drop in seen.drops] == [(f"{site.url}/back/a", "IgnoreRequest")]
    assert site.pages() == ["/stray"]


def test_scrapys_stats_keep_their_names(mode: str) -> None:
    with Site(ROBOTS) as site:
        seen = crawl(f"{site.url}/", f"{site.url}/back/")
    assert {key: value for key, value in seen.stats.items() if key.startswith("robotstxt/")} == {
        "robotstxt/request_count": 1,
        "robotstxt/response_count": 1,
        "robotstxt/response_status_count/200": 1,
        "robotstxt/forbidden": 1,
    }


def test_no_password_of_a_url_is_logged_or_kept(mode: str, tmp_path: Path) -> None:
    """Neither of a page, nor of its proxy."""
    with Site(ROBOTS) as site, Site(Answer(status=503), host="127.0.0.2") as shut:
        with Site(host="127.0.0.3") as gone:
            pass  # nothing listens there any longer
        secret, closed, dead = (one.url.replace("://", "://jo:s3cret@") for one in (site, shut, gone))
        seen = crawl(
            *(f"{secret}{path}" for path in ("/open", "/back/", "/robots.txt")),
            f"{closed}/page",
            f"{dead}/page",
            with_no_origin("http://jo:s3cret@127.0.0.1:99999/"),
            {"url": f"{secret}/exempt", "meta": {"dont_obey_robotstxt": True}},
            {"url": f"{secret}/1", "meta": {"norobots_url": "ftp://jo:s3cret@town.example/"}},
            *(
                {"url": f"http://town{number}.example/", "meta": {"proxy": proxy}}
                for number, proxy in enumerate((dead, "//jo:s3cret@", "http:jo:s3cret@127.0.0.3"))
            ),
            settings={
                **ADDON,
                "RETRY_ENABLED": False,
                "NOROBOTS_RETRY_CLOSED": 1,
                "NOROBOTS_ERROR_TTL": 0.1,
                "NOROBOTS_STORE": f"sqlite:///{tmp_path / 'store'}",
                "NOROBOTS_EVIDENCE": str(tmp_path / "evidence"),
                "NOROBOTS_REPORT": [str(tmp_path / "report.html"), str(tmp_path / "report.json")],
            },
        )
    # Scrapy's own download handlers refuse most URLs with a password.
    assert len(seen.pages) + len(seen.drops) == 11
    assert not [drop for drop in seen.drops if drop.type.startswith("Robots") and "s3cret" in drop.text]
    assert seen.log_lines("[scrapy_norobots")
    assert not seen.log_lines("[scrapy_norobots", "s3cret")
    assert "s3cret" not in str(seen.stats)
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(kept) > 4
    for path in kept:
        raw = path.read_bytes()
        assert b"s3cret" not in (gzip.decompress(raw) if path.suffix == ".gz" else raw), path
