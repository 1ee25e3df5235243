"""``readings``: how often the 1994 standard, RFC 9309 and Protego differ, and why Protego does.

The cause of a difference is the first change of the file, or of the robot, after which Protego agrees.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

from protego import Protego

from benchmarks.files import page_urls, robots_txts
from benchmarks.report import progress, table
from scrapy_norobots.standard import RobotsTxt
from scrapy_norobots.standard.names import Robot

_ROBOTS = (
    "Scrapy",
    "FooBot/1.0 (+https://foo.example/bot)",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
)
_URLS_A_FILE = 50
_RULES_A_FILE = 200

_RULE = re.compile(r"(?:dis)?allow\s*:\s*(/[^\s#]*)", re.IGNORECASE)
_KNOWN = re.compile(r"[ \t]*(?:user-agent|allow|disallow)[ \t]*:|[ \t]*(?:#|$)", re.IGNORECASE)
_ESCAPED = re.compile("[\u00a0\ud800-\udfff]")
_INDEX = re.compile(r"[ \t]*allow[ \t]*:.*/index\.htm", re.IGNORECASE)
_LINE = re.compile(r"([ \t]*)(user-agent|disallow|allow)([ \t]*:[ \t]*)([^#]*)", re.IGNORECASE)


def _by_lines(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(map(change, re.split(r"\r\n|\r|\n", text)))


def _without_other_record(line: str) -> str:
    return line if _KNOWN.match(line) else "#"


def _path_from_root(line: str) -> str:
    match = _LINE.match(line)
    if match is None or match[2].lower() != "disallow" or not match[4].strip() or match[4][0] in "/*":
        return line
    return f"{match[1]}{match[2]}{match[3]}/{match[4]}"


def _only_the_token(line: str) -> str:
    match = _LINE.match(line)
    if match is None or match[2].lower() != "user-agent":
        return line
    token = re.match(r"\*(?=\s|$)|[A-Za-z_-]+", match[4])
    return f"User-agent: {token[0] if token else 'none'}"


def _counted_by_octets(line: str) -> str:
    """Write a rule with only characters that Protego counts as one octet."""
    match = _LINE.match(line)
    if match is None or match[2].lower() == "user-agent":
        return line
    return f"{match[2]}: " + re.sub(r"[^A-Za-z0-9/*$._~-]", "_", match[4].strip())


# Each change of a file, in the order in which they are tried, all those before it included.
_CHANGES: dict[str, Callable[[str], str]] = {
    "form feeds and the like end lines": lambda text: re.sub(
        "[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", "%01", text
    ),
    "other records end a group": _by_lines(_without_other_record),
    "a name in a `User-agent` line is compared otherwise": _by_lines(_only_the_token),
    "a path without `/`": _by_lines(_path_from_root),
    "`Allow: /a/index.html` allows `/a/` too": _by_lines(lambda line: "#" if _INDEX.match(line) else line),
}


def run(folder: Path | None) -> None:
    """Count and print the tables.

    A directory has the files ``robots/HOST``, and ``links/HOST`` with one URL per line. Without it, both are
    generated.
    """
    found = list(_sites(folder))
    urls = sum(len(links) for _, links in found)
    title = f"readings: {urls:,} links of {len(found):,} sites"
    progress(title)
    forbidden: dict[str, list[int]] = {"both": [], "1994 alone": [], "RFC 9309 alone": []}
    for body, links in found:
        strict, later = RobotsTxt.parse(body), RobotsTxt.parse(body, reading="rfc9309")
        verdicts = [(strict.allowed(url, _ROBOTS[0]), later.allowed(url, _ROBOTS[0])) for url in links]
        for name, verdict in zip(forbidden, ((False, False), (False, True), (True, False)), strict=True):
            forbidden[name].append(verdicts.count(verdict))
    rows = [[name, f"{sum(counts):,}", f"{sum(map(bool, counts)):,}"] for name, counts in forbidden.items()]
    table(title, ["forbidden by", "links", "of sites"], rows)
    _compare_with_protego([body for body, _ in _files(folder)])


def _compare_with_protego(bodies: list[bytes]) -> None:
    """Ask both about paths of the rules themselves, where they differ most, for several robots."""
    asked = 0
    causes: dict[str, list[set[int]]] = {}
    for number, body in enumerate(bodies):
        text = body.decode("utf-8", "ignore").lstrip("\ufeff")
        paths = {path.replace("*", "x").rstrip("$") for path in _RULE.findall(text)[:_RULES_A_FILE]}
        targets = sorted({"/", *paths, *(f"{path}a" for path in paths)})
        for robot in _ROBOTS:
            later, protego = RobotsTxt.parse(body, reading="rfc9309"), Protego.parse(text)
            for target in targets:
                url = f"http://town.example{target}"
                asked += 1
                allowed = later.allowed(url, robot)
                if allowed != protego.can_fetch(url, robot):
                    places = causes.setdefault(_cause(body, text, url, robot, allowed), [set(), set()])
                    places[allowed].add(number)
    rows = [
        [cause, f"{len(forbids):,}", f"{len(allows):,}"]
        for cause, (forbids, allows) in sorted(causes.items(), key=lambda one: -sum(map(len, one[1])))
    ]
    title = (
        f"readings: RFC 9309 and Protego, {asked:,} questions, {len(bodies):,} files, {len(_ROBOTS)} robots"
    )
    table(title, ["cause of the difference", "files: Protego allows", "files: Protego forbids"], rows)


def _cause(body: bytes, text: str, url: str, robot: str, allowed: bool) -> str:
    token = Robot.of(robot).token
    if Protego.parse(text).can_fetch(url, token) == allowed:
        return "words of the header are compared, not the product token"
    text = _ESCAPED.sub(
        lambda match: quote(match[0], errors="surrogateescape"), body.decode("utf-8", "surrogateescape")
    )
    if Protego.parse(text).can_fetch(url, token) == allowed:
        return "bytes that are not UTF-8, and no-break spaces, are dropped"
    for cause, change in _CHANGES.items():
        text = change(text)
        if Protego.parse(text).can_fetch(url, token) == allowed:
            return cause
    counted = _by_lines(_counted_by_octets)(text)
    changed = "http://town.example" + re.sub(
        r"[^A-Za-z0-9/._~-]", "_", url.removeprefix("http://town.example")
    )
    if Protego.parse(counted).can_fetch(changed, token) == allowed:
        return "characters such as `?` and `=` count as three octets, or are compared as their escapes"
    return "other"


def _files(folder: Path | None) -> Iterator[tuple[bytes, str]]:
    if folder is None:
        yield from ((body, "") for body in robots_txts())
    else:
        yield from ((path.read_bytes(), path.name) for path in sorted((folder / "robots").iterdir()))


def _sites(folder: Path | None) -> Iterator[tuple[bytes, list[str]]]:
    """Yield the robots.txt of each site and URLs of it."""
    if folder is None:
        urls = page_urls(5_000)
        for number, body in enumerate(robots_txts()):
            start = number * _URLS_A_FILE % len(urls)
            yield body, urls[start : start + _URLS_A_FILE]
        return
    for links in sorted((folder / "links").iterdir()):
        robots = folder / "robots" / links.name
        if robots.is_file():
            yield robots.read_bytes(), links.read_text("utf-8", "replace").splitlines()
