"""What sites and pages state about how pages may be used, such as to train an AI.

Statements are read and recorded. Those of robots.txt are obeyed if the user asks for that.

`statements` reads and decides. Statements of a page are only recorded: `read_page` reads those of a response
of whatever bytes, and raises no exception. Only what the crawl has received is read: no other file is
fetched. A page is parsed only if one of its META tags seems to have a word that is looked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from urllib.parse import urljoin

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse, Response

from scrapy_norobots.events import Core, Events, Load
from scrapy_norobots.features.usage.statements import (
    CONTENT_SIGNAL,
    CONTENT_USAGE,
    HEADER,
    LICENSE,
    META,
    NOAI,
    NOIMAGEAI,
    TDM_POLICY,
    TDM_RESERVATION,
    Statement,
    UsageStatements,
    check_purpose,
    read,
    stated,
)
from scrapy_norobots.load.fetch import ROBOTS_DOWNLOAD
from scrapy_norobots.rules.access import Access
from scrapy_norobots.rules.parser import Statements, statements_of
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.scrapy_api.html import meta_tags, root_of
from scrapy_norobots.settings import SETTINGS, Config, Section, error, setting
from scrapy_norobots.standard import Decision
from scrapy_norobots.standard.decision import without_userinfo
from scrapy_norobots.standard.meta import terms_of

# The headers with a list of words, and those with one value, which META tags may have too.
_LISTS = (CONTENT_USAGE, CONTENT_SIGNAL)
_TAGS = (TDM_RESERVATION, TDM_POLICY)

# What a page with one of the tags contains; in UTF-16, with null bytes between the characters.
_TAG = re.compile(rb"<meta[^<]*(?:tdm-|noai|noimageai)", re.IGNORECASE)

_TAGS_MAX = 1_000

# RFC 8288, 3: a link and its parameters; commas and semicolons may stand in "<>" and in quotes. A quote that
# is not closed ends with the header (B.3).
_LINK = re.compile(r'<([^<>]*)>((?:[^,"]|"(?:[^"\\]|\\.)*"?)*)')
_REL = re.compile(r';\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))', re.IGNORECASE)


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
            name = "NOROBOTS_USAGE" if self.usage else "NOROBOTS_PURPOSES"
            problem = f"needs http-sf: pip install 'scrapy-norobots[usage]' ({exc})"
            raise error(name, self.usage or self.purposes, problem) from exc
        return partial(UsageStatements, purposes=self.purposes)


def subscribe(crawler: Crawler, config: Config, events: Events) -> None:
    """Read statements if ``NOROBOTS_USAGE`` or ``NOROBOTS_PURPOSES`` is set, and obey those of robots.txt."""
    reader = UsageConfig.from_settings(crawler.settings).reader()
    if reader is None:
        return
    events.statements.connect(lambda: reader)
    events.opened.connect(lambda core: Usage(crawler, events, core))


class Usage:
    """Puts what a site and a page state into the meta of each response, and counts it."""

    def __init__(self, crawler: Crawler, events: Events, core: Core) -> None:
        """Read each file that is loaded, and each response before its callback gets it."""
        self._stats = compat.stats(crawler)
        self._core = core
        events.loaded.connect(self.loaded)
        crawler.signals.connect(self.received, signal=signals.response_received)

    def loaded(self, event: Load) -> None:
        """Count what a robots.txt states, unless the origin had one before."""
        statements = _statements_of(event.access)
        if statements is not None and event.is_new:
            for each in stated(statements.all):
                self._stats.inc_value(f"norobots/usage/{each.replace(' ', '_')}")

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


@dataclass(frozen=True, slots=True)
class PageUsage:
    """What a site and one of its pages state about the use of the page.

    - `robots_txt`: the statements of robots.txt that apply to the page and the robot, a tuple of `Statement`
      by line; None if no robots.txt of the site is in memory.
    - `page`: the statements of the page itself: its headers, then its META tags.
    """

    robots_txt: tuple[Statement, ...] | None
    page: tuple[Statement, ...]

    def refusal(self, purpose: str) -> Statement | None:
        """Return the first statement that says no to a purpose, such as ``"ai-train"``; None if none does.

        Raises `ValueError` for an unknown purpose.
        """
        check_purpose(purpose)
        every = (*(self.robots_txt or ()), *self.page)
        return next((statement for statement in every if statement.says(purpose) is False), None)


def read_page(response: Response, robot: str | bytes) -> tuple[Statement, ...]:
    """Return what the headers and the META tags of a response state; of at most 1,000 tags."""
    tags: list[tuple[str, str]] = []
    if isinstance(response, HtmlResponse) and _TAG.search(response.body.replace(b"\0", b"")):
        tags = list(islice(meta_tags(root_of(response)), _TAGS_MAX))
    return (*_of_headers(response, robot), *_of_tags(tags, robot))


def _of_headers(response: Response, robot: str | bytes) -> Iterator[Statement]:
    for kind in (*_LISTS, *_TAGS):
        values = _values(response, kind)
        # Several lines with lists are one value (RFC 9651, 4.2).
        for value in [", ".join(values)] if kind in _LISTS and values else values:
            yield read(kind, HEADER, f"{kind}: {value}", value)
    for value in _values(response, "Link"):
        for link in _LINK.finditer(value):
            relations = " ".join("".join(found) for found in _REL.findall(link[2]))
            if "license" in relations.lower().split():  # the other links of the header may be long
                try:
                    url = urljoin(without_userinfo(response.url), link[1].strip())
                except ValueError:
                    url = link[1]
                yield read(LICENSE, HEADER, f"Link: {link[0]}", url)
    yield from _of_terms(HEADER, terms_of(robot, (), _values(response, "X-Robots-Tag")))


def _of_tags(tags: Sequence[tuple[str, str]], robot: str | bytes) -> Iterator[Statement]:
    for name, content in tags:
        kind = name.strip().lower()
        if kind in _TAGS:
            yield read(kind, META, f'<meta name="{name}" content="{content}">', content.strip())
    yield from _of_terms(META, terms_of(robot, tags, ()))


def _of_terms(source: str, asked: Sequence[tuple[set[str], str]]) -> Iterator[Statement]:
    for terms, text in asked:
        for term in sorted(terms & {NOAI, NOIMAGEAI}):
            yield read(term, source, text, "")


def _values(response: Response, name: str) -> list[str]:
    return [value.decode("latin-1").strip() for value in response.headers.getlist(name)]
