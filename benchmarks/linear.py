"""``linear``: whether the time grows linearly with the length of a file, for hostile files.

Each is measured at 1, 2 and 4 MB. The last figure is the longest time for which other threads waited at 2 MB:
for so long such a file can block an event loop that reads it in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from benchmarks.report import progress, table
from benchmarks.timing import in_turns, longest_hold
from scrapy_norobots.standard import RobotsTxt

_ALL = b"User-agent: *\n"
SIZE = 2_000_000
_FACTORS = (0.5, 1, 2)


def _numbered(line: bytes, count: int) -> bytes:
    return b"".join(line % number for number in range(count))


Kinds = dict[str, Callable[[int], bytes]]

# The contents of files, by the number of repetitions.
KINDS: Kinds = {
    "blank lines": lambda n: _ALL + b"\n" * n,
    "lines of a blank": lambda n: _ALL + b" \n" * n,
    "CR LF and CR": lambda n: _ALL + b"\r\n\r" * n,
    "comments": lambda n: _ALL + b" # Have a look at the nest.\n" * n,
    "lines of a letter": lambda n: _ALL + b"x\n" * n,
    "one long path": lambda n: _ALL + b"Disallow: /" + b"x" * n,
    "one long name": lambda n: b"User-agent: " + b"x" * n + b"\nDisallow: /",
    "names in one record": lambda n: _numbered(b"User-agent: bot%d\n", n) + b"Disallow: /",
    "records": lambda n: _numbered(b"User-agent: bot%d\nDisallow: /\n\n", n),
    "empty records": lambda n: b"User-agent:\n\n" * n,
    "records in a paragraph": lambda n: _numbered(b"User-agent: bot%d\nDisallow: /\n", n),
    "default records": lambda n: _numbered(b"User-agent: *\nDisallow: /%d\n\n", n),
    "rules": lambda n: _ALL + _numbered(b"Disallow: /%d/\n", n),
    "empty rules": lambda n: _ALL + b"Disallow:\n" * n,
    "rules, each escaped": lambda n: _ALL + _numbered(b"Disallow: /%%7e%d/%%c3\n", n),
    "rules, not ASCII": lambda n: _ALL + _numbered("Disallow: /é%d/\n".encode(), n),
    "whole URLs": lambda n: _ALL + _numbered(b"Disallow: http://h%d.example/x\n", n),
    "whole URLs, not ASCII": lambda n: _ALL + _numbered("Disallow: http://é%d.example/x\n".encode(), n),
    "whole URLs of the host": lambda n: _ALL + _numbered(b"Disallow: http://garden.example/%d\n", n),
    "%2525…": lambda n: _ALL + b"Disallow: /%" + b"25" * n,
    "%25%25…": lambda n: _ALL + b"Disallow: /" + b"%25" * n,
    "%7e%7e…": lambda n: _ALL + b"Disallow: /" + b"%7e" * n,
    "%%%…": lambda n: _ALL + b"Disallow: /" + b"%" * n,
    "not UTF-8": lambda n: _ALL + b"Disallow: /" + b"\xe9" * n,
    "not UTF-8, here and there": lambda n: _ALL + b"Disallow: /" + b"\xe9x" * n,
    "dot segments": lambda n: _ALL + b"Disallow: /" + b"a/.././" * n,
    "blanks in a value": lambda n: _ALL + b"Disallow: /x" + b" " * n + b"x",
    "blanks behind a value": lambda n: _ALL + b"Disallow: /x" + b" " * n + b"#",
    "blanks before nothing": lambda n: b" " * n,
    "blanks in a name": lambda n: b"User-agent: x" + b" " * n + b"x\nDisallow: /",
    "User-agent:User-agent:…": lambda n: b"User-agent:" * n,
    "User-agentUser-agent…": lambda n: b"User-agent" * n,
    "User-agent, blanks, no colon": lambda n: b"User-agent" + b" " * n,
    "lines that are almost fields": lambda n: b"Disalow: /\nUser agent: x\nUser-agent\n" * n,
    "unknown fields": lambda n: _numbered(b"X-%d: /\n", n),
    "compatible": lambda n: b"User-agent: Mozilla/" + b"(compatible; " * n,
    "compatible and blanks": lambda n: b"User-agent: Mozilla/(compatible;" + b" " * n + b")",
    "versions": lambda n: b"User-agent: x" + b" 1.2" * n + b" x\nDisallow: /",
    "open HTML comments": lambda n: b"<!--" * n,
    "HTML comments": lambda n: b"<!---->" * n,
}
MULTIVALUE: Kinds = {
    "names on a line": lambda n: b"User-agent: " + b"bot " * n + b"*\nDisallow: /x\n",
    "paths on a line": lambda n: _ALL + b"Disallow: " + _numbered(b"/%d ", n),
    "commas": lambda n: _ALL + b"Disallow: /x" + b"," * n,
}
URLS: Kinds = {
    "long path": lambda n: b"/" + b"x" * n,
    "dots": lambda n: b"/./.././.." * n,
    "escaped dots": lambda n: b"/%2e%2e" * n,
    "%%%…": lambda n: b"/" + b"%" * n,
    "%2525…": lambda n: b"/%" + b"25" * n,
    "not ASCII": lambda n: b"/" + "é".encode() * n,
    "port": lambda n: b":" + b"0" * n + b"80/",
    "user": lambda n: b":x@" * n + b"/",
}


_ROBOT = "Tamarin/1.2"
_HOST = "http://garden.example"


def _size(body: bytes) -> object:
    return RobotsTxt.parse(body).size


def _ask(body: bytes, *, multivalue: bool = False) -> object:
    return RobotsTxt.parse(body, multivalue=multivalue).allowed(_HOST + "/nest/egg.html", _ROBOT)


def _decide(body: bytes, *, multivalue: bool = False) -> object:
    return str(RobotsTxt.parse(body, multivalue=multivalue).decide(_HOST + "/nest/egg.html", _ROBOT))


def _find(body: bytes, *, multivalue: bool = False) -> object:
    return RobotsTxt.parse(body, multivalue=multivalue).findings


def _name(body: bytes) -> object:
    return _ASKED.decide("/nest", body.removeprefix(b"User-agent: ").partition(b"\n")[0])


def _url(target: bytes) -> object:
    return _ASKED.allowed(_HOST + target.decode(), _ROBOT)


_ASKED = RobotsTxt.parse(_ALL + _numbered(b"Disallow: /%d/\n", 10) + b"Disallow: /x/%7e\n")


def run(rounds: int) -> None:
    """Measure and print the tables."""
    _table("linear: files", KINDS, {"ask": _ask, "size": _size, "decide": _decide, "find": _find}, rounds)
    columns = {name: partial(action, multivalue=True) for name, action in (("ask", _ask), ("find", _find))}
    columns["decide"] = partial(_decide, multivalue=True)
    _table("linear: files in the multi-value dialect", MULTIVALUE, columns, rounds)
    _table("linear: URLs", URLS, {"ask": _url}, rounds)
    names = {kind: KINDS[kind] for kind in ("one long name", "blanks in a name", "compatible", "versions")}
    _table("linear: names of robots", names, {"decide": _name}, rounds)


def of_size(make: Callable[[int], bytes], size: int) -> bytes:
    """Return a file of about so many bytes."""
    each = (len(make(2_000)) - len(make(1_000))) / 1_000
    return make(int(size / each))


def _table(title: str, kinds: Kinds, columns: Mapping[str, Callable[[bytes], object]], rounds: int) -> None:
    rows = []
    for kind, make in kinds.items():
        progress(f"{title}, {kind}")
        bodies = [of_size(make, int(SIZE * factor)) for factor in _FACTORS]
        row = [kind]
        for name, action in columns.items():
            things = {f"{name} {len(body)}": partial(action, body) for body in bodies}
            half, whole, twice = in_turns(things, rounds).values()
            held = min(longest_hold(partial(action, bodies[1])) for _ in range(rounds))
            row.append(
                f"{whole * 1e3:.0f} ms ({whole / half:.1f}×, {twice / whole:.1f}×), {held * 1e3:.0f} ms"
            )
        rows.append(row)
    table(
        f"{title}; time at 2 MB (× that at 1 MB, that at 4 MB × it), how long others waited at most",
        ["", *columns],
        rows,
    )
