"""Random worlds to crawl: hosts of both schemes, linked pages, and robots.txt files that change and fail.

`random_world` makes a world from a seed; `Played` serves it on this machine and logs all requests. The n-th
request for an origin's robots.txt gets the n-th file of its plan, so that a world changes with the crawl and
not with a clock; the last file is repeated. Links and rules have many spellings of the same few paths.
"""

from __future__ import annotations

import html
import http.client
import re
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from tests.helpers.judges import oracle
from tests.helpers.sites import ForwardProxy
from tests.helpers.sites.site import Answer, Hit, Site
from tests.helpers.worlds import nasty

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on

ROBOTS = (
    "Tamarin/1.2 (+http://tamarin.example/bot)",
    "Mozilla/5.0 (compatible; GoldenTamarin/2.0; x)",
    "Potto",
)
NAMES = ("*", "*", "tamarin", "golden", "Potto/9", "indri")
TARGETS = nasty._cut("/ /?a=1 /a /a/ /a/b /a/b/c /A /b /b/ /b/~tam /b/~tam/x.html /c-d_e /c-d_e/a /a%2Fb")
TARGETS += nasty._cut("/%C3%A9t%C3%A9 /%C3%A9t%C3%A9/b /a?a=1&b=2 /a?b=2&a=1 /b?q=%C3%A9 /a/.htaccess")
TARGETS += ["/x/robots.txt", "/robots.txt.bak"]
HOSTS = ("127.7.0.1", "127.7.0.2", "127.7.0.3", "localhost")


@dataclass(frozen=True)
class File:
    """A response for a robots.txt: a status with a body; without status, nothing or half of the body.

    With `moved`, an origin, the first response is a redirect to a file there, which gets this response.
    """

    status: int | None = 200
    body: bytes = b""
    silent: bool = False
    moved: str = ""

    @property
    def etag(self) -> str:
        return f'"{blake2b(self.body, digest_size=6).hexdigest()}"'


@dataclass(frozen=True)
class Page:
    """A page with links, or a redirect to another page.

    Its META `tag` or its `header` says whether robots may `follow` the links and `index` the page.
    """

    links: list[str]
    redirect: bool = False
    follow: bool = True
    index: bool = True
    tag: str = ""
    header: str = ""


@dataclass(frozen=True)
class Manner:
    """How a spider crawls a world.

    - `proxies` are URLs of proxies. Of the requests to http URLs, each of them gets its share.
    - `has_one_slot` is true if all origins share one download slot.
    - `downloads` is true if callbacks and a pipeline download some pages themselves, see `way`.
    - `pause` and `close` are the numbers of pages after which the spider pauses and closes the crawl; 0: it
      does not.
    """

    proxies: list[str] = field(default_factory=list)
    has_one_slot: bool = False
    downloads: bool = False
    pause: int = 0
    close: int = 0

    def meta(self, url: str) -> dict[str, Any]:
        """Return the meta of a request."""
        meta: dict[str, Any] = {}
        if self.has_one_slot:
            meta["download_slot"] = "one"
        if self.proxies and urlsplit(url).scheme == "http":
            proxy = Random(f"proxy {_place(url)}").choice(["", *self.proxies])
            meta |= {"proxy": proxy} if proxy else {}
        return meta

    def way(self, url: str) -> str:
        """Return what downloads a page that a link leads to: ``scheduler``, ``callback`` or ``pipeline``."""
        if not self.downloads:
            return "scheduler"
        return Random(f"way {_place(url)}").choice(["scheduler"] * 3 + ["callback", "pipeline"])


def _place(url: str) -> str:
    """Return what all spellings of a URL have in common, on all ports."""
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    path, _, query = oracle.normal(target, is_rule=False).partition("?")
    return f"{parts.scheme}://{parts.hostname}{path}?{'&'.join(sorted(query.split('&')))}"


@dataclass(frozen=True)
class World:
    """Origins are strings such as ``http://127.7.0.1:80``; pages are keyed by origin and normal form.

    `proxies` says after how many requests each proxy dies; None: it does not.
    """

    robot: str
    at_once: int  # requests to a host
    starts: list[str]
    files: dict[str, list[File]]
    pages: dict[tuple[str, str], Page]
    manner: Manner = field(default_factory=Manner)
    proxies: tuple[int | None, ...] = ()

    def page(self, origin: str, target: str) -> Page:
        """Return the page at a target in any spelling; one without links if no link leads there."""
        return self.pages.get((origin, oracle.normal(target, is_rule=False)), Page([]))


