"""A second, simple implementation of RFC 9309 as docs/rfc9309.md reads it, to compare with the parser.

It shares no code with the package, is not fast, and only decides: ``allowed(body, url, robot)``. Each
function is one section of the RFC. Files are decoded as in `oracle`. `comparison` compares both.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from tests.helpers.judges.oracle import decode

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
TOKEN = LETTERS + "_-"
UNRESERVED = LETTERS + "0123456789-._~"
RESERVED = ":/?[]@!$&'()*+,;="  # without "#", which starts a fragment
HEX = "0123456789ABCDEFabcdef"
BLANKS = " \t\v\f"
DISALLOW = ("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw")
USER_AGENT = ("user-agent", "useragent", "user agent")
LITERAL_STAR, LITERAL_END = "\ue000", "\ue001"  # a "*" or "$" that is an ordinary character


class Line(NamedTuple):
    """A line: ``user-agent``, ``allow``, ``disallow`` or ``delay``, and its value."""

    kind: str
    value: str


# --- 2.2: lines and fields


def lines(body: bytes | str) -> Iterator[Line]:
    text = decode(body)
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        found = field(line.split("#")[0].strip(BLANKS))
        if found is not None:
            yield found


def field(line: str) -> Line | None:
    """The typing errors of Google's open parser are read, except in a line that allows something."""
    name, colon, value = line.partition(":")
    name, value = name.strip(BLANKS).lower(), value.strip(BLANKS)
    if colon and name == "allow":
        return Line("allow", value)
    if name == "crawl-delay":
        return Line("delay", value)
    if not colon:
        place = min((line.find(blank) for blank in " \t" if blank in line), default=-1)
        if place < 0:
            return None
        name, value = line[:place].lower(), line[place:].lstrip(" \t")
        if " " in value or "\t" in value:
            return None
        value = value.strip(BLANKS)
    if name.startswith(USER_AGENT):
        return Line("user-agent", value)
    return Line("disallow", value) if name.startswith(DISALLOW) else None


# --- 2.2.1: groups and product tokens


def token(value: str) -> str:
    letters = value.strip(BLANKS)
    end = 0
    while end < len(letters) and letters[end] in TOKEN:
        end += 1
    if end:
        return letters[:end].lower()
    word = letters
    for end_of_word in f"/{BLANKS}":
        word = word.partition(end_of_word)[0]
    return word.lower()


def product(header: str) -> str:
    """Return the part of a User-Agent header from its product on; no test has comments within comments."""
    if not header.lower().startswith("mozilla/"):
        return header
    for start in ("(compatible;", "; compatible;"):
        place = header.lower().find(start)
        if place >= 0:
            return header[place + len(start) :]
    words = header.replace("(", " ( ").replace(")", " ) ").split()
    depth = 0
    for word in words:
        depth += {"(": 1, ")": -1}.get(word, 0)
        if not depth and word not in "()" and not word.lower().startswith("mozilla/"):
            return word
    return header


@lru_cache(maxsize=100)
def lines_for(body: bytes | str, robot: str) -> list[Line]:
    """Return the lines in all groups that apply to a robot."""
    groups: list[tuple[list[str], list[Line]]] = []
    for line in lines(body):
        if line.kind == "user-agent":
            if not groups or any(other.kind != "delay" for other in groups[-1][1]):
                groups.append(([], []))
            groups[-1][0].append(line.value)
        elif groups:
            groups[-1][1].append(line)
    own = token(product(robot))
    named = [
        rules
        for names, rules in groups
        if own and any(token(name) == own for name in names if not for_all(name))
    ]
    chosen = named or [rules for names, rules in groups if any(map(for_all, names))]
    return [rule for rules in chosen for rule in rules]


def delay(body: bytes | str, robot: str) -> float | None:
    """Return the largest ``Crawl-delay`` of a robot; the worlds have decimal numbers, or words."""
    values = [line.value for line in lines_for(body, robot) if line.kind == "delay"]
    return max((float(value) for value in values if value.replace(".", "", 1).isdigit()), default=None)


