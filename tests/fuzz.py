"""The fuzz targets: the properties that anything may be thrown at, run by hand for as long as one likes.

``python -m tests.fuzz --minutes N [--target NAME]`` runs them in turns, with fresh random examples each time,
and prints how many examples each has met. What fails is shown as small as Hypothesis can make it.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from hypothesis import settings

EXAMPLES_A_TURN = 200

# What is attacked, and the tests that do it.
TARGETS = {
    "parse": ("test_properties.test_any_bytes_are_read", "test_properties.test_findings_fit_the_records"),
    "decide": (
        "test_properties.test_any_url_and_robot_are_answered",
        "test_properties.test_a_decision_is_one_printable_line",
        "test_oracle.test_random_files_by_hypothesis",
    ),
    "META tag": (
        "test_metatag.test_nothing_raises_whatever_comes",
        "test_metatag.test_headers_and_tags_of_any_text",
    ),
    "snapshots": (
        "test_stores.test_no_bytes_are_more_than_a_miss",
        "test_stores.test_no_sealed_bytes_are_more_than_a_miss",
        "test_stores.test_any_snapshots_come_back",
    ),
    "evidence": (
        "test_evidence.test_any_value_in_a_decision_is_a_problem_or_none",
        "test_evidence.test_any_change_of_the_files_is_a_problem_or_none",
        "test_evidence.test_anything_is_a_record_or_damaged",
    ),
    "settings": ("test_settings.test_any_values_are_read_or_refused",),
}


def load(path: str, count: Callable[[], None]) -> Callable[[], None]:
    """Return a test that tells of each example that it meets."""
    module, _, name = path.partition(".")
    test: Any = getattr(importlib.import_module(f"tests.unit.{module}"), name)
    inner = test.hypothesis.inner_test

    @wraps(inner)
    def counting(*args: Any, **kwargs: Any) -> None:
        count()
        inner(*args, **kwargs)

    test.hypothesis.inner_test = counting
    found: Callable[[], None] = test
    return found


def main() -> None:
    """Run the targets until time is up."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--minutes", type=float, default=1, help="how long, in all (1)")
    parser.add_argument("--target", choices=TARGETS, action="append", help="what to attack (all)")
    options = parser.parse_args()
    # Before the tests are imported: their own settings start from this.
    settings.register_profile("long", max_examples=EXAMPLES_A_TURN, database=None)
    settings.load_profile("long")
    met: dict[str, int] = dict.fromkeys(options.target or TARGETS, 0)

    def counter(target: str) -> Callable[[], None]:
        def count() -> None:
            met[target] += 1

        return count

    tests = [load(path, counter(target)) for target in met for path in TARGETS[target]]
    end = time.monotonic() + options.minutes * 60
    try:
        for test in itertools.cycle(tests):
            if time.monotonic() > end:
                break
            test()
    finally:
        print(*(f"{target}: {count:,} examples" for target, count in met.items()), sep="\n")


if __name__ == "__main__":
    main()
