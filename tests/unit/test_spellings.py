"""`scrapy_norobots.rules.spellings` without a crawl."""

from __future__ import annotations

import pytest

from scrapy_norobots.rules import spellings


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/a?b=c", {"/a?b=c"}),
        ("/a;", {"/a;", "/a"}),
        ("/a;?b;", {"/a;?b;", "/a?b;"}),
        ("/a;?b;?c", {"/a;?b;?c", "/a?b;?c"}),
        ("/a;b/c;d=1;e?f", {"/a;b/c;d=1;e?f", "/a;b/c?f"}),
        ("/;a", {"/;a", "/"}),
        ("/a?b;", {"/a?b;"}),
        ("/wow%21", {"/wow%21"}),
        ("/x/../a", {"/x/../a", "/a"}),
        ("/x/./%62/..?/..", {"/x/./%62/..?/..", "/x?/.."}),
        ("/../..", {"/../..", "/"}),
        ("/../../a", {"/../../a", "/a"}),
        ("/.well-known", {"/.well-known"}),
    ],
)
def test_spellings_include_those_that_handlers_send(
    target: str, expected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spellings, "_aiohttp_url", lambda: None)
    assert set(spellings.spellings_of(target)) == expected


def test_what_aiohttp_decodes_is_a_spelling_too() -> None:
    pytest.importorskip("yarl")
    assert "/wow!" in spellings.spellings_of("/wow%21")
