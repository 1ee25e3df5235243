"""`SentRequests`: the requests from the scheduler that the engine has.

A record ends when its request leaves the downloader, or is given back and comes to the scheduler. Another
downloader than the plugin's does not say when a request leaves, so then only the last ones are remembered.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from scrapy_norobots.exceptions import RobotsUnreachable
from scrapy_norobots.waiting.states import Parked, State

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_norobots.events import Events
    from scrapy_norobots.rules.access import Access

_REMEMBERED = 10_000


class SentRequests:
    """The records of one crawl. `do_leave` is true if its downloader says when a request leaves."""

    def __init__(self, events: Events, *, do_leave: bool) -> None:
        self._sent: dict[Request, Parked] = {}
        self.get, self.pop = self._sent.get, self._sent.pop
        self._most = math.inf if do_leave else _REMEMBERED
        self._wait = events.wait
        events.dropped.connect(self._dropped)

    def add(self, sent: Parked) -> None:
        """Add a request that goes to the engine."""
        self._sent[sent.request] = sent
        if len(self._sent) > self._most:
            del self._sent[next(iter(self._sent))]

    def has_url(self, request: Request, slot: Any) -> bool:
        """Return whether the URL of a request is under way in a slot."""
        return any(
            sent.slot is slot and sent.state is not State.GIVEN_BACK and sent.request.url == request.url
            for sent in self._sent.values()
        )

    def is_given_back(self, request: Request) -> bool:
        """Return whether the middleware has given a request back, so that it must not be sent."""
        sent = self.get(request)
        return sent is not None and sent.state is State.GIVEN_BACK

    def access_of(self, request: Request) -> Access | None:
        """Return the expired access by which a request is judged that has waited for it, if any.

        Raises what a bug has raised about the request while it waited.
        """
        sent = self.get(request)
        if sent is None:
            return None
        if sent.error is not None:
            raise sent.error
        access, sent.access = sent.access, None
        return access

    def leave(self, request: Request) -> Parked | None:
        """Return the record of a request that has left the downloader, and end it unless it comes back."""
        sent = self.get(request)
        if sent is not None and sent.state is not State.GIVEN_BACK:
            del self._sent[request]
            if sent.is_given_up:  # but it was not dropped
                self._wait.send(request, "came_back")
        return sent

    def _dropped(self, request: Request, _url: str, _robot: str | bytes, error: Exception, _: object) -> None:
        sent = self.get(request)
        if sent is not None and sent.is_given_up and isinstance(error, RobotsUnreachable):
            sent.is_given_up = False
            self._wait.send(request, "given_up")
