"""`SettingError`: an invalid setting, which the log reports in one line.

Scrapy lets an exception of a component end the crawl, and logs it with its traceback: through the logger of
asyncio, or through that of Twisted. The traceback of an invalid setting shows only how Scrapy starts. So the
first error puts a filter on these loggers, which replaces what they say about such an error by its text.
"""

from __future__ import annotations

import logging

from twisted.logger import globalLogBeginner
from twisted.python import log


class SettingError(ValueError):
    """A setting is invalid. The text has the setting, its value and what is accepted."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
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
