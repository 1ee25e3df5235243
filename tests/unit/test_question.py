"""What a request asks of robots.txt."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.settings import Settings

from scrapy_norobots.question import Question, question_of
from scrapy_norobots.scrapy_api.identity import Identity
from scrapy_norobots.standard import Decision, Origin, Reason, Verdict

URL = "http://town.example/back/?a=1"
TOWN = Origin("http", "town.example", 80)


def asked(url: str, headers: dict[str, str] | None = None, **meta: Any) -> Question | Decision:
    crawler: Any = SimpleNamespace(settings=Settings({"USER_AGENT": "FooBot/1.0"}), spider=None, engine=None)
    return question_of(Request(url, headers=headers, meta=meta), Identity(crawler, None))


def question(url: str, **meta: Any) -> Question:
    answer = asked(url, **meta)
    assert isinstance(answer, Question)
    return answer


def test_a_question_has_the_url_its_parts_and_the_robot() -> None:
    assert asked(URL) == Question(URL, TOWN, "/back/?a=1", b"FooBot/1.0")
    assert asked(URL, {"User-Agent": "BarBot"}) == Question(URL, TOWN, "/back/?a=1", b"BarBot")


def test_the_url_of_the_meta_is_asked_about_instead() -> None:
    other = question(URL, norobots_url="https://garden.example:8443/gate")
    assert other.url == "https://garden.example:8443/gate"
    assert (other.origin, other.target) == (Origin("https", "garden.example", 8443), "/gate")


@pytest.mark.parametrize("url", ["garden.example", "data:,", "", 5])
def test_a_url_of_the_meta_that_has_no_origin_is_an_error(url: object) -> None:
    with pytest.raises(ValueError, match="norobots_url = "):
        asked(URL, norobots_url=url)


def test_a_url_with_an_invalid_port_is_forbidden() -> None:
    request: Any = SimpleNamespace(url="http://town.example:no/", meta={}, headers={})
    crawler: Any = SimpleNamespace(settings=Settings(), spider=None, engine=None)
    decision = question_of(request, Identity(crawler, "FooBot/1.0"))
    assert isinstance(decision, Decision)
    assert (decision.verdict, decision.reason) == (Verdict.FORBIDDEN, Reason.BAD_URL)
    assert (decision.url, decision.robot) == ("http://town.example:no/", "FooBot")
    assert decision.detail.startswith("the URL is invalid: ")


@pytest.mark.parametrize("url", ["data:,robots", "file:///robots.txt", "ftp://town.example/robots.txt"])
def test_a_url_that_is_not_of_the_web_is_allowed(url: str) -> None:
    assert asked(url) == Decision(Verdict.ALLOWED, url, "FooBot", Reason.NOT_WEB)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/robots.txt", True),
        ("/robots.txt?a", False),
        ("/back/robots.txt", False),
        ("/Robots.txt", False),
        ("", False),
    ],
)
def test_only_the_robots_txt_of_a_site_is_one(target: str, expected: bool) -> None:
    assert question(f"http://town.example{target}").is_robots_txt is expected
