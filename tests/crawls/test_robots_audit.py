"""``scrapy robots-audit``: what it finds in evidence that was changed, and what it cannot read."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scrapy.http import Response

from scrapy_norobots.commands.base import CommandError
from scrapy_norobots.commands.robots_audit import files_in
from scrapy_norobots.features.evidence.audit import Audit
from scrapy_norobots.features.evidence.fields import TEXT_MAX, VERSIONS
from scrapy_norobots.features.evidence.writer import Writer
from tests.crawls.test_commands import on_terminal
from tests.helpers.judges.evidence import (
    audit,
    change_decisions,
    decisions,
    files,
    lines_of,
    seal,
    write_lines,
)
from tests.helpers.running import processes
from tests.helpers.running.commands import environment, run
from tests.helpers.running.crawling import ADDON, crawl
from tests.helpers.running.processes import ROOT
from tests.helpers.samples.changes import Change, warc, with_line
from tests.helpers.samples.made_up import SETTINGS, TOWN, access, answer, end, made, strict
from tests.helpers.sites import Answer, Site

RULES = b"User-agent: *\nDisallow: /back/\nDisallow: /attic/\nDisallow: /cave?b\n"


@pytest.fixture(scope="session")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The evidence of a crawl of three sites."""
    folder = tmp_path_factory.mktemp("evidence")
    with Site(RULES) as town, Site() as village, Site(Answer(status=503)) as shut:
        crawl(
            *(f"{town.url}/{path}" for path in ("", "a", "back/", "attic/", "seal;", "cave;?b")),
            f"{village.url}/",
            f"{shut.url}/",
            settings={**ADDON, "RETRY_ENABLED": False, "NOROBOTS_EVIDENCE": str(folder)},
        )
    return folder


@pytest.fixture
def evidence(crawled: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(crawled, tmp_path / "evidence"))


def of_one(path: str, **changes: Any) -> Change:
    """Change the decision on a path."""

    def change(decision: dict[str, Any]) -> None:
        if decision["url"].endswith(path):
            decision.update(changes)

    return lambda folder: change_decisions(folder, change)


def of_settings(**changes: Any) -> Change:
    """Change the settings in the first line."""

    def apply(folder: Path) -> None:
        (path,) = files(folder, ".jsonl.gz")
        first, *rest = lines_of(path)
        first["settings"].update(changes)
        write_lines(path, [first, *rest])
        seal(folder)

    return apply


def test_untouched_evidence_agrees(crawled: Path) -> None:
    done = audit(crawled)
    assert done.stdout == "3 answers, 8 decisions (4 allowed, 3 forbidden, 1 unreachable): all agree\n"
    assert (done.returncode, done.stderr) == (0, "")


def test_a_forged_decision_is_found(evidence: Path) -> None:
    """`test_forgery` has more of them."""
    of_one("/back/", verdict="allowed", reason="no_rule_matches", line=None, rule=None)(evidence)
    done = audit(evidence)
    words = "line None, rule None; judged with verdict 'forbidden', reason 'rule', line 2, rule '/back/'"
    assert words in done.stdout
    assert done.stdout.endswith(": 1 problem\n")
    assert done.returncode == 1


def damage(folder: Path) -> None:
    (path,) = files(folder, ".jsonl.gz")
    path.write_bytes(b"\xff" + path.read_bytes())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (damage, "is damaged near byte"),
        (of_settings(parsers=["town.Town"]), "unknown parser 'town.Town'; set NOROBOTS_ALSO_OBEY to it"),
        (of_one("/a", robot=7), "not a line of evidence (TypeError: "),
    ],
)
def test_unreadable_files_are_reported(evidence: Path, change: Change, words: str) -> None:
    change(evidence)
    done = audit(evidence)
    assert words in done.stdout
    assert done.returncode == 2


