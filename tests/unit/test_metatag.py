"""Robots META tags and ``X-Robots-Tag`` in any page."""

from __future__ import annotations

import codecs
import encodings.aliases
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.http import HtmlResponse, Response, TextResponse, XmlResponse

from scrapy_norobots.features.metatag import read_response
from scrapy_norobots.standard import RobotsMeta

URL = "http://town.example/"
TAG = "<meta name=robots content=noindex>"


def html(body: str | bytes, **headers: Any) -> HtmlResponse:
    return HtmlResponse(URL, body=body.encode() if isinstance(body, str) else body, headers=headers)


def forbids(response: Response, robot: str = "Tamarin") -> str:
    """Return the directives of a response that forbid something, with a blank between them."""
    meta = read_response(response, robot)
    return " ".join(["noindex"] * (not meta.index) + ["nofollow"] * (not meta.follow))


PAGES = {
    "head": (f"<html><head>{TAG}</head><body></body></html>", "noindex"),
    "nothing but the tag": (TAG, "noindex"),
    "body": (f"<html><head></head><body><p>x{TAG}</body></html>", "noindex"),
    "after the end": (f"<html><body></body></html>{TAG}", "noindex"),
    "a comment after the end": (f"<html></html><!-- x -->{TAG}", "noindex"),
    "two pages in one": (f"<html><body><p></p></body></html><html><head>{TAG}</head></html>", "noindex"),
    "capitals": ("<META NAME='ROBOTS' CONTENT='NoFollow'>", "nofollow"),
    "content first": ('<meta content="none" name="robots">', "noindex nofollow"),
    "blanks and lines": (
        "<meta\n\tname = \n'robots'\n content\t=\n\" noindex ,\n nofollow \">",
        "noindex nofollow",
    ),
    "no quotes": ("<meta name=robots content=noindex,nofollow>", "noindex nofollow"),
    "mixed quotes": ("<meta name='robots' content=\"noindex\">", "noindex"),
    "blanks in the name": ("<meta name=' robots ' content=noindex>", "noindex"),
    "entities": ("<meta name=robots content='no&#105;ndex&#44;nofollow'>", "noindex nofollow"),
    "a > within": ("<meta name=robots data-x='a>b' content='noindex'>", "noindex"),
    "XHTML": (
        (
            "<?xml version='1.0' encoding='utf-8'?><!DOCTYPE html><html xmlns='http://www.w3.org/1999/xhtml'>"
            "<head><meta name='robots' content='noindex' /></head><body/></html>"
        ),
        "noindex",
    ),
    "noscript": (f"<head><noscript>{TAG}</noscript></head>", "noindex"),
    "two tags": (
        "<meta name=robots content=nofollow><p><meta name=robots content=noindex>",
        "noindex nofollow",
    ),
    "two that contradict": (f"{TAG}<meta name=robots content='index,follow'>", "noindex"),
    "broken tags around": (f"<html><<p/ <div title='x<b></i></p>'>{TAG}<", "noindex"),
    "no end": (f"<html><head><title>x</title>{TAG}<script>", "noindex"),
    "tables": (f"<table>{TAG}<tr>", "noindex"),
    "after a template": (f"<template><p></template>{TAG}", "noindex"),
    "zeros": (f"<p>\0</p>{TAG}", "noindex"),
    "our own name": ("<meta name=Tamarin content=nofollow>", "nofollow"),
    "part of our name": ("<meta name=tama content=nofollow>", "nofollow"),
    "a name in quotes": (
        '<meta x=\'name=a\' data-name="title" name="robots" content="nofollow">',
        "nofollow",
    ),
    "quotes in quotes": ("<meta title='it is \"so\" > that' name=robots content=nofollow>", "nofollow"),
    "a name in the content": ('<meta content="nofollow, name=x" name="robots">', "nofollow"),
    "a quote without a pair": ('<meta x=a" y=">" name="robots" content="nofollow">', "nofollow"),
    "an apostrophe": ('<meta title=it\'s name=robots content="nofollow">', "nofollow"),
    "a tag in a comment": ('<!-- <meta content=" --><meta content="nofollow > x" name="robots">', "nofollow"),
    "a tag in a script": (
        "<script>s='<meta content=it\"s'</script><meta content='nofollow >' name=robots>",
        "nofollow",
    ),
    "our own name with a version": ('<meta name="Tamarin/2.0" content="nofollow">', "nofollow"),
    "another's name": ("<meta name=potto content=none>", ""),
    "comment": (f"<!-- {TAG} -->", ""),
    "conditional comment": (f"<!--[if IE]>{TAG}<![endif]-->", ""),
    "script": (f"<script>document.write('{TAG}')</script>", ""),
    "style": (f"<style>{TAG}</style>", ""),
    "template": (f"<template><div>{TAG}</div></template>", ""),
    "template in a template": (f"<template><template></template>{TAG}</template>", ""),
    "text area": (f"<textarea>{TAG}</textarea>", ""),
    "title": (f"<title>{TAG}</title>", ""),
    "iframe": (f"<iframe>{TAG}</iframe>", ""),
    "escaped": ("<p>&lt;meta name=robots content=noindex&gt;</p>", ""),
    "an attribute": (f'<p title="{TAG}">', ""),
    "property": ("<meta property=robots content=noindex>", ""),
    "another element": ("<input name=robots content=noindex value=noindex>", ""),
    "no content": ("<meta name=robots>", ""),
    "no name": ("<meta content=noindex><p>name=robots</p>", ""),
    "empty page": ("", ""),
    "a long tag of another name": (f'<meta name=state content="{"nofollow, " * 2_000}">', ""),
    "a long tag": (f'<meta name=robots content="{"index, " * 2_000}">', ""),
    "a long tag that forbids": (f'<meta name=robots content="{"index, " * 2_000}nofollow">', "nofollow"),
    "a long tag with all": (f'<meta name=robots content="{"all, " * 2_000}noindex">', "noindex"),
}


