"""What an operator who cheats may do to evidence; docs/evidence.md has the same table.

With the head of a run, any change is noticed, even if all digests are made to fit, and also of a run that was
killed. Without it, each file must be whole, and the decisions must follow from the files.
"""

from __future__ import annotations

import gzip
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy.http import Response

from scrapy_norobots.features.evidence.audit import Audit
from scrapy_norobots.features.evidence.fields import TEXT_MAX, Answer, Made, digest_of
from scrapy_norobots.features.evidence.writer import Writer
from scrapy_norobots.rules.access import PRESETS
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Reason
from tests.helpers.judges.evidence import head_of, members, seal
from tests.helpers.samples.changes import (
    Change,
    cut,
    decisions_file,
    remove,
    rename,
    repeat,
    swap,
    unlink,
    warc,
    with_bytes,
    with_field,
    with_line,
    with_lines,
    with_record,
    with_records,
    with_setting,
    with_text,
)
from tests.helpers.samples.made_up import JUDGE, SETTINGS, TIME, TOWN, access, answer, end, made, strict

VILLAGE, SHUT = TOWN._replace(host="village.example"), TOWN._replace(host="shut.example")
PAGE, BACK, ATTIC = f"{TOWN}/page/0", f"{TOWN}/back/0", f"{VILLAGE}/attic/0"


def write_run(folder: Path, name: str = "town-1") -> Writer:
    """Write the evidence of a run that has each kind of record and of decision."""
    writer = Writer(folder, name, SETTINGS)
    town, shut = access(), JUDGE.judge(Snapshot(SHUT, SHUT.robots_url, TIME, 503))
    moved = Response(VILLAGE.robots_url, 302, headers={"Location": "/moved.txt"})
    village = access(b"User-agent: FooBot\nDisallow: /attic\n", VILLAGE, TIME + 2)
    there = Response(f"{VILLAGE}/moved.txt", body=village.snapshot.body)
    renewed = JUDGE.judge(Snapshot(TOWN, TOWN.robots_url, TIME + 60, 200, body=town.snapshot.body))
    writer.put(answer(town))
    writer.put(Answer(SHUT, Response(SHUT.robots_url, 503), TIME))
    writer.put(Answer(VILLAGE, moved, TIME + 1, note="redirect"))
    writer.put(Answer(VILLAGE, there, TIME + 2, village.snapshot.body))
    for number in range(3):
        writer.put(made(f"{TOWN}/page/{number}", town))
        writer.put(made(f"{TOWN}/back/{number}", town))
        writer.put(made(f"{VILLAGE}/attic/{number}", village))
    writer.put(made(f"{SHUT}/", shut))
    writer.put(Answer.of(Snapshot(SHUT, SHUT.robots_url, TIME + 9, error="TimeoutError: late")))
    writer.put(answer(renewed)._replace(renewed=town.snapshot, response=Response(TOWN.robots_url, 304)))
    writer.put(made(f"{TOWN}/back/later", renewed))
    writer.put(Made(TIME + 3, "data:,town", b"FooBot", "data:,town", exemption=Reason.NOT_WEB))
    writer.put(Made(TIME + 3, f"{TOWN}/override", b"FooBot", f"{TOWN}/override"))
    end(writer)
    return writer


@pytest.fixture(scope="session")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("complete")
    write_run(folder)
    return folder


