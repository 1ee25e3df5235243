"""Crawl a small web site on this machine, and show which requests robots.txt forbids.

``python example_project/demo.py`` serves the site of ``example_site``, crawls it with the
``site`` spider and the project's settings (without delays), and compares the results of the
crawler with the log of the site.  The exit status is 0 if no forbidden URL was requested,
robots.txt was requested once and every open page was fetched.  Otherwise it is 1, and the
demo prints what went wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

try:
    from example.spiders.site import Cause, SiteSpider
    from example_site import Library, Site, off_limits, open_site, place
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.table import Table
    from scrapy import signals
    from scrapy.crawler import CrawlerProcess
    from scrapy.settings import Settings
except ImportError as error:
    sys.exit(f"The demo needs scrapy-norobots and rich, and something is missing: {error}")
except KeyboardInterrupt:
    sys.exit(130)

if TYPE_CHECKING:
    from collections.abc import Callable

    from twisted.python.failure import Failure

AT_LOOPBACK_SPEED = {
    "CONCURRENT_REQUESTS": 16,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "DOWNLOAD_DELAY": 0,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    # The one WARNING of this crawl is about a line of robots.txt; `main` says so in other words.
    "LOG_LEVEL": "ERROR",
}


@dataclass
class Outcome:
    """The results of the crawl, as the crawler reports them."""

    fetched: int = 0
    finish: str = "failed"  # the reason that Scrapy gives for the end of the crawl
    dropped: Counter[Cause] = field(default_factory=Counter)
    samples: dict[Cause, str] = field(default_factory=dict)


def crawl(url: str, changes: dict[str, Any], on_page: Callable[[], None]) -> Outcome:
    """Crawl the site at ``url``, with ``changes`` to the project's settings."""
    settings = Settings()
    settings.setmodule("example.settings", priority="project")
    settings.setdict(changes, priority="cmdline")
    process = CrawlerProcess(settings)
    crawler = process.create_crawler(SiteSpider)
    outcome = Outcome()

    def on_item() -> None:
        outcome.fetched += 1
        on_page()

    def on_closed(spider: SiteSpider, reason: str) -> None:
        outcome.finish = reason
        outcome.dropped = spider.dropped
        outcome.samples = spider.samples

    crawler.signals.connect(on_item, signals.item_scraped)
    crawler.signals.connect(on_closed, signals.spider_closed)
    failures: list[Failure] = []  # exceptions at the start of the crawl, including Ctrl-C
    process.crawl(crawler, url=url).addErrback(failures.append)
    process.start()
    for failure in failures:
        failure.raiseException()
    return outcome


def drops_table(outcome: Outcome, root: str) -> Table:
    """Return a table of dropped requests, with sample URLs relative to ``root``."""
    total = outcome.dropped.total()
    table = Table(title="Requests dropped because of robots.txt", show_footer=True, title_justify="left")
    table.add_column("Line", justify="right")
    table.add_column("Rule", "total")
    table.add_column("Dropped", str(total), justify="right")
    table.add_column("Example", overflow="fold")
    for cause, count in sorted(outcome.dropped.items()):
        rule = f"Disallow: {cause.text}" if cause.line else cause.text
        sample = outcome.samples[cause].removeprefix(root)
        table.add_row(str(cause.line or ""), escape(rule), str(count), escape(sample))
    return table


def complaints(site: Site, outcome: Outcome) -> list[str]:
    """Return the errors of a crawl, according to the log of the site."""
    visits = site.visits
    wrong = []
    if strays := {visit.target for visit in visits if off_limits(visit.target)}:
        wrong.append(f"{len(strays)} forbidden URLs were fetched:{listing(strays)}")
    asked = sum(place(visit.target) == "/robots.txt" for visit in visits)
    if asked != 1:
        wrong.append(f"/robots.txt was requested {asked} times, not once.")
    pages = site.collection.open_pages()
    if missed := pages - {place(visit.target) for visit in visits if visit.status == 200}:
        wrong.append(f"{len(missed)} open pages were not fetched:{listing(missed)}")
    elif outcome.fetched < len(pages):
        wrong.append(f"Only {outcome.fetched} of the {len(pages)} pages made an item.")
    if outcome.finish != "finished":
        wrong.append(f"The crawl ended early: {outcome.finish}.")
    return wrong


def listing(paths: set[str], limit: int = 20) -> str:
    """Return the first of ``paths``, one per line, and the number of the others."""
    lines = sorted(paths)[:limit]
    if more := len(paths) - len(lines):
        lines.append(f"and {more} more")
    return "".join(f"\n  {line}" for line in lines)


def main(argv: list[str] | None = None) -> int:
    """Run the demo and return its exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--books", type=int, default=240, metavar="N", help="books in the library (default: 240)"
    )
    parser.add_argument("--log", type=Path, metavar="FILE", help="write Scrapy's log to FILE")
    parser.add_argument(
        "--report",
        type=Path,
        default=Path("demo-report.html"),
        metavar="FILE",
        help="write the robots.txt report to FILE (default: demo-report.html)",
    )
    parser.add_argument(
        "--disobey", action="store_true", help="ignore robots.txt, to see how the site detects it"
    )
    options = parser.parse_args(argv)
    if options.books < 0:
        parser.error("--books must not be negative")
    changes = dict(AT_LOOPBACK_SPEED, ROBOTSTXT_OBEY=not options.disobey)
    changes["NOROBOTS_REPORT"] = [str(options.report).replace("%", "%%")]
    if options.log:
        changes |= {"LOG_FILE": str(options.log), "LOG_FILE_APPEND": False, "LOG_LEVEL": "DEBUG"}

    console = Console()
    progress = Progress(
        TextColumn("Pages"),
        BarColumn(),
        MofNCompleteColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    with open_site(Library(options.books)) as site:
        expected = len(site.collection.open_pages())
        with progress:
            task = progress.add_task("", total=expected)
            outcome = crawl(site.url + "/", changes, lambda: progress.advance(task))
        status = report(console, site, outcome)
    if outcome.finish == "finished" and not options.disobey:
        page = options.report.resolve().as_uri()
        console.print(
            "One rule of this robots.txt has no effect, on purpose: click the site in the report to see why.",
            highlight=False,
            soft_wrap=True,
        )
        console.print(f"The report of this crawl: {page}", markup=False, highlight=False, soft_wrap=True)
    return status


def report(console: Console, site: Site, outcome: Outcome) -> int:
    """Print the results of the crawl and return the exit status."""
    if outcome.finish == "shutdown":
        console.print(f"Interrupted after {outcome.fetched} pages.")
        return 130
    expected = len(site.collection.open_pages())
    console.print(f"Pages fetched: {outcome.fetched} of {expected} that robots.txt allows")
    if outcome.dropped:
        console.print(drops_table(outcome, site.url))
    count = len(site.visits)
    if wrong := complaints(site, outcome):
        console.print(f"[red]The site's own log of {count} requests shows errors:[/]")
        for complaint in wrong:
            console.print(complaint, markup=False, highlight=False, soft_wrap=True)
        return 1
    console.print(
        f"[green]The site's own log of {count} requests: no forbidden URL, and /robots.txt exactly once.[/]",
        highlight=False,
        soft_wrap=True,
    )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
