"""The code in the docs does what the pages say. That of other pages is tested with what it shows."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import scrapy
from scrapy import signals
from scrapy.utils.misc import load_object

from scrapy_norobots import RobotsForbidden, RobotsScheduler
from scrapy_norobots.settings import DEFAULTS
from tests.helpers.running import processes
from tests.helpers.running.crawling import ADDON, crawl, run_crawl
from tests.helpers.running.processes import ROOT
from tests.helpers.samples.settings import read_all
from tests.helpers.sites import Answer, Site
from tests.helpers.sites import page as page_with

SPIDER = """
import scrapy

class Town(scrapy.Spider):
    name = "town"
    custom_settings = {
        "ADDONS": {"scrapy_norobots.Addon": 500},
        "%(kind)s": {%(middleware)s},
    }
    start_urls = %(urls)r

    def parse(self, response):
        yield from response.follow_all(css="a")
"""

# A component that connects the handler of a block.
CONNECT = """
class Connect:
    @classmethod
    def from_crawler(cls, crawler):
        from scrapy import signals

        crawler.signals.connect(headers_received, signal=signals.headers_received)
        return cls()
"""


def block(page: str, first_word: str) -> str:
    """The code block of a page of the docs in which a name is defined."""
    blocks = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL
    )
    (found,) = (code for code in blocks if re.search(rf"^(class|def) {first_word}\b", code, re.MULTILINE))
    return str(found)


def run_spider(
    folder: Path, code: str, middleware: str, *urls: str, kind: str = "DOWNLOADER_MIDDLEWARES"
) -> str:
    """Crawl with a middleware that a block of code defines; return the log."""
    file = folder / "town.py"
    file.write_text(code + SPIDER % {"kind": kind, "middleware": middleware, "urls": list(urls)})
    done = processes.run("scrapy", "runspider", str(file), "-s", "TELNETCONSOLE_ENABLED=0", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stderr


# Settings


def test_every_block_of_settings_is_valid() -> None:
    count = 0
    for page in (ROOT / "docs").glob("*.md"):
        for code in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
            if re.fullmatch(r"(?:[A-Z_]+ = .*\n|#.*\n|[ }].*\n)+", code):
                assigned: dict[str, Any] = {}
                exec(code, {}, assigned)
                read_all(**assigned)
                count += 1
    assert count > len(DEFAULTS)  # each of these has one


def test_the_settings_without_the_add_on_do_the_same() -> None:
    page = (ROOT / "docs" / "settings.md").read_text().partition("\n## Without the add-on\n")[2]
    settings: dict[str, Any] = {}
    exec(re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0], {}, settings)
    with Site("User-agent: *\nDisallow: /back/\n", {"/": page_with("/back/")}) as site:
        seen = crawl(f"{site.url}/", settings=settings, arguments={"follow": True})
    assert site.targets() == ["/robots.txt", "/"]
    assert not seen.log_lines("WARNING", "CONCURRENT_REQUESTS")


def test_only_errors_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    (code,) = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "docs" / "log-lines.md").read_text(), re.MULTILINE | re.DOTALL
    )
    with caplog.at_level("DEBUG", "scrapy_norobots"):
        exec(code, {})
        assert logging.getLogger("scrapy_norobots.checks").getEffectiveLevel() == logging.ERROR


# When robots.txt cannot be downloaded


def test_a_spider_allows_one_status() -> None:
    names: dict[str, Any] = {"scrapy": scrapy}
    exec(block("download-failures.md", "Town"), names)
    settings = {**ADDON, **names["Town"].custom_settings}
    with Site(Answer(status=403)) as shut, Site(Answer(status=401)) as other:
        assert crawl(f"{shut.url}/", f"{other.url}/", settings=settings).pages == [f"{shut.url}/"]


@pytest.mark.parametrize("kind", ["text/plain", "text/html"])
def test_a_handler_that_stops_downloads_lets_robots_txt_pass(kind: str, tmp_path: Path) -> None:
    code = block("download-failures.md", "headers_received") + CONNECT
    robots = Answer("User-agent: *\nDisallow: /staff/\n", headers={"Content-Type": "text/plain"})
    text = Answer('<a href="/staff/">staff</a><a href="/open">open</a>', headers={"Content-Type": kind})
    with Site(robots, {"/": text}) as site:
        run_spider(tmp_path, code, "Connect: 200", f"{site.url}/")
    assert site.targets() == ["/robots.txt", "/"] + ["/open"] * (kind == "text/html")


# What pages and sites say, other components


def test_a_callback_reads_what_pages_and_sites_say(tmp_path: Path) -> None:
    code = block("usage.md", "parse").replace("\n", "\n    ")
    spider = (
        "import scrapy\n\nclass Use(scrapy.Spider):\n    name = 'use'\n    start_urls = [%r]\n"
        "    custom_settings = {'ADDONS': {'scrapy_norobots.Addon': 500}, 'NOROBOTS_META': True,"
        " 'NOROBOTS_USAGE': True}\n\n    "
    )
    page = Answer("<html>", headers={"Content-Type": "text/html", "X-Robots-Tag": "noindex"})
    with Site("User-agent: *\nContent-Signal: ai-train=no\nDisallow:\n", {"/": page}) as site:
        file = tmp_path / "use.py"
        file.write_text(spider % f"{site.url}/" + code)
        done = processes.run("scrapy", "runspider", str(file), "-s", "TELNETCONSOLE_ENABLED=0", cwd=tmp_path)
    assert f"[use] INFO: {site.url}/ is not to be indexed: X-Robots-Tag: noindex\n" in done.stderr
    assert f"[use] INFO: {site.url}/ is not for training: Content-Signal: ai-train=no\n" in done.stderr


def test_a_middleware_switches_rendering_off_for_robots_txt() -> None:
    names: dict[str, Any] = {}
    exec(block("components.md", "RobotsTxtPlainly"), names)
    for meta, expected in (({"norobots_download": "http://town.example"}, False), ({}, None)):
        request = scrapy.Request("http://town.example/", meta=meta)
        names["RobotsTxtPlainly"]().process_request(request)
        assert request.meta.get("render") is expected


# Testing


def test_a_fake_robots_txt_is_obeyed_in_a_crawl(tmp_path: Path) -> None:
    with Site() as site:
        log = run_spider(
            tmp_path,
            block("testing.md", "FakeRobotsTxt"),
            "FakeRobotsTxt: 200",
            f"{site.url}/",
            f"{site.url}/staff/",
        )
    assert site.targets() == ["/"]
    assert "'Disallow: /staff/'" in log


def test_the_unit_tests_with_a_mock_crawler_pass() -> None:
    names: dict[str, Any] = {}
    exec(block("testing.md", "middleware"), names)
    tests = [name for name in names if name.startswith("test_")]
    assert len(tests) == 3
    for name in tests:
        names[name]()


def test_a_failure_can_be_made_from_a_file() -> None:
    names: dict[str, Any] = {}
    exec(block("testing.md", "forbidden"), names)
    failure = names["forbidden"]("http://town.example/")
    assert failure.check(RobotsForbidden)
    assert failure.value.decision.rule.line == 2
    assert failure.request.url == "http://town.example/"


# Moving from RobotsTxtMiddleware


def test_own_domains_can_be_exempted_before_they_wait(tmp_path: Path) -> None:
    code = block("migrating.md", "ExemptOwnDomains").replace("town.example", "127.0.0.1")
    with (
        Site(Answer(status=503), {"/": page_with("/staff/")}) as own,
        Site("User-agent: *\nDisallow: /staff/\n", host="127.0.0.2") as other,
    ):
        urls = [f"{own.url}/", f"{other.url}/", f"{other.url}/staff/"]
        log = run_spider(tmp_path, code, "ExemptOwnDomains: 543", *urls, kind="SPIDER_MIDDLEWARES")
    assert own.targets() == ["/", "/staff/"]
    assert other.targets() == ["/robots.txt", "/"]
    assert "'norobots/overridden': 2" in log


def test_the_policy_allow_fetches_what_scrapys_own_middleware_fetches() -> None:
    page = (ROOT / "docs" / "migrating.md").read_text()
    (policy,) = re.findall(r'^NOROBOTS_STATUS_POLICY = "(\w+)"$', page, re.MULTILINE)
    settings = {"RETRY_ENABLED": False, "NOROBOTS_STATUS_POLICY": policy}
    with Site("User-agent: *\nDisallow: /back/") as site, Site(Answer(status=403), host="0.0.0.0") as shut:
        shut.answers["127.0.0.3/robots.txt"] = Answer(status=503)
        shut.answers["127.0.0.4/robots.txt"] = Answer("short", headers={"Content-Length": "10"})
        urls = [f"{site.url}/", *(f"{shut.url_of(f'127.0.0.{number}')}/" for number in (2, 3, 4))]
        own = run_crawl(*urls, settings={**settings, "ROBOTSTXT_OBEY": True})
        ours = crawl(*urls, settings={**ADDON, **settings})
        strict = crawl(*urls, settings={**ADDON, "RETRY_ENABLED": False})
    assert sorted(ours.pages) == sorted(json.loads(own.stdout)["pages"]) == sorted(urls)
    assert strict.pages == urls[:1]


def test_a_crawl_from_a_warm_cache_runs_offline(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "deployment.md").read_text()
    offline = dict(re.findall(r" -s (\w+)=(\w+)", page.partition("scrapy crawl town")[2]))
    assert len(offline) == 3
    cache = {**ADDON, "HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path), "RETRY_ENABLED": False}
    with Site("User-agent: *\nDisallow: /back/") as site:
        url = f"{site.url}/"
        crawl(url, settings=cache)
    assert crawl(url, settings=cache).pages == []
    assert crawl(url, settings={**cache, **offline}).pages == [url]


def test_the_table_has_the_stats_that_change() -> None:
    page = (ROOT / "docs" / "migrating.md").read_text()
    table = page.partition("\n## Stats\n")[2].partition("\n## ")[0]
    with Site("User-agent: *\nDisallow: /back/") as site, Site(Answer(status=503)) as shut:
        urls = [f"{site.url}/back/", f"{shut.url}/"]
        own = json.loads(run_crawl(*urls, settings={"ROBOTSTXT_OBEY": True}).stdout)["stats"]
        ours = crawl(*urls).stats
    gone = {name for name in own if name not in ours and name.startswith(("robots", "downloader/e", "ret"))}
    assert gone == {"downloader/exception_type_count/scrapy.exceptions.IgnoreRequest", "retry/max_reached"}
    for name in (*gone, "downloader/exception_type_count/scrapy_norobots.exceptions.RobotsForbidden"):
        assert f"`{name}`" in table
    assert ours["downloader/exception_type_count/scrapy_norobots.exceptions.RobotsForbidden"] == 1
    assert ours["downloader/exception_type_count/scrapy_norobots.exceptions.RobotsUnreachable"] == 1


# The Python API


def test_the_parser_reads_a_file_as_the_api_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    code = (
        (ROOT / "docs" / "api.md")
        .read_text()
        .partition("## Read a file\n\n```python\n")[2]
        .partition("```")[0]
    )
    exec(code, {})
    assert capsys.readouterr().out.splitlines() == re.findall(
        r"^# ((?:http|\d ).*|False)$", code, re.MULTILINE
    )


def test_the_errback_separates_what_may_be_tried_again(tmp_path: Path) -> None:
    with (
        Site("User-agent: *\nDisallow: /staff/\n") as site,
        Site(Answer(status=403)) as refusing,
        Site(Answer(status=503)) as down,
    ):
        site.answers["/"] = page_with("/staff/rota", f"{refusing.url}/", f"{down.url}/")
        spider = tmp_path / "town.py"
        spider.write_text(block("api.md", "TownSpider").replace("http://town.example", site.url))
        options = ["RETRY_ENABLED=0", "NOROBOTS_RETRY_CLOSED=0", "TELNETCONSOLE_ENABLED=0"]
        options += ['ADDONS={"scrapy_norobots.Addon": 500}']
        arguments = [argument for option in options for argument in ("-s", option)]
        log = processes.run("scrapy", "runspider", str(spider), *arguments, cwd=tmp_path).stderr
    assert "Traceback" not in log
    assert re.search(rf"\[town\] INFO: Try {down.url}/ again in [56]\d s\n", log)
    assert sorted(re.findall(r"\[town\] INFO: Do not try again: (\S+) is", log)) == sorted(
        [f"{site.url}/staff/rota", f"{refusing.url}/"]
    )


def test_a_request_to_a_service_is_checked_as_one_for_the_page() -> None:
    names: dict[str, Any] = {"Request": scrapy.Request, "urlencode": urlencode}
    exec(block("api.md", "page"), names)
    with Site("User-agent: *\nDisallow: /staff/\n") as site, Site() as service:
        requests = [names["page"](f"{site.url}{path}") for path in ("/", "/staff/")]
        given = [
            {"url": one.url.replace("http://127.0.0.1:8050", service.url), "meta": one.meta}
            for one in requests
        ]
        seen = crawl(*given)
    assert seen.pages == [given[0]["url"]]
    assert (site.targets(), len(service.hits)) == (["/robots.txt"], 1)


def test_a_scheduler_wraps_that_of_scrapy_redis() -> None:
    pytest.importorskip("scrapy_redis", reason="scrapy-redis is not installed")
    names: dict[str, Any] = {}
    exec(block("api.md", "TownScheduler"), names)
    assert issubclass(names["TownScheduler"], RobotsScheduler)
    assert load_object(names["TownScheduler"].wrapped).__module__ == "scrapy_redis.scheduler"


@pytest.mark.skipif(not hasattr(signals, "robots_parsed"), reason="this version of Scrapy has no such signal")
@pytest.mark.parametrize(("rule", "pages"), [("/staff/", ["/", "/search"]), ("/search", ["/"])])
def test_a_handler_of_robots_parsed_sees_the_rules(rule: str, pages: list[str], tmp_path: Path) -> None:
    with Site(f"User-agent: *\nDisallow: {rule}\n") as site:
        file = tmp_path / "search.py"
        file.write_text(block("api.md", "SearchSpider").replace("http://town.example", site.url))
        options = ('ADDONS={"scrapy_norobots.Addon": 500}', "TELNETCONSOLE_ENABLED=0")
        arguments = [argument for option in options for argument in ("-s", option)]
        done = processes.run("scrapy", "runspider", str(file), *arguments, cwd=tmp_path)
    assert "Traceback" not in done.stderr, done.stderr
    assert sorted(site.pages()) == pages
