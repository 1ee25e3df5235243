"""The 1994 Standard for Robot Exclusion: bytes in, verdicts out.

Pure: no input or output, and neither scrapy nor twisted is imported here or below. Each clause cited in
these modules (F1 to M4) is explained in ``docs/standard.md``. Imports run one way: lines, names <- records,
urls <- rules, and `robotstxt` joins them. `meta` reads what a page itself says.
"""

from scrapy_norobots.standard.decision import Decision, Reason, Verdict
from scrapy_norobots.standard.findings import KINDS, Finding, Kind, Severity
from scrapy_norobots.standard.meta import RobotsMeta
from scrapy_norobots.standard.records import Record, Rule, UserAgent
from scrapy_norobots.standard.robotstxt import RobotsTxt
from scrapy_norobots.standard.urls import Origin

__all__ = [
    "KINDS",
    "Decision",
    "Finding",
    "Kind",
    "Origin",
    "Reason",
    "Record",
    "RobotsMeta",
    "RobotsTxt",
    "Rule",
    "Severity",
    "UserAgent",
    "Verdict",
]
