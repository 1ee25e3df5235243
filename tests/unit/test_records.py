"""Records: their start and end in the text, and which of them applies to a robot."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scrapy_norobots.standard.records import RawRecord, Record, find_record, read_records
from tests.helpers.samples.variants import LINE_ENDS, with_line_ends

BODY = """# garden
Disallow: /stray

User-agent: tamarin
# and
User-agent: potto
Disallow: /nest
Crawl-delay: 1
Disallow: /egg
User-agent: indri

Disallow: /stray

User-agent: *
Disallow: /heap # hot"""


def read(body: str, *, multivalue: bool = False) -> list[tuple[list[tuple[int, str]], list[tuple[int, str]]]]:
    """Return the numbered names and rules of each record."""
    records = list(read_records(body.encode(), multivalue=multivalue))
    for record in records:
        assert record.values == [value for _, value in record.rules]
    return [(record.names, list(record.rules)) for record in records]


@pytest.mark.parametrize("ends", LINE_ENDS)
@pytest.mark.parametrize("last", ["", "\n", "\n \n"])
def test_records_have_numbered_lines(ends: str, last: str) -> None:
    assert read(with_line_ends(BODY + last, ends)) == [
        ([(4, "tamarin"), (6, "potto")], [(7, "/nest"), (9, "/egg")]),
        ([(10, "indri")], []),
        ([(14, "*")], [(15, "/heap")]),
    ]


def test_lines_in_the_dialect_may_have_several_values() -> None:
    body = "User-agent: tamarin potto\n\nUser-agent: a, *\nDisallow: /x /y\nDisallow: /z"
    assert read(body, multivalue=True) == [
        ([(1, "tamarin"), (1, "potto")], []),
        ([(3, "a"), (3, "*")], [(4, "/x"), (4, "/y"), (5, "/z")]),
    ]


def found(body: str, robot: str) -> list[int]:
    record = find_record(read_records(body), robot)
    return [line for line, _ in record.names] if record else []


def test_a_record_that_names_the_robot_precedes_the_default_record() -> None:
    names = [["*"], ["tam", "*"], ["tamarin"], ["*"]]
    body = "\n\n".join("\n".join(f"User-agent: {name}" for name in some) for some in names)
    assert found(body, "Tamarin") == [3, 4]
    assert found(body, "Potto") == found(body, "*") == [1, 3, 4, 8]
    assert found("User-agent: tamarin", "Potto") == []


def test_reading_stops_at_the_record_that_names_the_robot() -> None:
    def records() -> Iterator[RawRecord]:
        yield from read_records("User-agent: *\n\nUser-agent: tamarin\nDisallow: /nest")
        raise AssertionError("it was read on")

    found = find_record(records(), "Tamarin")
    assert found is not None
    assert found.names == [(3, "tamarin")]
    with pytest.raises(AssertionError, match="read on"):
        find_record(records(), "Potto")


def test_several_default_records_become_one() -> None:
    body = "User-agent: *\nDisallow: /a\n\nUser-agent: x\nUser-agent: *\nDisallow: /b\n"
    raw = find_record(read_records(body), "*")
    assert raw is not None
    record = Record(raw.names, raw.rules)
    assert record.names == ("*", "x", "*")
    assert record.rules == ((2, "/a"), (6, "/b"))
    assert record.line == 1


def test_records_with_the_same_lines_are_equal() -> None:
    def records(body: str) -> set[Record]:
        found = (find_record(read_records(body), name) for name in ("tamarin", "potto", "*"))
        return {Record(raw.names, raw.rules) for raw in found if raw}

    some = records(BODY)
    assert len(some) == 2
    assert some == records(BODY)
    assert some != records(BODY.replace("/heap", "/hole"))
    for record in some:
        assert (record == record.names) is False
        assert repr(record.names[0]) in repr(record)
