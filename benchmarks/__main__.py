"""``python -m benchmarks NAME [FOLDER] [--rounds N] [--before CHECKOUT] [--save]``."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path

from benchmarks import (
    ask,
    broad,
    check,
    closed,
    cost,
    evidence,
    fleet,
    forbidden,
    hostile,
    hosts,
    large,
    linear,
    memory,
    polite,
    readings,
    report,
    scale,
    single,
    soak,
    stores,
    throttled,
)
from benchmarks.crawl import comparing_with

BENCHMARKS = {
    "broad": broad,
    "closed": closed,
    "cost": cost,
    "single": single,
    "hosts": hosts,
    "large": large,
    "forbidden": forbidden,
    "hostile": hostile,
    "polite": polite,
    "throttled": throttled,
    "stores": stores,
    "check": check,
    "fleet": fleet,
    "linear": linear,
    "memory": memory,
    "scale": scale,
    "evidence": evidence,
}
# These run each handler in turn, so they can run the package in another checkout, too.
OF_HANDLERS = ("broad", "cost", "single", "hosts", "large", "hostile", "polite", "throttled")
OTHERS = {"ask": ask, "readings": readings, "soak": soak}


def main() -> None:
    """Run one benchmark."""
    lines = [
        f"{name}: {(module.__doc__ or '').split(': ', 1)[-1].splitlines()[0]}"
        for name, module in {**BENCHMARKS, **OTHERS}.items()
    ]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=[*BENCHMARKS, *OTHERS])
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        help="for ask, cost and readings: a directory with robots/HOST and links/HOST (default: generated)",
    )
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds (3)")
    parser.add_argument("--minutes", type=float, default=60, help="for soak: length of the crawl (60)")
    parser.add_argument(
        "--before",
        type=Path,
        metavar="CHECKOUT",
        help="also measure the package in another checkout, in the same rounds "
        f"(for {', '.join(OF_HANDLERS)})",
    )
    parser.add_argument("--save", action="store_true", help="add the tables to benchmarks/results/NAME.md")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    if options.folder is not None and options.name not in {"ask", "cost", "readings"}:
        parser.error(f"{options.name} does not use files")
    if options.folder is not None and not options.folder.is_dir():
        parser.error(f"{options.folder} is not a directory")
    if options.before is not None and options.name not in OF_HANDLERS:
        parser.error(f"{options.name} does not use --before")
    if options.before is not None and not (options.before / "scrapy_norobots").is_dir():
        parser.error(f"{options.before} is not a checkout: it has no directory scrapy_norobots")
    with ExitStack() as stack:
        if options.before is not None:
            stack.enter_context(comparing_with(options.before))
        _run(options)
    if options.save:
        report.save(options.name)


def _run(options: argparse.Namespace) -> None:
    if options.name == "soak":
        soak.run(options.minutes)
    elif options.name == "readings":
        readings.run(options.folder)
    elif options.name in {"ask", "cost"}:
        (ask if options.name == "ask" else cost).run(options.rounds, options.folder)
    else:
        BENCHMARKS[options.name].run(options.rounds)


if __name__ == "__main__":
    main()
