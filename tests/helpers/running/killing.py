"""Kill writers of a SQLite store while they write, and check what they have committed.

Run as ``python -m tests.helpers.running.killing FILE TIMES``; prints how many writers were killed, and how
many entries there must be. Each writer is a process forked from this one, which has no threads.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from dataclasses import replace

from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.stores.sqlite import SqliteStore
from tests.helpers.samples.snapshots import FOUND, later

_MAX_BYTES = 2**30


def snapshot(number: int) -> Snapshot:
    """Return the snapshot with a number; its body has the number, and is longer than a page of the file."""
    origin = FOUND.origin._replace(host=f"{number}.town.example")
    return replace(FOUND, origin=origin, body=str(number).encode() * 3000)


def write(path: str, first: int, pipe: int) -> None:
    """Save one snapshot after another, and report each that was saved."""

    async def work() -> None:
        store = SqliteStore(path, _MAX_BYTES)
        number = first
        while True:
            await store.save((snapshot(number),), later())
            os.write(pipe, b".")
            number += 1

    asyncio.run(work())


def check(path: str, first: int, count: int) -> None:
    """Fail if one of the first snapshots is missing or changed."""

    async def work() -> None:
        store = SqliteStore(path, _MAX_BYTES)
        for number in range(first, count):
            expected = snapshot(number)
            assert await store.load(expected.origin) == (expected,), number
        await store.close()

    asyncio.run(work())


def fork(work: object, *arguments: object) -> int:
    """Run a function in a separate process."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work(*arguments)  # type: ignore[operator]
    except BaseException as exc:
        sys.stderr.write(f"{exc!r}\n")
        os._exit(1)
    os._exit(0)


def main(path: str, times: int) -> None:
    """Kill a number of writers at random moments, and check the file each time."""
    moments = random.Random(1994)  # not a secret
    count = kills = 0
    for left in range(times - 1, -1, -1):
        first = count if left else 0  # check all at the end
        end, pipe = os.pipe()
        writer = fork(write, path, count, pipe)
        os.close(pipe)
        count += len(os.read(end, 1))  # the writer is writing now
        time.sleep(moments.uniform(0, 0.03))
        os.kill(writer, signal.SIGKILL)
        while reported := os.read(end, 65536):
            count += len(reported)
        os.close(end)
        kills += os.waitstatus_to_exitcode(os.waitpid(writer, 0)[1]) == -signal.SIGKILL
        checker = fork(check, path, first, count)
        if os.waitpid(checker, 0)[1]:
            sys.exit(f"after {kills} kills, {count} snapshots should be there")
    print(kills, count)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
