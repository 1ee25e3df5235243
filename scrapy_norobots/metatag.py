"""`RobotsMetaMiddleware`: pages that ask robots not to index them, or not to follow their links, are obeyed.

Each page's robots META tags and ``X-Robots-Tag`` headers (M1 to M4) are read before its callback runs, which
finds them in ``response.meta["robots_meta"]``. Of what the callback yields, a page's ``nofollow`` drops the
requests, its ``noindex`` the items. A page without such a tag is not parsed, and no page, whatever its bytes,
raises anything here.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from lxml import etree
from parsel import Selector
from scrapy import Request
from scrapy.exceptions import NotConfigured
from scrapy.http import HtmlResponse

from scrapy_norobots.components import check_place
from scrapy_norobots.identity import Identity
from scrapy_norobots.overrides import is_overridden
from scrapy_norobots.settings import MetaConfig
from scrapy_norobots.standard.decision import printable
from scrapy_norobots.standard.meta import RobotsMeta, fold, wanted

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response

logger = logging.getLogger(__name__)

# Elements whose content is text, or is kept for scripts: a tag in there is none. Parsers differ on some.
_INERT = ("template", "textarea", "title", "xmp", "iframe", "noembed", "noframes")

# A META tag, in lower case, that is plainly written: a few attributes, and quotes only around values.
_VALUE = rb"""(?:"[^"]*"|'[^']*'|[^\s"'>][^\s>]*)"""
_META = re.compile(rb"<meta(?=[\s/>])(?:[\s/]+[^\s=>/\"']+(?:\s*=\s*" + _VALUE + rb")?){0,20}[\s/]*>")
# Whatever may be the value of its name, and a name that means just what it says.
_NAME = re.compile(rb"name\s*=\s*(" + _VALUE + rb")")
_PLAIN = re.compile(rb"[\w.: -]*")

# How many META tags a page may have, and how long they may be, in characters, so that they are read.
_TAGS_MAX = 1_000
_CONTENT_MAX = 10_000
_TOO_MANY = f"more than {_TAGS_MAX} META tags, or one of more than {_CONTENT_MAX} characters"


class RobotsMetaMiddleware:
    """Spider middleware that obeys robots META tags and ``X-Robots-Tag`` headers (M1 to M4).

    Its order is 100, close to the engine, so that it sees all that a callback yields. Enabled by
    ``NOROBOTS_META``. Start requests pass, since they come from no page. So do requests with
    ``dont_obey_robotstxt`` in their meta, and items of pages that were requested with it.
    """

    def __init__(self, crawler: Crawler) -> None:
        """Raise `NotConfigured` if `NOROBOTS_META` is false, `ValueError` for a bad setting."""
        self._config = MetaConfig.from_settings(crawler.settings)
        if not self._config.obey:
            raise NotConfigured
        assert crawler.stats is not None  # made before any middleware
        self._crawler = crawler
        self._stats = crawler.stats
        self._identity = Identity(crawler, self._config.robot)
        # What errbacks yield passes: their responses are not in here, as no callback got them. The copy in a
        # response's meta would not do, for spiders hand meta on from page to page.
        self._pages: WeakKeyDictionary[Response, RobotsMeta] = WeakKeyDictionary()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RobotsMetaMiddleware:
        """Return the middleware of a crawler.

        Raises `NotConfigured` if ``NOROBOTS_META`` is false, `ValueError` if a setting is invalid or the
        middleware is in another setting than ``SPIDER_MIDDLEWARES``.
        """
        check_place(crawler.settings, RobotsMetaMiddleware, "SPIDER_MIDDLEWARES")
        return cls(crawler)

    def process_spider_input(self, response: Response, spider: Spider | None = None) -> None:
        """Set ``response.meta["robots_meta"]`` to the `RobotsMeta` of a page.

        `spider` is not used, here and below: older Scrapy versions pass it.
        """
        assert response.request is not None  # the engine sets it
        page = read_response(response, self._identity.robot(response.request))
        response.meta["robots_meta"] = self._pages[response] = page

    def process_spider_output(
        self, response: Response, result: Iterable[Any], spider: Spider | None = None
    ) -> Iterator[Any]:
        """Yield what a callback yields, except for the requests and items that the page forbids."""
        return (each for each in result if self._passes(each, response))

    async def process_spider_output_async(
        self, response: Response, result: AsyncIterator[Any], spider: Spider | None = None
    ) -> AsyncIterator[Any]:
        """Do the same for an asynchronous callback."""
        async for each in result:
            if self._passes(each, response):
                yield each

    def _passes(self, each: Any, response: Response) -> bool:
        page = self._pages.get(response)
        if page is None or each is None:
            return True
        if isinstance(each, Request):
            if page.follow or not self._config.follow or each.meta.get("dont_obey_robotstxt"):
                return True
            self._stats.inc_value("norobots/meta/nofollow")
            self._log_drop("followed", each, page.nofollow_by, response)
        else:
            assert response.request is not None  # the engine sets it
            if page.index or not self._config.index or is_overridden(response.request):
                return True
            self._stats.inc_value("norobots/meta/noindex")
            self._log_drop("indexed", f"an item ({type(each).__name__})", page.noindex_by, response)
        return self._config.dry_run

    def _log_drop(self, what: str, which: object, by: str | None, response: Response) -> None:
        verb = "Would not be" if self._config.dry_run else "Not"
        extra = {"spider": self._crawler.spider}
        logger.debug("%s %s: %s (%s of %s)", verb, what, which, by, printable(response.url), extra=extra)


