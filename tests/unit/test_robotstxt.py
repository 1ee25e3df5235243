"""`RobotsTxt`: what it takes and refuses, what it costs, and what importing it brings along."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from scrapy_norobots.standard import Origin, Record, RobotsTxt, Rule, UserAgent, names, rules
from scrapy_norobots.standard.names import Robot

HOST = "http://garden.example"
ORIGIN = Origin("http", "garden.example", 80)
BODY = b"User-agent: tamarin\nDisallow: /nest\n\nUser-agent: *\nDisallow: /heap\n"


def test_a_blank_at_the_end_of_a_url_is_no_part_of_it() -> None:
    robots = RobotsTxt.parse("User-agent: *\nDisallow: /nest%20\n")
    for _ in range(2):  # the second time, the origin is known
        assert robots.allowed(HOST + "/nest ", "Tamarin")
        assert not robots.allowed(HOST + "/nest%20", "Tamarin")


# --- types


@pytest.mark.parametrize("odd", [None, 1, bytearray(b"/"), memoryview(b"/"), ["/"], object()])
def test_other_types_are_type_errors(odd: Any) -> None:
    with pytest.raises(TypeError, match=f"must be bytes or str, not {type(odd).__name__}"):
        RobotsTxt.parse(odd)
    robots = RobotsTxt.parse(BODY)
    robots.allowed(HOST + "/nest", "Tamarin")  # what is remembered of this must not matter
    no_urls: list[Any] = [odd, b"/"]
    for ask in (robots.allowed, robots.decide):
        for url in no_urls:
            with pytest.raises(TypeError, match=f"must be a str, not {type(url).__name__}"):
                ask(url, "Tamarin")
        for url in ("/", "mailto:x"):
            with pytest.raises(TypeError, match=f"must be a str or bytes, not {type(odd).__name__}"):
                ask(url, odd)


@pytest.mark.parametrize(
    "statement", ["import scrapy_norobots.standard", "from scrapy_norobots import Decision, RobotsTxt"]
)
def test_neither_scrapy_nor_twisted_comes_along(statement: str) -> None:
    """In a process that has not imported them before."""
    program = (
        f"import sys; {statement}; import scrapy_norobots.standard as s; "
        "r = s.RobotsTxt.parse(b'User-agent: *\\nDisallow: a'); r.findings; str(r.decide('http://h/', 'x')); "
        "print(*sorted(m.partition('.')[0] for m in sys.modules))"
    )
    modules = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "scrapy_norobots" in modules
    assert not {"scrapy", "twisted", "w3lib", "itemadapter", "zope"} & set(modules)


# --- what it holds


def test_records() -> None:
    robots = RobotsTxt.parse(BODY)
    assert robots.records == (
        Record((UserAgent(1, "tamarin"),), (Rule(2, "/nest"),)),
        Record((UserAgent(4, "*"),), (Rule(5, "/heap"),)),
    )
    assert robots.records is robots.records
    assert [record.is_default for record in robots.records] == [False, True]
    assert repr(robots) == "<RobotsTxt of 2 records>"
    text = "Record(user_agents=(UserAgent(line=4, value='*'),), rules=(Rule(line=5, value='/heap'),))"
    assert repr(robots.records[1]) == text


def count_readings(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list that gets longer by one each time that a file is read."""
    readings: list[object] = []
    read = RobotsTxt._read

    def read_and_note(robots: RobotsTxt) -> Any:
        readings.append(robots.body)
        return read(robots)

    monkeypatch.setattr(RobotsTxt, "_read", read_and_note)
    return readings


