"""What the outcome of a download means for an origin: its rules count, it is open, or it is closed.

The 1994 standard is silent about statuses and failures, so what they mean is a policy: a table from
statuses to "allow" or "deny", chosen by `NOROBOTS_STATUS_POLICY`. `Judge.judge` makes an `Access` of a
snapshot and of the access before it; nothing here knows Scrapy, reads a clock or waits for anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import Protocol

from scrapy_norobots.freshness import Freshness
from scrapy_norobots.snapshot import Snapshot
from scrapy_norobots.standard import Decision, Origin, Reason, Verdict
from scrapy_norobots.standard.decision import printable
from scrapy_norobots.standard.names import to_name
from scrapy_norobots.standard.urls import is_robots_txt, split

ALLOW, DENY = "allow", "deny"

# Statuses of class 4xx that say nothing about the site: a proxy wants credentials (407), the server gave up
# waiting (408), use another connection (421), too early (425), too often (429), our headers are long (431).
NOT_NOW = ("407", "408", "421", "425", "429", "431")

# What each outcome means, by preset. A key is a status, a class of statuses, or "error": no answer came
# (time-out, name not found, connection, TLS, answer truncated or too large). A status is looked up
# before its class. "3xx" is a redirect that leads nowhere.
PRESETS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        # The reading of Martijn Koster's draft of 1996: no entry means keep out.
        "koster1996": {
            "401": DENY, "403": DENY, **dict.fromkeys(NOT_NOW, DENY),
            "3xx": DENY, "4xx": ALLOW, "5xx": DENY, "error": DENY,
        },
        # RFC 9309, 2.3.1, with some statuses read as "not now".
        "rfc9309": {
            **dict.fromkeys(NOT_NOW, DENY), "3xx": ALLOW, "4xx": ALLOW, "5xx": DENY, "error": DENY,
        },
        # Rules count where there are any; nothing else holds a crawl up.
        "allow": {"3xx": ALLOW, "4xx": ALLOW, "5xx": ALLOW, "error": ALLOW},
    }
)  # fmt: skip
DEFAULT_PRESET = "koster1996"

_POLICY_KEY = re.compile(r"[345]xx|error|[3-9]\d\d", re.ASCII)


class Rules(Protocol):
    """Rules as read by some parser: the strict one, or one that the user has chosen."""

    @property
    def size(self) -> int:
        """About how much memory they take, in bytes."""

    def is_ready(self, robot: str | bytes) -> bool:
        """Whether questions about `robot` are answered at once; if not, `prepare` should run in a thread."""

    def prepare(self, origin: Origin, robot: str | bytes) -> None:
        """Do what the first question about `robot` takes, at the origin whose rules they are."""

    def forbids(self, origin: Origin, target: str, robot: str | bytes) -> bool:
        """Whether `robot` may not fetch a target, path and query, of the origin whose rules they are."""

    def decide(self, url: str, robot: str | bytes, source: str | None = None) -> Decision:
        """Say whether and why `robot` may fetch `url`."""


@dataclass(frozen=True, slots=True)
class StatusPolicy:
    """What to do with an origin whose robots.txt was not had: "allow" or "deny", by `PRESETS`' keys."""

    table: Mapping[str, str]

    @classmethod
    def of(cls, value: object) -> StatusPolicy:
        """Make a policy of a preset's name, or of a mapping that changes entries of the default preset.

        The mapping may name another preset to start from: ``{"preset": "rfc9309", "403": "deny"}``.
        Raises `ValueError` that says what is wrong with the value.
        """
        changes = dict(value) if isinstance(value, Mapping) else {"preset": value}
        preset = changes.pop("preset", DEFAULT_PRESET)
        if not isinstance(preset, str) or preset not in PRESETS:
            raise ValueError(f"{preset!r} is no preset; there are {', '.join(PRESETS)}")
        table = dict(PRESETS[preset])
        for key, action in changes.items():
            if not _POLICY_KEY.fullmatch(str(key)):
                raise ValueError(
                    f"{key!r} is no outcome; write a status such as 403, one of 3xx, 4xx, 5xx, or error"
                )
            if action not in (ALLOW, DENY):
                raise ValueError(f"{action!r} for {key!r} is neither {ALLOW!r} nor {DENY!r}")
            table[str(key)] = str(action)
        return cls(MappingProxyType(table))

    def look_up(self, status: int | None) -> tuple[str, str]:
        """Return the key that counts for a status (None: no answer), and its action.

        A status of no known class is taken for a failure of the server.
        """
        if status is None:
            key = "error"
        elif str(status) in self.table:
            key = str(status)
        else:
            key = f"{status // 100}xx"
            key = key if key in self.table else "5xx"
        return key, self.table[key]


