"""The package `standard` from outside."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "statement", ["import scrapy_norobots.standard", "from scrapy_norobots import Decision, RobotsTxt"]
)
def test_it_is_pure(statement: str) -> None:
    """Neither Scrapy nor Twisted comes along, in a process that has not imported them before."""
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