@pytest.mark.parametrize("name", PAGES)
def test_each_tag_of_a_page_is_read(name: str) -> None:
    body, expected = PAGES[name]
    assert forbids(html(body)) == expected


ENCODED = {
    "UTF-8 with a mark": (codecs.BOM_UTF8, "utf-8", None),
    "UTF-16 LE with a mark": (codecs.BOM_UTF16_LE, "utf-16-le", None),
    "UTF-16 BE with a mark": (codecs.BOM_UTF16_BE, "utf-16-be", None),
    "UTF-16 LE by its header": (b"", "utf-16-le", "utf-16-le"),
    "UTF-16 BE by its header": (b"", "utf-16-be", "utf-16-be"),
    "UTF-32 with a mark": (codecs.BOM_UTF32_LE, "utf-32-le", None),
    "UTF-7 by its header": (b"", "utf-7", "utf-7"),
    "EBCDIC by its header": (b"", "cp037", "cp037"),
    "Shift JIS by its header": (b"", "shift_jis", "shift_jis"),
    "ISO-2022-JP by its header": (b"", "iso2022_jp", "iso-2022-jp"),
    "KOI8-R by its header": (b"", "koi8-r", "koi8-r"),
    "a charset that does not exist": (b"", "utf-8", "no-such-thing"),
    "a charset that is none": (b"", "utf-8", "base64"),
    "a charset that is another one": (b"", "utf-8", "utf-16"),
}


@pytest.mark.parametrize("name", ENCODED)
@pytest.mark.parametrize("text", ["", "Обезьяны", "猿"])
def test_pages_in_any_encoding_are_read(name: str, text: str) -> None:
    mark, codec, charset = ENCODED[name]
    body = mark + f"<html><head><title>{text}</title>{TAG.upper()}</head>".encode(codec, "ignore")
    headers = {"Content-Type": f"text/html; charset={charset}"} if charset else {}
    assert forbids(html(body, **headers)) == "noindex"


@pytest.mark.parametrize(
    "charset", ["utf-8", "windows-1251", "shift_jis", "utf-7", "undefined", "no such codec"]
)
def test_a_page_may_declare_any_charset(charset: str) -> None:
    body = f"<meta charset='{charset}'>{TAG}".encode() + b"<p>\xce\xe1\xff\x81</p>"
    assert forbids(html(body)) == "noindex"


def test_text_that_cannot_be_encoded_is_read() -> None:
    body = TAG.encode() + b"+2AA-"  # half of a surrogate pair, in UTF-7
    assert forbids(html(body, **{"Content-Type": "text/html; charset=utf-7"})) == "noindex"


def test_a_large_page_is_read() -> None:
    rows = '<tr><td name="n1"><a href="/a?b=c">name = robot</a></td></tr>\n' * 85_000
    page = html(f"<html><body><table>{rows}</table></body></html>")
    assert len(page.body) > 5_000_000
    assert forbids(page) == ""
    assert page._cached_selector is None
    assert forbids(html(f"{rows}{TAG}")) == "noindex"


@pytest.mark.parametrize("tags", ["<div>", "<b>", "<span>", "<font>", "<ul><li>", "<table><tr><td>"])
def test_a_tag_below_any_number_of_open_elements_is_not_missed(tags: str) -> None:
    for depth in (200, 600, 1_000, 2_000, 2_045, 2_046, 2_047, 20_000):
        assert forbids(html(f"<html><body>{tags * depth}{TAG}")).startswith("noindex"), depth


@pytest.mark.parametrize("junk", ["", "</x>" * 1_000])
def test_a_page_that_the_parser_did_not_read_to_its_end_says_none(junk: str) -> None:
    page = html(f"<meta name=robots content=all><body>{junk}{'<div>' * 20_000}")
    is_read = sum(1 for _ in page.selector.root.iter("div")) == 20_000  # by some versions of libxml2
    assert forbids(page) == ("" if is_read else "noindex nofollow")


