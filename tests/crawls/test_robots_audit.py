"""``scrapy robots-audit``: what it finds in evidence that was changed, and what it cannot read."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import tracemalloc
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from scrapy.http import Response
from warcio.recordloader import ArcWarcRecord

from scrapy_norobots.features.evidence.audit import Audit
from scrapy_norobots.features.evidence.folders import Folders
from scrapy_norobots.features.evidence.writer import Writer
from tests.helpers.judges.evidence import (
    answers,
    audit,
    change_answers,
    change_decisions,
    decisions,
    files,
    lines_of,
    write_lines,
)
from tests.helpers.running import processes
from tests.helpers.running.commands import command, environment, run
from tests.helpers.running.crawling import ADDON, crawl
from tests.helpers.running.processes import ROOT
from tests.helpers.samples.made_up import ABOUT, TOWN, access, answer, end, made, strict
from tests.helpers.sites import Answer, Site

RULES = b"User-agent: *\nDisallow: /back/\nDisallow: /attic/\nDisallow: /cave?b\n"
Change = Callable[[Path], object]


@pytest.fixture(scope="module")
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


def of_answers(change: Callable[[ArcWarcRecord], ArcWarcRecord | None]) -> Change:
    return lambda folder: change_answers(folder, change)


def of_settings(name: str, value: str) -> Change:
    """Change a field of the warcinfo record, and its digests."""

    def change(record: ArcWarcRecord) -> ArcWarcRecord:
        if record.rec_type == "warcinfo":
            text = record.raw_stream.read().decode()
            body = re.sub(f"(?m)^{name}: .*?\r?$", f"{name}: {value}\r", text).encode()
            record.raw_stream = BytesIO(body)
            record.length, record.payload_length = None, len(body)
        return record

    return of_answers(change)


def is_file(record: ArcWarcRecord) -> bool:
    return record.rec_type == "response" and record.rec_headers.get_header("Norobots-Body-Digest") is not None


def with_another_body(record: ArcWarcRecord) -> ArcWarcRecord:
    """Change a byte of a body, and all digests that WARC tools know."""
    if is_file(record):
        body = record.raw_stream.read().replace(b"/back/", b"/bacc/")
        record.raw_stream = BytesIO(body)
        record.length, record.payload_length = None, len(body)
    return record


def without(kind: Callable[[ArcWarcRecord], bool]) -> Change:
    return of_answers(lambda record: None if kind(record) else record)


def is_missing_file(record: ArcWarcRecord) -> bool:
    return bool(record.http_headers) and record.http_headers.get_statuscode() == "404"


def _as_if_allowed(decision: dict[str, Any]) -> None:
    if decision.pop("sent_as", None):
        decision.update(verdict="allowed", reason="no_rule_matches", line=None, rule=None)


def _without_the_spelling(decision: dict[str, Any]) -> None:
    decision.pop("sent_as", None)


def _by_another_parser(decision: dict[str, Any]) -> None:
    if decision["parser"]:
        decision["parser"] = "TownParser"


def _with_a_digest_of_no_file(decision: dict[str, Any]) -> None:
    if decision["robots_digest"] is None:
        decision["robots_digest"] = "sha256:" + 64 * "0"


FORGED: dict[str, tuple[Change, str]] = {
    "a verdict": (of_one("/back/", verdict="allowed"), "recorded as allowed (line 2"),
    "a whole decision": (
        of_one("/back/", verdict="allowed", reason="no_rule_matches", line=None, rule=None),
        "recorded as allowed (no_rule_matches); judged as forbidden (line 2, '/back/')",
    ),
    "a line number": (of_one("/attic/", line=2), "recorded as forbidden (line 2, '/attic/'); judged as"),
    "a rule": (of_one("/attic/", rule="/"), "(line 3, '/')"),
    "a URL": (of_one("/a", url="http://town.example/a"), "does not belong to the origin http://127.0.0.1:"),
    "a digest": (of_one("/a", robots_digest="sha256:" + 64 * "0"), "the digest of its robots.txt is sha256:"),
    "a time": (of_one("/a", robots_time="2020-01-01T00:00:00.000000Z"), "is stored"),
    "an allowed page by the rule for another": (
        lambda folder: of_one("/a", verdict="forbidden", reason="rule", line=2, rule="/back/",
            sent_as=decisions(folder)[0]["origin"] + "/back/")(folder),
        "recorded as forbidden (line 2, '/back/'); judged as allowed",
    ),
    "a spelling of another origin": (
        of_one("/cave;?b", sent_as="http://town.example/cave?b"),
        "/cave?b', not about 'http://town.example/cave?b' (sent_as)",
    ),
    "an allowed spelling of what is forbidden": (
        lambda folder: change_decisions(folder, _as_if_allowed),
        "recorded as allowed (no_rule_matches); judged as forbidden (line 4, '/cave?b')",
    ),
    "a spelling that is not named": (
        lambda folder: change_decisions(folder, _without_the_spelling),
        "/cave?b', not about 'http://127.0.0.1:",
    ),
    "a digest of no file": (
        lambda folder: change_decisions(folder, _with_a_digest_of_no_file),
        "the digest of its robots.txt is None, not sha256:",
    ),
    "a bad URL": (
        of_one("/back/", verdict="allowed", reason="bad_url", url="http://town.example:99999/"),
        "recorded as allowed, but a URL without an origin is unreachable",
    ),
    "a URL that is called bad": (
        of_one("/back/", verdict="unreachable", reason="bad_url"),
        "dropped as a URL without an origin, but its origin is http://127.0.0.1:",
    ),
    "a robots.txt of another origin": (
        lambda folder: of_one(
            "/back/", verdict="allowed", reason="robots_txt", line=None, rule=None, robots_time=None,
            url=decisions(folder)[0]["origin"] + "/robots.txt", origin="http://town.example",
        )(folder),
        "does not belong to the origin http://town.example",
    ),
    "a robots.txt that is none": (
        of_one("/back/", verdict="allowed", reason="robots_txt", line=None, rule=None, robots_time=None),
        "recorded as robots_txt, but it needs a robots.txt",
    ),
    "a URL that is not http but is": (
        of_one("/back/", verdict="allowed", reason="not_web", line=None, rule=None, robots_time=None),
        "recorded as not_web, but it needs a robots.txt",
    ),
    "a robots.txt that is forbidden": (
        lambda folder: of_one(
            "/back/", reason="robots_txt", robots_time=None,
            url=decisions(folder)[0]["origin"] + "/robots.txt",
            origin=decisions(folder)[0]["origin"],
        )(folder),
        "it is always allowed",
    ),
    "an override": (of_one("/back/", verdict="overridden"), "but not because of dont_obey_robotstxt"),
    "a robot": (of_one("/a", verdict="forbidden"), "judged as allowed"),
    "a byte of a body": (of_answers(with_another_body), "its body has the digest sha256:"),
    "a file that was removed": (without(is_file), "allowed, but no answer for http://127.0.0.1:"),
    "a 404 that was removed": (without(is_missing_file), "allowed, but no answer for http://127.0.0.1:"),
    "a page of a closed site": (
        of_answers(
            lambda record: None if "503" in str(record.http_headers) else record
        ),
        "unreachable, but no answer",
    ),
}  # fmt: skip


def test_untouched_evidence_agrees(crawled: Path) -> None:
    done = audit(crawled)
    assert done.stdout == "3 answers, 8 decisions (4 allowed, 3 forbidden, 1 unreachable): all agree\n"
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", FORGED)
def test_each_forged_change_is_found(evidence: Path, name: str) -> None:
    forge, words = FORGED[name]
    forge(evidence)
    done = audit(evidence)
    assert words in done.stdout
    assert re.search(r": \d+ problems?[,\n]", done.stdout)
    assert done.returncode == 1


def cut_off(folder: Path) -> None:
    """Cut files as a process leaves them that was killed while it wrote."""
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes()[:-7])


def damage(suffix: str) -> Change:
    def change(folder: Path) -> None:
        (path,) = files(folder, suffix)
        data = bytearray(path.read_bytes())
        data[200] ^= 0xFF
        path.write_bytes(data)

    return change


def test_a_file_that_is_cut_off_is_read_up_to_there(evidence: Path) -> None:
    """The last record is that of an answer or two, and the decisions were written in one piece."""
    before = len(answers(evidence))
    cut_off(evidence)
    done = audit("--json", evidence)
    *_, summary = map(json.loads, done.stdout.splitlines())
    assert summary["cut_off"] == 2
    assert summary["answers"] == before - 2  # and the warcinfo record is no answer
    assert done.returncode == 1  # decisions are there, an answer is not


def by_a_town_parser(folder: Path) -> None:
    of_settings("norobots-parsers", '["town.TownParser"]')(folder)
    change_decisions(folder, _by_another_parser)


def in_one_member(folder: Path) -> None:
    for path in files(folder, ".warc.gz"):
        path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes())))


UNREADABLE: dict[str, tuple[Change, str]] = {
    "records that were compressed together": (
        in_one_member,
        ".warc.gz: has several records in one gzip member",
    ),
    "a damaged WARC file": (damage(".warc.gz"), "damaged at byte"),
    "damaged decisions": (damage(".jsonl.gz"), "damaged at byte"),
    "no settings": (
        without(lambda record: bool(record.rec_type == "warcinfo")),
        "no warcinfo record states the settings of its crawl",
    ),
    "an unknown parser": (
        by_a_town_parser,
        "cannot be judged: unknown parser 'town.TownParser'; set NOROBOTS_ALSO_OBEY to it",
    ),
    "a decision without a robot": (of_one("/a", robot=7), "not a decision (TypeError: robot is 7)"),
    "a spelling that is null": (of_one("/cave;?b", sent_as=None), "not a decision (ValueError: sent_as is"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_files_are_reported(evidence: Path, name: str) -> None:
    change, words = UNREADABLE[name]
    change(evidence)
    done = audit(evidence)
    assert words in done.stdout
    assert done.returncode == 2


def test_problems_as_json(evidence: Path) -> None:
    of_one("/a", line=7)(evidence)
    done = audit("--json", evidence)
    problem, summary = map(json.loads, done.stdout.splitlines())
    assert problem["problem"].startswith("http://127.0.0.1:")
    assert re.search(r"\.jsonl\.gz: line \d$", problem["place"])
    assert problem["readable"] is True
    assert summary == {
        "answers": 3,
        "decisions": {"allowed": 4, "forbidden": 3, "unreachable": 1},
        "not_judged": 0,
        "dry_run": 0,
        "allowed_stored": True,
        "cut_off": 0,
        "problems": 1,
        "stopped": False,
    }


def test_what_a_dry_run_has_sent_is_counted(evidence: Path) -> None:
    of_settings("norobots-dry-run", "True")(evidence)
    of_settings("robots", "ignore")(evidence)
    change_decisions(
        evidence, lambda decision: decision.update(dry_run=True) if decision["verdict"] != "allowed" else None
    )
    done = audit(evidence)
    assert done.stdout.endswith(": all agree, 4 sent in a dry run although not allowed\n")
    assert json.loads(audit("--json", evidence).stdout)["dry_run"] == 4


def test_several_folders_are_audited_together(evidence: Path, tmp_path: Path) -> None:
    """For example if the files of a fleet were sorted by kind."""
    (tmp_path / "decisions").mkdir()
    for path in files(evidence, ".jsonl.gz"):
        path.rename(tmp_path / "decisions" / path.name)
    assert audit(evidence, tmp_path / "decisions").returncode == 0
    assert audit(tmp_path / "decisions").returncode == 2


def test_a_file_is_read_once_however_its_folder_is_named(evidence: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(evidence)
    done = audit(evidence, evidence, tmp_path, link)
    assert done.stdout.startswith("3 answers, 8 decisions ")
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "nothing to do: expected FOLDER...\n"),
        (["-"], "no such option: -"),
        (["none"], "none: is not a folder"),
        (["n" * 300], f"{'n' * 300}: File name too long"),
        (["."], ".: has no evidence: no file ends in .warc.gz or .decisions.jsonl.gz"),
    ],
)
def test_bad_arguments(tmp_path: Path, arguments: list[str], words: str) -> None:
    done = run(tmp_path, "robots-audit", *arguments)
    assert words in done.stdout + done.stderr
    assert done.returncode == 2


def test_only_a_hundred_problems_are_printed_as_text(evidence: Path) -> None:
    (path,) = files(evidence, ".jsonl.gz")
    first, *made = lines_of(path)
    write_lines(path, [first, *150 * [line for line in made if line.get("url", "").endswith("/a")], made[-1]])
    of_one("/a", verdict="forbidden")(evidence)
    done = audit(evidence)
    assert len(done.stdout.splitlines()) == 102
    assert "… and 50 more; --json prints all\n" in done.stdout.replace("\\u2026", "…")
    assert len(audit("--json", evidence).stdout.splitlines()) == 151


def test_text_of_a_forger_is_escaped(evidence: Path) -> None:
    of_one("/a", verdict="\x1b[31mallowed\u202e")(evidence)
    done = audit(evidence)
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout


def evidence_of_a_parser(folder: Path) -> tuple[Path, str]:
    """Crawl with the parser of a module in a folder; return the evidence, and the setting with the parser."""
    setting = "NOROBOTS_ALSO_OBEY=town.TownParser"
    spider = "import scrapy\nclass S(scrapy.Spider):\n    name = 's'\n    start_urls = ['URL/', 'URL/x']\n"
    with Site(RULES) as site:
        (folder / "s.py").write_text(spider.replace("URL", site.url))
        settings = (setting, f"ADDONS={json.dumps(ADDON['ADDONS'])}", "NOROBOTS_EVIDENCE=here")
        options = [f"--set={one}" for one in settings]
        crawled = processes.run("scrapy", "runspider", "s.py", *options, cwd=folder, env=environment())
    assert crawled.returncode == 0, crawled.stderr
    return folder / "here", setting


def test_a_parser_of_the_settings_is_known(tmp_path: Path) -> None:
    """A parser that only the evidence names is never imported."""
    (tmp_path / "town.py").write_text(
        "from scrapy.robotstxt import RobotParser\n"
        "class TownParser(RobotParser):\n"
        "    @classmethod\n"
        "    def from_crawler(cls, crawler, robotstxt_body): return cls()\n"
        "    def allowed(self, url, user_agent): return not url.endswith('x')\n"
    )
    folder, setting = evidence_of_a_parser(tmp_path)
    assert [one["verdict"] for one in decisions(folder)].count("forbidden") == 1
    for arguments, status in (([], 2), (["-s", setting], 0)):
        done = run(tmp_path, "robots-audit", *arguments, "here")
        assert done.returncode == status, done.stdout


def test_the_docs_show_the_real_output(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "commands.md").read_text()
    (robots,) = re.findall(r"^```robots.txt\n(.*?)```", page, re.DOTALL | re.MULTILINE)
    (shown,) = re.findall(
        r"^```console\n\$ scrapy robots-audit evidence\n(.*?)```", page, re.DOTALL | re.MULTILINE
    )
    folder = tmp_path / "evidence"
    writer = Writer(folder, "town-20240630T120000Z-host-4711", ABOUT)
    by = access(robots.encode())
    writer.put(answer(by))
    for path in ("", "staff/rota", "staff/open"):
        writer.put(made(f"{TOWN}/{path}", by))
    end(writer)
    of_one("/rota", verdict="allowed", reason="no_rule_matches", line=None, rule=None)(folder)
    assert run(tmp_path, "robots-audit", "evidence").stdout == shown


def test_a_progress_bar_on_a_terminal(crawled: Path) -> None:
    ours, theirs = pty.openpty()
    done = subprocess.run(
        command("robots-audit", str(crawled)),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=theirs,
        check=False,
    )
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert done.returncode == 0
    assert shown.startswith("\r\x1b[K[")
    assert shown.endswith("\r\x1b[K")


# What it must survive


def test_a_folder_that_is_not_read_is_reported(evidence: Path, tmp_path: Path) -> None:
    """A link to a folder is not followed, as it may lead anywhere; it is no problem if the folder is read."""
    other = shutil.copytree(evidence, tmp_path / "other")
    (evidence / "link").symlink_to(other)
    done = audit(evidence)
    assert f"{evidence / 'link'}: is a link to a folder, which is not followed" in done.stdout
    assert done.returncode == 2
    (evidence / "link").unlink()
    (evidence / "loop").symlink_to(evidence)
    assert audit(evidence).returncode == 0


def test_a_folder_that_cannot_be_read_is_reported(evidence: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the system is asked by a fake."""
    (evidence / "closed").mkdir()
    real = os.scandir

    def scandir(path: Any) -> Any:
        if os.fspath(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = Folders([evidence])
    assert found.problems == [(str(evidence / "closed"), "Permission denied")]
    assert len(found.files) == 2


@pytest.mark.parametrize("kind", ["pipe", "loop", "nowhere", "folder"])
def test_what_is_not_a_file_is_reported_and_not_waited_for(evidence: Path, kind: str) -> None:
    path = evidence / "town-1-00001.warc.gz"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(path if kind == "loop" else evidence / "none")
    done = audit(evidence)
    assert done.returncode == (0 if kind == "folder" else 2)
    assert (f"{path}: " in done.stdout) == (kind != "folder")


def test_names_of_files_are_escaped(evidence: Path) -> None:
    name = "\x1b[31mtown\n-00001.decisions.jsonl.gz"
    shutil.copy(files(evidence, ".jsonl.gz")[0], evidence / name)
    done = audit(evidence)
    assert "\\x1b[31mtown\\n" in done.stdout
    assert "\x1b" not in done.stdout
    assert done.returncode == 2


def test_ctrl_c_says_what_was_checked(evidence: Path) -> None:
    (path,) = files(evidence, ".jsonl.gz")
    run_name = path.name.rpartition("-")[0]
    first, *rest = lines_of(path)
    line = next(line for line in rest if line["url"].endswith("/a"))
    write_lines(path, [first, *({**line, "seq": number} for number in range(1, 200_000))])
    # It begins to print before it has read all.
    with subprocess.Popen(
        command("robots-audit", "--json", str(evidence)),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        begun = [process.stdout.readline() for _ in range(10)]
        process.send_signal(signal.SIGINT)
        # `communicate` would lose what has been read ahead.
        output, errors = "".join([*begun, process.stdout.read()]), process.stderr.read()
    summary = json.loads(output.splitlines()[-1])
    assert summary["stopped"] is True
    assert 0 < sum(summary["decisions"].values()) < 199_999, output[:1_000]
    assert run_name in output
    assert (process.returncode, errors) == (2, "")


def test_a_second_ctrl_c_ends_at_once(tmp_path: Path) -> None:
    """The first one waits for what is being read, and a parser may need any time for that."""
    (tmp_path / "town.py").write_text(
        "import os, time\n"
        "from scrapy.robotstxt import RobotParser\n"
        "class TownParser(RobotParser):\n"
        "    @classmethod\n"
        "    def from_crawler(cls, crawler, robotstxt_body): return cls()\n"
        "    def allowed(self, url, user_agent):\n"
        "        if os.environ.get('TOWN_SLEEPS'):\n"
        "            print('asleep', flush=True)\n"
        "            time.sleep(1000)\n"
        "        return True\n"
    )
    folder, setting = evidence_of_a_parser(tmp_path)
    with subprocess.Popen(
        command("robots-audit", "-s", setting, str(folder)),
        cwd=tmp_path,
        env=environment(TOWN_SLEEPS="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asleep\n"
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):  # of two signals at the same moment, it sees one
            process.wait(1)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output, errors) == (2, "", "")


def test_locations_of_many_blanks_are_audited(tmp_path: Path) -> None:
    """A regular expression that backtracks over them would take minutes."""
    headers = {"Location": 15 * [b"/a" + 60_000 * b"\t" + b"b"]}
    writer = Writer(tmp_path, "town-1", ABOUT)
    redirect = Response(TOWN.robots_url, 302, headers=headers)
    writer.put(answer(access())._replace(response=redirect, judged=None, followed_by="redirect"))
    end(writer)
    assert ": all agree\n" in audit(tmp_path).stdout


def test_a_data_url_of_5_mb_is_shortened_and_judged(tmp_path: Path) -> None:
    url = "data:,town" + "x" * 5_000_000
    with Site(RULES) as site:
        settings = {**ADDON, "NOROBOTS_EVIDENCE": str(tmp_path), "URLLENGTH_LIMIT": 0}
        crawl(f"{site.url}/a", url, settings=settings)
    (made_,) = [one for one in decisions(tmp_path) if one["url"].startswith("data:")]
    assert made_["url"] == url[:1_000]
    assert made_["shortened"] == {"url": f"sha256:{hashlib.sha256(url.encode()).hexdigest()}"}
    assert ": all agree\n" in audit(tmp_path).stdout


@pytest.mark.parametrize("kind", ["a body", "a body in a body", "a Content-Encoding", "a line"])
def test_a_bomb_takes_little_memory(tmp_path: Path, kind: str) -> None:
    zeros = gzip.compress(bytes(300_000_000), 1)
    writer = Writer(tmp_path, "town-1", ABOUT)
    by = access()
    response = Response(TOWN.robots_url, body=zeros, headers={"Content-Encoding": "gzip"})
    writer.put(answer(by)._replace(response=response) if kind == "a Content-Encoding" else answer(by))
    end(writer)
    if kind == "a body":
        (path,) = files(tmp_path, ".warc.gz")
        path.write_bytes(path.read_bytes() + zeros)
    elif kind == "a body in a body":
        (path,) = files(tmp_path, ".warc.gz")
        head = b"WARC/1.1\r\nWARC-Type: resource\r\nContent-Length: 300000000\r\n\r\n"
        path.write_bytes(path.read_bytes() + gzip.compress(gzip.compress(head + bytes(300_000_000), 1)))
    elif kind == "a line":
        (path,) = files(tmp_path, ".jsonl.gz")
        path.write_bytes(zeros)
    audit_ = Audit(tmp_path.iterdir(), strict)
    tracemalloc.start()
    assert list(audit_.problems())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 70_000_000


def test_an_empty_folder_name_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, "robots-audit", "")
    assert "an argument is empty: expected a path" in done.stdout + done.stderr
    assert done.returncode == 2


@pytest.mark.parametrize("head", ["", "x", 63 * "a"])
def test_a_head_that_is_none_is_a_usage_error(tmp_path: Path, head: str) -> None:
    done = run(tmp_path, "robots-audit", "--head", head, ".")
    assert f"--head {head}: expected 64 hexadecimal digits" in done.stdout + done.stderr
    assert done.returncode == 2


def test_another_version_of_a_parser_is_named_beside_each_mismatch(evidence: Path) -> None:
    """For example of urllib.robotparser, whose reading has changed with Python."""
    of_settings("norobots-python", "CPython 3.9.1")(evidence)
    assert "3.9.1" not in audit(evidence).stdout
    of_one("/attic/", line=2)(evidence)
    assert "(line 3, '/attic/') (CPython 3.9.1 in the crawl, CPython 3." in audit(evidence).stdout
    for change, words in (
        (of_one("/a", usage=[]), "(usage)"),
        (of_one("/cave;?b", sent_as="http://town.example/"), "(sent_as)"),
        (of_one("/attic/", line=3, parser=None), "with parser None, not 'StrictRobotParser'"),
    ):
        change(evidence)
        assert f"{words} (CPython 3.9.1 in the crawl, CPython 3." in audit(evidence).stdout
