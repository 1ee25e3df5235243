"""``scrapy robots-check -``: answers while URLs are written, in their order, in limited memory; its crawl."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.helpers.running import processes
from tests.helpers.running.commands import (
    ROBOTS,
    conversation,
    environment,
    options_of,
    run,
    words,
)
from tests.helpers.running.crawling import CAN_HAVE_NO_LIMIT
from tests.helpers.sites import Answer, Site


def test_answers_come_while_standard_input_is_open(tmp_path: Path, mode: str) -> None:
    with Site(ROBOTS) as one, Site(Answer(status=404)) as two, conversation(tmp_path, mode=mode) as talk:
        assert talk.ask(f"{one.url}/staff/").startswith(
            f"forbidden {one.url}/staff/ for 'Scrapy': line 5 of "
        )
        assert talk.ask(f"{two.url}/staff/").startswith(f"allowed   {two.url}/staff/ for 'Scrapy': ")
        assert talk.ask("nonsense").startswith("unknown   nonsense for 'Scrapy': the URL is invalid ")
        assert talk.ask(f"{one.url}/").startswith(f"allowed   {one.url}/ ")
        assert talk.end() == 2
        assert talk.answers.read() == ""
    assert (one.targets(), two.targets(), talk.errors) == (["/robots.txt"], ["/robots.txt"], "")


def test_slow_host_delays_answers_but_not_the_downloads_of_others(tmp_path: Path, mode: str) -> None:
    asked, release = threading.Event(), threading.Event()

    def wait() -> None:
        asked.set()
        release.wait()

    seen = threading.Semaphore(0)
    other = Answer(ROBOTS, before=seen.release)
    with Site(Answer(ROBOTS, before=wait)) as slow, Site(other, host="0.0.0.0") as others:
        urls = [f"{others.url_of(f'127.0.0.{n}')}/" for n in range(2, 42)]
        with conversation(tmp_path, "-s", "NOROBOTS_TIMEOUT=300", mode=mode) as talk:
            talk.write(f"{slow.url}/staff/\n")
            assert asked.wait(60)
            talk.write("\n".join(urls) + "\n")
            for _ in urls:
                assert seen.acquire(timeout=60)
            os.set_blocking(talk.answers.fileno(), False)
            with pytest.raises(BlockingIOError):
                os.read(talk.answers.fileno(), 1)  # the first answer is not there, so none is
            os.set_blocking(talk.answers.fileno(), True)
            release.set()
            assert talk.end() == 1
            answers = [line.split()[:2] for line in talk.answers]
    assert answers == [["forbidden", f"{slow.url}/staff/"], *(["allowed", url] for url in urls)]


def test_answers_that_are_not_read_do_not_stop_downloads(tmp_path: Path, mode: str) -> None:
    asked = threading.Event()
    lines: list[str] = []
    with (
        Site(ROBOTS) as one,
        Site(Answer(ROBOTS, before=asked.set)) as other,
        conversation(tmp_path, mode=mode) as talk,
    ):
        urls = [f"{one.url}/staff/{n}" for n in range(3000)]  # their answers are more than a pipe holds
        talk.write("\n".join(urls) + f"\n{other.url}/\n")
        assert asked.wait(60)
        reader = threading.Thread(target=lambda: lines.extend(talk.answers))
        reader.start()
        assert talk.end() == 1
        reader.join()
    assert [line.split()[1] for line in lines] == [*urls, f"{other.url}/"]


def test_each_robot_has_an_answer(tmp_path: Path) -> None:
    with Site(ROBOTS) as site:
        urls = [f"{site.url}/foo/", f"{site.url}/staff/", "nonsense"]
        robots = ["--robot", "FooBot", "--robot", "Mozilla/5.0 (compatible; BarBot/2.0)", "--robot", "Baz"]
        done = run(tmp_path, "robots-check", *robots, *urls)
        in_json = run(tmp_path, "robots-check", "--json", *robots, *urls)
    answers = [
        ("forbidden", "FooBot"), ("allowed", "BarBot"), ("allowed", "Baz"),
        ("allowed", "FooBot"), ("forbidden", "BarBot"), ("forbidden", "Baz"),
        ("unknown", "FooBot"), ("unknown", "BarBot"), ("unknown", "Baz"),
    ]  # fmt: skip
    assert re.findall(r"^(\w+) +\S+ for '(\w+)'", done.stdout, re.MULTILINE) == answers
    facts = [json.loads(line) for line in in_json.stdout.splitlines()]
    assert [(fact["answer"], fact["robot"]) for fact in facts] == answers
    assert [fact["url"] for fact in facts] == [url for url in urls for _ in range(3)]
    assert site.targets() == ["/robots.txt"] * 2
    assert all(hit.headers["user-agent"].startswith("Scrapy/") for hit in site.hits)  # it does not change


def test_a_large_file_is_read_for_each_robot(tmp_path: Path) -> None:
    """It is read in a thread, and more robots are asked about than are remembered."""
    records = "".join(f"User-agent: bot{n}x\nDisallow: /{n}x\n\n" for n in range(3000))
    (tmp_path / "robots.txt").write_text(records)
    robots = [option for n in range(70) for option in ("--robot", f"bot{n}x")]
    urls = [f"http://town.example/{n}x" for n in (0, 35, 69)]
    done = run(tmp_path, "robots-check", "--file", "robots.txt", *robots, "-", stdin="\n".join(urls))
    forbidden = re.findall(
        r"^forbidden http://town.example/(\w+) for 'bot(\w+)': .*, in the record of line (\d+) ",
        done.stdout,
        re.MULTILINE,
    )
    assert forbidden == [(f"{n}x", f"{n}x", f"{3 * n + 1}") for n in (0, 35, 69)]
    assert len(words(done)) == 210


def test_no_more_is_read_than_the_window_holds(tmp_path: Path) -> None:
    release = threading.Event()
    lines: list[str] = []
    with Site(Answer(ROBOTS, before=release.wait)) as slow:
        urls = [f"{slow.url}/a/path/of/some/length/{n}" for n in range(20_000)]
        rest = "\n".join(urls).encode()
        with conversation(tmp_path, "-s", "NOROBOTS_TIMEOUT=300") as talk:
            pipe, refusals = talk.questions.fileno(), 0
            os.set_blocking(pipe, False)
            while rest and refusals < 10:
                try:
                    rest = rest[os.write(pipe, rest) :]
                    refusals = 0
                except BlockingIOError:
                    refusals += 1
                    time.sleep(0.1)
            assert rest.count(b"\n") > 5_000
            os.set_blocking(pipe, True)
            release.set()
            reader = threading.Thread(target=lambda: lines.extend(talk.answers))
            reader.start()
            talk.write(rest.decode())
            assert talk.end() == 0
            reader.join()
    assert [line.split()[:2] for line in lines] == [["allowed", url] for url in urls]


def test_interrupted_check_ends_while_standard_input_is_open(tmp_path: Path, mode: str) -> None:
    with Site(ROBOTS) as site, conversation(tmp_path, mode=mode) as talk:
        assert talk.ask(f"{site.url}/").startswith("allowed ")
        talk.process.send_signal(signal.SIGINT)
        assert talk.wait() == 2
        assert talk.answers.read() == ""
    assert talk.errors == "the crawl did not run to its end\n"


def test_line_that_is_too_long_is_unknown_and_the_next_is_answered(tmp_path: Path) -> None:
    with Site(ROBOTS) as site, conversation(tmp_path) as talk:
        for _ in range(50):
            talk.write("x" * 100_000)
        talk.write("\n")
        answer = talk.answers.readline()
        assert answer.startswith("unknown   more than 65,536 bytes: xxx")
        assert talk.ask(f"{site.url}/staff/").startswith("forbidden ")
        assert talk.end() == 2


NO_LIMIT = pytest.param("robots-lint", 0, 10, marks=CAN_HAVE_NO_LIMIT)
AT_ONCE = [("robots-check", 1, 1), ("robots-check", 16, 10), ("robots-lint", 3, 3), NO_LIMIT]


@pytest.mark.parametrize(("name", "limit", "most"), AT_ONCE)
def test_as_many_files_are_downloaded_at_once_as_requests(
    tmp_path: Path, name: str, limit: int, most: int, mode: str
) -> None:
    under_way, all_there, seen = 0, threading.Event(), []
    lock = threading.Lock()

    def enter() -> None:
        nonlocal under_way
        with lock:
            under_way += 1
            seen.append(under_way)
            if under_way >= most:
                all_there.set()
        assert all_there.wait(60)
        with lock:
            under_way -= 1

    with Site(Answer(ROBOTS, before=enter), host="0.0.0.0") as site:
        urls = [f"{site.url_of(f'127.0.0.{n}')}/" for n in range(2, 12)]
        done = run(tmp_path, name, "-s", f"CONCURRENT_REQUESTS={limit}", *urls, mode=mode)
    assert done.returncode in (0, 1), done.stderr
    assert (len(seen), max(seen)) == (10, most)
    assert [url for url in urls if url not in done.stdout] == []


def test_second_interruption_ends_a_command_that_waits_for_a_site(tmp_path: Path, mode: str) -> None:
    asked, release = threading.Event(), threading.Event()

    def wait() -> None:
        asked.set()
        release.wait()

    with Site(Answer(ROBOTS, before=wait)) as site:
        options = ("-L", "INFO", "-s", "NOROBOTS_TIMEOUT=300", *options_of(mode))
        arguments = ("scrapy", "robots-check", *options, f"{site.url}/")
        with processes.Piped(*arguments, cwd=tmp_path, env=environment()) as process:
            assert asked.wait(60)
            process.send_signal(signal.SIGINT)
            assert any("Closing spider" in line for line in process.stderr)
            process.send_signal(signal.SIGINT)
            out, log = process.communicate(60)
            assert process.wait() == 2
        release.set()
    assert (out, log.splitlines()[-1]) == ("", "the crawl did not run to its end")
