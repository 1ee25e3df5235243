"""The sections of settings, the settings that are numbers, and how far each may go."""

from __future__ import annotations

from typing import Any

from scrapy.settings import Settings

from scrapy_norobots.features.crawl_delay import CrawlDelayConfig
from scrapy_norobots.features.evidence.recorder import EvidenceConfig
from scrapy_norobots.features.metatag import MetaConfig
from scrapy_norobots.features.report.files import ReportConfig
from scrapy_norobots.features.usage import UsageConfig
from scrapy_norobots.settings import DEFAULTS, Config, Section

SECTIONS: tuple[type[Section], ...] = (
    Config,
    CrawlDelayConfig,
    ReportConfig,
    EvidenceConfig,
    MetaConfig,
    UsageConfig,
)

NUMBERS = [name for name, default in DEFAULTS.items() if type(default) is int]


def upper_end(name: str) -> int:
    """Return the largest value of a setting, as the error for a larger value names it."""
    try:
        Config.from_settings(Settings({name: 10**400}))
    except ValueError as error:
        return int(str(error).rpartition(" at most ")[2])
    raise AssertionError(f"{name} has no upper end")


def read_all(**settings: Any) -> list[Section]:
    """Read all sections."""
    return [section.from_settings(Settings(settings)) for section in SECTIONS]
