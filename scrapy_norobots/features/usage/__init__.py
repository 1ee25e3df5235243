"""What sites and pages state about the use of pages: read, recorded, and obeyed on request.

`statements` reads one statement. `robots` reads those of a robots.txt, and decides by them; `pages` reads
those of a response.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from scrapy import signals

from scrapy_norobots.events import Core, Events, Load
from scrapy_norobots.features.usage.pages import PageUsage, read_page
from scrapy_norobots.features.usage.robots import UsageStatements
from scrapy_norobots.features.usage.statements import check_purpose, stated
from scrapy_norobots.load.fetch import ROBOTS_DOWNLOAD
from scrapy_norobots.rules.parser import Statements, statements_of
from scrapy_norobots.settings import SETTINGS, Section, error, setting
from scrapy_norobots.standard import Decision

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_norobots.rules.access import Access
    from scrapy_norobots.settings import Config


def _purposes(value: object) -> tuple[str, ...]:
    purposes: tuple[str, ...] = SETTINGS["NOROBOTS_PURPOSES"].read(value)
    for purpose in purposes:
        check_purpose(purpose)
    return purposes


@dataclass(frozen=True, slots=True)
class UsageConfig(Section):
    """The settings of one crawl for statements about use; with `purposes`, they are read in any case."""

    usage: bool = setting("NOROBOTS_USAGE")
    purposes: tuple[str, ...] = setting("NOROBOTS_PURPOSES", _purposes)

    def reader(self) -> Callable[[bytes], Statements] | None:
        """Return what reads the statements of a robots.txt; None if the settings do not ask for it.

        Raises `ValueError`, with the name of the setting, if a library is missing.
        """
        if not self.usage and not self.purposes:
            return None
        try:
            import http_sf  # noqa: F401, PLC0415  # an extra
        except ImportError as exc:
            name, value = ("NOROBOTS_USAGE", True) if self.usage else ("NOROBOTS_PURPOSES", self.purposes)
            problem = f"needs http-sf: pip install 'scrapy-norobots[usage]' ({exc})"
            raise error(name, value, problem) from exc
        return partial(UsageStatements, purposes=self.purposes)


def subscribe(crawler: Crawler, config: Config, events: Events) -> None:
    """Read statements if ``NOROBOTS_USAGE`` or ``NOROBOTS_PURPOSES`` is set, and obey those of robots.txt."""
    reader = UsageConfig.from_settings(crawler.settings).reader()
    if reader is None:
        return
    usage = Usage(crawler, events)
    events.statements.connect(lambda: reader)
    events.loaded.connect(usage.loaded)
    events.opened.connect(usage.open)


class Usage:
    """Puts what a site and a page state into the meta of each response, and counts it."""

    def __init__(self, crawler: Crawler, events: Events) -> None:
        assert crawler.stats is not None  # made before any middleware
        self._crawler = crawler
        self._stats = crawler.stats
        self._events = events

    def open(self, core: Core) -> None:
        """Read each response of the crawl before its callback gets it."""
        self._core = core
        self._crawler.signals.connect(self.received, signal=signals.response_received)

    def loaded(self, event: Load) -> None:
        """Count what a robots.txt states, unless the origin had one before."""
        statements = _statements_of(event.access)
        if statements is None or not event.is_new:
            return
        said = stated(statements.all)
        for each in said:
            self._stats.inc_value(f"norobots/usage/{each.replace(' ', '_')}")
        if said:
            self._events.usage_stated.send(event.access.snapshot.origin, frozenset(said))

    def received(self, response: Response, request: Request) -> None:
        """Set ``response.meta["norobots_usage"]`` to the `PageUsage` of a response."""
        if ROBOTS_DOWNLOAD in request.meta:  # a redirect may have led to any URL
            return
        try:
            question = self._core.ask(request)
        except ValueError:  # its `norobots_url` is invalid, and `dont_obey_robotstxt` overrides that too
            return
        if isinstance(question, Decision) or question.is_robots_txt:
            return
        statements = _statements_of(self._core.origins.latest(question.origin))
        of_site = None if statements is None else tuple(statements.on(question.target, question.robot))
        page = read_page(response, question.robot)
        for kind in {statement.kind for statement in page}:
            self._stats.inc_value(f"norobots/usage/page/{kind}")
        response.meta["norobots_usage"] = PageUsage(of_site, page)


def _statements_of(access: Access | None) -> UsageStatements | None:
    statements = None if access is None else statements_of(access.rules)
    return statements if isinstance(statements, UsageStatements) else None
