"""Read statements about the use of pages: one of them, or all of a robots.txt, and decide by them.

They are ``Content-Usage``, ``Content-Signal``, ``License``, TDM and NoAI. Any text is accepted, and raises no
exception. One of more than 1,000 characters is not read. It is taken as a no to all, unless its kind has a
URL as its value. The constants below limit the others, too.

Groups of a robots.txt are those of RFC 9309, which the drafts extend. A line outside any group, or after a
blank line, applies to every robot as well: it stands in no record of the 1994 standard, and was probably
meant for all. If in doubt, a no applies.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from scrapy_norobots.standard import Decision, Finding, Origin, Reason, Rule, Verdict
from scrapy_norobots.standard.decision import printable, quoted
from scrapy_norobots.standard.groups import groups_of
from scrapy_norobots.standard.lines import BLANK_LINE, BLANKS, Sections, is_html, sections_of, to_text
from scrapy_norobots.standard.names import Robot, is_for_all, to_name, token_of
from scrapy_norobots.standard.patterns import matches
from scrapy_norobots.standard.urls import is_robots_txt, normal, split

SEARCH, AI_INPUT, AI_TRAIN = "search", "ai-input", "ai-train"
PURPOSES = (SEARCH, AI_INPUT, AI_TRAIN)

# The kinds of statements, with the names of their fields.
CONTENT_USAGE, CONTENT_SIGNAL, LICENSE = "content-usage", "content-signal", "license"
TDM_RESERVATION, TDM_POLICY = "tdm-reservation", "tdm-policy"
NOAI, NOIMAGEAI = "noai", "noimageai"

# What the words of each kind are about.
WORDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    CONTENT_SIGNAL: {purpose: (purpose,) for purpose in PURPOSES},
    CONTENT_USAGE: {
        "search": (SEARCH,),
        "ai-use": (AI_INPUT,),
        "train-ai": (AI_TRAIN,),
        # Words of earlier drafts
        "train-genai": (AI_TRAIN,),
        "ai": (AI_INPUT, AI_TRAIN),
        "bots": PURPOSES,
    },
}

# Kinds whose value says by itself, when it is true, that a page must not be used for this.
REFUSALS: Mapping[str, str] = dict.fromkeys((TDM_RESERVATION, NOAI, NOIMAGEAI), AI_TRAIN)


def check_purpose(purpose: object) -> None:
    """Raise `ValueError` for a word that is not in `PURPOSES`, such as ``"train-ai"`` of Content-Usage."""
    if purpose not in PURPOSES:
        raise ValueError(f"unknown purpose {purpose!r}; choose from {', '.join(PURPOSES)}")


# The values of the word `use` of Content-Signal: how much of a page may be stored and shown.
USES = ("immediate", "reference", "full")

# The sources of statements.
ROBOTS_TXT, HEADER, META = "robots.txt", "header", "meta"

# The largest numbers of characters and of ``*`` of a statement that is read, so that a question is fast, and
# of statements of a file.
LONGEST, STARS, MOST = 1_000, 20, 1_000
UNREAD = (
    f"has more than {LONGEST:,} characters or {STARS} '*', or follows {MOST:,} others: not read, "
    "and taken as a no to every use, unless its value is a URL"
)

NEEDS_LIBRARY = "needs http-sf: pip install 'scrapy-norobots[usage]'"

# The value of a Content-Usage line: a path, which ends at the first blank, and the rest (draft-ietf-aipref-
# attach, 3.2).
_PATH = re.compile(r"(/[^ \t]*)?[ \t]*(.*)", re.DOTALL)

# contentsignals.org: words with "yes" or "no", with commas between them, and the word "use".
_SIGNAL = re.compile(rf"(?ai)use=(?:{'|'.join(USES)})|(?!use=)[a-z][a-z0-9-]*=(?:yes|no)")
# The same words, however they are separated: what is clear in an invalid value applies too.
_CLEAR = re.compile(rf"(?ai)(?<![\w-])([a-z][a-z0-9-]*)[ \t]*=[ \t]*(yes|no|{'|'.join(USES)})(?![\w-])")


@dataclass(frozen=True, slots=True)
class Statement:
    """What a site or a page states about its use.

    - `kind`: ``"content-usage"``, ``"content-signal"``, ``"license"``, ``"tdm-reservation"``,
      ``"tdm-policy"``, ``"noai"`` or ``"noimageai"``.
    - `source`: ``"robots.txt"``, ``"header"`` or ``"meta"``.
    - `text`: the line, the header with its name, or the tag, as written; at most 1,000 characters. It is not
      escaped.
    - `value`: a dictionary of words for the first two kinds: True for yes, False for no, None if unknown (the
      word ``use`` has a string). A URL for ``license`` and ``tdm-policy``. A boolean for the others, true if
      rights are reserved. None if it cannot be parsed.
    - `problem`: why the value, or a part of it, cannot be parsed; else empty.
    - `line`: the number of the line in robots.txt; None elsewhere.
    - `place`: where the line stands in robots.txt: ``"group"``, ``"after a blank line"`` or ``"outside any
      group"``; empty elsewhere, and for a license, which is about the whole site.
    - `path`: the path of a ``Content-Usage`` line, as written; else empty.
    """

    kind: str
    source: str
    text: str
    value: Any
    problem: str = ""
    line: int | None = None
    place: str = ""
    path: str = ""

    def says(self, purpose: str) -> bool | None:
        """Return whether pages may be used for a purpose, such as ``"ai-train"``; None if it is not said.

        Raises `ValueError` for an unknown purpose.
        """
        check_purpose(purpose)
        if self.problem == UNREAD and self.kind not in (LICENSE, TDM_POLICY):  # a URL says neither
            return False
        if self.kind in REFUSALS:
            return False if self.value and REFUSALS[self.kind] == purpose else None
        if self.kind not in WORDS or self.value is None:
            return None
        said = {value for word, value in self.value.items() if purpose in WORDS[self.kind].get(word, ())}
        return False if False in said else True if True in said else None

    def facts(self) -> dict[str, Any]:
        names = ("kind", "source", "line", "place", "path", "text", "value", "problem")
        return {name: value for name in names if (value := getattr(self, name)) not in (None, "")}


def read(kind: str, source: str, text: str, value: str, *, path: str = "", **where: Any) -> Statement:
    """Return the statement of a kind in a `text`, of which `value` is what follows the field and the path."""
    parsed, problem = None, UNREAD
    if len(text) <= LONGEST and path.count("*") <= STARS:
        parsed, problem = _READERS[kind](value)
    return Statement(kind, source, text[:LONGEST], parsed, problem, path=path[:200], **where)


def _usage(value: str) -> tuple[dict[str, bool | None] | None, str]:
    """Read a dictionary of RFC 9651 whose values are the tokens ``y`` and ``n`` (draft-ietf-aipref-vocab)."""
    try:
        from http_sf import Token, parse  # noqa: PLC0415  # an extra
    except ImportError:
        return None, NEEDS_LIBRARY
    try:
        members: Any = parse(value.encode("utf-8", "surrogatepass"), tltype="dictionary")
    except ValueError as exc:
        return None, f"not a dictionary of RFC 9651: {exc}"
    words = {
        key: {"y": True, "n": False}.get(str(member[0])) if isinstance(member[0], Token) else None
        for key, member in members.items()
    }
    unknown = next((key for key, said in words.items() if said is None), "")
    if unknown:
        return words, f"{unknown!r} has another value than y or n, so it is unknown"
    return words, "" if words else "states no preference"


def _signal(value: str) -> tuple[dict[str, bool | str] | None, str]:
    words: dict[str, bool | str] = {}
    for word, said in _CLEAR.findall(value.lower()):
        if word == "use" and said in USES:
            words[word] = said
        elif word != "use" and said not in USES:
            words[word] = words.get(word, True) is True and said == "yes"  # of two values, no applies
    parts = [part.strip() for part in value.split(",")]
    wrong = next((part for part in parts if not _SIGNAL.fullmatch(part)), None)
    if wrong is None:
        return words, ""
    return words or None, f"{wrong!r} is not word=yes or word=no; commas separate several of them"


def _url(value: str) -> tuple[str | None, str]:
    try:
        parts = urlsplit(value)
        is_absolute = bool(parts.scheme and parts.hostname) and value.isprintable() and " " not in value
    except ValueError:
        is_absolute = False
    return (value, "") if is_absolute else (None, "not an absolute URL")


_READERS: Mapping[str, Callable[[str], tuple[Any, str]]] = {
    CONTENT_USAGE: _usage,
    CONTENT_SIGNAL: _signal,
    LICENSE: _url,
    TDM_RESERVATION: lambda value: (value == "1", "") if value in ("0", "1") else (None, "neither 0 nor 1"),
    TDM_POLICY: _url,
    NOAI: lambda _: (True, ""),
    NOIMAGEAI: lambda _: (True, ""),
}


def stated(statements: Iterable[Statement]) -> set[str]:
    """Return what statements say, in few different words: kinds, purposes that are refused, problems."""
    found = set()
    for statement in statements:
        refused = (purpose for purpose in PURPOSES if statement.says(purpose) is False)
        found |= {statement.kind, *(f"no to {purpose}" for purpose in refused)}
        found |= {"malformed"} if statement.problem else set()
    return found


GROUP, AFTER_BLANK, OUTSIDE = "group", "after a blank line", "outside any group"

_KINDS = frozenset({CONTENT_USAGE, CONTENT_SIGNAL, LICENSE})
_LINE = re.compile(rf"(?ai)\n[ \t]*({'|'.join(sorted(_KINDS))})[ \t]*:[ \t]*([^#\n]*)[^\n]*")

# How many statements a fact lists.
_LISTED = 20


def malformed_statements(body: bytes) -> list[Finding]:
    """Return a finding for each statement of a file that cannot be read as a whole, by line."""
    return [
        Finding("malformed-statement", one.line or 0, one.text, f"{one.kind}: {printable(one.problem)}.")
        for one in UsageStatements(body).all
        if one.problem
    ]


class Found(NamedTuple):
    """A statement, the number of its group (None if it has no group), and its path in normal form."""

    statement: Statement
    group: int | None
    path: str


class UsageStatements:
    """`Statements`: what one robots.txt states about the use of pages.

    A URL is forbidden if a statement that applies says no to one of `purposes`. Any body is accepted.
    """

    def __init__(self, body: bytes, purposes: Sequence[str] = ()) -> None:
        self.purposes = purposes
        self._found: list[Found] = []
        # By product token, the numbers of the groups that name it; None: all robots.
        self._groups: defaultdict[str | None, set[int]] = defaultdict(set)
        text = to_text(body)
        if any(kind in text.lower() for kind in _KINDS) and not is_html(text):
            sections = sections_of(text)[1]
            numbers = [number for number, group in enumerate(groups_of(sections, None)) for _ in group]
            self._found = list(islice(_statements(sections, numbers), MOST + 1))
            if len(self._found) > MOST:
                last = replace(self._found[-1].statement, kind=CONTENT_SIGNAL, value=None, problem=UNREAD)
                self._found[-1] = Found(replace(last, place=OUTSIDE), None, "")
            for name, number in zip(sections.values, numbers, strict=True) if self._found else ():
                self._groups[None if is_for_all(name) else token_of(name)].add(number)
        # A word of a value, "a,", takes 25 times its length.
        values = sum(500 + 25 * len(found.statement.text) for found in self._found)
        self.size = 500 + 500 * len(self._groups) + values

    @property
    def all(self) -> tuple[Statement, ...]:
        return tuple(found.statement for found in self._found)

    def on(self, target: str, robot: str | bytes) -> list[Statement]:
        """Return the statements that apply to a target (a path with its query) and a robot, by line."""
        lines = {one.line or 0: one for found in self._for(robot) for one in _of_set(found, normal(target))}
        return [lines[line] for line in sorted(lines)]

    def is_ready(self, robot: str | bytes) -> bool:
        return True

    def prepare(self, origin: Origin, robot: str | bytes) -> None:
        pass

    def forbids(self, origin: Origin, target: str, robot: str | bytes) -> bool:
        return bool(self.purposes) and self._refusal(target, robot) is not None

    def decide(self, url: str, robot: str | bytes, source: str | None = None) -> Decision:
        target = split(url)[1]
        refusal = None if target is None else self._refusal(target, robot)
        decision = Decision(Verdict.ALLOWED, url, to_name(robot), Reason.STATEMENT, source=source)
        if refusal is None:
            return decision
        statement, purpose = refusal
        return replace(
            decision,
            verdict=Verdict.FORBIDDEN,
            rule=Rule(statement.line or 0, statement.text),
            detail=f"line {statement.line} of {printable(source or 'robots.txt')}, {quoted(statement.text)}, "
            f"says no to {purpose!r} (NOROBOTS_PURPOSES)",
            parser=type(self).__name__,
        )

    def facts(self, url: str, robot: str | bytes) -> list[dict[str, Any]]:
        target = split(url)[1]
        return [] if target is None else [one.facts() for one in self.on(target, robot)[:_LISTED]]

    def _refusal(self, target: str, robot: str | bytes) -> tuple[Statement, str] | None:
        if not self._found or not self.purposes or is_robots_txt(target):
            return None
        refusals = (
            (one, each) for one in self.on(target, robot) for each in self.purposes if one.says(each) is False
        )
        return next(refusals, None)

    def _for(self, robot: str | bytes) -> tuple[list[Found], list[Found]]:
        """Return the statements of a robot's groups, and those for every robot. A no of either is a no."""
        groups = self._groups.get(Robot.of(robot).token or None, self._groups.get(None, set()))
        return (
            [each for each in self._found if each.group in groups],
            [each for each in self._found if each.statement.place != GROUP],
        )


