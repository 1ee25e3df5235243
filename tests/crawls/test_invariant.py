"""Random worlds, crawled for real and judged: nothing forbidden, left out, or asked for twice."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests import invariant, momentary


@pytest.mark.parametrize(("seed", "retries"), [(1, 0), (2, 0), (3, 2)])
def test_random_worlds(seed: int, retries: int, mode: str, tls: tuple[Path, Path]) -> None:
    """``python -m tests.invariant --seed SEED --retries N --mode MODE`` runs one again."""
    judge = invariant.run(seed, mode, tls, settings={"NOROBOTS_RETRY_CLOSED": retries}).judge
    assert judge.pages > 5
    assert not judge.faults


def test_hosts_that_are_closed_for_a_moment(mode: str) -> None:
    """``python -m tests.momentary --hosts 60 --closed 20 --longest 2 --mode MODE`` runs it again."""
    done, faults = momentary.run(hosts=60, closed=20, mode=mode)
    assert not faults
    assert done.stats["norobots/retry/waited"] == done.stats["norobots/retry/came_back"]


def with_slip(name: str) -> dict[str, Any]:
    return {"spider": "tests.slips.Slipping", "arguments": {"slip": name}}


SLIPS = {
    "no normal form": (with_slip("no normal form"), "forbidden by file"),
    "http's file counts for https": (
        with_slip("one file for both schemes"),
        "never asked for its robots.txt",
    ),
    "a failure opens the site": (
        {"settings": {"NOROBOTS_STATUS_POLICY": {"5xx": "allow", "error": "allow"}}},
        "forbidden by file",
    ),
    "no robots.txt closes the site": ({"settings": {"NOROBOTS_STATUS_POLICY": {"404": "deny"}}}, "left out"),
    "a file counts for ever": ({"settings": {"NOROBOTS_TTL": 3600}}, "which had expired"),
    "a request that is tried again is lost": (
        {"settings": {"NOROBOTS_RETRY_CLOSED": 2, "NOROBOTS_RETRY_CLOSED_MAX": 0}},
        "left out",
    ),
    "each request asks for itself": (with_slip("each request asks for itself"), "asked again"),
}


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_is_found(name: str, tls: tuple[Path, Path]) -> None:
    """Not in every world, but in one of a few; crawls this short seldom see a file expire."""
    job, words = SLIPS[name]
    found = (invariant.run(seed, "asyncio", tls, **copy.deepcopy(job)).judge.faults for seed in range(9, 33))
    assert any(words in fault for faults in found for fault in faults)
