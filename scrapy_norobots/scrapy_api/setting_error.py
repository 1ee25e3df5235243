"""`SettingError`: an invalid setting, which the log reports in one line.

Scrapy lets an exception of a component end the crawl, and logs it with its traceback: through the logger of
asyncio, or through that of Twisted. The traceback of an invalid setting shows only how Scrapy starts. So the
first error puts a filter on these loggers, which replaces what they say about such an error by its text.
"""

from __future__ import annotations

import logging


class SettingError(ValueError):
    """A setting is invalid. The text has the setting, its value and what is accepted."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        for name in ("asyncio", "twisted"):
            logging.getLogger(name).addFilter(_in_one_line)  # once: the same filter is not added again


def _in_one_line(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, SettingError):
        record.msg, record.args, record.exc_info = str(error), (), None
    return True
