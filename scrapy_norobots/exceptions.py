"""Exceptions for dropped requests.

Both are subclasses of Scrapy's `IgnoreRequest`, so existing code handles them like the exception of Scrapy's
own middleware. An errback finds the reason in `decision`.
"""

from __future__ import annotations

from scrapy.exceptions import IgnoreRequest

from scrapy_norobots.standard import Decision


class RobotsForbidden(IgnoreRequest):
    """A request was dropped because robots.txt forbids it.

    `decision` is the `Decision` with the URL of the file, the rule and the record. The subclass
    `RobotsUnreachable` is raised where there are no rules.
    """

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision)
        self.decision = decision

    def __str__(self) -> str:
        return f"Forbidden by robots.txt: {self.decision}"


class RobotsUnreachable(RobotsForbidden):
    """A request was dropped because no rules are available for it.

    `NOROBOTS_STATUS_POLICY` denies the outcome of the download, or the URL of the request is invalid. If the
    outcome is temporary, the request was retried up to `NOROBOTS_RETRY_CLOSED` times before.
    `retry_after` is the number of seconds after which robots.txt may be downloaded again, so a later request
    may pass. It is None if no change is expected: after a 403, for example, or for an invalid URL.
    """

    def __init__(self, decision: Decision, retry_after: float | None = None) -> None:
        super().__init__(decision)
        self.retry_after = retry_after
