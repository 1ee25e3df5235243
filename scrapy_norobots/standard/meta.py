"""Read robots META tags and ``X-Robots-Tag`` headers of a page into a `RobotsMeta` (M1 to M4).

Tags are pairs of name and content, in the order of the page; this module does not read HTML. Any text is
accepted, and none raises an exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from scrapy_norobots.standard.decision import printable
from scrapy_norobots.standard.names import names_robot, to_name

_NOINDEX = frozenset({"noindex", "none"})
_NOFOLLOW = frozenset({"nofollow", "none"})
_TERMS = _NOINDEX | _NOFOLLOW | {"all", "index", "follow"}  # M1
# In a content of more characters, only these are looked for, wherever they are: to split it could block the
# crawl, and nobody writes so much.
_LONGEST = 1_000
_REFUSALS = _NOINDEX | _NOFOLLOW | {"noai", "noimageai"}

# A word, with the text after its colon if it has one: "noindex", "max-snippet: 20", "foobot: nofollow".
# Spaces and semicolons separate words like commas, because the meaning of "noindex nofollow" is clear.
# The text ends after 200 characters, so that a header of names, "a:a:a:", takes linear time.
_WORD = re.compile(r"([^\s,;:]+)(?:\s*:\s*([^\s,;]{0,200}))?")

# Later directives with a value; in a header, these words before a colon are not names of robots.
_VALUED = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})


# Names of common META tags, which never apply to a robot, whatever its name, and tags about a page (M4).
_NO_ROBOTS = frozenset(
    {
        "application-name", "author", "color-scheme", "copyright", "date", "description", "document-state",
        "format-detection", "generator", "keywords", "language", "msapplication-config",
        "publisher", "rating", "referrer", "revisit-after", "theme-color", "title", "url", "viewport",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RobotsMeta:
    """What one page asks of one robot, in META tags and ``X-Robots-Tag`` headers (M1 to M4).

    - `noindex_by`, `nofollow_by`: the first tag or header that forbids to index the page, or to follow its
      links; None if there is none. The text is escaped and cut, so that it can go to a log.
    - `document_state`: ``"STATIC"`` or ``"DYNAMIC"`` (M4).
    - `url`: the URL of the original of a mirrored page, as written in the page; None if it is not given (M4).
    """

    noindex_by: str | None = None
    nofollow_by: str | None = None
    document_state: str = "STATIC"
    url: str | None = None

    @property
    def index(self) -> bool:
        """Whether the page may be indexed."""
        return self.noindex_by is None

    @property
    def follow(self) -> bool:
        """Whether the page's links may be followed."""
        return self.nofollow_by is None

    @classmethod
    def read(
        cls, robot: str | bytes, tags: Iterable[tuple[str, str]] = (), headers: Iterable[str] = ()
    ) -> RobotsMeta:
        """Read the META tags of a page, as pairs of name and content, and its ``X-Robots-Tag`` headers.

        `robot` is a name or a whole User-Agent header. No tag or header allows what another forbids (M3).

        >>> RobotsMeta.read("FooBot", [("robots", "NOFOLLOW")]).follow
        False
        """
        tags = list(tags)
        state, url = "STATIC", None
        for name, content in tags:
            key = name.strip().lower()
            if key == "url":
                url = url or content.strip() or None
            elif key == "document-state":
                state = "DYNAMIC" if content.strip().lower() == "dynamic" else state
        asked = terms_of(robot, tags, headers)
        return cls(_first(asked, _NOINDEX), _first(asked, _NOFOLLOW), state, url)


def terms_of(
    robot: str | bytes, tags: Iterable[tuple[str, str]], headers: Iterable[str]
) -> list[tuple[set[str], str]]:
    """Return the terms, in lower case, of each tag and header for a robot, with its text (M1 to M3)."""
    folded = to_name(robot).casefold()
    asked: list[tuple[set[str], str]] = []
    for name, content in tags:
        key = name.strip().lower()
        if key == "robots" or (key not in _NO_ROBOTS and names_robot(name.strip(), folded)):
            terms = {word[1].lower() for word in _WORD.finditer(content[:_LONGEST])}
            if len(content) > _LONGEST:
                terms = {term for term in _REFUSALS if term in content.lower()}
            if "all" in terms:  # M2: ALL overrides the other terms of its tag
                terms -= _TERMS
            asked.append((terms, f'<meta name="{name}" content="{content}">'))
    asked += [(set(_header_terms(value, folded)), f"X-Robots-Tag: {value}") for value in headers]
    return asked


def _header_terms(value: str, folded_name: str) -> Iterator[str]:
    """Yield the terms of a header that apply to a robot, in lower case.

    A word before a colon is a robot's name, and the terms up to the next name apply to that robot only. A
    word of a date (``15:00:00``) and a directive with a value are not names.
    """
    ours, at = True, 0
    while word := _WORD.search(value, at):
        term, rest = word[1].lower(), word[2]
        names_one = rest is not None and (not rest or rest[0].isalpha())
        if names_one and term not in _VALUED | _TERMS:
            ours = term in ("*", "robots") or names_robot(word[1], folded_name)
            at = word.start(2)
        else:
            if ours:
                yield term
            at = word.end()


def _first(asked: list[tuple[set[str], str]], terms: frozenset[str]) -> str | None:
    return next((printable(source, 200) for found, source in asked if found & terms), None)
