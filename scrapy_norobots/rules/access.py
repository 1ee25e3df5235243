"""Turn the download of a robots.txt into access to its origin: rules apply, all is open, or all is closed.

The 1994 standard does not mention HTTP statuses or failures. A policy, the setting `NOROBOTS_STATUS_POLICY`,
maps each of them to "allow" or "deny". `OriginCache` keeps accesses in memory. Nothing here awaits.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from scrapy_norobots.rules.snapshot import ClosingError, Freshness, Snapshot
from scrapy_norobots.standard import Decision, Origin, Reason, Verdict
from scrapy_norobots.standard.decision import printable
from scrapy_norobots.standard.names import to_name
from scrapy_norobots.standard.urls import is_robots_txt, split

if TYPE_CHECKING:
    from scrapy_norobots.rules.parser import Rules

ALLOW, DENY = "allow", "deny"

# If more proxies than this fail in turn at the same site, the site itself is taken to fail.
_PROXIES_MAX = 10

# Statuses of class 4xx that say nothing about the site's wishes: proxy authentication required (407), request
# timeout (408), misdirected request (421), too early (425), too many requests (429), headers too large (431).
NOT_NOW = ("407", "408", "421", "425", "429", "431")

# The action for each outcome, by preset. A key is a status, a class of statuses, or "error" for a download
# without a usable response (timeout, DNS, connection or TLS failure, response incomplete or too large). A
# status is looked up before its class. "3xx" is a redirect that could not be followed.
PRESETS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        # Martijn Koster's draft of 1996: where access is restricted, the whole site is off limits.
        "koster1996": {
            "401": DENY, "403": DENY, **dict.fromkeys(NOT_NOW, DENY),
            "3xx": DENY, "4xx": ALLOW, "5xx": DENY, "error": DENY,
        },
        # RFC 9309, 2.3.1, except that the statuses of NOT_NOW are temporary failures.
        "rfc9309": {
            **dict.fromkeys(NOT_NOW, DENY), "3xx": ALLOW, "4xx": ALLOW, "5xx": DENY, "error": DENY,
        },
        # Obey rules where there are any; never drop a request for another reason.
        "allow": {"3xx": ALLOW, "4xx": ALLOW, "5xx": ALLOW, "error": ALLOW},
    }
)  # fmt: skip
DEFAULT_PRESET = "koster1996"

_POLICY_KEY = re.compile(r"[345]xx|error|[3-9]\d\d", re.ASCII)


@dataclass(frozen=True, slots=True)
class StatusPolicy:
    """What to do with an origin without rules: `table` maps the keys of `PRESETS` to "allow" or "deny"."""

    table: Mapping[str, str]

    @classmethod
    def of(cls, value: object) -> StatusPolicy:
        """Make a policy from the name of a preset, or from a mapping that changes entries of a preset.

        The mapping may name the preset: ``{"preset": "rfc9309", "403": "deny"}``. Raises `ValueError`.
        """
        changes = dict(value) if isinstance(value, Mapping) else {"preset": value}
        preset = changes.pop("preset", DEFAULT_PRESET)
        if not isinstance(preset, str) or preset not in PRESETS:
            raise ValueError(f"unknown preset {preset!r}; choose from {', '.join(PRESETS)}")
        table = dict(PRESETS[preset])
        for key, action in changes.items():
            if not _POLICY_KEY.fullmatch(str(key)):
                raise ValueError(
                    f"unknown outcome {key!r}; use a status such as 403, a class (3xx, 4xx, 5xx), or 'error'"
                )
            if action not in (ALLOW, DENY):
                raise ValueError(f"the action for {key!r} must be {ALLOW!r} or {DENY!r}, not {action!r}")
            table[str(key)] = str(action)
        return cls(MappingProxyType(table))

    def look_up(self, status: int | None) -> tuple[str, str]:
        """Return the key that applies to a status (None: no usable response), and its action."""
        # A status outside the classes 3xx to 5xx is looked up as 5xx.
        keys = ("error",) if status is None else (str(status), f"{status // 100}xx", "5xx")
        key = next(key for key in keys if key in self.table)
        return key, self.table[key]


@dataclass(frozen=True, slots=True)
class Access:
    """What may be fetched at an origin, and why.

    - `rules` is None unless `kind` is "rules".
    - `snapshot` is the download that the access was judged from; if `stale`, the last good one.
    - `outcome` is ``"rules"`` or the key of the policy that decided.
    - `note` says in words what happened last, if that is more than the status of `snapshot`.
    - `lifetime` is for how many seconds the access is valid after it was judged.
    - `temporary` means that the outcome does not show what the site wants, so `lifetime` is short.
    - `failure` is the snapshot of a refresh that failed, if the access is `stale`.
    - `proxies` are those that have failed since one failed twice. An empty name means the site itself.
    """

    kind: Literal["rules", "open", "closed"]
    snapshot: Snapshot
    outcome: str
    lifetime: float
    temporary: bool = False
    rules: Rules | None = None
    failure: Snapshot | None = None
    proxies: frozenset[str] = frozenset()
    note: str = ""

    def applies_to(self, proxy: str) -> bool:
        """Return whether the access applies to requests that use a proxy (empty: none)."""
        return not self.snapshot.proxy or (proxy != "" and proxy in self.proxies)

    @property
    def stale(self) -> bool:
        """Whether the rules have expired, and stay in use because a refresh failed."""
        return self.failure is not None

    @property
    def detail(self) -> str:
        """What happened last, in words."""
        return self.note or f"{printable(self.snapshot.url)} answered {self.snapshot.status}"

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The snapshots that the access was judged from, oldest first; a store saves these."""
        return (self.snapshot,) if self.failure is None else (self.snapshot, self.failure)

    @property
    def is_closed_for_now(self) -> bool:
        """Whether nothing may be fetched, and the next download of robots.txt may change that."""
        return self.kind == "closed" and self.temporary

    @property
    def size(self) -> int:
        """Approximate memory use, in bytes."""
        texts = len(self.snapshot.url) + len(self.note) + sum(map(len, self.snapshot.headers.values()))
        return 1000 + texts + (self.rules.size if self.rules else 0)

    @property
    def setting(self) -> str:
        """Which setting leads from `detail` to this access, in words; empty if the rules are fresh."""
        if self.stale:
            return "they are used until NOROBOTS_STALE_TTL ends"
        if self.rules is not None:
            return ""
        verb = "allows" if self.kind == "open" else "denies"
        return f"NOROBOTS_STATUS_POLICY {verb} {self.outcome!r}"

    def is_ready(self, robot: str | bytes) -> bool:
        """Return whether questions about `robot` are answered at once; if not, run `prepare` in a thread."""
        return self.rules is None or self.rules.is_ready(robot)

    def prepare(self, robot: str | bytes) -> None:
        """Do the work that the first question about `robot` needs."""
        if self.rules is not None:
            self.rules.prepare(self.snapshot.origin, robot)

    def forbids(self, origin: Origin, target: str, robot: str | bytes) -> bool:
        """Return whether `robot` must not fetch `target`, a path with its query, at the origin."""
        if self.rules is not None:
            return self.rules.forbids(origin, target, robot)
        return self.kind == "closed" and not is_robots_txt(target)

    def decide(self, url: str, robot: str | bytes) -> Decision:
        """Return whether `robot` may fetch `url`, and why."""
        if self.rules is not None:
            return self.rules.decide(url, robot, self.snapshot.url)
        decision = Decision(
            verdict=Verdict.ALLOWED if self.kind == "open" else Verdict.FORBIDDEN,
            url=url,
            robot=to_name(robot),
            reason=Reason.ERROR if self.snapshot.status is None else Reason.STATUS,
            source=self.snapshot.url,
            detail=f"{self.detail}, and {self.setting}",
        )
        target = split(url)[1]
        if not decision.allowed and target is not None and is_robots_txt(target):
            return replace(decision, verdict=Verdict.ALLOWED, reason=Reason.ROBOTS_TXT)
        return decision


