"""Values of `NOROBOTS_STORE`: what is accepted, and that no error shows a password."""

from __future__ import annotations

import re
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.settings import Settings

from scrapy_norobots.settings import error, read
from scrapy_norobots.stores import REDIS_SCHEMES, without_password
from scrapy_norobots.stores.opening import FORMS, URLS, open_store, open_turns

MAX_BYTES = 2**20
INVALID = "invalid Redis URL: hosts must have names"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("sqlite", f"unsupported store URL; expected {FORMS}"),
        ("sqlite:///", "unsupported store URL; expected memory, sqlite:///path, "),
        ("sqlite://robots.sqlite", "unsupported store URL"),
        ("mysql://x", "unsupported store URL"),
        ("Memory", "unsupported store URL"),
        ("redis://host:port/0", INVALID),
        ("redis://:sec/ret@host", INVALID),
        ("redis://:1?sec=ret@host", INVALID),
        ("redis://host?skip@host", INVALID),
        ("redis://host:6379/abc", INVALID),
        ("redis://host?decode_responses=True", INVALID),
        ("redis+sentinel://host:port/town", INVALID),
        ("redis+sentinel://host,:9/town", INVALID),
        ("redis+sentinel://:sec/ret@host/town", INVALID),
        ("redis+sentinel://host:26379", INVALID),
        ("redis+sentinel://host/town/abc", INVALID),
        ("redis+sentinel://host/town?decode_responses=True", INVALID),
        ("redis+sentinel://host/town?db=2", INVALID),
        ("redis+cluster://host?skip_full_coverage_check=1", INVALID),
        ("redis+cluster://host?db=2", INVALID),
        ("redis+cluster://", INVALID),
        ("redis+cluster://host/1", INVALID),
        ("unix+cluster:///path", "unsupported store URL"),
    ],
)
def test_an_invalid_store_is_an_error(value: str, problem: str) -> None:
    if value.startswith("redis"):
        pytest.importorskip("redis")
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}"):
        open_store(value, MAX_BYTES)


def test_the_error_for_a_store_to_read_does_not_offer_memory() -> None:
    with pytest.raises(ValueError, match=f"expected {re.escape(URLS)}$"):
        open_store("robots.sqlite", MAX_BYTES, must_exist=True)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("sqlite:////a/b?c", "sqlite:////a/b?c"),
        ("disk", "disk"),
        ("ftp://town.example/", "ftp://town.example/"),
        ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
        ("redis://me:secret@127.0.0.1:6379/0", "redis://***"),
        ("redis://:secret@127.0.0.1", "redis://***"),
        ("redis+sentinel://:secret@a:1,[::1]:2/town/0", "redis+sentinel://***"),
        ("unix:///run/redis.sock?db=1&password=secret", "unix://***"),
        ("redis://:sec/r@e:t@[::1", "redis://***"),
        ("redis://me@host:6379?password=a@b&db=1", "redis://***"),
        ("redis://me@town.example:secret@host/0", "redis://***"),
        ("redis://:s3c@r/3tPW@h/0", "redis://***"),
        ("redis://host:secret", "redis://***"),
        ("redis//:secret@h", "***"),
        ("redis:/:secret@h", "***"),
        ("redis:secret", "***"),
        (":secret@h", "***"),
        ("sqlite:redis://:secret@h", "***"),
        ("sqlite:///redis://:secret@h", "sqlite://***"),
        ("sqlite:///me@home", "sqlite:///me@home"),
        ("secret@h", "***"),
    ],
)
def test_a_password_is_not_shown(value: str, shown: str) -> None:
    assert without_password(value) == shown


SECRET = "hunter2"


@st.composite
def misspelt(draw: st.DrawFn) -> str:
    """A URL with a user and a password, in which characters are missing, doubled, added or exchanged."""
    special = draw(st.text("@/:?#[]&=%,+", max_size=3))
    scheme = draw(st.sampled_from(REDIS_SCHEMES))
    end = draw(st.sampled_from(["@host:6379/0", "@host", "@a:1,b:2/town/1", "@[::1]:7/0?db=1"]))
    before = draw(st.sampled_from([f"{scheme}://me:", f"{scheme}://:"]))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(before)))
        before = before[:place] + draw(st.sampled_from(["", "/", ":", "@", "x"])) + before[place + 1 :]
    before = draw(st.sampled_from(["", "sqlite:"])) + before
    return f"{before}{special}{SECRET}{special}{end}"


@given(misspelt())
def test_no_error_shows_a_password_however_its_url_is_misspelt(value: str) -> None:
    pytest.importorskip("redis")
    shown = [without_password(value), str(error("NOROBOTS_STORE", value, ""))]
    shown.append(str(error("NOROBOTS_STORE", value.encode(), "")))
    for opens in (partial(open_store, max_bytes=MAX_BYTES), open_turns):
        try:
            opens(value)
        except ValueError as exc:
            shown.append(str(exc))
    assert not [text for text in shown if SECRET in text]


@pytest.mark.parametrize("value", [b"redis://:secret@h", ["redis://:secret@h"], {"redis://:secret@h": 1}])
def test_a_value_of_another_type_is_not_shown_if_it_may_have_a_password(value: object) -> None:
    with pytest.raises(ValueError, match=r"^NOROBOTS_STORE = \*\*\*: must be a string"):
        read(Settings({"NOROBOTS_STORE": value}), "NOROBOTS_STORE")
