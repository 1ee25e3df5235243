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
from scrapy_norobots.rules.parser import Rfc9309RobotParser
from scrapy_norobots.rules.snapshot import Freshness
from scrapy_norobots.settings import DEFAULTS, Config, read
from scrapy_norobots.stores.opening import FORMS
from tests.helpers.running.processes import ROOT
from tests.helpers.samples.settings import NUMBERS, SECTIONS, read_all, upper_end

TIMES = ("TTL", "TTL_MIN", "TIMEOUT", "CRAWL_DELAY_MAX")


def config(**settings: Any) -> Config:
    return Config.from_settings(Settings(settings))


def reports(value: object) -> tuple[str, ...]:
    paths: tuple[str, ...] = read(Settings({"NOROBOTS_REPORT": value}), "NOROBOTS_REPORT")
    return paths


def test_defaults_are_valid() -> None:
    assert read_all() == read_all(**DEFAULTS)
    assert config().freshness == Freshness(600, 86_400, 60, 7 * 86_400)
    assert config().robot is None
    assert config().parser is None


@pytest.mark.parametrize("name", [name for name in DEFAULTS if name.endswith(TIMES)])
def test_times_may_be_fractions_and_strings(name: str) -> None:
    field = name.removeprefix("NOROBOTS_").lower()
    read = config(**{name: "0.5"})
    assert getattr(read if hasattr(read, field) else read.freshness, field) == 0.5


@pytest.mark.parametrize("value", ["403", {"403": "open"}, '{"403": "open"}', '{"403": ', {"2xx": "deny"}, 7])
def test_an_invalid_policy_is_an_error(value: object) -> None:
    with pytest.raises(ValueError, match=f"^NOROBOTS_STATUS_POLICY = {re.escape(repr(value))}: "):
        config(NOROBOTS_STATUS_POLICY=value)


def test_a_policy_may_come_from_the_command_line() -> None:
    assert config(NOROBOTS_STATUS_POLICY=' {"403": "allow"}') == config(
        NOROBOTS_STATUS_POLICY={"403": "allow"}
    )
    assert config(NOROBOTS_STATUS_POLICY="rfc9309") != config()
    assert config(NOROBOTS_STATUS_POLICY=None) == config()  # "not set", as everywhere in Scrapy


FLAGS = [name for name, default in DEFAULTS.items() if isinstance(default, bool) and name != "NOROBOTS_META"]
WHOLE = [name for name in NUMBERS if not name.endswith(TIMES)]


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize(
    "value", [-1, "soon", float("nan"), float("inf"), True, [], "1e999", 1e18, 2**63, 10**400]
)
def test_an_invalid_number_is_an_error(name: str, value: object) -> None:
    range_ = r"at least [01](\.001)? and at most \d+"
    problem = rf"^{name} = {re.escape(repr(value))}: must be a (whole )?number of \w+, {range_}$"
    with pytest.raises(ValueError, match=problem):
        config(**{name: value})


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_may_have_its_upper_limit(name: str) -> None:
    # TTL_MIN must not exceed TTL.
    at_its_end = {name: upper_end(name), "NOROBOTS_TTL": upper_end("NOROBOTS_TTL")}
    assert config(**at_its_end) != config()
    with pytest.raises(ValueError, match=rf"^{name} = "):
        config(**{name: upper_end(name) + 1})


@pytest.mark.parametrize("name", WHOLE)
def test_a_fraction_is_an_error_for_a_whole_number(name: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name} = 1.5: must be a whole number of "):
        config(**{name: 1.5})


