"""Entries: snapshots of one origin as bytes, the same in every store.

One line of JSON, after its length and checksum, then the bodies as they came. Nothing in an entry is ever
run, as a pickle would be. Whatever is not exactly what `encode` wrote is refused: half an entry must not
pass for a shorter robots.txt.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from scrapy_norobots.snapshot import Snapshot
from scrapy_norobots.standard import Origin

# The format's name and version: what another version has written is read by that version only.
_MAGIC = b"norobots 1 "
_DIGEST_SIZE = 16


def encode(snapshots: Sequence[Snapshot]) -> bytes:
    """Return the bytes of the snapshots of one origin."""
    head = {
        "origin": list(snapshots[0].origin),
        "snapshots": [
            {
                "url": snapshot.url,
                "time": snapshot.time,
                "status": snapshot.status,
                "error": snapshot.error,
                "headers": dict(snapshot.headers),
                "failures": snapshot.failures,
                "size": len(snapshot.body),
            }
            for snapshot in snapshots
        ],
    }
    bodies = (snapshot.body for snapshot in snapshots)
    content = b"".join((json.dumps(head, separators=(",", ":"), allow_nan=False).encode(), b"\n", *bodies))
    return _MAGIC + _digest(content) + b"\n" + content


def decode(entry: bytes, origin: Origin) -> tuple[Snapshot, ...]:
    """Return the snapshots of an origin's entry; none if it is anything but what `encode` wrote for it."""
    seal, _, content = entry.partition(b"\n")
    if seal != _MAGIC + _digest(content):
        return ()
    line, _, bodies = content.partition(b"\n")
    found = []
    try:
        head = json.loads(line)
        if head["origin"] != list(origin):
            return ()
        for facts in head["snapshots"]:
            size = facts.pop("size")
            found.append(_snapshot(origin, facts, bodies[:size]))
            bodies = bodies[size:]
        # Sealed as ours are, but by somebody else: it must say no more, and no less, than ours do.
        return tuple(found) if found and encode(found) == entry else ()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return ()


def origin_of(key: str) -> Origin | None:
    """Return the origin whose text a key is; None for a key that somebody else has put into the store."""
    try:
        origin = Origin.of(f"{key}/")
    except ValueError:
        return None
    return origin if str(origin) == key else None


# The types of the facts of a snapshot, in JSON.
_TYPES: dict[str, tuple[type, ...]] = {
    "url": (str,),
    "time": (float,),
    "status": (int, type(None)),
    "error": (str,),
    "headers": (dict,),
    "failures": (int,),
}


def _snapshot(origin: Origin, facts: dict[str, Any], body: bytes) -> Snapshot:
    """Return a snapshot of its facts; raises `TypeError` or `KeyError` if they are not what it has."""
    texts = facts["headers"].values()
    if not all(type(facts[name]) in kinds for name, kinds in _TYPES.items()) or facts["failures"] < 0:
        raise TypeError("a fact is of a wrong type")
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a header is no text")
    return Snapshot(origin=origin, body=body, **facts)


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=_DIGEST_SIZE).hexdigest().encode()
