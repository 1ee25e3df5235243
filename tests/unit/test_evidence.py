"""Evidence without a crawl: the writer, its bounds, and files that anybody may have changed."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scrapy.http import Response
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from scrapy_norobots.access import Access, Judge, Rules, StatusPolicy
from scrapy_norobots.evidence import audit as audit_module
from scrapy_norobots.evidence.answers import Answer, Copy, Failure
from scrapy_norobots.evidence.audit import Audit, Problem
from scrapy_norobots.evidence.decisions import SIZE, DecisionLines, Made
from scrapy_norobots.evidence.fields import MULTIVALUE, POLICY
from scrapy_norobots.evidence.files import DamagedError, GzipFile, read_record
from scrapy_norobots.evidence.writer import Writer
from scrapy_norobots.freshness import Freshness
from scrapy_norobots.snapshot import Snapshot
from scrapy_norobots.standard import Origin, RobotsTxt
from tests import nasty
from tests.evidence import answers, decisions, files

TOWN = Origin("http", "town.example", 80)
FILE = b"User-agent: *\nDisallow: /back/\n"
TIME = 1_700_000_000.0
ABOUT = {POLICY: json.dumps(dict(StatusPolicy.of("koster1996").table)), MULTIVALUE: "False"}
JUDGE = Judge(StatusPolicy.of("koster1996"), Freshness(600, 86_400, 60, 7 * 86_400), RobotsTxt.parse)


def strict(names: Sequence[str], *, is_strict: bool, multivalue: bool) -> Callable[[bytes], Rules]:
    """Stand for what the command knows of parsers."""
    if list(names) != ["StrictRobotParser"] or not is_strict:
        raise LookupError(f"unknown parser {names}")
    return lambda body: RobotsTxt.parse(body, multivalue=multivalue)


def end(writer: Writer) -> None:
    writer.stop()
    writer._thread.join()


def access(body: bytes = FILE, origin: Origin = TOWN, when: float = TIME) -> Access:
    return JUDGE.judge(Snapshot(origin, origin.robots_url, when, 200, body=body))


def answer(of: Access) -> Answer:
    snapshot = of.snapshot
    response = Response(snapshot.url, body=snapshot.body, headers={"Content-Type": "text/plain"})
    return Answer(snapshot.origin, response, snapshot.time, judged=snapshot.body)


def made(url: str, by: Access, when: float = TIME + 1) -> Made:
    decision = by.decide(url, "FooBot")
    return Made(when, url, b"FooBot", by, None if decision else decision)


def problems(folder: Path) -> list[Problem]:
    return list(Audit(folder.iterdir(), strict).problems())


def write(folder: Path, count: int = 3, padding: bytes = b"", **options: Any) -> Writer:
    """Write the evidence of a crawl of a few hosts."""
    writer = Writer(folder, "town-1", ABOUT, **options)
    for number in range(count):
        origin = TOWN._replace(host=f"{number % 200}.example")
        by = access(FILE + b"# %d\n" % number + padding, origin, TIME + number)
        writer.put(answer(by))
        for path in ("", "a", "back/", "%62ack/"):
            writer.put(made(f"{by.snapshot.origin}/{path}", by))
    end(writer)
    return writer


def test_files_are_rotated_and_each_is_complete(tmp_path: Path) -> None:
    writer = write(tmp_path, 40, file_max=2_000)
    names = [path.name for path in files(tmp_path, ".warc.gz")]
    assert names[:2] == ["town-1-00001.warc.gz", "town-1-00002.warc.gz"]
    assert len(names) > 5
    assert [one.kind for one in answers(tmp_path)].count("warcinfo") == len(names)
    assert all(path.stat().st_size < 3_500 for path in tmp_path.iterdir() if path.name in names)
    assert (writer.answers, writer.decisions, writer.lost) == (40, 160, 0)
    assert len(decisions(tmp_path)) == 160
    assert problems(tmp_path) == []


def test_files_of_other_tools_may_stand_beside_them(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "items.jsonl.gz").write_bytes(gzip.compress(b'{"title": "Rota"}\n'))
    with (tmp_path / "pages.warc.gz").open("wb") as file:
        warc = WARCWriter(file, gzip=True)
        warc.write_record(warc.create_warcinfo_record("pages.warc.gz", {"software": "another"}))
        head = StatusAndHeaders("200 OK", [], protocol="HTTP/1.1")
        page = warc.create_warc_record(
            f"{TOWN}/", "response", payload=BytesIO(b"<html>"), length=6, http_headers=head
        )
        warc.write_record(page)
    assert problems(tmp_path) == []


def test_runs_of_one_name_have_names_of_their_own(tmp_path: Path) -> None:
    write(tmp_path)
    write(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        f"{run}-00001{suffix}"
        for run in ("town-1", "town-1-2")
        for suffix in (".warc.gz", ".decisions.jsonl.gz")
    }
    assert problems(tmp_path) == []


class SlowDisk(Copy):
    """A record that is not written until it may."""

    may_end = threading.Event()

    def write(self, writer: object) -> None:
        assert self.may_end.wait(60)


def test_what_a_slow_disk_leaves_no_room_for_is_lost_and_counted(tmp_path: Path) -> None:
    SlowDisk.may_end.clear()
    writer = Writer(tmp_path, "town-1", ABOUT, queue_max=100 * SIZE)
    by = access()
    writer.put(SlowDisk(by.snapshot))
    for _ in range(200):
        writer.put(made(f"{TOWN}/a", by))
    assert 100 <= writer.lost <= 105
    SlowDisk.may_end.set()
    lost = writer.lost
    end(writer)
    assert writer.lost == lost
    assert len(decisions(tmp_path)) == 200 - lost


def test_a_record_larger_than_the_queue_is_written_if_nothing_waits(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "town-1", ABOUT, queue_max=10)
    writer.put(answer(access()))
    end(writer)
    assert (writer.answers, writer.lost) == (1, 0)


class NoDisk(Copy):
    def write(self, writer: object) -> None:
        raise OSError(28, "No space left on device")


def test_after_an_error_all_is_lost_and_what_was_written_is_whole(tmp_path: Path) -> None:
    by = access()
    writer = Writer(tmp_path, "town-1", ABOUT)
    writer.put(answer(by))
    writer.put(NoDisk(by.snapshot))
    for number in range(10):
        writer.put(made(f"{TOWN}/{number}", by))
    end(writer)
    assert str(writer.error) == "[Errno 28] No space left on device"
    assert writer.lost == 11
    assert [one.kind for one in answers(tmp_path)] == ["warcinfo", "response"]
    assert problems(tmp_path) == []


def test_a_member_that_was_written_in_part_is_taken_back(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "town-1", ABOUT)
    file = writer._warc._file
    size = writer._warc._complete
    file.write(b"half a record")
    writer._fail(OSError(28, "No space left on device"))
    end(writer)
    assert files(tmp_path, ".warc.gz")[0].stat().st_size == size


def test_decisions_of_a_crawl_are_a_line_each() -> None:
    line = DecisionLines(dry_run=False).line(made(f"{TOWN}/back/", access()))
    assert line.endswith(b"}\n")
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:21.000000Z",
        "url": "http://town.example/back/",
        "verdict": "forbidden",
        "robot": "FooBot",
        "origin": "http://town.example",
        "reason": "rule",
        "line": 2,
        "rule": "/back/",
        "robots_digest": "sha256:d07ffccdc3e50562aa4b05075f73bcb4f92053afe8742e7deecd4ffa651a4209",
        "robots_time": "2023-11-14T22:13:20.000000Z",
        "parser": "StrictRobotParser",
    }


def test_digests_are_remembered_for_a_bounded_number_of_files() -> None:
    lines = DecisionLines(dry_run=False)
    for number in range(20_100):
        lines.line(made("http://town.example/", access(when=TIME + number)))
    assert len(lines._files) <= 10_000


def test_without_warcio_the_error_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['warcio'] = None\n"
        "from unittest.mock import MagicMock\n"
        "from scrapy.settings import Settings\n"
        "from scrapy_norobots.evidence import Evidence\n"
        "from scrapy_norobots.settings import Config\n"
        "settings = Settings({'NOROBOTS_EVIDENCE': 'new'})\n"
        "Evidence(MagicMock(settings=settings), Config.from_settings(settings))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "needs warcio: pip install 'scrapy-norobots[evidence]'" in done.stderr.splitlines()[-1]
    assert done.stderr.splitlines()[-1].startswith("ValueError: NOROBOTS_EVIDENCE = 'new': ")
    assert not (tmp_path / "new").exists()


# Files that anybody may have written


@cache
def crawled() -> Mapping[str, bytes]:
    """Return the files of a small crawl, by name."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        writer = Writer(folder, "town-1", ABOUT)
        by = access()
        writer.put(answer(by))
        writer.put(Copy(by.snapshot))
        writer.put(Failure(Snapshot(TOWN, TOWN.robots_url, TIME + 5, error="TimeoutError: \r\n\x00late")))
        for path in ("", "a", "back/"):
            writer.put(made(f"{TOWN}/{path}", by))
        end(writer)
        assert answers(folder)[-1].body == b"norobots-error: TimeoutError: \x00late\r\n"
        return {path.name: path.read_bytes() for path in folder.iterdir()}


