"""The entries of a store: a written entry is read again, and anything else is a miss."""

from __future__ import annotations

import json
import math
import tracemalloc
import zlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.stores import entries
from tests.helpers.samples.snapshots import EMPTY, FOUND, LOST, ORIGIN, OTHER

WHOLE = entries.encode((FOUND, LOST))


def compact(head: object) -> bytes:
    return json.dumps(head, separators=(",", ":")).encode()


def sealed(content: bytes) -> bytes:
    """Return an entry with a valid checksum and any content."""
    compressor = zlib.compressobj(9, zdict=entries._DICTIONARY)
    return entries._MAGIC + compressor.compress(content) + compressor.flush()


def headed(head: object) -> bytes:
    """Return an entry with any head."""
    return sealed(compact(head) + b"\nbody")


def decode(entry: bytes, maxsize: int = 2**20) -> tuple[Snapshot, ...]:
    return entries.decode(entry, ORIGIN, maxsize)


FACTS = {
    "url": ORIGIN.robots_url,
    "time": 1.0,
    "status": 200,
    "error": "",
    "headers": {},
    "failures": 0,
    "size": 4,
}
WRONG_FACTS: list[dict[str, object]] = [
    {"url": ""},
    {"url": "mailto:me@town.example"},
    {"url": "http://town.example:99999/"},
    {"status": "200"},
    {"time": None},
    {"headers": []},
    {"headers": {"etag": 7}},
    {"size": "4"},
    {"mood": "good"},
    {"size": -1},
    {"size": 3},
    {"failures": -1},
    {"status": True},
    {"time": float("nan")},
    {"local_failure": True},
]
HEADS_OF_OTHERS: list[object] = [
    None,
    [],
    {},
    {"origin": list(ORIGIN)},
    {"origin": list(ORIGIN), "snapshots": 7},
    {"origin": list(ORIGIN), "snapshots": [7]},
    *({"origin": list(ORIGIN), "snapshots": [{**FACTS, **wrong}]} for wrong in WRONG_FACTS),
]


@given(st.data())
def test_every_change_of_an_entry_is_detected(data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(WHOLE) - 1))
    changed = bytearray(WHOLE)
    changed[place] ^= data.draw(st.integers(1, 255))
    # Some bits say nothing about the content, such as those that fill up a byte.
    assert decode(bytes(changed)) in ((), (FOUND, LOST))


@given(st.binary())
def test_any_bytes_are_a_miss(entry: bytes) -> None:
    assert decode(entry) == ()


def test_the_entry_without_errors_is_valid() -> None:
    """Each invalid entry differs in one place from this valid one."""
    entry = headed({"origin": list(ORIGIN), "snapshots": [FACTS]})
    assert [snapshot.body for snapshot in decode(entry)] == [b"body"]


# Any JSON, and JSON that resembles the head of an entry.
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
RIGHT_FACTS: dict[str, st.SearchStrategy[Any]] = {
    "url": st.text() | st.text().map("http://town.example/".__add__),
    "time": st.floats(),
    "status": st.none() | st.integers(),
    "error": st.text(),
    "headers": st.dictionaries(st.text(max_size=5), st.text(max_size=5) | JSON, max_size=2),
    "failures": st.integers(),
    "size": st.integers(-1, 4),
}
LIKE_FACTS = st.fixed_dictionaries(
    {}, optional={name: st.one_of(right, right, right, JSON) for name, right in RIGHT_FACTS.items()}
) | st.fixed_dictionaries(RIGHT_FACTS, optional={"local_failure": JSON, "body": JSON})
HEADS = st.fixed_dictionaries(
    {"origin": st.just(list(ORIGIN)) | JSON, "snapshots": st.lists(LIKE_FACTS, max_size=2) | JSON}
)


@given(st.one_of(HEADS, HEADS, JSON).map(compact) | st.binary(), st.binary(max_size=4))
@example(b"[" * 100_000, b"")
def test_any_bytes_with_a_valid_checksum_are_a_miss(line: bytes, bodies: bytes) -> None:
    """Any program can compute the checksum: the facts must have the right types, or the entry is a miss."""
    found = decode(sealed(line + b"\n" + bodies))
    for snapshot in found:
        assert snapshot.origin == ORIGIN
        assert snapshot.status is None or type(snapshot.status) is int
        assert snapshot.local_failure is False
        assert snapshot.failures >= 0
        assert math.isfinite(snapshot.time)
        assert all(
            isinstance(text, str) for text in [snapshot.url, snapshot.error, *snapshot.headers.values()]
        )
    assert not found or b"".join(snapshot.body for snapshot in found) == bodies


@given(
    st.lists(
        st.builds(
            Snapshot,
            origin=st.just(ORIGIN),
            url=st.text().map("http://town.example/".__add__),
            time=st.floats(allow_nan=False, allow_infinity=False),
            status=st.none() | st.integers(0, 999),
            error=st.text(st.characters(codec=None)),
            headers=st.dictionaries(st.text(), st.text()),
            body=st.binary(),
            failures=st.integers(0, 10**9),
            exception=st.none(),
        ),
        min_size=1,
        max_size=2,
    )
)
def test_any_snapshots_survive_a_round_trip(snapshots: list[Snapshot]) -> None:
    assert decode(entries.encode(snapshots)) == tuple(snapshots)


OTHERS = [
    *(WHOLE[:-1], WHOLE + b"\0", entries._MAGIC, entries._MAGIC + b"not deflated", b"\x80\x04}q\x00."),
    *(WHOLE.replace(b" 2 ", b" 1 ", 1), entries.encode((replace(FOUND, origin=OTHER),))),
    *map(headed, HEADS_OF_OTHERS),
]


@pytest.mark.parametrize("entry", OTHERS)
def test_an_entry_must_be_whole_and_as_it_would_be_written(entry: bytes) -> None:
    assert decode(entry) == ()


def test_a_bomb_is_a_miss_and_takes_little_memory() -> None:
    facts = {**FACTS, "size": 100_000_000}
    head = compact({"origin": list(ORIGIN), "snapshots": [facts]}) + b"\n"
    bomb = sealed(head + bytes(100_000_000))
    assert len(bomb) < 200_000
    tracemalloc.start()
    try:
        assert decode(bomb, maxsize=2**20) == ()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * 2**20


def test_the_largest_file_is_kept_and_a_larger_one_is_a_miss() -> None:
    largest = replace(FOUND, body=bytes(3 * 2**20))
    entry = entries.encode((largest, LOST))
    assert decode(entry, maxsize=3 * 2**20) == (largest, LOST)
    assert decode(entry, maxsize=2**20) == ()


def test_an_entry_is_small() -> None:
    """What an origin without a robots.txt takes decides how many of them a store can keep."""
    headers = {"content-type": "text/html; charset=utf-8", "date": "Tue, 14 Nov 2023 22:13:20 GMT"}
    missing = replace(EMPTY, headers=headers)
    assert len(entries.encode((missing,))) < 150
    body = b"User-agent: *\n" + b"".join(b"Disallow: /a/place/%d\n" % number for number in range(180))
    assert len(entries.encode((replace(FOUND, body=body),))) < len(body) / 3
