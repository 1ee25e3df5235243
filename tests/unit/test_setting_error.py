"""An invalid setting is one line in the log, and no traceback."""

from __future__ import annotations

import logging

import pytest

from scrapy_norobots.scrapy_api.setting_error import SettingError


@pytest.mark.parametrize("name", ["asyncio", "twisted"])
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (SettingError("NOROBOTS_TTL = %d: must be a number"), "NOROBOTS_TTL = %d: must be a number"),
        (ValueError("of a user"), "the task failed: 1"),
    ],
)
def test_only_the_traceback_of_an_invalid_setting_is_not_logged(
    name: str, error: ValueError, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    try:
        raise error
    except ValueError:
        logging.getLogger(name).exception("the task failed: %d", 1)
    (record,) = caplog.records
    assert record.getMessage() == text
    assert bool(record.exc_info) is not isinstance(error, SettingError)


def test_any_number_of_errors_have_one_filter() -> None:
    errors = [SettingError(str(number)) for number in range(3)]
    filters = logging.getLogger("asyncio").filters
    assert len(errors) == 3
    assert len([one for one in filters if getattr(one, "__module__", "") == SettingError.__module__]) == 1
