"""What an operator who cheats may do to evidence, by kinds; docs/evidence.md has the same table of them.

Some changes are made with a text editor. Others are sealed: everything else is made to fit, as a program can
do it. Each that can be noticed must be a problem; of the others, the tests show that they are none, and that
the head of the run, kept elsewhere, gives them away.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from scrapy.http import Response
from warcio.archiveiterator import ArchiveIterator
from warcio.recordloader import ArcWarcRecord
from warcio.warcwriter import WARCWriter

from scrapy_norobots.features.evidence import writer as writer_module
from scrapy_norobots.features.evidence.answers import Answer
from scrapy_norobots.features.evidence.audit import Audit
from scrapy_norobots.features.evidence.decisions import Made
from scrapy_norobots.features.evidence.fields import AIOHTTP, DRY_RUN, MULTIVALUE, PARSERS, POLICY, digest_of
from scrapy_norobots.features.evidence.files import GzipFile
from scrapy_norobots.features.evidence.writer import Writer
from scrapy_norobots.rules.access import PRESETS
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Reason
from tests.helpers.judges.evidence import files, lines_of, seal, write_lines
from tests.helpers.samples.made_up import (
    ABOUT,
    BODY_MAX,
    JUDGE,
    TIME,
    TOWN,
    access,
    answer,
    end,
    made,
    strict,
)

Change = Callable[[Path], object]

VILLAGE, SHUT = TOWN._replace(host="village.example"), TOWN._replace(host="shut.example")


def write_run(folder: Path, about: Mapping[str, str] = ABOUT, **options: Any) -> Writer:
    """Write the evidence of a run that has each kind of record and of decision."""
    writer = Writer(folder, "town-1", about, **options)
    town, shut = access(), JUDGE.judge(Snapshot(SHUT, SHUT.robots_url, TIME, 503))
    moved = Response(VILLAGE.robots_url, 302, headers={"Location": "/moved.txt"})
    village = access(b"User-agent: *\nDisallow: /attic\n", VILLAGE, TIME + 2)
    there = Response(f"{VILLAGE}/moved.txt", body=village.snapshot.body)
    writer.put(answer(town))
    writer.put(Answer(SHUT, Response(SHUT.robots_url, 503), TIME))
    writer.put(Answer(VILLAGE, moved, TIME + 1, followed_by="redirect"))
    writer.put(Answer(VILLAGE, there, TIME + 2, village.snapshot.body, requested=there.url))
    for number in range(3):
        writer.put(made(f"{TOWN}/page/{number}", town))
        writer.put(made(f"{TOWN}/back/{number}", town))
        writer.put(made(f"{VILLAGE}/attic/{number}", village))
    writer.put(made(f"{SHUT}/", shut))
    writer.put(Made(TIME + 3, "data:,town", b"FooBot", "data:,town", exemption=Reason.NOT_WEB))
    writer.put(Made(TIME + 3, f"{TOWN}/back/", b"FooBot", f"{TOWN}/back/"))  # overridden
    end(writer)
    return writer


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    write_run(folder)
    return folder


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The evidence of a run of several files."""
    folder = tmp_path_factory.mktemp("parts")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer_module, "_MEMBER", 1)  # each line is a member
        writer = Writer(folder, "town-1", ABOUT, file_max=600)
        for number in range(3):
            by = access(origin=TOWN._replace(host=f"{number}.example"), when=TIME + number)
            writer.put(answer(by))
            for page in range(2):
                writer.put(made(f"{by.snapshot.origin}/{page}", by))
        end(writer)
    assert len(files(folder, ".warc.gz")) == len(files(folder, ".jsonl.gz")) == 3
    return folder


def texts(folder: Path, *heads: str) -> list[str]:
    audit = Audit(folder.iterdir(), strict, heads=heads)
    return [f"{problem.place}: {problem.text}" for problem in audit.problems()]


