"""Times of several things, taken in turns: the machine's ups and downs meet all of them alike."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Mapping


def in_turns(things: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the least seconds that each takes, of some rounds in which all take turns."""
    least = dict.fromkeys(things, float("inf"))
    for _ in range(rounds):
        for name, thing in things.items():
            gc.collect()
            gc.disable()
            try:
                start = time.perf_counter()
                thing()
                least[name] = min(least[name], time.perf_counter() - start)
            finally:
                gc.enable()
    return least


def memory(make: Callable[[], object]) -> int:
    """Return how many bytes what `make` makes holds, by tracemalloc."""
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
