"""Origins and targets of URLs, and the normal form of targets."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote_to_bytes, urljoin

import pytest

from scrapy_norobots.standard import Origin
from scrapy_norobots.standard.urls import normal, percent_encode, split


@pytest.mark.parametrize(
    ("url", "origin", "target"),
    [
        ("http://h.example/a/b?c=d/e?f#g", "http://h.example", "/a/b?c=d/e?f"),
        ("http://h.example?a", "http://h.example", "/?a"),
        ("http://h.example#a", "http://h.example", "/"),
        ("http://h.example#a?b/c", "http://h.example", "/"),
        ("http://h.example?#", "http://h.example", "/?"),
        ("http://h.example/http://i.example/", "http://h.example", "/http://i.example/"),
        (" \r\n\thttp://h.example/a \t\r\n", "http://h.example", "/a"),
        ("http://h.example/a\x0b", "http://h.example", "/a"),
        ("https://h.example:0443/", "https://h.example", "/"),
        ("http://h.example:443/", "http://h.example:443", "/"),
        ("http://h.example:65535/", "http://h.example:65535", "/"),
        ("http://u:81@h.example/", "http://h.example", "/"),
        ("http://u@v@h.example:81/", "http://h.example:81", "/"),
        ("http://[::FF]:80/a", "http://[::ff]", "/a"),
        ("http://BÜCHER.example/", "http://xn--bcher-kva.example", "/"),
        ("http://bücher。example/", "http://xn--bcher-kva.example", "/"),
        ("http://ｈ.example/", "http://h.example", "/"),
        ("http://h..é/", "http://h..é", "/"),
        ("http://" + "é" * 64 + "/", "http://" + "é" * 64, "/"),
    ],
)
def test_split(url: str, origin: str, target: str) -> None:
    found, rest = split(url)
    assert (str(found), rest) == (origin, target)
    assert found == Origin.of(url)
    assert found is not None
    assert found.robots_url == origin + "/robots.txt"


@pytest.mark.parametrize("url", ["", " ", "a/b", "?b", "#b", "1a:b", ":a", "Tamarin/1.0", "h.example/a"])
def test_a_string_that_is_neither_url_nor_path_is_an_error(url: str) -> None:
    for function in (split, Origin.of):
        with pytest.raises(ValueError, match="is neither a URL nor a path"):
            function(url)


@pytest.mark.parametrize(
    "port", ["65536", "99999", "x", "-1", "+80", "8_0", "80 ", " 80", "٨٠", "²", "8.0", "9" * 6000], ids=ascii
)
def test_invalid_ports_are_errors(port: str) -> None:
    url = f"http://h.example:{port}/"
    for function in (split, Origin.of):
        with pytest.raises(ValueError, match=r"port|digits"):
            function(url)


@pytest.mark.parametrize("url", [None, b"http://h.example/", 1, bytearray(b"x"), ["x"]])
def test_other_types_are_type_errors(url: Any) -> None:
    for function in (split, Origin.of):
        with pytest.raises(TypeError, match=f"must be a str, not {type(url).__name__}"):
            function(url)


@pytest.mark.parametrize("parts", [1, 2, 3, 4])
def test_dot_segments_are_resolved_like_urllib(parts: int) -> None:
    """`urljoin` resolves those of a relative reference, all but empty segments, in the same way."""
    names = ["a", ".", "..", "b"]
    for number in range(len(names) ** parts):
        path = "/" + "/".join(names[number // len(names) ** place % len(names)] for place in range(parts))
        for target in (path, path + "/"):
            assert normal(target) == urljoin("http://h.example", target).removeprefix("http://h.example")


def test_every_escape_has_its_normal_form() -> None:
    for byte in range(256):
        for spelling in (f"/%{byte:02X}", f"/%{byte:02x}"):
            form = normal(spelling + "x")
            assert unquote_to_bytes(form) == bytes((*b"/", byte, *b"x"))
            unreserved = byte < 128 and (chr(byte).isalnum() or chr(byte) in "-._~")
            assert form == (f"/{chr(byte)}x" if unreserved else f"/%{byte:02X}x")


def test_characters_that_cannot_be_sent_are_escaped_one_by_one() -> None:
    assert percent_encode("/ \x00é\udce9\ud800漢/") == "/%20%00%C3%A9%E9%ED%A0%80%E6%BC%A2/"
    assert normal("/\udcff\udbff<>") == "/%FF%ED%AF%BF%3C%3E"


@pytest.mark.parametrize("zeros", [1, 10_000, 1_000_000])
def test_a_port_may_have_leading_zeros(zeros: int) -> None:
    port = "0" * zeros
    assert Origin.of(f"http://garden.example:{port}80/") == ("http", "garden.example", 80)
    assert Origin.of(f"http://garden.example:{port}65535/") == ("http", "garden.example", 65535)
    assert Origin.of(f"http://garden.example:{port}/") == ("http", "garden.example", 0)
    with pytest.raises(ValueError, match="is not a number up to 65535"):
        Origin.of(f"http://garden.example:{port}65536/")


def test_the_origin_of_a_site_is_read_once() -> None:
    assert split("http://once.example/a")[0] is split("http://once.example/b?c")[0]