def random_world(seed: int, ports: dict[str, int]) -> World:
    """Return the world of a seed; `ports` are those of the two schemes."""
    some = Random(seed)
    hosts = some.sample(HOSTS, k=some.randint(2, 3))
    origins = [f"{scheme}://{hosts[0]}:{ports[scheme]}" for scheme in ("http", "https")]
    origins += [
        f"{scheme}://{host}:{ports[scheme]}" for host in hosts[1:] for scheme in [some.choice(list(ports))]
    ]
    robot = some.choice(ROBOTS)
    targets = {origin: some.sample(TARGETS, k=12) for origin in origins}

    def link() -> str:
        origin = some.choice(origins)
        return _spell(some, origin, some.choice(targets[origin]))

    pages = {
        (origin, oracle.normal(target, is_rule=False)): Page([link() for _ in range(some.randint(4, 7))])
        for origin in origins
        for target in targets[origin]
    }
    for key in some.sample(sorted(pages), k=len(pages) // 8):
        pages[key] = Page([link()], redirect=True)
    silent = some.choice([*origins, None, None])  # each missing response costs a timeout
    files = {origin: _plan(some, origins, is_silent=origin == silent) for origin in origins}
    starts = [
        _spell(some, origin, target) for origin in origins for target in some.sample(targets[origin], k=4)
    ]
    return World(robot, some.choice((1, 1, 2, 4)), starts, files, pages)


def _plan(some: Random, origins: list[str], *, is_silent: bool) -> list[File]:
    """Return the files of an origin, one for each request; half of the origins are healthy."""
    faults = [
        File(503),
        File(503),
        File(503),
        File(None, _rules(some, origins)),
        File(404),
        File(403, _rules(some, origins)),
    ]
    is_healthy = not is_silent and some.random() < 0.5
    plan: list[File] = []
    for _ in range(some.randint(2, 5)):
        kind = some.random()
        if plan and kind < 0.2:
            plan.append(plan[-1])  # not modified
        elif kind < 0.6 and not is_healthy:
            plan.append(some.choice(faults))
        elif kind < 0.35:
            plan.append(File(404, _rules(some, origins)))
        elif kind > 0.85:
            then = File(200, _rules(some, origins)) if is_healthy else some.choice(faults)
            plan.append(File(then.status, then.body, moved=some.choice(origins)))
        else:
            plan.append(File(200, _rules(some, origins)))
    if is_silent:
        plan.insert(some.randrange(2), File(None, silent=True))
    return plan


def _rules(some: Random, origins: list[str]) -> bytes:
    """Return a robots.txt about the targets, either a simple or a hostile one."""
    values = [_respell(some, target[: some.randint(3, 12)]) for target in some.choices(TARGETS[2:], k=4)]
    values[0] = some.choice(origins) + values[0]
    if some.random() < 0.15:
        return nasty.body(some, list(NAMES), [value for value in values if value[0] == "/"])
    lines = [f"User-agent: {some.choice(NAMES)}", *(f"Disallow: {value}" for value in values[:2]), ""]
    lines += [f"User-agent: {some.choice(NAMES)}", *(f"Disallow: {value}" for value in values[2:])]
    return some.choice(["\n", "\r\n", "\r"]).join(lines).encode()


def _spell(some: Random, origin: str, target: str) -> str:
    """Return a URL of a target, often oddly spelt."""
    scheme, _, host = origin.partition("://")
    if some.random() < 0.2:
        scheme, host = scheme.upper(), host.upper()
    if some.random() < 0.5:
        target = _respell(some, target)
    return f"{scheme}://{host}{target}{some.choice(['', '', '', '#', '#a', '#/a?b'])}"


def _respell(some: Random, target: str) -> str:
    """Return another spelling of a target with the same normal form."""
    path, mark, query = target.partition("?")
    spelt = ""
    for token in re.findall("%..|.", path):
        if token == "/" and some.random() < 0.2:
            spelt += some.choice(["/./", "/x/../", "/%2e/", "/x/%2E%2e/"])
        elif token in oracle.UNRESERVED and some.random() < 0.2:
            spelt += f"%{ord(token):02{some.choice('xX')}}"
        else:
            spelt += token.lower() if len(token) == 3 and some.random() < 0.3 else token
    return spelt + mark + query


# --- servers


class Arrival(NamedTuple):
    """A request to a server: for a page, or for the robots.txt of an origin (`asker`) in one or two hops.

    `time` is between the arrival of the request and its response, in monotonic seconds. `file` is the
    response, with status 304 if nothing has changed; None for a page, and for a redirect to a file elsewhere.
    `links`, `follow` and `is_indexed` are those of the page. `is_lost` is true if a proxy sends no response
    on, `is_cached` if the crawl had the page in its HTTP cache, and no server got the request.
    """

    time: float
    url: str
    origin: str
    asker: str = ""
    file: File | None = None
    links: tuple[str, ...] = ()
    follow: bool = True
    is_indexed: bool = True
    is_lost: bool = False
    is_cached: bool = False


@dataclass
class Played:
    """A context manager: the servers of a world run inside the ``with``; `log` has the requests, in order.

    `change` changes the random world of the seed.
    """

    seed: int
    certificate: tuple[Path, Path]
    change: Callable[[World], World] = lambda world: world
    log: list[Arrival] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._fronts = {
            scheme: _Front(self, scheme, tls) for scheme, tls in (("http", None), ("https", self.certificate))
        }
        ports = {scheme: front.port for scheme, front in self._fronts.items()}
        self.world = self.change(random_world(self.seed, ports))
        self._proxies = [_DyingProxy(self, hits) for hits in self.world.proxies]
        manner = replace(self.world.manner, proxies=[proxy.url for proxy in self._proxies])
        self.world = replace(self.world, manner=manner)
        self._servers = ExitStack()
        self._asked = dict.fromkeys(self.world.files, 0)
        self._moved: dict[str, tuple[str, File]] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()

    def __enter__(self) -> Self:
        for server in (*self._fronts.values(), *self._proxies):
            self._servers.enter_context(server)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._servers.close()

    def answer(self, origin: str, hit: Hit) -> Answer:
        """Log a request and respond to it."""
        with self._lock:
            path, _, query = hit.target.partition("?")
            if path == "/robots.txt":
                return self._robots(origin, hit, query)
            page = self.world.page(origin, hit.target)
            self.log.append(self.arrival_of(origin, hit.target))
        if page.redirect:
            return Answer(status=302, headers={"Location": page.links[0], **_HANG_UP})
        anchors = "".join(f'<a href="{html.escape(link)}">x</a>' for link in page.links)
        headers = {"Content-Type": "text/html", **_HANG_UP}
        if page.header:
            headers["X-Robots-Tag"] = page.header
        return Answer(f"<html><head>{page.tag}</head><body>{anchors}</body></html>", headers=headers)

    def arrival_of(self, origin: str, target: str) -> Arrival:
        """Return the arrival of a request for a page now."""
        page = self.world.page(origin, target)
        return Arrival(
            time.monotonic(),
            origin + target,
            origin,
            links=tuple(page.links),
            follow=page.follow,
            is_indexed=page.index,
        )

    def lose(self, url: str) -> None:
        """Log a request that a dead proxy gets."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc.lower()}"
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        with self._lock:
            if parts.path == "/robots.txt":
                asker = self._moved[parts.query][0] if parts.query else origin
                self.log.append(
                    Arrival(time.monotonic(), origin + target, origin, asker, File(None), is_lost=True)
                )
            else:
                self.log.append(self.arrival_of(origin, target)._replace(is_lost=True))

    def _robots(self, origin: str, hit: Hit, query: str) -> Answer:
        def note(asker: str, file: File | None) -> None:
            # A proxy that gets no whole response sends none on.
            is_lost = "via" in hit.headers and file is not None and file.status is None
            self.log.append(
                Arrival(time.monotonic(), origin + hit.target, origin, asker, file, is_lost=is_lost)
            )

        if query:
            asker, file = self._moved[query]
        else:
            asker, plan = origin, self.world.files[origin]
            file = plan[min(self._asked[origin], len(plan) - 1)]
            self._asked[origin] += 1
            if file.moved:
                token = f"for={len(self._moved)}"
                self._moved[token] = (asker, file)
                note(asker, None)
                where = file.moved.replace("://", "://jo:secret@")
                return Answer(status=302, headers={"Location": f"{where}/robots.txt?{token}", **_HANG_UP})
        if file.status == 200 and hit.headers.get("if-none-match") == file.etag:
            file = replace(file, status=304)
        note(asker, file)
        if file.silent:
            return Answer(before=lambda: self._closing.wait(60))
        headers = {"Content-Type": "text/plain", "ETag": file.etag, **_HANG_UP}
        if file.status is None:
            headers["Content-Length"] = str(2 * len(file.body) + 1)
        return Answer(b"" if file.status == 304 else file.body, file.status or 200, headers)


# Connections are not reused, because clients repeat a request by themselves if a reused one breaks.
_HANG_UP = {"Connection": "close"}


class _Front(Site):
    def __init__(self, played: Played, scheme: str, tls: tuple[Path, Path] | None) -> None:
        super().__init__(host="0.0.0.0", tls=tls)
        self._played = played

    def answer(self, hit: Hit) -> Answer:
        return self._played.answer(self.url_of(hit.host.lower()), hit)


class _DyingProxy(ForwardProxy):
    """A proxy that hangs up on all requests after the first ones."""

    def __init__(self, played: Played, hits: int | None) -> None:
        super().__init__()
        self._played = played
        self._hits_left = hits

    def answer(self, hit: Hit) -> Answer:
        if self._hits_left is not None:
            if self._hits_left <= 0:
                self._played.lose(hit.target)
                raise ConnectionResetError("the proxy is dead")
            self._hits_left -= 1
        try:
            return super().answer(hit)
        except (OSError, http.client.HTTPException):
            raise ConnectionResetError("the site has sent no whole response") from None