@dataclass(frozen=True, slots=True)
class Judge:
    """Turns snapshots into accesses, by the user's policy and times; `parse` reads the body of a response."""

    policy: StatusPolicy
    freshness: Freshness
    parse: Callable[[bytes], Rules]

    def judge(self, snapshot: Snapshot, previous: Access | None = None) -> Access:
        """Return the access that a download leads to; `previous` is the origin's last access, if any.

        Only the body of a 2xx response is parsed. A 304 renews the previous rules if it answers a conditional
        request. After a temporary failure, previous rules stay in use for at most `stale_ttl`. The lifetime
        of a temporary outcome doubles when the site, or one of its proxies, has failed once more.
        """
        access = self._judge(snapshot, previous)
        if previous is None or previous.rules is None:
            return access
        known = previous.snapshot
        if snapshot.status == 304 and known.conditions(snapshot.url):
            # The time of the answer begins again.
            kept = {name: value for name, value in known.headers.items() if name not in ("age", "date")}
            renewed = replace(known, time=snapshot.time, headers={**kept, **snapshot.headers})
            return replace(
                previous,
                snapshot=renewed,
                note=f"{printable(snapshot.url)} answered 304: not modified",
                lifetime=self.freshness.lifetime(renewed),
                temporary=False,
                failure=None,
                proxies=frozenset(),
            )
        left = self.freshness.stale_ttl - abs(snapshot.time - known.time)
        if left < 0 or not access.temporary:
            return access
        return replace(
            previous,
            temporary=True,
            lifetime=min(access.lifetime, left),
            failure=access.snapshot,
            proxies=access.proxies,
            note=access.detail,
        )

    def recall(self, snapshots: Sequence[Snapshot], now: float) -> Access:
        """Judge snapshots from a store, oldest first, as they were judged when they were new.

        The lifetime of the result is what remains at `now`, which is in seconds since the epoch; it is 0 or
        negative if the access has expired. A snapshot from the future is as old as one from the past.
        """
        access = None
        for snapshot in snapshots:
            access = self.judge(snapshot, access)
        assert access is not None  # there is at least one
        return replace(access, lifetime=access.lifetime - abs(now - snapshots[-1].time))

    def _judge(self, snapshot: Snapshot, previous: Access | None) -> Access:
        problem = "could not be downloaded"
        if snapshot.status is not None and 200 <= snapshot.status < 300:
            try:
                rules = self.parse(snapshot.body)
            except Exception as exc:  # no exception of a user's parser may open the site
                problem = "could not be parsed"
                error = f"{type(exc).__name__}: {exc}"
                snapshot = replace(snapshot, status=None, error=error, local_failure=True, exception=exc)
            else:
                return Access("rules", snapshot, "rules", self.freshness.lifetime(snapshot), rules=rules)
        status, where = snapshot.status, printable(snapshot.url)
        key, action = self.policy.look_up(status)
        # Only a 4xx can say that there is no robots.txt.
        temporary = status is None or str(status) in NOT_NOW or not 400 <= status < 500
        failures, proxies = 0, frozenset[str]()
        if temporary:
            if previous is not None:
                failures, proxies = previous.snapshots[-1].failures, previous.proxies
            if not 0 < len(proxies) <= _PROXIES_MAX or snapshot.proxy in proxies:
                failures, proxies = failures + 1, frozenset()
            proxies |= {snapshot.proxy}
            snapshot = replace(
                snapshot,
                failures=snapshot.failures or failures,  # one from a store has its number already
                proxy=snapshot.proxy if len(proxies) <= _PROXIES_MAX else "",
            )
        lifetime_of = self.freshness.until_next_try if temporary else self.freshness.lifetime
        return Access(
            kind="open" if action == ALLOW and not isinstance(snapshot.exception, ClosingError) else "closed",
            snapshot=replace(snapshot, body=b""),
            outcome=key,
            lifetime=lifetime_of(snapshot),
            temporary=temporary,
            proxies=proxies,
            note=f"{where} {problem} ({printable(snapshot.error)})" if status is None else "",
        )


