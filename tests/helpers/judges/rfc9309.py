"""A second, simple implementation of RFC 9309 as docs/rfc9309.md reads it, to compare with the parser.

It shares no code with the package, is not fast, and only decides: ``allowed(body, url, robot)``. Each
function is one section of the RFC. ``python -m tests.helpers.judges.rfc9309 --count N --seed N`` asks both
about N random files, and prints the answers that differ.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator
from typing import NamedTuple

from scrapy_norobots.standard import RobotsTxt

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


def lines(body: bytes) -> Iterator[Line]:
    text = body.decode("utf-8", "surrogateescape").lstrip("\ufeff")
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
    words = letters.replace("/", " ").split()
    return words[0].lower() if words and not letters.startswith("/") else ""


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


def lines_for(body: bytes, robot: str) -> list[Line]:
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


def delay(body: bytes, robot: str) -> float | None:
    """Return the largest ``Crawl-delay`` of a robot; the worlds have decimal numbers, or words."""
    values = [line.value for line in lines_for(body, robot) if line.kind == "delay"]
    return max((float(value) for value in values if value.replace(".", "", 1).isdigit()), default=None)


def for_all(name: str) -> bool:
    return name == "*" or (name[:1] == "*" and name[1] in BLANKS)


# --- 2.2.2 and 2.2.3: octets, patterns, the longest match


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
        return value if is_path else None
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


def allowed(body: bytes, url: str, robot: str) -> bool:
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


# --- random questions

_VALUES = [
    "FooBot",
    "foobot",
    "Foo",
    "bot",
    "*",
    "* x",
    "*foo",
    "FooBot/1.2",
    "FooBot2",
    "Foo Bot",
    "",
    "360Bot",
]
_AGENTS = [
    "User-agent:",
    "user-agent :",
    "User agent:",
    "useragent:",
    "User-Agent ",
    "User-agents:",
    "Uesr-agent:",
]
_FIELDS = [
    "Disallow:",
    "disallow :",
    "Dissallow:",
    "Disalow ",
    "Disallowed:",
    "Allow:",
    "ALLOW :",
    "Allowed:",
    "Allow ",
]
_OTHERS = ["Crawl-delay: 5", "Sitemap: http://h/s", "", "  ", "# c", "<html>", "Noindex: /a", "Disallow"]
_PIECES = [
    *"ab/*$?=&.",
    "%41",
    "%2F",
    "%3F",
    "é",
    "%c3",
    "/.",
    "//",
    "x y",
    "|",
    "%",
    "%2",
    "~",
    "%2A",
    "%24",
    "\f",
    "#c",
]
_TARGETS = [
    *"ab/?=&.",
    "%41",
    "%2F",
    "%3F",
    "%C3%A9",
    "/../",
    "~",
    "%7E",
    "%2A",
    "%24",
    "$",
    "*",
    "%20",
    "|",
    "%",
]
_ROBOTS = [
    "FooBot/1.0 (+https://foo.example/bot)",
    "Mozilla/5.0 (compatible; FooBot/1.0)",
    "360Bot",
    "Foo",
    "*",
    "bot",
]
_ORIGIN = "http://town.example"


def questions(seed: int, count: int) -> Iterator[tuple[bytes, str, str]]:
    """Yield random questions: a body, a URL and a robot."""
    some = random.Random(seed)

    def path(pieces: list[str]) -> str:
        return "/" + "".join(
            some.choice(pieces[:9] if some.random() < 0.6 else pieces) for _ in range(some.randint(0, 5))
        )

    def line() -> str:
        kind = some.random()
        if kind < 0.3:
            return (
                some.choice(_AGENTS[:1] if some.random() < 0.6 else _AGENTS)
                + some.choice(["", " "])
                + some.choice(_VALUES)
            )
        if kind < 0.8:
            name = some.choice(["Disallow:", "Allow:"] if some.random() < 0.6 else _FIELDS)
            odd = some.choice(["", "a", "*.b", "$", f"{_ORIGIN}/a", "http://h/b", "mailto:x"])
            return f"{name} {path(_PIECES) if some.random() < 0.9 else odd}"
        return some.choice(_OTHERS)

    for _ in range(count):
        end = some.choice(["\n", "\r\n", "\r"])
        body = end.join(line() for _ in range(some.randint(1, 9))).encode()
        for _ in range(4):
            yield body, _ORIGIN + path(_TARGETS), some.choice(_ROBOTS)


def differences(seed: int, count: int) -> Iterator[tuple[bytes, str, str]]:
    """Yield the random questions to which the two implementations have different answers."""
    for body, url, robot in questions(seed, count):
        both = RobotsTxt.parse(body, reading="both")
        later = RobotsTxt.parse(body, reading="rfc9309")
        answers = {later.allowed(url, robot), later.decide(url, robot).allowed, allowed(body, url, robot)}
        strict = RobotsTxt.parse(body).allowed(url, robot)
        together = {
            both.allowed(url, robot),
            both.decide(url, robot).allowed,
            strict and later.allowed(url, robot),
        }
        if len(answers) > 1 or len(together) > 1:
            yield body, url, robot


def main() -> int:
    """Ask random questions, and print those whose answers differ."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=9309)
    options = parser.parse_args()
    found = 0
    for found, question in enumerate(differences(options.seed, options.count), 1):
        sys.stdout.write(f"{question}\n")
        if found >= 20:
            break
    sys.stdout.write(f"{4 * options.count:,} questions, {found} differences\n")
    return min(found, 1)


if __name__ == "__main__":
    sys.exit(main())
