"""URLs: their origin, their target, and the normal form of targets (clauses U1, U6, U8 and U9).

A rule is compared with the *target* of a URL: its path and query, as sent to the server. Several spellings of
a target are compared, such as the written one and the normal form of RFC 3986, so that no other spelling of a
forbidden resource is allowed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_DEFAULT_PORTS = {"http": 80, "https": 443}

# RFC 3986, appendix B, as far as it is needed: scheme, authority, path with query. The fragment is ignored
# (U1). A bare path has neither scheme nor authority.
_URL = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.\-]*):)?(?://([^/?#]*))?([^#]*)", re.DOTALL)

# A number up to 65535, with any leading zeros.
_PORT = re.compile(
    r"0*(?:[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])", re.ASCII
)

# Blanks and control characters around a URL are removed, and so are line breaks and tabs within it (RFC 3986,
# appendix C). urllib and browsers do the same, so this is what is sent.
_AROUND = "".join(map(chr, range(0x21)))
_ODD_SPACE = re.compile(r"[\x00-\x20]")
_WITHIN = str.maketrans("", "", "\t\r\n")

# Characters that can be sent: ASCII without blanks and controls. Characters that RFC 3986 allows in a target.
_SENT = re.compile(r"[\x21-\x7e]*")
_ALLOWED = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:@/?%]*")
_ALLOWED_NOT_SPECIAL = re.compile(r"[A-Za-z0-9\-._~!&'()+,;=:@/?%]*")

# Escapes that are not in normal form: with lower-case digits, or for an unreserved character.
_ODD_ESCAPE = re.compile("%(?![0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF])")
# An escape that is cut off at the end of a rule, or before a "*": any of the escapes that begin so matches.
_CUT_OFF = re.compile(r"%[0-9A-Fa-f]?\Z")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


# Longer URLs of sites are not cached, because many could fill the memory. No valid host name has over 253
# characters.
_LONGEST_REMEMBERED = 300


class Origin(NamedTuple):
    """The scope of a robots.txt: scheme, host and port of an http or https URL (U8).

    `scheme` is ``http`` or ``https``; `host` is lower case, IDNA-encoded and without user information
    (an IPv6 address keeps its brackets); `port` is a number, the scheme's default where the URL has none.
    """

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> Origin | None:
        """Return the origin of a URL; None if it is not http or https, or has no host (U9).

        Raises `ValueError` for an http or https URL with an invalid port.
        """
        return split(url)[0]

    @property
    def robots_url(self) -> str:
        """The URL of the origin's robots.txt, without default port and user information."""
        return f"{self}/robots.txt"

    def __str__(self) -> str:
        if self.port == _DEFAULT_PORTS[self.scheme]:
            return f"{self.scheme}://{self.host}"
        return f"{self.scheme}://{self.host}:{self.port}"


def split(url: str) -> tuple[Origin | None, str | None]:
    """Split a URL into its origin and its target: path and query, at least ``/`` (U1).

    A bare path gives ``(None, target)``. A URL to which no robots.txt applies (U9), because it is neither
    http nor https or has no host, gives ``(None, None)``. Raises `TypeError` if `url` is not a `str`, and
    `ValueError` if it is neither a URL nor a path, or has an invalid port.
    """
    if not isinstance(url, str):
        raise TypeError(f"a URL must be a str, not {type(url).__name__}")
    if not ("#" in url or "\t" in url or "\n" in url or "\r" in url or url[-1:] <= " "):
        end = url.find("/", 8)  # where the path of most URLs begins, after "https://" and a host
        if 0 < end <= _LONGEST_REMEMBERED:
            origin = _origin_of_site(url[:end])
            if origin is not None:
                return origin, url[end:]
    match = _URL.match(url.strip(_AROUND).translate(_WITHIN) if _ODD_SPACE.search(url) else url)
    assert match is not None  # every part is optional
    scheme, authority, target = match.groups()
    if scheme is None and authority is None and not target.startswith("/"):
        # Perhaps the name of a robot, by mistake; read as a path, it would be allowed.
        raise ValueError(f"{url!r} is neither a URL nor a path that starts with '/'")
    if not target.startswith("/"):
        target = "/" + target
    if scheme is None:
        return None, target
    origin = _origin(scheme, authority or "")
    return (origin, target) if origin else (None, None)