def decisions_file(folder: Path, number: int = 1) -> Path:
    return folder / f"town-1-{number:05}.decisions.jsonl.gz"


def warc(folder: Path, number: int = 1) -> Path:
    return folder / f"town-1-{number:05}.warc.gz"


LINES = 14  # in the file of the run: 12 decisions, and the opening and the closing line


def with_lines(change: Callable[[list[dict[str, Any]]], object], *, sealed: bool = False) -> Change:
    """Change the list of the lines."""

    def apply(folder: Path) -> None:
        found = lines_of(decisions_file(folder))
        change(found)
        write_lines(decisions_file(folder), found)
        if sealed:
            seal(folder)

    return apply


def with_line(number: int, sealed: bool = False, **changes: Any) -> Change:
    return with_lines(lambda found: found[number].update(changes), sealed=sealed)


def with_records(
    change: Callable[[int, ArcWarcRecord], list[ArcWarcRecord]], *, sealed: bool = False, number: int = 1
) -> Change:
    """Write the records anew that a function returns for each."""

    def apply(folder: Path) -> None:
        path = warc(folder, number)
        with path.open("rb") as file, path.with_suffix(".new").open("wb") as new:
            writer = WARCWriter(new, gzip=True, warc_version="1.1")
            for place, record in enumerate(ArchiveIterator(file)):
                for changed in change(place, record):
                    writer.write_record(changed)
        path.with_suffix(".new").replace(path)
        if sealed:
            seal(folder)

    return apply


def with_block(place: int, old: bytes, new: bytes, *, is_stale: bool = False, sealed: bool = True) -> Change:
    """Replace bytes in the payload of a record, with or without the digests that WARC tools know."""

    def change(at: int, record: ArcWarcRecord) -> list[ArcWarcRecord]:
        if at == place:
            payload = record.raw_stream.read()
            assert old in payload
            payload = payload.replace(old, new)
            digests = {name: record.rec_headers.get_header(name) for name in (BLOCK, PAYLOAD)}
            record.raw_stream = BytesIO(payload)
            record.length = record.payload_length = len(payload)
            for name, digest in digests.items():
                if digest and not is_stale:
                    record.rec_headers.remove_header(name)
        return [record]

    return with_records(change, sealed=sealed)


BLOCK, PAYLOAD = "WARC-Block-Digest", "WARC-Payload-Digest"


def with_field(place: int, name: str, value: str | None, *, sealed: bool = True) -> Change:
    """Change a field of a WARC record; None removes it."""

    def change(at: int, record: ArcWarcRecord) -> list[ArcWarcRecord]:
        if at == place:
            record.rec_headers.remove_header(name)
            if value is not None:
                record.rec_headers.add_header(name, value)
        return [record]

    return with_records(change, sealed=sealed)


def with_status(place: int, status: str) -> Change:
    def change(at: int, record: ArcWarcRecord) -> list[ArcWarcRecord]:
        if at == place:
            record.http_headers.statusline = status
            record.rec_headers.remove_header(BLOCK)
        return [record]

    return with_records(change, sealed=True)


def with_setting(name: str, value: str, *, is_stale: bool = False, sealed: bool = True) -> Change:
    line = f"{name}: {ABOUT[name]}\r\n".encode()
    return with_block(0, line, f"{name}: {value}\r\n".encode(), is_stale=is_stale, sealed=sealed)


def with_members(change: Callable[[list[bytes]], object], *, sealed: bool = True) -> Change:
    """Change the list of the records as they are written."""

    def apply(folder: Path) -> None:
        found = [data for _, data in GzipFile(warc(folder)).members(BODY_MAX)]
        change(found)
        warc(folder).write_bytes(b"".join(map(gzip.compress, found)))
        if sealed:
            seal(folder)

    return apply


def without_digest(number: int) -> Change:
    def change(found: list[bytes]) -> None:
        found[number] = re.sub(rb"WARC-Block-Digest: .*\r\n", b"", found[number])

    return with_members(change)


