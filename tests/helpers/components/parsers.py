"""Parsers of robots.txt, for `ROBOTSTXT_PARSER` and `NOROBOTS_ALSO_OBEY`."""

from __future__ import annotations

import logging
import threading
import time

from scrapy.crawler import Crawler
from scrapy.robotstxt import PythonRobotParser


class BrokenParser(PythonRobotParser):
    """A parser that fails on every file except an empty one."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> BrokenParser:
        if robotstxt_body:
            raise RuntimeError("no such luck")
        return super().from_crawler(crawler, robotstxt_body)


class UninstalledParser(PythonRobotParser):
    """A parser whose library is not installed."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> UninstalledParser:
        raise ModuleNotFoundError("No module named 'robots'")


class FailingParser(PythonRobotParser):
    """A parser that reads every file, but fails on questions about other hosts than the first."""

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        if "town.example" in str(url):
            return True
        raise RuntimeError("not this one")


class SleepingParser(PythonRobotParser):
    """A parser that does not answer."""

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        print("asleep", flush=True)  # for the test
        for _ in range(10_000):  # Python does not notice a signal that comes just before it sleeps
            time.sleep(0.1)
        return True


class ParserWithSettings(PythonRobotParser):
    """A parser that needs the crawler, which Scrapy passes to parsers."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> ParserWithSettings:
        assert crawler.settings["BOT_NAME"]
        return super().from_crawler(crawler, robotstxt_body)


class TellsItsThread(PythonRobotParser):
    """A parser that logs the thread in which it reads a file."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> TellsItsThread:
        thread = threading.current_thread()
        kind = "main" if thread is threading.main_thread() else thread.name
        logging.getLogger(__name__).info("%d bytes read in thread %s", len(robotstxt_body), kind)
        return super().from_crawler(crawler, robotstxt_body)


class TellsTheRobotsType(PythonRobotParser):
    """A parser that logs the type of the robot, and accepts no other."""

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        logging.getLogger(__name__).info("asked by %s", type(user_agent).__name__)
        return True


class TakesText(PythonRobotParser):
    """A parser that fails if the robot is bytes, as that of a header is."""

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        return user_agent.startswith("Foo")  # type: ignore[arg-type]


class MakesAnother(PythonRobotParser):
    """A parser whose `from_crawler` returns one of another class."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> PythonRobotParser:  # type: ignore[override]
        return PythonRobotParser.from_crawler(crawler, robotstxt_body)


class BareParser:
    """A parser that forbids PDF files, and has only what newer versions of Scrapy need: no `from_crawler`."""

    def __init__(self, robotstxt_body: bytes) -> None:
        self._forbidden = ".pdf" if robotstxt_body else "no such thing"

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        return self._forbidden not in str(url)


class NotAParser:
    """A class that cannot be a parser."""
