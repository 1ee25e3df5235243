"""Inject bugs into the plugin, for tests that must detect them: `Slipping` crawls with bugs from `SLIPS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from scrapy import Request
from scrapy.exceptions import IgnoreRequest

from scrapy_norobots import question
from scrapy_norobots.features import crawl_delay
from scrapy_norobots.features.early_drops import EarlyDrops
from scrapy_norobots.features.evidence import Evidence
from scrapy_norobots.features.evidence.fields import Answer, Made
from scrapy_norobots.features.metatag import RobotsMetaMiddleware
from scrapy_norobots.features.usage.statements import UsageStatements
from scrapy_norobots.middleware import NoRobotsMiddleware
from scrapy_norobots.rules.access import Access, OriginCache
from scrapy_norobots.rules.parser import AllRules
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Origin, RobotsTxt, records, rules
from scrapy_norobots.standard.urls import split
from scrapy_norobots.stores import Locked
from scrapy_norobots.stores.circuit_breaker import CircuitBreaker
from scrapy_norobots.waiting.sites import Sites
from tests.helpers.worlds.features import Items


def _no_normal_form(_urls: list[str]) -> None:
    rules.normal = lambda target, **_: target  # type: ignore[attr-defined]


def _one_file_for_both_schemes(urls: list[str]) -> None:
    """Apply the http file of a host to https too."""
    plain = {origin.host: origin for url in urls if (origin := Origin.of(url)) and origin.scheme == "http"}

    def split_carelessly(url: str) -> tuple[Origin | None, str | None]:
        origin, target = split(url)
        return (plain.get(origin.host, origin) if origin else None), target

    question.split = split_carelessly  # type: ignore[attr-defined]


def _each_for_itself(_urls: list[str]) -> None:
    OriginCache.get = lambda *_: None  # type: ignore[method-assign]


def _lose_waiting_requests(_urls: list[str]) -> None:
    Sites.is_retried = lambda *_: False  # type: ignore[method-assign]


def _no_crawl_delay(_urls: list[str]) -> None:
    crawl_delay.set_crawl_delay = lambda *_: None  # type: ignore[attr-defined]


def _another_robot_in_the_evidence(_urls: list[str]) -> None:
    put = Evidence._put

    def put_another(evidence: Evidence, record: Answer | Made) -> None:
        if isinstance(record, Made) and record.decision is None:
            record = record._replace(robot="Potto")
        put(evidence, record)

    Evidence._put = put_another  # type: ignore[method-assign,assignment]


def _only_the_first_reading(_urls: list[str]) -> None:
    AllRules.forbids = lambda self, *question: self.readings[0].forbids(*question)  # type: ignore[method-assign]
    RobotsTxt.forbids = (  # type: ignore[method-assign]
        lambda self, origin, target, robot: not self.decisions(f"{origin}{target}", robot)[0]
    )


def _only_the_own_robot(_urls: list[str]) -> None:
    AllRules.forbids = lambda self, *question: any(  # type: ignore[method-assign]
        rules.forbids(*question) for rules in self._asked
    )


def _no_statement(_urls: list[str]) -> None:
    UsageStatements.forbids = lambda self, *question: False  # type: ignore[method-assign]


def _do_not_split(_urls: list[str]) -> None:
    records.to_values = lambda value: [value]  # type: ignore[attr-defined]


def _forget_what_is_stored(_urls: list[str]) -> None:
    async def load(_: CircuitBreaker, __: Origin) -> tuple[Snapshot, ...]:
        return ()

    async def lock(self: CircuitBreaker, origin: Origin, seconds: float) -> Locked:
        return (await really_lock(self, origin, seconds))._replace(snapshots=())

    really_lock = CircuitBreaker.lock
    CircuitBreaker.load = load  # type: ignore[assignment, method-assign]
    CircuitBreaker.lock = lock  # type: ignore[method-assign]


def _follow_nofollow(_urls: list[str]) -> None:
    passes = RobotsMetaMiddleware._passes
    RobotsMetaMiddleware._passes = (  # type: ignore[method-assign]
        lambda self, each, response: isinstance(each, Request) or passes(self, each, response)
    )


def _keep_noindex(_urls: list[str]) -> None:
    passes = RobotsMetaMiddleware._passes
    RobotsMetaMiddleware._passes = (  # type: ignore[method-assign]
        lambda self, each, response: not isinstance(each, Request) or passes(self, each, response)
    )


def _no_check_after_waiting_in_a_place(_urls: list[str]) -> None:
    async def _wait(self: NoRobotsMiddleware, request: Request, question: Any, expired: Any) -> Access:
        access = await wait(self, request, question, expired)
        return access if self._room else replace(access, kind="open", rules=None)

    wait = NoRobotsMiddleware._wait
    NoRobotsMiddleware._wait = _wait  # type: ignore[method-assign]


def _drop_early_what_is_closed(_urls: list[str]) -> None:
    def drop(self: EarlyDrops, request: Request) -> None:
        origin = Origin.of(request.url)
        access = self._core.origins.latest(origin) if origin else None
        if request.errback is None and access is not None and access.is_closed_for_now:
            raise IgnoreRequest
        schedule(self, request)

    schedule = EarlyDrops.schedule
    EarlyDrops.schedule = drop  # type: ignore[method-assign]


SLIPS: dict[str, Callable[[list[str]], None]] = {
    "no normal form": _no_normal_form,
    "one file for both schemes": _one_file_for_both_schemes,
    "each request downloads by itself": _each_for_itself,
    "requests that would wait are dropped": _lose_waiting_requests,
    "slots keep no Crawl-delay": _no_crawl_delay,
    "evidence has another robot": _another_robot_in_the_evidence,
    "only the first reading decides": _only_the_first_reading,
    "only the own robot is asked for": _only_the_own_robot,
    "statements are not obeyed": _no_statement,
    "values are not split": _do_not_split,
    "the store forgets": _forget_what_is_stored,
    "links of nofollow pages are followed": _follow_nofollow,
    "items of noindex pages are kept": _keep_noindex,
    "requests that waited in a place pass": _no_check_after_waiting_in_a_place,
    "closed origins drop requests early": _drop_early_what_is_closed,
}


class Slipping(Items):
    """Injects bugs; the spider is created before the middleware, so this is early enough."""

    def __init__(self, requests: list[str | dict[str, Any]], slips: list[str], **kwargs: Any) -> None:
        super().__init__(requests, **kwargs)
        for slip in slips:
            SLIPS[slip]([request for request in requests if isinstance(request, str)])