def test_problems_as_json(evidence: Path) -> None:
    of_one("/a", line=7)(evidence)
    done = audit("--json", evidence)
    problem, summary = map(json.loads, done.stdout.splitlines())
    assert problem["problem"].startswith("http://127.0.0.1:")
    assert re.search(r"\.jsonl\.gz: line \d+$", problem["place"])
    assert problem["readable"] is True
    assert summary == {
        "answers": 3,
        "decisions": {"allowed": 4, "forbidden": 3, "unreachable": 1},
        "not_judged": 0,
        "dry_run": 0,
        "allowed_stored": True,
        "problems": 1,
    }


def test_what_a_dry_run_has_sent_is_counted(evidence: Path) -> None:
    of_settings(dry_run=True)(evidence)
    done = audit(evidence)
    assert done.stdout.endswith(": all agree, 4 sent in a dry run although not allowed\n")
    assert json.loads(audit("--json", evidence).stdout)["dry_run"] == 4


def test_several_folders_are_audited_together_and_each_file_once(evidence: Path, tmp_path: Path) -> None:
    other = shutil.copytree(evidence, tmp_path / "other")
    link = tmp_path / "links" / "link"
    link.parent.mkdir()
    link.symlink_to(evidence)
    done = audit(evidence, evidence, other, link)
    assert done.stdout.startswith("6 answers, 16 decisions ")
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "nothing to do: expected FOLDER...\n"),
        ([""], "an argument is empty: expected a path"),
        (["none"], "none: No such file or directory"),
        (["n" * 300], f"{'n' * 300}: File name too long"),
        (["."], ".: has no evidence: no file ends in .warc.gz or .decisions.jsonl.gz"),
    ],
)
def test_bad_arguments(tmp_path: Path, arguments: list[str], words: str) -> None:
    done = run(tmp_path, "robots-audit", *arguments)
    assert words in done.stdout + done.stderr
    assert done.returncode == 2


def test_the_docs_show_the_real_output(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "commands.md").read_text()
    (robots,) = re.findall(r"^```robots.txt\n(.*?)```", page, re.DOTALL | re.MULTILINE)
    (shown,) = re.findall(
        r"^```console\n\$ scrapy robots-audit evidence\n(.*?)```", page, re.DOTALL | re.MULTILINE
    )
    folder = tmp_path / "evidence"
    writer = Writer(folder, "town-20240630T120000000000Z-host-4711", SETTINGS)
    by = access(robots.encode())
    writer.put(answer(by))
    for path in ("", "staff/rota", "staff/open"):
        writer.put(made(f"{TOWN}/{path}", by))
    end(writer)
    of_one("/rota", verdict="allowed", reason="no_rule_matches", line=None, rule=None)(folder)
    assert run(tmp_path, "robots-audit", "evidence").stdout == shown


def test_a_terminal_shows_the_progress(crawled: Path, tmp_path: Path) -> None:
    shown = on_terminal(tmp_path, "robots-audit", str(crawled), answers="answers")
    assert ": all agree" in (tmp_path / "answers").read_text()
    assert re.match(r"\r\x1b\[K[\w.-]+: \d+% read", shown)
    assert shown.endswith("\r\x1b[K")


# What it must survive


def test_a_link_to_a_folder_is_an_error(evidence: Path) -> None:
    """It may lead anywhere."""
    (evidence / "link").symlink_to(evidence)
    done = audit(evidence)
    assert f"{evidence / 'link'}: is a link to a folder, which is not followed" in done.stderr
    assert done.returncode == 2


