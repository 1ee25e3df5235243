"""A spider that notes what pages and their sites state about the use of the pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scrapy import Request
from scrapy.http import Response

from tests.helpers.spiders.pages import Pages


class NotesUsage(Pages):
    """Records the statements of each response, by path."""

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        usage = response.meta.get("norobots_usage")
        path = response.url.partition("//")[2].partition("/")[2]
        self.notes[f"/{path}"] = usage and {
            "robots_txt": usage.robots_txt and [one.facts() for one in usage.robots_txt],
            "page": [one.facts() for one in usage.page],
            "no to ai-train": (no := usage.refusal("ai-train")) and no.text,
        }
        yield from super().parse(response)
