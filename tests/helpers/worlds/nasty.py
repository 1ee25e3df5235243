"""Generate random files, URLs and robots that are as hard as the clauses of the standard allow.

`case` makes a file and some questions from a seeded generator. There are few names, which are parts of one
another, and few pieces of paths, which are spellings of one another, so that random URLs often match random
rules.
"""

from __future__ import annotations

import re
from random import Random
from typing import NamedTuple


def _cut(text: str, separator: str = " ") -> list[str]:
    """Split a text into a list that would be hard to read in code."""
    return text.split(separator)


LINE_ENDS = ["\n", "\r\n", "\r"]
BLANKS = ["", "", "", "", " ", "\t", " \t "]
COMMENTS = ["", "", "", "", "#", " # Disallow: /", "#x", "\t#\t"]
COLONS = [":"] * 20 + ["", "::", "\uff1a"]
LINES = ["", "", " ", "\t \t", "\x0c", "\x0b", "\x85", "\u2028", "\xa0", "\ufeff", "\x00", "\udcff"]
LINES += _cut(
    "#| #|# User-agent: *|:|hm|<html>|<!-- x -->|Disallow|User-agent|Disallow: /a\x0cDisallow: /b", "|"
)
FIELDS = ["Disallow"] * 14 + ["DISALLOW", "disallow"] + ["User-agent"] * 5 + ["USER-agent", "user-AGENT"]
FIELDS += ["Allow", "Dissallow", "User agent", "Di\u017fallow", "", "Useragent", "Disallow\xa0"]
PAGES = _cut(
    "<!DOCTYPE html>\n|<?xml?>\n<html>|<!-- x -->|<!--><html>|<header>|<html\x85x>|<head\udcff>", "|"
)
PAGES += _cut(
    "<!doctype\n HTML>|<!doctype>html|<body/>|<html|<b>|<head |<!-- a|<? ?><HTML/|\ufeff<html>", "|"
)

WORDS = _cut("tam tam tamarin tamarin TAMARIN golden Golden potto i 2 - _ * ; ( mozilla compatible; ss")
WORDS += [" ", " ", "\t", "  ", "\xa0", "\xe9", "\xc9", "\u0131", "\u017f", "\xdf"]
VERSIONS = _cut("|||||||/1.0|/1.0|/| 1.0| v2.0b| 2|/2 (x)| (x)|[x]| [x]|(x)| 1.| .1|v1.0| 1.x| 1.2b.3", "|")
VERSIONS += _cut(" 1..2| V1.2.3| 1.2-3| \u0661.2|\xa01.0|\x0b(x)| \t 1.0| (x) 1.0| 1.0 2.0|\t/|;|)", "|")
WRAPPINGS = ["{}"] * 30 + ["Mozilla/5.0 (compatible; {}; +http://x/)", "mozilla/5.0 (COMPATIBLE; {})"] * 3
WRAPPINGS += ["Mozilla/5.0 ({})", "Mozilla/5.0 (X11; compatible ; {}; x) compatible; y", "\xa0{}\x0c"]
WRAPPINGS += ["Mozilla/5.0 (X11; compatible; {}/1.0; x)", "Mozilla/5.0 (incompatible; {})"]
WRAPPINGS += ["Mozilla/5.0 (compatible; ; {})", "Mozilla/5.0 (compatible;) {}", "Mozilla/ compatible; {}"]
WRAPPINGS += ["xMozilla/5.0 (compatible; {})", "Mozilla (compatible; {})", "Mozilla/ (compat\u0131ble; {})"]
WRAPPINGS += [" Mozilla/5.0 (compatible; compatible; {})", "Mozilla/5.0 (compatible;\t ) (compatible; {})"]
WRAPPINGS += ["Mozilla/5\n(\tcompatible;\n{}\n)"]

PIECES = _cut(
    "/ / / / / a a a b b A ~ - . .. /./ /../ /. /.. // ? ? = & * $ + ; , : @ ! \" < [ ] \\ ^ ` { | } ' ("
)
PIECES += _cut(
    "%61 %7E %7e %2F %2f %2e %2E %25 %2561 % %4 %zz %3F %23 %c3 %C3%a9 \xe9 e\u0301 \u6f22 \U0001f600"
)
PIECES += [" ", "\t", "\udce9", "\x00", "\x1f", "\x7f", "\x85", "\u2028", "\xa0", "\ufeff"]
ROBOTS_TXT = _cut("/robots.txt /ROBOTS.txt /%72obots.txt /a/../robots%2Etxt /robots.txt? /robots.txt?v")
ROBOTS_TXT += ["/robots.txt.bak", "/robots.txt/", "/./robots.txt", "//robots.txt"]