def read_response(response: Response, robot: str | bytes) -> RobotsMeta:
    """Read what a response asks of a robot, given as a name or a whole User-Agent header.

    A page with more META tags than any author writes asks for NOINDEX and NOFOLLOW: reading them all would
    hold up the crawl, and leaving some out might allow what they forbid.
    """
    headers = [value.decode("latin-1") for value in response.headers.getlist("X-Robots-Tag")]
    if not isinstance(response, HtmlResponse) or not may_have_tags(response.body, robot):
        return RobotsMeta.read(robot, (), headers)
    tags = list(islice(meta_tags(_root(response)), _TAGS_MAX + 1))
    folded = fold(robot)
    if len(tags) > _TAGS_MAX or any(
        len(content) > _CONTENT_MAX and wanted(name, folded) for name, content in tags
    ):
        return RobotsMeta(noindex_by=_TOO_MANY, nofollow_by=_TOO_MANY)
    return RobotsMeta.read(robot, tags, headers)


def may_have_tags(body: bytes, robot: str | bytes) -> bool:
    """Whether a page may have a META tag that is read, as its bytes tell without parsing.

    Looks at the names of its META tags, and errs on the side of parsing: where a tag is not plainly written,
    or the page is not in an encoding like ASCII, bytes tell too little.
    """
    if b"\0" in body or b"<" not in body:
        return True
    plain = body.lower()
    folded = fold(robot)
    others: set[bytes] = set()
    place = plain.find(b"<meta")
    while place >= 0:
        tag = _META.match(plain, place)
        if tag is None:
            return True
        for quoted in _NAME.findall(tag[0]):
            name = quoted.strip(b"\"'")
            if name in others:
                continue
            if len(others) >= _TAGS_MAX or not _PLAIN.fullmatch(name) or wanted(name.decode(), folded):
                return True
            others.add(name)
        place = plain.find(b"<meta", place + 1)
    return False


def meta_tags(root: etree._Element) -> Iterator[tuple[str, str]]:
    """Yield the name and content of each META tag of a parsed page, head and body, in order."""
    inert = 0
    for tree in (root, *root.itersiblings(tag=etree.Element)):  # what comes after </html> is beside it
        for event, element in etree.iterwalk(tree, events=("start", "end"), tag=("meta", *_INERT)):
            if element.tag != "meta":
                inert += 1 if event == "start" else -1
            elif event == "start" and not inert:
                yield element.get("name", ""), element.get("content", "")


def _root(response: HtmlResponse) -> etree._Element:
    """Parse a page, once for us and the callback."""
    try:
        return response.selector.root
    except Exception:  # of many kinds: a page may claim to be in any of Python's codecs
        return Selector(text=response.body.decode("latin-1"), type="html").root
