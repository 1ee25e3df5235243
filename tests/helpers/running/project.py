"""A small Scrapy project on disk."""

from __future__ import annotations

from pathlib import Path

PROJECT = {
    "scrapy.cfg": "[settings]\ndefault = settings\n",
    "settings.py": 'ADDONS = {"scrapy_norobots.Addon": 500}\nSPIDER_MODULES = ["spiders"]\n',
    "spiders.py": '''\
from scrapy import Spider


class Checked(Spider):
    name = "checked"

    def parse(self, response):
        """A page.

        @url %(site)s/open
        @returns items 1 1
        """
        yield {}

    def parse_back(self, response):
        """A page that robots.txt forbids.

        @url %(site)s/back/1
        @returns items 1 1
        """
        yield {}
''',
}


def make_project(folder: Path, site: str) -> Path:
    """Write a small Scrapy project with contracts for pages of a site."""
    for name, text in PROJECT.items():
        (folder / name).write_text(text.replace("%(site)s", site))
    return folder