@lru_cache(maxsize=16_384)
def _origin_of_site(url: str) -> Origin | None:
    """Return the origin of a URL without a path; None if it has a path, or no origin."""
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
        raise ValueError(f"port {port[:20]!r} in {host_and_port[:300]!r} is not a number up to 65535")
    if not host:
        return None
    # All digits before the last five are zeros; too many digits would be an error in int().
    return Origin(scheme, _host(host), int(port[-5:]) if port else _DEFAULT_PORTS[scheme])


def _host(host: str) -> str:
    host = host.lower()
    if host.isascii():
        return host
    try:
        # The same encoding as that of w3lib for the URLs of Scrapy's requests.
        return host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        return host


def percent_encode(target: str) -> str:
    """Return a target, or the value of a rule, as it would be sent: escape only what cannot be sent.

    Non-ASCII characters become ``%XX`` of their UTF-8 bytes; bytes that were not UTF-8 become ``%XX`` of
    themselves.
    """
    return target if _SENT.fullmatch(target) else "".join([_AS_SENT[byte] for byte in _to_bytes(target)])


def is_normal(target: str) -> bool:
    """Return whether a target is surely in normal form; False for any ``/.``, which may be a dot segment."""
    return "/." not in target and has_normal_octets(target)


def has_normal_octets(target: str) -> bool:
    """Return whether a target has no characters or escapes that `octets` would change."""
    return _ALLOWED.fullmatch(target) is not None and (
        "%" not in target or _ODD_ESCAPE.search(target) is None
    )


def has_one_form(target: str) -> bool:
    """Return whether a target is surely in normal form, and has no ``*`` and ``$``, as most have none."""
    return (
        _ALLOWED_NOT_SPECIAL.fullmatch(target) is not None
        and "/." not in target
        and ("%" not in target or _ODD_ESCAPE.search(target) is None)
    )


def octets(target: str) -> str:
    """Return a target in the form in which RFC 9309 compares octets (2.2.2): `normal`, with its dot segments.

    Escapes of unreserved characters are decoded; reserved characters, and their escapes, stay as they are.
    """
    if has_normal_octets(target):
        return target
    target = _normal_escapes(target)
    return (
        target if _ALLOWED.fullmatch(target) else "".join([_AS_ALLOWED[byte] for byte in _to_bytes(target)])
    )


def normal(target: str, *, is_prefix: bool = False) -> str:
    """Return the normal form of a target (RFC 3986, 6.2.2), the same for all spellings of a resource.

    Escapes of unreserved characters are decoded, other escapes get upper-case digits, characters that are
    not allowed in a URL are escaped, and dot segments are resolved. With `is_prefix`, the target is the value
    of a rule, whose last segment may be incomplete: ``/a/.`` and ``/a/..`` are not resolved, because they are
    also prefixes of ``/a/.htaccess`` and ``/a/..old``.
    """
    if is_normal(target):
        return target
    target = octets(target)
    path, mark, query = target.partition("?")
    if "/." in path:
        path = _resolve_dots(path, is_prefix=is_prefix and not mark)
    return path + mark + query


def without_cut_off(path: str) -> tuple[str, str]:
    """Return the path of a rule without an escape that is cut off at its end, and this in upper case (U6)."""
    cut = _CUT_OFF.search(path)
    return (path[: cut.start()], cut[0].upper()) if cut else (path, "")


def is_robots_txt(target: str) -> bool:
    """Return whether a target is robots.txt itself, which may always be fetched (U7)."""
    if "%" in target or "/." in target:
        target = normal(target)
    return target == "/robots.txt"


def _to_bytes(text: str) -> bytes:
    """Encode a text as UTF-8; surrogates for bytes that were not UTF-8 become these bytes (F1)."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a surrogate that does not represent a byte
        return b"".join(map(_to_bytes_one, text))


def _to_bytes_one(character: str) -> bytes:
    try:
        return character.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return character.encode("utf-8", "surrogatepass")


# For each byte its character, or %XX.
_AS_SENT, _AS_ALLOWED = (
    [chr(byte) if pattern.fullmatch(chr(byte)) else f"%{byte:02X}" for byte in range(256)]
    for pattern in (_SENT, _ALLOWED)
)


def _normal_escapes(target: str) -> str:
    """Convert escapes to normal form, and escape each ``%`` that does not start one."""
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
