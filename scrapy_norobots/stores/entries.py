"""Entries: the snapshots of one origin as bytes, in the same format for every store.

An entry has a line with format and checksum, a line of JSON, and the bodies. It contains no code, unlike a
pickle. `decode` refuses everything that `encode` would not have written in exactly this form, so that half an
entry cannot look like a shorter robots.txt.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Origin

# Name and version of the format. Entries of another version are misses.
_MAGIC = b"norobots 1 "
_DIGEST_SIZE = 16


def encode(snapshots: Sequence[Snapshot]) -> bytes:
    """Return the entry for the snapshots of one origin, at least one."""
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
    """Return the snapshots in an entry of `origin`; empty if `encode` cannot have written it."""
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
        # The checksum is right, but any program can compute it: accept only what `encode` would write.
        return tuple(found) if found and encode(found) == entry else ()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return ()


def origin_of(key: str) -> Origin | None:
    """Return the origin whose text is `key`; None if there is none, because another program wrote the key."""
    try:
        origin = Origin.of(f"{key}/")
    except ValueError:
        return None
    return origin if str(origin) == key else None


# The JSON types of the facts of a snapshot.
_TYPES: dict[str, tuple[type, ...]] = {
    "url": (str,),
    "time": (float,),
    "status": (int, type(None)),
    "error": (str,),
    "headers": (dict,),
    "failures": (int,),
}


def _snapshot(origin: Origin, facts: dict[str, Any], body: bytes) -> Snapshot:
    """Return the snapshot for decoded facts; raises `TypeError`, `KeyError` or `ValueError` if invalid."""
    are_typed = all(type(facts[name]) in kinds for name, kinds in _TYPES.items())
    if not are_typed or not all(isinstance(text, str) for text in facts["headers"].values()):
        raise TypeError("a fact has the wrong type")
    if facts["failures"] < 0 or Origin.of(facts["url"]) is None:
        raise ValueError("the URL is not http or https, or there are fewer than no failures")
    return Snapshot(origin=origin, body=body, **facts)


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=_DIGEST_SIZE).hexdigest().encode()
