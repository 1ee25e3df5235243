"""The thread that writes evidence: its files, its queue, and a disk that fails."""

from __future__ import annotations

import gzip
import json
import threading
from hashlib import sha256
from io import BytesIO
from pathlib import Path

from scrapy.http import Response
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from scrapy_norobots.features.evidence.answers import Answer, Copy
from scrapy_norobots.features.evidence.audit import Audit
from scrapy_norobots.features.evidence.decisions import Made
from scrapy_norobots.features.evidence.writer import Writer, _size_of
from tests.helpers.judges.evidence import answers, decisions, files
from tests.helpers.samples.made_up import (
    ABOUT,
    TIME,
    TOWN,
    access,
    answer,
    end,
    made,
    problems,
    strict,
    write,
)


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


def test_files_of_other_tools_may_be_beside_them(tmp_path: Path) -> None:
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


def test_records_that_find_no_room_in_the_queue_are_lost_and_counted(tmp_path: Path) -> None:
    SlowDisk.may_end.clear()
    by = access()
    one = made(f"{TOWN}/a", by)
    writer = Writer(tmp_path, "town-1", ABOUT, queue_max=100 * _size_of(one))
    writer.put(SlowDisk(by.snapshot))
    for _ in range(200):
        writer.put(one)
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


def test_a_body_that_is_judged_as_it_came_takes_room_once(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "town-1", ABOUT, queue_max=130_000)
    response = Response(f"{TOWN}/robots.txt", body=bytes(20_000))
    for judged, is_behind in ((response.body, False), (bytes(20_000), True)):
        writer.put(Answer(TOWN, response, TIME, judged))
        assert writer.is_behind is is_behind
    end(writer)
    assert (writer.answers, writer.lost, writer.is_behind) == (2, 0, False)


class NoDisk(Copy):
    def write(self, writer: object) -> None:
        raise OSError(28, "No space left on device")


def test_after_an_error_nothing_more_is_written_and_the_files_can_be_read(tmp_path: Path) -> None:
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
    assert [problem.text for problem in problems(tmp_path)] == ["ended without a closing line (killed?)"]
    audit = Audit(tmp_path.iterdir(), strict, heads=[writer.head])
    assert len(list(audit.problems())) == 1  # the head is that of the line that was written last


def test_a_member_that_was_written_in_part_is_removed(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "town-1", ABOUT)
    file = writer._warc._file
    size = writer._warc._complete
    file.write(b"half a record")
    writer._fail(OSError(28, "No space left on device"))
    end(writer)
    assert files(tmp_path, ".warc.gz")[0].stat().st_size == size


def test_a_file_of_another_process_is_not_changed(tmp_path: Path) -> None:
    """It has the name that the next file of this run would have."""
    foreign = tmp_path / "town-1-00002.warc.gz"
    foreign.write_bytes(b"x" * 100_000)
    writer = write(tmp_path, 40, file_max=2_000)
    assert isinstance(writer.error, FileExistsError)
    assert foreign.read_bytes() == b"x" * 100_000
    foreign.unlink()
    assert [one.kind for one in answers(tmp_path)].count("warcinfo") == 1


def test_the_queue_counts_the_length_of_urls(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "town-1", ABOUT, queue_max=10_000_000)
    by = access()
    SlowDisk.may_end.clear()
    writer.put(SlowDisk(by.snapshot))
    for number in range(100):
        url = f"{TOWN}/{number}{'x' * 1_000_000}"
        writer.put(Made(TIME, url, b"FooBot", url + "y" * (number % 2), by))
    assert writer._put - writer.taken < 10_000_000
    assert writer.lost > 85
    SlowDisk.may_end.set()
    end(writer)


def test_a_run_ends_with_a_closing_line(tmp_path: Path) -> None:
    writer = write(tmp_path)
    (path,) = files(tmp_path, ".jsonl.gz")
    first, *_, last = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    (warc,) = files(tmp_path, ".warc.gz")
    assert json.loads(first) == {"seq": 0, "prev": 64 * "0", "opens": path.name}
    closing = json.loads(last)
    assert (closing["closes"], closing["seq"], closing["answers"], closing["lost"]) == ("town-1", 12, 3, 0)
    assert closing["decisions"] == {"allowed": 6, "forbidden": 6}
    data = warc.read_bytes()
    assert closing["files"] == {warc.name: {"size": len(data), "sha256": sha256(data).hexdigest()}}
    assert writer.head == sha256(last).hexdigest()


def test_lost_records_are_in_the_closing_line(tmp_path: Path) -> None:
    by = access()
    writer = Writer(tmp_path, "town-1", ABOUT, queue_max=1)
    writer.put(answer(by))
    for _ in range(3):
        writer.put(made(f"{TOWN}/", by))
    end(writer)
    found = [problem.text for problem in problems(tmp_path)]
    assert found == [f"{writer.lost} records were lost, because the disk was too slow"]


def test_an_answer_with_many_headers_can_be_read_again(tmp_path: Path) -> None:
    by = access()
    headers = {"X-Large": "x" * 3_000_000, "X-Small": "1"}
    large = Response(TOWN.robots_url, body=by.snapshot.body, headers=headers)
    writer = Writer(tmp_path, "town-1", ABOUT)
    writer.put(answer(by)._replace(response=large))
    end(writer)
    stored = answers(tmp_path)[1]
    assert stored.headers["WARC-Truncated"] == "length"
    assert stored.http == {"X-Small": "1"}
    assert problems(tmp_path) == []
