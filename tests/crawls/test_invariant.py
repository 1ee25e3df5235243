"""Crawls of random worlds request nothing forbidden, omit nothing allowed, and download each file once."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.helpers.running.crawling import MODES
from tests.helpers.worlds import features, invariant
from tests.helpers.worlds.world import File, World


@pytest.mark.parametrize(("seed", "retries"), [(1, 0), (3, 2)])
def test_crawls_of_random_worlds_keep_the_invariant(
    seed: int, retries: int, mode: str, tls: tuple[Path, Path]
) -> None:
    outcome = invariant.run(seed, mode, tls, promised={"NOROBOTS_RETRY_CLOSED": retries})
    assert outcome.pages > 5
    assert not outcome.faults


def test_the_audit_agrees_with_every_decision_in_a_random_world(
    tls: tuple[Path, Path], tmp_path: Path
) -> None:
    assert not invariant.run(16, MODES[0], tls, promised={"NOROBOTS_EVIDENCE": str(tmp_path)}).faults


@pytest.mark.parametrize("seed", [112])
def test_crawls_with_random_combinations_of_features_keep_their_promises(
    seed: int, mode: str, tls: tuple[Path, Path], tmp_path: Path
) -> None:
    """``python -m tests.helpers.worlds.invariant --features --seed SEED --mode MODE`` repeats one."""
    with features.combination(seed, mode, tmp_path) as chosen:
        outcome = invariant.run(seed, mode, tls, **chosen.job)
    assert outcome.pages > 5
    assert not outcome.faults


def with_closed_hosts(world: World) -> World:
    """Return a world of 40 hosts; the first downloads of 14 robots.txt files fail."""
    some = Random(1)
    port = next(origin for origin in world.files if origin.startswith("http:")).rpartition(":")[2]
    origins = [f"http://127.8.0.{number}:{port}" for number in range(1, 41)]
    rules = File(200, b"User-agent: *\nDisallow: /back/\n")
    failures = [File(503), File(500), File(429), File(None, rules.body)]
    closed = {origin: some.choices(failures, k=some.randint(1, 4)) for origin in origins[:14]}
    targets = ("/0", "/1", "/2", "/back/", "/b%61ck/1")
    starts = [origin + target for target in targets for origin in origins]
    some.shuffle(starts)
    return replace(
        world, files={origin: [*closed.get(origin, ()), rules] for origin in origins}, pages={}, starts=starts
    )


def test_crawls_of_hosts_that_are_closed_for_a_moment_keep_the_invariant(tls: tuple[Path, Path]) -> None:
    promised = {"NOROBOTS_RETRY_CLOSED": 9, "NOROBOTS_TTL": 600}
    outcome = invariant.run(1, MODES[0], tls, promised=promised, change=with_closed_hosts)
    assert not outcome.faults
    assert outcome.pages == 40 * 3
    (done,) = outcome.crawls
    assert 0 < done.stats["norobots/retry/waited"] == done.stats["norobots/retry/came_back"]


def with_slip(name: str) -> dict[str, Any]:
    return {"spider": "tests.helpers.worlds.slips.Slipping", "arguments": {"slips": [name]}}


SLIPS = {
    "no normal form": (with_slip("no normal form"), "forbidden by file"),
    "the http file applies to https": (
        with_slip("one file for both schemes"),
        "never asked for its robots.txt",
    ),
    "a failure opens the site": (
        {"settings": {"NOROBOTS_STATUS_POLICY": {"5xx": "allow", "error": "allow"}}},
        "forbidden by file",
    ),
    "no robots.txt closes the site": ({"settings": {"NOROBOTS_STATUS_POLICY": {"404": "deny"}}}, "left out"),
    "a file never expires": ({"settings": {"NOROBOTS_TTL": 3600}}, "which had expired"),
    "a request that is retried is lost": (
        {"promised": {"NOROBOTS_RETRY_CLOSED": 2}, "settings": {"NOROBOTS_RETRY_CLOSED_MAX": 0}},
        "left out",
    ),
    "each request downloads by itself": (with_slip("each request downloads by itself"), "requested again"),
}


@pytest.mark.parametrize("name", SLIPS)
def test_the_invariant_finds_injected_bugs(name: str, tls: tuple[Path, Path]) -> None:
    """In one of several worlds, because a file seldom expires in such a short crawl."""
    job, words = SLIPS[name]
    seeds = (2, 9, 16, *range(20, 40))  # no host hangs in the first three
    found = (invariant.run(seed, "asyncio", tls, **copy.deepcopy(job)).faults for seed in seeds)
    assert any(words in fault for faults in found for fault in faults)


# The features of a crawl, a bug in each of them with the words of the faults, and the first seed.
FEATURE_SLIPS: list[tuple[list[str], dict[str, str], int]] = [
    (
        ["Crawl-delay", "evidence", "META tags"],
        {
            "slots keep no Crawl-delay": "s after another, not",
            "evidence has another robot": "the audit ended with 1",
            "links of nofollow pages are followed": "no followed link led to it",
            "items of noindex pages are kept": "an item of a page that says noindex",
        },
        44,
    ),
    (
        ["store", "several values"],
        {"the store forgets": "requested again", "values are not split": "forbidden by file"},
        16,
    ),
    (["second reading"], {"only the first reading decides": "forbidden by file"}, 20),
    (["other robots"], {"only the own robot is asked for": "forbidden by file"}, 41),
    (["purposes"], {"statements are not obeyed": "forbidden by file"}, 2),
    (["by hand"], {"requests that waited in a place pass": "forbidden by file"}, 28),
    (["early drop", "retries"], {"closed origins drop requests early": "left out"}, 16),
]


@pytest.mark.parametrize(
    ("names", "slips", "first"), FEATURE_SLIPS, ids=[", ".join(names) for names, _, _ in FEATURE_SLIPS]
)
def test_the_invariant_finds_injected_bugs_in_each_feature(
    names: list[str], slips: dict[str, str], first: int, tls: tuple[Path, Path], tmp_path: Path
) -> None:
    """In one of several worlds, because a single world does not show every bug."""
    missing = set(slips.values())
    for seed in range(first, first + 24):
        folder = tmp_path / str(seed)
        folder.mkdir()
        with features.combination(seed, "asyncio", folder, *names) as chosen:
            job = {**chosen.job, "spider": "tests.helpers.worlds.slips.Slipping"}
            job["arguments"] = {**job["arguments"], "slips": list(slips)}
            if "store" in names:  # on a busy machine too, the second crawl finds what is still fresh
                job["promised"] = {**job["promised"], "NOROBOTS_TTL": 60}
            faults = invariant.run(seed, "asyncio", tls, **job).faults
        missing -= {words for words in missing if any(words in fault for fault in faults)}
        if not missing:
            return
    pytest.fail(f"not found: {missing}")