def without_line_feed(folder: Path) -> None:

    path = decisions_file(folder)
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes())[:-1]))


def with_text(old: str, new: str) -> Change:
    """Replace a text in the lines as they are written."""

    def apply(folder: Path) -> None:
        path = decisions_file(folder)
        text = gzip.decompress(path.read_bytes()).decode()
        assert old in text
        path.write_bytes(gzip.compress(text.replace(old, new, 1).encode()))

    return apply


def recompressed(path: Callable[[Path], Path]) -> Change:

    def apply(folder: Path) -> None:
        data = path(folder).read_bytes()
        path(folder).write_bytes(data + gzip.compress(b""))

    return apply


def _remove(number: int, found: list[Any]) -> None:
    del found[number]


def _repeat(number: int, found: list[Any]) -> None:
    found.insert(number, found[number])


def _swap(number: int, found: list[Any]) -> None:
    found[number], found[number + 1] = found[number + 1], found[number]


def _cut(count: int, found: list[Any]) -> None:
    del found[-count:]


Place = Callable[[Path, int], Path]


def _rename(kind: Place, name: str, folder: Path) -> None:
    kind(folder, 1).rename(folder / name)


def _unlink(kind: Place, number: int, folder: Path) -> None:
    kind(folder, number).unlink()


def _copy(kind: Place, number: int, folder: Path) -> None:
    shutil.copy(kind(folder, 1), kind(folder, number))


def _swap_files(kind: Place, folder: Path) -> None:
    one, other = kind(folder, 1), kind(folder, 2)
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)


def edited() -> Iterator[tuple[str, Change, str]]:
    """Yield changes that are made with an editor: a kind, the change, and what the audit says."""
    for number in range(1, LINES - 1):
        yield "line removed", with_lines(partial(_remove, number)), "missing"
        yield (
            "line repeated",
            with_lines(partial(_repeat, number)),
            "added, repeated or moved",
        )
        yield "line changed", with_line(number, url=f"{TOWN}/elsewhere"), "changed or removed (prev)"
    for number in range(1, LINES - 2):
        yield (
            "lines swapped",
            with_lines(partial(_swap, number)),
            "missing",
        )
    yield "line removed", with_lines(lambda found: found.pop(0)), "is not the opening line"
    for count in (1, 2, 5, LINES - 1):
        yield (
            "end removed",
            with_lines(partial(_cut, count)),
            "ended without a closing line (killed?)",
        )
    yield "line added", with_lines(lambda found: found.append(dict(found[3]))), "added, repeated or moved"
    yield (
        "line added",
        with_lines(lambda found: found.append({**found[3], "seq": found[-1]["seq"] + 1})),
        "changed or removed (prev)",
    )
    yield "line feed removed", without_line_feed, "ends in the middle of a line"
    yield "file removed", lambda folder: decisions_file(folder).unlink(), "its decisions are missing"
    yield "file removed", lambda folder: warc(folder).unlink(), "no warcinfo record"
    yield "file emptied", lambda folder: decisions_file(folder).write_bytes(b""), "has no opening line"
    yield "file emptied", lambda folder: warc(folder).write_bytes(b""), "no warcinfo record"
    for name in ("town-2-00001", "town-1-00002", "pages"):
        yield (
            "file renamed",
            partial(_rename, decisions_file, f"{name}.decisions.jsonl.gz"),
            "town",
        )
        yield (
            "file renamed",
            partial(_rename, warc, f"{name}.warc.gz"),
            "town",
        )
    yield (
        "file added",
        lambda folder: shutil.copy(warc(folder), warc(folder, 2)),
        "second warcinfo|not in the",
    )
    yield "file changed", recompressed(warc), "its size or digest is not that in the closing line"
    for place in range(1, 5):
        yield (
            "record removed",
            with_members(partial(_remove, place), sealed=False),
            "its size or digest",
        )
        yield (
            "record changed",
            with_field(place, "WARC-Date", "2020-01-01T00:00:00.000000Z", sealed=False),
            "",
        )
    yield "closing line changed", with_line(-1, decisions={"allowed": 12}), "counts the decisions allowed: 12"
    yield "closing line changed", with_line(-1, answers=3), "counts 3 answers; there are 4"
    yield "closing line changed", with_line(-1, files={}), "is not in the closing line of its run"
    yield (
        "closing line changed",
        with_line(-1, files={"town-1-00009.warc.gz": {"size": 1, "sha256": ""}}),
        "is missing",
    )
    yield "closing line changed", with_line(-1, closes="town-2"), "is of the run 'town-2'"
    yield "closing line changed", with_line(-1, lost=7), "7 records were lost"
    yield "closing line changed", with_lines(lambda found: found[-1].pop("files")), "is damaged"
    yield (
        "key repeated",
        with_text('"verdict": "forbidden"', '"verdict": "forbidden", "verdict": "allowed"'),
        "twice",
    )


