"""What the project's spiders yield."""

from dataclasses import dataclass


@dataclass
class PageItem:
    """One fetched page; ``title`` is empty where the page has none (an image, say)."""

    url: str
    title: str
    status: int
