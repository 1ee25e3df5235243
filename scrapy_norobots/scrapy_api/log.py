"""Log lines about a crawl: each names its spider, and a kind of line about sites is limited.

`SettingError` is an invalid setting. Scrapy lets an exception of a component end the crawl, and logs it with
its traceback: through the logger of asyncio, or through that of Twisted. The traceback of an invalid setting
shows only how Scrapy starts. So the first error puts a filter on these loggers, which replaces what they say
about such an error by its text.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError
from twisted.logger import globalLogBeginner
from twisted.python import log

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

# The log names at most this many sites without fresh rules, files with ineffective lines, and requests
# dropped or lost. A broad crawl meets thousands of dead hosts, every fourth large site has such lines, and a
# crawl may have a million start requests.
LOGGED_MAX = 20


def spider_name(crawler: Crawler) -> str:
    """Return the name of a crawl's spider, for log lines and file names."""
    return str(getattr(crawler.spider or crawler.spidercls, "name", None) or "spider")


def crawl_log(crawler: Crawler, logger: logging.Logger) -> Callable[..., None]:
    """Return what writes the lines of one module about one crawl, with the arguments of `Logger.log`."""
    return partial(logger.log, extra={"spider": crawler.spider})


class Named(set[object]):
    """What lines of a kind are about: the first `LOGGED_MAX`; lines about others have the level DEBUG."""

    def level(self, subject: object, level: int) -> int:
        """Return the level of a line about a subject, which is added if there is room."""
        if len(self) < LOGGED_MAX:
            self.add(subject)
        return level if subject in self else logging.DEBUG


class SettingError(UsageError, ValueError):
    """A setting is invalid. Scrapy's commands print a `UsageError` in one line."""

    def __init__(self, text: str) -> None:
        super().__init__(text, print_help=False)
        for name in ("asyncio", "twisted"):
            logging.getLogger(name).addFilter(_in_one_line)  # once: the same filter is not added again
        # Until a program tells Twisted where to log, which Scrapy never does, Twisted prints an error itself,
        # too. If Scrapy logs what Twisted says, the error is not lost without that.
        observers = (getattr(observer, "__self__", None) for observer in log.theLogPublisher.observers)
        if any(isinstance(observer, log.PythonLoggingObserver) for observer in observers):
            globalLogBeginner.beginLoggingTo((), discardBuffer=True, redirectStandardIO=False)


def _in_one_line(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    while error is not None and not isinstance(error, SettingError):
        error = error.__cause__ or error.__context__  # until 2.13, Scrapy's clean-up may fail after it
    if error is not None:
        record.msg, record.args, record.exc_info = str(error), (), None
    return True
