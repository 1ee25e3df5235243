"""``scrapy robots-store URL list|show ORIGIN|export FOLDER|forget ORIGIN``: read a store, or delete an entry.

Nothing is downloaded. The store must exist: a file that is damaged or of another program is not changed.
"""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from collections.abc import Sequence
from datetime import datetime, timezone
from hashlib import blake2b
from pathlib import Path
from urllib.parse import quote as percent_quote

from scrapy.exceptions import UsageError

from scrapy_norobots.commands.base import (
    CommandError,
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

INDEX = "index.jsonl"

# How long a host may be in a file name.
_LONGEST_HOST = 150

# How many arguments each action has.
_ACTIONS = {"list": 0, "show": 1, "export": 1, "forget": 1}


class RobotsStore(RobotsCommand):
    """List, show, export or delete the entries of a store.

    URL is a value of NOROBOTS_STORE. 'list' lists the origins; 'show' prints the entry of an origin; 'export'
    writes each robots.txt to a new folder, with an index; 'forget' deletes the entry of an origin. Nothing is
    downloaded. The exit status is 2 if something failed, else 1 if the origin is not in the store, else 0.
    """

    requires_crawler_process = False
    arguments = "URL list|show ORIGIN|export FOLDER|forget ORIGIN"

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
        """Return an entry as data for JSON, without headers and body."""
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
        }

    def _times(self, access: Access) -> str:
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
        text = to_text(snapshot.body)
        if self._as_json:
            write([to_json({**facts, "headers": dict(snapshot.headers), "body": text})])
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
        write([*lines, "", *(printable(line, len(line)) for line in to_lines(text))])

    async def _export(self, folder: str) -> None:
        path = Path(folder)
        try:
            path.mkdir(parents=True)
            with (path / INDEX).open("x", encoding="ascii", newline="\n") as index:
                async for origin, snapshots in self._store.items():
                    access, file = self._recall(snapshots), None
                    if access is not None and access.rules is not None:
                        file = file_name(origin)
                        (path / file).write_bytes(access.snapshot.body)
                    index.write(to_json({**self._facts(origin, access), "file": file}) + "\n")
        except OSError as exc:
            raise CommandError(str(exc.filename or folder), exc.strerror or str(exc)) from exc

    async def _forget(self, url: str) -> None:
        origin, _ = split_url(url)
        was_there = await self._store.delete(origin)
        self._tell(origin, "forgotten" if was_there else "not in the store", 0 if was_there else 1)

    def _tell(self, origin: Origin, what: str, status: int) -> None:
        facts = {"origin": str(origin), "outcome": what}
        write([to_json(facts) if self._as_json else f"{printable(str(origin))}: {what}"])
        self.exitcode = status


def file_name(origin: Origin) -> str:
    """Return a unique file name for the robots.txt of an origin, safe on every file system."""
    host = percent_quote(origin.host, safe="", errors="surrogatepass")
    if len(host) > _LONGEST_HOST:
        host = f"{host[:_LONGEST_HOST]}%{blake2b(host.encode(), digest_size=16).hexdigest()}"
    return f"{origin.scheme}_{host}_{origin.port}.txt"
