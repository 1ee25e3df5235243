"""Properties of every file, robot and URL; Hypothesis searches for counterexamples."""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_letters, digits
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from scrapy_norobots.standard import KINDS, Finding, Reason, RobotsTxt, Verdict
from scrapy_norobots.standard.findings import _LATER_FIELDS
from scrapy_norobots.standard.lines import is_html, to_lines, to_text
from scrapy_norobots.standard.urls import normal, percent_encode
from tests.helpers.judges import oracle
from tests.helpers.samples.variants import LINE_ENDS, variants, with_line_ends

HOST = "http://garden.example"
ROBOTS = ["Tamarin", "GoldenTamarin/1.0 (+http://x.example/)", "Potto", b"Indri/2", "*", ""]

# The time of an example depends on the machine.
always = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

# Characters with a meaning in the standard, other parsers, Python, terminals or UTF-16.
ODD = " \t\t#:*%$?/.\\&;<>\"'\x00\x0b\x0c\x1b\x1c\x7f\x85\xa0é漢😀\u2028\u202e\ufeff\uff0f\udce9\udcff"
odd_text = st.text(st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=["Cs"])), max_size=8).map(
    lambda text: text.replace("\r", "").replace("\n", "")
)
blanks = st.sampled_from(["", "", "", " ", "\t", " \t "])

# Pieces of paths; few, so that rules and URLs often match.
PIECES = [
    "/",
    "/",
    "/",
    "a",
    "b",
    "~",
    "A",
    ".",
    "..",
    "/./",
    "/../",
    "?",
    "=",
    "%61",
    "%7E",
    "%7e",
    "%2F",
    "%2f",
]
PIECES += ["%2e", "%2E", "%25", "%", "%4", "*", "$", "+", "é", "%C3%A9", "%c3%a9", "|", " ", "\x00", "\udce9"]
path_text = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)
targets = path_text.map(lambda text: "/" + text)
urls = st.one_of(
    targets, targets.map(lambda target: HOST + target), targets.map(lambda target: HOST + ":81" + target)
)
robots_names = st.sampled_from(ROBOTS)

NAMES = [
    "*",
    "*",
    "tamarin",
    "tam",
    "Tamarin/1.0",
    "golden",
    "POTTO",
    "indri",
    "",
    "*tam",
    "tamarin potto",
    "i",
]
names = st.sampled_from(NAMES)
paths = st.one_of(
    path_text.map(lambda text: "/" + text),
    path_text,
    path_text.map(lambda text: HOST + "/" + text),
    st.sampled_from(["", "", "/", "/robots.txt", "ftp://x/", "mailto:x", "http://garden.example:x/", "//x"]),
)


# --- files that are nearly valid, line by line


@st.composite
def field_lines(draw: st.DrawFn) -> str:
    field, value = draw(
        st.one_of(
            st.tuples(st.sampled_from(["User-agent", "user-AGENT"]), st.one_of(names, names, odd_text)),
            st.tuples(st.sampled_from(["Disallow", "DISALLOW"]), st.one_of(paths, paths, odd_text)),
            st.tuples(
                st.sampled_from(
                    ["Allow", "Dissallow", "User agent", "Sitemap", "Di\u017fallow", "", "Disallow#"]
                ),
                st.one_of(paths, odd_text),
            ),
        )
    )
    parts = [
        draw(blanks),
        field,
        draw(blanks),
        draw(st.sampled_from([":", ":", ":", ":", "", "::", "\uff1a"])),
    ]
    parts += [
        draw(blanks),
        value,
        draw(blanks),
        draw(st.sampled_from(["", "", "#", "# x: y", "#Disallow: /"])),
    ]
    return "".join(parts)


lines = st.one_of(
    field_lines(),
    field_lines(),
    field_lines(),
    st.sampled_from(
        ["", "", " ", "\t ", "#", "  # x", "\x0c", "\x85", "<html>", "<!-- x -->", "hm", "\ufeff"]
    ),
    odd_text,
)
texts = st.lists(lines, max_size=12).map("\n".join)
# Without a mark, UTF-16 is recognized by the NUL in its first character, which must not be NUL itself.
clean_texts = texts.map(lambda text: re.sub("[\ud800-\udfff]", "\ufffd", text).lstrip("\ufeff\0"))


def join(drawn: tuple[Sequence[str], Sequence[str]]) -> str:
    """Join lines with any line ends."""
    some_lines, ends = drawn
    return "".join(line + ends[number % len(ends)] for number, line in enumerate(some_lines))


