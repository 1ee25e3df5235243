"""``scrapy robots-store URL list|show ORIGIN|export FOLDER|forget ORIGIN``: read a store, or delete an entry.

Nothing is downloaded. The store must exist: a file that is missing, damaged or of another program is not
changed. The exit status is 2 if something failed, else 1 if an origin is not in the store, else 0.
"""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import datetime, timezone
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import quote as percent_quote

from scrapy.exceptions import UsageError

from scrapy_norobots.commands.base import (
    CommandError,
    RobotsCommand,
    failures_of,
    open_existing,
    span,
    to_json,
    write,
)
from scrapy_norobots.features.report.counters import Outcome
from scrapy_norobots.rules.access import Access, Judge
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Origin, RobotsTxt
from scrapy_norobots.standard.decision import printable, quoted
from scrapy_norobots.standard.lines import to_lines, to_text

INDEX = "index.jsonl"

# How long a host may be in a file name.
_LONGEST_HOST = 150

_ACTIONS = {"list": "", "show": "ORIGIN", "export": "FOLDER", "forget": "ORIGIN"}


class RobotsStore(RobotsCommand):
    """``scrapy robots-store``."""

    requires_crawler_process = False
    reads_stdin = False

    arguments = "URL list|show ORIGIN|export FOLDER|forget ORIGIN"
    summary = "List, show, export or delete the entries of a store"
    description = (
        "Read a store; URL is a value of NOROBOTS_STORE. 'list' lists the origins; 'show' prints the entry "
        "of an origin; 'export' writes each robots.txt to a new folder, with an index; 'forget' deletes the "
        "entry of an origin. Nothing is downloaded. The exit status is 2 if something failed, else 1 if the "
        "origin is not in the store, else 0."
    )

    def process_options(self, args: list[str], opts: Namespace) -> None:
        if args:
            super().process_options(args, opts)
        action = args[1] if len(args) > 1 else None
        if action not in _ACTIONS:
            what = f"unknown action {quoted(action)}" if action else "nothing to do"
            raise UsageError(f"{what}: expected {self.arguments}")
        wanted = _ACTIONS[action]
        if len(args) != (3 if wanted else 2):
            raise UsageError(f"{action}: expected {f'one {wanted}' if wanted else 'no more arguments'}")

    def work(self, args: list[str], opts: Namespace) -> None:
        self._value, action, *rest = args
        self._as_json, self._now = opts.json, time.time()
        self._judge = Judge(self.config.status_policy, self.config.freshness, RobotsTxt)
        argument = _origin(rest[0]) if _ACTIONS[action] == "ORIGIN" else "".join(rest)
        self.exitcode = asyncio.run(self._run(getattr(self, f"_{action}"), argument))

    async def _run(self, action: Callable[[Any], Coroutine[Any, Any, int]], argument: Any) -> int:
        """Run an action, and return the exit status. The entries are judged with the settings."""
        self._store = open_existing(self._value, self.config.store_max)
        with failures_of(self._value):
            try:
                return await action(argument)
            finally:
                await self._store.close()

    async def _items(self) -> AsyncIterator[tuple[Origin, Access | None]]:
        """Yield each origin and its access; None instead of an access if the entry cannot be read."""
        with failures_of(self._value):  # not of the folder that entries are exported to
            async for origin, snapshots in self._store.items():
                yield origin, self._recall(snapshots)

    def _recall(self, snapshots: tuple[Snapshot, ...]) -> Access | None:
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
        """Return in words how old a robots.txt is, and for how long a crawl would use it."""
        age, fresh_for = self._now - access.snapshot.time, access.lifetime
        old = f"{span(age)} old" if age >= 0 else f"{span(-age)} ahead of the clock of this machine"
        return f"{old}, {f'fresh for {span(fresh_for)}' if fresh_for > 0 else 'no longer fresh'}"

    async def _list(self, _: str) -> int:
        async for origin, access in self._items():
            facts = self._facts(origin, access)
            more = f", {facts['size']} bytes, {self._times(access)}" if access is not None else ""
            line = f"{printable(str(origin))}: {facts['outcome']}{more}"
            write([to_json(facts) if self._as_json else line])
        return 0

    async def _show(self, origin: Origin) -> int:
        access = self._recall(await self._store.load(origin))
        if access is None:
            return self._tell(origin, "not in the store", 1)
        facts, snapshot = self._facts(origin, access), access.snapshot
        text = to_text(snapshot.body)
        if self._as_json:
            write([to_json({**facts, "headers": dict(snapshot.headers), "body": text})])
            return 0
        when = datetime.fromtimestamp(snapshot.time, timezone.utc).isoformat(timespec="seconds")
        setting = f"{', and ' if access.setting else ''}{access.setting}"
        shown = {
            "origin": str(origin),
            "outcome": f"{facts['outcome']}: {access.detail}{setting}",
            "url": snapshot.url,
            "time": f"{when}, {self._times(access)}",
            "failures in a row": str(facts["failures"]),
            **snapshot.headers,
            "size": f"{facts['size']} bytes",
        }
        lines = [f"{printable(name)}: {printable(value)}" for name, value in shown.items()]
        body = to_lines(text)
        if not body[-1]:
            body.pop()  # what follows the last line feed
        write([*lines, *([""] if body else []), *map(_escaped, body)])
        return 0

    async def _export(self, folder: str) -> int:
        path = Path(folder)
        try:
            path.mkdir(parents=True, exist_ok=True)
            if any(path.iterdir()):
                raise CommandError(f"{folder} is not empty; expected a new or empty folder")
            with (path / INDEX).open("w", encoding="ascii", newline="\n") as index:
                async for origin, access in self._items():
                    file = None
                    if access is not None and access.rules is not None:
                        file = file_name(origin)
                        (path / file).write_bytes(access.snapshot.body)
                    index.write(to_json({**self._facts(origin, access), "file": file}) + "\n")
        except OSError as exc:
            raise CommandError(f"{exc.filename or folder}: {exc.strerror or exc}") from exc
        return 0

    async def _forget(self, origin: Origin) -> int:
        was_there = await self._store.delete(origin)
        return self._tell(origin, "forgotten" if was_there else "not in the store", 0 if was_there else 1)

    def _tell(self, origin: Origin, what: str, status: int) -> int:
        facts: dict[str, object] = {"origin": str(origin), "outcome": what}
        write([to_json(facts) if self._as_json else f"{printable(str(origin))}: {what}"])
        return status


def _escaped(line: str) -> str:
    """Escape what is not printable or not UTF-8 in a line of a body."""
    text = line.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return printable(text, len(text))


def file_name(origin: Origin) -> str:
    """Return a file name for the robots.txt of an origin, safe on every file system and unique.

    Special characters become ``%XX``. A host that is too long ends in a hash.
    """
    host = percent_quote(origin.host, safe="", errors="surrogatepass")
    if len(host) > _LONGEST_HOST:
        host = f"{host[:_LONGEST_HOST]}%{blake2b(host.encode(), digest_size=16).hexdigest()}"
    return f"{origin.scheme}_{host}_{origin.port}.txt"


def _origin(text: str) -> Origin:
    """Return the origin of a URL. Raises `CommandError` if it has none."""
    try:
        origin = Origin.of(text)
    except ValueError:
        origin = None
    if origin is None:
        raise CommandError(
            f"{text}: not an origin; expected a scheme and a host, such as http://town.example"
        )
    return origin