def sealed() -> Iterator[tuple[str, Change, str]]:
    """Yield changes that fit everything but the answers and the decisions themselves."""
    allowed, forbidden, unreachable = 1, 2, 10
    for verdict in ("forbidden", "unreachable", "x"):
        yield "decision", with_line(allowed, sealed=True, verdict=verdict), "judged as allowed"
    free = {"verdict": "allowed", "reason": "no_rule_matches", "line": None, "rule": None}
    for number in (2, 3, 5, 6):
        yield "decision", with_line(number, sealed=True, **free), "judged as forbidden"
    yield "decision", with_line(unreachable, sealed=True, verdict="allowed"), "judged as unreachable"
    wrong: dict[str, Any] = {
        "url": f"{TOWN}/page", "robot": 7, "origin": "http://other.example", "reason": "no_record", "line": 3,
        "rule": "/", "robots_digest": digest_of(b""), "robots_time": "2020-01-01T00:00:00.000000Z",
        "parser": "ProtegoRobotParser", "sent_as": f"{TOWN}/a",
    }  # fmt: skip
    for name, value in wrong.items():
        yield "decision", with_line(forbidden, sealed=True, **{name: value}), ""
        yield "decision", with_line(forbidden, sealed=True, **{name: None}), ""
    for value in (True, 2.0, "2"):
        yield "type of a value", with_line(forbidden, sealed=True, line=value), "not a decision"
    for value in ("", "2023-11-14", "2023-13-14T22:13:21.000000Z", 1_700_000_000, None):
        yield "time", with_line(forbidden, sealed=True, time=value), "not a decision"
    yield (
        "time",
        with_line(forbidden, sealed=True, time="2023-11-14T22:13:19.999999Z"),
        "before its robots.txt",
    )
    yield "time", with_lines(lambda found: found[1].pop("time"), sealed=True), "without time"
    yield "key added", with_line(forbidden, sealed=True, note="x"), "not a decision"
    yield "dry run", with_line(forbidden, sealed=True, dry_run=True), "the crawl was none"
    yield "dry run", with_line(forbidden, sealed=True, dry_run="true"), "not a decision"
    yield "dry run", with_setting(DRY_RUN, "True"), "of a dry run, but not marked"
    yield "setting", with_setting(POLICY, json.dumps(dict(PRESETS["allow"]))), "judged as allowed (status)"
    yield "setting", with_setting(PARSERS, '["scrapy.robotstxt.ProtegoRobotParser"]'), "did not have"
    yield "setting", with_setting(PARSERS, "[]"), "does not state the crawl's settings"
    yield "setting", with_setting(MULTIVALUE, "1"), "does not state the crawl's settings"
    for name, value in ((POLICY, json.dumps(dict(PRESETS["rfc9309"]))), (MULTIVALUE, "True"), (AIOHTTP, "")):
        yield "setting under a stale digest", with_setting(name, value, is_stale=True), "WARC digest is wrong"
    yield "second warcinfo", with_members(lambda found: found.insert(1, found[0])), "second warcinfo"
    for number in (0, 1, 3):
        yield "digest removed", without_digest(number), "it has no WARC-Block-Digest"
    yield "body", with_block(1, b"/back/", b"/bacc/"), "its body has the digest"
    yield "body", with_block(1, b"/back/", b"/bacc/", is_stale=True), "WARC digest is wrong"
    yield "body", with_block(4, b"/attic", b"/attac"), "its body has the digest"
    for place, name in (
        (1, "no answer for http://town"),
        (2, "no answer for http://shut"),
        (3, "no stored redirect"),
    ):
        yield (
            "answer removed",
            with_members(partial(_remove, place)),
            name,
        )
    yield "status", with_status(1, "404 Not Found"), "but its status is 404"
    yield "status", with_status(1, "503 Busy"), "but its status is 503"
    yield "status", with_status(2, "404 Not Found"), "judged as allowed"
    yield "status", with_field(2, "Norobots-Body-Digest", digest_of(b"")), "but its status is 503"
    yield "URL of an answer", with_field(1, "WARC-Target-URI", f"{VILLAGE}/robots.txt"), "no stored redirect"
    yield "URL of an answer", with_field(1, "WARC-Target-URI", f"{TOWN}/other.txt"), "no stored redirect"
    yield "URL of an answer", with_field(4, "WARC-Target-URI", f"{VILLAGE}/other.txt"), "no stored redirect"
    yield "origin of an answer", with_field(1, "Norobots-Origin", str(SHUT)), "no stored redirect"
    yield "origin of an answer", with_field(4, "Norobots-Origin", str(TOWN)), "no stored redirect"
    yield "date of an answer", with_field(1, "WARC-Date", "2020-01-01T00:00:00.000000Z"), "no answer for"
    yield "redirect as an outcome", with_line(
        3, True, verdict="unreachable", reason="status", line=None, rule=None, parser=None,
        robots_digest=None, robots_time="2023-11-14T22:13:21.000000Z",
    ), "no answer for"  # fmt: skip


