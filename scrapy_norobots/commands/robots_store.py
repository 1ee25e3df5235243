"""``scrapy robots-store URL list|show ORIGIN|export FOLDER|forget ORIGIN``: look into a store.

No site is asked. The store must exist: a file that is missing, damaged or another program's is left as it is.
The exit status is 2 if something failed, else 1 if an origin is not in the store, else 0.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Coroutine
from datetime import datetime, timezone
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError

from scrapy_norobots.access import Access, Judge
from scrapy_norobots.commands.base import RobotsCommand, span, to_json, write
from scrapy_norobots.commands.existing import ExistingStore
from scrapy_norobots.commands.spider import CommandError
from scrapy_norobots.report.counters import Outcome
from scrapy_norobots.standard import Origin, RobotsTxt
from scrapy_norobots.standard.decision import printable, quoted
from scrapy_norobots.standard.lines import to_lines, to_text

if TYPE_CHECKING:
    from argparse import Namespace

    from scrapy_norobots.settings import Config
    from scrapy_norobots.snapshot import Snapshot

INDEX = "index.jsonl"

# What can stand in a name on every file system; and how long a host may be in one.
_UNSAFE = re.compile(r"[^a-z0-9.\-_]")
_LONGEST_HOST = 150

# How many lines are written at a time.
_LINES = 500

_ACTIONS = {"list": "", "show": "ORIGIN", "export": "FOLDER", "forget": "ORIGIN"}


class RobotsStore(RobotsCommand):
    """``scrapy robots-store``."""

    requires_crawler_process = False

    def syntax(self) -> str:
        """Return its arguments."""
        return "[options] URL list|show ORIGIN|export FOLDER|forget ORIGIN"

    def short_desc(self) -> str:
        """Return what it does."""
        return "List, show, export or forget what a store keeps"

    def long_desc(self) -> str:
        """Return what it does, and how it ends."""
        return (
            "Look into a store, named as NOROBOTS_STORE names it. 'list' lists its origins; 'show' shows "
            "what it keeps of one; 'export' writes each robots.txt to a new folder, with an index; "
            "'forget' deletes an origin. No site is asked. The exit status is 2 if something failed, else "
            "1 if the origin is not in the store, else 0."
        )

    def process_options(self, args: list[str], opts: Namespace) -> None:
        """Check the arguments; raise `UsageError` for bad ones."""
        if args:
            super().process_options(args, opts)
        action = args[1] if len(args) > 1 else None
        if action not in _ACTIONS:
            what = f"unknown action {quoted(action)}" if action else "nothing to do"
            raise UsageError(f"{what}: write a store and list, show ORIGIN, export FOLDER or forget ORIGIN")
        wanted = _ACTIONS[action]
        if len(args) != (3 if wanted else 2):
            raise UsageError(f"{action} takes {f'one {wanted}' if wanted else 'nothing more'}")

    def run(self, args: list[str], opts: Namespace) -> None:
        """Do what is asked."""
        value, action, *rest = args
        try:
            origin = _origin(rest[0]) if _ACTIONS[action] == "ORIGIN" else None
            contents = _Contents(value, self.config)
        except ValueError as exc:
            self.fail(printable(str(exc)))
            return
        work: Coroutine[Any, Any, int]
        if origin is None:
            work = _list(contents, as_json=opts.json) if action == "list" else _export(contents, rest[0])
        else:
            work = (_show if action == "show" else _forget)(contents, origin, as_json=opts.json)
        try:
            self.exitcode = asyncio.run(_run(contents, work))
        except CommandError as exc:
            self.fail(str(exc))


async def _run(contents: _Contents, work: Coroutine[Any, Any, int]) -> int:
    try:
        return await work
    finally:
        await contents.store.close()


class _Contents:
    """What a store keeps, judged by a user's settings. Raises `CommandError` if the store fails."""

    def __init__(self, value: str, config: Config) -> None:
        """Raise `ValueError` for a value that names no such store."""
        self.store = ExistingStore(value, config.store_max)
        self.now = time.time()
        self._judge = Judge(config.status_policy, config.freshness, RobotsTxt)

    async def items(self) -> AsyncIterator[tuple[Origin, Access | None]]:
        """Yield each origin and what may be fetched there; None if its entry cannot be read."""
        async for origin, snapshots in self.store.items():
            yield origin, self._recall(snapshots)

    async def load(self, origin: Origin) -> Access | None:
        """Return what may be fetched at an origin; None if that is not in the store or cannot be read."""
        return self._recall(await self.store.load(origin))

    def _recall(self, snapshots: tuple[Snapshot, ...]) -> Access | None:
        return self._judge.recall(snapshots, self.now) if snapshots else None

    def facts(self, origin: Origin, access: Access | None) -> dict[str, object]:
        """Return what JSON can say of an origin, without headers and body."""
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
            "age": round(self.now - snapshot.time, 1),
            "fresh_for": round(access.lifetime, 1),
            "failures": access.snapshots[-1].failures,
            "size": len(snapshot.body),
        }

    def times(self, access: Access) -> str:
        """Say how old a robots.txt is, and for how long a crawl would use it."""
        age, fresh_for = self.now - access.snapshot.time, access.lifetime
        old = f"{span(age)} old" if age >= 0 else f"dated {span(-age)} ahead of this clock"
        return f"{old}, {f'fresh for {span(fresh_for)}' if fresh_for > 0 else 'no longer fresh'}"


