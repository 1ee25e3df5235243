"""The pages of the library: generated from a number of books, the same every time.

A ``Library`` maps each place (see ``judge.place``) to its ``Page``; the HTML is rendered on
request.  Every book links to one place that is off limits, in one of several spellings.  All
these links are different, so the number of dropped requests is known in advance.
"""

from __future__ import annotations

from calendar import month_name
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from example_site.judge import off_limits, place

if TYPE_CHECKING:
    from collections.abc import Iterator

SHELF_SIZE = 12
ROOT = "{root}"  # placeholder for the address of the site in absolute links

ADJECTIVES = [
    "Quiet", "Crooked", "Borrowed", "Winter", "Unlit", "Second", "Paper", "Salt",
    "Distant", "Brass", "Patient", "Northern", "Hollow", "Early", "Painted", "Last",
]  # fmt: skip
NOUNS = [
    "Orchard", "Ferry", "Almanac", "Lighthouse", "Clockmaker", "Hedgerow", "Ledger", "Weir",
    "Parish", "Kiln", "Station", "Beekeeper", "Atlas", "Lantern", "Mill",
]  # fmt: skip
FIRST_NAMES = ["Ada", "Bertil", "Cosima", "Dunstan", "Edith", "Fergus", "Greta", "Hollis"]
LAST_NAMES = ["Marlow", "Tansley", "Quill"]
AUTHORS = len(FIRST_NAMES) * len(LAST_NAMES)
MONTHS = list(month_name)[1:]

# Links to places that are off limits, in spellings that occur in real HTML.
DOORS = (
    ("Lend this copy", "/staff/loans/{n}.html"),
    ("Reserve it", "/account/reserve?book={n}"),
    ("The clerk's card", "/~clerk/cards/{n}.html"),
    ("See it in the reading room", "/reading%20room/desk/{n}.html"),
    ("Lend this copy", "/st%61ff/loans/{n}.html"),
    ("More like this", "/search?like={n}"),
    ("The clerk's card", "/%7Eclerk/cards/{n}.html"),
    ("Lend this copy", ROOT + "/catalogue/../staff/loans/{n}.html"),
    ("See it in the reading room", "/reading room/desk/{n}.html"),
    ("Fines paid on it", "/accounts/fines/{n}.html"),
    ("The clerk's card", "/%7eclerk/cards/{n}.html"),
    ("Lend this copy", "/catalogue/%2e%2e/staff/loans/{n}.html"),
)

NAVIGATION = (
    ("Home", "/"),
    ("Catalogue", "/catalogue/"),
    ("Authors", "/authors/"),
    ("Events", "/events/"),
    ("Opening hours", "/opening-hours.txt"),
    ("Floor plan", "/plan"),
    ("Work with us", "/staffing.html"),
    ("Ask a librarian", "/librarian"),
)

# One transparent pixel.
PIXEL = (
    b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00"
    b",\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
)


@dataclass(frozen=True)
class Page:
    """A page. Links are pairs of a text and an ``href``.

    ``data`` and ``type`` are for pages that are not HTML; ``moved_to`` makes it a redirect.
    """

    title: str
    prose: str = ""
    links: tuple[tuple[str, str], ...] = ()
    data: bytes = b""
    type: str = "text/html; charset=utf-8"
    moved_to: str = ""

    def render(self, root: str) -> bytes:
        """Return the body of the page on a site at ``root`` (no slash at its end)."""
        if self.data or self.moved_to:
            return self.data
        return f"""<!doctype html>
<html lang="en">
<title>{escape(self.title)} - Millbrook Town Library</title>
<nav>{_anchors(NAVIGATION, root)}</nav>
<h1>{escape(self.title)}</h1>
<p>{escape(self.prose)}</p>
<p>{_anchors(self.links, root)}</p>
</html>
""".encode()


def _anchors(links: tuple[tuple[str, str], ...], root: str) -> str:
    return "\n".join(
        f'<a href="{escape(href.replace(ROOT, root))}">{escape(text)}</a>' for text, href in links
    )


