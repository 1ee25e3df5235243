"""Features of the plugin to switch on together in the crawl of a random world, and worlds that show them.

`FEATURES` is the table: each feature has the settings that switch it on, one choice or several. What a
setting means for a crawl is known to `tests.helpers.judges.judge` and to `invariant`. `combination` selects
some of the features by a seed.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from twisted.internet.defer import Deferred

from scrapy_norobots.load.fetch import ROBOTS_DOWNLOAD
from scrapy_norobots.scrapy_api import compat
from tests.helpers.judges.judge import REFUSAL, fingerprint
from tests.helpers.running.crawling import BY_HAND
from tests.helpers.running.redisserver import NoRedisError, RedisServer
from tests.helpers.spiders.pages import Pages
from tests.helpers.worlds.world import File, Manner, Page, World

if TYPE_CHECKING:
    from typing_extensions import Self

PROTEGO, PYTHON = "scrapy.robotstxt.ProtegoRobotParser", "scrapy.robotstxt.PythonRobotParser"
SCHEDULER = {"SCHEDULER": "scrapy_norobots.RobotsScheduler"}
ALL_BY_HAND = {
    **BY_HAND,
    "ADDONS": {},
    "SPIDER_MIDDLEWARES": {"scrapy_norobots.RobotsMetaMiddleware": 100},
}
# Longer than in other worlds: requests may wait for a delay meanwhile, or a second crawl must begin while the
# files in the store are fresh.
SLOWER = {"NOROBOTS_TTL": 1.5}

# {folder} is an empty folder, {redis} the URL of an empty server, {dying redis} that of one that is killed
# during the crawl, and perhaps started again.
FEATURES: dict[str, list[dict[str, Any]]] = {
    "retries": [{"NOROBOTS_RETRY_CLOSED": times} for times in (1, 2, 3)],
    "Crawl-delay": [{"NOROBOTS_CRAWL_DELAY_MAX": 0.1, **SLOWER}],
    "evidence": [{"NOROBOTS_EVIDENCE": "{folder}/evidence"}],
    "second reading": [
        {"NOROBOTS_ALSO_OBEY": parsers}
        for parsers in (["rfc9309"], ["rfc9309"], [PROTEGO], [PYTHON], [PYTHON, "rfc9309"])
    ],
    "store": [
        {"NOROBOTS_STORE": value, **SLOWER} for value in ("sqlite:///{folder}/robots.sqlite", "{redis}")
    ],
    "META tags": [{"NOROBOTS_META": True}],
    "other robots": [{"NOROBOTS_ALSO_ROBOTS": names} for names in (["indri"], ["golden", "Potto/9"])],
    "purposes": [{"NOROBOTS_PURPOSES": ["ai-train"]}, {"NOROBOTS_PURPOSES": ["search"]}],
    "several values": [{"NOROBOTS_MULTIVALUE": True}],
    "by hand": [
        ALL_BY_HAND,
        {**ALL_BY_HAND, **SCHEDULER},
        {**ALL_BY_HAND, **SCHEDULER, "DOWNLOADER": "scrapy_norobots.RobotsDownloader"},
    ],
    "early drop": [{}],  # of requests without errback
    "proxies": [{"RETRY_TIMES": 0}],
    "downloads": [{"ITEM_PIPELINES": {"tests.helpers.worlds.features.DownloadsPages": 1}}],
    "HTTP cache": [{"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": "{folder}/cache"}],
    "one slot": [{}],
    "pause": [{}],
    "resume": [{"JOBDIR": "{folder}/job", **SLOWER}],
    "shared delay": [
        {"NOROBOTS_STORE": "{redis}", "NOROBOTS_CRAWL_DELAY_SHARED": True, "NOROBOTS_CRAWL_DELAY_MAX": 0.1}
    ],
    "Redis dies": [{"NOROBOTS_STORE": "{dying redis}", **SLOWER}],
}
# The features that change what the spider does are selected less often, and those that need Redis too.
RARE = (
    *("proxies", "downloads", "HTTP cache", "one slot", "pause", "resume"),
    *("shared delay", "Redis dies"),
)


@dataclass(frozen=True)
class Combination:
    """The names of features, and their job for `invariant.run`."""

    names: list[str]
    job: dict[str, Any]


@contextmanager
def combination(seed: int, mode: str, folder: Path, *names: str) -> Iterator[Combination]:
    """Select the features of a seed, or the named ones; files go to `folder`, which exists.

    Where Redis cannot be used, SQLite replaces it.
    """
    some = Random(f"features {seed}")
    chosen = list(names) or [name for name in FEATURES if some.random() < (0.3 if name in RARE else 0.5)]
    if {"HTTP cache", "resume"} & set(chosen) and "Redis dies" in chosen:
        chosen.remove("Redis dies")  # the second crawl may or may not find the files of the first
    settings: dict[str, Any] = {}
    for name in chosen:
        settings |= some.choice(FEATURES[name])
    with ExitStack() as stack:
        text = json.dumps(settings).replace("{folder}", str(folder))
        is_dying = "{dying redis}" in text
        if "redis}" in text:
            url = f"sqlite:///{folder}/robots.sqlite"
            if mode != "select":  # Redis needs asyncio
                with suppress(NoRedisError):
                    server = stack.enter_context(RedisServer(folder))
                    url = server.url
                    if is_dying:
                        stack.enter_context(_dying(server, some))
            text = text.replace("{redis}", url).replace("{dying redis}", url)
        promised = json.loads(text)
        if not str(promised.get("NOROBOTS_STORE")).startswith("redis:"):
            promised.pop("NOROBOTS_CRAWL_DELAY_SHARED", None)  # it needs Redis
        # What a server that dies has kept is not promised to the next crawl.
        unsure = {name: promised.pop(name) for name in ("NOROBOTS_STORE",) if is_dying}
        yield Combination(
            chosen,
            {
                "promised": promised,
                "settings": unsure,
                "change": partial(_with_features, some, chosen),
                "spider": "tests.helpers.worlds.features.Items",
                "arguments": {"errbacks": "early drop" not in chosen},
            },
        )


@contextmanager
def _dying(server: RedisServer, some: Random) -> Iterator[None]:
    """Kill a server after a moment; in half of the cases, start it again."""
    killed = threading.Timer(some.uniform(0.3, 1.5), server.stop)
    restarted = threading.Timer(some.uniform(2, 4), server.start)
    timers = [killed, restarted] if some.random() < 0.5 else [killed]
    for timer in timers:
        timer.start()
    try:
        yield
    finally:
        for timer in timers:
            timer.cancel()
            timer.join()


def _with_features(some: Random, names: list[str], world: World) -> World:
    """Return a world with lines and tags for all features, also for those that a crawl does not have.

    `names` are the features of the crawl. The manner of the spider and the proxies depend on them.
    """
    bodies: dict[bytes, bytes] = {}

    def changed(origin: str, file: File) -> File:
        if file.body not in bodies:
            bodies[file.body] = _with_lines(some, file.body)
        # The proxies are for http only, and a redirect keeps the proxy of the request.
        moved = "" if "proxies" in names and origin.startswith("http:") else file.moved
        return replace(file, body=bodies[file.body], moved=moved)

    pages = {key: _with_tags(some, world.robot, page) for key, page in world.pages.items()}
    if {"proxies", "downloads", "HTTP cache"} & set(names):
        # A redirected request keeps its proxy and what downloads it; and of a redirect that is in the cache,
        # neither the spider nor the servers see anything.
        pages = {key: replace(page, redirect=False) for key, page in pages.items()}
    return replace(
        world,
        files={origin: [changed(origin, file) for file in plan] for origin, plan in world.files.items()},
        pages=pages,
        manner=Manner(
            has_one_slot="one slot" in names,
            downloads="downloads" in names,
            pause=some.randint(2, 8) if "pause" in names else 0,
            close=some.randint(2, 12) if "resume" in names else 0,
        ),
        proxies=(None, some.choice([0, 3, 8])) if "proxies" in names else (),
    )


# Some lines for each feature. A statement after a blank line applies to every robot.
_DELAYS = ("Crawl-delay: 0.1", "Crawl-delay: 0.1", "Crawl-delay: 7", "crawl-delay:0.05", "Crawl-delay: soon")
_RULES = (
    *("Allow: /a", "Allow: /b/~tam", "Disallow: /*b", "Disallow: /*~tam/x.html$", "Disallow: /c*/a"),
    *("Disallow: /a/b /b?a /c-d_e", "Disallow: /A, /%7Etam;"),
    *("User-agent: indri * potto", "User-agent: a\tTamarin;"),
)


def _with_lines(some: Random, body: bytes) -> bytes:
    """Put lines before some of the rules of a file, and a statement about use at the end of some files."""
    end = re.search(rb"\r\n?|\n", body)

    def with_lines(rule: re.Match[bytes]) -> bytes:
        added = [some.choice(kind) for kind in (_RULES, _DELAYS) if some.random() < 0.4]
        return b"".join(line.encode() + end[0] for line in added if end) + rule[0]

    body = re.sub(rb"\bDisallow:", with_lines, body)
    is_plain = b"\0" not in body and b"<" not in body
    return body + b"\n\n" + REFUSAL if is_plain and some.random() < 0.2 else body


def _with_tags(some: Random, robot: str, page: Page) -> Page:
    """Forbid robots to index some pages, and to follow the links of some."""
    if page.redirect:
        return page
    follow, index = some.random() > 0.2, some.random() > 0.3
    words = [word for word, is_allowed in (("nofollow", follow), ("noindex", index)) if not is_allowed]
    content = "none" if len(words) == 2 and some.random() < 0.5 else ", ".join(words)
    if some.random() < 0.3:
        return replace(page, follow=follow, index=index, header=content.upper())
    tag = f'<meta name="{some.choice(["robots", "ROBOTS"])}" content="{content}">' if content else ""
    return replace(page, follow=follow, index=index, tag=f'<meta name="indri" content="none">{tag}')


class Items(Pages):
    """Yields an item for each page, and notes the items that pass; if not `errbacks`, links have none.

    `manner` has the fields of a `Manner`, by which it crawls.
    """

    listens: ClassVar = {
        "scraped": signals.item_scraped,
        "reached": signals.request_reached_downloader,
        "ended": signals.spider_closed,
    }

    def __init__(
        self,
        requests: list[str | dict[str, Any]],
        errbacks: bool = True,
        manner: Mapping[str, Any] = MappingProxyType({}),
        **kwargs: Any,
    ) -> None:
        super().__init__(requests, **kwargs)
        self._errbacks = errbacks
        self._manner = Manner(**manner)
        self._downloaded: set[str] = set()  # fingerprints
        self._is_paused = False
        self._closing: Deferred[None] | None = None
        self._noting: Deferred[None] | None = None

    def scraped(self, item: dict[str, Any]) -> None:
        self.notes.setdefault("items", []).append(item["url"])

    def reached(self, request: Request) -> None:
        if self._is_paused and ROBOTS_DOWNLOAD not in request.meta and _DIRECT not in request.meta:
            self.notes["pause"]["sent"].append(request.url)

    def ended(self) -> None:
        self.notes["end"] = time.monotonic()

    def first_requests(self) -> Iterator[Request]:
        for request in super().first_requests():
            if self._manner.way(request.url) == "scheduler":
                yield request

    def request(self, url: str, **kwargs: Any) -> Request:
        request = super().request(url, meta=self._manner.meta(url), **kwargs)
        return request.replace(callback=self.parse_and_download) if self._manner.downloads else request

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        self._note(response)
        requests = list(super().parse(response, **kwargs))
        self._pause_or_close()
        links = [request.url for request in requests if self._manner.way(request.url) == "pipeline"]
        yield {"url": response.url, "links": links}
        for request in requests:
            if self._manner.way(request.url) != "pipeline":
                yield request if self._errbacks or "proxy" in request.meta else request.replace(errback=None)

    async def parse_and_download(self, response: Response, **kwargs: Any) -> AsyncIterator[Any]:
        """Download some of the links instead of yielding their requests."""
        meta = response.meta.get("robots_meta")
        for result in self.parse(response, **kwargs):
            if isinstance(result, Request) and self._manner.way(result.url) == "callback":
                if meta is None or meta.follow:
                    await self.download(result.url)
            else:
                yield result

    async def download(self, url: str) -> None:
        """Download a URL once. A failure loses it."""
        name = fingerprint(url)
        if name in self._downloaded:
            return
        self._downloaded.add(name)
        request = Request(url, meta={**self._manner.meta(url), _DIRECT: True})
        try:
            self._note(await compat.download(self.crawler, request))
        except Exception as exc:  # any failure of the download, or a closed engine
            self.logger.info("%s was not downloaded: %r", url, exc)

    def _note(self, response: Response) -> None:
        if "cached" in response.flags:
            # The response in the cache may have another spelling of the URL, or another order of its query.
            url = response.request.url if response.request else response.url
            self.notes.setdefault("cached", []).append([time.monotonic(), url, response.url])

    def _pause_or_close(self) -> None:
        """Pause or close the crawl if it has as many pages as the manner says."""
        active = compat.downloader(self.crawler).active
        if len(self.pages) == self._manner.pause:
            self._is_paused = True
            self.notes["pause"] = {"sent": [], "under way": len(active)}
            self.engine.pause()
            compat.call_later(_PAUSE, self._go_on)
        if len(self.pages) == self._manner.close:
            self._closing = compat.close_spider(self.crawler, "enough")
            self._noting = compat.spawn(self._note_close())

    async def _note_close(self) -> None:
        """Note what is under way when the crawl begins to close, which may be some iterations later."""
        while not compat.is_closing(self.crawler):
            await compat.sleep(0)
        active = compat.downloader(self.crawler).active
        self.notes["close"] = {
            "under way": [request.url for request in active],
            "files": [request.meta[ROBOTS_DOWNLOAD] for request in active if ROBOTS_DOWNLOAD in request.meta],
            "time": time.monotonic(),
        }

    def _go_on(self) -> None:
        self._is_paused = False
        self.engine.unpause()


# The meta key of a request that the spider downloads itself, and how long it pauses the crawl, in seconds.
_DIRECT = "direct"
_PAUSE = 0.6


class DownloadsPages:
    """An item pipeline that downloads the links of each item, like those for files."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_item(self, item: Any, spider: Spider | None = None) -> Any:
        assert isinstance(self._crawler.spider, Items)
        for link in item["links"]:
            await self._crawler.spider.download(link)
        return item
