"""The META tags of an HTML page, of whatever bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from lxml import etree
from parsel import Selector

if TYPE_CHECKING:
    from scrapy.http import HtmlResponse

# Elements whose content is plain text or for scripts, so a tag in it does not apply. Parsers differ on some.
_INERT = ("template", "textarea", "title", "xmp", "iframe", "noembed", "noframes")


def meta_tags(root: etree._Element) -> Iterator[tuple[str, str]]:
    """Yield name and content of each META tag with a name, in head and body, in the order of the page."""
    inert = 0
    for tree in (root, *root.itersiblings(tag=etree.Element)):  # its siblings come after </html>
        for event, element in etree.iterwalk(tree, events=("start", "end"), tag=("meta", *_INERT)):
            if element.tag != "meta":
                inert += 1 if event == "start" else -1
            elif event == "start" and not inert and (name := element.get("name")):
                yield name, element.get("content", "")


def root_of(response: HtmlResponse) -> etree._Element:
    """Parse a page; the callback uses the same parsed page."""
    with suppress(Exception):  # of many kinds: a page may declare any of Python's codecs
        if response.text.lower().count("<meta") >= response.body.lower().count(b"<meta"):
            return response.selector.root
    return Selector(text=response.body.decode("latin-1"), type="html").root
