"""The chain of the lines of a run."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest

from scrapy_norobots.features.evidence.chain import START, Chain, ChainReader


def lines() -> list[bytes]:
    chain = Chain()
    return [
        chain.other({"opens": "one"}),
        chain.decision(b'{"url": "a"}'),
        chain.decision(b'{"url": "b"}'),
        chain.other({"opens": "two"}),
        chain.decision(b'{"url": "c"}'),
        chain.other({"closes": "run"}),
    ]


def problems(found: list[bytes]) -> list[str]:
    reader = ChainReader()
    return [reader.problem(line.rstrip(b"\n"), json.loads(line)) for line in found]


def test_each_line_names_the_digest_of_the_line_before() -> None:
    found = lines()
    assert [json.loads(line)["seq"] for line in found] == [0, 1, 2, 2, 3, 3]
    assert [json.loads(line)["prev"] for line in found] == [
        START,
        *(sha256(line).hexdigest() for line in found[:-1]),
    ]
    assert problems(found) == [""] * 6


def test_the_head_is_the_digest_of_the_last_line() -> None:
    chain, reader = Chain(), ChainReader()
    line = chain.decision(b'{"url": "a"}')
    assert not reader.problem(line[:-1], json.loads(line))
    assert chain.head == reader.head == sha256(line).hexdigest()


def test_each_difference_is_reported_once() -> None:
    found = lines()
    assert problems([found[0], *found[2:]]) == ["", "1 decision before it is missing", "", "", ""]
    assert problems([*found[:2], found[4]])[2] == "1 decision before it is missing"
    assert problems([*found[:2], found[1], *found[2:]])[2:4] == [
        "its number is 1, not 2: a line was added, repeated or moved",
        "",
    ]
    changed = found[1].replace(b'"a"', b'"x"')
    assert problems([found[0], changed, *found[2:]]) == [
        *("", "", "the line before it was changed or removed (prev)", "", "", "")
    ]
    assert problems([*found[:3], *found[4:]])[3] == "the line before it was changed or removed (prev)"


@pytest.mark.parametrize("number", [None, "1", True, 1.0])
def test_a_line_without_a_number_is_no_part_of_a_chain(number: object) -> None:
    with pytest.raises(TypeError, match="seq is"):
        ChainReader().problem(b"", {"seq": number, "prev": START})