ORIGINS = ["http://garden.example"] * 2 + ["https://garden.example:444"]
SCHEMES = ["http"] * 5 + ["https", "https", "HTTP", "hTtPs"]
USERS = [""] * 6 + ["tam@", "tam:secret@", "a@b@", ":@"]
HOSTS = ["garden.example"] * 6 + ["GARDEN.example", "garden.example.", "hedge.example", "g\xe4rten.example"]
HOSTS += ["xn--grten-gra.example", "[::1]", "[::A]", "127.0.0.1", "", "a..b", "\xe9..b", "x" * 300]
PORTS = (
    [""] * 8 + _cut(":80 :443 : :080 :00000000000080 :81 :444 :444 :65535 :65536 :x :-1 :\u0661") + [":8 0"]
)
OTHERS = _cut("mailto:a MAILTO:a javascript:/a ftp://garden.example/a data:,a foo://garden.example/a Help:a")
OTHERS += _cut(
    "http:a http:/a https: foo:/a about: 1http://garden.example/ //garden.example/a ://a new\u017f:a"
)
OTHERS += [
    "f\u0131le:a",
    "ht\ttp://garden.example/a",
    "http\\://a",
    "http:///a",
    "HTTP://",
    "//",
    "///",
    "//?a",
]
AROUND = [""] * 9 + [" ", "\t", "\n", "\x00", "\x1f ", "\x7f", "\xa0", "\u3000"]


class Case(NamedTuple):
    """A file with questions: pairs of a URL and a robot."""

    body: bytes | str
    questions: list[tuple[str, str]]


def case(some: Random, questions: int = 5) -> Case:
    """Return a file and questions about it."""
    paths, names = [_path(some) for _ in range(3)], [_name(some) for _ in range(2)]
    body = _encoded(some, _text(some, names, paths))
    robots = [_robot(some, names) for _ in range(2)]
    return Case(body, [(_url(some, paths), some.choice(robots)) for _ in range(questions)])


def body(some: Random, names: list[str], paths: list[str]) -> bytes:
    """Return a file that has some of these names and paths."""
    made = _encoded(some, _text(some, names, paths))
    return made if isinstance(made, bytes) else made.encode("utf-8", "surrogateescape")


def text(some: Random) -> str:
    """Return the text of a file."""
    return _text(some, [_name(some) for _ in range(2)], [_path(some) for _ in range(3)])


def _path(some: Random) -> str:
    if some.random() < 0.04:
        return some.choice(ROBOTS_TXT)
    return "/" + "".join(some.choices(PIECES, k=some.randrange(6)))


def _whole_url(some: Random) -> str:
    target = some.choice(["", "?a", _path(some), _path(some), _path(some)])
    authority = some.choice(USERS) + some.choice(HOSTS) + some.choice(PORTS)
    return f"{some.choice(SCHEMES)}://{authority}{target}"


def _name(some: Random) -> str:
    words = some.choices(WORDS, k=some.choice([0, 1, 1, 1, 1, 1, 2, 2, 3]))
    return "".join(words) + some.choice(VERSIONS)


def _robot(some: Random, names: list[str]) -> str:
    """Return the name or header of a robot, often with one of `names` in it."""
    kind = some.randrange(8)
    if kind == 0:
        return "*"
    name = some.choice(names) if kind < 5 else _name(some)
    if kind == 1:
        name = some.choice(WORDS) + name
    return some.choice(WRAPPINGS).format(name)


def _value(some: Random, paths: list[str]) -> str:
    """Return the value of a rule, often one of `paths` or its beginning."""
    kind = some.randrange(14)
    if kind == 0:
        return some.choice(["", "", " "])
    if kind == 1:
        return some.choice(ORIGINS) + some.choice(["", *paths])
    if kind == 2:
        return some.choice([*OTHERS, _whole_url(some)])
    if kind == 3:
        return _path(some).lstrip("/")
    if kind < 10:
        path = some.choice(paths)
        return path[: some.randint(1, len(path))]
    return _path(some)


def _line(some: Random, names: list[str], paths: list[str]) -> str:
    field = some.choice(FIELDS)
    if field[:1] in ("u", "U"):
        value = "*" if some.random() < 0.4 else some.choice(WRAPPINGS).format(some.choice(names))
    else:
        value = _value(some, paths)
    before, between, after, at_end = some.choices(BLANKS, k=4)
    return f"{before}{field}{between}{some.choice(COLONS)}{after}{value}{at_end}{some.choice(COMMENTS)}"


def _text(some: Random, names: list[str], paths: list[str]) -> str:
    parts = [some.choice(PAGES) if some.random() < 0.08 else ""]
    usual_end = some.choice(LINE_ENDS)
    if some.random() < 0.8:
        parts += ["User-agent: " + some.choice(["*", *names]), usual_end]
    for _ in range(some.randint(1, 12)):
        parts.append(some.choice(LINES) if some.random() < 0.15 else _line(some, names, paths))
        parts.append(usual_end if some.random() < 0.8 else some.choice(LINE_ENDS))
    return "".join(parts)


def _respelt(some: Random, path: str) -> str:
    """Return a spelling of a path, usually another one."""
    return "".join(
        f"%{ord(letter):02{some.choice('xX')}}"
        if letter.isascii() and letter.isalnum() and some.random() < 0.3
        else some.choice(["/./", "/a/../", "/%2e/", "/a/.%2E/"])
        if letter == "/" and some.random() < 0.2
        else letter
        for letter in path
    )