async def _list(contents: _Contents, *, as_json: bool) -> int:
    lines: list[str] = []
    async for origin, access in contents.items():
        facts = contents.facts(origin, access)
        if as_json:
            lines.append(to_json(facts))
        else:
            more = f", {facts['size']} bytes, {contents.times(access)}" if access is not None else ""
            lines.append(f"{printable(str(origin))}: {facts['outcome']}{more}")
        if len(lines) == _LINES:
            if not _write(lines):
                return 0
            lines = []
    _write(lines)
    return 0


async def _show(contents: _Contents, origin: Origin, *, as_json: bool) -> int:
    access = await contents.load(origin)
    if access is None:
        return _not_there(origin, as_json=as_json)
    facts, snapshot = contents.facts(origin, access), access.snapshot
    text = to_text(snapshot.body)
    if as_json:
        _write([to_json({**facts, "headers": dict(snapshot.headers), "body": text})])
        return 0
    when = datetime.fromtimestamp(snapshot.time, timezone.utc).isoformat(timespec="seconds")
    shown = {
        "origin": str(origin),
        "outcome": f"{facts['outcome']}: {access.explanation}",
        "url": snapshot.url,
        "time": f"{when}, {contents.times(access)}",
        "failures in a row": str(facts["failures"]),
        **snapshot.headers,
        "size": f"{facts['size']} bytes",
    }
    lines = [f"{printable(name)}: {printable(value)}" for name, value in shown.items()]
    body = to_lines(text)
    if not body[-1]:
        body.pop()  # the last line ends as the others do
    _write([*lines, *([""] if body else []), *map(_escaped, body)])
    return 0


def _escaped(line: str) -> str:
    """Return a line of a body with what is not printable escaped, and what is not UTF-8 as its bytes."""
    text = line.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return printable(text, len(text))


async def _forget(contents: _Contents, origin: Origin, *, as_json: bool) -> int:
    if not await contents.store.delete(origin):
        return _not_there(origin, as_json=as_json)
    done = "forgotten"
    _write(
        [
            to_json({"origin": str(origin), "outcome": done})
            if as_json
            else f"{printable(str(origin))}: {done}"
        ]
    )
    return 0


def _not_there(origin: Origin, *, as_json: bool) -> int:
    what = "not in the store"
    _write(
        [
            to_json({"origin": str(origin), "outcome": what})
            if as_json
            else f"{printable(str(origin))}: {what}"
        ]
    )
    return 1


async def _export(contents: _Contents, folder: str) -> int:
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise CommandError(f"{folder} is not empty; export to a new folder")
        with (path / INDEX).open("w", encoding="ascii", newline="\n") as index:
            async for origin, access in contents.items():
                file = None
                if access is not None and access.rules is not None:
                    file = file_name(origin)
                    (path / file).write_bytes(access.snapshot.body)
                index.write(to_json({**contents.facts(origin, access), "file": file}) + "\n")
    except OSError as exc:
        raise CommandError(f"{exc.filename or folder}: {exc.strerror or exc}") from exc
    return 0


def file_name(origin: Origin) -> str:
    """Return a name for an origin's robots.txt that every file system takes, and that no other origin has.

    What is not a lower-case ASCII letter, a digit, ``.``, ``-`` or ``_`` is written as ``%XX`` of its UTF-8
    bytes; a host that is too long ends in a hash.
    """
    host = _UNSAFE.sub(
        lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass")),
        origin.host,
    )
    if len(host) > _LONGEST_HOST:
        host = f"{host[:_LONGEST_HOST]}%{blake2b(host.encode(), digest_size=16).hexdigest()}"
    return f"{origin.scheme}_{host}_{origin.port}.txt"


def _origin(text: str) -> Origin:
    """Return the origin of a URL of a site; raise `ValueError` if there is none."""
    try:
        origin = Origin.of(text)
    except ValueError:
        origin = None
    if origin is None:
        raise ValueError(f"{text}: not an origin; write a scheme and a host, such as http://town.example")
    return origin


def _write(lines: list[str]) -> bool:
    try:
        return write(lines)
    except OSError as exc:
        raise CommandError(f"standard output: {exc.strerror or exc}") from exc
