"""The runs in a folder, by the names of their files and the settings in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_norobots.features.evidence.fields import MULTIVALUE, PARSERS, POLICY, PYTHON
from scrapy_norobots.features.evidence.runs import Settings, runs_of
from tests.helpers.samples.made_up import ABOUT


def test_files_are_grouped_by_run_and_number() -> None:
    names = [
        *("a-1-00001.warc.gz", "a-1-00002.warc.gz", "a-1-00001.decisions.jsonl.gz"),
        *("a-1-2-00001.warc.gz", "pages.warc.gz", "notes.txt"),
    ]
    runs, others = runs_of([Path("here") / name for name in names] + [Path("there/a-1-00001.warc.gz")])
    assert [run.name for run in runs] == ["a-1", "a-1-2"]
    first = runs[0]
    assert (sorted(first.answers), sorted(first.decisions)) == ([1, 2], [1])
    assert first.repeated == [Path("there/a-1-00001.warc.gz")]
    assert others == [Path("here/pages.warc.gz")]


def test_missing_files_are_named() -> None:
    (run,), _ = runs_of(Path(f"a-{number:05}.warc.gz") for number in (2, 3, 7))
    assert list(run.missing()) == ["a-00001.warc.gz", "a-00004 to 00006.warc.gz"]


def test_settings_are_those_of_the_crawl() -> None:
    settings = Settings.of(ABOUT)
    assert (settings.multivalue, settings.dry_run) == (False, False)
    assert settings.parser_names == ["StrictRobotParser"]


@pytest.mark.parametrize("name", [POLICY, MULTIVALUE, PARSERS])
@pytest.mark.parametrize("value", ["", "{", "[1]", "null", "[" * 10_000])
def test_settings_that_are_none_are_a_value_error(name: str, value: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # its text is not shown
        Settings.of({**ABOUT, name: value})


def test_missing_settings_are_a_value_error() -> None:
    with pytest.raises(ValueError, match="no settings"):
        Settings.of({name: value for name, value in ABOUT.items() if name != PYTHON})
