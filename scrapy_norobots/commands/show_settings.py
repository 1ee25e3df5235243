"""``scrapy settings``: Scrapy's own command, which also knows the defaults of the plugin's settings.

Add-ons register their defaults when a crawler process is made. Newer versions of Scrapy make none here.
"""

from __future__ import annotations

from typing import Any, ClassVar

from scrapy.commands.settings import Command

from scrapy_norobots.settings import DEFAULTS


class ShowSettings(Command):
    """Print the values of settings."""

    default_settings: ClassVar[dict[str, Any]] = {**Command.default_settings, **DEFAULTS}