def test_a_file_is_read_once_for_each_name(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = count_readings(monkeypatch)
    robots = RobotsTxt.parse(BODY)
    assert not readings
    for number in range(200):
        for header in (f"Tamarin/{number}", f"Mozilla/5.0 (compatible; Tamarin/{number})", b"Potto"):
            assert robots.allowed(f"{HOST}/{number}", header)
            assert not robots.forbids(ORIGIN, f"/{number}", header)
    assert len(readings) == 2
    for number in range(5):
        assert robots.decide(f"{HOST}/nest", f"Tamarin/{number}").rule == (2, "/nest")
    assert len(readings) == 3


def test_a_file_is_read_once_for_robots_that_it_does_not_restrict(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = count_readings(monkeypatch)
    robots = RobotsTxt.parse("User-agent: Potto\nDisallow: /\n", reading="both")
    assert all(robots.allowed(HOST, name) for name in 3 * ("Tamarin", "Aye-aye"))
    assert len(readings) == 2


def test_the_number_of_cached_names_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = count_readings(monkeypatch)
    robots = RobotsTxt.parse(BODY)
    for number in range(1_000):
        assert robots.forbids(ORIGIN, "/heap", f"Potto{number}")
        assert robots.forbids(ORIGIN, "/nest", f"Tamarin{number}")
    assert len(readings) == 2_000
    assert len(robots._rules) <= 129
    for number in range(100):
        assert not robots.decide(f"{HOST}/heap", f"Potto{number}")
    assert len(robots._records) <= 64


def test_names_with_the_same_rules_share_them() -> None:
    robots = RobotsTxt.parse(BODY)
    for name in ("Potto", "Indri", "Tamarin", "*"):
        robots.allowed("/", name)
    rules = {name: robots._rules[Robot.of(name)] for name in ("Potto", "Indri", "Tamarin", "*")}
    assert rules["Potto"] is rules["Indri"] is rules["*"]
    assert rules["Potto"] is not rules["Tamarin"]


def test_after_preparation_a_large_file_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("it was read again")

    robots = RobotsTxt.parse(BODY + b"Disallow: http://garden.example/hole\n" + b"# More.\n" * 10_000)
    assert not robots.is_ready("Potto/1.0")
    robots.prepare(ORIGIN, "Potto/1.0")
    assert robots.is_ready("Potto/1.0")
    assert not robots.is_ready("Tamarin/1.0")
    monkeypatch.setattr(RobotsTxt, "_read", fail)
    monkeypatch.setattr(rules, "_forms_of_all", fail)
    assert robots.forbids(ORIGIN, "/hole", "Potto/1.0")
    assert robots.decide(f"{HOST}/hole", "Potto/2.0").rule == Rule(6, "http://garden.example/hole")
    with pytest.raises(AssertionError, match="read again"):
        robots.forbids(ORIGIN, "/hole", "Tamarin")


# --- memory


def measure(make: Callable[[], object]) -> tuple[object, int]:
    """Return what `make` makes, and how much memory it holds."""
    gc.collect()
    tracemalloc.start()
    try:
        made = make()
        gc.collect()
        return made, tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def used(body: bytes, robot: str, *, why: bool) -> RobotsTxt:
    robots = RobotsTxt.parse(bytes(bytearray(body)))  # a body of its own, to be measured as well
    if why:
        robots.decide(HOST + "/", robot)
    else:
        robots.allowed(HOST + "/", robot)
        robots.allowed(HOST + "/", robot)
    return robots


FILES: dict[str, Callable[[int], bytes]] = {
    "short rules": lambda n: b"User-agent: *\n" + b"".join(b"Disallow: /%d/\n" % i for i in range(n)),
    "long rules": lambda n: (
        b"User-agent: *\n" + b"".join(b"Disallow: /%d/%s\n" % (i, b"x" * 90) for i in range(n))
    ),
    "escapes": lambda n: b"User-agent: *\n" + b"".join(b"Disallow: /%d/%%7e%%c3\n" % i for i in range(n)),
    "not ASCII": lambda n: (
        b"User-agent: *\n" + b"".join(b"Disallow: /%d/%s\n" % (i, "漢字".encode() * 8) for i in range(n))
    ),
    "records": lambda n: b"".join(b"User-agent: bot%d\nDisallow: /x\n\n" % i for i in range(n)),
    "default records": lambda n: b"".join(b"User-agent: *\nDisallow: /%d\n\n" % i for i in range(n)),
    "names": lambda n: b"".join(b"User-agent: bot%d\n" % i for i in range(n)) + b"Disallow: /\n",
    "whole URLs": lambda n: (
        b"User-agent: *\n" + b"".join(b"Disallow: http://h%d.example/x\n" % i for i in range(n))
    ),
    "comments": lambda n: b"User-agent: *\nDisallow: /\n" + b"# Have a look at the nest.\n" * n,
    "a page": lambda n: b"<html>" + b"<p>The nest.\n" * n,
}


@pytest.mark.parametrize("why", [True, False])
@pytest.mark.parametrize("lines", [0, 300])
@pytest.mark.parametrize("file", FILES)
def test_size_is_close_to_the_memory_use(file: str, lines: int, why: bool) -> None:
    body = FILES[file](lines)
    used(body, "bot1", why=why)  # what is imported and cached at first use is not the file's
    robots, truth = measure(lambda: used(body, "bot1", why=why))
    assert isinstance(robots, RobotsTxt)
    # What an empty object takes differs between Pythons. Not to be asked why takes less.
    assert truth / 2.5 - 1_000 < robots.size
    assert robots.size < truth * 2.4 + 1_000 or not why


@pytest.mark.parametrize(
    "text", [b"\xe9" * 60_000, "漢".encode() * 20_000, "😀".encode() * 15_000], ids=["bytes", "BMP", "beyond"]
)
def test_size_includes_escaped_forms(text: bytes) -> None:
    body = b"User-agent: *\nDisallow: /%7e" + text
    robots, truth = measure(lambda: used(body, "bot1", why=True))
    assert isinstance(robots, RobotsTxt)
    assert truth / 2.5 < robots.size


def test_many_robots_take_no_more_memory_than_one() -> None:
    robots = RobotsTxt.parse(BODY)

    def ask() -> None:
        for number in range(1_000):
            robots.allowed(HOST + "/nest", f"Potto{number}")
            robots.decide(HOST + "/nest", b"Tamarin%d" % number)

        names._to_robot.cache_clear()  # which is for all files, and has a bound of its own

    _, taken = measure(ask)
    assert taken < 50_000
    assert not robots.allowed(HOST + "/nest", "Tamarin"), "and the answers are the same"
    assert robots.allowed(HOST + "/nest", "Potto")


@pytest.mark.parametrize("line", ["Disallow: http://{}{}/", "User-agent: {}{}"])
def test_long_hosts_and_names_do_not_fill_the_memory(line: str) -> None:
    def ask() -> None:
        for number in range(20):
            body = f"User-agent: *\n{line.format(number, 'x' * 100_000)}\nDisallow: /\n"
            RobotsTxt.parse(body).allowed(HOST + "/nest", "Tamarin")

    _, taken = measure(ask)
    assert taken < 200_000


def test_checks_compute_no_findings() -> None:
    robots, taken = measure(lambda: RobotsTxt.parse(b"hm\n" * 10_000))
    assert isinstance(robots, RobotsTxt)
    assert taken < 40_000
    assert len(robots.findings) == 10_000


# --- large files: each is read to its end, and what would take quadratic time would be noticed

HUGE: dict[str, Callable[[], str]] = {
    "blank lines": lambda: "User-agent: *\n" + "\n" * 100_000,
    "one line": lambda: "User-agent: *\nDisallow: /" + "x" * 1_000_000,
    "one name": lambda: f"User-agent: {'x' * 1_000_000}\nDisallow: /",
    "names": lambda: "".join(f"User-agent: x{n}\n" for n in range(10_000)) + "Disallow: /",
    "records": lambda: "".join(f"User-agent: x{n}\nDisallow: /\n\n" for n in range(10_000)),
    "default records": lambda: "".join(f"User-agent: *\nDisallow: /{n}\n" for n in range(10_000)),
    "rules of one beginning": lambda: (
        "User-agent: *\n" + "".join(f"Disallow: /{'a' * n}\n" for n in range(500))
    ),
    "escapes": lambda: "User-agent: *\nDisallow: /" + "%25" * 50_000,
    "percent signs": lambda: "User-agent: *\nDisallow: /" + "%" * 50_000,
    "dot segments": lambda: "User-agent: *\nDisallow: /" + "./.././" * 50_000,
    "deep and back": lambda: "User-agent: *\nDisallow: /" + "a/" * 50_000 + "../" * 50_000,
    "open comments": lambda: "<!--" * 100_000,
    "comments": lambda: "<!---->" * 50_000,
    "declarations": lambda: "<??>" * 50_000,
    "blanks around": lambda: " " * 20_000 + "x" + "\t " * 20_000,
    "a long field": lambda: "x" * 40_000 + ":",
    "blanks in a value": lambda: "User-agent: *\nDisallow: /x" + " " * 20_000 + "x",
    "blanks in a name": lambda: f"User-agent: x{' ' * 100_000}x\nDisallow: /",
    "compatible": lambda: f"User-agent: Mozilla/{'(compatible; ' * 20_000}\nDisallow: /",
    "versions": lambda: f"User-agent: x{' 1.2' * 50_000} x\nDisallow: /",
    "hosts": lambda: "User-agent: *\n" + "".join(f"Disallow: http://h{n}/\n" for n in range(5_000)),
    "a host": lambda: f"User-agent: *\nDisallow: http://{'é.' * 5_000}/",
    "a port": lambda: f"User-agent: *\nDisallow: http://h:{'1' * 100_000}/",
}


@pytest.mark.parametrize("kind", HUGE)
def test_huge_files(kind: str) -> None:
    text = HUGE[kind]()
    robots = RobotsTxt.parse(text.encode())
    assert robots.decide(HOST + "/robots.txt", "Tamarin").allowed
    assert str(robots.decide(HOST + "/nest", "Tamarin")).isprintable()
    last = text.count("\n") + 1
    assert all(1 <= finding.line <= last for finding in robots.findings)


@pytest.mark.parametrize(
    "name",
    ["x" * 500_000, "x" + " " * 500_000 + "x", "Mozilla/" + "(compatible;" * 50_000, "x" + " 1.2" * 100_000],
    ids=["long", "blanks", "compatible", "versions"],
)
def test_huge_names(name: str) -> None:
    robots = RobotsTxt.parse(BODY)
    assert not robots.allowed("/heap", name)
    assert len(str(robots.decide("/heap", name))) < 1_000


@pytest.mark.parametrize(
    "target",
    [
        "/./.././.." * 50_000,
        "/%2e%2e" * 50_000,
        "/" + "%" * 100_000,
        "/" + "é" * 100_000,
        "?" + "/.." * 100_000,
    ],
    ids=["dots", "escaped dots", "percent", "not ASCII", "query"],
)
def test_huge_urls(target: str) -> None:
    decision = RobotsTxt.parse("User-agent: *\nDisallow: /").decide(HOST + target, "Tamarin")
    assert not decision.allowed
    assert len(str(decision)) < 7_000
