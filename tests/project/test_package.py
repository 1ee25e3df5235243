"""The package from outside: its public names, what importing it brings along, and where its tests are."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

import scrapy_norobots
from tests.helpers.running.processes import ROOT


def test_every_public_name_can_be_imported() -> None:
    for name in scrapy_norobots.__all__:
        assert getattr(scrapy_norobots, name).__name__ == name
        assert name in dir(scrapy_norobots)


def test_a_missing_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Robot'"):
        getattr(scrapy_norobots, "Robot")  # noqa: B009  # mypy knows that it is not there


def test_importing_installs_no_reactor() -> None:
    code = """
import sys, scrapy_norobots
for name in scrapy_norobots.__all__:
    getattr(scrapy_norobots, name)
    if "twisted.internet.reactor" in sys.modules:
        sys.exit(name)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_each_module_has_a_test_file_of_its_name() -> None:
    """The `__init__` of a package goes by the package's name; that of the whole is tested here.

    An `__init__` that has only a docstring needs no test. The parts of the readings are tested by clauses.
    """
    package = ROOT / "scrapy_norobots"
    parts = (
        package / "standard" / f"{name}.py"
        for name in ("lines", "names", "records", "rules", "groups", "patterns")
    )
    whole = (package / "__init__.py", package / "_version.py", *parts)
    modules = [
        path.parent.name if path.stem == "__init__" else path.stem
        for path in package.rglob("*.py")
        if path not in whole and len(ast.parse(path.read_text()).body) > 1
    ]
    tested = {
        path.stem.removeprefix("test_")
        for folder in ("unit", "crawls")
        for path in (ROOT / "tests" / folder).glob("test_*.py")
    }
    assert len(modules) > 40
    assert sorted(set(modules) - tested) == []
    assert len(modules) == len(set(modules)), "two modules share a name, and the test file of one of them"
