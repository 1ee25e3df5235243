"""The parsers that are compared: this package's and others, each with a function to read and one to ask.

All get the same bytes, and the same header as the name of the robot. Before anything is measured, `check_all`
checks that each parser reads a simple file correctly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.robotparser import RobotFileParser

from protego import Protego
from robotexclusionrulesparser import RobotExclusionRulesParser

from scrapy_norobots.standard import RobotsTxt

ROBOT = "Tamarin/1.2 (+http://tamarin.example/bot)"
OURS = "scrapy-norobots"
_HOST = "http://garden.example"


@dataclass(frozen=True)
class Parser:
    """One parser: `read` parses bytes, `ask` checks URLs for `ROBOT`, one by one."""

    name: str
    read: Callable[[bytes], Any]
    ask: Callable[[Any, Sequence[str]], list[bool]]


def _protego(body: bytes) -> Any:
    return Protego.parse(body.decode("utf-8", "ignore"))  # as Scrapy does


def _name_of_urllib() -> str:
    """Return the name of Python's parser, with what it follows: 3.13.14 and 3.14.5 changed that."""
    longest_match = _urllib(b"User-agent: *\nDisallow: /a\nAllow: /a/b\n").can_fetch(ROBOT, _HOST + "/a/b")
    return "urllib.robotparser" + (", RFC 9309" if longest_match else ", draft of 1996")


def _urllib(body: bytes) -> Any:
    parser = RobotFileParser()
    parser.parse(body.decode("utf-8", "ignore").splitlines())
    return parser


def _rules_parser(body: bytes) -> Any:
    parser = RobotExclusionRulesParser()
    parser.parse(body.decode("utf-8", "ignore"))
    return parser


def _allowed(file: RobotsTxt, urls: Sequence[str]) -> list[bool]:
    return [file.allowed(url, ROBOT) for url in urls]


# The loops are repeated, so that only the call itself is measured.
PARSERS = (
    Parser(OURS, RobotsTxt.parse, _allowed),
    Parser(f"{OURS}, RFC 9309", partial(RobotsTxt.parse, reading="rfc9309"), _allowed),
    Parser(f"{OURS}, both", partial(RobotsTxt.parse, reading="both"), _allowed),
    Parser("protego", _protego, lambda file, urls: [file.can_fetch(url, ROBOT) for url in urls]),
    Parser(_name_of_urllib(), _urllib, lambda file, urls: [file.can_fetch(ROBOT, url) for url in urls]),
    Parser(
        "robotexclusionrulesparser",
        _rules_parser,
        lambda file, urls: [file.is_allowed(ROBOT, url) for url in urls],
    ),
)
_PLAIN = b"""# What every parser must get right
User-agent: potto
Disallow: /hedge/

User-agent: *
Disallow: /nest/
Disallow: /heap.html
"""
_ANSWERS = {
    "/": True,
    "/nest/": False,
    "/nest/egg?q=1": False,
    "/heap.html": False,
    "/hedge/": True,
    "/nes": True,
    "/x/nest/": True,
}


def check_all() -> None:
    """Raise `RuntimeError` if a parser does not read a simple file correctly."""
    urls = [_HOST + target for target in _ANSWERS]
    for parser in PARSERS:
        for _ in range(2):  # cached answers must be the same
            answers = [bool(answer) for answer in parser.ask(parser.read(_PLAIN), urls)]
            if answers != list(_ANSWERS.values()):
                raise RuntimeError(f"{parser.name} answers {dict(zip(urls, answers, strict=True))}")


def readable(files: Sequence[bytes]) -> list[bytes]:
    """Return the files that every parser can read."""
    kept = []
    for body in files:
        try:
            for parser in PARSERS:
                parser.ask(parser.read(body), [_HOST + "/nest"])
        except Exception:  # of any kind, from any parser
            continue
        kept.append(body)
    return kept
