"""Records: which names and which text each has, and which of them a search reads."""

from __future__ import annotations

import pytest

from scrapy_norobots.standard.records import RawRecord, find_record, read_records

Numbered = list[tuple[int, str]]


@pytest.mark.parametrize("end", ["", "\n", " ", "\n\t", "\n\n"])
@pytest.mark.parametrize(
    ("body", "names", "text"),
    [
        ("User-agent: a", [(1, "a")], (1, "")),
        ("User-agent: a\nRequest-rate: 1/5", [(1, "a")], (1, "\nRequest-rate: 1/5")),
        ("\n\nUser-agent: a\nAllow: /\nUser-agent: b", [(3, "a"), (5, "b")], (5, "")),
        (
            "User-agent: a\nUser-agent: b\nDisallow: /c\nHost: d",
            [(1, "a"), (2, "b")],
            (2, "\nDisallow: /c\nHost: d"),
        ),
        ("User-agent: a\nDisallow: /c\n \t\nDisallow: /d", [(1, "a")], (1, "\nDisallow: /c")),
    ],
)
def test_a_record_has_the_text_below_its_last_name_up_to_a_blank_line(
    body: str, names: Numbered, text: tuple[int, str], end: str
) -> None:
    (record,) = read_records(body + end)
    assert record.names == names
    assert [(line, below.rstrip(" ")) for line, below in record.texts] == [text]


def test_a_search_stops_at_the_first_record_that_names_the_robot() -> None:
    records = read_records("User-agent: *\nDisallow: /\n\nUser-agent: a\n\nUser-agent: a\nUser-agent: b\n")
    assert find_record(records, "A") == RawRecord([(4, "a")], [(4, "")], multivalue=False)
    assert [record.names for record in records] == [[(6, "a"), (7, "b")]]


def test_the_default_record_has_the_texts_of_all_its_parts() -> None:
    body = "User-agent: *\nDisallow: /c\n\nUser-agent: a\n\nUser-agent: *\nDisallow: /d"
    record = find_record(read_records(body), "b")
    assert record == RawRecord(
        [(1, "*"), (6, "*")], [(1, "\nDisallow: /c"), (6, "\nDisallow: /d")], multivalue=False
    )
    assert list(record.rules) == [(2, "/c"), (7, "/d")]
    assert find_record(read_records("User-agent: a"), "b") is None
