"""Ask the parser and its second implementations the same random questions.

``python -m tests.helpers.judges.comparison --count N --seed N --reading NAME`` asks about N random files, and
prints the answers that differ. The reading is that of 1994, its multi-value dialect (D1), or RFC 9309.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator
from functools import partial

from scrapy_norobots.standard import RobotsTxt
from tests.helpers.judges import oracle, rfc9309
from tests.helpers.worlds import nasty
from tests.helpers.worlds.nasty import Case


def answer(ask: Callable[[], bool]) -> str:
    """Return an answer, or an exception, as text."""
    try:
        return str(ask())
    except ValueError:
        return "ValueError"


def differences(case: Case, *, multivalue: bool = False) -> Iterator[str]:
    """Yield the answers by the standard of 1994 that differ."""
    robots = RobotsTxt.parse(case.body, multivalue=multivalue)
    parsed = [oracle.Record(list(one.names), [rule.value for rule in one.rules]) for one in robots.records]
    expected_records = oracle.read(case.body, multivalue=multivalue)
    if parsed != expected_records:
        yield f"records {parsed}, not {expected_records}: {case.body!r}"
    expected = [
        answer(partial(oracle.allowed, case.body, *question, multivalue=multivalue))
        for question in case.questions
    ]
    # Earlier questions must not matter, so ask everything twice.
    for ask in robots.allowed, robots.decide, robots.allowed:
        for question, answered in zip(case.questions, expected, strict=True):
            given = answer(lambda: bool(ask(*question)))  # noqa: B023  # called at once
            if given != answered:
                yield f"{ask.__name__} {given}, not {answered}: {case.body!r}, {question}"


def later_differences(case: Case) -> Iterator[str]:
    """Yield the answers by RFC 9309, or by both readings, that differ."""
    strict, later, both = (RobotsTxt.parse(case.body, reading=name) for name in ("1994", "rfc9309", "both"))
    for question in case.questions:
        expected = rfc9309.allowed(case.body, *question)
        together = expected and strict.allowed(*question)
        given = [later.allowed(*question), later.decide(*question).allowed]
        given_together = [both.allowed(*question), both.decide(*question).allowed]
        if given + given_together != 2 * [expected] + 2 * [together]:
            yield f"{given}, not {expected}; {given_together}, not {together}: {case.body!r}, {question}"


READINGS: dict[str, tuple[Callable[[random.Random], Case], Callable[[Case], Iterator[str]]]] = {
    "1994": (nasty.case, differences),
    "multivalue": (nasty.case, partial(differences, multivalue=True)),
    "rfc9309": (nasty.later_case, later_differences),
}


def compare(reading: str, seed: int, count: int) -> Iterator[str]:
    """Yield what differs in the answers about random files."""
    some = random.Random(seed)
    make, compare_case = READINGS[reading]
    for _ in range(count):
        yield from compare_case(make(some))


def main() -> None:
    """Compare the requested number of files."""
    parser = argparse.ArgumentParser(prog="python -m tests.helpers.judges.comparison")
    parser.add_argument("--count", type=int, default=20_000, help="number of files (20000)")
    parser.add_argument("--seed", type=int, default=1, help="of the random files (1)")
    parser.add_argument("--reading", choices=READINGS, default="1994", help="what both read (1994)")
    options = parser.parse_args()
    found = 0
    for found, difference in enumerate(compare(options.reading, options.seed, options.count), 1):  # noqa: B007
        print(difference)
    print(f"{options.count:,} files, seed {options.seed}: {found} answers differ")
    sys.exit(found > 0)


if __name__ == "__main__":
    main()
