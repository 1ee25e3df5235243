"""The package from outside: its public names, and what importing it brings along."""

from __future__ import annotations

import subprocess
import sys

import pytest

import scrapy_norobots


def test_every_public_name_can_be_imported() -> None:
    for name in scrapy_norobots.__all__:
        assert getattr(scrapy_norobots, name).__name__ == name
        assert name in dir(scrapy_norobots)


def test_a_missing_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Robot'"):
        getattr(scrapy_norobots, "Robot")  # noqa: B009  # mypy knows that it is not there


def test_importing_installs_no_reactor() -> None:
    code = """
import sys, scrapy_norobots
for name in scrapy_norobots.__all__:
    getattr(scrapy_norobots, name)
    if "twisted.internet.reactor" in sys.modules:
        sys.exit(name)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
