"""Values of settings: what switches one off, in Python and on the command line."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy.settings import Settings

from scrapy_norobots.scrapy_api.setting_error import SettingError
from scrapy_norobots.settings import DEFAULTS, read

OFF = {
    **dict.fromkeys(("ALSO_OBEY", "ALSO_ROBOTS", "COPY_META", "PURPOSES", "REPORT"), ()),
    "EVIDENCE": "",
    "STORE": "memory",
}


def test_all_settings_that_are_not_numbers_flags_or_policies_can_be_switched_off() -> None:
    others = {name for name, default in DEFAULTS.items() if not isinstance(default, (bool, int))}
    assert {f"NOROBOTS_{name}" for name in OFF} == others - {"NOROBOTS_STATUS_POLICY"}


@pytest.mark.parametrize("name", OFF)
@pytest.mark.parametrize("value", [False, "False", "false", 0, "0"])
def test_false_switches_a_setting_off(name: str, value: object) -> None:
    assert read(Settings({f"NOROBOTS_{name}": value}), f"NOROBOTS_{name}") == OFF[name]


@pytest.mark.parametrize("name", OFF)
@pytest.mark.parametrize("value", [True, "True", "true", 1, "1"])
def test_true_is_no_path_list_or_store(name: str, value: Any) -> None:
    with pytest.raises(SettingError, match=rf"^NOROBOTS_{name} = {value!r}: must be (a|the)"):
        read(Settings({f"NOROBOTS_{name}": value}), f"NOROBOTS_{name}")
