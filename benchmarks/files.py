"""robots.txt files for benchmarks: real ones from a directory, or generated ones like them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

# Names of directories.
_NAMES = """
about account admin api archive article assets basket blog cart category cgi-bin checkout comments de
download en feed files forum fr gallery help images includes index item js login mail media modules news
node page print private product profile register review search shop sport static story tag temp test
themes tmp topic user video wiki world wp-admin wp-content
"""
_WORDS = _NAMES.split()
_ROBOTS = ("Googlebot", "Bingbot", "Slurp", "ia_archiver", "AhrefsBot", "MJ12bot", "Mediapartners-Google")
_SEED = 1994


def robots_txts(count: int = 1_000) -> list[bytes]:
    """Return generated files, always the same."""
    some = random.Random(_SEED)
    return [a_file(some) for _ in range(count)]


def sites(folder: Path | None, urls: int) -> Iterator[tuple[bytes, list[str]]]:
    """Yield robots.txt files, each with `urls` URLs.

    A directory has ``robots/HOST`` and, for some hosts, ``links/HOST`` with one URL per line. Missing URLs
    are generated; without a directory, files are generated too.
    """
    made = page_urls(5_000)
    real = _real_sites(folder) if folder else ((body, []) for body in robots_txts())
    for number, (body, links) in enumerate(real):
        start = number * 37 % (len(made) - urls)
        yield body, (links + made[start : start + urls])[:urls]


def _real_sites(folder: Path) -> Iterator[tuple[bytes, list[str]]]:
    for path in sorted((folder / "robots").iterdir()):
        links = folder / "links" / path.name
        yield path.read_bytes(), links.read_text("utf-8", "replace").splitlines() if links.is_file() else []


def a_file(some: random.Random) -> bytes:
    """Return one generated file."""
    # Of 2,142 real files, half are under 0.5 kB, one in ten is over 3.7 kB, one in a hundred over 55 kB.
    wanted = min(some.lognormvariate(6.3, 1.7), 500_000)
    lines: list[str] = []
    length = 0
    while length < wanted:
        for line in _record(some, 20 if wanted < 20_000 else 200):
            lines.append(line)
            length += len(line) + 1
    return some.choice(("\n", "\n", "\n", "\r\n")).join(lines).encode()


def _record(some: random.Random, longest: int) -> Iterator[str]:
    if some.random() < 0.3:
        yield "# " + " ".join(some.choices(_WORDS, k=8))
    yield "User-agent: " + ("*" if some.random() < 0.6 else some.choice(_ROBOTS))
    for _ in range(some.randint(1, longest)):
        kind = some.random()
        field = "Allow" if kind < 0.1 else "Crawl-delay" if kind < 0.12 else "Disallow"
        yield f"{field}: {'10' if field == 'Crawl-delay' else _path(some)}"
    if some.random() < 0.2:
        yield f"Sitemap: http://garden.example/{some.choice(_WORDS)}.xml"
    yield ""


def _path(some: random.Random) -> str:
    path = "/" + "/".join(some.choices(_WORDS, k=some.choice((1, 1, 1, 2, 2, 3))))
    return path + some.choice(("/", "/", "/", "", ".html", "?", "?id=", "/*", "/%C3%A9"))


def page_urls(count: int, seed: int = _SEED) -> list[str]:
    """Return distinct URLs of one host, like those in a crawl.

    Of 51,073 links of real pages, 12 % have a query, 3 % an escape and 20 % a dot.
    """
    some = random.Random(seed)
    urls = []
    for number in range(count):
        path = "/".join(some.choices(_WORDS, k=some.choice((1, 2, 2, 3, 3, 4))))
        if number % 33 == 0:
            path += "/caf%C3%A9"
        end = f"?id={number}&page={number % 7}" if number % 8 == 0 else f"/some-{number}-title"
        if number % 5 == 1:
            end += "&in=list.html" if number % 8 == 0 else ".html"
        urls.append(f"https://www.garden.example/{path}{end}")
    return urls
