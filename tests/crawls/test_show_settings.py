"""``scrapy settings`` prints the defaults of the plugin's settings, as those of Scrapy's own."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.running.commands import run
from tests.helpers.running.project import make_project


def test_it_knows_the_defaults(tmp_path: Path) -> None:
    project = make_project(tmp_path, "http://town.example")

    def shown(*options: str) -> str:
        return run(project, "settings", *options).stdout.strip()

    assert shown("--get", "NOROBOTS_TTL") == "86400"
    assert shown("--getint", "NOROBOTS_TTL", "-s", "NOROBOTS_TTL=5") == "5"
    assert shown("--getlist", "NOROBOTS_COPY_META") == "['proxy', 'bindaddress', 'download_slot']"
    assert shown("--get", "BOT_NAME") == "scrapybot"
