"""`SentRequests`: the requests that the engine has, each with a record.

A record ends when its request leaves the downloader, or is given back and comes to the scheduler. Another
downloader than the plugin's does not say when a request leaves, so then the keys are weak.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from scrapy import Request

from scrapy_norobots.exceptions import RobotsUnreachable
from scrapy_norobots.waiting.states import Gone, State

if TYPE_CHECKING:
    from scrapy_norobots.events import Events
    from scrapy_norobots.rules.access import Access


class SentRequests:
    """The records of one crawl. `do_leave` is true if its downloader says when a request leaves."""

    def __init__(self, events: Events, *, do_leave: bool) -> None:
        gone: MutableMapping[Request, Gone] = {} if do_leave else WeakKeyDictionary()
        self._gone, self.get, self.pop = gone, gone.get, gone.pop
        self._wait = events.wait
        events.dropped.connect(self._dropped)

    def record(self, request: Request) -> Gone:
        """Return the record of a request, made if there is none."""
        gone = self.get(request)
        if gone is None:
            gone = self._gone[request] = Gone()
        return gone

    def has_url(self, request: Request, slot: Any) -> bool:
        """Return whether the URL of a request is under way in a slot."""
        return any(
            gone.slot is slot and gone.state is not State.GIVEN_BACK and other.url == request.url
            for other, gone in self._gone.items()
        )

    def is_given_back(self, request: Request) -> bool:
        """Return whether the middleware has given a request back, so that it must not be sent."""
        gone = self.get(request)
        return gone is not None and gone.state is State.GIVEN_BACK

    def access_of(self, request: Request) -> Access | None:
        """Return the expired access by which a request is judged that has waited for it, if any.

        Raises what a bug has raised about the request while it waited.
        """
        gone = self.get(request)
        if gone is None:
            return None
        if gone.error is not None:
            raise gone.error
        access, gone.access = gone.access, None
        return access

    def leave(self, request: Request) -> Gone | None:
        """Return the record of a request that has left the downloader, and end it unless it comes back."""
        gone = self.get(request)
        if gone is not None and gone.state is not State.GIVEN_BACK:
            del self._gone[request]
            if gone.is_given_up:  # but it was not dropped
                self._wait.send(request, "came_back")
        return gone

    def _dropped(self, request: Request, _url: str, _robot: str | bytes, error: Exception, _: object) -> None:
        gone = self.get(request)
        if gone is not None and gone.is_given_up and isinstance(error, RobotsUnreachable):
            gone.is_given_up = False
            self._wait.send(request, "given_up")
