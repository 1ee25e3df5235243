"""What a request asks of robots.txt: the URL, split once, and the robot that wants to fetch it.

A request whose URL is invalid, or is not http or https, asks nothing: it has a `Decision` at once.

The overrides in the meta of a request, `dont_obey_robotstxt` and `norobots_url` (to ask about another URL),
apply only to the origin of its first URL, and not to other origins that redirects lead to, because the user
meant the first one. Scrapy's redirect middlewares copy the meta, and list the previous URLs in it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from scrapy_norobots.rules.access import spellings_of
from scrapy_norobots.standard import Decision, Origin, Reason, Verdict
from scrapy_norobots.standard.decision import without_userinfo
from scrapy_norobots.standard.names import to_name
from scrapy_norobots.standard.urls import split

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_norobots.rules.access import Access
    from scrapy_norobots.scrapy_api.identity import Identity


class Question(NamedTuple):
    """May `robot`, a name or a whole User-Agent header, fetch `url`? `target` is its path with the query."""

    url: str
    origin: Origin
    target: str
    robot: str | bytes

    @property
    def is_robots_txt(self) -> bool:
        """Whether the URL is a robots.txt itself, which may always be fetched (U7)."""
        return self.target == "/robots.txt"

    def forbidden_by(self, access: Access) -> Decision | None:
        """Return the decision that forbids the URL in the spelling of its target that is forbidden, or None.

        A download handler may send another spelling than that of the request.
        """
        for spelling in spellings_of(self.target):
            if (access.rules or access).forbids(self.origin, spelling, self.robot):
                is_own = spelling == self.target
                return access.decide(self.url if is_own else f"{self.origin}{spelling}", self.robot)
        return None


def question_of(request: Request, identity: Identity) -> Question | Decision:
    """Return the question for a robots.txt, or the decision if the URL has no origin.

    Raises `ValueError` if ``norobots_url`` in the request's meta is not an http or https URL.
    """
    url = checked_url(request) if "norobots_url" in request.meta else request.url
    return _question(url, identity.robot(request))


@lru_cache(maxsize=1_000)  # a request is looked at when it is scheduled, taken and sent
def _question(url: str, robot: str | bytes) -> Question | Decision:
    try:
        origin, target = split(url)
    except ValueError as exc:
        detail = without_userinfo(f"the URL is invalid: {exc}")
        return Decision(Verdict.FORBIDDEN, url, to_name(robot), Reason.BAD_URL, detail=detail)
    if origin is None or target is None:  # U9: no robots.txt applies
        return Decision(Verdict.ALLOWED, url, to_name(robot), Reason.NOT_WEB)
    return Question(url, origin, target, robot)


def is_overridden(request: Request) -> bool:
    """Return whether the meta of a request exempts it from robots.txt."""
    return bool(request.meta.get("dont_obey_robotstxt")) and not _leads_elsewhere(request)


def checked_url(request: Request) -> str:
    """Return the URL to check: `norobots_url` in the meta of a request, or else the request's own URL.

    Raises `ValueError` if `norobots_url` is not an http or https URL.
    """
    url = request.meta.get("norobots_url")
    if url is None or _leads_elsewhere(request):
        return request.url
    try:
        is_whole = isinstance(url, str) and not {"\t", "\r", "\n"} & {*url}  # which `urlsplit` removes
        if is_whole and Origin.of(url) is not None and urlsplit(url).hostname:
            return str(url)
        problem = "it must be an http or https URL"
    except ValueError as exc:
        problem = str(exc)
    raise ValueError(without_userinfo(f"norobots_url = {url!r} in the meta of {request}: {problem}"))


def _leads_elsewhere(request: Request) -> bool:
    """Return whether redirects have led the request to another origin than that of its first URL."""
    urls = request.meta.get("redirect_urls")
    if not urls:
        return False
    try:
        return Origin.of(urls[0]) != Origin.of(request.url)
    except (AttributeError, LookupError, TypeError, ValueError):  # users may put anything there
        return True
