"""Check the invariant end to end: crawl a random world, and let `Judge` judge the log of its servers.

``python -m tests.helpers.worlds.invariant --seed N [--mode select] [--count K]`` runs it by hand. The world
of a seed is always the same; ports and the order of requests differ. With ``--features``, the seed also
selects a random combination of features of the plugin (`features`).

The settings of a crawl and the manner of its spider say what else is checked:

- A crawl with `NOROBOTS_STORE` is repeated with the same store, and one with `HTTPCACHE_ENABLED` with the
  same cache.
- One with `NOROBOTS_EVIDENCE` is audited with its head, and every decision must agree.
- With `NOROBOTS_META`, there is no item of a page that says ``noindex``.
- One that its spider closes is resumed. After the close, it sends nothing that was not under way; nor does
  one that its spider pauses, during the pause.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tests.helpers.judges.judge import Judge, origin_of
from tests.helpers.running import processes
from tests.helpers.running.crawling import ADDON, MODES, Crawl, crawl
from tests.helpers.sites.certificate import make_certificate
from tests.helpers.worlds import features
from tests.helpers.worlds.world import Arrival, Manner, Played, World

SETTINGS = {
    **ADDON,
    "NOROBOTS_TTL": 0.4,
    "NOROBOTS_TTL_MIN": 0,
    "NOROBOTS_ERROR_TTL": 0.2,
    "NOROBOTS_TIMEOUT": 8.0,
    "NOROBOTS_RETRY_TIMES": 0,
    "DOWNLOAD_DELAY": 0.03,
}


@dataclass
class Outcome:
    """The crawls of one world, the log of its servers, and the violations of what the settings promise."""

    crawls: list[Crawl]
    log: list[Arrival]
    faults: list[str]
    pages: int
    files: int
    audited: int = 0

    @property
    def drops(self) -> int:
        return sum(one.stats.get("robotstxt/forbidden", 0) for one in self.crawls)


def run(
    seed: int,
    mode: str,
    certificate: tuple[Path, Path],
    *,
    promised: Mapping[str, Any] | None = None,
    change: Callable[[World], World] = lambda world: world,
    settings: Mapping[str, Any] | None = None,
    arguments: Mapping[str, Any] | None = None,
    **job: Any,
) -> Outcome:
    """Crawl the world of a seed, changed by `change`, and judge the log by the settings that are `promised`.

    `settings` and the rest of the job are for injected bugs: the crawl gets them, but the judge does not.
    """
    with Played(seed, certificate, change) as played:
        promises: dict[str, Any] = {
            **SETTINGS,
            "USER_AGENT": played.world.robot,
            "CONCURRENT_REQUESTS_PER_DOMAIN": played.world.at_once,
            **(promised or {}),
        }
        job |= {
            "settings": {**promises, **(settings or {})},
            "arguments": {"follow": True, **(arguments or {})},
        }
        judges, crawls = _crawl_and_judge(played, promises, {"mode": mode, **job})
        log, world = list(played.log), played.world
    outcome = Outcome(
        crawls,
        log,
        faults=[fault for judge in judges for fault in judge.faults],
        pages=sum(judge.pages for judge in judges),
        files=sum(judge.asked for judge in judges),
    )
    outcome.faults += (fault for done in crawls for fault in _sent_while_paused(done))
    if "SCHEDULER" in promises or promises["ADDONS"]:
        outcome.faults += _sent_after_close(world.manner, crawls[0], log)
    if "NOROBOTS_META" in promises:
        outcome.faults += (fault for done in crawls for fault in _wrong_items(world, done))
    if "NOROBOTS_EVIDENCE" in promises:
        _audit(promises["NOROBOTS_EVIDENCE"], outcome)
    return outcome


def _crawl_and_judge(
    played: Played, promises: Mapping[str, Any], job: dict[str, Any]
) -> tuple[list[Judge], list[Crawl]]:
    """Crawl once or twice, as the settings and the manner of the spider say, and judge that."""
    world, manner = played.world, played.world.manner

    def run_crawl(manner: Manner) -> Crawl:
        extra = {"manner": asdict(manner)} if manner != Manner() else {}
        return crawl(*world.starts, **{**job, "arguments": {**job["arguments"], **extra}})

    done = run_crawl(manner)
    first = _with_cached(played, done, list(played.log))
    start = len(played.log)
    if manner.close:
        again = run_crawl(replace(manner, close=0))
        log = first + _with_cached(played, again, played.log[start:])
        unsure = set(done.notes["close"]["files"] if "close" in done.notes else ())
        return [Judge(world, log, promises, closed=(len(first), unsure))], [done, again]
    judge = Judge(world, first, promises)
    if "NOROBOTS_STORE" not in promises and "HTTPCACHE_ENABLED" not in promises:
        return [judge], [done]
    again = run_crawl(manner)
    before = judge if "NOROBOTS_STORE" in promises else None
    second = Judge(world, _with_cached(played, again, played.log[start:]), promises, before)
    return [judge, second], [done, again]


def _with_cached(played: Played, done: Crawl, log: Sequence[Arrival]) -> list[Arrival]:
    """Return the log of a crawl with the pages that it had in its HTTP cache."""
    cached = []
    for time, url, of_cache in done.notes.get("cached", []):
        origin = origin_of(of_cache)
        page = played.arrival_of(origin, of_cache.partition("#")[0].removeprefix(origin))
        cached.append(page._replace(time=time, url=url.partition("#")[0], is_cached=True))
    return sorted([*log, *cached], key=lambda arrival: arrival.time) if cached else list(log)


def _sent_after_close(manner: Manner, done: Crawl, log: Sequence[Arrival]) -> Iterator[str]:
    """Yield a fault if a crawl has sent more after its close than what was under way.

    Callbacks and pipelines may download more meanwhile.
    """
    if "close" not in done.notes or manner.downloads:
        return
    closed = done.notes["close"]
    end = done.notes["end"]
    late = [
        arrival.url
        for arrival in log
        if closed["time"] < arrival.time <= end
        and not arrival.is_lost  # some download handlers repeat a request if the connection to a proxy breaks
        and (not arrival.asker or arrival.url.endswith("/robots.txt"))
    ]
    if len(late) > len(closed["under way"]):
        yield f"sent after the close: {late}, and only {closed['under way']} were under way"


def _sent_while_paused(done: Crawl) -> Iterator[str]:
    pause = done.notes.get("pause")
    if pause is not None and len(pause["sent"]) > pause["under way"]:
        yield f"sent during a pause: {pause['sent']}, and only {pause['under way']} were under way"


def _wrong_items(world: World, done: Crawl) -> Iterator[str]:
    """Yield a fault for each item that was lost, and for each that its page forbids."""
    expected: Counter[str] = Counter()
    for url in done.pages:
        origin = origin_of(url)
        target = url.partition("#")[0].removeprefix(origin)  # some download handlers keep the fragment
        expected[url] += world.page(origin, target).index
    items = Counter(done.notes.get("items", []))
    yield from (f"an item of a page that says noindex: {url}" for url in items - expected)
    yield from (f"an item was lost: {url}" for url in expected - items)


def _audit(folder: str, outcome: Outcome) -> None:
    """Audit the evidence of the crawls by their heads, and add what is wrong with it to the faults."""
    made = sum(
        one.stats.get(name, 0)
        for one in outcome.crawls
        for name in ("norobots/passed", "robotstxt/forbidden", "norobots/overridden")
    )
    stored = sum(one.stats.get("norobots/evidence/decisions", 0) for one in outcome.crawls)
    if stored != made or any("norobots/evidence/lost" in one.stats for one in outcome.crawls):
        outcome.faults.append(f"of {made} decisions, {stored} are stored")
    heads = [f"--head={one.stats.get('norobots/evidence/head')}" for one in outcome.crawls]
    done = processes.run("scrapy", "robots-audit", *heads, folder)
    if done.returncode != 0 or f" {made:,} decision" not in done.stdout:
        outcome.faults.append(f"the audit ended with {done.returncode}: {done.stdout}{done.stderr}")
    outcome.audited = made


def _runs(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Outcome]]:
    """Crawl as the command line says, and yield a name and the outcome of each world."""
    certificate = make_certificate(folder)
    for seed in range(options.seed, options.seed + options.count):
        for mode in [options.mode] if options.mode else MODES:
            with tempfile.TemporaryDirectory() as place:
                if options.features:
                    with features.combination(seed, mode, Path(place)) as chosen:
                        name = f"seed {seed}, {mode}, {' + '.join(chosen.names)}"
                        try:
                            outcome = run(seed, mode, certificate, **chosen.job)
                        except (AssertionError, TimeoutError) as exc:  # a crawl that fails, or hangs
                            outcome = Outcome([], [], faults=[str(exc)], pages=0, files=0)
                        yield name, outcome
                    continue
                yield f"seed {seed}, {mode}", run(seed, mode, certificate)


def main(arguments: Sequence[str] | None = None) -> None:
    """Crawl worlds one after another, and print each violation."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.helpers.worlds.invariant", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--seed", type=int, default=1, help="of the first world (1)")
    parser.add_argument(
        "--count", type=int, default=1, help="how many worlds, of seeds one after another (1)"
    )
    parser.add_argument("--mode", choices=MODES, help="of the crawls (each)")
    parser.add_argument(
        "--features", action="store_true", help="a random combination of features for each seed"
    )
    parser.add_argument("--verbose", action="store_true", help="show the log of a world that failed")
    options = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name, outcome in _runs(options, Path(folder)):
            counts.update(
                worlds=1,
                crawls=len(outcome.crawls),
                pages=outcome.pages,
                drops=outcome.drops,
                early=sum(one.stats.get("norobots/forbidden_early", 0) for one in outcome.crawls),
                files=outcome.files,
                audited=outcome.audited,
                failed=int(bool(outcome.faults)),
            )
            for fault in outcome.faults:
                print(f"{name}: {fault}", flush=True)
            if outcome.faults and options.verbose:
                print(*outcome.log, *(one.log for one in outcome.crawls), sep="\n")
    print(
        f"{counts['crawls']:,} crawls of {counts['worlds']:,} worlds from seed {options.seed}: "
        f"{counts['pages']:,} pages requested, {counts['drops']:,} requests dropped, {counts['early']:,} of "
        f"them early, {counts['files']:,} files asked for, {counts['audited']:,} decisions audited; "
        f"{counts['failed']} worlds with violations"
    )
    sys.exit(counts["failed"] > 0)


if __name__ == "__main__":
    main()
