"""``scrapy robots-check``: answers, downloads, and what it must not change."""

from __future__ import annotations

import json
import signal
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from scrapy_norobots.standard import Origin
from tests.helpers.running import processes
from tests.helpers.running.commands import ROBOTS, conversation, environment, errors, run, words
from tests.helpers.running.crawling import crawl
from tests.helpers.samples.filled_stores import CITY, HOUR, SLOW, SOCKET, TOWN, VILLAGE, fill, snapshots
from tests.helpers.sites import Answer, Site


def test_check_decides_as_a_crawl_does(tmp_path: Path, mode: str) -> None:
    paths = ("/", "/x.gif", "/staff/open", "/a/../%73taff/;", "/sta%66f/b", "/staff;", "/FOO/", "/staff%2F")
    with Site(ROBOTS) as site:
        urls = [site.url + path for path in paths]
        done = run(tmp_path, "robots-check", *urls, mode=mode)
        assert site.pages() == []
        seen = crawl(*urls)
    dropped = {drop.url for drop in seen.drops}
    answers = dict(zip(urls, words(done), strict=True))
    assert dropped == {url for url, word in answers.items() if word == "forbidden"}
    assert len(dropped) == 3
    assert set(answers.values()) == {"allowed", "forbidden"}


def test_check_explains_a_missing_rule(tmp_path: Path) -> None:
    cases = [
        (Answer("User-agent: *\nDisallow: /x"), "allowed", "no line of "),
        (Answer("User-agent: FooBot\nDisallow: /"), "allowed", "no record for this robot"),
        (Answer(status=404), "allowed", "answered 404, and NOROBOTS_STATUS_POLICY allows '4xx'"),
        (Answer(status=403), "forbidden", "answered 403, and NOROBOTS_STATUS_POLICY denies '403'"),
        (Answer(status=429), "unknown", "answered 429, and NOROBOTS_STATUS_POLICY denies '429'"),
        (Answer(status=503), "unknown", "answered 503, and NOROBOTS_STATUS_POLICY denies '5xx'"),
    ]
    with ExitStack() as stack:
        sites = [stack.enter_context(Site(answer)) for answer, _, _ in cases]
        done = run(tmp_path, "robots-check", *(f"{site.url}/" for site in sites))
    for line, site, (_, word, why) in zip(done.stdout.splitlines(), sites, cases, strict=True):
        assert line.startswith(f"{word:<9} {site.url}/ for 'Scrapy': ")
        assert why in line
        assert site.pages() == []
    assert (done.returncode, errors(done)) == (2, [])


def test_check_uses_the_settings_of_a_crawl(tmp_path: Path) -> None:
    with Site(Answer(status=503)) as site:
        options = ["-s", "NOROBOTS_STATUS_POLICY=allow", "-s", "RETRY_ENABLED=0"]
        done = run(tmp_path, "robots-check", *options, f"{site.url}/")
    assert words(done) == ["allowed"]
    assert "answered 503, and NOROBOTS_STATUS_POLICY allows '5xx'" in done.stdout
    assert (done.returncode, len(site.hits)) == (0, 1)


def test_check_of_a_site_that_does_not_respond_is_unknown(tmp_path: Path, mode: str) -> None:
    release = threading.Event()
    with Site(Answer("", before=release.wait)) as site:
        options = ["-s", "NOROBOTS_TIMEOUT=0.5", "-s", "NOROBOTS_RETRY_TIMES=0"]
        done = run(tmp_path, "robots-check", *options, f"{site.url}/", "http://127.0.0.1:1/", mode=mode)
        release.set()
    assert words(done) == ["unknown", "unknown"]
    assert done.stdout.count("could not be downloaded (") == 2
    assert done.returncode == 2


def test_check_follows_a_redirect_and_names_its_target(tmp_path: Path) -> None:
    with Site(ROBOTS) as other, Site(Answer(status=301, headers={"Location": f"{other.url}/r.txt"})) as site:
        other.answers["/r.txt"] = Answer(ROBOTS)
        done = run(tmp_path, "robots-check", f"{site.url}/staff/")
    assert f": line 5 of {other.url}/r.txt, " in done.stdout
    assert (site.targets(), other.targets()) == (["/robots.txt"], ["/r.txt"])


def test_check_answers_for_valid_urls_beside_invalid_ones(tmp_path: Path) -> None:
    bad = [
        "a.example/x",
        "/x",
        "",
        "http://[::1/",
        "http://127.0.0.1:99999/",
        "ftp://a.example/",
        "http:///x",
    ]
    with Site("User-agent: *\nDisallow: /") as site:
        done = run(tmp_path, "robots-check", *bad, f"{site.url}/")
    assert words(done) == ["unknown"] * len(bad) + ["forbidden"]
    assert done.stdout.count("the URL is invalid (") == 5
    assert done.stdout.count("only http and https URLs with a host have a robots.txt") == 2
    assert done.returncode == 2


