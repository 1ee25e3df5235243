"""The fuzz targets, which are otherwise run by hand."""

from __future__ import annotations

import importlib

import pytest

from tests.helpers.running.fuzz import TARGETS


@pytest.mark.parametrize("path", [path for paths in TARGETS.values() for path in paths])
def test_each_target_is_a_property(path: str) -> None:
    module, _, name = path.partition(".")
    assert hasattr(getattr(importlib.import_module(f"tests.unit.{module}"), name), "hypothesis")