class AccessKind(Enum):
    """What there is to go by at an origin."""

    RULES = "rules"
    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Access:
    """What may be fetched at an origin, and why.

    `rules` is there if `kind` is `AccessKind.RULES`; `snapshot` is the download that they, or whatever else
    counts, came from; `failure` is the download in vain since then that made it stale. `outcome` is ``rules``
    or the key of the policy that decided, `detail` what happened last, in words. It counts for `lifetime`
    seconds. If it is `temporary`, it does not say what the site wants, and the time is short; if it is
    `stale`, it has outlived its time, because nothing newer could be had.
    """

    kind: AccessKind
    snapshot: Snapshot
    outcome: str
    detail: str
    lifetime: float
    temporary: bool = False
    stale: bool = False
    rules: Rules | None = None
    failure: Snapshot | None = None

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """What the access was judged from, oldest first: what a store needs to keep."""
        return (self.snapshot,) if self.failure is None else (self.snapshot, self.failure)

    @property
    def is_closed_for_now(self) -> bool:
        """Whether nothing may be fetched, and that may change when robots.txt is asked for again."""
        return self.kind is AccessKind.CLOSED and self.temporary

    @property
    def size(self) -> int:
        """About how much memory it takes, in bytes."""
        texts = len(self.snapshot.url) + len(self.detail) + sum(map(len, self.snapshot.headers.values()))
        return 1000 + texts + (self.rules.size if self.rules else 0)

    @property
    def explanation(self) -> str:
        """What happened last, and which setting makes of it what it is."""
        if self.stale:
            return f"{self.detail}, and NOROBOTS_STALE_TTL lets the copy at hand count"
        if self.rules is not None:
            return self.detail
        verb = "allows" if self.kind is AccessKind.OPEN else "denies"
        return f"{self.detail}, and NOROBOTS_STATUS_POLICY {verb} {self.outcome!r}"

    def is_ready(self, robot: str | bytes) -> bool:
        """Whether questions about `robot` are answered at once; if not, `prepare` should run in a thread."""
        return self.rules is None or self.rules.is_ready(robot)

    def prepare(self, robot: str | bytes) -> None:
        """Do what the first question about `robot` takes."""
        if self.rules is not None:
            self.rules.prepare(self.snapshot.origin, robot)

    def forbids(self, origin: Origin, target: str, robot: str | bytes) -> bool:
        """Whether `robot` may not fetch a target, path and query, of the origin."""
        if self.rules is not None:
            return self.rules.forbids(origin, target, robot)
        return self.kind is AccessKind.CLOSED and not is_robots_txt(target)

    def decide(self, url: str, robot: str | bytes) -> Decision:
        """Say whether and why `robot` may fetch `url`."""
        if self.rules is not None:
            return self.rules.decide(url, robot, self.snapshot.url)
        decision = Decision(
            verdict=Verdict.ALLOWED if self.kind is AccessKind.OPEN else Verdict.FORBIDDEN,
            url=url,
            robot=to_name(robot),
            reason=Reason.ERROR if self.snapshot.status is None else Reason.STATUS,
            source=self.snapshot.url,
            detail=self.explanation,
        )
        target = split(url)[1]
        if not decision.allowed and target is not None and is_robots_txt(target):
            return replace(decision, verdict=Verdict.ALLOWED, reason=Reason.ROBOTS_TXT)
        return decision


