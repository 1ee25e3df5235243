"""Measure several functions in turns, so that changes of the machine's speed affect all alike."""

from __future__ import annotations

import gc
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Mapping


def in_turns(things: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the shortest time of each function in seconds, over rounds in which all take turns.

    The garbage collector runs, as in a crawl.
    """
    least = dict.fromkeys(things, float("inf"))
    for _ in range(rounds):
        for name, thing in things.items():
            gc.collect()
            start = time.perf_counter()
            thing()
            least[name] = min(least[name], time.perf_counter() - start)
    return least


def longest_hold(thing: Callable[[], object]) -> float:
    """Return the longest time in seconds for which this thread waits while another runs a function.

    This is the longest call that cannot be interrupted, plus other work of the machine.
    """
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # switch threads as soon as possible
    thread = threading.Thread(target=thing)
    longest = 0.0
    try:
        thread.start()
        last = time.perf_counter()
        while thread.is_alive():
            time.sleep(0)  # lets the other thread run, and waits
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
    finally:
        thread.join()
        sys.setswitchinterval(interval)
    return longest


def memory(make: Callable[[], object]) -> int:
    """Return the size of the result of `make` in bytes, by tracemalloc."""
    gc.collect()
    tracemalloc.start()
    try:
        made = make()
        gc.collect()
        size = tracemalloc.get_traced_memory()[0]
        del made
        return size
    finally:
        tracemalloc.stop()
