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
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from scrapy.http import Response
from warcio.warcwriter import WARCWriter

from scrapy_norobots.features.evidence import writer as writer_module
from scrapy_norobots.features.evidence.answers import Answer, Copy
from scrapy_norobots.features.evidence.audit import Audit
from scrapy_norobots.features.evidence.decisions import Made
from scrapy_norobots.features.evidence.fields import AIOHTTP, DRY_RUN, MULTIVALUE, PARSERS, POLICY, digest_of
from scrapy_norobots.features.evidence.writer import Writer
from scrapy_norobots.rules.access import PRESETS
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Reason
from tests.helpers.judges.evidence import files, seal
from tests.helpers.samples.changes import (
    Change,
    both,
    copy,
    cut,
    decisions_file,
    recompressed,
    remove,
    rename,
    repeat,
    swap,
    swap_files,
    unlink,
    warc,
    with_block,
    with_field,
    with_header,
    with_kind,
    with_line,
    with_lines,
    with_members,
    with_setting,
    with_status,
    with_text,
    without_digest,
    without_field,
    without_line_feed,
)
from tests.helpers.samples.made_up import (
    ABOUT,
    JUDGE,
    TIME,
    TOWN,
    access,
    answer,
    end,
    made,
    strict,
)

VILLAGE, SHUT = TOWN._replace(host="village.example"), TOWN._replace(host="shut.example")


def write_run(folder: Path, about: Mapping[str, str] = ABOUT, **options: Any) -> Writer:
    """Write the evidence of a run that has each kind of record and of decision."""
    writer = Writer(folder, "town-1", about, **options)
    town, shut = access(), JUDGE.judge(Snapshot(SHUT, SHUT.robots_url, TIME, 503))
    moved = Response(VILLAGE.robots_url, 302, headers={"Location": "/moved.txt"})
    village = access(b"User-agent: FooBot\nDisallow: /attic\n", VILLAGE, TIME + 2)
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


LINES = 14  # in the file of the run: 12 decisions, and the opening and the closing line