WARC, LINES = "town-1-00001.warc.gz", "town-1-00001.decisions.jsonl.gz"


def problems_with(name: str, data: bytes) -> list[Problem]:
    """Return what is wrong with these files if one of them is changed."""
    with TemporaryDirectory() as folder:
        for file, content in {**crawled(), name: data}.items():
            (Path(folder) / file).write_bytes(content)
        return problems(Path(folder))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
FIELDS = (
    "url",
    "verdict",
    "robot",
    "origin",
    "reason",
    "line",
    "rule",
    "robots_digest",
    "robots_time",
    "parser",
)


FUZZ = settings(max_examples=300)


@given(field=st.sampled_from([*FIELDS, "sent_as"]), value=JSON)
@FUZZ
def test_any_value_in_a_decision_is_a_problem_or_none(field: str, value: object) -> None:
    line = json.loads(gzip.decompress(crawled()[LINES]).splitlines()[2])
    found = problems_with(LINES, gzip.compress(json.dumps({**line, field: value}).encode() + b"\n"))
    assert len(found) <= 1
    if field in ("line", "rule", "robots_digest") and value != line[field]:
        assert found


@given(st.data())
@FUZZ
def test_any_change_of_the_files_is_a_problem_or_none(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([WARC, LINES]))
    is_packed = data.draw(st.booleans())
    text = bytearray(crawled()[name] if is_packed else gzip.decompress(crawled()[name]))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        text[start : start + data.draw(st.integers(0, 20))] = data.draw(st.binary(max_size=20))
    problems_with(name, bytes(text) if is_packed else gzip.compress(bytes(text)))


