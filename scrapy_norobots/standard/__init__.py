"""The 1994 Standard for Robot Exclusion, and RFC 9309: bytes in, verdicts out.

The package does no input or output, and imports neither scrapy nor twisted. The clauses cited in its modules
(F1 to M4) are explained in ``docs/standard.md``, the sections of the RFC in ``docs/rfc9309.md``. `lines`,
`names` and `urls` read the parts of a file and of a question for both standards. `records` and `rules` are
those of 1994, `groups` and `patterns` those of RFC 9309, and `robotstxt` joins all to a `decision`.
`findings` and `hints` are about lines that do not follow the standard of 1994. `meta` reads META tags and
headers of pages.
"""

from scrapy_norobots.standard.decision import Decision, Reason, Verdict
from scrapy_norobots.standard.findings import KINDS, Finding, Kind, Severity
from scrapy_norobots.standard.meta import RobotsMeta
from scrapy_norobots.standard.records import AllowRule, Record, Rule, UserAgent
from scrapy_norobots.standard.robotstxt import RobotsTxt
from scrapy_norobots.standard.urls import Origin

__all__ = [
    "KINDS",
    "AllowRule",
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
