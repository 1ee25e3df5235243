"""The package from outside: its public names."""

from __future__ import annotations

import pytest

import scrapy_norobots


def test_every_public_name_can_be_imported() -> None:
    for name in scrapy_norobots.__all__:
        assert getattr(scrapy_norobots, name).__name__ == name
        assert name in dir(scrapy_norobots)


def test_a_missing_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Robot'"):
        getattr(scrapy_norobots, "Robot")  # noqa: B009  # mypy knows that it is not there
