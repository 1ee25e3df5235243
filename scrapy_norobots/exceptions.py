"""What is raised for a request that is dropped.

Both are Scrapy's `IgnoreRequest`, so existing code treats them as it treats a request dropped by Scrapy's
own middleware; an errback finds the reason on `decision`.
"""

from __future__ import annotations

from scrapy.exceptions import IgnoreRequest

from scrapy_norobots.standard import Decision


class RobotsForbidden(IgnoreRequest):
    """A request was dropped because robots.txt forbids it; `decision` has the file, line and rule."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision)
        self.decision = decision

    def __str__(self) -> str:
        return f"Forbidden by robots.txt: {self.decision}"


class RobotsUnreachable(RobotsForbidden):
    """A request was dropped because there are no rules to go by and the policy is not to crawl then.

    If that may change, the request has been tried again before, `NOROBOTS_RETRY_CLOSED` times.
    `retry_after` is in how many seconds robots.txt is asked for again, so that another try may pass; None if
    nothing is expected to change, as after a 403 or with a URL that has no origin.
    """

    def __init__(self, decision: Decision, retry_after: float | None = None) -> None:
        super().__init__(decision)
        self.retry_after = retry_after
