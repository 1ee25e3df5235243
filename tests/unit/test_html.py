"""`html`: META tags of pages in any encoding."""

from __future__ import annotations

import pytest
from scrapy.http import HtmlResponse

from scrapy_norobots.scrapy_api.html import meta_tags, root_of


@pytest.mark.parametrize("charset", ["utf-8", "utf-7", "undefined", "no such codec"])
def test_tags_are_found_whatever_encoding_a_page_declares(charset: str) -> None:
    body = f'<meta charset="{charset}"><meta name=a content=b><textarea><meta name=c></textarea>'.encode()
    response = HtmlResponse("http://town.example/", body=body)
    assert list(meta_tags(root_of(response))) == [("a", "b")]