mixed_texts = st.tuples(
    st.lists(lines, max_size=12), st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=1, max_size=5)
).map(join)
bodies = st.one_of(
    mixed_texts.map(lambda text: text.encode("utf-8", "surrogateescape")),
    mixed_texts.map(lambda text: text.encode("utf-8", "surrogateescape")),
    mixed_texts.map(lambda text: b"\xef\xbb\xbf" + text.encode("utf-8", "surrogateescape")),
    mixed_texts.map(lambda text: ("\ufeff" + text).encode("utf-16-le", "surrogatepass")),
    st.tuples(mixed_texts, st.integers(1, 3)).map(
        lambda drawn: drawn[0].encode("utf-16", "surrogatepass")[: -drawn[1]]
    ),
    st.tuples(st.binary(max_size=8), mixed_texts).map(
        lambda drawn: drawn[0] + drawn[1].encode("utf-8", "replace")
    ),
    st.binary(max_size=60),
)


# --- valid files


class Part(NamedTuple):
    """A record: its names and the values of its rules."""

    names: list[str]
    rules: list[str]


rule_values = st.one_of(targets, path_text, st.just("")).map(lambda text: text.strip(" \t").partition("#")[0])
parts = st.builds(
    Part, st.lists(names, min_size=1, max_size=3), st.lists(rule_values, min_size=1, max_size=5)
)
files = st.lists(parts, min_size=1, max_size=4)


def write(file: list[Part]) -> str:
    """Return the text of some records."""
    records = (
        [*(f"User-agent: {name}" for name in part.names), *(f"Disallow: {rule}" for rule in part.rules)]
        for part in file
    )
    return "\n\n".join(map("\n".join, records)) + "\n"


def read(text: str) -> RobotsTxt:
    return RobotsTxt.parse(text.encode("utf-8", "surrogateescape"))


def contents(robots: RobotsTxt) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return names and values of a file's records, without line numbers."""
    return [(record.names, tuple(rule.value for rule in record.rules)) for record in robots.records]


# --- any input


@always
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


@always
@given(
    mixed_texts,
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


@always
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


@always
@given(bodies, urls, robots_names)
def test_reading_twice_gives_the_same(body: bytes, url: str, robot: str | bytes) -> None:
    first, second = RobotsTxt.parse(body), RobotsTxt.parse(body)
    second.allowed("/", "someone else")
    assert first.findings == second.findings
    assert first.records == second.records
    assert first.decide(url, robot) == second.decide(url, robot) == first.decide(url, robot)


@always
@given(bodies, st.lists(st.tuples(urls, robots_names), max_size=8))
def test_earlier_questions_make_no_difference(body: bytes, questions: list[tuple[str, str | bytes]]) -> None:
    robots = RobotsTxt.parse(body)
    for url, robot in questions:
        assert robots.allowed(url, robot) is RobotsTxt.parse(body).allowed(url, robot)
    for url, robot in questions:
        assert robots.decide(url, robot) == RobotsTxt.parse(body).decide(url, robot)


# --- the file


@always
@given(texts, targets, robots_names)
def test_line_ends_make_no_difference(text: str, target: str, robot: str | bytes) -> None:
    assume(not text.startswith(("\udcff", "\udcfe")))  # would be a byte order mark of UTF-16
    robots = read(text)
    for ends in LINE_ENDS:
        other = read(with_line_ends(text, ends))
        assert other.records == robots.records
        assert other.findings == robots.findings
        assert other.decide(HOST + target, robot) == robots.decide(HOST + target, robot)


@always
@given(clean_texts, targets, robots_names)
def test_encodings_make_no_difference(text: str, target: str, robot: str | bytes) -> None:
    robots = RobotsTxt.parse(text)
    for variant, body in variants(text):
        other = RobotsTxt.parse(body)
        assert other.records == robots.records, variant
        assert other.decide(HOST + target, robot) == robots.decide(HOST + target, robot), variant
        assert [found for found in other.findings if found.clause != "F1"] == list(robots.findings), variant


INVISIBLE = [
    "#",
    " # x",
    "#Disallow: /",
    *(f"{name}: /" for name in sorted(_LATER_FIELDS)),
    "hm",
    "Dissallow: /",
    "\x0c",
    "\xa0",
    ": /",
]


@always
@given(files, st.data())
def test_comments_and_unknown_lines_make_no_difference(file: list[Part], data: st.DataObject) -> None:
    text_lines = write(file).split("\n")
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text_lines)))
        text_lines.insert(place, data.draw(st.sampled_from(INVISIBLE)))
    assert contents(read("\n".join(text_lines))) == contents(read(write(file)))


