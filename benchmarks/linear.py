"""``linear``: whether time grows with the length of a file and no faster, for files made to be hard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from benchmarks.report import progress, table
from benchmarks.timing import in_turns
from scrapy_norobots.standard import RobotsTxt

_MB = 1 << 20
_ALL = b"User-agent: *\n"


def _numbered(line: bytes, count: int) -> bytes:
    return b"".join(line % number for number in range(count))


Kinds = dict[str, tuple[Callable[[int], bytes], int]]

# What a file of a size, in lines or bytes, is made of; and the size that is doubled twice.
KINDS: Kinds = {
    "blank lines": (lambda n: _ALL + b"\n" * n, 1_000_000),
    "CR LF and CR": (lambda n: _ALL + b"\r\n\r" * n, 500_000),
    "comments": (lambda n: _ALL + b" # Have a look at the nest.\n" * n, 200_000),
    "one long path": (lambda n: _ALL + b"Disallow: /" + b"x" * n, 5 * _MB),
    "one long name": (lambda n: b"User-agent: " + b"x" * n + b"\nDisallow: /", 5 * _MB),
    "names in one record": (lambda n: _numbered(b"User-agent: bot%d\n", n) + b"Disallow: /", 100_000),
    "records": (lambda n: _numbered(b"User-agent: bot%d\nDisallow: /\n\n", n), 100_000),
    "default records": (lambda n: _numbered(b"User-agent: *\nDisallow: /%d\n\n", n), 100_000),
    "rules": (lambda n: _ALL + _numbered(b"Disallow: /%d/\n", n), 100_000),
    "rules, each escaped": (lambda n: _ALL + _numbered(b"Disallow: /%%7e%d/%%c3\n", n), 100_000),
    "whole URLs": (lambda n: _ALL + _numbered(b"Disallow: http://h%d.example/x\n", n), 50_000),
    "%2525…": (lambda n: _ALL + b"Disallow: /%" + b"25" * (n // 2), 5 * _MB),
    "%25%25…": (lambda n: _ALL + b"Disallow: /" + b"%25" * (n // 3), _MB),
    "%%%…": (lambda n: _ALL + b"Disallow: /" + b"%" * n, _MB),
    "not UTF-8": (lambda n: _ALL + b"Disallow: /" + b"\xe9" * n, _MB),
    "dot segments": (lambda n: _ALL + b"Disallow: /" + b"a/.././" * (n // 7), 5 * _MB),
    "blanks in a value": (lambda n: _ALL + b"Disallow: /x" + b" " * n + b"x", 5 * _MB),
    "blanks before nothing": (lambda n: b" " * n, 5 * _MB),
    "blanks in a name": (lambda n: b"User-agent: x" + b" " * n + b"x\nDisallow: /", 5 * _MB),
    "User-agent:User-agent:…": (lambda n: b"User-agent:" * (n // 11), 5 * _MB),
    "User-agentUser-agent…": (lambda n: b"User-agent" * (n // 10), 5 * _MB),
    "User-agent, blanks, no colon": (lambda n: b"User-agent" + b" " * n, 5 * _MB),
    "lines that are almost fields": (lambda n: b"Disalow: /\nUser agent: x\nUser-agent\n" * n, 20_000),
    "unknown fields": (lambda n: _numbered(b"X-%d: /\n", n), 50_000),
    "compatible": (lambda n: b"User-agent: Mozilla/" + b"(compatible; " * (n // 13), 5 * _MB),
    "compatible and blanks": (lambda n: b"User-agent: Mozilla/(compatible;" + b" " * n + b")", 5 * _MB),
    "versions": (lambda n: b"User-agent: x" + b" 1.2" * (n // 4) + b" x\nDisallow: /", 5 * _MB),
    "open HTML comments": (lambda n: b"<!--" * (n // 4), 5 * _MB),
    "HTML comments": (lambda n: b"<!---->" * (n // 7), 5 * _MB),
}
URLS: Kinds = {
    "long path": (lambda n: b"/" + b"x" * n, _MB),
    "dots": (lambda n: b"/./.././.." * (n // 10), _MB),
    "escaped dots": (lambda n: b"/%2e%2e" * (n // 7), _MB),
    "%%%…": (lambda n: b"/" + b"%" * n, _MB),
    "%2525…": (lambda n: b"/%" + b"25" * (n // 2), _MB),
    "not ASCII": (lambda n: b"/" + "é".encode() * n, _MB),
    "port": (lambda n: b":" + b"0" * n + b"80/", _MB),
    "user": (lambda n: b":x@" * (n // 3) + b"/", _MB),
}


_ROBOT = "Tamarin/1.2"
_HOST = "http://garden.example"


def _parse(body: bytes) -> object:
    return RobotsTxt.parse(body)


def _decide(body: bytes) -> object:
    return str(RobotsTxt.parse(body).decide(_HOST + "/nest/egg.html", _ROBOT))


def _findings(body: bytes) -> object:
    return RobotsTxt.parse(body).findings


def _name(body: bytes) -> object:
    return _ASKED.decide("/nest", body.removeprefix(b"User-agent: ").partition(b"\n")[0])


def _url(target: bytes) -> object:
    return _ASKED.allowed(_HOST + target.decode(), _ROBOT)


_ASKED = RobotsTxt.parse(_ALL + _numbered(b"Disallow: /%d/\n", 10) + b"Disallow: /x/%7e\n")


def run(rounds: int) -> None:
    """Measure and print the tables."""
    columns = {"parse": _parse, "and decide": _decide, "and find": _findings}
    _table("linear: files", KINDS, columns, rounds)
    _table("linear: URLs", URLS, {"check": _url}, rounds)
    names = {kind: KINDS[kind] for kind in ("one long name", "blanks in a name", "compatible", "versions")}
    _table("linear: names of robots", names, {"decide": _name}, rounds)


def _table(title: str, kinds: Kinds, columns: Mapping[str, Callable[[bytes], object]], rounds: int) -> None:
    rows = []
    for kind, (make, size) in kinds.items():
        progress(f"{title}, {kind}")
        made = {factor: make(size * factor) for factor in (1, 2, 4)}
        things = {
            f"{name} {factor}": partial(action, body)
            for name, action in columns.items()
            for factor, body in made.items()
        }
        least = in_turns(things, rounds)
        rows.append([kind, f"{size:,}", *(_growth([least[f"{name} {f}"] for f in made]) for name in columns)])
    table(
        f"{title}; milliseconds at the size, twice and four times it, × the time before",
        ["", "size", *columns],
        rows,
    )


def _growth(times: list[float]) -> str:
    once, twice, four = times
    return f"{once * 1e3:.1f}, {twice * 1e3:.1f}, {four * 1e3:.1f} ({twice / once:.1f}×, {four / twice:.1f}×)"