def second_answer(folder: Path) -> None:
    """Add an answer of the same origin and time, by which everything is allowed."""
    with warc(folder).open("ab") as file:
        Answer(TOWN, Response(TOWN.robots_url, 404), TIME).write(WARCWriter(file, gzip=True))
    seal(folder)


def of_parts() -> Iterator[tuple[str, Change, str]]:
    """Yield changes of the files of a run that has three of each kind."""
    for number in (1, 2, 3):
        yield "part removed", partial(_unlink, warc, number), "is missing"
    for number in (1, 2):
        yield (
            "part removed",
            partial(_unlink, decisions_file, number),
            "is missing",
        )
    yield "part removed", lambda folder: decisions_file(folder, 3).unlink(), "ended without a closing line"
    for kind in (warc, decisions_file):
        yield (
            "parts swapped",
            partial(_swap_files, kind),
            "town-1",
        )
        yield (
            "part repeated",
            partial(_copy, kind, 4),
            "town-1",
        )
    yield "part changed", recompressed(lambda folder: warc(folder, 1)), "does not follow on"
    yield "part changed", recompressed(lambda folder: warc(folder, 3)), "its size or digest"
    yield "part changed", recompressed(lambda folder: decisions_file(folder, 1)), "its size or digest"


EDITED, SEALED, OF_PARTS = list(edited()), list(sealed()), list(of_parts())
SEALED.append(("second answer", second_answer, "contradicts another record"))


def named(changes: list[tuple[str, Change, str]]) -> list[Any]:
    return [pytest.param(*one, id=f"{number} {one[0]}") for number, one in enumerate(changes)]