def edited() -> Iterator[tuple[str, Change, str]]:
    """Yield changes that are made with an editor: a kind, the change, and what the audit says."""
    for number in range(1, LINES - 1):
        yield "line removed", with_lines(partial(remove, number)), "missing"
        yield (
            "line repeated",
            with_lines(partial(repeat, number)),
            "added, repeated or moved",
        )
        yield "line changed", with_line(number, url=f"{TOWN}/elsewhere"), "changed or removed (prev)"
    for number in range(1, LINES - 2):
        yield (
            "lines swapped",
            with_lines(partial(swap, number)),
            "missing",
        )
    yield "line removed", with_lines(lambda found: found.pop(0)), "is not the opening line"
    for count in (1, 2, 5, LINES - 1):
        yield (
            "end removed",
            with_lines(partial(cut, count)),
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
            partial(rename, decisions_file, f"{name}.decisions.jsonl.gz"),
            "town",
        )
        yield (
            "file renamed",
            partial(rename, warc, f"{name}.warc.gz"),
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
            with_members(partial(remove, place), sealed=False),
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
            with_members(partial(remove, place)),
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


def of_records() -> Iterator[tuple[str, Change, str]]:
    """Yield changes of WARC records that nothing else in the evidence depends on, or that all else fits."""
    target = f"WARC-Target-URI: {TOWN}/robots.txt".encode()
    for more in (
        f"Norobots-Body-Digest: {digest_of(b'')}",
        f"Norobots-Origin: {VILLAGE}",
        f"norobots-origin: {TOWN}",
        "WARC-Date: 1999-01-01T00:00:00.000000Z",
        "WARC-Target-URI: http://evil.example/",
    ):
        yield "field repeated", with_header(1, target, target + f"\r\n{more}".encode()), "a field twice"
    evil = b"WARC-Target-URI: http://evil.example/x\r\n"
    requested = f"Norobots-Requested-URI: {TOWN}/robots.txt".encode()
    yield (
        "URL of an answer",
        with_header(1, target, evil + requested),
        "no stored redirect leads from there to http://evil",
    )
    source = b"Norobots-Source: store\r\nWARC-IP-Address: 10.0.0.1"
    yield "source", with_header(1, target, evil + source), "came from a store, but has an IP address"
    yield "source", with_header(1, target, target + b"\r\nNorobots-Source: my dog"), "is 'my dog'"
    for url in (b"http://[x", b"http://[::1"):
        yield "URL that is none", with_header(1, target, b"WARC-Target-URI: " + url), "no stored redirect"
        odd = target + b"\r\nNorobots-Requested-URI: " + url
        yield "URL that is none", with_header(1, target, odd), "no stored redirect"
    for date in ("0", "2023-11-14", "2023-13-14T22:13:20.000000Z", "2023-11-14T22:13:20Z"):
        yield "date", with_field(1, "WARC-Date", date), "its WARC-Date is"
    yield "date", with_field(1, "WARC-Date", "2001-01-01T00:00:00.000000Z"), "before the crawl began"
    yield "date", with_field(2, "WARC-Date", "2999-01-01T00:00:00.000000Z"), "before what is of 2999"
    for code in ("99999999999999999999 Busy", "0503 Busy", "+50 Busy", "abc"):
        yield "status", with_status(2, code), "its HTTP status is invalid"
    yield "followed by", with_field(2, "Norobots-Followed-By", "lunch"), "is 'lunch'"
    yield "followed by", with_field(1, "Norobots-Followed-By", "redirect"), "no redirect that can be followed"
    yield "followed by", with_status(3, "200 OK"), "no redirect that can be followed"
    unreachable = with_line(10, reason="error")
    for kind, words in ((b"metadata", "no norobots-error"), (b"conversion", "it is a conversion record")):
        change = with_kind(2, kind, b"x: y\r\n")
        yield "kind", partial(both, unreachable, change), words
    decided = with_lines(lambda found: found.__delitem__(slice(1, 10)))
    without = without_field(1, b"Norobots-Body-Digest")
    yield "file that is not judged", partial(both, decided, without), "nor an error that explains"
    yield "origin removed", without_field(2, b"Norobots-Origin"), "it has no Norobots-Origin"
    name = b"WARC-Filename: town-1-00001.warc.gz"
    yield "name", with_header(0, name, b"WARC-Filename: village-1-00001.warc.gz"), "of the file 'village"
    yield "repeated", with_members(partial(repeat, 1)), "WARC-Record-ID of another record"
    yield (
        "setting",
        with_block(0, b"norobots-also-robots: []\r\n", b""),
        "does not state the crawl's settings",
    )
    yield "setting", with_block(0, b"norobots-purposes: null\r\n", b""), "does not state the crawl's settings"
    yield "setting", with_block(0, b'"5xx": "deny"', b'"5xx": "allow", "5xx": "deny"'), "does not state"
    yield (
        "setting",
        with_block(0, b"norobots-python", b"robots: ignore\r\nnorobots-python"),
        "robots is 'ignore'",
    )
    hidden = b"norobots-evidence-allowed: False\r\nnorobots-python"
    yield "setting", with_block(0, b"norobots-python", hidden), "did not store allowed requests"


def of_lines() -> Iterator[tuple[str, Change, str]]:
    """Yield changes of lines by which nothing else in the evidence is judged."""
    dates = ("never", "2001-01-01", "2999-01-01T00:00:00Z", "")
    odd: tuple[Any, ...] = (*dates, ["never"], None, 7)
    for value in odd:
        yield "closing time", with_line(-1, sealed=True, time=value), "is damaged"
    yield "closing time", with_line(-1, True, time="2001-01-01T00:00:00.000000Z"), "before what is of 2023"
    yield "closing time", with_lines(lambda found: found[-1].pop("time"), sealed=True), "is damaged"
    for lost in ("", None, False, 0.0):
        yield "lost", with_line(-1, sealed=True, lost=lost), "is damaged"
    yield "key added", with_line(-1, sealed=True, note="x"), "is damaged"
    of_files: tuple[Any, ...] = (
        [[1, {}]], {"town": [1, ""]}, {"town": {"size": "1", "sha256": ""}}, {"town": {}}
    )  # fmt: skip
    for listed in of_files:
        yield "files", with_line(-1, files=listed), "is damaged"
    yield "opening line", with_line(0, sealed=True, note="x"), "its keys are"
    hidden = with_lines(lambda found: found[0].update({**found[2], **found[0]}))
    yield "opening line", hidden, "its keys are"
    yield "time", with_line(2, True, time="2999-01-01T00:00:00.000000Z"), "before what is of 2999"
    override = {"verdict": "overridden", "reason": "dont_obey_robotstxt"}
    yield "overridden", with_line(2, sealed=True, **override), "which has no line: 2"
    yield "overridden", with_line(12, sealed=True, origin=str(VILLAGE)), "does not belong to the origin"
    extra: dict[str, Any] = {
        "line": 1, "rule": "/", "robots_digest": digest_of(b""), "robots_time": "2023-11-14T22:13:20.000000Z",
        "parser": "StrictRobotParser", "sent_as": f"{TOWN}/x", "decided_for": "FooBot", "usage": [],
    }  # fmt: skip
    for name, value in extra.items():
        yield "overridden", with_line(12, sealed=True, **{name: value}), f"which has no {name}"
        if name != "robots_time":
            yield "exempt", with_line(11, sealed=True, **{name: value}), f"which has no {name}"
        bad = {
            "url": "http://town.example:99999/",
            "verdict": "unreachable",
            "reason": "bad_url",
            "origin": None,
        }
        yield "bad URL", with_line(11, sealed=True, **bad, **{name: value}), f"which has no {name}"
    digest = digest_of(b"")
    for value in ({"url": digest}, {"url": "x"}, {}, {"foo": digest}, {"requested": digest}):
        yield "shortened", with_line(2, sealed=True, shortened=value), "shortened is"
    long = {"url": f"{TOWN}/{1_000 * 'x'}"[:1_000], "shortened": {"url": digest}}
    for name, value in (
        ("origin", str(VILLAGE)), ("robots_time", "2023-11-14T22:13:20.000001Z"), ("robots_digest", digest),
        ("parser", "OtherParser"),
    ):  # fmt: skip
        yield "shortened", with_line(2, True, **long, **{name: value}), "not|no answer|did not have"
    yield "shortened", with_line(2, True, **{**long, "shortened": {"url": digest[:-1]}}), "shortened is"
    yield "sent_as", with_line(2, True, sent_as=f"{TOWN}/back/0"), "(sent_as)"


def second_answer(folder: Path) -> None:
    """Add an answer of the same origin and time, by which everything is allowed."""
    with warc(folder).open("ab") as file:
        Answer(TOWN, Response(TOWN.robots_url, 404), TIME).write(WARCWriter(file, gzip=True))
    seal(folder)


def of_parts() -> Iterator[tuple[str, Change, str]]:
    """Yield changes of the files of a run that has three of each kind."""
    for number in (1, 2, 3):
        yield "part removed", partial(unlink, warc, number), "is missing"
    for number in (1, 2):
        yield (
            "part removed",
            partial(unlink, decisions_file, number),
            "is missing",
        )
    yield "part removed", lambda folder: decisions_file(folder, 3).unlink(), "ended without a closing line"
    for kind in (warc, decisions_file):
        yield (
            "parts swapped",
            partial(swap_files, kind),
            "town-1",
        )
        yield (
            "part repeated",
            partial(copy, kind, 4),
            "town-1",
        )
    yield "part changed", recompressed(lambda folder: warc(folder, 1)), "does not follow on"
    yield "part changed", recompressed(lambda folder: warc(folder, 3)), "its size or digest"
    yield "part changed", recompressed(lambda folder: decisions_file(folder, 1)), "its size or digest"


EDITED, SEALED, OF_PARTS = list(edited()), [*sealed(), *of_records(), *of_lines()], list(of_parts())
SEALED.append(("second answer", second_answer, "contradicts another record"))


def named(changes: list[tuple[str, Change, str]]) -> list[Any]:
    return [pytest.param(*one, id=f"{number} {one[0]}") for number, one in enumerate(changes)]


def test_there_are_as_many_changes_as_the_docs_say() -> None:
    assert len(EDITED) + len(SEALED) + len(OF_PARTS) > 250


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


def test_what_is_after_the_closing_line_is_noticed(run: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(run, tmp_path / "changed"))
    path = decisions_file(folder)
    path.write_bytes(path.read_bytes() + gzip.compress(b'{"hidden": 1}\n')[:20])
    assert texts(folder) == [f"{path.name}: has something after its closing line"]


@pytest.mark.parametrize("first", ["none", "of another tool"])
def test_a_file_of_answers_without_decisions_and_warcinfo_is_noticed(
    run: Path, tmp_path: Path, first: str
) -> None:
    folder = Path(shutil.copytree(run, tmp_path / "changed"))
    decisions_file(folder).unlink()
    page = b"WARC/1.1\r\nWARC-Type: resource\r\nWARC-Target-URI: urn:x\r\nContent-Length: 2\r\n\r\nhi\r\n\r\n"
    with_members(lambda found: found.__setitem__(slice(0, 1), [page] * (first != "none")))(folder)
    found = texts(folder)
    assert "town-1-00001.warc.gz: does not begin with a warcinfo record" in found
    assert "town-1: its decisions are missing: no file ends in .decisions.jsonl.gz" in found


def test_evidence_of_nothing_is_a_problem(tmp_path: Path) -> None:
    end(Writer(tmp_path, "town-1", ABOUT))
    assert texts(tmp_path) == ["evidence: no answer and no decision is stored"]


def renewal(folder: Path) -> None:
    """Write a run in which a 304 renews a file, and a store's copy is renewed too."""
    writer = Writer(folder, "town-1", ABOUT)
    village = access(b"User-agent: *\nDisallow:\n", VILLAGE)
    for by, first in ((access(), answer(access())), (village, Copy(village.snapshot))):
        renewed = answer(by)._replace(time=TIME + 60, judged=None, renewed=by.snapshot)
        writer.put(first)
        writer.put(renewed._replace(response=Response(by.snapshot.url, 304)))
        again = JUDGE.judge(replace(by.snapshot, time=TIME + 60))
        writer.put(made(f"{by.snapshot.origin}/back/", again))
    end(writer)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("Norobots-Body-Digest", digest_of(b"User-agent: *\nDisallow:\n")),
        ("WARC-Refers-To-Target-URI", VILLAGE.robots_url),
        ("WARC-Refers-To-Target-URI", None),
        ("WARC-Refers-To-Date", "2023-11-14T22:13:21.000000Z"),
    ],
)
def test_a_304_renews_a_stored_file_of_its_own_origin(tmp_path: Path, field: str, value: str) -> None:
    renewal(tmp_path)
    assert texts(tmp_path) == []
    with_field(2, field, value)(tmp_path)
    assert "no record of http://town.example before it has the file that it renews" in texts(tmp_path)[0]


