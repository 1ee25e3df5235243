"""`read_page`: what a response states about its use, in headers and META tags."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.http import HtmlResponse, Response

from scrapy_norobots.features.usage import PageUsage, read_page
from scrapy_norobots.features.usage.statements import UNREAD, Statement, read

URL = "http://town.example/a/page"


def page(body: str | bytes = b"", **headers: Any) -> list[tuple[str, str, Any, str]]:
    data = body if isinstance(body, bytes) else body.encode()
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    found = read_page(HtmlResponse(URL, body=data, headers=fields), "FooBot/1.0")
    return [(one.kind, one.source, one.value, one.problem) for one in found]


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ({"Content_Usage": "train-ai=n"}, ("content-usage", {"train-ai": False})),
        ({"Content_Usage": ["ai=n", "search=y"]}, ("content-usage", {"ai": False, "search": True})),
        ({"tdm_reservation": "1"}, ("tdm-reservation", True)),
        ({"TDM_Reservation": "0"}, ("tdm-reservation", False)),
        ({"tdm_policy": "https://town.example/p.json"}, ("tdm-policy", "https://town.example/p.json")),
        ({"Link": '<https://a.example/l>; rel="license"'}, ("license", "https://a.example/l")),
        ({"Link": "</l.xml>; type=x; rel=license"}, ("license", "http://town.example/l.xml")),
        ({"Link": '<l>; title="a, b; rel=x"; rel="next License"'}, ("license", "http://town.example/a/l")),
        ({"Link": '<x>; rel=next, <https://a.example/l,m>; rel=license'}, ("license", "https://a.example/l,m")),
        ({"X_Robots_Tag": "noai"}, ("noai", True)),
        ({"X_Robots_Tag": "noindex, NoImageAI"}, ("noimageai", True)),
        ({"X_Robots_Tag": "foobot: noai"}, ("noai", True)),
        # These state nothing.
        *(
            ({"Link": value}, None)
            for value in (
                *("https://a.example/l; rel=license", "<https://a.example/l; rel=license", "rel=license"),
                *('<https://a.example/l>; rel="next"', '<https://a.example/l>; rel="licenses"', "<>", ""),
                *('<https://a.example/l>; title="rel=license"', '<https://a.example/l>; rev="license"'),
                "<https://a.example/l>",
            )
        ),
        *(({"X_Robots_Tag": value}, None) for value in ("barbot: noai", "noais", "max-snippet: noai")),
        ({}, None),
    ],
)  # fmt: skip
def test_headers(headers: Any, found: tuple[str, Any] | None) -> None:
    assert page(**headers) == ([(found[0], "header", found[1], "")] if found else [])


def test_a_license_among_many_links_is_no_refusal() -> None:
    links = 100 * "</style.css>; rel=preload, "
    response = Response(URL, headers={"Link": f"{links}<http://town.example/license>; rel=license"})
    found = read_page(response, "FooBot")
    assert [(one.value, one.text) for one in found] == [
        ("http://town.example/license", "Link: <http://town.example/license>; rel=license")
    ]
    assert PageUsage(None, found).refusal("search") is None


@pytest.mark.parametrize(
    ("tag", "found"),
    [
        ('<meta name="tdm-reservation" content="1">', ("tdm-reservation", True, "")),
        ("<META NAME=TDM-Reservation CONTENT=0>", ("tdm-reservation", False, "")),
        ('<meta name="tdm-reservation" content="all">', ("tdm-reservation", None, "neither 0 nor 1")),
        ('<meta content="https://a.example/p" name="tdm-policy">', ("tdm-policy", "https://a.example/p", "")),
        ('<meta name="tdm-policy" content="/p">', ("tdm-policy", None, "not an absolute URL")),
        ('<meta name="robots" content="noai, noindex">', ("noai", True, "")),
        ('<meta name="ROBOTS" content="NOIMAGEAI">', ("noimageai", True, "")),
        ('<meta name="robots" content="all, noai">', ("noai", True, "")),
        ('<meta name="foobot" content="noai">', ("noai", True, "")),
        # These state nothing.
        ('<meta name="barbot" content="noai">', None),
        ('<meta name="description" content="noai">', None),
        ('<meta property="tdm-reservation" content="1">', None),
        ('<!-- <meta name="robots" content="noai"> -->', None),
        ("<p>noai and tdm-reservation</p>", None),
        ('<meta name="robots" content="index, follow">', None),
        ('<template><meta name="robots" content="noai"></template>', None),
        ('<script>"<meta name=robots content=noai>"</script>', None),
        ('<meta name="robots">noai', None),
        ("<meta content=noai>", None),
    ],
)
def test_meta_tags(tag: str, found: tuple[str, Any, str] | None) -> None:
    expected = [(found[0], "meta", *found[1:])] if found else []
    assert page(f"<html><head>{tag}</head><body>a") == expected
    assert page(f"<body><p>{tag}".encode("utf-16")) == expected
    assert read_page(Response(URL, body=tag.encode()), "FooBot") == ()


def test_a_word_anywhere_in_a_long_tag_is_a_refusal() -> None:
    words = 600 * "a "
    for content in (f"noai {words}", f"{words} NoAI"):
        assert page(f'<meta name=robots content="{content}">') == [("noai", "meta", None, UNREAD)]
        assert page(f'<meta name=description content="{content}">') == []
    assert page(f'<meta name=robots content="{words}"><meta name=a content=noai>') == []


def test_a_page_without_the_words_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_norobots.features.usage.root_of", lambda response: 1 / 0)
    assert page("<html><head><meta name=robots content=noindex><title>a</title></head>") == []
    assert page(b"%PDF-1.7\n\0") == []


def test_the_object_of_a_page_finds_a_refusal_and_can_be_pickled() -> None:
    line = read("content-signal", "robots.txt", "Content-Signal: search=no", "search=no", line=2)
    tag = Statement("noai", "meta", "<meta>", True)
    usage = PageUsage((line,), (tag,))
    assert usage.refusal("search") is line
    assert usage.refusal("ai-train") is tag
    assert usage.refusal("ai-input") is None
    assert PageUsage(None, (tag,)).refusal("search") is None
    for asked in (usage, PageUsage(None, ())):
        with pytest.raises(ValueError, match="unknown purpose 'train-ai'; choose from search, ai-input, ai-"):
            asked.refusal("train-ai")
    with pytest.raises(ValueError, match="unknown purpose 'train-ai'"):
        line.says("train-ai")
    assert pickle.loads(pickle.dumps(usage)) == usage


VALUES = st.sampled_from(
    ["<", ">", ";", ",", '"', "rel", "=", "license", "\\", " ", "noai", ":", "http://[", "a"]
)


@given(
    st.lists(VALUES, max_size=12).map("".join) | st.text("\x80\xff\t<>;,=", max_size=20),
    st.binary(max_size=40),
)
def test_any_response_is_read_without_an_exception(value: str, body: bytes) -> None:
    names = ("Link", "Content_Usage", "tdm_reservation", "tdm_policy", "X_Robots_Tag")
    found = page(
        b"<meta name=robots content=noai>" + body, **{name: value.encode("latin-1") for name in names}
    )
    assert all(kind for kind, *_ in found)