def test_a_deep_page_that_is_read_to_its_end_says_what_it_says() -> None:
    assert forbids(html(f"{'<div>' * 1_500}{'</div>' * 1_500}</x>{TAG}")) == "noindex"
    assert forbids(html("<div>" * 20_000)) == ""


@pytest.mark.parametrize(
    "body",
    [b"<html><a href=/robots.txt>robots</a> noindex nofollow", b"%PDF-1.7\n\0\xff" + 5_000 * b"<a \xff>"],
    ids=["a page about robots", "a PDF that the site calls HTML"],
)
def test_a_page_without_a_tag_is_not_parsed(body: bytes) -> None:
    page = html(body)
    assert forbids(page) == ""
    assert page._cached_selector is None


def test_a_page_with_a_tag_is_parsed_once_for_the_callback_too() -> None:
    page = html(TAG)
    assert forbids(page) == "noindex"
    assert page._cached_selector is page.selector


@pytest.mark.parametrize(
    "body",
    [
        b"name=" + b" " * 3_000_000 + b">",
        b"name=" * 600_000,
        b"name='\" " * 400_000,
        b"<meta name=robots content='" + b"noindex " * 400_000 + b"'>",
        b"<meta name=robots content='" + b"a" * 3_000_000 + b" noindex'>",
        b"<meta name=robots content='" + b": " * 1_500_000 + b" noindex'>",
        b"<meta name=robots content='a" + b" " * 3_000_000 + b"noindex'>",
        b"<template>" * 1_000 + TAG.encode() * 60_000,
        b"<meta name=robots content=noindex>" * 60_000,
        b"<div>" * 500_000 + TAG.encode(),
    ],
    ids=range(10),
)
def test_hostile_pages_take_little_time(body: bytes) -> None:
    read_response(html(body), "Tamarin")  # quadratic time would take minutes


@pytest.mark.parametrize(
    "response",
    [
        Response(URL, body=b"\x89PNG" + TAG.encode()),
        TextResponse(URL, body=TAG.encode()),
        XmlResponse(URL, body=f"<html>{TAG}</html>".encode()),
    ],
    ids=["binary", "text", "XML"],
)
def test_only_the_header_of_other_types_is_read(response: Response) -> None:
    assert forbids(response) == ""
    response.headers["X-Robots-Tag"] = ["nofollow", "tamarin: noindex"]
    assert forbids(response) == "noindex nofollow"


PIECES = st.sampled_from(
    [TAG, "<meta name=", "robots", " content='", "noindex", "'>", "<!--", "-->",
     "<template>", "</template>", "&#"]
)  # fmt: skip


BYTES = st.one_of(
    st.binary(),
    st.lists(st.one_of(PIECES.map(str.encode), st.binary(max_size=9))).map(b"".join),
    st.builds(
        lambda texts, codec: "".join(texts).encode(codec),
        st.lists(st.one_of(PIECES, st.text(max_size=9))),
        st.sampled_from(["utf-8", "utf-16", "utf-32", "utf-7"]),
    ),
)


CHARSETS = st.sampled_from(["", *sorted(set(encodings.aliases.aliases.values()))])


@given(body=BYTES, charset=CHARSETS, header=st.binary(), robot=st.text())
def test_no_tag_or_header_raises(body: bytes, charset: str, header: bytes, robot: str) -> None:
    headers = {"Content-Type": f"text/html; charset={charset}", "X-Robots-Tag": header}
    assert isinstance(read_response(html(body, **headers), robot), RobotsMeta)


@given(st.binary(), st.binary())
def test_a_tag_is_found_in_any_text(before: bytes, after: bytes) -> None:
    markup = b"<>&\0"  # what could change the meaning of the tag
    around = [bytes(byte for byte in noise if byte not in markup) for noise in (before, after)]
    body = b"<html>" + around[0] + f"<p>{TAG}".encode() + around[1]
    assert forbids(html(body, **{"Content-Type": "text/html; charset=latin-1"})) == "noindex"


def test_a_name_of_several_words_is_read_whole() -> None:
    page = HtmlResponse("http://town.example/", body=b'<html><meta name="title foo" content="nofollow">')
    assert not read_response(page, "Title Foo Bot").follow


@pytest.mark.parametrize(("tag", "times"), [(b"<meta name=x>", 1_001), (b"<meta itemprop=x>", 10_001)])
def test_too_many_tags_forbid_everything(tag: bytes, times: int) -> None:
    body = b"<html><head>" + tag * times + b'<meta name=robots content="index">'
    page = read_response(HtmlResponse("http://town.example/", body=body), "Tamarin")
    assert not page.index
    assert not page.follow
    assert "more than 1000 META tags" in (page.nofollow_by or "")


def test_tags_without_a_name_are_not_counted() -> None:
    items = b"<meta itemprop=price content=1>" * 1_001
    page = HtmlResponse("http://town.example/", body=b"<html><meta name=robots content=noindex>" + items)
    meta = read_response(page, "Tamarin")
    assert meta.noindex_by == '<meta name="robots" content="noindex">'
    assert meta.follow
