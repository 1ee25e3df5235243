"""Expand the placeholders in a path that a setting names.

As in Scrapy's `FEEDS`, ``%(time)s`` is the start of the crawl, and any other placeholder is an attribute of
the spider. So processes that run at the same time can each have a path of their own.
"""

from __future__ import annotations

import os
from datetime import datetime
from typing import TYPE_CHECKING

from scrapy_norobots.scrapy_api.setting_error import SettingError

if TYPE_CHECKING:
    from scrapy import Spider


def expand(setting: str, template: str, spider: Spider | None, start: datetime) -> str:
    """Return the path that a template names, with the home directory in place of ``~``.

    Raises `ValueError`, with the setting and its value, if a placeholder is unknown.
    """
    try:
        name = template % _Values(spider, start)
    except (KeyError, TypeError, ValueError) as exc:
        raise SettingError(
            f"{setting} = {template!r}: unknown placeholder ({exc}); use %(time)s, an attribute of "
            "the spider such as %(name)s, or '%%' for a '%'"
        ) from exc
    return os.path.expanduser(name)  # noqa: PTH111  # pathlib's function raises for "~name" without such a user


class _Values:
    """The values of placeholders: the attributes of a spider, which include its arguments, and the time."""

    def __init__(self, spider: Spider | None, start: datetime) -> None:
        self._spider = spider
        self._time = start.isoformat(timespec="seconds").replace(":", "-")

    def __str__(self) -> str:
        raise TypeError("%s has no name")

    def __getitem__(self, name: str) -> object:
        if name == "time":
            return self._time
        if not hasattr(self._spider, name):
            raise KeyError(name)
        value = getattr(self._spider, name)
        if isinstance(value, (int, float)):
            return value  # for %(number)03d
        return str(value).replace("/", "-").replace(os.sep, "-")  # the value must not add a directory
