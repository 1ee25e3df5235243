"""``scrapy robots-store URL list|show ORIGIN|forget ORIGIN``: read a store, or delete an entry.

Nothing is downloaded. The store must exist: a file that is missing, damaged or of another program is not
changed.
"""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from collections.abc import Sequence
from datetime import datetime, timezone

from scrapy.exceptions import UsageError

from scrapy_norobots.commands.base import (
    RobotsCommand,
    failures_of,
    span,
    split_url,
    to_json,
    write,
)
from scrapy_norobots.features.report.counters import Outcome
from scrapy_norobots.rules.access import Access, Judge
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Origin, RobotsTxt
from scrapy_norobots.standard.decision import printable
from scrapy_norobots.standard.lines import to_lines, to_text
from scrapy_norobots.stores import with_home
from scrapy_norobots.stores.opening import open_store

# How many arguments each action has.
_ACTIONS = {"list": 0, "show": 1, "forget": 1}


class RobotsStore(RobotsCommand):
    """List, show or delete the entries of a store.

    URL is a value of NOROBOTS_STORE. 'list' lists the origins; 'show' prints the entry of an origin; 'forget'
    deletes it. With --json, 'list' prints whole entries too. Nothing is downloaded. The exit status is 2 if
    something failed, else 1 if the origin is not in the store, else 0.
    """

    requires_crawler_process = False
    arguments = "URL list|show ORIGIN|forget ORIGIN"

    def process_options(self, args: list[str], opts: Namespace) -> None:
        super().process_options(args, opts)
        action, *rest = args[1:] or [""]
        if len(rest) != _ACTIONS.get(action):
            raise UsageError(f"expected {self.arguments}")

    def run(self, args: list[str], opts: Namespace) -> None:
        self._as_json, self._now = opts.json, time.time()
        self._judge = Judge(self.config.status_policy, self.config.freshness, RobotsTxt)
        asyncio.run(self._run(*args))

    async def _run(self, value: str, action: str, argument: str = "") -> None:
        with failures_of(value):
            self._store = open_store(with_home(value), self.config.store_max, must_exist=True)
            try:
                await getattr(self, f"_{action}")(argument)
            finally:
                await self._store.close()

    def _recall(self, snapshots: Sequence[Snapshot]) -> Access | None:
        """Return the access for an entry by the settings; None if it is missing or cannot be read."""
        return self._judge.recall(snapshots, self._now) if snapshots else None

    def _facts(self, origin: Origin, access: Access | None) -> dict[str, object]:
        if access is None:
            return {"origin": str(origin), "outcome": "unreadable"}
        snapshot = access.snapshot
        return {
            "origin": str(origin),
            "outcome": str(Outcome.of(access)),
            "url": snapshot.url,
            "status": snapshot.status,
            "error": snapshot.error,
            "time": snapshot.time,
            "age": round(self._now - snapshot.time, 1),
            "fresh_for": round(access.lifetime, 1),
            "failures": access.snapshots[-1].failures,
            "size": len(snapshot.body),
            "headers": dict(snapshot.headers),
            "body": to_text(snapshot.body),
        }

    def _times(self, access: Access) -> str:
        """Return in words how old a robots.txt is, and for how long a crawl would use it."""
        fresh = f"fresh for {span(access.lifetime)}" if access.lifetime > 0 else "no longer fresh"
        return f"{span(self._now - access.snapshot.time)} old, {fresh}"

    async def _list(self, _: str) -> None:
        async for origin, snapshots in self._store.items():
            access = self._recall(snapshots)
            facts = self._facts(origin, access)
            more = f", {facts['size']} bytes, {self._times(access)}" if access is not None else ""
            line = f"{printable(str(origin))}: {facts['outcome']}{more}"
            write([to_json(facts) if self._as_json else line])

    async def _show(self, url: str) -> None:
        origin, _ = split_url(url)
        access = self._recall(await self._store.load(origin))
        if access is None:
            self._tell(origin, "not in the store", 1)
            return
        facts, snapshot = self._facts(origin, access), access.snapshot
        if self._as_json:
            write([to_json(facts)])
            return
        when = datetime.fromtimestamp(snapshot.time, timezone.utc).isoformat(timespec="seconds")
        why = ", and ".join(filter(None, (access.detail, access.setting)))
        shown = {
            "origin": str(origin),
            "outcome": f"{facts['outcome']}: {why}",
            "url": snapshot.url,
            "time": f"{when}, {self._times(access)}",
            "failures in a row": str(facts["failures"]),
            **snapshot.headers,
            "size": f"{facts['size']} bytes",
        }
        lines = [f"{printable(name)}: {printable(value)}" for name, value in shown.items()]
        write([*lines, "", *(printable(line, len(line)) for line in to_lines(to_text(snapshot.body)))])

    async def _forget(self, url: str) -> None:
        origin, _ = split_url(url)
        was_there = await self._store.delete(origin)
        self._tell(origin, "forgotten" if was_there else "not in the store", 0 if was_there else 1)

    def _tell(self, origin: Origin, what: str, status: int) -> None:
        facts = {"origin": str(origin), "outcome": what}
        write([to_json(facts) if self._as_json else f"{printable(str(origin))}: {what}"])
        self.exitcode = status
