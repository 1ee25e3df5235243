"""Entries: the snapshots of one origin as bytes, in the same format for every store.

An entry has the name of its format, then compressed, with a checksum: a line of JSON, and the bodies.
`decode` refuses everything that `encode` would not have written in exactly this form, so that half an entry
cannot look like a shorter robots.txt. Both functions take up to four times the memory of the bodies.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence

from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Origin

# Name and version of the format. Entries of other versions are misses.
_MAGIC = b"norobots 2 "

# What most entries have in common; the end is what most have. To change it is to change the format.
_DICTIONARY = (
    b'"x-robots-tag":"noindex","retry-after":"120","error":"TimeoutError: DNSLookupError: ","failures":1,'
    b'"expires":"Thu, 01 Jan 1970 Fri, Sat, Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec 2025",'
    b"Sitemap: https://www./sitemap_index.xml\nCrawl-delay: 10\nUser-Agent: GPTBot\nDisallow: /\n"
    b"Allow: /wp-admin/admin-ajax.php\nDisallow: /search\nDisallow: /*?Disallow: /wp-admin/\n"
    b'{"origin":["http","example.com",80],"snapshots":[{"url":"http://","status":404,'
    b'{"origin":["https","www.",443],"snapshots":[{"url":"https://www./robots.txt","time":17,"status":200,'
    b'"error":"","headers":{"age":"0","cache-control":"public, max-age=3600","content-type":'
    b'"text/html; charset=utf-8"text/plain; charset=utf-8","date":"Mon, Tue, Wed, 01 Jan 2026 00:00:00 GMT",'
    b'"etag":"\\"W/\\"","last-modified":"},"failures":0,"size":0}]}\nUser-agent: *\nDisallow:'
)

# The fields of a snapshot that an entry has, and their JSON types.
_TYPES: dict[str, tuple[type, ...]] = {
    "url": (str,),
    "time": (float,),
    "status": (int, type(None)),
    "error": (str,),
    "headers": (dict,),
    "failures": (int,),
}

# What an entry may have beside the largest body: headers, and the snapshot of a failure, in bytes.
_MOST_HEAD = 1024 * 1024


def encode(snapshots: Sequence[Snapshot]) -> bytes:
    """Return the entry for the snapshots of one origin, at least one."""
    # Level 6 would save 4 % more, in half as much time again.
    compressor = zlib.compressobj(4, zdict=_DICTIONARY)
    return _MAGIC + compressor.compress(_content(snapshots)) + compressor.flush()


def _content(snapshots: Sequence[Snapshot]) -> bytes:
    head = {
        "origin": list(snapshots[0].origin),
        "snapshots": [
            {**{name: getattr(snapshot, name) for name in _TYPES}, "size": len(snapshot.body)}
            for snapshot in snapshots
        ],
    }
    bodies = (snapshot.body for snapshot in snapshots)
    return b"".join((json.dumps(head, separators=(",", ":"), allow_nan=False).encode(), b"\n", *bodies))


def decode(entry: bytes, origin: Origin, maxsize: int) -> tuple[Snapshot, ...]:
    """Return the snapshots in an entry of `origin`; empty if `encode` cannot have written it.

    `maxsize` is the size of the largest robots.txt, in bytes; larger entries are not decompressed.
    """
    if not entry.startswith(_MAGIC):
        return ()
    try:
        decompressor = zlib.decompressobj(zdict=_DICTIONARY)
        content = decompressor.decompress(entry[len(_MAGIC) :], maxsize + _MOST_HEAD)
        if not decompressor.eof or decompressor.unused_data:
            return ()
        line, _, bodies = content.partition(b"\n")
        found = []
        for facts in json.loads(line)["snapshots"]:
            size = facts.pop("size")
            if (
                not all(type(facts[name]) in kinds for name, kinds in _TYPES.items())
                or not all(isinstance(text, str) for text in facts["headers"].values())
                or facts["failures"] < 0
                or size > maxsize
                or Origin.of(facts["url"]) is None
            ):
                return ()
            found.append(Snapshot(origin=origin, body=bodies[:size], **facts))
            bodies = bodies[size:]
        # The checksum is right, but any program can compute it: accept only what `encode` would write.
        return tuple(found) if found and _content(found) == content else ()
    except (zlib.error, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return ()


def origin_of(key: str) -> Origin | None:
    """Return the origin whose text is `key`; None if there is none, because another program wrote the key."""
    try:
        origin = Origin.of(f"{key}/")
    except ValueError:
        return None
    return origin if str(origin) == key else None