@dataclass(slots=True)
class _Entry:
    access: Access
    size: int
    expires: float


class OriginCache:
    """The accesses of origins, each until its lifetime ends; the least recently used are evicted first.

    `memory_max` limits the cache, and `size` is its approximate memory use, in bytes.
    """

    def __init__(self, *, memory_max: int) -> None:
        self._memory_max = memory_max
        self._entries: OrderedDict[Origin, _Entry] = OrderedDict()
        self.size = 0

    def get(self, origin: Origin) -> Access | None:
        """Return the access of an origin that has not expired, or None; the hot path."""
        entry = self._entries.get(origin)
        if entry is None or entry.expires <= monotonic():
            return None
        self._entries.move_to_end(origin)
        return entry.access

    def latest(self, origin: Origin) -> Access | None:
        """Return the access of an origin, also if it has expired, or None."""
        entry = self._entries.get(origin)
        return entry.access if entry else None

    def remaining(self, origin: Origin) -> float:
        """Return for how many seconds the access of an origin remains valid; 0 if it is not."""
        entry = self._entries.get(origin)
        return max(0.0, entry.expires - monotonic()) if entry else 0.0

    def put(self, origin: Origin, access: Access) -> None:
        """Store an access, replacing the previous one, and evict origins while the limit is exceeded."""
        if origin in self._entries:
            self._remove(origin)
        entry = self._entries[origin] = _Entry(access, access.size, monotonic() + access.lifetime)
        self.size += entry.size
        while self.size > self._memory_max and len(self._entries) > 1:
            self._remove(next(iter(self._entries)))

    def _remove(self, origin: Origin) -> None:
        self.size -= self._entries.pop(origin).size


def spellings_of(target: str) -> tuple[str, ...]:
    """Return the spellings of a target that may be sent: its own, and those that download handlers produce.

    Twisted's handler drops an empty ``;``. Scrapy's HTTP/2 handler drops the parameters of the last segment
    of the path. httpx's handler resolves dot segments. aiohttp's handler does so too, and decodes more
    escapes than the normal form of RFC 3986; its spelling is included wherever aiohttp is installed.
    """
    if "%" not in target and ";" not in target and "/." not in target and target[-1] != "?":
        return (target,)
    path, mark, query = target.partition("?")
    folder, slash, last = path.rpartition("/")
    spellings = (
        target,
        path.removesuffix(";") + (query and mark + query),
        folder + slash + last.partition(";")[0] + (query and mark + query),
        _without_dot_segments(target),
    )
    url_type = _aiohttp_url()
    return spellings if url_type is None else (*spellings, url_type(f"http://host{target}").raw_path_qs)


def _without_dot_segments(target: str) -> str:
    """Resolve dot segments as httpx does, which drops the slash before one at the end; RFC 3986 keeps it."""
    path, mark, query = target.partition("?")
    kept: list[str] = []
    for segment in path.split("/"):
        if segment not in {".", ".."}:
            kept.append(segment)
        elif segment == ".." and len(kept) > 1:
            kept.pop()
    return ("/".join(kept) or "/") + mark + query


@cache
def _aiohttp_url() -> Any | None:
    try:
        from yarl import URL  # noqa: PLC0415  # a dependency of aiohttp, which is optional
    except ImportError:
        return None
    return URL