@pytest.fixture(scope="session")
def killed(complete: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(shutil.copytree(complete, tmp_path_factory.mktemp("killed") / "run"))
    path = decisions_file(folder)
    path.write_bytes(b"".join(members(path)[:-1]))
    return folder


def texts(folder: Path, *heads: str) -> list[str]:
    audit = Audit(folder.iterdir(), strict, heads=heads)
    return [f"{problem.place}: {problem.text}" for problem in audit.problems()]


LINES = 21  # of the file: 13 decisions, 6 records, the opening and the closing line
RECORDS = 6
ALLOWED = {"verdict": "allowed", "reason": "no_rule_matches", "line": None, "rule": None}
OVERRIDE = {
    "verdict": "overridden", "reason": "dont_obey_robotstxt", "line": None, "rule": None, "parser": None,
    "robots_digest": None, "robots_time": None, "origin": None,
}  # fmt: skip
OLD = "2020-01-01T00:00:00.000000Z"


def edited() -> Iterator[tuple[Change, str]]:
    """Yield changes that are made with an editor, and what the audit says of the complete run."""
    for number in range(LINES - 1):
        yield with_lines(remove(number)), ""
        yield with_lines(repeat(number)), ""
    for number in range(LINES - 2):
        yield with_lines(swap(number)), ""
    for url in (PAGE, BACK, ATTIC):
        yield with_line(url, url=f"{TOWN}/elsewhere"), "does not follow|is not the line"
    for number in range(RECORDS):
        yield with_records(remove(number)), "the record was changed or removed"
        yield with_records(repeat(number)), "changed or removed|after its last record"
        yield with_field(number, "WARC-Date", OLD), "the record was changed or removed"
    for count in (1, 2, 5):
        yield with_lines(cut(count)), "ended without a closing line (killed?)"
    yield with_lines(lambda found: found.append(found[3])), "follows the closing line"


def damaged() -> Iterator[tuple[Change, str]]:
    """Yield changes of the files as they are, whose digests nobody can make fit."""
    yield with_text("}\n", "}"), ""
    yield with_text('"verdict": "forbidden"', '"verdict": "forbidden", "verdict": "allowed"'), ""
    for path, other in ((decisions_file, ".warc.gz"), (warc, ".decisions.jsonl.gz")):
        yield unlink(path), "is missing"
        yield with_bytes(path, lambda _: b""), ""
        for name in ("town-2", "pages"):
            yield rename(path, f"{name}{path(Path()).name.removeprefix('town-1')}"), f"{other}: is missing"
        yield with_bytes(path, lambda data: data + gzip.compress(b'{"hidden": 1}\n')), "after|follows"
        yield with_bytes(path, lambda data: data + b"\x1f\x8b\x08"), "after"
    yield with_bytes(warc, lambda data: gzip.compress(gzip.decompress(data))), "changed"


def closing() -> Iterator[tuple[Change, str]]:
    """Yield changes of the closing line."""
    for changes in (
        {"closes": "town-2"}, {"lost": 7}, {"lost": False}, {"lost": 0.0}, {"lost": None}, {"lost": "0"},
        {"note": "x"}, {"sha256": ""}, {"sha256": None},
    ):  # fmt: skip
        yield with_line("closes", **changes), "line 21: "
    yield with_text('"lost": 0', '"lost": 0, "lost": 0'), "line 21: "


def sealed() -> Iterator[tuple[Change, str]]:
    """Yield changes that all digests are made to fit, but not the decisions; and what the audit says."""
    for verdict in ("forbidden", "unreachable"):
        yield with_line(PAGE, verdict=verdict), "judged with verdict 'allowed'"
    yield with_line(PAGE, verdict="x"), "verdict is 'x'"
    for url in (BACK, ATTIC, f"{TOWN}/back/later"):
        yield with_line(url, **ALLOWED), "judged with verdict 'forbidden'"
    yield with_line(f"{SHUT}/", verdict="allowed"), "judged with verdict 'unreachable'"
    wrong: dict[str, list[Any]] = {
        "url": [f"{TOWN}/page", f"{VILLAGE}/", "https://town.example/", "http://town.example:99999/", "x", 7],
        "robot": [7, None, []], "origin": ["http://other.example", None],
        "reason": ["no_record", "bad_url", None], "line": [3, 2.0, "2", True, None],
        "rule": ["/", None], "robots_digest": [digest_of(b""), None],
        "robots_time": [OLD, "never", None, 7, []], "parser": ["ProtegoRobotParser", None], "usage": [[]],
        "time": ["", OLD, "2023-11-14", "2023-13-14T22:13:21.000000Z", "2023-11-14T22:13:21Z", 7, None],
        "sent_as": [f"{TOWN}/a", None], "decided_for": ["BarBot"], "note": ["x"],
        "dry_run": [True, "true"], "requested": [BACK, None, 7],
    }  # fmt: skip
    for name, values in wrong.items():
        for value in values:
            yield with_line(BACK, **{name: value}), ""
    for name in ("line", "rule", "robots_digest", "robots_time", "parser", "sent_as", "usage", "origin"):
        yield with_line(f"{TOWN}/override", **{name: wrong[name][0]}), ""
        yield with_line("data:,town", **{name: wrong[name][0]}), ""
    yield with_line(BACK, **{**OVERRIDE, "reason": "rule"}), "recorded with reason 'rule'"
    for reason in ("robots_txt", "not_web"):
        changes = {**OVERRIDE, "verdict": "allowed", "reason": reason}
        yield with_line(BACK, **changes), "but it needs a robots.txt"


def of_records() -> Iterator[tuple[Change, str]]:
    """Yield changes of the records, as `sealed` does."""
    yield with_setting(policy=dict(PRESETS["allow"])), "judged with verdict 'allowed'"
    yield with_setting(robot="BarBot"), "judged with"
    yield with_setting(allowed=False), "the crawl did not store allowed requests"
    yield with_setting(parsers=["scrapy.robotstxt.ProtegoRobotParser"]), "unknown parser"
    for name, value in (
        ("parsers", 7), ("policy", {"4xx": "maybe"}), ("policy", None),
        ("note", "x"),
    ):  # fmt: skip
        yield with_setting(**{name: value}), "cannot be judged by the settings in its first line"
    for number, words in ((0, "http://town"), (1, "http://shut"), (3, "http://village"), (5, "http://town")):
        yield with_records(remove(number)), f"no answer for {words}"
    yield with_record(0, b"/back/", b"/bacc/"), "its body has the digest"
    yield with_record(0, b"200 OK", b"404 OK"), "judged with verdict 'allowed', reason 'status'"
    yield with_record(1, b"503 Service", b"404 Service"), "judged with verdict 'allowed'"
    for code in (b"abc", b"+"):
        yield with_record(1, b"503 ", code + b" "), "cannot be read: invalid literal"
    for number, name, value in (
        (0, "Norobots-Origin", str(SHUT)), (0, "WARC-Date", OLD), (0, "Norobots-Body-Digest", digest_of(b"")),
        (3, "Norobots-Origin", str(TOWN)), (5, "Norobots-Body-Digest", digest_of(b"")),
    ):  # fmt: skip
        yield with_field(number, name, value), ""
    yield with_line("opens", opens="town-2"), "was renamed"
    yield with_record(0, b"(?s).*", b"hello"), "it is not a WARC record"


def with_another_file(folder: Path) -> None:
    """Replace a robots.txt and all decisions by it."""
    body = b"User-agent: *\nDisallow: /bacc/\n"
    with_record(0, b"/back/", b"/bacc/")(folder)
    for number in (0, 5):
        with_field(number, "Norobots-Body-Digest", digest_of(body))(folder)

    def judge_anew(found: list[dict[str, Any]]) -> None:
        for line in found:
            if line.get("origin") == str(TOWN):
                line.update(ALLOWED, robots_digest=digest_of(body))

    with_lines(judge_anew)(folder)


# Nothing in the evidence contradicts these if all digests fit.
UNNOTICED: dict[str, Change] = {
    "a decision that is left out": with_lines(
        lambda found: found.remove(next(one for one in found if "url" in one))
    ),
    "a decision that was never made": with_lines(
        lambda found: found.insert(5, {**found[5], "url": f"{TOWN}/x"})
    ),
    "another robots.txt, and all decisions by it": with_another_file,
    "a decision that is called overridden": with_line(BACK, **OVERRIDE),
    "another robot by the same rules": with_line(BACK, robot="OtherBot"),
    "another requested URL": with_line(BACK, requested=f"{TOWN}/back/secret"),
    "another version of Python": with_setting(versions={"Python": "CPython 2.7"}),
    "a file that is compressed again": lambda _: None,  # as all are, by `seal`
    "a dry run": with_setting(dry_run=True),
    "a URL that is too long": with_line(BACK, url=f"{TOWN}/{TEXT_MAX * 'x'}"[:TEXT_MAX]),
    "another time": with_line(BACK, time="2024-01-01T00:00:00.000000Z"),
}


EDITED, DAMAGED, CLOSING, SEALED = (
    list(edited()),
    list(damaged()),
    list(closing()),
    [*sealed(), *of_records()],
)


def changed(source: Path, folder: Path, change: Change, *, is_sealed: bool) -> Path:
    copy = Path(shutil.copytree(source, folder))
    change(copy)
    if is_sealed:
        seal(copy)
    return copy


def check(folder: Path, words: str) -> None:
    found = texts(folder)
    assert found
    assert re.search("|".join(map(re.escape, words.split("|"))), "\n".join(found)), found


def test_evidence_without_a_change_has_no_problem(complete: Path, killed: Path, tmp_path: Path) -> None:
    assert texts(complete, head_of(complete)) == []
    assert texts(changed(complete, tmp_path / "sealed", lambda _: None, is_sealed=True)) == []
    [text] = texts(killed, head_of(killed))
    assert text == f"town-1: ended without a closing line (killed?); its head is {head_of(killed)}"


@pytest.mark.parametrize(("change", "words"), [*EDITED, *DAMAGED, *CLOSING])
def test_what_is_changed_with_an_editor_is_noticed(
    complete: Path, tmp_path: Path, change: Change, words: str
) -> None:
    check(changed(complete, tmp_path / "changed", change, is_sealed=False), words)


@pytest.mark.parametrize(("change", "words"), SEALED)
def test_a_decision_that_does_not_follow_is_noticed(
    complete: Path, tmp_path: Path, change: Change, words: str
) -> None:
    check(changed(complete, tmp_path / "changed", change, is_sealed=True), words)


@pytest.mark.parametrize("name", UNNOTICED)
def test_who_computes_all_digests_anew_is_noticed_by_the_head_alone(
    complete: Path, tmp_path: Path, name: str
) -> None:
    folder = changed(complete, tmp_path / "changed", UNNOTICED[name], is_sealed=True)
    assert texts(folder) == []


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("kind", ["complete", "killed"])
def test_with_the_head_any_change_is_noticed(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    source: Path = request.getfixturevalue(kind)
    by_hand = [change for change, _ in EDITED + DAMAGED + (CLOSING if kind == "complete" else [])]
    changes = [*by_hand, *(change for change, _ in SEALED), *UNNOTICED.values()]
    head = head_of(source)
    unchanged = texts(source, head)
    for number, change in enumerate(changes):
        folder = changed(source, tmp_path / str(number), change, is_sealed=number >= len(by_hand))
        assert texts(folder, head) != unchanged or contents(folder) == contents(source), number


def unnoticed_bytes(source: Path, folder: Path, count: int, seed: int) -> list[tuple[str, int]]:
    """Change one byte of one file at random, many times, and return where no change is noticed."""
    some, found, head = random.Random(seed), [], head_of(source)
    unchanged = texts(source, head)
    shutil.copytree(source, folder)
    for _ in range(count):
        path = some.choice(sorted(folder.iterdir()))
        data = path.read_bytes()
        at = some.randrange(len(data))
        path.write_bytes(data[:at] + bytes([data[at] ^ some.randrange(1, 256)]) + data[at + 1 :])
        if texts(folder, head) == unchanged:
            found.append((path.name, at))
        path.write_bytes(data)
    return found


@pytest.mark.parametrize("kind", ["complete", "killed"])
def test_with_the_head_a_change_of_any_byte_is_noticed(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    assert unnoticed_bytes(request.getfixturevalue(kind), tmp_path / "changed", 100, 1994) == []


@pytest.mark.parametrize("kind", ["complete", "killed"])
def test_a_run_that_is_renamed_is_noticed(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    folder = Path(shutil.copytree(request.getfixturevalue(kind), tmp_path / "renamed"))
    for path in list(folder.iterdir()):
        path.rename(folder / path.name.replace("town-1", "town-2"))
    assert "the run was renamed" in "\n".join(texts(folder, head_of(folder)))


def test_what_is_known_about_a_wrong_head_is_said(complete: Path) -> None:
    [text] = texts(complete, 64 * "0")
    assert text.endswith("here: it is mistyped, of another crawl, or the evidence was changed")


def test_a_run_that_is_removed_is_noticed_by_its_head_alone(tmp_path: Path) -> None:
    first, second = write_run(tmp_path), write_run(tmp_path, "town-2")
    assert texts(tmp_path, first.head, second.head) == []
    for path in tmp_path.glob("town-1.*"):
        path.unlink()
    assert texts(tmp_path) == []
    assert len(texts(tmp_path, first.head, second.head)) == 1
