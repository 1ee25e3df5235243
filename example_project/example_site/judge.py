"""The library's own word on where robots of its good acquaintance should not go.

It judges requests by the page they lead to, however that is spelled, from a list kept here by
hand.  It neither reads ``robots.txt`` nor uses anything that does.
"""

from __future__ import annotations

from posixpath import normpath
from urllib.parse import unquote

OFF_LIMITS = ("/staff/", "/account", "/search", "/reading room/", "/~clerk/")


def place(target: str) -> str:
    """Return the path of the page that a request for ``target`` leads to.

    Escapes are undone, ``.`` and ``..`` are resolved, the query is left out.
    """
    path = unquote(target.partition("?")[0])
    tidy = "/" + normpath("/" + path).lstrip("/")
    is_folder = path.endswith(("/", "/.", "/..")) and tidy != "/"
    return tidy + "/" if is_folder else tidy


def off_limits(target: str) -> str | None:
    """Return the part of the library that ``target`` should not have been asked for, if any."""
    return next((area for area in OFF_LIMITS if place(target).startswith(area)), None)
