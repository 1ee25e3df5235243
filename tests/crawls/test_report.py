"""What a crawl says of itself, in real crawls; the page in a real browser."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from scrapy_norobots.report.page import to_html
from tests.browser import chromium
from tests.crawling import ADDON, Crawl, crawl, run_crawl, with_no_origin
from tests.crawls.test_refresh import LONGER_THAN_TTL, RULES, SHORT
from tests.sites import Answer, Site

FAULTY = "User-agent: *\nDisallow: /back/\nDisalow: /attic/\n\nDisallow: /cellar/\n"
CLOSED = Answer(status=503)


def with_report(*paths: Path, **settings: Any) -> dict[str, Any]:
    return {**ADDON, "RETRY_TIMES": 1, "NOROBOTS_REPORT": [str(path) for path in paths], **settings}


def row_of(facts: dict[str, Any], site: Site) -> dict[str, Any]:
    (row,) = (row for row in facts["rows"] if row["origin"] == site.url)
    return dict(row)


# The summary and the data


def test_a_crawl_says_what_it_met(mode: str, tmp_path: Path) -> None:
    page, data = tmp_path / "new" / "folder" / "report.html", tmp_path / "report.json"
    with Site(RULES) as town, Site() as village, Site(CLOSED) as shut:
        seen = crawl(
            *(f"{town.url}{path}" for path in ("/", "/a", "/back/1", "/back/2")),
            *(f"{site.url}/" for site in (village, shut)),
            {"url": f"{town.url}/back/3", "meta": {"dont_obey_robotstxt": True}},
            mode=mode,
            settings=with_report(page, data),
        )
    facts = json.loads(data.read_text())
    assert facts["requests"] == {"passed": 3, "dropped": 3, "overridden": 1}
    assert len(seen.pages) == 4
    assert seen.stats["norobots/passed"] == 3
    assert seen.stats["norobots/overridden"] == 1  # the robots.txt that was tried again is not one
    assert len(shut.robots_hits()) == 2
    assert facts["origins"] == 3
    assert facts["sources"] == {"network": 3}
    assert {(each["text"], each["origins"]) for each in facts["outcomes"]} == {
        ("rules", 1),
        ("open (4xx)", 1),
        ("closed (5xx)", 1),
    }
    assert facts["dropped_most"] == [
        {"origin": town.url, "line": 2, "text": "/back/", "count": 2},
        {"origin": shut.url, "line": None, "text": "closed (5xx)", "count": 1},
    ]
    counts = {
        site: (row_of(facts, site)["requests"], row_of(facts, site)["dropped"]) for site in (town, shut)
    }
    assert counts == {town: (4, 2), shut: (1, 1)}
    assert row_of(facts, shut)["detail"] == f"{shut.url}/robots.txt answered 503"
    assert facts["slowest"]["origin"] in {town.url, village.url, shut.url}
    assert facts["crawl"]["reason"] == "finished"
    told = seen.log.partition("INFO: robots.txt in this crawl (pages)\n")[2]
    assert told.startswith("  origins asked: 3 (1 ")
    assert "\n  requests: 3 passed, 3 dropped, 1 passed by dont_obey_robotstxt\n" in told
    assert f"\n  dropped 2 at {town.url}: line 2, 'Disallow: /back/'\n" in told
    assert f"\n  dropped 1 at {shut.url}: closed (5xx)\n" in told
    assert seen.log_lines(f"INFO: The report on robots.txt is in {page}")
    assert page.read_text("utf-8").startswith("<!doctype html>")


def test_a_crawl_without_a_report_says_the_same_in_brief(mode: str) -> None:
    with Site(RULES) as site:
        seen = crawl(f"{site.url}/", f"{site.url}/back/", mode=mode)
    told = seen.log.partition("INFO: robots.txt in this crawl (pages)\n")[2]
    assert told.startswith(
        "  origins asked: 1 (1 rules)\n  robots.txt had: 1 from network; the slowest in 0."
    )
    assert "\n  requests: 1 passed, 1 dropped, 0 passed by dont_obey_robotstxt\n" in told


@pytest.mark.parametrize("rule", ["Disallow: /*.pdf", "disallow :/back/$ # the page alone"])
def test_patterns_are_told_in_brief(rule: str) -> None:
    with Site(f"User-agent: *\n{rule}\n") as site, Site("User-agent: *\nDisallow: /a # *\n") as plain:
        urls = (f"{site.url}/x.pdf", f"{plain.url}/", f"{site.url}/y.pdf")
        seen = crawl(*urls)
        both = crawl(*urls, settings={**ADDON, "NOROBOTS_ALSO_OBEY": ["scrapy.robotstxt.ProtegoRobotParser"]})
    told = f"  patterns that 1994 does not know (* or $) in 1 file, the first {site.url}/robots.txt\n"
    assert told in seen.log
    assert "patterns that" not in both.log


@pytest.mark.parametrize("limit", [1, 16])
def test_a_request_that_waits_for_its_turn_is_one_request(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "report.json"
    with Site("User-agent: *\nDisallow: /back/\n") as site:
        crawl(
            *(f"{site.url}/{number}" for number in range(8)),
            settings={**ADDON, "CONCURRENT_REQUESTS": limit, "NOROBOTS_REPORT": str(path)},
        )
    (row,) = json.loads(path.read_bytes())["rows"]
    assert row["requests"] == 8


def test_a_file_that_is_asked_for_again_is_one_file() -> None:
    with Site("User-agent: *\nDisallow: /*.pdf\n") as site:
        settings = {**ADDON, "NOROBOTS_TTL": 0, "NOROBOTS_TTL_MIN": 0, "CONCURRENT_REQUESTS": 1}
        seen = crawl(f"{site.url}/1", f"{site.url}/2", settings=settings)
    assert len(site.robots_hits()) > 1
    assert seen.log_lines("patterns that 1994 does not know (* or $) in 1 file,")


def test_a_crawl_that_asks_nobody_says_so() -> None:
    seen = crawl("data:,")
    assert "  origins asked: 0\n  requests: 0 passed, 0 dropped, 0 passed" in seen.log


def test_stale_copies_are_told(tmp_path: Path) -> None:
    answers = [Answer(RULES), CLOSED]
    file = tmp_path / "report.json"
    with Site() as start, Site(lambda _: answers.pop(0) if len(answers) > 1 else answers[0]) as site:
        crawl(
            f"{start.url}/",
            spider="tests.spiders.Asking",
            settings={**SHORT, "NOROBOTS_REPORT": str(file)},
            arguments={"plan": [(0, f"{site.url}/a"), (LONGER_THAN_TTL, f"{site.url}/back/")]},
        )
    facts = json.loads(file.read_text())
    row = row_of(facts, site)
    assert row["outcome"] == "rules of a stale copy"
    assert (row["requests"], row["dropped"]) == (2, 1)
    assert facts["origins"] == 2


# Lines that count for nobody


def test_lines_that_count_for_nobody_are_one_warning(mode: str) -> None:
    with Site(FAULTY) as site:
        seen = crawl(f"{site.url}/", f"{site.url}/attic/", f"{site.url}/cellar/", mode=mode)
    (line,) = seen.log_lines("WARNING: ", "without effect")
    assert f"{site.url}/robots.txt has lines without effect: 2 of 3 Disallow lines, so that more" in line
    assert "(line 3, " in line
    assert "'Disalow: /attic/'" in line
    assert "line 5, 'Disallow: /cellar/'" in line


def test_they_are_told_when_another_reading_counts_too() -> None:
    settings = {**ADDON, "NOROBOTS_ALSO_OBEY": ["scrapy.robotstxt.ProtegoRobotParser"]}
    with Site(FAULTY) as site:
        seen = crawl(f"{site.url}/", settings=settings)
    assert seen.log_lines("WARNING: ", "without effect: 2 of 3 Disallow lines")


def test_they_are_told_once_however_often_the_file_comes() -> None:
    with Site() as start, Site(FAULTY) as site:
        seen = crawl(
            f"{start.url}/",
            spider="tests.spiders.Asking",
            settings=SHORT,
            arguments={"plan": [(0, f"{site.url}/"), (LONGER_THAN_TTL, f"{site.url}/")]},
        )
    assert len(site.robots_hits()) == 2
    assert len(seen.log_lines("without effect")) == 1


def test_they_do_not_fill_the_log(tmp_path: Path) -> None:
    with Site(FAULTY, host="0.0.0.0") as site:
        urls = [f"{site.url_of(f'127.2.0.{number}')}/" for number in range(1, 26)]
        seen = crawl(*urls, settings=with_report(tmp_path / "report.json"))
    assert len(seen.log_lines("WARNING: ", "without effect")) == 20
    (last,) = seen.log_lines("WARNING: 20 files with such lines have been told of")
    assert "NOROBOTS_REPORT" in last
    rows = json.loads((tmp_path / "report.json").read_text())["rows"]
    assert [row["ignored_lines"] for row in rows] == [2] * 25
    assert rows[0]["findings"] == "misspelt-field (line 3), stray-disallow (line 5)"


def test_a_parser_of_the_users_own_has_no_such_lines() -> None:
    settings = {**ADDON, "ROBOTSTXT_PARSER": "scrapy.robotstxt.ProtegoRobotParser"}
    with Site(FAULTY) as site:
        seen = crawl(f"{site.url}/", f"{site.url}/back/", settings=settings)
    assert not seen.log_lines("without effect")
    assert "ProtegoRobotParser\n" in seen.log.partition("robots.txt in this crawl (pages)\n")[2]


# A dry run


def test_a_dry_run_tells_and_drops_nothing(mode: str, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    settings = with_report(file, NOROBOTS_DRY_RUN=True)
    with Site(RULES) as site, Site(CLOSED) as shut:
        urls = [f"{site.url}/", f"{site.url}/back/1", f"{site.url}/%62ack/2", f"{shut.url}/"]
        seen = crawl(*urls, mode=mode, settings=settings)
    assert sorted(seen.pages) == sorted(urls)
    assert seen.drops == []
    assert seen.stats["norobots/would_drop"] == 3
    assert "robotstxt/forbidden" not in seen.stats
    assert len(seen.log_lines("WARNING: NOROBOTS_DRY_RUN: ")) == 1
    assert len(seen.log_lines("WARNING: Would be forbidden by robots.txt: <GET", "Disallow: /back/")) == 2
    assert len(seen.log_lines("WARNING: Nothing would be fetched at", shut.url)) == 1
    assert not seen.log_lines(" Forbidden by robots.txt")
    facts = json.loads(file.read_text())
    assert facts["requests"] == {"passed": 1, "dropped": 3, "overridden": 0}
    assert facts["crawl"]["dry_run"] is True
    assert "\n  requests: 1 passed, 3 would have been dropped, 0 passed" in seen.log


def test_a_dry_run_lets_a_url_without_an_origin_pass() -> None:
    seen = crawl(with_no_origin("http://127.0.0.1:99999/"), settings={**ADDON, "NOROBOTS_DRY_RUN": True})
    assert seen.stats["norobots/would_drop"] == 1
    assert not [drop for drop in seen.drops if drop.type.startswith("Robots")]
    assert "would have been dropped 1 at no origin: the URL has no origin: " in seen.log


# Where it is written


def test_placeholders_are_filled_in(tmp_path: Path) -> None:
    template = f"{tmp_path}/%(name)s/100%%-%(time)s.json, {tmp_path}/other.htm"
    crawl("data:,", settings={**ADDON, "NOROBOTS_REPORT": template})
    (file,) = (tmp_path / "pages").iterdir()
    assert re.fullmatch(r"100%-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\+00-00\.json", file.name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.htm", "pages"]


def test_a_users_home_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = {"NOROBOTS_REPORT": "~/robots.json", "NOROBOTS_STORE": "sqlite:///~/robots.sqlite"}
    with Site() as site:
        crawl(f"{site.url}/", settings={**ADDON, **settings})
    assert {"robots.json", "robots.sqlite"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("file/report.html", "cannot be written: "),
        ("folder.html", "folder.html is a folder"),
        ("full.html", "/dev/full is no file"),
        (f"{300 * 'x'}.json", "cannot be written: "),
        ("%(host)s.html", "has a placeholder other than %(name)s and %(time)s, or a '%' that is not doubled"),
        ("100%.html", "has a placeholder other than %(name)s and %(time)s, or a '%' that is not doubled"),
        ("report.pdf", "must end in one of .html, .htm, .json"),
    ],
)
def test_a_path_that_cannot_be_written_stops_the_start(path: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "full.html").symlink_to("/dev/full")
    value = f"{tmp_path}/{path}"
    with Site() as site:
        done = run_crawl(f"{site.url}/", settings={**ADDON, "NOROBOTS_REPORT": value})
    assert site.targets() == []
    (error,) = {
        line for line in done.stderr.splitlines() if line.startswith("ValueError: NOROBOTS_REPORT = ")
    }
    assert f"{value!r}: " in error
    assert problem in error
    assert {file.name for file in tmp_path.iterdir()} == {"file", "folder.html", "full.html"}


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A real disk with room for 8 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("only root may mount a small disk here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_costs_the_crawl_nothing_and_an_earlier_report_nothing(tiny_disk: Path) -> None:
    page, data = tiny_disk / "report.html", tiny_disk / "report.json"
    page.write_text("of yesterday")
    with Site(RULES) as site:
        seen = crawl(f"{site.url}/", settings=with_report(page, data))
    assert seen.stats["finish_reason"] == "finished"
    (line,) = seen.log_lines("ERROR: ")
    assert f"NOROBOTS_REPORT: {page} could not be written: [Errno 28] No space left on device" in line
    assert page.read_text() == "of yesterday"
    assert json.loads(data.read_text())["origins"] == 1  # there was room for that
    assert sorted(tiny_disk.iterdir()) == [page, data]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link, target = tmp_path / "report.json", tmp_path / "real" / "report.data"
    link.symlink_to(target)
    crawl("data:,", settings=with_report(link))
    assert link.is_symlink()
    assert json.loads(target.read_text())["origins"] == 0


# The page, in a browser

HOSTILE = (
    "</script><script>window.pwned=1</script>",
    "<img/src=x/onerror=window.pwned=1>",
    "\u2028\u2029</title></style><svg/onload=window.pwned=1>",
    "\u202egnp.exe\u2066\x1b[31m\x07\x00",
    "'\"&lt;&amp;\\u003c${pwned}$spider",
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Crawl, Path]:
    """The report of a crawl of a site that writes into its robots.txt what could do harm."""
    file = tmp_path_factory.mktemp("hostile") / "report.html"
    lines = [
        "User-agent: *",
        *(f"Disallow: /{text}" for text in HOSTILE),
        "",
        "<script>window.pwned=1</script>",
    ]
    bad_name = Answer(status=302, headers={"Location": "/<script>window.pwned=1</script>"})
    with Site("\n".join(lines)) as site, Site(bad_name) as other:
        paths = (quote(text, safe="/&;$'=()!*+,:@") for text in HOSTILE)
        seen = crawl(
            *(f"{site.url}/{path}" for path in paths),
            f"{other.url}/",
            settings=with_report(file, file.with_suffix(".json")),
            arguments={"name": "</title><script>window.pwned=1</script>"},
        )
    return seen, file


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as chrome:
        yield chrome


def complaints(browser: webdriver.Chrome) -> list[str]:
    """What the browser had to say of the page since this was last asked."""
    return [entry["message"] for entry in browser.get_log("browser")]  # type: ignore[no-untyped-call]


def test_a_hostile_site_shows_as_text(hostile: tuple[Crawl, Path], browser: webdriver.Chrome) -> None:
    _, file = hostile
    browser.get(file.as_uri())
    assert browser.title == "robots.txt in the crawl of </title><script>window.pwned=1</script>"
    assert browser.execute_script("return window.pwned") is None
    assert browser.execute_script("return [document.scripts.length, document.images.length]") == [2, 0]
    text = browser.find_element(By.TAG_NAME, "body").text
    assert text.replace("\n", "").isprintable()
    for shown in (
        "Disallow: /</script><script>window.pwned=1</script>",
        "Disallow: /<img/src=x/onerror=window.pwned=1>",
        r"Disallow: /\u2028\u2029</title></style><svg/onload=window.pwned=1>",
        r"Disallow: /\u202egnp.exe\u2066\x1b[31m\x07\x00",
        "Disallow: /'\"&lt;&amp;\\u003c${pwned}$spider",
    ):
        assert shown in text
    assert browser.execute_script('return performance.getEntriesByType("resource").length') == 0
    assert complaints(browser) == []  # no error, nothing that the policy had to stop


def test_the_policy_would_stop_what_got_through(
    hostile: tuple[Crawl, Path], browser: webdriver.Chrome
) -> None:
    _, file = hostile
    text = file.read_text("utf-8")
    broken = file.with_name("broken.html")
    broken.write_text(text.replace("<main>", "<main><script>window.pwned=1</script>"), "utf-8")
    browser.get(broken.as_uri())
    assert browser.execute_script("return window.pwned") is None
    (complaint,) = complaints(browser)
    assert "Content Security Policy" in complaint


def test_a_hostile_site_is_text_in_json_and_log_too(hostile: tuple[Crawl, Path]) -> None:
    seen, file = hostile
    data = file.with_suffix(".json").read_bytes()
    assert data.isascii()
    causes = {cause["text"] for cause in json.loads(data)["dropped_most"]}
    assert r"/\u202egnp.exe\u2066\x1b[31m\x07\x00" in causes
    told = seen.log.partition("INFO: robots.txt in this crawl (")[2].partition("INFO: The report")[0]
    assert told.count("Disallow: ") == len(HOSTILE)
    assert told.replace("\n", "").isprintable()


def many(count: int) -> dict[str, Any]:
    """Facts of a made-up crawl of many origins, the last of which had the most drops."""
    row = {"source": "network", "ignored_lines": 0, "findings": "", "detail": ""}
    return {
        "crawl": {
            "generator": "", "spider": "town", "reason": "finished", "dry_run": False,
            "started": "2030-01-02T03:04:05+00:00", "finished": "2030-01-02T03:04:05+00:00",
        },
        "requests": {"passed": 0, "dropped": 0, "overridden": 0},
        "origins": count + 5,
        "outcomes": [],
        "sources": {},
        "slowest": None,
        "dropped_most": [],
        "dropped_most_short_by": 0,
        "rows": [
            {
                "origin": f"http://town{number:06}.example", "outcome": ("rules", "open (4xx)")[number % 2],
                "seconds": number % 1000 / 100, "requests": number, "dropped": number, **row,
            }
            for number in range(count)
        ],
        "rows_left_out": 5,
    }  # fmt: skip


@pytest.fixture(scope="module")
def long_list(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("long") / "report.html"
    file.write_text(to_html(many(100_000)), "utf-8")  # type: ignore[arg-type]  # not all of a crawl
    return file


def column(browser: webdriver.Chrome, number: int) -> list[str]:
    """The texts of a column of the table, from the top."""
    script = "return [...document.querySelectorAll(arguments[0])].map(cell => cell.firstChild.textContent)"
    return list(browser.execute_script(script, f"#rows-table tbody td:nth-child({number})"))


def status(browser: webdriver.Chrome) -> str:
    return browser.find_element(By.ID, "status").text


def test_100000_origins_are_shown_a_hundred_at_a_time(browser: webdriver.Chrome, long_list: Path) -> None:
    browser.get(long_list.as_uri())
    assert status(browser) == "1–100 of 100,000"
    assert column(browser, 1)[:2] == ["http://town099999.example", "http://town099998.example"]
    assert len(column(browser, 1)) == 100
    assert "5 more are counted above and not listed" in browser.find_element(By.TAG_NAME, "body").text
    browser.find_element(By.ID, "next").click()
    assert status(browser) == "101–200 of 100,000"
    assert column(browser, 6)[0] == "99,899"
    browser.find_element(By.ID, "previous").click()
    assert status(browser) == "1–100 of 100,000"
    assert not browser.find_element(By.ID, "previous").is_enabled()


def test_the_list_is_sorted_by_click_and_by_key(browser: webdriver.Chrome, long_list: Path) -> None:
    browser.get(long_list.as_uri())
    by_origin, *_, by_seconds = browser.find_elements(By.CSS_SELECTOR, "thead button")[:4]
    by_seconds.click()
    assert set(column(browser, 4)) == {"9.99"}
    by_seconds.send_keys(Keys.ENTER)
    assert set(column(browser, 4)) == {"0.00"}
    by_origin.send_keys(Keys.SPACE)
    assert column(browser, 1)[0] == "http://town000000.example"
    sorted_by = browser.find_elements(By.CSS_SELECTOR, "th[aria-sort]")
    assert [(header.text.split()[0], header.get_attribute("aria-sort")) for header in sorted_by] == [
        ("Origin", "ascending")
    ]


def test_the_list_is_filtered_by_text_and_by_outcome(browser: webdriver.Chrome, long_list: Path) -> None:
    browser.get(long_list.as_uri())
    field = browser.find_element(By.ID, "filter")
    field.send_keys("TOWN0123")
    assert status(browser) == "1–100 of 100"
    choice = browser.find_element(By.ID, "outcome")
    choice.send_keys("open")
    assert status(browser) == "1–50 of 50"
    assert set(column(browser, 2)) == {"open (4xx)"}
    field.send_keys("no such")
    assert status(browser) == "none"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_fits_and_can_be_read(
    browser: webdriver.Chrome, hostile: tuple[Crawl, Path], scheme: str, width: int
) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(hostile[1].as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    colours = browser.execute_script(
        "const style = getComputedStyle(document.body); return [style.color, style.backgroundColor]"
    )
    ink, paper = (sum(map(int, re.findall(r"\d+", colour))) for colour in colours)
    assert (ink > paper) == (scheme == "dark")
    assert abs(ink - paper) > 400
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_what_harms_nobody_is_no_warning() -> None:
    with Site("User-agent: *\nDisallow: /robots.txt\nDisallow: /back/\n") as site:
        seen = crawl(f"{site.url}/")
    assert not seen.log_lines("effect")


def test_a_file_that_is_a_page_has_no_rules_to_count() -> None:
    with Site("<html><body>Not found\nDisallow: /x</body></html>") as site:
        seen = crawl(f"{site.url}/")
    assert seen.log_lines("WARNING: ", f"{site.url}/robots.txt has lines without effect: 1 line (line 1, ")


def test_only_the_beginning_of_a_long_file_is_looked_through() -> None:
    with Site("User-agent: *\n" + "Disalow: /x\n" * 5000) as site:
        seen = crawl(f"{site.url}/")
    assert seen.log_lines("WARNING: ", "without effect: 1999 of 1999 Disallow lines at its beginning, so")


def test_ten_causes_are_told_in_the_log_and_bars_are_as_long_as_they_count(tmp_path: Path) -> None:
    paths = [f"/{letter}/" for letter in "abcdefghijkl"]
    robots = "User-agent: *\n" + "".join(f"Disallow: {path}\n" for path in paths)
    with Site(robots) as site:
        urls = [f"{site.url}{path}{n}" for count, path in enumerate(paths, 1) for n in range(count)]
        seen = crawl(*urls, settings=with_report(tmp_path / "report.html"))
    told = [
        path for path in paths if f"'Disallow: {path}'" in seen.log.partition("robots.txt in this crawl")[2]
    ]
    assert told == paths[2:]
    page = (tmp_path / "report.html").read_text()
    widths = [float(width) for width in re.findall(r'<rect[^>]* width="([\d.]+)%"', page)]
    assert {round(100 * count / 12) for count in range(3, 13)} <= {round(width) for width in widths}
