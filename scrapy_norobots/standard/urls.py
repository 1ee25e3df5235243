"""URLs: their origin, what a rule is compared with, and its normal form (clauses U1, U6, U8 and U9).

A rule is compared with a URL's *target*: path and query, as they would be sent to the server. Two
spellings of a target are looked at, the written one and RFC 3986's normal form, so that no spelling
gets through that names a forbidden resource.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_DEFAULT_PORTS = {"http": 80, "https": 443}

# RFC 3986, appendix B, as far as it is needed: scheme, authority, path with query. The fragment does
# not count (U1). A URL without a scheme, such as a bare path, has neither of the first two.
_URL = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.\-]*):)?(?://([^/?#]*))?([^#]*)", re.DOTALL)

# A number up to 65535; zeros may stand before it.
_PORT = re.compile(
    r"0*(?:[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])", re.ASCII
)

# Blanks and controls around a URL are no part of it, nor are line breaks and tabs within (RFC 3986,
# appendix C; so do urllib and every browser, and so it is sent).
_AROUND = "".join(map(chr, range(0x21)))
_ODD_SPACE = re.compile(r"[\x00-\x20]")
_WITHIN = str.maketrans("", "", "\t\r\n")

# What can stand in a request: no blank, no control, nothing beyond ASCII. What RFC 3986 allows in a target.
_SENT = re.compile(r"[\x21-\x7e]*")
_ALLOWED = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:@/?%]*")

# Escapes that are not in normal form: with lower-case digits, or of an unreserved character.
_ODD_ESCAPE = re.compile("%(?![0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF])")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


# No host that can be resolved has a name of over 253 characters, and longer ones would fill the cache.
_LONGEST_REMEMBERED = 300


class Origin(NamedTuple):
    """Whose rules a robots.txt gives: scheme, host and port of an http or https URL (U8).

    `scheme` is ``http`` or ``https``; `host` is lower case, IDNA-encoded and without user information
    (an IPv6 address keeps its brackets); `port` is a number, the scheme's default where the URL has none.
    """

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> Origin | None:
        """Return the origin of a URL, or None where none is defined: not http or https (U9), no host.

        Raises `ValueError` for an http or https URL with a port that is no port.
        """
        return split(url)[0]

    @property
    def robots_url(self) -> str:
        """The URL of its robots.txt; a default port and user information are not in it."""
        return f"{self}/robots.txt"

    def __str__(self) -> str:
        if self.port == _DEFAULT_PORTS[self.scheme]:
            return f"{self.scheme}://{self.host}"
        return f"{self.scheme}://{self.host}:{self.port}"


def split(url: str) -> tuple[Origin | None, str | None]:
    """Split a URL into its origin and its target: path and query, at least ``/`` (U1).

    A bare path belongs to an origin not told: ``(None, target)``. A URL that no robots.txt can rule (U9),
    neither http nor https or without a host, gives ``(None, None)``. Raises `TypeError` for anything but a
    `str`, `ValueError` for what is neither a URL nor a path, and for a port that is no port.
    """
    if not isinstance(url, str):
        raise TypeError(f"a URL must be a str, not {type(url).__name__}")
    end = url.find("/", 8)  # where the path of most URLs begins, after "https://" and a host
    if 0 < end <= _LONGEST_REMEMBERED and not (
        "#" in url or "\t" in url or "\n" in url or "\r" in url or url[-1] <= " "
    ):
        origin = _origin_of_site(url[:end])
        if origin is not None:
            return origin, url[end:]
    match = _URL.match(url.strip(_AROUND).translate(_WITHIN) if _ODD_SPACE.search(url) else url)
    assert match is not None  # every part is optional
    scheme, authority, target = match.groups()
    if scheme is None and authority is None and not target.startswith("/"):
        # A robot's name in the URL's place, perhaps; to take it for a path would allow it.
        raise ValueError(f"{url!r} is neither a URL nor a path that starts with '/'")
    if not target.startswith("/"):
        target = "/" + target
    if scheme is None:
        return None, target
    origin = _origin(scheme, authority or "")
    return (origin, target) if origin else (None, None)


@lru_cache(maxsize=4096)
def _origin_of_site(url: str) -> Origin | None:
    """Return the origin of a URL that ends before its path; None if it does not, or has none."""
    match = _URL.match(url)
    assert match is not None  # every part is optional
    scheme, authority, target = match.groups()
    return None if scheme is None or target else _origin(scheme, authority or "")


def _origin(scheme: str, authority: str) -> Origin | None:
    scheme = scheme.lower()
    if scheme not in _DEFAULT_PORTS:
        return None
    host_and_port = authority.rpartition("@")[2]
    host, colon, port = host_and_port.rpartition(":")
    if not colon or host_and_port.endswith("]"):
        host, port = host_and_port, ""
    if port and _PORT.fullmatch(port) is None:
        raise ValueError(f"{port[:20]!r} is no port, in {host_and_port[:300]!r}")
    if not host:
        return None
    # More digits than those of a port are zeros, and too many of them are too much for int.
    return Origin(scheme, _host(host), int(port[-5:]) if port else _DEFAULT_PORTS[scheme])


def _host(host: str) -> str:
    host = host.lower()
    if host.isascii():
        return host
    try:
        # The same encoding as w3lib gives the URLs of Scrapy's requests.
        return host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        return host


def percent_encode(target: str) -> str:
    """Return a target, or the value of a rule, as it would be sent: only what cannot be sent is escaped.

    Characters beyond ASCII become ``%XX`` of their UTF-8 bytes; bytes that were not UTF-8, themselves.
    """
    return target if _SENT.fullmatch(target) else "".join([_AS_SENT[byte] for byte in _to_bytes(target)])


def is_normal(target: str) -> bool:
    """Whether a target is in normal form, for which any ``/.`` might be a dot segment."""
    return (
        _ALLOWED.fullmatch(target) is not None
        and "/." not in target
        and ("%" not in target or _ODD_ESCAPE.search(target) is None)
    )


def normal(target: str, *, is_prefix: bool = False) -> str:
    """Return the normal form of a target (RFC 3986, 6.2.2): the same for all spellings of a resource.

    Escapes of unreserved characters are decoded, the other escapes have upper-case digits, characters
    that a URL cannot hold are escaped, and dot segments are resolved. With `is_prefix`, the target is
    the value of a rule: its last segment may go on, so ``/a/.`` and ``/a/..`` are left alone, which
    also begin ``/a/.htaccess``.
    """
    if is_normal(target):
        return target
    target = _normal_escapes(target)
    if not _ALLOWED.fullmatch(target):
        target = "".join([_AS_ALLOWED[byte] for byte in _to_bytes(target)])
    path, mark, query = target.partition("?")
    if "/." in path:
        path = _resolve_dots(path, is_prefix=is_prefix and not mark)
    return path + mark + query


def is_robots_txt(target: str) -> bool:
    """Whether a target is that of robots.txt itself, which may always be fetched (U7)."""
    return normal(target) == "/robots.txt"


def _to_bytes(text: str) -> bytes:
    """Encode a text as UTF-8, and bytes that were not UTF-8 as themselves (F1)."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a surrogate that stands for no byte
        return b"".join(map(_to_bytes_one, text))


