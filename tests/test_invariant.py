"""Random worlds, crawled for real and judged: nothing forbidden, nothing left out, nothing asked for twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import invariant


@pytest.mark.parametrize("seed", range(1, 4))
def test_random_worlds(seed: int, mode: str, tls: tuple[Path, Path]) -> None:
    """``python -m tests.invariant --seed SEED --mode MODE`` runs one again."""
    judge = invariant.run(seed, mode, tls).judge
    assert judge.pages > 5
    assert not judge.faults
