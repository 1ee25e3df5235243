"""`EarlyDrops`: drop forbidden requests when they are scheduled, before they are in a queue.

This must make no difference to the crawl while the rules in memory are valid. So it does nothing if an
errback or a component that is not Scrapy's own could see what is raised, or could change a request first.
"""

from __future__ import annotations

from functools import cached_property

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.dupefilters import BaseDupeFilter

from scrapy_norobots.events import Core, Events
from scrapy_norobots.question import is_overridden
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.settings import Config
from scrapy_norobots.standard import Decision

_SCRAPYS_OWN = "scrapy.downloadermiddlewares."
_ONLY_DROPS = "scrapy.downloadermiddlewares.offsite"


def subscribe(crawler: Crawler, config: Config, events: Events) -> None:
    """Drop forbidden requests when they are scheduled, except in a dry run, and if the middleware is ours."""

    def opened(core: Core) -> None:
        if core.middleware is not None:
            events.scheduled.connect(EarlyDrops(crawler, core).schedule)

    if not config.dry_run:
        events.opened.connect(opened)


class EarlyDrops:
    """Drops requests without an errback that rules in memory forbid, as the middleware would later."""

    def __init__(self, crawler: Crawler, core: Core) -> None:
        self._crawler = crawler
        self._core = core

    @cached_property
    def _duplicates(self) -> BaseDupeFilter | None:
        """The scheduler's filter; None if requests cannot be dropped when they are scheduled."""
        chain = compat.downloader_middlewares(self._crawler)
        middleware = self._core.middleware
        can_drop = (
            middleware in chain
            and all(
                type(one).__module__ == _ONLY_DROPS or not hasattr(one, "process_request")
                for one in chain[: chain.index(middleware)]
            )
            and all(
                type(one).__module__.startswith(_SCRAPYS_OWN) or not hasattr(one, "process_exception")
                for one in chain
            )
        )
        return compat.dupefilter(self._crawler) if can_drop else None

    def schedule(self, request: Request) -> None:
        """Drop a request that is being scheduled, or do nothing.

        An origin that is temporarily closed may be open when the request is sent, so it drops nothing.
        """
        if request.errback is not None or self._duplicates is None or is_overridden(request):
            return
        try:
            question = self._core.ask(request)
        except ValueError:
            return
        if isinstance(question, Decision):
            return
        access = self._core.origins.get(question.origin)
        if access is None or access.rules is None or access.temporary or not access.is_ready(question.robot):
            return
        decision = question.forbidden_by(access)
        if decision is not None and (request.dont_filter or not self._duplicates.request_seen(request)):
            compat.stats(self._crawler).inc_value("norobots/forbidden_early")
            self._core.drop(request, question, decision, access)
