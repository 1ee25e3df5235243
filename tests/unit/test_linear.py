"""What a site sends is read in linear time: the same in quadratic time would take minutes to hours, in which
no other thread runs.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.helpers.running import processes

READERS = {
    "headers in evidence": """
        from scrapy_norobots.features.evidence.answers import _head
        for value in (b"a%sb", b"a%s\\r\\nb", b"a\\r\\n%sb", b"a%s"):
            head = _head("HTTP/1.1", 200, [(b"X", value % (1_000_000 * b"\\t"))])
            assert head.headers_buff.splitlines()[1].count(b"\\t") == 1_000_000
    """,
    "Cache-Control": """
        from scrapy_norobots.rules.snapshot import Snapshot, _stated_lifetime
        from tests.helpers.samples.made_up import TOWN
        for text in ('\\\\"', '"\\\\', "max-age ", 'max-age="', " ", ",", '"\\\\\\n'):
            headers = {"cache-control": f"max-age=60, {200_000 * text}"}
            _stated_lifetime(Snapshot(TOWN, TOWN.robots_url, 0, 200, headers=headers))
    """,
    "lines that are almost fields": """
        from scrapy_norobots.standard import RobotsTxt
        line = "User agent\\n#" + 100 * "x" + "\\n"
        assert RobotsTxt.parse(200_000 * line).allowed("/", "FooBot")
    """,
    "rules without effect": """
        from scrapy_norobots.standard.groups import rules_without_effect
        rules, idle = rules_without_effect(50_000 * "User-agent: FooBot\\nDisallow: /x\\nDisallow: ftp:\\n")
        assert (len(rules), len(idle)) == (100_000, 50_000)
        from scrapy_norobots.standard import RobotsTxt
        robots = RobotsTxt.parse(100_000 * "User-agent: a\\nAllow: /\\n", reading="rfc9309")
        assert len(robots.records) == 100_000
        from scrapy_norobots.features.report.listing import _meant_for
        lines = [*(f"User-agent: a{n}" for n in range(50_000)), *(50_000 * ["Disalow: /"])]
        assert not list(_meant_for("FooBot", None, lines, set(range(50_001, 100_001)), {50_001}))
    """,
    "one file for many origins": """
        from scrapy_norobots.standard import RobotsTxt
        robots = RobotsTxt.parse("User-agent: *\\n" + "".join(f"Disallow: /{n}/\\n" for n in range(200_000)))
        for host in range(20_000):
            assert robots.decide(f"http://{host}.example/{host}/", "FooBot").rule.line == host + 2
    """,
    "Link": """
        from scrapy.http import Response
        from scrapy_norobots.features.usage import read_page
        for text in ("<", " ", ",", '<a>\\\\"', '<a>"', ";rel ", ';rel="', "; ", '\\\\"'):
            for begin in ("", "<a>", '<a>; x="', "<"):
                response = Response("http://town.example/", headers={"Link": begin + 100_000 * text})
                assert read_page(response, "FooBot") == ()
    """,
    "X-Robots-Tag": """
        from scrapy_norobots.standard.meta import RobotsMeta
        for text in ("a:", "foobot:", "15:", "none:", "a :", " ", ":", "a", "a,", "max-snippet:"):
            assert RobotsMeta.read("FooBot", headers=["nofollow," + 100_000 * text]).nofollow_by
    """,
    "names of users in URLs": """
        from scrapy_norobots.standard.decision import without_userinfo
        for text in (3 * "://", "'a:" + 37 * "b", 3 * "(", 3 * " a:"):
            assert without_userinfo("@" + 30_000 * text).startswith("@")
    """,
}


@pytest.mark.parametrize("name", READERS)
def test_what_a_site_sends_is_read_in_linear_time(name: str, tmp_path: Path) -> None:
    (tmp_path / "reader.py").write_text(dedent(READERS[name]))
    done = processes.run("reader", cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
