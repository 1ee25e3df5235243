"""What evidence says of the parsers of a crawl."""

from __future__ import annotations

from importlib.metadata import version

from scrapy.robotstxt import ProtegoRobotParser, PythonRobotParser
from scrapy.settings import Settings

from scrapy_norobots import __version__
from scrapy_norobots.features.evidence.judges import described_path, description, parsers_of, path_of
from scrapy_norobots.rules.parser import Rfc9309RobotParser, StrictRobotParser
from scrapy_norobots.settings import Config


class TownParser(ProtegoRobotParser):
    pass


def test_each_parser_is_named_with_what_its_verdicts_depend_on() -> None:
    assert description(StrictRobotParser).endswith(f".StrictRobotParser (scrapy-norobots {__version__})")
    assert (
        description(ProtegoRobotParser)
        == f"scrapy.robotstxt.ProtegoRobotParser (Protego {version('protego')})"
    )
    assert (
        description(PythonRobotParser) == f"scrapy.robotstxt.PythonRobotParser (Scrapy {version('scrapy')})"
    )
    assert description(TownParser) == "tests.unit.test_judges.TownParser"  # of no distribution


def test_the_path_is_in_the_description() -> None:
    for parser in (StrictRobotParser, ProtegoRobotParser, TownParser):
        assert described_path(description(parser)) == path_of(parser)


def test_parsers_are_in_the_order_in_which_they_are_asked() -> None:
    settings = Settings({"NOROBOTS_ALSO_OBEY": ["rfc9309", TownParser]})
    assert parsers_of(Config.from_settings(settings)) == [StrictRobotParser, Rfc9309RobotParser, TownParser]
    settings = Settings({"ROBOTSTXT_PARSER": "scrapy.robotstxt.PythonRobotParser"})
    assert parsers_of(Config.from_settings(settings)) == [PythonRobotParser]