def _to_bytes_one(character: str) -> bytes:
    try:
        return character.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return character.encode("utf-8", "surrogatepass")


# Each byte as it is, or as %XX.
_AS_SENT, _AS_ALLOWED = (
    [chr(byte) if pattern.fullmatch(chr(byte)) else f"%{byte:02X}" for byte in range(256)]
    for pattern in (_SENT, _ALLOWED)
)


def _normal_escapes(target: str) -> str:
    """Give escapes their normal form; a ``%`` that begins none is itself escaped."""
    first, *parts = target.split("%")
    return first + "".join([(_NORMAL_ESCAPE.get(part[:2]) or f"%25{part[:2]}") + part[2:] for part in parts])


def _normal_escape(digits: str) -> str:
    character = chr(int(digits, 16))
    return character if character in _UNRESERVED else f"%{digits.upper()}"


_HEX = "0123456789ABCDEFabcdef"
_NORMAL_ESCAPE = {one + two: _normal_escape(one + two) for one in _HEX for two in _HEX}


def _resolve_dots(path: str, *, is_prefix: bool) -> str:
    *segments, last = path.split("/")
    if not is_prefix and last in (".", ".."):
        segments.append(last)
        last = ""
    kept: list[str] = []
    for segment in segments:
        if segment == "..":
            if len(kept) > 1:
                kept.pop()
        elif segment != ".":
            kept.append(segment)
    return "/".join([*kept, last])
