"""Features of the plugin to switch on together in the crawl of a random world, and worlds that show them.

`FEATURES` is the table: each feature has the settings that switch it on, one choice or several. What a
setting means for a crawl is known to `tests.judge` and `tests.invariant`. `combination` selects some of the
features by a seed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.http import Response

from tests.redisserver import NoRedisError, RedisServer
from tests.spiders import Pages
from tests.worlds import File, Page, World

if TYPE_CHECKING:
    from typing_extensions import Self

PROTEGO, PYTHON = "scrapy.robotstxt.ProtegoRobotParser", "scrapy.robotstxt.PythonRobotParser"
BY_HAND = {
    "ADDONS": {},
    "ROBOTSTXT_OBEY": True,
    "DOWNLOADER_MIDDLEWARES": {
        "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
        "scrapy_norobots.NoRobotsMiddleware": 100,
    },
    "SPIDER_MIDDLEWARES": {"scrapy_norobots.RobotsMetaMiddleware": 100},
}
# Longer than in other worlds: requests may wait for a delay meanwhile, or a second crawl must begin while the
# files in the store are fresh.
SLOWER = {"NOROBOTS_TTL": 1.5}

# {folder} is an empty folder, {redis} the URL of an empty server.
FEATURES: dict[str, list[dict[str, Any]]] = {
    "retries": [{"NOROBOTS_RETRY_CLOSED": times} for times in (1, 2, 3)],
    "Crawl-delay": [{"NOROBOTS_CRAWL_DELAY_MAX": 0.1, **SLOWER}],
    "evidence": [{"NOROBOTS_EVIDENCE": "{folder}/evidence"}],
    "second reading": [
        {"NOROBOTS_ALSO_OBEY": parsers} for parsers in ([PROTEGO], [PROTEGO], [PYTHON], [PYTHON, PROTEGO])
    ],
    "store": [
        {"NOROBOTS_STORE": value, **SLOWER} for value in ("sqlite:///{folder}/robots.sqlite", "{redis}")
    ],
    "META tags": [{"NOROBOTS_META": True}],
    "several values": [{"NOROBOTS_MULTIVALUE": True}],
    "by hand": [BY_HAND, {**BY_HAND, "DOWNLOADER": "scrapy_norobots.RobotsDownloader"}],
    "early drop": [{}],  # of requests without errback
}


@dataclass(frozen=True)
class Combination:
    """The names of features, and their job for `tests.invariant.run`."""

    names: list[str]
    job: dict[str, Any]


@contextmanager
def combination(seed: int, mode: str, folder: Path, *names: str) -> Iterator[Combination]:
    """Select the features of a seed, or the named ones; files go to `folder`, which exists.

    Where Redis cannot be used, SQLite replaces it.
    """
    some = Random(f"features {seed}")
    chosen = list(names) or [name for name in FEATURES if some.random() < 0.5]
    settings: dict[str, Any] = {}
    for name in chosen:
        settings |= some.choice(FEATURES[name])
    with ExitStack() as stack:
        text = json.dumps(settings).replace("{folder}", str(folder))
        if "{redis}" in text:
            url = f"sqlite:///{folder}/robots.sqlite"
            if mode != "select":  # Redis needs asyncio
                with suppress(NoRedisError):
                    url = stack.enter_context(RedisServer(folder)).url
            text = text.replace("{redis}", url)
        yield Combination(
            chosen,
            {
                "promised": json.loads(text),
                "change": partial(_with_features, some),
                "spider": "tests.features.Items",
                "arguments": {"errbacks": "early drop" not in chosen},
            },
        )


def _with_features(some: Random, world: World) -> World:
    """Return a world with lines and tags for all features, also for those that a crawl does not have."""
    bodies: dict[bytes, bytes] = {}

    def changed(file: File) -> File:
        if file.body not in bodies:
            bodies[file.body] = _with_lines(some, file.body)
        return replace(file, body=bodies[file.body])

    return replace(
        world,
        files={origin: [changed(file) for file in plan] for origin, plan in world.files.items()},
        pages={key: _with_tags(some, world.robot, page) for key, page in world.pages.items()},
    )


# Some lines for each feature.
_DELAYS = ("Crawl-delay: 0.1", "Crawl-delay: 0.1", "Crawl-delay: 7", "crawl-delay:0.05", "Crawl-delay: soon")
_RULES = (
    *("Allow: /a", "Allow: /b/~tam", "Disallow: /*b", "Disallow: /*~tam/x.html$", "Disallow: /c*/a"),
    *("Disallow: /a/b /b?a /c-d_e", "Disallow: /A, /%7Etam;"),
    *("User-agent: indri * potto", "User-agent: a\tTamarin;"),
)


def _with_lines(some: Random, body: bytes) -> bytes:
    """Put lines before some of the rules of a file."""
    end = re.search(rb"\r\n?|\n", body)

    def with_lines(rule: re.Match[bytes]) -> bytes:
        added = [some.choice(kind) for kind in (_RULES, _DELAYS) if some.random() < 0.4]
        return b"".join(line.encode() + end[0] for line in added if end) + rule[0]

    return re.sub(rb"\bDisallow:", with_lines, body)


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
    """Yields an item for each page, and notes the items that pass; if not `errbacks`, links have none."""

    def __init__(self, requests: list[str | dict[str, Any]], errbacks: bool = True, **kwargs: Any) -> None:
        super().__init__(requests, **kwargs)
        self._errbacks = errbacks

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.scraped, signal=signals.item_scraped)
        return spider

    def scraped(self, item: dict[str, str]) -> None:
        self.notes.setdefault("items", []).append(item["url"])

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        yield {"url": response.url}
        for request in super().parse(response, **kwargs):
            yield request if self._errbacks else request.replace(errback=None)