def test_a_folder_that_cannot_be_read_is_an_error(evidence: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the system is asked by a fake."""
    (evidence / "closed").mkdir()
    real = os.scandir

    def scandir(path: Any) -> Any:
        if os.fspath(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(CommandError, match=f"{evidence / 'closed'}: Permission denied"):
        files_in([str(evidence)])


@pytest.mark.parametrize("kind", ["pipe", "loop", "nowhere", "folder"])
def test_what_is_not_a_file_is_reported_and_not_waited_for(evidence: Path, kind: str) -> None:
    path = evidence / "town-1.warc.gz"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(path if kind == "loop" else evidence / "none")
    done = audit(evidence)
    assert done.returncode == (0 if kind == "folder" else 2)
    assert ("town-1.warc.gz: is missing, or not a file" in done.stdout) == (kind != "folder")


def test_names_of_files_and_text_of_a_forger_are_escaped(evidence: Path) -> None:
    of_one("/a", reason="\x1b[31mallowed\u202e")(evidence)
    name = "\x1b[31mtown\n.decisions.jsonl.gz"
    shutil.copy(files(evidence, ".jsonl.gz")[0], evidence / name)
    done = audit(evidence)
    assert "\\x1b[31mtown\\n" in done.stdout
    assert "\\x1b[31mallowed\\u202e" in done.stdout
    assert not set(done.stdout) & set("\x1b\u202e")
    assert done.returncode == 2


def test_ctrl_c_ends_at_once(tmp_path: Path) -> None:
    """Whatever the parser of a crawl does."""
    parser = "tests.helpers.components.parsers.SleepingParser"
    writer = Writer(tmp_path, "town-1", replace(SETTINGS, parsers=[parser]))
    writer.put(answer(access()))
    writer.put(made(f"{TOWN}/a", access()))
    end(writer)
    arguments = ("scrapy", "robots-audit", f"--set=ROBOTSTXT_PARSER={parser}", str(tmp_path))
    with processes.Piped(*arguments, env=environment()) as process:
        assert process.stdout.readline() == "asleep\n"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        assert (process.wait(), output, errors) == (2, "", "stopped before the end\n")


def test_a_data_url_of_1_mb_is_cut_and_not_judged(tmp_path: Path) -> None:
    url = "data:,town" + "x" * 1_000_000
    with Site(RULES) as site:
        settings = {**ADDON, "NOROBOTS_EVIDENCE": str(tmp_path), "URLLENGTH_LIMIT": 0}
        crawl(f"{site.url}/a", url, settings=settings)
    (made_,) = [one for one in decisions(tmp_path) if one["url"].startswith("data:")]
    assert made_["url"] == url[:TEXT_MAX]
    assert audit(tmp_path).stdout.endswith(": all agree, 1 not judged\n")


@pytest.mark.parametrize("kind", ["a record", "a record in a record", "a Content-Encoding"])
def test_a_bomb_takes_little_memory(tmp_path: Path, kind: str) -> None:
    zeros = gzip.compress(bytes(100_000_000), 1)
    writer = Writer(tmp_path, "town-1", SETTINGS)
    by = access()
    response = Response(TOWN.robots_url, body=zeros, headers={"Content-Encoding": "gzip"})
    writer.put(answer(by)._replace(response=response) if kind == "a Content-Encoding" else answer(by))
    end(writer)
    head = b"WARC/1.1\r\nWARC-Type: resource\r\nContent-Length: 100000000\r\n\r\n"
    if kind != "a Content-Encoding":
        bomb = zeros if kind == "a record" else gzip.compress(gzip.compress(head + bytes(100_000_000), 1))
        warc(tmp_path).write_bytes(bomb)
        with_line("record", length=len(bomb))(tmp_path)
    audit_ = Audit(tmp_path.iterdir(), strict)
    tracemalloc.start()
    assert list(audit_.problems())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 70_000_000


def test_another_version_of_a_parser_is_named_beside_each_mismatch(evidence: Path) -> None:
    """For example of urllib.robotparser, whose reading has changed with Python."""
    of_settings(versions={**VERSIONS, "Python": "CPython 3.9.1"})(evidence)
    assert "3.9.1" not in audit(evidence).stdout
    of_one("/attic/", line=2)(evidence)
    assert "judged with line 3 (Python CPython 3.9.1 in the crawl, CPython 3." in audit(evidence).stdout


def test_a_folder_of_nothing_but_a_complete_run_of_no_request_is_whole(tmp_path: Path) -> None:
    crawl(settings={**ADDON, "NOROBOTS_EVIDENCE": str(tmp_path)})
    done = audit(tmp_path)
    assert (done.returncode, done.stdout) == (0, "0 answers, 0 decisions: all agree\n")