@pytest.mark.parametrize("name", ["ROBOTSTXT_OBEY", *FLAGS])
@pytest.mark.parametrize("value", ["maybe", [], {}, float("inf")])
def test_an_invalid_switch_is_an_error(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^{name} = {re.escape(repr(value))}: must be True or False$"):
        read_all(**{name: value})


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


@pytest.mark.parametrize("value", ["maybe", "", "follow", "nofollow, noindex", ["nofollow"], {}, b"noindex"])
def test_another_value_for_meta_tags_is_an_error(value: object) -> None:
    accepted = 'True, False, "nofollow" or "noindex"'
    problem = f"^NOROBOTS_META = {re.escape(repr(value))}: must be {accepted}$"
    with pytest.raises(ValueError, match=problem):
        meta(NOROBOTS_META=value)


def test_copy_meta_is_a_list_of_names() -> None:
    assert config(NOROBOTS_COPY_META="proxy, other").copy_meta == ("proxy", "other")
    assert config(NOROBOTS_COPY_META=' ["proxy", "other"]').copy_meta == ("proxy", "other")
    assert config(NOROBOTS_COPY_META=[]).copy_meta == ()


NO_LISTS = [7, {"proxy": 1}, [1]]
NO_KEYS = ["proxy;bindaddress", ["proxy", "a key"], '{"a": 1}', "proxy bindaddress", [""]]


@pytest.mark.parametrize("value", [*NO_LISTS, *NO_KEYS])
def test_copy_meta_refuses_what_is_not_a_key(value: object) -> None:
    problem = (
        "must be a list of meta keys" if value in NO_LISTS else "'.*' cannot be in a list of meta keys; "
    )
    with pytest.raises(ValueError, match=rf"^NOROBOTS_COPY_META = {re.escape(repr(value))}: {problem}"):
        config(NOROBOTS_COPY_META=value)


@pytest.mark.parametrize("name", ["NOROBOTS_COPY_META", "NOROBOTS_ALSO_OBEY"])
@pytest.mark.parametrize("value", ["[", "[" * 100_000, '["a" "b"]'])
def test_a_list_in_invalid_json_is_an_error(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name} = .*: is not valid JSON \("):
        config(**{name: value})


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


@pytest.mark.parametrize("value", ["rfc9039", ["no.such.Parser"], [7], ["rfc9309", "PythonRobotParser"]])
def test_another_name_of_a_further_parser_is_an_error(value: object) -> None:
    with pytest.raises(ValueError, match=r"^NOROBOTS_ALSO_OBEY = .*: .* cannot be imported: "):
        config(NOROBOTS_ALSO_OBEY=value)


def test_report_paths_may_be_strings_and_paths() -> None:
    assert reports(" a.html, b/c.JSON ") == ("a.html", "b/c.JSON")
    assert reports([Path("a.html"), "b,c.json"]) == ("a.html", "b,c.json")
    assert reports(Path("a.htm")) == ("a.htm",)
    assert reports(None) == reports([]) == ()
    for value in (7, {"a.html": 1}, [7], True):
        with pytest.raises(
            ValueError, match=rf"^NOROBOTS_REPORT = {re.escape(repr(value))}: must be a path or"
        ):
            reports(value)


def test_ttl_min_must_not_exceed_ttl() -> None:
    with pytest.raises(
        ValueError, match=r"^NOROBOTS_TTL_MIN = 20.0: must be at most NOROBOTS_TTL, which is 10"
    ):
        config(NOROBOTS_TTL=10, NOROBOTS_TTL_MIN=20)
    assert config(NOROBOTS_TTL=10).freshness.ttl == 10


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
    with pytest.raises(
        ValueError, match=f"^NOROBOTS_STORE = 7: must be a string; expected {re.escape(FORMS)}$"
    ):
        config(NOROBOTS_STORE=7)


def test_the_name_of_the_robot_is_a_string() -> None:
    assert config(ROBOTSTXT_USER_AGENT="").robot is None
    with pytest.raises(ValueError, match=r"^ROBOTSTXT_USER_AGENT = 7: must be a string"):
        config(ROBOTSTXT_USER_AGENT=7)
    with pytest.raises(ValueError, match=r"^ROBOTSTXT_OBEY = 'maybe': "):
        config(ROBOTSTXT_OBEY="maybe")


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
