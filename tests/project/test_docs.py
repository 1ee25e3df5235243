"""The docs say what is so: log lines, meta keys, presets, examples of settings; and no link leads nowhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import scrapy

from scrapy_norobots.features import FEATURES
from scrapy_norobots.features.report.counters import Counters, facts_of
from scrapy_norobots.load.fetch import ROBOTS_DOWNLOAD
from scrapy_norobots.rules.access import NOT_NOW, PRESETS, Judge, StatusPolicy
from scrapy_norobots.rules.snapshot import Freshness, Snapshot
from scrapy_norobots.settings import DEFAULTS
from scrapy_norobots.standard import Origin, RobotsTxt
from scrapy_norobots.stores import REDIS_SCHEMES
from scrapy_norobots.waiting.source import FILTERED
from tests.helpers.running.processes import ROOT
from tests.helpers.samples.settings import read_all
from tests.project.tables import PARTS, Part, defaults, place, write

DOCS = ROOT / "docs"
PAGES = [*ROOT.glob("*.md"), *DOCS.glob("*.md")]
SOURCES = [*(ROOT / "scrapy_norobots").rglob("*.py")]
LEVELS = {"debug": "DEBUG", "info": "INFO", "warning": "WARNING", "error": "ERROR", "exception": "ERROR"}


def names(pages: list[Path]) -> list[str]:
    return [page.relative_to(ROOT).as_posix() for page in pages]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_link_from_the_package_to_a_section_leads_there() -> None:
    files = (ROOT / "scrapy_norobots").rglob("*.py")
    links = {link for file in files for link in re.findall(r"([\w-]+)\.html#([\w-]+)", file.read_text())}
    assert len(links) > 3
    assert {link for link in links if link[1] not in anchors(DOCS / f"{link[0]}.md")} == set()


def test_the_overview_lists_every_page_once_and_the_site_has_the_same_order() -> None:
    listed = re.findall(r"^( *)- \[.+?\]\((.+?)\.md\)", (DOCS / "README.md").read_text(), re.MULTILINE)
    # On the site, these two are pages that include a file of the repository.
    included = {"../CONTRIBUTING": "contributing", "../CHANGELOG": "changelog"}
    pages = [(included.get(page, page), bool(indent)) for indent, page in listed]
    assert sorted(page for page, _ in pages) == sorted(
        {page.stem for page in DOCS.glob("*.md")} - {"README", "index"}
    )
    # The site lists the others below these (docs/conf.py).
    entries = re.findall(r"^[\w-]+$", (DOCS / "index.md").read_text(), re.MULTILINE)
    assert entries == [page for page, is_below in pages if not is_below]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.make.__name__)
def test_what_comes_from_the_code_is_as_the_code_makes_it(part: Part) -> None:
    # `python -m tests.project.tables` writes it.
    assert part.pattern.findall(part.page.read_text()) == part.make()


def test_nothing_is_written_below_a_wrong_heading(tmp_path: Path) -> None:
    (part,) = (one for one in PARTS if one.make is defaults)
    page = tmp_path / "settings.md"
    page.write_text(part.page.read_text().replace("### `NOROBOTS_TTL`\n", ""))
    before = page.read_text()
    with pytest.raises(SystemExit, match="write '### `NOROBOTS_TTL`'"):
        write(part._replace(page=page))
    assert page.read_text() == before


def test_the_section_of_the_store_has_every_scheme() -> None:
    section = sections((DOCS / "settings.md").read_text())["NOROBOTS_STORE"]
    assert set(re.findall(r"[`\"]([\w+]+)://", section)) == {"sqlite", *REDIS_SCHEMES}


def sections(page: str) -> dict[str, str]:
    return dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("name", DEFAULTS)
def test_each_setting_has_an_example_that_is_valid_and_not_the_default(name: str) -> None:
    (example,) = re.findall(
        r"^```python\n(.*?)^```", sections((DOCS / "settings.md").read_text())[name], re.MULTILINE | re.DOTALL
    )
    lines = [line for line in example.splitlines() if not line.startswith("# ")]
    assert lines
    for line in lines:
        assigned: dict[str, Any] = {}
        exec(line, {}, assigned)
        assert list(assigned) == [name]
        assert read_all(**assigned) != read_all()


def test_the_docs_have_every_preset() -> None:
    page = (DOCS / "download-failures.md").read_text().partition("\n## Example")[0]
    (head, _, *rows) = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith("|")
    ]
    assert re.findall(r"`(\w+)`", " ".join(head[1:])) == list(PRESETS)
    samples = {
        "401": (401, 403),
        "407": tuple(map(int, NOT_NOW)),
        "other": (404,),
        "3xx": (302, 304),
        "5xx": (503, 999),
        "`error`": (None,),
    }
    table = {row[0]: row[1:] for row in rows if row[0] != "2xx"}
    origin = Origin("http", "town.example", 80)
    for start, statuses in samples.items():
        ((temporary, *actions),) = (cells for key, cells in table.items() if key.startswith(start))
        judge = Judge(StatusPolicy.of("allow"), Freshness(0, 0, 0, 0), RobotsTxt.parse)
        outcomes = [judge.judge(Snapshot(origin, origin.robots_url, 0, status)) for status in statuses]
        assert {outcome.temporary for outcome in outcomes} == {temporary == "yes"}, start
        for preset, action in zip(PRESETS, actions, strict=True):
            policy = StatusPolicy.of(preset)
            assert {policy.look_up(status)[1] for status in statuses} == {action.partition(",")[0]}, start
    assert len(table) == len(samples)


def test_the_docs_have_every_meta_key_of_the_plugin() -> None:
    used = {ROBOTS_DOWNLOAD, FILTERED}
    for file in SOURCES:
        text = file.read_text()
        used.update(re.findall(r'\bmeta(?:\.get\(|\.pop\(|\[)"(\w+)"', text))
        used.update(re.findall(r'"(\w+)" (?:not )?in \w+\.meta\b', text))
    scrapys = "".join(file.read_text() for file in Path(scrapy.__file__).parent.rglob("*.py"))
    ours = {key for key in used if f'"{key}"' not in scrapys and f"'{key}'" not in scrapys}
    page = (DOCS / "api.md").read_text()
    documented = set(re.findall(r"^\| `(\w+)` \| re", page, re.MULTILINE))
    # Scrapy's own keys: one that its older versions do not know, one that means a little less here.
    assert documented == ours - {"is_start_request"} | {"dont_obey_robotstxt"}
    assert "dont_obey_robotstxt" in used


def test_the_docs_have_every_key_of_a_json_report() -> None:
    table = (DOCS / "report.md").read_text().partition("## The JSON report")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(facts_of(Counters(0), {}))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_middleware_takes_the_spider_that_older_versions_of_scrapy_pass(page: Path) -> None:
    for arguments in re.findall(r"def process_request\((.+?)\)", page.read_text()):
        assert arguments == "self, request, spider=None"


def test_the_table_of_the_features_has_every_feature() -> None:
    table = (DOCS / "how-it-works.md").read_text().partition("| feature |")[2].partition("\n\n")[0]
    features = {place(Path(str(one.__file__))) for one in FEATURES}
    assert set(re.findall(r"^\| `(.+?)` \|", table, re.MULTILINE)) == features


def templates() -> Iterator[tuple[str, str]]:
    """Each level and message of the package's log calls; the level is "any" where it is worked out."""
    for file in SOURCES:
        for node in ast.walk(ast.parse(file.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            name, arguments = node.func.attr, node.args
            if name in LEVELS and ast.unparse(node.func.value) == "logger":
                yield LEVELS[name], message(arguments[0])
            elif name in ("log", "_log") and isinstance(arguments[1], ast.Constant):
                level = arguments[0]
                yield level.attr if isinstance(level, ast.Attribute) else "any", message(arguments[1])


def message(node: ast.expr) -> str:
    assert isinstance(node, ast.Constant), ast.unparse(node)
    return str(node.value)


def matches(template: str, line: str) -> bool:
    if template == "%s":  # the summary, whose first line the docs show
        return line == "robots.txt in this crawl (town)"
    literal = re.split(r"%(?:\(\w+\))?[sdgr]", template)
    return re.fullmatch(".*".join(map(re.escape, literal)), line) is not None


def test_the_docs_have_every_log_line_and_no_other() -> None:
    page = (DOCS / "log-lines.md").read_text()
    lines = re.findall(r"^- `(DEBUG|INFO|WARNING|ERROR): (.+?)`$", page, re.MULTILINE)
    logged = list(templates())
    assert len(logged) > 10
    for level, template in logged:
        assert any(level in ("any", said) and matches(template, line) for said, line in lines), template
    for said, line in lines:
        assert any(level in ("any", said) and matches(template, line) for level, template in logged), line
