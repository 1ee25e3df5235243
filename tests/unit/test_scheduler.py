"""Attributes of `RobotsScheduler`."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import MagicMock

from scrapy_norobots import RobotsScheduler


def test_other_attributes_are_those_of_the_wrapped_scheduler() -> None:
    scheduler = RobotsScheduler(MagicMock(), SimpleNamespace(queue=7, __special__=8))
    assert scheduler.queue == 7
    assert not hasattr(scheduler, "another")
    assert not hasattr(scheduler, "__special__")  # Python looks for such a name to find out what it can do


def test_a_scheduler_that_is_not_initialized_has_no_other_attributes() -> None:
    """As when it is copied."""
    assert not hasattr(RobotsScheduler.__new__(RobotsScheduler), "queue")
