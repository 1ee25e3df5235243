"""`Answerer`: the answers of ``robots-check``, as text or as JSON.

For each URL and robot, an answer says whether the robot may fetch the URL, and why. The access to the
origin of the URL must be known.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scrapy import Request

from scrapy_norobots.commands.base import GREEN, RED, YELLOW, coloured, span, to_json
from scrapy_norobots.rules.access import Access
from scrapy_norobots.rules.parser import statements_on
from scrapy_norobots.rules.spellings import forbidden, spellings_of
from scrapy_norobots.standard import Decision, Reason, Verdict
from scrapy_norobots.standard.decision import printable, quoted
from scrapy_norobots.standard.names import to_name
from scrapy_norobots.standard.urls import Origin, split

ALLOWED, FORBIDDEN, UNKNOWN = "allowed", "forbidden", "unknown"

# The exit status for each answer, and its colour.
_STATUS = {ALLOWED: 0, FORBIDDEN: 1, UNKNOWN: 2}
_COLOUR = {ALLOWED: GREEN, FORBIDDEN: RED, UNKNOWN: YELLOW}

# URLs that a `Request` does not change. Most are such, and making a `Request` takes as long as all the rest.
_PLAIN = re.compile(
    r"https?://[a-z0-9.\-]+(?::[1-9][0-9]{0,3})?/[A-Za-z0-9\-._~/]*(?:\?[A-Za-z0-9\-._~/=&+]+)?", re.ASCII
)

# How many names of a record are in an answer, and how long they are: a site could name 100,000 robots.
_NAMES_MAX = 50
_NAME_LENGTH_MAX = 200


@dataclass(slots=True)
class Result:
    """The answer for one URL and robot: one word, and the decision.

    `rfc9309` is the word by RFC 9309, and `other` the decision, which may name a rule. In an answer from a
    store, `age` is the age of robots.txt in seconds, and `fresh` says whether a crawl would use it without
    downloading it again. `usage` are the statements about the use of the URL, if ``NOROBOTS_USAGE`` or
    ``NOROBOTS_PURPOSES`` is set.
    """

    url: str
    word: str
    decision: Decision
    rfc9309: str | None = None
    other: Decision | None = None
    age: float | None = None
    fresh: bool | None = None
    usage: list[dict[str, object]] | None = None

    def line(self) -> str:
        decision = self.decision
        robot = f" for {quoted(decision.robot)}" if decision.robot else ""
        word = coloured(f"{self.word:<9}", _COLOUR[self.word])
        line = f"{word} {printable(self.url)}{robot}: {decision.why}"
        if self.age is not None:
            line += f" [{span(self.age)} old{'' if self.fresh else ', no longer fresh'}]"
        if self.usage:
            texts = [f"line {one['line']}: {printable(str(one['text']), 200)}" for one in self.usage]
            line += f" [{'; '.join(texts)}]"
        if self.rfc9309 is None:
            return line
        if self.rfc9309 == self.word:
            return f"{line} [RFC 9309: the same]"
        why = f"; {self.other.why}" if self.other is not None and self.other.rule is not None else ""
        return f"{line} {coloured(f'[RFC 9309 differs: {self.rfc9309}{why}]', YELLOW)}"

    def facts(self) -> dict[str, object]:
        """Return the answer as data for JSON."""
        decision, record = self.decision, self.decision.record
        rule = None if self.other is None else self.other.rule
        names = record and [name[:_NAME_LENGTH_MAX] for name in record.names[:_NAMES_MAX]]
        return {
            "url": self.url,
            "answer": self.word,
            "robot": decision.robot,
            "reason": decision.reason.name.lower(),
            "why": decision.why,
            "decided_for": decision.decided_for or None,
            "source": decision.source,
            "rule": decision.rule and decision.rule._asdict(),
            "record": record and {"line": record.line, "names": names},
            "rfc9309": self.rfc9309,
            "rfc9309_rule": rule and rule._asdict(),
            "differs": None if self.rfc9309 is None else self.rfc9309 != self.word,
            "age": None if self.age is None else round(self.age, 1),
            "fresh": self.fresh,
            "usage": self.usage,
        }


class Answerer:
    """Answers questions for a list of robots.

    `by_rfc9309` returns the access by RFC 9309 for the same download, if answers are to be compared. If the
    accesses come from a store, answers have their age. Several threads may use it at once.
    """

    def __init__(
        self,
        robots: Sequence[str | bytes],
        *,
        as_json: bool,
        by_rfc9309: Callable[[Access], Access] | None = None,
        is_stored: bool = False,
    ) -> None:
        self.robots = robots
        self._as_json = as_json
        self._by_rfc9309 = by_rfc9309
        self._is_stored = is_stored
        self._words: set[str] = set()

    @property
    def status(self) -> int:
        """The exit status for all answers so far: the highest."""
        return max((_STATUS[word] for word in self._words), default=0)

    def answer(self, url: str, sent: str, access: Access) -> str:
        """Return the answers for a URL; `sent` is the URL that a request for it would have."""
        return self._text([self._answer(url, sent, access, robot) for robot in self.robots])

    def _answer(self, url: str, sent: str, access: Access, robot: str | bytes) -> Result:
        decision = _decide(access, sent, robot)
        answer = Result(
            url, _word(decision, access), decision, usage=statements_on(access.rules, sent, robot)
        )
        if self._is_stored:
            answer.age = max(time.time() - access.snapshot.time, 0.0)
            answer.fresh = access.lifetime > 0
        if self._by_rfc9309 is not None:
            other = self._by_rfc9309(access)
            answer.other = _decide(other, sent, robot)
            answer.rfc9309 = _word(answer.other, other)
        return answer

    def unknown(self, url: str, reason: Reason, detail: str = "") -> str:
        """Return the answers for a URL that cannot be checked, with the reason."""
        return self._text(
            [
                Result(url, UNKNOWN, Decision(Verdict.FORBIDDEN, url, to_name(robot), reason, detail=detail))
                for robot in self.robots
            ]
        )

    def _text(self, answers: list[Result]) -> str:
        self._words.update([answer.word for answer in answers])
        return "\n".join([to_json(one.facts()) if self._as_json else one.line() for one in answers])


def address(url: str) -> tuple[Origin | None, str]:
    """Return the origin of a URL, and the URL that a request for it would have.

    The origin is None if no robots.txt applies to such a URL. Raises `ValueError` if the URL is invalid.
    """
    sent = url if _PLAIN.fullmatch(url) else Request(url).url
    return Origin.of(sent), sent


def _decide(access: Access, url: str, robot: str | bytes) -> Decision:
    """Decide as the middleware does: a URL is forbidden if any spelling is that may be sent."""
    origin, target = split(url)
    assert origin is not None  # `address` has checked that
    assert target is not None
    decision = forbidden(access, url, origin, target, robot, spellings_of(target))
    return access.decide(url, robot) if decision is None else decision


def _word(decision: Decision, access: Access) -> str:
    """Return the answer in one word; ``unknown`` if a temporary failure forbids the URL, and not the site."""
    if not decision and access.temporary and access.rules is None:
        return UNKNOWN
    return ALLOWED if decision else FORBIDDEN
