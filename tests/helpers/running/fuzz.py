"""Run the property tests for any length of time.

``python -m tests.helpers.running.fuzz --minutes N [--target NAME]`` runs the tests in turns, with new random
examples, and prints the number of examples per module, such as ``sqlite``. Hypothesis shrinks an example that
fails.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import itertools
import logging
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from hypothesis import settings

EXAMPLES_A_TURN = 200
UNIT = Path(__file__).parents[2] / "unit"


def targets() -> dict[str, list[Any]]:
    """Return the property tests of each module that need no fixture."""
    modules = [importlib.import_module(f"tests.unit.{file.stem}") for file in sorted(UNIT.glob("test_*.py"))]
    found = {
        module.__name__.rpartition("test_")[2]: [
            test
            for test in vars(module).values()
            if hasattr(test, "hypothesis") and not inspect.signature(test).parameters
        ]
        for module in modules
    }
    return {name: tests for name, tests in found.items() if tests}


def counted(test: Any, count: Callable[[], None]) -> Callable[[], None]:
    """Let a test call `count` for each example."""
    inner = test.hypothesis.inner_test

    @wraps(inner)
    def counting(*args: Any, **kwargs: Any) -> None:
        count()
        inner(*args, **kwargs)

    test.hypothesis.inner_test = counting
    return test  # type: ignore[no-any-return]


def main() -> None:
    """Run the targets until the time is over."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.helpers.running.fuzz", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--minutes", type=float, default=1, help="total time (1)")
    parser.add_argument("--target", action="append", help="module to run (all)")
    options = parser.parse_args()
    logging.disable()  # the plugin logs the damage that the tests do
    # Before the import of the tests, whose own settings start from this profile.
    settings.register_profile("long", max_examples=EXAMPLES_A_TURN, database=None, deadline=None)
    settings.load_profile("long")
    found = targets()
    met: dict[str, int] = dict.fromkeys(options.target or found, 0)

    def counter(target: str) -> Callable[[], None]:
        def count() -> None:
            met[target] += 1

        return count

    tests = [counted(test, counter(target)) for target in met for test in found[target]]
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
