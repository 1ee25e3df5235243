"""What a crawl can do beyond obeying: features, which subscribe to the events of the core.

A feature is a module or a package here, with a function `subscribe`. It may import what is below the features
in `docs/how-it-works.md`, and no other feature. Only `report`, `serving` and `early_drops` need no setting.
To remove one, delete its line in `FEATURES`, its module or folder, and what others import from it.
"""

from __future__ import annotations

from scrapy.crawler import Crawler

from scrapy_norobots.events import Events
from scrapy_norobots.features import crawl_delay, early_drops, evidence, metatag, report, serving, usage
from scrapy_norobots.settings import Config

# In the order in which they get each event.
FEATURES = (report, crawl_delay, evidence, serving, early_drops, metatag, usage)


def features_of(crawler: Crawler, config: Config) -> Events:
    """Return the events of a crawl, to which the features have subscribed that its settings enable.

    Raises `ValueError` if a setting of a feature is invalid.
    """
    events = Events()
    for feature in FEATURES:
        feature.subscribe(crawler, config, events)
    return events
