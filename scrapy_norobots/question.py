"""What a request asks of robots.txt: the URL, split once, and the robot that wants to fetch it.

A request whose URL is invalid, or is not http or https, asks nothing: its decision needs no robots.txt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scrapy_norobots.overrides import checked_url, is_overridden
from scrapy_norobots.spellings import forbidden, spellings_of
from scrapy_norobots.standard import Decision, Origin, Reason, Verdict
from scrapy_norobots.standard.names import to_name
from scrapy_norobots.standard.urls import split

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_norobots.access import Access
    from scrapy_norobots.identity import Identity

__all__ = ["Question", "checked_url", "is_overridden", "question_of"]


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
        """Return the decision that forbids the URL; None if it may pass."""
        return forbidden(access, *self, spellings_of(self.target))


def question_of(request: Request, identity: Identity) -> Question | Decision:
    """Return the question for a robots.txt, or the decision if the URL has no origin.

    Raises `ValueError` if ``norobots_url`` in the request's meta is not an http or https URL.
    """
    url, robot = checked_url(request), identity.robot(request)
    try:
        origin, target = split(url)
    except ValueError as exc:
        detail = f"the URL is invalid: {exc}"
        return Decision(Verdict.FORBIDDEN, request.url, to_name(robot), Reason.BAD_URL, detail=detail)
    if origin is None or target is None:  # U9: no robots.txt applies
        return Decision(Verdict.ALLOWED, url, to_name(robot), Reason.NOT_WEB)
    return Question(url, origin, target, robot)