def test_check_reads_urls_from_standard_input_and_keeps_their_order(tmp_path: Path) -> None:
    with Site(ROBOTS) as one, Site("User-agent: *\nDisallow: /a") as two:
        urls = [f"{site.url}/{path}" for path in ("a", "staff/", "\udce9") for site in (one, two)]
        listed = "\ufeff" + "\r\n\n  ".join(urls[1:]) + "\n"
        done = run(tmp_path, "robots-check", urls[0], "-", urls[2], stdin=listed)
    assert words(done) == ["allowed", "forbidden", "forbidden", "allowed", "unknown", "unknown", "forbidden"]
    assert [line.split()[1] for line in done.stdout.splitlines()[:4]] == urls[:4]
    assert one.targets() == two.targets() == ["/robots.txt"]


def test_check_of_many_urls_downloads_each_robots_txt_once(tmp_path: Path) -> None:
    with Site(ROBOTS, host="0.0.0.0") as site:
        urls = [f"{site.url_of(f'127.0.1.{n % 40 + 1}')}/{'staff/' * (n % 3 == 0)}{n}" for n in range(2000)]
        done = run(tmp_path, "robots-check", "-", stdin="\n".join(urls))
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [
        ["forbidden" if "/staff/" in url else "allowed", url] for url in urls
    ]
    assert sorted(hit.host for hit in site.hits) == sorted(f"127.0.1.{n + 1}" for n in range(40))
    assert site.pages() == []


@pytest.mark.parametrize("path", ["my robots.txt", "-"])
def test_check_can_read_a_local_file(tmp_path: Path, path: str) -> None:
    (tmp_path / "my robots.txt").write_text(ROBOTS)
    with Site("User-agent: *\nDisallow: /") as site:
        urls = [f"{site.url}/", "http://nowhere.invalid/staff/"]
        done = run(tmp_path, "robots-check", "--file", path, *urls, stdin=ROBOTS)
    name = "<stdin>" if path == "-" else path
    assert words(done) == ["allowed", "forbidden"]
    assert f": line 5 of {name}, 'Disallow: /staff/'" in done.stdout
    assert (done.returncode, done.stderr, site.hits) == (1, "", [])


def test_check_compares_with_rfc_9309(tmp_path: Path) -> None:
    with Site(ROBOTS) as site, Site(Answer(status=403)) as locked, Site(Answer(status=503)) as broken:
        urls = [site.url + path for path in ("/", "/staff/", "/staff/open", "/x.gif")]
        urls += [f"{locked.url}/", f"{broken.url}/", "nonsense"]
        done = run(tmp_path, "robots-check", "--compare", *urls)
        as_json = run(tmp_path, "robots-check", "--compare", "--json", *urls)
        only_robots = run(tmp_path, "robots-check", "--compare", f"{broken.url}/robots.txt")
    same = "[RFC 9309: the same]"
    assert [line.partition(" [RFC")[1:] for line in done.stdout.splitlines()] == [
        (" [RFC", same.removeprefix("[RFC")),
        (" [RFC", same.removeprefix("[RFC")),
        (" [RFC", " 9309 differs: allowed; line 6, '/staff/open']"),
        (" [RFC", " 9309 differs: forbidden; line 7, '/*.gif']"),
        (" [RFC", " 9309 differs: allowed]"),
        (" [RFC", same.removeprefix("[RFC")),
        ("", ""),
    ]
    facts = list(map(json.loads, as_json.stdout.splitlines()))
    assert [fact["rfc9309"] for fact in facts] == [
        "allowed", "forbidden", "allowed", "forbidden", "allowed", "unknown", None,
    ]  # fmt: skip
    assert [fact["differs"] for fact in facts] == [False, False, True, True, True, False, None]
    assert (facts[3]["rule"], facts[3]["rfc9309_rule"]) == (None, {"line": 7, "value": "/*.gif"})
    assert (done.returncode, as_json.returncode) == (2, 2)
    assert only_robots.stdout.rstrip().endswith(same)


def test_what_all_readings_obey_makes_no_difference(tmp_path: Path) -> None:
    robots = "User-agent: GPTBot\nDisallow: /a\n\nUser-agent: *\nContent-Signal: search=no\nDisallow: /b\n"
    more = ["-s", "NOROBOTS_ALSO_ROBOTS=GPTBot", "-s", "NOROBOTS_PURPOSES=search"]
    urls = ["http://town.example/a", "http://town.example/c"]
    done = run(tmp_path, "robots-check", *more, "--compare", "--file", "-", *urls, stdin=robots)
    assert words(done) == ["forbidden", "forbidden"]
    assert done.stdout.count("[RFC 9309: the same]") == 2