def _encoded(some: Random, text: str) -> bytes | str:
    """Return a file in one of its possible encodings and line endings."""
    kind = some.randrange(16)
    if kind == 0:
        return some.choice(["", "\ufeff"]) * some.randint(1, 2) + text
    if kind == 1:
        order = some.choice(["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
        body = (some.choice(["", "\ufeff"]) + text).encode(order, "surrogatepass")
        return body[: len(body) - some.randrange(5)]
    body = text.encode("utf-8", "surrogateescape")
    if kind == 2:
        return b"\xef\xbb\xbf" * some.randint(1, 2) + body
    if kind == 3:
        place = some.randint(0, len(body))
        return body[:place] + bytes(some.choices(range(256), k=some.randint(1, 3))) + body[place:]
    return body


def _url(some: Random, paths: list[str]) -> str:
    """Return a URL to ask about: usually one of `paths`, with a suffix, at an origin."""
    kind = some.randrange(14)
    if kind == 0:
        around, behind = some.choices(AROUND, k=2)
        return around + _whole_url(some) + some.choice(["", "", "#a", "#?/"]) + behind
    if kind == 1:
        return some.choice([*OTHERS, "", "a", "?a", "#a", "Tamarin/1.0", "/"])
    target = some.choice(paths) + "".join(some.choices(PIECES, k=some.choice([0, 0, 1, 2])))
    if kind == 2:
        return target
    if kind < 6:
        place = some.randint(0, len(target))
        target = target[:place] + some.choice(["\t", "\n", "\r", "#"]) + target[place:]
    elif kind < 10:
        target = _respelt(some, target)
    return some.choice(ORIGINS) + (target[1:] if target.startswith("/?") else target)


# --- files for RFC 9309, with fewer spellings: its second implementation knows no more

_LATER_NAMES = ["FooBot", "foobot", "Foo", "bot", "*", "* x", "*foo", "FooBot/1.2", "FooBot2", "Foo Bot", ""]
_LATER_NAMES += ["360Bot"]
_LATER_AGENTS = _cut(
    "User-agent:|user-agent :|User agent:|useragent:|User-Agent |User-agents:|Uesr-agent:", "|"
)
_LATER_RULES = _cut(
    "Disallow:|disallow :|Dissallow:|Disalow |Disallowed:|Allow:|ALLOW :|Allowed:|Allow ", "|"
)
_LATER_LINES = _cut("Crawl-delay: 5|Sitemap: http://h/s||  |# c|<html>|Noindex: /a|Disallow", "|")
_LATER_PIECES = [*"ab/*$?=&.", *_cut("%41 %2F %3F \xe9 %c3 /. // | % %2 ~ %2A %24 #c"), "x y", "\f"]
_LATER_TARGETS = [*"ab/?=&.", *_cut("%41 %2F %3F %C3%A9 /../ ~ %7E %2A %24 $ * %20 | %")]
_LATER_ROBOTS = ["FooBot/1.0 (+https://foo.example/bot)", "Mozilla/5.0 (compatible; FooBot/1.0)"]
_LATER_ROBOTS += ["360Bot", "Foo", "*", "bot"]
_LATER_ORIGIN = "http://town.example"


def later_case(some: Random) -> Case:
    """Return a file with four questions about it."""
    lines: list[str] = []
    for _ in range(some.randint(1, 9)):
        # Some rules begin like an earlier one.
        known = [line for line in lines if line.startswith(("Disallow: /", "Allow: /"))]
        is_longer = known and some.random() < 0.3
        lines.append(some.choice(known) + some.choice(_LATER_PIECES) if is_longer else _later_line(some))
    paths = [_later_path(some, _LATER_TARGETS) for _ in range(4)]
    for line in lines:
        if line.startswith(("Disallow: /", "Allow: /")) and some.random() < 0.3:
            # What a rule matches, or nearly.
            paths[0] = re.sub(r"\*", lambda _: some.choice(_LATER_TARGETS), line.partition(": ")[2])
    return Case(
        _encoded(some, some.choice(LINE_ENDS).join(lines)),
        [(_LATER_ORIGIN + path, some.choice(_LATER_ROBOTS)) for path in paths],
    )


def _later_path(some: Random, pieces: list[str]) -> str:
    return "/" + "".join(
        some.choice(pieces[:9] if some.random() < 0.6 else pieces) for _ in range(some.randint(0, 5))
    )


def _later_line(some: Random) -> str:
    kind = some.random()
    if kind < 0.3:
        agent = some.choice(_LATER_AGENTS[:1] if some.random() < 0.6 else _LATER_AGENTS)
        return agent + some.choice(["", " "]) + some.choice(_LATER_NAMES)
    if kind < 0.8:
        name = some.choice(["Disallow:", "Allow:"] if some.random() < 0.6 else _LATER_RULES)
        odd = some.choice(["", "a", "*.b", "$", f"{_LATER_ORIGIN}/a", "http://h/b", "mailto:x"])
        return f"{name} {_later_path(some, _LATER_PIECES) if some.random() < 0.9 else odd}"
    return some.choice(_LATER_LINES)