@always
@given(files)
def test_a_valid_file_is_read_as_written(file: list[Part]) -> None:
    robots = read(write(file))
    assert contents(robots) == [(tuple(part.names), tuple(part.rules)) for part in file]
    assert not {"stray-disallow", "no-blank-line", "no-disallow", "no-colon"} & {
        finding.kind for finding in robots.findings
    }


# --- records


@always
@given(files, robots_names, targets)
def test_records_for_other_robots_make_no_difference(
    file: list[Part], robot: str | bytes, target: str
) -> None:
    """Only the robot's own record, or else those for ``*``, decide (A3, A4)."""
    robots = read(write(file))
    decision = robots.decide(HOST + target, robot)
    if decision.record is None:
        assert not any("*" in part.names for part in file)
        return
    rules = [rule.value for rule in decision.record.rules]
    alone = read(write([Part(["*"], rules)]))
    assert alone.allowed(HOST + target, "anyone") is decision.allowed
    if decision.record in robots.records:
        assert list(decision.record.names) in [part.names for part in file]
    else:
        assert rules == [rule for part in file if "*" in part.names for rule in part.rules]


@always
@given(
    files, targets, st.sampled_from(["", "/2.0", "/2.0 (+http://x.example/)", " 2.0", " (x)", " v2.0b (x)"])
)
def test_a_version_makes_no_difference(file: list[Part], target: str, version: str) -> None:
    robots = read(write(file))
    for robot in ("Tamarin", "Golden Tamarin", "Potto"):
        plain = robots.decide(HOST + target, robot)
        assert robots.decide(HOST + target, robot + version) == plain
        assert robots.decide(HOST + target, f"Mozilla/5.0 (compatible; {robot}{version})") == plain


# --- URLs


@always
@given(files, robots_names, st.lists(targets, min_size=1, max_size=4), st.data())
def test_another_rule_never_allows_more(
    file: list[Part], robot: str | bytes, some: list[str], data: st.DataObject
) -> None:
    before = read(write(file))
    rules = data.draw(st.sampled_from(file)).rules
    rules.insert(data.draw(st.integers(0, len(rules))), data.draw(rule_values))
    after = read(write(file))
    for target in some:
        assert before.allowed(HOST + target, robot) or not after.allowed(HOST + target, robot)


@always
@given(texts, robots_names, st.sampled_from(["", "x", "/", "/../x", "~", "?", "%41", "1", "e", "E", "éa"]))
@example("User-agent: *\nDisallow: /é%7", "Tamarin", "E")
@example("User-agent: *\nDisallow: /a b/..", "Tamarin", "/x")
def test_the_literal_reading_is_kept(text: str, robot: str | bytes, more: str) -> None:
    """A URL that starts with the value of a rule of the robot's record, as written, is forbidden."""
    robots = read(text)
    record = robots.decide(HOST, robot).record
    for rule in record.rules if record else ():
        target = rule.value + more
        if rule.value.startswith("/") and normal(target) != "/robots.txt":
            assert not robots.allowed(HOST + target, robot)
            assert not robots.allowed(HOST + target + "#fragment", robot)
            if not target.startswith("//"):  # this would be a host
                assert not robots.allowed(target, robot)


@always
@given(st.lists(rule_values, min_size=1, max_size=8), targets)
def test_rules_together_forbid_what_each_forbids(rules: list[str], target: str) -> None:
    def forbids(some: list[str]) -> bool:
        return not read(write([Part(["*"], some)])).allowed(HOST + target, "x")

    expected = any(forbids([rule]) for rule in rules)
    assert forbids(rules) is expected
    assert forbids(rules[::-1]) is expected
    assert forbids(sorted(rules)) is expected


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


@always
@given(files, robots_names, targets, st.data())
def test_no_spelling_of_a_forbidden_url_is_allowed(
    file: list[Part], robot: str | bytes, target: str, data: st.DataObject
) -> None:
    part = data.draw(st.sampled_from(file))
    part.rules.append(
        data.draw(st.sampled_from(["/", "/a", normal(target), target, target[: len(target) // 2]]))
    )
    robots = read(write(file))
    form = normal(target)
    spelt = respell(form, data)
    assert normal(spelt) == form
    if not robots.allowed(HOST + form, robot):
        assert not robots.allowed(HOST + spelt, robot)
        if target == target.rstrip(AROUND):
            assert not robots.allowed(HOST + target, robot)
    if normal(target) == "/robots.txt":
        assert robots.allowed(HOST + spelt, robot)


@always
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


@always
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
