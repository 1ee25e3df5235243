"""`RobotsMetaMiddleware`: a spider middleware that obeys robots META tags and ``X-Robots-Tag`` headers.

The tags and headers (M1 to M4) are read before the callback of a page runs, and the callback finds them in
``response.meta["robots_meta"]``. A page's ``nofollow`` drops the requests that its callback yields, its
``noindex`` drops the items. Most pages without META tags are not parsed. No page raises an exception here.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

from lxml import etree
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import HtmlResponse, Response

from scrapy_norobots import values
from scrapy_norobots.checks import check_components, enabled_keys
from scrapy_norobots.events import Events
from scrapy_norobots.question import is_overridden
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.scrapy_api.html import meta_tags, root_of
from scrapy_norobots.scrapy_api.identity import Identity
from scrapy_norobots.scrapy_api.log import crawl_log
from scrapy_norobots.settings import Config, Section, setting
from scrapy_norobots.standard.decision import printable, without_userinfo
from scrapy_norobots.standard.meta import RobotsMeta

logger = logging.getLogger(__name__)

# The largest number of META tags that are read, and of "<meta" in a page that is parsed.
_TAGS_MAX, _WRITTEN_MAX = 1_000, 10_000
_TOO_MANY = f"more than {_TAGS_MAX} META tags"
_CUT_OFF = "META tags in a page that the HTML parser did not read to its end"


@dataclass(frozen=True, slots=True)
class MetaConfig(Section):
    """The settings of one crawl for robots META tags. `obey` may be the only word of them that is obeyed."""

    obey: bool | str = setting("NOROBOTS_META")
    dry_run: bool = setting("NOROBOTS_DRY_RUN")
    robot: str | None = setting("ROBOTSTXT_USER_AGENT", values.robot)


def subscribe(crawler: Crawler, config: Config, events: Events) -> None:
    """Warn if a crawl wants `RobotsMetaMiddleware` and does not have it. It needs no events."""
    if MetaConfig.from_settings(crawler.settings).obey and not enabled_keys(
        crawler.settings, "SPIDER_MIDDLEWARES", RobotsMetaMiddleware
    ):
        logger.warning(
            "NOROBOTS_META has no effect: scrapy_norobots.RobotsMetaMiddleware is not in SPIDER_MIDDLEWARES. "
            'The add-on puts it there: ADDONS = {"scrapy_norobots.Addon": 500}'
        )


class RobotsMetaMiddleware:
    """Spider middleware that obeys robots META tags and ``X-Robots-Tag`` headers (M1 to M4).

    Its order is 100, close to the engine, so that it sees all that a callback yields. Enabled by
    ``NOROBOTS_META``. Start requests pass, since they come from no page. So do requests with
    ``dont_obey_robotstxt`` in their meta, and items of pages that were requested with it.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._config = MetaConfig.from_settings(crawler.settings)
        if not self._config.obey:
            raise NotConfigured
        self._log = crawl_log(crawler, logger)
        self._stats = compat.stats(crawler)
        self._identity = Identity(crawler, self._config.robot)
        # The output of errbacks passes: their responses are not in this mapping. The copy in a response's
        # meta cannot serve instead, because spiders copy meta from page to page.
        self._pages: WeakKeyDictionary[Response, RobotsMeta] = WeakKeyDictionary()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RobotsMetaMiddleware:
        """Return the middleware of a crawler.

        Raises `NotConfigured` if ``NOROBOTS_META`` is false or a subclass is enabled too, and `ValueError` if
        a setting is invalid or the middleware is in another setting than ``SPIDER_MIDDLEWARES``.
        """
        check_components(crawler, cls, RobotsMetaMiddleware, "SPIDER_MIDDLEWARES")
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
        assert response.request is not None  # the engine sets it
        if isinstance(each, Request):
            kind, stat, source = "Request", "norobots/meta/nofollow", page.nofollow_by
            is_obeyed = self._config.obey in (True, "nofollow") and not each.meta.get("dont_obey_robotstxt")
        else:
            kind, stat, source = "Item", "norobots/meta/noindex", page.noindex_by
            is_obeyed = self._config.obey in (True, "noindex") and not is_overridden(response.request)
        if source is None or not is_obeyed:
            return True
        self._stats.inc_value(stat)
        self._log(
            logging.DEBUG,
            "%s %s by %s: %s (%s of %s)",
            kind,
            "would be dropped" if self._config.dry_run else "dropped",
            stat.rpartition("/")[2],
            without_userinfo(str(each)) if isinstance(each, Request) else type(each).__name__,
            source,
            printable(without_userinfo(response.url)),
        )
        return self._config.dry_run


def read_response(response: Response, robot: str | bytes) -> RobotsMeta:
    """Return what a response asks of `robot`, a name or a whole User-Agent header.

    If not all META tags can be read, that means NOINDEX, NOFOLLOW. So as not to block the crawl, 1,000 tags
    with a name are read, and a page with more than 10,000 of any kind is not parsed.
    """
    headers = [value.decode("latin-1") for value in response.headers.getlist("X-Robots-Tag")]
    tags: list[tuple[str, str]] = []
    problem = None
    if isinstance(response, HtmlResponse):
        written = response.body.replace(b"\0", b"").lower().count(b"<meta")  # without the NULs of UTF-16
        if written > _WRITTEN_MAX:
            problem = _TOO_MANY
        elif written or b"<" not in response.body:  # it may be in an encoding that does not extend ASCII
            root = root_of(response)
            tags = list(islice(meta_tags(root), _TAGS_MAX + 1))
            problem = _CUT_OFF if _is_cut_off(root) else _TOO_MANY if len(tags) > _TAGS_MAX else None
    if problem:
        return RobotsMeta(noindex_by=problem, nofollow_by=problem)
    return RobotsMeta.read(robot, tags, headers)


def _is_cut_off(root: etree._Element) -> bool:
    """Return whether the parser stopped within the page, as libxml2 does below about 2,000 open elements."""
    parser = root.getroottree().parser
    # Only then it reports a fatal error. Some versions report one for a page without elements too.
    return len(root) > 0 and parser is not None and bool(parser.error_log.filter_from_fatals())
