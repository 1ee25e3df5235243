"""The package from outside: its public names, and what importing it brings along."""

from __future__ import annotations

import subprocess
import sys

import pytest

import scrapy_norobots


def test_every_public_name_is_there() -> None:
    for name in scrapy_norobots.__all__:
        assert getattr(scrapy_norobots, name).__name__ == name
        assert name in dir(scrapy_norobots)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Robot'"):
        getattr(scrapy_norobots, "Robot")  # noqa: B009  # mypy knows that it is not there


@pytest.mark.parametrize("name", scrapy_norobots.__all__)
def test_importing_installs_no_reactor(name: str) -> None:
    code = (
        f"import sys; from scrapy_norobots import {name}; sys.exit('twisted.internet.reactor' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
