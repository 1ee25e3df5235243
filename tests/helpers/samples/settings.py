"""The sections of settings, the settings that are numbers, and how far each may go."""

from __future__ import annotations

from typing import Any

from scrapy.settings import Settings

from scrapy_norobots import features  # noqa: F401  # imports every section
from scrapy_norobots.settings import DEFAULTS, Section, read

# A dataclass with slots is a second class; the first one, without them, may still exist.
SECTIONS = [section for section in Section.__subclasses__() if "__slots__" in vars(section)]

NUMBERS = [name for name, default in DEFAULTS.items() if type(default) is int]


def upper_end(name: str) -> int:
    """Return the largest value of a setting, as the error for a larger value names it."""
    try:
        read(Settings({name: 10**400}), name)
    except ValueError as error:
        return int(str(error).rpartition(" at most ")[2])
    raise AssertionError(f"{name} has no upper end")


def read_all(**settings: Any) -> list[Any]:
    """Read all settings, each for itself and in its section."""
    made = Settings(settings)
    return [read(made, name) for name in DEFAULTS] + [section.from_settings(made) for section in SECTIONS]