def test_there_are_more_than_a_hundred_changes_of_each_kind_in_the_docs() -> None:
    assert len(EDITED) + len(SEALED) + len(OF_PARTS) >= 100


def test_evidence_without_a_change_has_no_problem(run: Path, parts: Path, tmp_path: Path) -> None:
    assert texts(run) == texts(parts) == []
    folder = Path(shutil.copytree(run, tmp_path / "sealed"))
    seal(folder)
    assert texts(folder) == []


def check(source: Path, folder: Path, change: Change, words: str) -> None:
    shutil.copytree(source, folder)
    change(folder)
    found = texts(folder)
    assert re.search("|".join(map(re.escape, words.split("|"))), "\n".join(found)), found
    assert found


@pytest.mark.parametrize(("kind", "change", "words"), named([*EDITED, *SEALED]))
def test_each_change_is_noticed(run: Path, tmp_path: Path, kind: str, change: Change, words: str) -> None:
    check(run, tmp_path / "changed", change, words)


@pytest.mark.parametrize(("kind", "change", "words"), named(OF_PARTS))
def test_each_change_of_parts_is_noticed(
    parts: Path, tmp_path: Path, kind: str, change: Change, words: str
) -> None:
    check(parts, tmp_path / "changed", change, words)


def with_another_file(folder: Path) -> None:
    """Replace a robots.txt and all decisions by it."""
    with_block(1, b"/back/", b"/bacc/")(folder)
    body = b"User-agent: *\nDisallow: /bacc/\n"
    with_field(1, "Norobots-Body-Digest", digest_of(body))(folder)

    def judge_anew(found: list[dict[str, Any]]) -> None:
        for line in found:
            if line.get("origin") == str(TOWN) and line["robots_time"]:
                free = {"verdict": "allowed", "reason": "no_rule_matches", "line": None, "rule": None}
                line.update(free, robots_digest=digest_of(body))

    with_lines(judge_anew, sealed=True)(folder)


OVERRIDE = {
    "verdict": "overridden", "reason": "dont_obey_robotstxt", "line": None, "rule": None, "parser": None,
    "robots_digest": None, "robots_time": None,
}  # fmt: skip
# Nothing in the evidence contradicts these.
UNNOTICED: dict[str, Change] = {
    "a decision that is left out": with_lines(lambda found: found.pop(2), sealed=True),
    "a decision that was never made": with_lines(lambda found: found.insert(1, dict(found[1])), sealed=True),
    "another robots.txt, and all decisions by it": with_another_file,
    "a decision that is called overridden": with_line(2, sealed=True, **OVERRIDE),
    "another robot by the same rules": with_line(2, sealed=True, robot="OtherBot"),
    "another time": with_line(2, sealed=True, time="2024-01-01T00:00:00.000000Z"),
}


@pytest.mark.parametrize("name", UNNOTICED)
def test_who_writes_everything_anew_is_noticed_by_the_head_alone(
    run: Path, tmp_path: Path, name: str
) -> None:
    folder = Path(shutil.copytree(run, tmp_path / "changed"))
    head = sha256(lines_as_written(folder)[-1] + b"\n").hexdigest()
    assert texts(folder, head) == []
    UNNOTICED[name](folder)
    assert texts(folder) == []
    assert texts(folder, head) == [f"head {head}: no run ends with it: the evidence of its crawl was changed"]


def lines_as_written(folder: Path) -> list[bytes]:

    return gzip.decompress(decisions_file(folder).read_bytes()).splitlines()


def test_a_run_that_is_removed_is_noticed_by_its_head_alone(tmp_path: Path) -> None:
    first, second = write_run(tmp_path), write_run(tmp_path)
    assert texts(tmp_path, first.head, second.head) == []
    for path in tmp_path.glob("town-1-00001.*"):
        path.unlink()
    assert texts(tmp_path) == []
    assert len(texts(tmp_path, first.head, second.head)) == 1