@given(st.binary())
@FUZZ
def test_anything_is_a_record_or_damaged(data: bytes) -> None:
    try:
        read_record(data)
        read_record(b"WARC/1.1\r\n" + data)
    except DamagedError:
        pass


def test_a_file_that_is_cut_off_anywhere_gives_what_is_complete(tmp_path: Path) -> None:
    parts = [b"one\n", b"two\nthree\n", b"", b"four\n" * 1000]
    whole = b"".join(map(gzip.compress, parts))
    ends = [sum(len(gzip.compress(part)) for part in parts[:number]) for number in range(len(parts) + 1)]
    path = tmp_path / "file.gz"
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        file = GzipFile(path)
        found = [data for _, data in file.members()]
        assert found == parts[: sum(end <= size for end in ends[1:])]
        assert file.is_cut_off == (size not in ends)


def test_a_gzip_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress(bytes(20_000_000)))
    with pytest.raises(DamagedError, match="has a line of more than"):
        list(GzipFile(path).lines())


def nasty_files(count: int) -> Iterator[bytes]:
    for seed in range(count):
        some = random.Random(seed)
        body = nasty._encoded(some, nasty._text(some, ["*", "foobot"], ["/a", "/b/c", "/%7e", "/a/.."]))
        yield body.encode("utf-8", "surrogateescape") if isinstance(body, str) else body


def test_decisions_by_nasty_files_agree(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "town-1", ABOUT)
    for number, body in enumerate(nasty_files(300)):
        by = access(body, TOWN._replace(host=f"{number}.example"))
        writer.put(answer(by))
        for path in ("/", "/a", "/b/c/d", "/~", "/%7E", "/a/../b/c", "/robots.txt"):
            writer.put(made(f"{by.snapshot.origin}{path}", by))
    end(writer)
    assert writer.decisions == 2_100
    assert problems(tmp_path) == []


def test_memory_is_bounded_however_many_decisions_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the parsed files and outcomes that are remembered; the rest is on disk."""
    monkeypatch.setattr(audit_module, "_PARSED_MAX", 200_000)
    monkeypatch.setattr(audit_module, "_OUTCOMES_MAX", 100)
    write(tmp_path, 1_000, padding=b"# " + b"x" * 20_000)
    audit = Audit(tmp_path.iterdir(), strict)
    tracemalloc.start()
    assert list(audit.problems()) == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert audit.verdicts.total() == 4_000
    assert peak < 6_000_000  # the files have 20 MB
