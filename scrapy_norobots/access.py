"""What the outcome of a download means for an origin: its rules count, it is open, or it is closed.

The 1994 standard is silent about statuses and failures, so what they mean is a policy: a table from
statuses to "allow" or "deny", chosen by `NOROBOTS_STATUS_POLICY`. `access_of` is a pure function from a
snapshot and a policy to an `Access`; nothing here knows Scrapy or waits for anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import Protocol

from scrapy_norobots.snapshot import Snapshot
from scrapy_norobots.standard import Decision, Reason, Verdict
from scrapy_norobots.standard.decision import printable
from scrapy_norobots.standard.names import to_name
from scrapy_norobots.standard.urls import is_robots_txt, split

ALLOW, DENY = "allow", "deny"

# What each outcome means, by preset. A key is a status, a class of statuses, or "error": no answer came
# (time-out, name not found, connection, TLS, answer truncated or too large). A status is looked up
# before its class. "3xx" is a redirect that leads nowhere.
PRESETS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        # The reading of Martijn Koster's draft of 1996: no entry means keep out.
        "koster1996": {
            "401": DENY, "403": DENY, "429": DENY,
            "3xx": ALLOW, "4xx": ALLOW, "5xx": DENY, "error": DENY,
        },
        # RFC 9309, 2.3.1, with 429 read as "not now".
        "rfc9309": {
            "429": DENY, "3xx": ALLOW, "4xx": ALLOW, "5xx": DENY, "error": DENY,
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

    def allowed(self, url: str, robot: str | bytes) -> bool:
        """Whether `robot` may fetch `url`."""

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

    `rules` is there if `kind` is `AccessKind.RULES`. `source` is the URL that the download ended at,
    `detail` what happened there in words; `outcome` is the key of the policy that decided, empty for
    rules. A `temporary` access says nothing about what the site wants, and is looked into again soon.
    """

    kind: AccessKind
    source: str
    detail: str
    reason: Reason = Reason.STATUS
    outcome: str = ""
    temporary: bool = False
    rules: Rules | None = None

    @property
    def size(self) -> int:
        """About how much memory it takes, in bytes."""
        return 500 + (self.rules.size if self.rules else 0)

    def allowed(self, url: str, robot: str | bytes) -> bool:
        """Whether `robot` may fetch `url`, an http or https URL of the origin."""
        if self.rules is not None:
            return self.rules.allowed(url, robot)
        return self.kind is AccessKind.OPEN or _is_robots_url(url)

    def decide(self, url: str, robot: str | bytes) -> Decision:
        """Say whether and why `robot` may fetch `url`."""
        if self.rules is not None:
            return self.rules.decide(url, robot, self.source)
        decision = Decision(
            verdict=Verdict.ALLOWED if self.kind is AccessKind.OPEN else Verdict.FORBIDDEN,
            url=url,
            robot=to_name(robot),
            reason=self.reason,
            source=self.source,
            detail=self.detail,
        )
        if not decision.allowed and _is_robots_url(url):
            return replace(decision, verdict=Verdict.ALLOWED, reason=Reason.ROBOTS_TXT)
        return decision


def access_of(snapshot: Snapshot, policy: StatusPolicy, parse: Callable[[bytes], Rules]) -> Access:
    """Judge a snapshot.

    Only the body of a 2xx answer is parsed. `parse` may be a user's own parser: where it raises, that is
    a failure like one of the download.
    """
    status, error = snapshot.status, snapshot.error
    if status is not None and 200 <= status < 300:
        try:
            rules = parse(snapshot.body)
        except Exception as exc:  # whatever a parser of the user's raises must not open the site
            status, error = None, f"its parser failed: {type(exc).__name__}: {exc}"
        else:
            return Access(AccessKind.RULES, snapshot.url, f"answered {status}", rules=rules)
    key, action = policy.look_up(status)
    source = printable(snapshot.url)
    if status is None:
        what = f"{source} could not be had ({printable(error)})"
    else:
        what = f"{source} answered {status}"
    verb = "allows" if action == ALLOW else "denies"
    return Access(
        kind=AccessKind.OPEN if action == ALLOW else AccessKind.CLOSED,
        source=snapshot.url,
        detail=f"{what}, and NOROBOTS_STATUS_POLICY {verb} {key!r}",
        reason=Reason.ERROR if status is None else Reason.STATUS,
        outcome=key,
        temporary=status is None or status == 429 or not 300 <= status < 500,
        rules=None,
    )


def _is_robots_url(url: str) -> bool:
    target = split(url)[1]
    return target is not None and is_robots_txt(target)
