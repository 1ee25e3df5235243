"""Decisions: their attributes, and their one printable sentence."""

from __future__ import annotations

import pytest

from scrapy_norobots.standard import Decision, Reason, Record, RobotsTxt, Rule, UserAgent, Verdict
from scrapy_norobots.standard.decision import printable, quoted, without_userinfo

HOST = "http://garden.example"
SOURCE = HOST + "/robots.txt"
BODY = """# garden
User-agent: tamarin
User-agent: potto
Disallow: /nest

User-agent: *
Disallow: /heap # hot
"""


NAMES = "".join(f"User-agent: {name}\n" for name in "abcde")


@pytest.mark.parametrize(
    ("body", "url", "robot", "expected"),
    [
        (
            BODY,
            HOST + "/nest/egg",
            "Tamarin/1.0",
            (
                f"{HOST}/nest/egg is forbidden for 'Tamarin': line 4 of {SOURCE}, 'Disallow: /nest', "
                "in the record of line 2 for 'tamarin', 'potto'"
            ),
        ),
        (
            BODY,
            HOST + "/",
            "Potto",
            (
                f"{HOST}/ is allowed for 'Potto': no line of {SOURCE} forbids it, "
                "in the record of line 2 for 'tamarin', 'potto'"
            ),
        ),
        (BODY, SOURCE, "Potto", f"{SOURCE} is allowed for 'Potto': robots.txt itself may always be fetched"),
        (
            BODY,
            "ftp://garden.example/nest",
            b"Potto/1",
            (
                "ftp://garden.example/nest is allowed for 'Potto': "
                "only http and https URLs with a host have a robots.txt"
            ),
        ),
        (
            "User-agent: potto\nDisallow: /",
            "/nest",
            "Tamarin",
            f"/nest is allowed for 'Tamarin': {SOURCE} has no record for this robot and no record for '*'",
        ),
        *(
            (
                f"{NAMES[: 14 * names]}Disallow: /",
                "/",
                "c",
                (
                    f"/ is forbidden for 'c': line {names + 1} of {SOURCE}, 'Disallow: /', "
                    f"in the record of line 1 for 'a', 'b', 'c'{more}"
                ),
            )
            for names, more in ((3, ""), (4, " and 1 more"), (5, " and 2 more"))
        ),
    ],
)
def test_a_decision_is_one_sentence(body: str, url: str, robot: str | bytes, expected: str) -> None:
    decision = RobotsTxt.parse(body.encode()).decide(url, robot, SOURCE)
    assert str(decision) == expected
    assert expected.endswith(f": {decision.why}")
    assert str(RobotsTxt.parse(body.encode()).decide(url, robot)) == expected.replace(
        f" of {SOURCE}", " of robots.txt"
    ).replace(f": {SOURCE} has", ": robots.txt has")


def test_a_forbidding_decision_has_rule_and_record() -> None:
    decision = RobotsTxt.parse(BODY.encode()).decide(HOST + "/nest/egg", "Tamarin/1.0", SOURCE)
    assert decision == Decision(
        verdict=Verdict.FORBIDDEN,
        url=HOST + "/nest/egg",
        robot="Tamarin",
        reason=Reason.RULE,
        rule=Rule(4, "/nest"),
        record=Record((UserAgent(2, "tamarin"), UserAgent(3, "potto")), (Rule(4, "/nest"),)),
        source=SOURCE,
    )
    assert not decision


@pytest.mark.parametrize("reason", list(Reason))
@pytest.mark.parametrize("detail", ["", "the server said 503"])
def test_every_reason_makes_a_sentence(reason: Reason, detail: str) -> None:
    decision = Decision(Verdict.ALLOWED, HOST, "Tamarin", reason, source=SOURCE, detail=detail)
    assert str(decision).startswith("http://garden.example is allowed for 'Tamarin': ")
    assert decision.why
    if reason in (Reason.PARSER, Reason.STATUS, Reason.ERROR, Reason.BAD_URL):
        assert decision.why == (detail or f"{reason.value} ({SOURCE})")


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("", ""),
        ("/nest?q=é 漢 😀 \\", "/nest?q=é 漢 😀 \\"),
        ("a\nb\rc\td", r"a\nb\rc\td"),
        ("\x1b[0m\x00\x7f", r"\x1b[0m\x00\x7f"),
        ("\x9b\xa0\xad", r"\x9b\xa0\xad"),
        ("\u202e\u2028\ufeff", r"\u202e\u2028\ufeff"),
        ("\U000e0041", r"\U000e0041"),
        ("\udce9\ud800", r"\udce9\ud800"),
    ],
    ids=ascii,
)
def test_printable(text: str, escaped: str) -> None:
    assert printable(text) == escaped
    assert quoted(text) == f"'{escaped}'"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://jo:pw@town.example/a@b?c=d:e@f", "http://town.example/a@b?c=d:e@f"),
        ("<GET https://jo:p@w@town.example>", "<GET https://town.example>"),
        ("cannot connect to 'http://jo:pw@proxy:80'", "cannot connect to 'http://proxy:80'"),
        ("no authority: 'http:jo:pw@proxy'", "no authority: 'proxy'"),
        ("proxy jo:pw@proxy:80 failed", "proxy proxy:80 failed"),
        ("http://town.example/a:b@c", "http://town.example/a:b@c"),
        ("/a:b@c", "/a:b@c"),
        ("write to jo@town.example", "write to jo@town.example"),
        pytest.param(f"http://{3_000 * 'x'}@town.example", "http://town.example", id="a long name"),
    ],
)
def test_userinfo_is_left_out(text: str, shown: str) -> None:
    assert without_userinfo(text) == shown


def test_long_texts_are_cut() -> None:
    assert printable("x" * 500) == "x" * 500
    assert printable("x" * 501) == "x" * 500 + "…"
    assert printable("\n" * 501) == r"\n" * 500 + "…"
    assert printable("x\n" * 5, limit=3) == r"x\nx…"
    assert quoted("x" * 201) == "'" + "x" * 200 + "…'"


def test_a_sentence_has_a_bounded_length() -> None:
    long = "\U000e0041" * 100_000
    body = f"User-agent: a{long}\nUser-agent: *\nDisallow: /{long}\n"
    robots = RobotsTxt.parse(body.encode())
    sentence = str(robots.decide(f"{HOST}/{long}", "b" + long, source=f"{HOST}/{long}"))
    assert "is forbidden" in sentence
    assert len(sentence) < 20_000
