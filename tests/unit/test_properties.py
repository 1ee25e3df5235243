"""Properties of every file, robot and URL; Hypothesis searches for counterexamples."""

from __future__ import annotations

import re
from string import ascii_letters, digits

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from scrapy_norobots.standard import KINDS, Finding, Reason, RobotsTxt, Verdict
from scrapy_norobots.standard.lines import is_html, to_lines, to_text
from scrapy_norobots.standard.urls import normal, percent_encode
from tests.helpers.judges import oracle
from tests.helpers.samples.variants import LINE_ENDS, variants, with_line_ends
from tests.helpers.worlds import nasty

HOST = "http://garden.example"
ROBOTS = ["Tamarin", "GoldenTamarin/1.0 (+http://x.example/)", "Potto", b"Indri/2", "*", ""]

# Characters with a meaning in the standard, other parsers, Python, terminals or UTF-16.
ODD = " \t\t#:*%$?/.\\&;<>\"'\x00\x0b\x0c\x1b\x1c\x7f\x85\xa0é漢😀\u2028\u202e\ufeff\uff0f\udce9\udcff"
odd_text = st.text(st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=["Cs"])), max_size=8).map(
    lambda text: text.replace("\r", "").replace("\n", "")
)
# Pieces of paths; few, so that rules and URLs often match.
targets = st.lists(st.sampled_from(nasty.PIECES), max_size=6).map(lambda pieces: "/" + "".join(pieces))
urls = st.one_of(
    targets, targets.map(lambda target: HOST + target), targets.map(lambda target: HOST + ":81" + target)
)
robots_names = st.sampled_from(ROBOTS)

randoms = st.randoms(use_true_random=False)
bodies = st.one_of(
    randoms.map(lambda some: nasty.case(some).body).map(
        lambda body: body if isinstance(body, bytes) else body.encode("utf-8", "surrogateescape")
    ),
    st.binary(max_size=60),
)
texts = randoms.map(nasty.text).map(lambda text: re.sub("\r\n?", "\n", text))
# Without a mark, UTF-16 is recognized by the NUL in its first character, which must not be NUL itself.
clean_texts = texts.map(lambda text: re.sub("[\ud800-\udfff]", "\ufffd", text).lstrip("\ufeff\0"))


def read(text: str) -> RobotsTxt:
    return RobotsTxt.parse(text.encode("utf-8", "surrogateescape"))


# --- any input


@given(bodies, st.lists(urls, max_size=3), odd_text, robots_names)
@example(b"\xff\xfe", ["/"], "", "x")
@example(b"\xff\xfe\x00", ["/"], "", "x")
@example(b"\xef\xbb\xbf\xef\xbb\xbf", ["/"], "\n", "x")
@example(b"Disallow: /\r\rUser-agent:", ["/"], "", "x")
def test_any_bytes_are_read(body: bytes, some_urls: list[str], odd: str, robot: str | bytes) -> None:
    robots = RobotsTxt.parse(body)
    assert all(record.user_agents for record in robots.records)
    assert all(isinstance(finding, Finding) for finding in robots.findings)
    assert robots.size >= len(body)
    for url in [*some_urls, HOST, HOST + "/" + odd]:
        decision = robots.decide(url, robot, source=odd)
        assert decision.allowed is robots.allowed(url, robot)
        assert (decision.verdict is Verdict.FORBIDDEN) == (decision.reason is Reason.RULE)
        assert (decision.rule is not None) == (decision.reason is Reason.RULE)
        assert (decision.record is None) == (decision.reason is Reason.NO_RECORD) or (
            decision.reason is Reason.ROBOTS_TXT
        )
        if decision.rule is not None:
            assert decision.record is not None
            assert decision.rule in decision.record.rules


@given(
    texts,
    st.one_of(st.text(max_size=20), st.text(ODD, max_size=20), urls),
    st.one_of(st.text(), st.binary()),
)
def test_any_url_and_robot_get_an_answer(text: str, url: str, robot: str | bytes) -> None:
    robots = read(text)
    try:
        decision = robots.decide(url, robot)
    except ValueError as error:
        bare = re.match(r"[ \t\r\n]*(/|[A-Za-z][A-Za-z0-9+.-]*:)", url) is None
        assert bare or re.match(r"\s*https?://", url, re.IGNORECASE)
        assert ("neither a URL nor a path" if bare else "is not a number up to 65535") in str(error)  # noqa: PT017
        with pytest.raises(ValueError, match=re.escape(str(error))):
            robots.allowed(url, robot)
    else:
        assert decision.allowed is robots.allowed(url, robot)


@given(
    bodies, st.text(max_size=30), st.one_of(st.text(), st.binary()), st.one_of(st.text(), odd_text, st.none())
)
def test_a_decision_is_one_printable_line(
    body: bytes, odd: str, robot: str | bytes, source: str | None
) -> None:
    robots = RobotsTxt.parse(body)
    for url in (HOST + "/" + odd, "/" + odd, "mailto:" + odd, HOST + "/robots.txt#" + odd):
        sentence = str(robots.decide(url, robot, source))
        assert sentence.isprintable()
        assert len(sentence.splitlines()) == 1
        assert sentence.encode("utf-8")


# --- the file


