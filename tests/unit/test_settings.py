"""Settings: defaults, errors, and their documentation."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scrapy.robotstxt import PythonRobotParser
from scrapy.settings import Settings

from scrapy_norobots.features.metatag import MetaConfig
from scrapy_norobots.rules.parser import Rfc9309RobotParser, StrictRobotParser
from scrapy_norobots.rules.snapshot import Freshness
from scrapy_norobots.settings import DEFAULTS, Config, read
from scrapy_norobots.stores.opening import FORMS
from tests.helpers.running.processes import ROOT
from tests.helpers.samples.settings import NUMBERS, SECTIONS, read_all, upper_end
from tests.unit.test_values import OFF

TIMES = ("TTL", "TTL_MIN", "TIMEOUT", "CRAWL_DELAY_MAX")
LISTS = ("COPY_META", "ALSO_OBEY")


def config(**settings: Any) -> Config:
    return Config.from_settings(Settings(settings))


def reports(value: object) -> tuple[str, ...]:
    paths: tuple[str, ...] = read(Settings({"NOROBOTS_REPORT": value}), "NOROBOTS_REPORT")
    return paths


def test_defaults_are_valid() -> None:
    assert read_all() == read_all(**DEFAULTS)
    assert config().freshness == Freshness(600, 86_400, 60, 7 * 86_400)
    assert config().robot is config(ROBOTSTXT_USER_AGENT="").robot is None
    assert config().parser is StrictRobotParser


FLAGS = [name for name, default in DEFAULTS.items() if isinstance(default, bool) and name != "NOROBOTS_META"]
WHOLE = [name for name in NUMBERS if not name.endswith(TIMES)]
RANGE = r"at least [01](\.001)? and at most \d+$"
NO_NUMBERS = [-1, "soon", float("nan"), float("inf"), True, [], "1e999", 1e18, 2**63, 10**400]
NO_META = ["maybe", "", "follow", "nofollow, noindex", ["nofollow"], {}, b"noindex"]
NO_KEYS = ["proxy;bindaddress", ["proxy", "a key"], '{"a": 1}', "proxy bindaddress", [""]]
NO_PARSERS = ["rfc9039", ["no.such.Parser"], [7], ["rfc9309", "PythonRobotParser"]]

# A setting, values that it must not have, and what the error says of them.
INVALID: list[tuple[str, list[Any], str]] = [
    (
        "NOROBOTS_STATUS_POLICY",
        ["403", {"403": "open"}, '{"403": "open"}', '{"403": ', {"2xx": "deny"}, 7],
        "",
    ),
    *((name, NO_NUMBERS, rf"must be a (whole )?number of \w+, {RANGE}") for name in NUMBERS),
    *((name, [1.5], "must be a whole number of ") for name in WHOLE),
    *(
        (name, ["maybe", [], {}, float("inf")], "must be True or False$")
        for name in ["ROBOTSTXT_OBEY", *FLAGS]
    ),
    ("NOROBOTS_META", NO_META, 'must be True, False, "nofollow" or "noindex"$'),
    ("NOROBOTS_COPY_META", [7, {"proxy": 1}, [1]], "must be a list of meta keys"),
    ("NOROBOTS_COPY_META", NO_KEYS, "'.*' cannot be in a list of meta keys; "),
    *((f"NOROBOTS_{name}", ["[", "[" * 100_000, '["a" "b"]'], r"is not valid JSON \(") for name in LISTS),
    ("NOROBOTS_ALSO_OBEY", NO_PARSERS, ".* cannot be imported: "),
    ("NOROBOTS_REPORT", [7, {"a.html": 1}, [7]], "must be a path or"),
    *((f"NOROBOTS_{name}", [True, 1], "must be (a|the)") for name in OFF),
    ("NOROBOTS_STORE", [7], f"must be a string; expected {re.escape(FORMS)}$"),
    ("ROBOTSTXT_USER_AGENT", [7], "must be a string"),
]


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [(name, value, problem) for name, values, problem in INVALID for value in values],
)
def test_an_invalid_value_is_an_error_that_names_it(name: str, value: object, problem: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name} = {re.escape(repr(value))}: {problem}"):
        read_all(**{name: value})


@pytest.mark.parametrize("name", [name for name in DEFAULTS if name.endswith(TIMES)])
def test_times_may_be_fractions_and_strings(name: str) -> None:
    field = name.removeprefix("NOROBOTS_").lower()
    read = config(**{name: "0.5"})
    assert getattr(read if hasattr(read, field) else read.freshness, field) == 0.5


def test_a_policy_may_come_from_the_command_line() -> None:
    assert config(NOROBOTS_STATUS_POLICY=' {"403": "allow"}') == config(
        NOROBOTS_STATUS_POLICY={"403": "allow"}
    )
    assert config(NOROBOTS_STATUS_POLICY="rfc9309") != config()
    assert config(NOROBOTS_STATUS_POLICY=None) == config()  # "not set", as everywhere in Scrapy


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_may_have_its_upper_limit(name: str) -> None:
    assert read_all(**{name: upper_end(name)}) != read_all()
    with pytest.raises(ValueError, match=rf"^{name} = "):
        read_all(**{name: upper_end(name) + 1})


def meta(**settings: Any) -> MetaConfig:
    return MetaConfig.from_settings(Settings(settings))


@pytest.mark.parametrize(
    ("value", "nofollow", "noindex"),
    [
        *((value, True, True) for value in (True, 1, "True", "true", "1")),
        *((value, False, False) for value in (None, False, 0, "False", "false", "0")),
        *((value, True, False) for value in ("nofollow", "NOFOLLOW")),
        *((value, False, True) for value in ("noindex", "NoIndex")),
    ],
)
def test_meta_tags_are_obeyed_in_whole_or_in_part(value: object, nofollow: bool, noindex: bool) -> None:
    read = meta(NOROBOTS_META=value, ROBOTSTXT_USER_AGENT="FooBot")
    assert [read.obey in (True, word) for word in ("nofollow", "noindex")] == [nofollow, noindex]
    assert (read.dry_run, read.robot) == (False, "FooBot")


def test_copy_meta_is_a_list_of_names() -> None:
    assert config(NOROBOTS_COPY_META="proxy, other").copy_meta == ("proxy", "other")
    assert config(NOROBOTS_COPY_META=' ["proxy", "other"]').copy_meta == ("proxy", "other")
    assert config(NOROBOTS_COPY_META=[]).copy_meta == ()


RFC9309, PYTHON = "scrapy_norobots.Rfc9309RobotParser", "scrapy.robotstxt.PythonRobotParser"


@pytest.mark.parametrize(
    "value",
    [
        *(["rfc9309", PYTHON], ["RFC9309", PythonRobotParser], (RFC9309, PYTHON)),
        *(f"rfc9309, {PYTHON}", f'["Rfc9309", "{PYTHON}"]'),
    ],
)
def test_further_parsers_may_be_names_classes_and_import_paths(value: object) -> None:
    assert config(NOROBOTS_ALSO_OBEY=value).also_obey == (Rfc9309RobotParser, PythonRobotParser)


def test_report_paths_may_be_strings_and_paths() -> None:
    assert reports(" a.html, b/c.JSON ") == ("a.html", "b/c.JSON")
    assert reports([Path("a.html"), "b,c.json"]) == ("a.html", "b,c.json")
    assert reports(Path("a.htm")) == ("a.htm",)
    assert reports(None) == reports([]) == ()


# Values of any type, and strings and numbers that are almost valid.
TEXTS = [
    "", "1", "-1", "1e999", "nan", "True", "{", '{"403": "allow"}', "a.html,b", "memory", "redis://", "a.b.c",
]  # fmt: skip
ODD = [*TEXTS, 10**400, 1e308, object(), int, Path("a.html"), Decimal("sNaN"), Fraction(1, 3)]
SIMPLE = [st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.binary(max_size=8)]
ANYTHING = st.recursive(
    st.one_of(*SIMPLE, st.sampled_from(ODD)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.text(max_size=4) | st.integers(), inner, max_size=3),
    ),
    max_leaves=4,
)
OTHERS = ["ROBOTSTXT_OBEY", "ROBOTSTXT_USER_AGENT", "ROBOTSTXT_PARSER", "JOBDIR"]


@given(st.dictionaries(st.sampled_from([*DEFAULTS, *OTHERS]), ANYTHING, min_size=1, max_size=4))
@example({"NOROBOTS_STATUS_POLICY": '{"403": ' + "[" * 100_000})
@example({"JOBDIR": 1})
def test_any_value_is_read_or_a_value_error(values: dict[str, object]) -> None:
    """An invalid value raises only `ValueError`, with the setting and the value."""
    for reads in SECTIONS:
        try:
            reads.from_settings(Settings(values))
        except ValueError as error:
            name, equals, _ = str(error).partition(" = ")
            assert equals
            assert name in values


def test_the_store_depends_on_the_setting_and_the_job() -> None:
    assert config().store == config(NOROBOTS_STORE="").store == "memory"
    assert config(JOBDIR="jobs/1").store == "sqlite:///jobs/1/robots.sqlite"
    assert config(JOBDIR="/jobs/1").store == "sqlite:////jobs/1/robots.sqlite"
    assert config(JOBDIR="jobs/1", NOROBOTS_STORE="memory").store == "memory"


def test_an_unknown_setting_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    config(NOROBOTS_TIMEOUTS=3, NOROBOTS_XYZ=1, NO_ROBOTS_TTL=1, NOROBOT_STORE="memory")
    assert [record.getMessage() for record in caplog.records] == [
        "Unknown setting NOROBOTS_TIMEOUTS is ignored; did you mean NOROBOTS_TIMEOUT?",
        "Unknown setting NOROBOTS_XYZ is ignored",
        "Unknown setting NO_ROBOTS_TTL is ignored; did you mean NOROBOTS_TTL?",
        "Unknown setting NOROBOT_STORE is ignored; did you mean NOROBOTS_STORE?",
    ]


def test_the_docs_have_every_stat_that_the_code_counts() -> None:
    counted = set()
    for file in Path(ROOT / "scrapy_norobots").rglob("*.py"):
        text = file.read_text()
        counted.update(re.findall(r'"((?:norobots|robotstxt)/[\w/]+)', text))
        counted.update(f"norobots/retry/{what}" for what in re.findall(r'\b_?wait\.send\b.*"(\w+)"\)', text))
    counted.remove("norobots/retry/")
    page = (ROOT / "docs" / "report.md").read_text().partition("\n## Stats\n")[2]
    documented = {
        name.partition("<")[0].rstrip("/") for name in re.findall(r"^\| `(.+?)`", page, re.MULTILINE)
    }
    assert {name.rstrip("/") for name in counted} == documented


NOT_A_PARSER = "tests.helpers.components.parsers.NotAParser"


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        (
            "ALSO_OBEY",
            [NOT_A_PARSER],
            f"{NOT_A_PARSER!r} must be a RobotParser class: ",
        ),
        ("ALSO_OBEY", 7, "must be a list of parser classes"),
        ("ALSO_ROBOTS", [""], "'' cannot be in a list of names of robots"),
        ("ALSO_ROBOTS", ["/1.0"], "'/1.0' cannot be in a list of names of robots"),
        ("ALSO_ROBOTS", "GPTBot CCBot, X", "'GPTBot CCBot' cannot be in a list of names of robots"),
        ("ALSO_ROBOTS", [7], "must be a list of names of robots"),
        ("ALSO_ROBOTS", 7, "must be a list of names of robots"),
        ("ALSO_ROBOTS", [f"bot{number}" for number in range(33)], "must be a list of at most 32 names"),
        ("PURPOSES", ["training"], "unknown purpose 'training'; choose from search, ai-input, ai-train"),
        ("PURPOSES", 7, "must be a list of purposes"),
        ("PURPOSES", [["search"]], "must be a list of purposes"),
    ],
)
def test_an_invalid_list_is_an_error(name: str, value: object, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"NOROBOTS_{name} = {value!r}: {problem}")):
        read_all(**{f"NOROBOTS_{name}": value})
