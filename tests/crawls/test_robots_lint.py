"""``scrapy robots-lint`` for files and for sites."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.running.commands import errors, run
from tests.helpers.sites import Answer, Site

BAD_FILE = """\
User-agent: FooBot BarBot

Disallow: /a
Dissallow: /x # not for you

User-agent: *
Disallow /y
Disallow: /b /c
Disallow: /z*
"""


BAD_FILE_FINDINGS = """\
{0}:1: warning: The whole value is one robot's name, spaces included, and not a list. [several-names]
{0}:1: hint: Write one line for each: 'User-agent: FooBot', 'User-agent: BarBot'.
{0}:1: warning: The record has no Disallow line, so its robots may fetch everything. [no-disallow]
{0}:1: hint: Write 'Disallow:' below it if the robots may fetch everything.
{0}:3: error: The line is in no record (a blank line ends one), so it applies to no robot. [stray-disallow]
{0}:3: hint: Remove the blank line above if this line belongs to the record of line 1.
{0}:4: error: The field is unknown, so the line is ignored; did you mean Disallow? [misspelt-field]
{0}:4: hint: Write 'Disallow: /x'.
{0}:7: error: The line is neither a field nor a comment, so it is ignored. [no-colon]
{0}:7: hint: Write 'Disallow: /y'.
{0}:8: error: The whole value is one path, spaces included, and not a list. [several-paths]
{0}:8: hint: Write one line for each: 'Disallow: /b', 'Disallow: /c'.
{0}:9: info: '*' and '$' are ordinary characters here; patterns are a later extension. [wildcard]
{0}:9: hint: Write 'Disallow: /z': a rule applies to every path that starts with it.
{0}: 4 errors, 2 warnings, 1 info; 4 of 5 rules without effect
"""


@pytest.mark.parametrize("path", ["my robots.txt", "-"])
def test_lint_writes_lines_in_the_form_of_compilers(tmp_path: Path, path: str) -> None:
    (tmp_path / "my robots.txt").write_text(BAD_FILE)
    done = run(tmp_path, "robots-lint", path, stdin=BAD_FILE)
    assert done.stdout == BAD_FILE_FINDINGS.format("<stdin>" if path == "-" else path)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("User-agent: *\nDisallow: /\n", "no findings; 0 of 1 rule without effect"),
        ("User-agent: *\nDisallow: a\n", "1 warning; 0 of 1 rule without effect"),
        ("", "no findings; no rules"),
        ("# hello", "no findings; no rules"),
    ],
)
def test_lint_of_files_without_errors(tmp_path: Path, text: str, last: str) -> None:
    done = run(tmp_path, "robots-lint", "-", stdin=text)
    assert done.stdout.splitlines()[-1] == f"<stdin>: {last}"
    assert done.returncode == 0


def test_lint_downloads_like_a_crawl(project: Path, mode: str) -> None:
    with Site(BAD_FILE, {"/draft/robots?v=2": Answer("User-agent: *\nDisallow: /\n")}) as site:
        bare = site.url.replace("http://", "HTTP://ann:secret@")
        done = run(project, "robots-lint", bare, f"{site.url}/", f"{site.url}/draft/robots?v=2#x", mode=mode)
    linted = BAD_FILE_FINDINGS.format(f"{site.url}/robots.txt")
    draft = f"{site.url}/draft/robots?v=2: no findings; 0 of 1 rule without effect\n"
    assert done.stdout == linted + linted + draft
    assert done.returncode == 1
    assert sorted(site.targets()) == ["/draft/robots?v=2", "/robots.txt"]
    for hit in site.hits:
        assert (hit.headers["user-agent"], hit.headers["x-signed"]) == ("FooBot/1.0", "yes")
        assert not {"authorization", "cookie", "referer"} & set(hit.headers)


def test_lint_continues_after_an_unreadable_file(tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("User-agent: *\nDisallow: /\n")
    with Site() as site, Site(Answer(status=301, headers={"Location": f"{site.url}/moved"})) as moved:
        site.answers["/moved"] = Answer(status=410)
        wrong = ["http:///x", "http://[::1/", "missing.txt"]
        args = [*wrong, site.url, moved.url, "http://127.0.0.1:1", "good.txt"]
        done = run(tmp_path, "robots-lint", *args)
        with_error = run(tmp_path, "robots-lint", "missing.txt", "-", stdin="Disallow: /x")
        as_json = run(tmp_path, "robots-lint", "--json", *args)
    *problems, refused = errors(done)
    assert problems == [
        "http:///x: only http and https URLs with a host have a robots.txt",
        "http://[::1/: Invalid IPv6 URL",
        "missing.txt: No such file or directory",
        f"{site.url}/robots.txt: answered 404",
        f"{site.url}/moved: answered 410",
    ]
    assert refused.startswith("http://127.0.0.1:1/robots.txt: could not be downloaded (")
    assert done.stdout == "good.txt: no findings; 0 of 1 rule without effect\n"
    assert (done.returncode, with_error.returncode, as_json.returncode) == (2, 2, 2)
    *bad, good = map(json.loads, as_json.stdout.splitlines())
    assert bad[3] == {"path": f"{site.url}/robots.txt", "problem": "answered 404"}
    by_rfc = {"rules": 1, "without_effect": []}
    assert good == {"path": "good.txt", "findings": [], "rules": 1, "without_effect": [], "rfc9309": by_rfc}


def test_lint_says_which_rules_have_no_effect_by_rfc_9309(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text(
        "Disallow: /a\nUser-agent: *\nDisallow: /b\n\nDisallow: /c\nAllow: x\nDisalow /d\n"
        "User-agent:\nAllow: /\n"
    )
    done = run(tmp_path, "robots-lint", "robots.txt")
    assert done.stdout.splitlines()[-1].endswith("; 3 of 4 rules without effect; by RFC 9309, 3 of 6")
    facts = json.loads(run(tmp_path, "robots-lint", "--json", "robots.txt").stdout)
    assert facts["rfc9309"] == {"rules": 6, "without_effect": [1, 6, 9]}


def test_lint_writes_json(tmp_path: Path) -> None:
    done = run(tmp_path, "robots-lint", "--json", "-", stdin=BAD_FILE)
    (file,) = map(json.loads, done.stdout.splitlines())
    assert (file["path"], file["rules"], file["without_effect"]) == ("<stdin>", 5, [3, 4, 7, 8])
    assert len(file["findings"]) == 7
    assert file["findings"][3] == {
        "line": 4,
        "severity": "error",
        "kind": "misspelt-field",
        "clause": "F7",
        "message": "The field is unknown, so the line is ignored; did you mean Disallow?",
        "hint": "Write 'Disallow: /x'.",
        "text": "Dissallow: /x # not for you",
    }
    assert done.returncode == 1