def _statements(sections: Sections, numbers: Sequence[int]) -> Iterator[Found]:
    """Yield the statements of a file, given the number of the group of each section."""
    line = 0
    for below, group in zip((sections.above, *sections.below), (None, *numbers), strict=True):
        line += group is not None  # the User-agent line above it
        blank = BLANK_LINE.search(below)
        end = 0
        for match in _LINE.finditer(below):
            line += below.count("\n", end, match.start() + 1)
            end = match.start() + 1
            is_after_blank = blank is not None and blank.start() < match.start()
            place = OUTSIDE if group is None else AFTER_BLANK if is_after_blank else GROUP
            yield _statement(match, line, place, group)
        line += below.count("\n", end)


def _statement(match: re.Match[str], line: int, place: str, group: int | None) -> Found:
    text, kind, value = match[0][1:].strip(BLANKS), match[1].lower(), match[2].rstrip(BLANKS)
    if kind == LICENSE:
        return Found(read(kind, ROBOTS_TXT, text, value, line=line), None, "")
    path, value = _PATH.findall(value)[0] if kind == CONTENT_USAGE else ("", value)
    statement = read(kind, ROBOTS_TXT, text, value, line=line, place=place, path=path)
    is_read = statement.problem != UNREAD
    return Found(statement, group, normal(path, is_prefix=True) if path and is_read else "")


def _of_set(found: Sequence[Found], target: str) -> Iterator[Statement]:
    """Yield the statements of a set that apply to a target.

    Of the ``Content-Usage`` lines, these are the ones with the longest path (draft-ietf-aipref-attach, 3.1),
    and those that are not read, with whatever path.
    """
    longest = -1
    by_path: list[Statement] = []
    for each in found:
        if each.statement.kind != CONTENT_USAGE or each.statement.value is None:
            yield each.statement
        elif len(each.path) >= longest and matches(each.path, target):
            by_path = [each.statement] if len(each.path) > longest else [*by_path, each.statement]
            longest = len(each.path)
    yield from by_path
