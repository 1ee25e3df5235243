"""The spellings in which a URL may be sent: a request is forbidden if the rules forbid one of them.

A download handler may send another spelling of a target than that of the request. The crawl, ``robots-check``
and ``robots-audit`` all decide with `forbidden`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy_norobots.rules.access import Access
    from scrapy_norobots.standard import Decision, Origin


def forbidden(
    access: Access, url: str, origin: Origin, target: str, robot: str | bytes, spellings: Iterable[str]
) -> Decision | None:
    """Return the decision that forbids a URL in one of some spellings of its target; None if it may pass.

    `origin` and `target` are the parts of `url`. The decision is about the spelling that is forbidden.
    """
    for spelling in spellings:
        if access.forbids(origin, spelling, robot):
            return access.decide(url if spelling == target else f"{origin}{spelling}", robot)
    return None


def spellings_of(target: str) -> tuple[str, ...]:
    """Return the spellings of a target that may be sent: its own, and those that download handlers produce.

    Twisted's handler drops an empty ``;``. Scrapy's HTTP/2 handler drops the parameters of the last segment
    of the path. httpx's handler resolves dot segments. aiohttp's handler does so too, and decodes more
    escapes than the normal form of RFC 3986. It can be used with a reactor too, so its spelling is included,
    as the last one, wherever aiohttp is installed.
    """
    if "%" not in target and ";" not in target and "/." not in target:
        return (target,)
    path, mark, query = target.partition("?")
    folder, slash, last = path.rpartition("/")
    spellings = (
        target,
        path.removesuffix(";") + mark + query,
        folder + slash + last.partition(";")[0] + mark + query,
        _without_dot_segments(target),
    )
    url_type = _aiohttp_url()
    return spellings if url_type is None else (*spellings, url_type(f"http://host{target}").raw_path_qs)


def _without_dot_segments(target: str) -> str:
    """Resolve dot segments as httpx does, which drops the slash before one at the end; RFC 3986 keeps it."""
    path, mark, query = target.partition("?")
    kept: list[str] = []
    for segment in path.split("/"):
        if segment not in {".", ".."}:
            kept.append(segment)
        elif segment == ".." and len(kept) > 1:
            kept.pop()
    return ("/".join(kept) or "/") + mark + query


def knows_aiohttp() -> bool:
    """Return whether `spellings_of` returns what aiohttp's handler would send."""
    return _aiohttp_url() is not None


@cache
def _aiohttp_url() -> Any | None:
    try:
        from yarl import URL  # noqa: PLC0415  # a dependency of aiohttp, which is optional
    except ImportError:
        return None
    return URL
