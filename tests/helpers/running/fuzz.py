"""Run property tests as fuzz targets for any length of time.

``python -m tests.helpers.running.fuzz --minutes N [--target NAME]`` runs the tests in turns, with new random
examples, and prints the number of examples per target. Hypothesis shrinks an example that fails.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import logging
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from hypothesis import settings

EXAMPLES_A_TURN = 200

# The targets, and their tests in `tests.unit`.
TARGETS = {
    "parse": ("test_properties.test_any_bytes_are_read", "test_properties.test_findings_fit_the_records"),
    "decide": (
        "test_properties.test_any_url_and_robot_get_an_answer",
        "test_properties.test_a_decision_is_one_printable_line",
        "test_oracle.test_both_implementations_agree_on_files_of_hypothesis",
    ),
    "META tag": (
        "test_metatag.test_no_tag_or_header_raises",
        "test_meta.test_headers_and_tags_of_any_text",
    ),
    "snapshots": (
        "test_entries.test_any_bytes_are_a_miss",
        "test_entries.test_any_bytes_with_a_valid_checksum_are_a_miss",
        "test_entries.test_any_snapshots_survive_a_round_trip",
    ),
    "store files": (
        "test_sqlite.test_any_values_in_the_rows_are_entries_or_misses",
        "test_sqlite.test_any_change_of_the_file_is_a_miss_or_an_error_of_the_file",
    ),
    "audit": (
        "test_audit.test_any_value_in_a_decision_is_a_problem_or_none",
        "test_audit.test_a_wrong_decision_is_a_problem",
        "test_audit.test_any_change_of_the_files_is_a_problem_or_none",
    ),
    "WARC records": (
        "test_answers.test_any_change_of_a_record_is_a_record_or_damaged",
        "test_answers.test_any_answer_is_read_back",
        "test_answers.test_any_copy_from_a_store_is_read_back",
        "test_fields.test_any_url_and_robot_are_in_one_line",
    ),
    "times in headers": (
        "test_snapshot.test_any_retry_after_header_gives_a_wait_of_at_most_an_hour",
        "test_snapshot.test_any_headers_give_a_lifetime_between_the_limits",
    ),
    "Crawl-delay": (
        "test_delay_values.test_no_file_raises",
        "test_delay_values.test_no_values_of_parsers_raise",
    ),
    "URL list": ("test_stream.test_any_lines_in_any_pieces_are_read",),
    "statements about use": (
        "test_statements.test_any_text_is_read_without_an_exception",
        "test_pages.test_any_response_is_read_without_an_exception",
        "test_robots.test_paths_match_as_in_rfc_9309",
        "test_robots.test_any_file_is_read_without_an_exception",
    ),
    "settings": ("test_settings.test_any_value_is_read_or_a_value_error",),
}


def load(path: str, count: Callable[[], None]) -> Callable[[], None]:
    """Return a test that calls `count` for each example."""
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
    """Run the targets until the time is over."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.helpers.running.fuzz", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--minutes", type=float, default=1, help="total time (1)")
    parser.add_argument("--target", choices=TARGETS, action="append", help="target to run (all)")
    options = parser.parse_args()
    logging.disable()  # the plugin logs the damage that the tests do
    # Before the import of the tests, whose own settings start from this profile.
    settings.register_profile("long", max_examples=EXAMPLES_A_TURN, database=None, deadline=None)
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
