"""`scrapy_norobots.compat` without a crawl."""

from __future__ import annotations

import pytest

from scrapy_norobots import compat


@pytest.mark.parametrize(
    ("target", "spellings"),
    [
        ("/a?b=c", {"/a?b=c"}),
        ("/a;", {"/a;", "/a"}),
        ("/a;?b;", {"/a;?b;", "/a?b"}),
        ("/wow%21", {"/wow%21"}),
    ],
)
def test_spellings_include_those_that_handlers_send(
    target: str, spellings: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compat, "_aiohttp_url", lambda: None)
    assert set(compat.spellings(target)) == spellings


def test_what_aiohttp_decodes_is_a_spelling_too() -> None:
    pytest.importorskip("yarl")
    assert "/wow!" in compat.spellings("/wow%21")