class Library:
    """All pages of a library with a number of ``books``."""

    def __init__(self, books: int = 240) -> None:
        self.books = books
        self.pages: dict[str, Page] = {}
        for pages in (self._front, self._catalogue, self._authors, self._events, self._back):
            self.pages.update(pages())

    def open_pages(self) -> set[str]:
        """Return the places of the pages that robots may fetch."""
        return {path for path, page in self.pages.items() if not page.moved_to and off_limits(path) is None}

    def doors(self) -> set[str]:
        """Return every link (and redirect) of the open pages that leads off limits."""
        leads = (page for path, page in self.pages.items() if off_limits(path) is None)
        targets = {
            href.replace(ROOT, "")
            for page in leads
            for href in (page.moved_to, *(href for _, href in page.links))
        }
        return {target for target in targets if off_limits(target)}

    def _front(self) -> Iterator[tuple[str, Page]]:
        yield "/", Page("Welcome", f"Millbrook's library lends {self.books} books to all comers.")
        hours = b"Monday to Friday, 10 to 18\nSaturday, 10 to 13\n"
        yield "/opening-hours.txt", Page("Hours", data=hours, type="text/plain; charset=utf-8")
        yield "/plan", Page("Floor plan", data=PIXEL, type="image/gif")
        yield "/staffing.html", Page("Work with us", "We look for a Saturday librarian.")
        yield "/librarian", Page("Moved", moved_to="/staff/librarian.html")

    def _catalogue(self) -> Iterator[tuple[str, Page]]:
        shelves = range(-(-self.books // SHELF_SIZE))
        links = tuple((f"Shelf {shelf}", f"{shelf}/") for shelf in shelves)
        yield "/catalogue/", Page("Catalogue", f"The books stand on {len(shelves)} shelves.", links)
        for shelf in shelves:
            books = range(shelf * SHELF_SIZE, min((shelf + 1) * SHELF_SIZE, self.books))
            links = tuple((_title(n), f"{n}.html") for n in books)
            prose = f"{len(books)} books, in the order in which they were given to us."
            yield f"/catalogue/{shelf}/", Page(f"Shelf {shelf}", prose, links)
            for n in books:
                yield f"/catalogue/{shelf}/{n}.html", self._book(n)

    def _book(self, n: int) -> Page:
        text, door = DOORS[n % len(DOORS)]
        author = n % AUTHORS
        links = ((_author(author), f"/authors/{author}.html"), (text, door.format(n=n, root=ROOT)))
        prose = (
            f"Written by {_author(author)} and printed in {1850 + n * 7 % 150}. "
            f"{40 + n * 37 % 500} pages; lent out {n * 13 % 41} times."
        )
        return Page(_title(n), prose, links)

    def _authors(self) -> Iterator[tuple[str, Page]]:
        everyone = range(AUTHORS)
        links = tuple((_author(author), f"{author}.html") for author in everyone)
        yield "/authors/", Page("Authors", "Every one of them has read here.", links)
        for author in everyone:
            own = range(author, self.books, AUTHORS)
            links = tuple((_title(n), f"../catalogue/{n // SHELF_SIZE}/{n}.html") for n in own)
            prose = f"Born in {MONTHS[author % 12]}; we keep {len(own)} of the books."
            yield f"/authors/{author}.html", Page(_author(author), prose, links)

    def _events(self) -> Iterator[tuple[str, Page]]:
        links = tuple((month, f"{month.lower()}.html") for month in MONTHS)
        yield "/events/", Page("Events", "Something every month.", links)
        for day, month in enumerate(MONTHS, start=3):
            prose = f"On {day} {month}, {_author(day)} reads from {_title(day)}."
            yield f"/events/{month.lower()}.html", Page(f"Events in {month}", prose)

    def _back(self) -> Iterator[tuple[str, Page]]:
        """Make the pages that are off limits, so that a robot that requests them gets a response."""
        spots = {place(DOORS[n % len(DOORS)][1].format(n=n, root="")) for n in range(self.books)}
        for spot in sorted(spots | {"/staff/librarian.html"}):
            yield spot, Page("Off limits", "No robots past this point, please.")


def _author(number: int) -> str:
    return f"{FIRST_NAMES[number % len(FIRST_NAMES)]} {LAST_NAMES[number % len(LAST_NAMES)]}"


def _title(number: int) -> str:
    return f"The {ADJECTIVES[number % len(ADJECTIVES)]} {NOUNS[number % len(NOUNS)]}"