@given(texts, targets, robots_names)
def test_line_ends_make_no_difference(text: str, target: str, robot: str | bytes) -> None:
    assume(not text.startswith(("\udcff", "\udcfe")))  # would be a byte order mark of UTF-16
    robots = read(text)
    for ends in LINE_ENDS:
        other = read(with_line_ends(text, ends))
        assert other.records == robots.records
        assert other.findings == robots.findings
        assert other.decide(HOST + target, robot) == robots.decide(HOST + target, robot)


@given(clean_texts, targets, robots_names)
def test_encodings_make_no_difference(text: str, target: str, robot: str | bytes) -> None:
    robots = RobotsTxt.parse(text)
    for variant, body in variants(text):
        other = RobotsTxt.parse(body)
        assert other.records == robots.records, variant
        assert other.decide(HOST + target, robot) == robots.decide(HOST + target, robot), variant
        assert [found for found in other.findings if found.clause != "F1"] == list(robots.findings), variant


# --- URLs

AROUND = "".join(map(chr, range(33)))  # control characters and spaces at the ends are removed from a URL
UNRESERVED = frozenset(ascii_letters + digits + "-._~")


def respell(target: str, data: st.DataObject) -> str:
    """Return another spelling of a target in normal form."""
    path, mark, query = target.partition("?")
    spelt = ""
    for token in re.findall("%[0-9A-F]{2}|.", path, re.DOTALL):
        spelt += respell_token(token, data)
        if token == "/":
            spelt += data.draw(st.sampled_from(["", "", "", "./", "x/../", "%2e/", "x/y/.%2E/../", "././"]))
    return (
        spelt + mark + "".join(respell_token(token, data) for token in re.findall("%..|.", query, re.DOTALL))
    )


def respell_token(token: str, data: st.DataObject) -> str:
    if token in UNRESERVED:
        return data.draw(st.sampled_from([token, token, f"%{ord(token):02X}", f"%{ord(token):02x}"]))
    return data.draw(st.sampled_from([token, token.lower()])) if len(token) == 3 else token


@given(targets, st.data())
def test_no_spelling_of_a_forbidden_url_is_allowed(target: str, data: st.DataObject) -> None:
    form = normal(target)
    rule = data.draw(st.sampled_from(["/", "/a", form, target, target[: len(target) // 2]]))
    robots = read(f"User-agent: *\nDisallow: {rule}\n")
    spelt = respell(form, data)
    assert normal(spelt) == form
    if not robots.allowed(HOST + form, "Tamarin"):
        assert not robots.allowed(HOST + spelt, "Tamarin")
        if target == target.rstrip(AROUND) and not set(target) & set("\t\r\n"):  # what a URL loses
            assert not robots.allowed(HOST + target, "Tamarin")
    if form == "/robots.txt":
        assert robots.allowed(HOST + spelt, "Tamarin")


@given(st.one_of(targets, odd_text.map(lambda text: "/" + text.partition("#")[0])))
def test_normal_forms(target: str) -> None:
    form, sent = normal(target), percent_encode(target)
    assert normal(form) == form
    assert percent_encode(sent) == sent
    assert normal(sent) == form
    assert percent_encode(form) == form
    assert re.fullmatch(r"/([A-Za-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9A-F]{2})*", form)
    assert not re.search(r"/\.\.?(/|$)", form.partition("?")[0])
    assert re.fullmatch(r"[\x21-\x7e]*", sent)
    value = normal(target, is_prefix=True)
    assert normal(value, is_prefix=True) == value
    assert normal(value) == form, "all that is left to resolve is at the end"


# --- findings


@given(bodies)
def test_findings_fit_the_records(body: bytes) -> None:
    robots = RobotsTxt.parse(body)
    text = to_text(body)
    all_lines = to_lines(text)
    for finding in robots.findings:
        assert 1 <= finding.line <= len(all_lines)
        assert finding.text == all_lines[finding.line - 1]
        assert finding.message.isprintable()
    assert [finding.line for finding in robots.findings] == sorted(
        finding.line for finding in robots.findings
    )
    found = [(finding.kind, finding.line) for finding in robots.findings]
    assert len(set(found)) == len(found), "no remark is made twice"
    if is_html(text):
        assert robots.records == ()
        assert ("html-page", 1) in found
        return
    fields = {number: oracle.field_of(line) for number, line in enumerate(all_lines, 1)}
    disallow = {number for number, field in fields.items() if field == "disallow"}
    user_agent = {number for number, field in fields.items() if field == "user-agent"}
    strays = {line for kind, line in found if kind == "stray-disallow"}
    ruled = {rule.line for record in robots.records for rule in record.rules}
    assert not strays & ruled
    assert strays | ruled == disallow
    assert {name.line for record in robots.records for name in record.user_agents} == user_agent
    assert {line for kind, line in found if kind == "no-disallow"} == {
        record.line for record in robots.records if not record.rules
    }
    others = {line for kind, line in found if KINDS[kind].clause in ("F7", "F8")}
    assert not others & (disallow | user_agent)
    silent = set(fields) - disallow - user_agent - others
    assert all(re.fullmatch(r"[ \t]*(#.*)?", all_lines[line - 1], re.DOTALL) for line in silent)