def test_a_download_handler_may_change_the_url_within_an_origin(tmp_path: Path) -> None:
    by = access()
    response = Response(f"{TOWN}/files/robots.txt", body=by.snapshot.body)
    writer = Writer(tmp_path, "town-1", ABOUT)
    writer.put(answer(by)._replace(response=response, requested=TOWN.robots_url))
    writer.put(made(f"{TOWN}/back/", by))
    end(writer)
    assert texts(tmp_path) == []


def test_a_file_that_was_not_read_needs_an_error(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "town-1", ABOUT)
    failed = Snapshot(TOWN, TOWN.robots_url, TIME, error="UnreadableBodyError")
    writer.put(answer(access())._replace(judged=None))
    writer.put(Copy(failed, source=""))
    end(writer)
    assert texts(tmp_path) == []
    with_members(partial(remove, 2))(tmp_path)
    (text,) = texts(tmp_path)
    assert text.endswith("has neither a Norobots-Body-Digest nor an error that explains this")


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
    "another robot by other rules": with_line(
        3, True, robot="OtherBot", verdict="allowed", reason="no_record", line=None, rule=None
    ),
    "another requested URL": with_line(2, True, requested=f"{TOWN}/back/secret"),
    "another version of a parser": with_setting(
        PARSERS, ABOUT[PARSERS].replace("scrapy-norobots ", "scrapy-norobots 9")
    ),
    "a decision whose URL is called shortened": with_line(
        2, True, url=f"{TOWN}/{1_000 * 'x'}"[:1_000], shortened={"url": digest_of(b"")}
    ),
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
