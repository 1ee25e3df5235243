"""Judge which requests a well-behaved robot should not send, independently of ``robots.txt``.

A request is judged by the page that it leads to, in any spelling, from a list in this module.
The module neither reads ``robots.txt`` nor uses a parser for it.
"""

from __future__ import annotations

from posixpath import normpath
from urllib.parse import unquote

OFF_LIMITS = ("/staff/", "/account", "/search", "/reading room/", "/~clerk/")


def place(target: str) -> str:
    """Return the path of the page that a request for ``target`` leads to.

    Escapes are decoded, ``.`` and ``..`` are resolved, and the query is removed.
    """
    path = unquote(target.partition("?")[0])
    tidy = "/" + normpath("/" + path).lstrip("/")
    is_folder = path.endswith(("/", "/.", "/..")) and tidy != "/"
    return tidy + "/" if is_folder else tidy


def off_limits(target: str) -> str | None:
    """Return the area that is off limits and that ``target`` leads to; None if it leads to none."""
    return next((area for area in OFF_LIMITS if place(target).startswith(area)), None)
