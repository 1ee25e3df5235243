"""Exceptions for dropped requests.

A `RobotsUnreachable` is a `RobotsForbidden` without rules: the policy denies, or the URL is invalid. Existing
code handles both like the `IgnoreRequest` of Scrapy's own middleware. An errback reads `decision`.
"""

from __future__ import annotations

from scrapy.exceptions import IgnoreRequest

from scrapy_norobots.standard import Decision, Reason
from scrapy_norobots.standard.decision import printable, without_userinfo


class RobotsForbidden(IgnoreRequest):
    """A request was dropped because robots.txt forbids it.

    It is a `scrapy.exceptions.IgnoreRequest`. `decision` is the `Decision`, with the file, the line and the
    rule.
    """

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision)
        self.decision = decision

    def __str__(self) -> str:
        return f"Forbidden by robots.txt: {self.decision}"


class RobotsUnreachable(RobotsForbidden):
    """A request was dropped because there are no rules, and ``NOROBOTS_STATUS_POLICY`` denies.

    robots.txt could not be downloaded, or the URL is invalid. `decision` is the `Decision`, with the status
    or the error. If the failure is temporary, robots.txt was tried again up to ``NOROBOTS_RETRY_CLOSED``
    times. `retry_after` is the number of seconds, a float, until robots.txt is downloaded again, so that a
    later request may pass. It is None after a final answer such as a 403, or if the URL has no origin.
    """

    def __init__(self, decision: Decision, retry_after: float | None = None) -> None:
        super().__init__(decision)
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"Dropped: {printable(without_userinfo(self.decision.url))} ({self.decision.why})"


def error_of(
    decision: Decision, retry_after: float | None = None, cause: BaseException | None = None
) -> RobotsForbidden:
    """Return the exception of a request that is dropped; `cause` is that of a download that failed."""
    if decision.reason in (Reason.RULE, Reason.PARSER, Reason.STATEMENT):
        return RobotsForbidden(decision)
    error = RobotsUnreachable(decision, retry_after)
    error.__cause__ = cause
    return error