@dataclass(frozen=True, slots=True)
class Judge:
    """Says what downloads mean, by a user's policy and times.

    `parse` reads the body of an answer. It may be a user's own parser; where it raises, that is a failure
    like one of the download.
    """

    policy: StatusPolicy
    freshness: Freshness
    parse: Callable[[bytes], Rules]

    def judge(self, snapshot: Snapshot, previous: Access | None = None) -> Access:
        """Judge a download, given the previous access to the origin, if there is one.

        Only the body of a 2xx answer is parsed; a 304 renews the previous rules. A temporary outcome leaves
        such rules in force, while they may stay. It counts the longer, the more downloads in a row failed.
        """
        failures = previous.snapshots[-1].failures if previous is not None else 0
        if previous is None or previous.rules is None:
            return self._judge(snapshot, failures)
        if snapshot.status == 304:
            return self._renewed(previous, snapshot)
        access = self._judge(snapshot, failures)
        if not access.temporary or not self.freshness.may_stay(previous.snapshot, snapshot.time):
            return access
        return replace(
            previous,
            detail=access.detail,
            temporary=True,
            stale=True,
            lifetime=access.lifetime,
            failure=access.snapshot,
        )

    def recall(self, snapshots: Sequence[Snapshot], now: float) -> Access:
        """Judge snapshots that a store kept, oldest first, as they were judged when they were new.

        The lifetime is what is left of it at `now`, in seconds since the epoch; 0 or less if nothing is.
        """
        access = None
        for snapshot in snapshots:
            access = self.judge(snapshot, access)
        assert access is not None  # there is at least one
        left = self.freshness.remaining(access.lifetime, snapshots[-1], now)
        return replace(access, lifetime=left)

    def _renewed(self, previous: Access, answer: Snapshot) -> Access:
        snapshot = replace(
            previous.snapshot, time=answer.time, headers={**previous.snapshot.headers, **answer.headers}
        )
        return replace(
            previous,
            snapshot=snapshot,
            detail=f"{printable(answer.url)} answered 304: it has not changed",
            lifetime=self.freshness.lifetime(snapshot),
            temporary=False,
            stale=False,
            failure=None,
        )

    def _judge(self, snapshot: Snapshot, failures: int) -> Access:
        if snapshot.status is not None and 200 <= snapshot.status < 300:
            try:
                rules = self.parse(snapshot.body)
            except Exception as exc:  # whatever a parser of the user's raises must not open the site
                error = f"its parser failed: {type(exc).__name__}: {exc}"
                failed = replace(
                    snapshot, status=None, error=error, body=b"", local_failure=True, exception=exc
                )
                return self._without_rules(failed, failures)
            return Access(
                kind=AccessKind.RULES,
                snapshot=snapshot,
                outcome="rules",
                detail=f"{printable(snapshot.url)} answered {snapshot.status}",
                lifetime=self.freshness.lifetime(snapshot),
                rules=rules,
            )
        return self._without_rules(replace(snapshot, body=b""), failures)

    def _without_rules(self, snapshot: Snapshot, failures: int) -> Access:
        status, source = snapshot.status, printable(snapshot.url)
        key, action = self.policy.look_up(status)
        if status is None:
            detail = f"{source} could not be had ({printable(snapshot.error)})"
        else:
            detail = f"{source} answered {status}"
        # Only a 4xx can say that there is no robots.txt.
        temporary = status is None or str(status) in NOT_NOW or not 400 <= status < 500
        if temporary and not snapshot.failures:  # one from a store has been counted
            snapshot = replace(snapshot, failures=failures + 1)
        return Access(
            kind=AccessKind.OPEN if action == ALLOW else AccessKind.CLOSED,
            snapshot=snapshot,
            outcome=key,
            detail=detail,
            lifetime=(
                self.freshness.until_next_try(snapshot) if temporary else self.freshness.lifetime(snapshot)
            ),
            temporary=temporary,
        )
