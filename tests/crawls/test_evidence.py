"""What a crawl leaves as evidence, in real crawls; each time the audit must agree."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import platform
from contextlib import ExitStack
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from scrapy_norobots import __version__
from tests.crawls.test_refresh import LONGER_THAN_TTL, RULES, SHORT, Changing
from tests.helpers.judges.evidence import (
    Stored,
    answers,
    audit,
    decisions,
    files,
    head_of,
    lines_of,
    verdicts,
)
from tests.helpers.running.crawling import ADDON, Crawl, crawl, hosts_of, run_crawl, wait_for, with_no_origin
from tests.helpers.sites import Answer, Hit, Site, page
from tests.helpers.spiders.raising import ALL_ON

BOTH = {"NOROBOTS_ALSO_OBEY": ["rfc9309"]}
PROTEGO = {"NOROBOTS_ALSO_OBEY": ["rfc9309", "scrapy.robotstxt.ProtegoRobotParser"]}


def with_evidence(folder: Path, **settings: Any) -> dict[str, Any]:
    return {**ADDON, "RETRY_ENABLED": False, "NOROBOTS_EVIDENCE": str(folder), **settings}


LOST = "evidence could not be written"


def agrees(folder: Path) -> bool:
    done = audit(folder)
    assert ": all agree" in done.stdout, done.stdout + done.stderr
    return done.returncode == 0


def kinds(stored: list[Stored]) -> list[tuple[str, str]]:
    return [(one.kind, one.status) for one in stored]


def digest(body: bytes | str) -> str:
    return "sha256:" + hashlib.sha256(body.encode() if isinstance(body, str) else body).hexdigest()


def test_each_answer_and_each_decision_is_recorded(mode: str, tmp_path: Path) -> None:
    moved = Answer(status=302, headers={"Location": "/moved.txt"})
    with (
        Site(RULES) as town,
        Site() as village,
        Site(Answer(status=503)) as shut,
        Site(moved, {"/moved.txt": Answer(RULES)}) as other,
    ):
        seen = crawl(
            *(f"{town.url}/{path}" for path in ("a", "back/1")),
            {"url": f"{town.url}/back/2", "meta": {"dont_obey_robotstxt": True}},
            f"{village.url}/v",
            f"{shut.url}/s",
            f"{other.url}/back/3",
            "http://127.0.0.1:9/none",
            settings=with_evidence(tmp_path),
        )
    assert len(seen.pages) == 3
    made = {one["url"].rpartition("/")[2]: one for one in decisions(tmp_path)}
    assert {name: (one["verdict"], one["reason"]) for name, one in made.items()} == {
        "a": ("allowed", "no_rule_matches"),
        "1": ("forbidden", "rule"),
        "2": ("overridden", "dont_obey_robotstxt"),
        "v": ("allowed", "status"),
        "s": ("unreachable", "status"),
        "3": ("forbidden", "rule"),
        "none": ("unreachable", "error"),
    }
    one = made["1"]
    assert (one["line"], one["rule"], one["parser"]) == (2, "/back/", "StrictRobotParser")
    assert one["origin"] == town.url
    assert one["robots_digest"] == digest(RULES)
    assert one["robots_time"] < one["time"]
    assert one["robot"].startswith("Scrapy/")
    stored = answers(tmp_path)
    assert sorted(kinds(stored)) == [
        ("metadata", ""),
        ("response", "200"),
        ("response", "200"),
        ("response", "302"),
        ("response", "404"),
        ("response", "503"),
    ]
    (file,) = (one for one in stored if one.headers.get("WARC-Target-URI") == f"{town.url}/robots.txt")
    assert file.body == RULES.encode()
    assert file.headers["Norobots-Body-Digest"] == digest(RULES)
    assert file.http["Content-Type"] == "text/plain"
    (error,) = (one for one in stored if one.kind == "metadata")
    assert b"Refused" in error.body
    assert "WARC-Payload-Digest" not in error.headers
    assert "WARC-Block-Digest" in error.headers
    assert seen.stats["norobots/evidence/decisions"] == 7
    assert seen.stats["norobots/evidence/answers"] == 6
    assert seen.log_lines(f"INFO: The evidence of this crawl is in {tmp_path} (decisions: 7, answers to")
    head = seen.stats["norobots/evidence/head"]
    assert seen.log_lines(f"INFO: The evidence of this crawl is in {tmp_path} ", f", head: {head})")
    assert agrees(tmp_path)
    assert head == head_of(tmp_path)
    assert audit("--head", head.upper(), tmp_path).returncode == 0
    done = audit("--head", digest(b"another").partition(":")[2], "--head", head, tmp_path)
    assert "is not the head of a run here" in done.stdout
    assert done.returncode == 1
    assert audit(tmp_path).stdout.endswith(": all agree, 1 not judged\n")


def test_of_a_download_that_is_retried_the_last_answer_is_recorded(tmp_path: Path, mode: str) -> None:
    with Changing(Answer(status=503), Answer(b"again", status=502), Answer(RULES)) as site:
        settings = with_evidence(tmp_path, RETRY_ENABLED=True, NOROBOTS_RETRY_TIMES=2)
        crawl(f"{site.url}/back/", settings=settings)
    assert kinds(answers(tmp_path)) == [("response", "200")]
    assert agrees(tmp_path)


def test_allowed_requests_can_be_left_out(tmp_path: Path) -> None:
    with Site(RULES) as site:
        settings = with_evidence(tmp_path, NOROBOTS_EVIDENCE_ALLOWED=False)
        crawl(f"{site.url}/a", f"{site.url}/back/", settings=settings)
    assert verdicts(decisions(tmp_path)) == {"back/": "forbidden"}
    assert "(1 forbidden): all agree, allowed requests were not stored\n" in audit(tmp_path).stdout
    assert json.loads(audit("--json", tmp_path).stdout)["allowed_stored"] is False


def asking(folder: Path, site: Site, *plan: tuple[float, str], **settings: Any) -> Crawl:
    with Site() as start:
        return crawl(
            f"{start.url}/",
            spider="tests.helpers.spiders.asking.Asking",
            settings={**SHORT, "NOROBOTS_EVIDENCE": str(folder), **settings},
            arguments={"plan": [(pause, site.url + target) for pause, target in plan]},
        )


def test_a_304_is_a_revisit_of_the_file_that_it_renews(tmp_path: Path) -> None:
    """Replay tools look for a response there, not for another revisit."""
    with Changing(Answer(RULES, headers={"ETag": '"1"'}), *[Answer(status=304)] * 2) as site:
        asking(tmp_path, site, (0, "/a"), (LONGER_THAN_TTL, "/b"), (LONGER_THAN_TTL, "/back/"))
    original, *revisits = (one for one in answers(tmp_path) if one.headers.get("Norobots-Origin") == site.url)
    assert [(one.kind, one.status, one.body) for one in revisits] == [("revisit", "304", b"")] * 2
    assert {one.headers["WARC-Refers-To-Date"] for one in revisits} == {original.headers["WARC-Date"]}
    assert revisits[0].headers["WARC-Profile"].endswith("/revisit/server-not-modified")
    last = decisions(tmp_path)[-1]
    assert (last["verdict"], last["robots_time"]) == ("forbidden", revisits[1].headers["WARC-Date"])
    assert agrees(tmp_path)


@pytest.mark.parametrize("status", [503, 304])
def test_a_stale_copy_is_what_the_decision_names(status: int, tmp_path: Path) -> None:
    """Without a validator, the site was not asked whether the copy has changed, so a 304 is a failure."""
    with Changing(Answer(RULES), Answer(status=status)) as site:
        asking(tmp_path, site, (0, "/a"), (LONGER_THAN_TTL, "/back/"))
    original, failed = (one for one in answers(tmp_path) if one.headers.get("Norobots-Origin") == site.url)
    assert (failed.kind, failed.status) == ("response", str(status))
    assert decisions(tmp_path)[-1]["robots_time"] == original.headers["WARC-Date"]
    assert agrees(tmp_path)


def test_a_copy_from_a_store_is_recorded_with_its_own_date(tmp_path: Path) -> None:
    store = {"NOROBOTS_STORE": f"sqlite:///{tmp_path / 'robots.sqlite'}"}
    with Site(Answer(RULES, headers={"ETag": '"1"'})) as site, Site() as empty:
        urls = f"{site.url}/back/", f"{empty.url}/"
        for folder in ("first", "second"):
            crawl(*urls, settings=with_evidence(tmp_path / folder, **store))
    first, second = (
        {one.headers["WARC-Target-URI"]: one for one in answers(tmp_path / folder)}
        for folder in ("first", "second")
    )
    assert [one.headers.get("Norobots-Note") for one in second.values()] == ["store", "store"]
    assert len(site.robots_hits()) == 1
    for url, copy in second.items():
        assert (copy.status, copy.body) == (first[url].status, first[url].body)
        assert copy.headers["WARC-Date"] == first[url].headers["WARC-Date"]
    assert agrees(tmp_path / "second")


def test_a_copy_from_a_store_that_a_304_renews_is_recorded_too(tmp_path: Path) -> None:
    store = {"NOROBOTS_STORE": f"sqlite:///{tmp_path / 'robots.sqlite'}", "NOROBOTS_TTL": 0.01}
    site = Changing(Answer(RULES, headers={"ETag": '"1"'}), Answer(status=304))
    with site:
        for folder in ("first", "second"):
            settings = with_evidence(tmp_path / folder, NOROBOTS_TTL_MIN=0, **store)
            crawl(f"{site.url}/back/", settings=settings)
    assert kinds(answers(tmp_path / "second")) == [("response", "200"), ("revisit", "304")]
    assert agrees(tmp_path / "second")


def test_a_stale_copy_from_a_store_is_recorded_with_the_failure(tmp_path: Path) -> None:
    store = {"NOROBOTS_STORE": f"sqlite:///{tmp_path / 'robots.sqlite'}"}
    with Changing(Answer(RULES), Answer(status=503)) as site:
        asking(tmp_path / "first", site, (0, "/a"), (LONGER_THAN_TTL, "/a"), **store)
        asking(tmp_path / "second", site, (LONGER_THAN_TTL, "/back/"), **store)
        assert len(site.robots_hits()) == 2
    copies = [one for one in answers(tmp_path / "second") if one.headers.get("Norobots-Origin") == site.url]
    assert kinds(copies) == [("response", "200"), ("response", "503")]
    assert decisions(tmp_path / "second")[-1]["robots_time"] == copies[0].headers["WARC-Date"]
    assert agrees(tmp_path / "second")


ODD_FILES = {
    "compressed": Answer(gzip.compress(RULES.encode()), headers={"Content-Encoding": "gzip"}),
    "compressed twice": Answer(
        gzip.compress(gzip.compress(RULES.encode())), headers={"Content-Encoding": "gzip, gzip"}
    ),
    "compressed, not said": Answer(gzip.compress(RULES.encode())),
    "damaged": Answer(b"\x1f\x8b" + RULES.encode(), headers={"Content-Encoding": "gzip"}),
    "cut off": Answer(RULES, headers={"Content-Length": "1000"}),
    "bytes": Answer(b"\xff\x00User-agent: *\r\rDisallow: /back/\xe9\n"),
    "empty": Answer(b""),
    "a header that is not ASCII": Answer(RULES, headers={"X-Town": "Caf\xe9; a=\xe4"}),
    "an unknown status": Answer(RULES, status=299),
    "a status of four digits": Answer(RULES, status=1000),
    "a status of 25 digits": Answer(RULES, status=10**24),
    "a redirect to itself": Answer(status=302, headers={"Location": "/robots.txt"}),
}


# What the download handlers of some versions of Scrapy make an exception of.
NO_ANSWER = {
    "asyncio": ["cut off"],
    "select": ["cut off"],
    "no reactor": [
        "cut off",
        "a header that is not ASCII",
        "a status of four digits",
        "a status of 25 digits",
    ],
}


def test_odd_answers_are_recorded_as_they_came(tmp_path: Path, mode: str) -> None:
    with ExitStack() as stack:
        sites = {name: stack.enter_context(Site(answer)).url for name, answer in ODD_FILES.items()}
        urls = [f"{site}{path}" for site in sites.values() for path in ("/a", "/back/")]
        crawl(*urls, settings=with_evidence(tmp_path))
    first = {one.headers["Norobots-Origin"]: one for one in reversed(answers(tmp_path))}
    for name, answer in ODD_FILES.items():
        stored = first[sites[name]]
        if stored.kind == "metadata":
            assert name in NO_ANSWER[mode]
        else:
            body = answer.body.encode() if isinstance(answer.body, str) else answer.body
            assert stored.body == body, name
            assert stored.http.get("Content-Encoding") == answer.headers.get("Content-Encoding")
            assert not [header for header in stored.http if header.startswith("Norobots")]
    assert len(decisions(tmp_path)) == 2 * len(ODD_FILES)
    assert agrees(tmp_path)


def test_every_reading_is_named_and_judged(tmp_path: Path) -> None:
    robots = "User-agent: *\nDisallow: /*.gif$\nDisallow: /back/\nAllow: /back/open\n"
    with Site(robots) as site:
        urls = [f"{site.url}{path}" for path in ("/a", "/a.gif", "/back/open")]
        crawl(*urls, settings=with_evidence(tmp_path, **BOTH))
    made = {one["url"].removeprefix(site.url): (one["verdict"], one["parser"]) for one in decisions(tmp_path)}
    assert made == {
        "/a": ("allowed", "StrictRobotParser, Rfc9309RobotParser"),
        "/a.gif": ("forbidden", "Rfc9309RobotParser"),
        "/back/open": ("forbidden", "StrictRobotParser"),
    }
    assert agrees(tmp_path)


@pytest.mark.parametrize(
    "settings",
    [
        {"NOROBOTS_MULTIVALUE": True},
        {"ROBOTSTXT_PARSER": "scrapy.robotstxt.ProtegoRobotParser"},
        {"NOROBOTS_STATUS_POLICY": "allow"},
        {"ROBOTSTXT_USER_AGENT": "Foo"},
        {"USER_AGENT": "Caf\xe9/1"},
        {"NOROBOTS_DRY_RUN": True},
    ],
    ids=str,
)
def test_settings_that_decisions_depend_on_are_recorded(tmp_path: Path, settings: dict[str, Any]) -> None:
    robots = "User-agent: Foo Bar\nDisallow: /a /b\n\nUser-agent: *\nDisallow: /*c\n"
    with Site(robots) as site, Site(Answer(status=503)) as shut:
        urls = [f"{site.url}/{path}" for path in ("", "a", "b", "xc", "%63")]
        crawl(*urls, f"{shut.url}/", settings=with_evidence(tmp_path, **settings))
    made = decisions(tmp_path)
    assert len(made) == 6
    assert agrees(tmp_path)


def test_a_decision_says_what_was_checked_and_what_is_sent(tmp_path: Path, mode: str) -> None:
    with Site(f"{RULES}Disallow: /a?b\n") as site, Site() as proxy:
        secret = proxy.url.replace("://", "://jo:secret@")
        crawl(
            "data:,town",
            f"{site.url}/a;?b",
            {"url": f"{secret}/render?1", "meta": {"norobots_url": f"{site.url}/a"}},
            {"url": f"{proxy.url}/render?2", "meta": {"norobots_url": f"{site.url}/back/"}},
            {"url": f"{proxy.url}/render?3", "meta": {"norobots_url": f"{site.url}/robots.txt"}},
            settings=with_evidence(tmp_path),
        )
    keys = "verdict", "reason", "origin", "requested", "sent_as"
    assert {one["url"]: tuple(one.get(key) for key in keys) for one in decisions(tmp_path)} == {
        "data:,town": ("allowed", "not_web", None, None, None),
        f"{site.url}/a;?b": ("forbidden", "rule", site.url, None, f"{site.url}/a?b"),
        f"{site.url}/a": ("allowed", "no_rule_matches", site.url, f"{proxy.url}/render?1", None),
        f"{site.url}/back/": ("forbidden", "rule", site.url, f"{proxy.url}/render?2", None),
        f"{site.url}/robots.txt": ("allowed", "robots_txt", None, f"{proxy.url}/render?3", None),
    }
    assert agrees(tmp_path)


def test_names_that_no_host_has_agree(tmp_path: Path, mode: str) -> None:
    hosts = ["exa mple", "exa ", "\xfc..example", "exa\x0b"]
    with ExitStack() as stack:
        moved = [Answer(status=302, headers={"Location": f"http://{host}/robots.txt"}) for host in hosts]
        urls = [f"{stack.enter_context(Site(answer)).url}/b" for answer in moved]
        crawl(*urls, *(f"http://{host}/a" for host in hosts), settings=with_evidence(tmp_path))
    assert [one["verdict"] for one in decisions(tmp_path)] == ["unreachable"] * 8
    assert agrees(tmp_path)


def test_passwords_are_not_recorded(tmp_path: Path) -> None:
    with Site(RULES) as site:
        secret = site.url.replace("://", "://jo:secret@")
        crawl(
            f"{secret}/back/@",
            with_no_origin(f"http://jo:secret@{site.host}:99999/"),
            settings=with_evidence(tmp_path),
        )
    made = decisions(tmp_path)
    assert {one["url"] for one in made} == {f"{site.url}/back/@", f"http://{site.host}:99999/"}
    assert {one["reason"] for one in made} == {"rule", "bad_url"}
    assert agrees(tmp_path)


def test_crawls_at_the_same_time_have_files_of_their_own(tmp_path: Path) -> None:
    with Site(RULES) as site:
        crawl(f"{site.url}/a", settings=with_evidence(tmp_path), beside={"NOROBOTS_MULTIVALUE": True})
    assert len(files(tmp_path, ".warc.gz")) == len(files(tmp_path, ".jsonl.gz")) == 2
    assert [one["verdict"] for one in decisions(tmp_path)] == ["allowed", "allowed"]
    assert agrees(tmp_path)


def endless(hit: Hit) -> Answer:
    """Answer with a page that leads to the next one."""
    return page(f"/{int(hit.target.strip('/') or 0) + 1}")


class Endless(Site):
    """A site without a last page; its robots.txt is `robots`."""

    def __init__(self, robots: bytes = RULES.encode()) -> None:
        super().__init__()
        self._robots = robots

    def answer(self, hit: Hit) -> Answer:
        return Answer(self._robots) if hit.target == "/robots.txt" else endless(hit)


def wait_for_decisions(folder: Path, count: int) -> None:
    """Wait until so many decisions can be read, while the crawl goes on."""
    wait_for(lambda: folder.exists() and bool(files(folder, ".jsonl.gz")) and len(decisions(folder)) >= count)


LARGE = b"# " + hashlib.shake_256(b"town").hexdigest(200_000).encode() + b"\n"


@pytest.mark.skipif("COVERAGE_RUN" in os.environ, reason="the limit applies to coverage's own file too")
@pytest.mark.parametrize("required", [False, True])
def test_a_disk_that_takes_no_more(tmp_path: Path, required: bool) -> None:
    """Files of this process may have 64 KiB, and a robots.txt that does not compress has more."""
    with Site(LARGE) as large, Endless() as site:
        seen = crawl(
            f"{large.url}/",
            f"{site.url}/",
            spider="tests.helpers.spiders.limited.OnASmallDisk",
            settings=with_evidence(tmp_path, NOROBOTS_EVIDENCE_REQUIRED=required, LOG_LEVEL="INFO"),
            arguments={"follow": True, "until": "evidence could not be written"},
        )
    (line,) = seen.log_lines("ERROR: NOROBOTS_EVIDENCE: evidence could not be written to", "File too large")
    assert seen.stats["finish_reason"] == ("norobots_evidence" if required else "the log has it")
    assert ("the spider is closed" in line) == required
    assert seen.stats["norobots/evidence/lost"] > 0
    # What was written before is whole.
    assert all(one.kind == "response" for one in answers(tmp_path))
    done = audit("--head", seen.stats["norobots/evidence/head"], tmp_path)
    assert done.stdout.count("problem") == 1  # it has no closing line


@pytest.mark.skipif("COVERAGE_RUN" in os.environ, reason="the limit applies to coverage's own file too")
def test_a_loss_at_the_end_of_a_crawl_is_logged(tmp_path: Path, mode: str) -> None:
    """Nothing is recorded after the write that fails."""
    with Site(LARGE) as large:
        seen = crawl(
            f"{large.url}/",
            spider="tests.helpers.spiders.limited.OnASmallDisk",
            settings=with_evidence(tmp_path, LOG_LEVEL="INFO"),
            arguments={"until": "evidence could not be written"},
        )
    assert seen.log_lines("ERROR: NOROBOTS_EVIDENCE: evidence could not be written to", "File too large")


def test_a_request_after_the_end_of_the_crawl_is_not_lost_in_silence(tmp_path: Path, mode: str) -> None:
    with Site(RULES + "Dissallow: /x\n" + 40_000 * "#", host="0.0.0.0") as site:  # read in threads
        seen = crawl(
            f"{site.url}/a",
            spider="tests.helpers.spiders.stopping.SendsAtTheEnd",
            settings=with_evidence(tmp_path, LOG_LEVEL="INFO"),
            arguments={"last": f"{site.url_of('127.0.0.2')}/last"},
        )
        assert site.pages()[-1] == "/last"
    assert verdicts(decisions(tmp_path)) == {"a": "allowed"}
    assert seen.log_lines("ERROR: NOROBOTS_EVIDENCE", LOST, "it came after the end of the crawl")


def test_a_disk_that_writes_nothing_does_not_stop_the_crawl(tmp_path: Path, mode: str) -> None:
    """A third of the robots.txt files fit in the queue for evidence."""
    with Site(RULES + "#" * 10_000, host="0.0.0.0") as site:
        seen = crawl(
            *(f"{host}/a" for host in hosts_of(site, 60)),
            spider="tests.helpers.spiders.limited.OnASlowDisk",
            settings=with_evidence(tmp_path, LOG_LEVEL="INFO"),
            arguments={"queue_max": 240_000, "until": LOST},
        )
    assert len(seen.pages) == 60
    assert seen.log_lines("ERROR: NOROBOTS_EVIDENCE", LOST, "the disk is too slow, and the queue is full")
    lost = seen.stats["norobots/evidence/lost"]
    assert f": {lost:,} records were lost, because the disk was too slow\n" in audit(tmp_path).stdout


def test_evidence_that_is_not_written_in_time_at_the_end_is_lost(tmp_path: Path, mode: str) -> None:
    with Site(RULES) as site:
        seen = crawl(
            f"{site.url}/a",
            spider="tests.helpers.spiders.limited.OnASlowDisk",
            settings=with_evidence(tmp_path, LOG_LEVEL="INFO"),
            arguments={"queue_max": 10**6, "until": LOST, "longest_end": 2},
        )
    assert seen.log_lines("ERROR: NOROBOTS_EVIDENCE", LOST, "the disk did not take all of it within 2 s")
    assert seen.stats["norobots/evidence/lost"] > 0


def test_placeholders_in_the_folder_are_replaced_and_the_log_escapes_it(tmp_path: Path) -> None:
    where = f"{tmp_path}/a\x1b[31m%(name)s"
    with Site(RULES) as site:
        seen = crawl(f"{site.url}/a", settings=with_evidence(Path(where), NOROBOTS_REPORT=f"{where}.json"))
    [name] = (path.stem for path in tmp_path.glob("*.json"))
    assert verdicts(decisions(tmp_path / name)) == {"a": "allowed"}
    escaped = str(tmp_path / name).replace("\x1b", "\\x1b")
    assert seen.log_lines(f"INFO: The evidence of this crawl is in {escaped} (decisions: 1, ")


@pytest.mark.parametrize(
    ("name", "problem"),
    [("file", "cannot be written"), ("a\0b", "cannot be written"), ("%(_job)s", "unknown placeholder")],
)
def test_a_wrong_folder_is_an_error_at_the_start(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / "file").write_text("")
    done = run_crawl("http://127.0.0.1:9/", settings=with_evidence(tmp_path / name))
    assert f"NOROBOTS_EVIDENCE = {str(tmp_path / name)!r}: {problem}" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_spider_that_does_not_obey_has_no_evidence_and_a_warning(tmp_path: Path) -> None:
    for_features = {
        **ALL_ON,
        "NOROBOTS_EVIDENCE": str(tmp_path / "evidence"),
        "NOROBOTS_REPORT": str(tmp_path / "report.json"),
        "NOROBOTS_PURPOSES": ["search"],
    }
    with Site() as site:
        seen = crawl(f"{site.url}/", settings={**ADDON, **for_features, "ROBOTSTXT_OBEY": False})
    for name in for_features.keys() - {"NOROBOTS_META"}:  # META tags are obeyed all the same
        assert seen.log_lines("WARNING", f"{name} has no effect: ROBOTSTXT_OBEY is False")
    assert not list(tmp_path.iterdir())


def test_a_crawl_that_another_setting_keeps_from_starting_leaves_no_files(tmp_path: Path) -> None:
    settings = with_evidence(tmp_path / "evidence", NOROBOTS_STORE="ftp://town.example/")
    done = run_crawl("http://127.0.0.1:9/", settings=settings)
    assert "NOROBOTS_STORE = 'ftp://town.example/'" in done.stderr
    assert not (tmp_path / "evidence").exists()


def test_a_crawl_that_another_component_keeps_from_starting_is_no_problem(tmp_path: Path, mode: str) -> None:
    """Such a crawl sends no `spider_closed`."""
    with Site(RULES) as site:
        crawl(f"{site.url}/a", settings=with_evidence(tmp_path))
    fails = {"DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.NotStarting": 500}}
    done = run_crawl("http://127.0.0.1:9/", settings=with_evidence(tmp_path, **fails))
    assert "RuntimeError: not today" in done.stderr
    assert len(files(tmp_path, ".warc.gz")) == 2
    assert agrees(tmp_path)


def test_a_folder_that_is_removed_during_the_crawl_is_not_claimed_to_be_there(tmp_path: Path) -> None:
    with Endless() as site:
        seen = crawl(
            f"{site.url}/",
            spider="tests.helpers.spiders.limited.WithoutItsFolder",
            settings=with_evidence(tmp_path / "evidence", LOG_LEVEL="INFO"),
            arguments={"folder": str(tmp_path / "evidence")},
        )
    assert seen.log_lines(
        "ERROR: NOROBOTS_EVIDENCE: evidence could not be written to", "the file was removed"
    )
    assert not seen.log_lines("INFO: The evidence of this crawl is in")
    assert (seen.stats["norobots/evidence/decisions"], seen.stats["norobots/evidence/answers"]) == (0, 0)
    assert seen.stats["norobots/evidence/lost"] > 0


def test_the_parsers_and_versions_are_recorded(tmp_path: Path) -> None:
    with Site(RULES) as site:
        crawl(f"{site.url}/a", settings=with_evidence(tmp_path, **PROTEGO))
    (path,) = files(tmp_path, ".jsonl.gz")
    settings = lines_of(path)[0]["settings"]
    assert settings["parsers"] == [
        "scrapy_norobots.rules.parser.StrictRobotParser",
        "scrapy_norobots.rules.parser.Rfc9309RobotParser",
        "scrapy.robotstxt.ProtegoRobotParser",
    ]
    assert settings["versions"] == {
        "Python": f"CPython {platform.python_version()}",
        "Scrapy": version("scrapy"),
        "scrapy-norobots": __version__,
        "Protego": version("protego"),
        "yarl": version("yarl") if find_spec("yarl") else None,
    }
    assert settings["dry_run"] is False


def test_parsers_of_the_audit_get_the_robot_as_those_of_the_crawl(tmp_path: Path) -> None:
    project = {
        "NOROBOTS_ALSO_OBEY": "tests.helpers.components.parsers.TakesText",
        "ROBOTSTXT_USER_AGENT": "FooBot/1",
    }
    with Site() as none, Site(RULES) as site:
        crawl(f"{none.url}/a", f"{site.url}/b", settings=with_evidence(tmp_path, **project))
    assert verdicts(decisions(tmp_path)) == {"a": "allowed", "b": "allowed"}
    done = audit(tmp_path, *(f"--set={name}={value}" for name, value in project.items()))
    assert ": all agree" in done.stdout, done.stdout


def test_a_parser_has_the_name_of_the_class_in_the_settings(tmp_path: Path) -> None:
    parser = "tests.helpers.components.parsers.MakesAnother"
    with Site(RULES) as site:
        settings = with_evidence(tmp_path, ROBOTSTXT_PARSER=parser)
        crawl(f"{site.url}/a", f"{site.url}/back/", settings=settings)
    assert {one["parser"] for one in decisions(tmp_path)} == {"MakesAnother"}
    done = audit(tmp_path, f"--set=ROBOTSTXT_PARSER={parser}")
    assert ": all agree" in done.stdout, done.stdout


def test_a_file_on_which_a_parser_fails_is_a_failed_download(tmp_path: Path) -> None:
    """Its record and that of the failure have the same time; the audit reads it to see which is right."""
    setting = "NOROBOTS_ALSO_OBEY", "tests.helpers.components.parsers.BrokenParser"
    with Site(RULES) as site, Site(Answer(b"")) as town:
        crawl(f"{site.url}/a", f"{town.url}/a", settings=with_evidence(tmp_path, **dict([setting])))
    stored = [one for one in answers(tmp_path) if one.headers.get("Norobots-Origin") == site.url]
    assert kinds(stored) == [("response", "200"), ("metadata", "")]
    assert len({one.headers["WARC-Date"] for one in stored}) == 1
    assert sorted(one["verdict"] for one in decisions(tmp_path)) == ["allowed", "unreachable"]
    done = audit("-s", "=".join(setting), tmp_path)
    assert ": all agree\n" in done.stdout
    assert audit(tmp_path).returncode == 2  # without that parser


def test_a_copy_from_a_store_on_which_a_parser_fails_is_recorded_as_a_failure(tmp_path: Path) -> None:
    store = {"NOROBOTS_STORE": f"sqlite:///{tmp_path / 'robots.sqlite'}"}
    setting = "NOROBOTS_ALSO_OBEY", "tests.helpers.components.parsers.BrokenParser"
    with Site(RULES) as site:
        crawl(f"{site.url}/a", settings=with_evidence(tmp_path / "first", **store))
        crawl(f"{site.url}/a", settings=with_evidence(tmp_path / "second", **store, **dict([setting])))
        assert len(site.robots_hits()) == 1
    [copy] = answers(tmp_path / "second")
    assert (copy.kind, copy.headers["Norobots-Note"]) == ("metadata", "store")
    assert verdicts(decisions(tmp_path / "second")) == {"a": "unreachable"}
    assert ": all agree\n" in audit("-s", "=".join(setting), tmp_path / "second").stdout
