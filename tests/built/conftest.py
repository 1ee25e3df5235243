"""What `make check` built last."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.running.processes import ROOT


@pytest.fixture(scope="session")
def wheel() -> Path:
    return _built("dist/*.whl")


@pytest.fixture(scope="session")
def sdist() -> Path:
    return _built("dist/*.tar.gz")


@pytest.fixture(scope="session")
def site() -> Path:
    return _built("build/site")


def _built(pattern: str) -> Path:
    found = list(ROOT.glob(pattern))
    assert len(found) == 1, f"run `make check` first: expected one {pattern}, found {found}"
    return found[0]
