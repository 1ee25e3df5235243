"""Evidence of honest crawls, however they go and end: with its head, the audit finds nothing but the end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from scrapy_norobots.rules.access import PRESETS
from tests.crawls.test_closing import read_until, running
from tests.crawls.test_evidence import wait_for_decisions, with_evidence
from tests.crawls.test_refresh import RULES, Changing
from tests.helpers.judges.evidence import answers, audit, decisions, files, head_of
from tests.helpers.running.crawling import Crawl, crawl, started
from tests.helpers.sites import Answer, Hit, Site, page

AGREES, KILLED = ": all agree", ": ended without a closing line (killed?); its head is "


def audited(folder: Path, *heads: str) -> str:
    """Return what the audit says of evidence; each head must be that of a run."""
    assert len(set(heads)) == len(files(folder, ".jsonl.gz"))
    done = audit(*(f"--head={head}" for head in heads), folder)
    assert "is not the head" not in done.stdout
    return done.stdout


def head(seen: Crawl) -> str:
    return str(seen.stats["norobots/evidence/head"])


@pytest.mark.parametrize("kind", ["again", "HTTP cache", "JOBDIR"])
def test_a_crawl_and_the_next_one_agree(tmp_path: Path, kind: str) -> None:
    """The site answers after a retry and a redirect. The next crawl goes on with what the first has left."""
    more: dict[str, dict[str, Any]] = {
        "again": {},
        "HTTP cache": {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")},
        "JOBDIR": {"JOBDIR": str(tmp_path / "job"), "CLOSESPIDER_PAGECOUNT": 3, "CONCURRENT_REQUESTS": 1},
    }
    settings = with_evidence(tmp_path / "evidence", RETRY_ENABLED=True, NOROBOTS_RETRY_TIMES=1, **more[kind])
    moved = Answer(status=302, headers={"Location": "/moved.txt"})
    pages = page(*(f"/{number}" for number in range(6)), "/back/")
    with Changing(Answer(status=503), moved) as site:
        site.answers |= {"/moved.txt": Answer(RULES), "/": pages}
        first, second = (
            crawl(f"{site.url}/", settings=settings, arguments={"follow": True}) for _ in range(2)
        )
    assert first.pages
    assert ("httpcache/hit" in second.stats) is (kind == "HTTP cache")
    assert second.pages
    assert {one.status for one in answers(tmp_path / "evidence")} >= {"302", "200"}
    assert "forbidden" in {one["verdict"] for one in decisions(tmp_path / "evidence")}
    assert AGREES in audited(tmp_path / "evidence", head(first), head(second))


@pytest.mark.parametrize("preset", PRESETS)
def test_a_crawl_by_each_status_policy_agrees(tmp_path: Path, preset: str) -> None:
    hosts = {f"127.0.0.{number}": status for number, status in enumerate((401, 403, 404, 429, 503), 1)}
    with Site(lambda hit: Answer(status=hosts[hit.host]), host="0.0.0.0") as site:
        settings = with_evidence(tmp_path, NOROBOTS_STATUS_POLICY=preset, NOROBOTS_RETRY_CLOSED=0)
        seen = crawl(*(f"{site.url_of(host)}/a" for host in hosts), settings=settings)
    assert len(seen.pages) + len(seen.drops) == len(decisions(tmp_path)) == len(hosts)
    assert AGREES in audited(tmp_path, head(seen))


class Hanging:
    """A page that has not come before the end of a ``with``."""

    def __enter__(self) -> Callable[[Hit], Answer]:
        self._release = threading.Event()
        return self._answer

    def _answer(self, _: Hit) -> Answer:
        self._release.wait(600)
        return page()

    def __exit__(self, *_: object) -> None:
        self._release.set()


def test_a_crawl_that_is_killed_and_the_one_that_resumes_it_agree(tmp_path: Path, mode: str) -> None:
    folder = tmp_path / "evidence"
    more = {"JOBDIR": str(tmp_path / "job"), "CONCURRENT_REQUESTS": 1, "DOWNLOAD_TIMEOUT": 600}
    job: dict[str, Any] = {"settings": with_evidence(folder, **more)}
    with Site(RULES, {"/": page("/1", "/2")}) as site:
        with Hanging() as hang:
            site.answers |= {"/1": hang, "/2": hang}
            with started(f"{site.url}/", arguments={"follow": True}, **job) as process:
                wait_for_decisions(folder, 2)
                process.kill()
                assert process.wait() == -signal.SIGKILL
        killed = head_of(folder)
        seen = crawl(f"{site.url}/3", **job)
    assert f"{site.url}/3" in seen.pages
    said = audited(folder, killed, head(seen))
    assert f"{KILLED}{killed}" in said
    assert said.endswith(": 1 problem\n")


def test_processes_that_write_at_once_into_one_folder_agree(tmp_path: Path) -> None:
    both_are_there = threading.Barrier(2)

    def robots(_: Hit) -> Answer:
        both_are_there.wait(60)
        return Answer(RULES)

    with Site(robots) as site, ThreadPoolExecutor() as threads:
        urls = f"{site.url}/a", f"{site.url}/back/"
        crawls = [threads.submit(crawl, *urls, settings=with_evidence(tmp_path)) for _ in range(2)]
        heads = [head(one.result()) for one in crawls]
    assert AGREES in audited(tmp_path, *heads)


def test_a_crawl_that_two_ctrl_c_end_agrees(tmp_path: Path, mode: str) -> None:
    """Its process ends without the end of the crawl, and a page is still being downloaded."""
    with Hanging() as hang, Site(RULES, {"/": page("/back/", "/hang"), "/hang": hang}) as site:
        settings = with_evidence(tmp_path, DOWNLOAD_TIMEOUT=600, LOG_LEVEL="INFO")
        job = {"settings": settings, "arguments": {"follow": True}}
        with running(f"{site.url}/", **job) as process:
            wait_for_decisions(tmp_path, 3)
            for said in ("shutting down gracefully", "forcing unclean shutdown"):
                process.send_signal(signal.SIGINT)
                read_until(said, process)
            process.wait(60)
    assert "3 decisions (2 allowed, 1 forbidden): all agree" in audited(tmp_path, head_of(tmp_path))


def test_a_crawl_whose_clock_is_set_back_agrees(tmp_path: Path, mode: str) -> None:
    """A decision is never older than the answer that it depends on."""
    with Site(RULES) as other, Site(RULES, {"/": page("/a", "/back/", f"{other.url}/b")}) as site:
        seen = crawl(
            f"{site.url}/",
            spider="asking.SetsClockBack",
            settings=with_evidence(tmp_path),
            arguments={"follow": True},
        )
    made = {one["url"]: one for one in decisions(tmp_path)}
    late = made[f"{site.url}/a"]
    assert late["time"] == late["robots_time"] > made[f"{other.url}/b"]["time"]
    assert AGREES in audited(tmp_path, head(seen))