def for_all(name: str) -> bool:
    return name == "*" or (name[:1] == "*" and name[1] in BLANKS)


# --- 2.2.2 and 2.2.3: octets, patterns, the longest match


@lru_cache(maxsize=1000)
def octets(text: str, *, is_rule: bool = False) -> str:
    """Decode escapes of unreserved characters; escape all that a URL cannot have."""
    made, place = "", 0
    while place < len(text):
        char = text[place]
        digits = text[place + 1 : place + 3]
        if char == "%" and len(digits) == 2 and all(digit in HEX for digit in digits):
            decoded = chr(int(digits, 16))
            made += decoded if decoded in UNRESERVED else f"%{digits.upper()}"
            place += 3
            continue
        rest = text[place + 1 :].split("*", maxsplit=1)[0]
        if char == "%":
            cut_off = is_rule and len(rest) < 2 and all(digit in HEX for digit in rest)
            made += "%" if cut_off else "%25"
        elif char in UNRESERVED + RESERVED and char not in "[]":
            made += char
        else:
            made += "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogateescape"))
        place += 1
    return made


def resolved(target: str) -> str:
    path, mark, query = target.partition("?")
    kept: list[str] = []
    *segments, last = path.split("/")
    if last in (".", ".."):
        segments, last = [*segments, last], ""
    for segment in segments:
        if segment == ".." and len(kept) > 1:
            kept.pop()
        elif segment not in (".", ".."):
            kept.append(segment)
    return "/".join([*kept, last]) + mark + query


def matches(pattern: str, target: str) -> bool:
    """Try all places, as Google's matcher does."""
    is_end = pattern.endswith("$")
    places = {0}
    for char in pattern[:-1] if is_end else pattern:
        if char == "*":
            places = set(range(min(places), len(target) + 1))
        else:
            places = {place + 1 for place in places if place < len(target) and target[place] == char}
        if not places:
            return False
    return not is_end or len(target) in places


def path_of(rule: Line, origin: str) -> str | None:
    """Return the path of a rule; None if it has no effect."""
    value = rule.value
    if rule.kind == "allow":
        is_path = value[:1] in ("/", "*") and not any(char <= " " or char == "\x7f" for char in value)
        has_escapes = all(
            len(part) > 1 and part[0] in HEX and part[1] in HEX for part in value.split("%")[1:]
        )
        return value if is_path and has_escapes else None
    if not value or value.startswith(("/", "*")):
        return value or None
    if value.startswith(f"{origin}/") or value == origin:
        return value.removeprefix(origin) or "/"
    scheme, colon, rest = value.partition(":")
    if (
        colon
        and scheme in ("http", "https", "mailto", "ftp")
        and (rest.startswith("//") or scheme == "mailto")
    ):
        return None
    return f"/{value}"


def allowed(body: bytes | str, url: str, robot: str) -> bool:
    parts = url.split("#", maxsplit=1)[0].split("/", 3)
    origin, target = "/".join(parts[:3]), "/" + (parts[3] if len(parts) > 3 else "")
    sent = octets(target)
    if resolved(sent) == "/robots.txt":
        return True
    patterns = [
        (octets(path, is_rule=True), rule.kind == "allow")
        for rule in lines_for(body, robot)
        if rule.kind != "delay" and (path := path_of(rule, origin)) is not None
    ]
    return all(_is_allowed(patterns, form) for form in {sent, resolved(sent)})


def _is_allowed(patterns: list[tuple[str, bool]], target: str) -> bool:
    escaped = target.replace("*", "%2A").replace("$", "%24")
    found = [(len(path), allows) for path, allows in patterns if matches(path, target)]
    if escaped != target:  # an escape in a rule stands for the character
        found += [
            (len(path), allows)
            for path, allows in patterns
            if matches(path, escaped) and ("%2" in path or not allows)
        ]
    return max(found, default=(0, True))[1]
