"""`Audit`: makes every decision of a crawl again, from the stored robots.txt files alone.

It reads the WARC files first: each body must have the digest that its record states. Each decision names an
answer by origin and time. The page must be of that origin, the digest must be that of the file, and the
file, read by the same parsers, must give the same verdict, reason, line and rule for all spellings in which
the URL may be sent. An answer without a file is judged by the status policy that the crawl recorded. The
audit does not check whether an answer was still fresh. Overridden requests cannot be judged.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from scrapy_norobots.features.evidence import fields
from scrapy_norobots.features.evidence.decisions import verdict_of
from scrapy_norobots.features.evidence.files import DamagedError, GzipFile, read_record
from scrapy_norobots.features.evidence.index import Index, Outcome
from scrapy_norobots.rules.access import ALLOW, DENY, PRESETS, Access, Judge, StatusPolicy
from scrapy_norobots.rules.freshness import Freshness
from scrapy_norobots.rules.parser import Rules, StrictRobotParser, statements_on
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.rules.spellings import forbidden, knows_aiohttp, spellings_of
from scrapy_norobots.standard import Decision, Origin, Reason, Verdict
from scrapy_norobots.standard.urls import split

# How much memory parsed files may take, in bytes, and how many outcomes are remembered.
_PARSED_MAX = 64 * 1024 * 1024
_OUTCOMES_MAX = 50_000

# The reasons why a request needs no robots.txt. A decision by a file may also have the second one.
_EXEMPTIONS = (Reason.NOT_WEB.name.lower(), Reason.ROBOTS_TXT.name.lower())

# Takes names of parsers, and returns what reads a file by these, in this order. With the keyword `is_strict`
# the first is the strict one, of which a decision has the line; the keyword `multivalue` is its dialect,
# `also_robots` are the other robots that must be allowed, and `purposes` what the crawl is for (None:
# statements about use are not read). Raises `LookupError` if a parser is unknown or cannot be used.
Readers: TypeAlias = Callable[..., Callable[[bytes], Rules]]

_NO_TIMES = Freshness(0, 0, 0, 0)  # freshness is not checked


class Problem(NamedTuple):
    """What does not agree, or, if not `is_readable`, what cannot be read; `place` is a file and a line."""

    place: str
    text: str
    is_readable: bool = True


class Run(NamedTuple):
    """The settings of a crawl that its decisions depend on."""

    policy: StatusPolicy
    multivalue: bool
    aiohttp: bool
    also_robots: tuple[str, ...] = ()
    purposes: tuple[str, ...] | None = None


_DEFAULT_RUN = Run(StatusPolicy.of("koster1996"), multivalue=False, aiohttp=False)


class MismatchError(Exception):
    """A decision is not what the evidence supports."""


class Audit:
    """Audits evidence files.

    `answers`, `verdicts` and `cut_off` (files) count what has been read; `dry_run` counts the requests that a
    dry run has sent although they were not allowed.
    """

    def __init__(
        self, files: Iterable[Path], readers: Readers, on_read: Callable[[int], object] = lambda _: None
    ) -> None:
        self._files = sorted(files)
        self._readers = readers
        self._on_read = on_read
        self._runs: dict[str, Run] = {}
        self._index = Index()
        self._outcome = lru_cache(_OUTCOMES_MAX)(self._index.outcome)
        self._parsed: dict[object, Access] = {}
        self._parsed_size = 0
        self.answers = 0
        self.verdicts: Counter[str] = Counter()
        self.cut_off = 0
        self.dry_run = 0

    def problems(self) -> Iterator[Problem]:
        """Read all files, and yield what is wrong."""
        kinds = ((fields.WARC_SUFFIX, self._read_answers), (fields.DECISIONS_SUFFIX, self._read_decisions))
        with closing(self._index):
            for suffix, read in kinds:
                for path in self._files:
                    if path.name.endswith(suffix):
                        try:
                            yield from read(path)
                        except DamagedError as exc:
                            yield Problem(path.name, str(exc), is_readable=False)

    def _read_answers(self, path: Path) -> Iterator[Problem]:
        file = GzipFile(path, self._on_read)
        for offset, data in file.members():
            stored = read_record(data)
            if stored.kind == "warcinfo":
                yield from self._add_run(path, stored.about)
                continue
            if stored.problem:
                yield Problem(f"{path.name}: byte {offset}", f"{stored.url}: {stored.problem}")
            if not stored.origin:
                continue  # a record of another tool may stand beside ours
            self.answers += 1
            # A revisit has the digest of the file that it renews.
            self._index.add_outcome(stored.origin, stored.date, Outcome(stored.status, stored.digest))
            if stored.body is not None and stored.digest is not None:
                self._index.add_body(stored.digest, path, offset)
        self.cut_off += file.is_cut_off

    def _add_run(self, path: Path, about: Mapping[str, str]) -> Iterator[Problem]:
        if fields.POLICY not in about:
            return  # of another tool
        try:
            purposes = json.loads(about.get(fields.PURPOSES, "null"))
            self._runs[about[fields.RUN]] = Run(
                _policy(about[fields.POLICY]),
                about[fields.MULTIVALUE] == str(True),
                about[fields.AIOHTTP] == str(True),
                tuple(map(str, json.loads(about.get(fields.ALSO_ROBOTS, "[]")))),
                None if purposes is None else tuple(map(str, purposes)),
            )
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
            yield Problem(
                path.name, "its warcinfo record does not state the crawl's settings", is_readable=False
            )

    def _read_decisions(self, path: Path) -> Iterator[Problem]:
        run = self._runs.get(path.name.removesuffix(fields.DECISIONS_SUFFIX).rpartition("-")[0])
        if run is None:
            yield Problem(path.name, "no warcinfo record states the settings of its crawl", is_readable=False)
            run = _DEFAULT_RUN
        file = GzipFile(path, self._on_read)
        for number, line in enumerate(file.lines(), 1):
            place = f"{path.name}: line {number}"
            try:
                facts = json.loads(line)
                self.verdicts[str(facts["verdict"])] += 1
                self.dry_run += facts.get("dry_run") is True
                self._check(facts, run)
            except MismatchError as exc:
                yield Problem(place, f"{facts['url']}: {exc}")
            except LookupError as exc:
                yield Problem(place, f"cannot be judged: {exc}", is_readable=False)
            except (ValueError, TypeError, AttributeError, RecursionError) as exc:
                yield Problem(place, f"not a decision ({type(exc).__name__}: {exc})", is_readable=False)
        self.cut_off += file.is_cut_off

    def _check(self, facts: dict[str, Any], run: Run) -> None:
        """Raise `MismatchError` if a decision is not what the evidence supports."""
        url, origin = facts["url"], facts["origin"]
        if facts["verdict"] == fields.OVERRIDDEN:
            if facts["reason"] != fields.OVERRIDE:
                raise MismatchError(f"recorded as {fields.OVERRIDDEN}, but not because of {fields.OVERRIDE}")
            return
        if facts["reason"] == Reason.BAD_URL.name.lower():
            _check_bad_url(facts)
            return
        if facts["reason"] in _EXEMPTIONS and facts["robots_time"] is None:
            _check_exempt(facts)
            return
        of_url, target = split(url)
        if str(of_url) != origin or of_url is None or target is None:
            raise MismatchError(f"does not belong to the origin {origin}")
        outcome = self._outcome(origin, facts["robots_time"])
        if outcome is None:
            raise MismatchError(
                f"{facts['verdict']}, but no answer for {origin} at {facts['robots_time']} is stored"
            )
        if outcome.digest != facts["robots_digest"]:
            raise MismatchError(
                f"the digest of its robots.txt is {outcome.digest}, not {facts['robots_digest']}"
            )
        access = self._access(outcome, facts, run)
        decision = _decide(access, of_url, target, facts, run)
        _compare(decision, facts)
        usage = statements_on(access.rules, url, facts["robot"].encode("utf-8", "surrogateescape"))
        if usage != facts.get("usage"):
            raise MismatchError("the statements of robots.txt are not those that are recorded (usage)")

    def _access(self, outcome: Outcome, facts: dict[str, Any], run: Run) -> Access:
        """Return what may be fetched by an outcome; raise `MismatchError` if its body is not stored."""
        parser = facts["parser"] or ""
        is_strict = facts["reason"] != Reason.PARSER.name.lower()
        if facts["reason"] == Reason.STATEMENT.name.lower():  # the parsers are those that allow the URL
            is_strict = parser.split(fields.AND)[0] == StrictRobotParser.__name__
        # Rules that are whole URLs apply to one origin, so accesses are not shared between origins.
        key = (outcome, parser, is_strict, id(run), facts["origin"])
        if key in self._parsed:
            return self._parsed[key]
        body, status = b"", outcome.status
        parse: Callable[[bytes], Rules] = _no_rules
        if outcome.digest is not None:
            found = self._index.body(outcome.digest)
            if found is None:
                raise MismatchError(f"the body with the digest {outcome.digest} is not stored")
            body, status = found, 200
            parse = self._readers(
                parser.split(fields.AND),
                is_strict=is_strict,
                multivalue=run.multivalue,
                also_robots=run.also_robots,
                purposes=run.purposes,
            )
        origin = Origin.of(facts["origin"])
        assert origin is not None  # the page is of it
        snapshot = Snapshot(origin, origin.robots_url, 0.0, status, body=body)
        # About how much memory an access takes, with the rules that it will keep.
        self._parsed_size += 2_000 + 10 * len(body)
        if self._parsed_size > _PARSED_MAX:
            self._parsed.clear()
            self._parsed_size = 2_000 + 10 * len(body)
        access = self._parsed[key] = Judge(run.policy, _NO_TIMES, parse).judge(snapshot)
        return access


def _compare(decision: Decision, facts: Mapping[str, Any]) -> None:
    """Raise `MismatchError` if a decision is recorded as another one."""
    stated = tuple(facts[name] for name in ("verdict", "reason", "line", "rule"))
    if _facts_of(decision) != stated:
        raise MismatchError(f"recorded as {_text_of(stated)}; judged as {_text_of(_facts_of(decision))}")
    robot, stated_robot = (
        name or decision.robot for name in (decision.decided_for, facts.get("decided_for"))
    )
    if robot != stated_robot:
        raise MismatchError(f"recorded as decided by the rules for {stated_robot!r}, not for {robot!r}")
    sent_as = facts.get("sent_as", facts["url"])
    if sent_as != decision.url:
        raise MismatchError(f"the decision is about {decision.url!r}, not about {sent_as!r} (sent_as)")


def _no_rules(body: bytes) -> Rules:
    raise AssertionError("there is no body to read")


def _policy(text: str) -> StatusPolicy:
    table = json.loads(text)
    if not set(PRESETS["allow"]) <= set(table) or not set(table.values()) <= {ALLOW, DENY}:
        raise ValueError("not a policy")
    return StatusPolicy(MappingProxyType(table))


def _decide(access: Access, origin: Origin, target: str, facts: dict[str, Any], run: Run) -> Decision:
    """Return the decision on a URL, in any spelling that may be sent, as the crawl makes it."""
    robot = facts["robot"].encode("utf-8", "surrogateescape")
    decision = forbidden(access, facts["url"], origin, target, robot, _spellings(target, run))
    return access.decide(facts["url"], robot) if decision is None else decision


def _spellings(target: str, run: Run) -> Iterator[str]:
    """Yield the spellings of a target that the crawl checked; raise `LookupError` if one is unknown here."""
    yield target
    others = spellings_of(target)[1:]
    if others and run.aiohttp and not knows_aiohttp():
        raise LookupError("the crawl checked the spelling that aiohttp sends; aiohttp is not installed here")
    yield from others if run.aiohttp else others[:2]


def _check_bad_url(facts: Mapping[str, Any]) -> None:
    if facts["verdict"] != fields.UNREACHABLE:
        raise MismatchError(
            f"recorded as {facts['verdict']}, but a URL without an origin is {fields.UNREACHABLE}"
        )
    try:
        origin = Origin.of(facts["url"])
    except ValueError:
        return
    raise MismatchError(f"dropped as a URL without an origin, but its origin is {origin}")


def _check_exempt(facts: Mapping[str, Any]) -> None:
    """Check that a URL is that of a robots.txt (U7), or has no origin (U9)."""
    origin, target = split(facts["url"])
    reason = Reason.NOT_WEB if target is None else Reason.ROBOTS_TXT if target == "/robots.txt" else None
    if reason is None or facts["reason"] != reason.name.lower():
        raise MismatchError(f"recorded as {facts['reason']}, but it needs a robots.txt")
    if facts["origin"] != (None if origin is None else str(origin)):
        raise MismatchError(f"does not belong to the origin {facts['origin']}")
    stated = tuple(facts[name] for name in ("verdict", "reason", "line", "rule"))
    if stated != (Verdict.ALLOWED.value, facts["reason"], None, None):
        raise MismatchError(f"recorded as {_text_of(stated)}; it is always allowed")


def _facts_of(decision: Decision) -> tuple[str, str, int | None, str | None]:
    line, rule = decision.rule or (None, None)
    return verdict_of(decision), decision.reason.name.lower(), line, rule


def _text_of(facts: tuple[Any, ...]) -> str:
    verdict, reason, line, rule = facts
    return f"{verdict} ({reason})" if line is None else f"{verdict} (line {line}, {rule!r})"
