"""What is checked before a crawl begins."""

from __future__ import annotations

import pytest

from tests.helpers.running import processes
from tests.helpers.running.crawling import ADDON, crawl, run_crawl
from tests.helpers.sites import Site
from tests.unit.test_addon import BUILTIN, META, OURS, OURS_IN_FULL

SCRAPYS_OWN = "tests.helpers.components.derived.ScrapysOwn"


def test_scrapys_own_middleware_beside_it_is_a_warning() -> None:
    by_hand = {OURS: 100, BUILTIN: 110}
    with Site("User-agent: *\nDisallow: /back/\n") as site:
        seen = crawl(f"{site.url}/", settings={"ROBOTSTXT_OBEY": True, "DOWNLOADER_MIDDLEWARES": by_hand})
    assert len(seen.log_lines(f"WARNING: {BUILTIN} is enabled too: ")) == 1


def test_meta_tags_without_their_middleware_are_a_warning() -> None:
    settings = {
        "ROBOTSTXT_OBEY": True,
        "NOROBOTS_META": True,
        "DOWNLOADER_MIDDLEWARES": {OURS: 100, BUILTIN: None},
    }
    with Site() as site:
        seen = crawl(f"{site.url}/", settings=settings)
    assert len(seen.log_lines("WARNING: ", "NOROBOTS_META", "SPIDER_MIDDLEWARES")) == 1


@pytest.mark.parametrize(
    ("spider", "listed"),
    [("pages.Pages", {SCRAPYS_OWN: 110}), ("configured.ListsASubclassOfScrapys", {})],
    ids=["by its path", "by its class"],
)
def test_a_subclass_of_scrapys_own_middleware_beside_it_is_a_warning(
    spider: str, listed: dict[str, int]
) -> None:
    settings = {**ADDON, "DOWNLOADER_MIDDLEWARES": listed}
    with Site("User-agent: *\nDisallow: /back/\n") as site:
        seen = crawl(f"{site.url}/", settings=settings, spider=spider)
    assert len(site.robots_hits()) == 2
    (line,) = seen.log_lines(f"WARNING: {SCRAPYS_OWN} is enabled too: ")
    assert (
        "a request passes only if both middlewares allow it, and each robots.txt is downloaded twice" in line
    )


@pytest.mark.parametrize(
    ("setting", "key", "place"),
    [
        ("ADDONS", OURS, "DOWNLOADER_MIDDLEWARES"),
        ("EXTENSIONS", OURS, "DOWNLOADER_MIDDLEWARES"),
        ("SPIDER_MIDDLEWARES", OURS_IN_FULL, "DOWNLOADER_MIDDLEWARES"),
        ("DOWNLOADER_MIDDLEWARES", META, "SPIDER_MIDDLEWARES"),
        ("DOWNLOADER_MIDDLEWARES", "scrapy_norobots.Addon", "ADDONS"),
        ("EXTENSIONS", "scrapy_norobots.Addon", "ADDONS"),
    ],
)
def test_a_component_in_the_wrong_setting_is_an_error(setting: str, key: str, place: str) -> None:
    with Site() as site:
        done = run_crawl(f"{site.url}/", settings={setting: {key: 100}})
    assert f"{setting} = {{{key!r}: 100}}: {key!r} belongs in {place}" in done.stderr
    assert site.targets() == []


def test_a_subclass_that_overrides_hooks_of_scrapys_own_middleware_is_a_warning() -> None:
    with Site("User-agent: *\nDisallow: /back/\n") as site:
        settings = {**ADDON, "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.derived.HalfPorted": 100}}
        seen = crawl(f"{site.url}/", f"{site.url}/back/", settings=settings)
    assert seen.pages == [f"{site.url}/"]
    [line] = seen.log_lines("WARNING", "tests.helpers.components.derived.HalfPorted overrides")
    assert "so this has no effect: DOWNLOAD_PRIORITY, process_request_2. " in line


@pytest.mark.parametrize(
    ("agent", "is_clear"),
    [
        (None, False),
        ("FooBot/1.0", False),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:109.0)", False),
        ("FooBot/1.0 (+https://foo.example/bot)", True),
        ("FooBot/1.0 (www.foo.example)", True),
        ("FooBot/1.0 (bot@foo.example)", True),
    ],
)
def test_a_user_agent_that_does_not_say_whose_crawl_it_is_is_one_warning(
    agent: str | None, is_clear: bool
) -> None:
    settings = ADDON if agent is None else {**ADDON, "USER_AGENT": agent}
    with Site() as site:
        seen = crawl(f"{site.url}/", f"{site.url}/open", settings=settings)
    sent = site.robots_hits()[0].headers["user-agent"]
    assert agent in (None, sent)
    lines = seen.log_lines(f"WARNING: The User-Agent {sent!r} has no URL and no e-mail address of yours")
    assert len(lines) == (not is_clear)


def test_the_user_agent_of_the_spider_is_the_one_that_is_checked() -> None:
    settings = {
        **ADDON,
        "USER_AGENT": "FooBot",
        "DEFAULT_REQUEST_HEADERS": {"User-Agent": "Foo (a@b.example)"},
    }
    with Site() as site:
        assert crawl(f"{site.url}/", settings=settings).log_lines("The User-Agent") == []


def test_a_crawl_that_does_not_obey_has_no_warning_about_its_user_agent() -> None:
    with Site() as site:
        seen = crawl(f"{site.url}/", settings={**ADDON, "ROBOTSTXT_OBEY": False})
    assert seen.log_lines("The User-Agent") == []


def test_commands_for_one_page_have_no_warning_about_the_user_agent() -> None:
    with Site() as site:
        addon = 'ADDONS={"scrapy_norobots.Addon": 500}'
        done = processes.run("scrapy", "fetch", "-s", addon, "-s", "ROBOTSTXT_OBEY=1", f"{site.url}/")
    assert site.pages() == ["/"]
    assert "scrapy_norobots" in done.stderr
    assert "The User-Agent" not in done.stderr
