"""``scrapy settings``: Scrapy's own command, which also knows the defaults of the plugin's settings.

Add-ons register their defaults when a crawler process is made. In newer versions of Scrapy, this command
makes none, so it does here what the add-on of this package does then, if the project has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands.settings import Command

from scrapy_norobots.addon import Addon
from scrapy_norobots.checks import keys_of

if TYPE_CHECKING:
    from argparse import Namespace


class ShowSettings(Command):
    """Print the values of settings."""

    def run(self, args: list[str], opts: Namespace) -> None:
        """Print the value of a setting, or its default."""
        assert self.settings is not None  # Scrapy has set them
        if keys_of(Addon, self.settings.getdict("ADDONS")):
            Addon.update_pre_crawler_settings(self.settings)
        super().run(args, opts)