def test_check_writes_json(tmp_path: Path) -> None:
    with Site(ROBOTS) as site:
        done = run(tmp_path, "robots-check", "--json", f"{site.url}/staff/#x", f"{site.url}/", "\u2028")
    forbidden, allowed, bad = map(json.loads, done.stdout.splitlines())
    source = f"{site.url}/robots.txt"
    record = {"line": 4, "names": ["*"]}
    assert forbidden == {
        "url": f"{site.url}/staff/#x",
        "answer": "forbidden",
        "robot": "Scrapy",
        "reason": "rule",
        "why": f"line 5 of {source}, 'Disallow: /staff/', in the record of line 4 for '*'",
        "source": source,
        "rule": {"line": 5, "value": "/staff/"},
        "record": record,
        "decided_for": None,
        "rfc9309": None,
        "rfc9309_rule": None,
        "differs": None,
        "age": None,
        "fresh": None,
        "usage": None,
    }
    assert (allowed["answer"], allowed["reason"], allowed["rule"]) == ("allowed", "no_rule_matches", None)
    assert allowed["record"] == record
    assert (bad["answer"], bad["reason"], bad["url"]) == ("unknown", "bad_url", "\u2028")
    assert list(bad) == list(allowed) == list(forbidden)


def test_json_has_the_first_names_of_a_long_record(tmp_path: Path) -> None:
    """Otherwise each answer for such a site would be as long as its file."""
    names = [f"bot{n}x{'y' * 1000}" for n in range(1000)]
    (tmp_path / "robots.txt").write_text("".join(f"User-agent: {name}\n" for name in names) + "Disallow: /")
    options = ("--json", "--file", "robots.txt", "--robot", names[7])
    answer = run(tmp_path, "robots-check", *options, "http://town.example/").stdout
    assert answer.count("bot") < 60
    assert len(answer) < 20_000


def test_check_uses_a_project_without_changing_it(project: Path) -> None:
    before = sorted(path for path in project.rglob("*") if "__pycache__" not in path.parts)
    with Site(ROBOTS) as site:
        done = run(project, "robots-check", f"{site.url}/foo/", f"{site.url}/staff/")
    assert words(done) == ["forbidden", "allowed"]  # FooBot's record, by USER_AGENT
    assert "for 'FooBot'" in done.stdout
    (hit,) = site.hits
    assert (hit.headers["user-agent"], hit.headers["x-signed"]) == ("FooBot/1.0", "yes")
    after = sorted(path for path in project.rglob("*") if "__pycache__" not in path.parts)
    assert after == before
    assert (project / "items.json").read_text() == "[]"


def test_check_in_a_project_with_the_add_on_and_another_parser(project: Path) -> None:
    with (project / "town" / "settings.py").open("a") as settings:
        settings.write(
            "ADDONS = {'scrapy_norobots.Addon': 500}\n"
            "ROBOTSTXT_PARSER = 'scrapy.robotstxt.ProtegoRobotParser'\n"
        )
    (project / "robots.txt").write_text("User-agent: *\nDisallow: /a*z\n")
    with Site("User-agent: *\nDisallow: /a*z\n") as site:
        downloaded = run(project, "robots-check", "--compare", f"{site.url}/abcz")
        read = run(project, "robots-check", "--file", "robots.txt", "http://a.example/abcz")
    assert words(downloaded) == words(read) == ["forbidden"]
    assert "robots.txt as read by ProtegoRobotParser [RFC 9309: the same]" in downloaded.stdout
    assert site.targets() == ["/robots.txt"]


def test_check_reports_a_crawl_that_does_not_start(project: Path) -> None:
    with (project / "town" / "settings.py").open("a") as settings:
        settings.write("DOWNLOADER_MIDDLEWARES = {'town.parts.Missing': 300}\n")
    done = processes.run("scrapy", "robots-check", "http://127.0.0.1:1/", cwd=project, env=environment())
    assert done.returncode == 2
    assert done.stdout == ""
    assert "town.parts" in done.stderr  # a message of Scrapy
    assert "the crawl did not run to its end" in done.stderr


def test_an_interrupted_check_has_printed_the_answers_so_far(tmp_path: Path) -> None:
    asked, release = threading.Event(), threading.Event()

    def wait() -> None:
        asked.set()
        release.wait()

    with Site(ROBOTS) as first, Site(Answer(ROBOTS, before=wait)) as slow, Site(ROBOTS) as other:
        urls = [f"{site.url}/" for site in (first, slow, other)]
        command = ("scrapy", "robots-check", "-s", "CONCURRENT_REQUESTS=1", "-L", "INFO", *urls)
        with processes.Piped(*command, cwd=tmp_path, env=environment()) as process:
            assert asked.wait(60)
            answer = process.stdout.readline()  # the answer may be written after the next site is asked
            process.send_signal(signal.SIGINT)
            log = ""
            while "Closing spider" not in log and (line := process.stderr.readline()):
                log += line
            release.set()
            out, rest = process.communicate(timeout=60)
            assert process.wait() == 2
    assert "SIGINT" in log
    assert answer.split()[:2] == ["allowed", urls[0]]
    assert out == ""
    assert rest.splitlines()[-1] == "the crawl did not run to its end"
    assert other.hits == []


# With a store


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
        crawl(f"{site.url}/", settings=settings)
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
