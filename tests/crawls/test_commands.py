"""``scrapy robots-check`` and ``scrapy robots-lint``, run as users run them."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from scrapy.settings import default_settings

from tests import processes
from tests.crawling import MODE_SETTINGS, crawl
from tests.processes import ROOT
from tests.sites import Answer, Site

ROBOTS = """\
User-agent: FooBot
Disallow: /foo/

User-agent: *
Disallow: /staff/
Allow: /staff/open
Disallow: /*.gif
"""

Done = subprocess.CompletedProcess[str]


def command(name: str, *args: str) -> list[str]:
    return [sys.executable, "-m", "scrapy", name, *args]


def environment(**changes: str) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_")}
    ours.pop("NO_COLOR", None)
    return {**ours, "TERM": "xterm", "PYTHONIOENCODING": "utf-8", **changes}


def run(cwd: Path, name: str, *args: str, stdin: str | bytes = "", mode: str = "") -> Done:
    """Run a command; whatever becomes of it, it must not show a traceback."""
    if mode == "no reactor" and not hasattr(default_settings, "TWISTED_REACTOR_ENABLED"):
        pytest.skip("this version of Scrapy cannot run without a reactor")
    options = [f"--set={key}={value}" for key, value in MODE_SETTINGS.get(mode, {}).items()]
    done = processes.run(
        "scrapy", name, *options, *args, cwd=cwd, env=environment(), input=stdin, timeout=120
    )
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return done


def errors(done: Done) -> list[str]:
    """Return what is on standard error, but for retries: older versions of Scrapy always log them."""
    quiet = hasattr(default_settings, "RETRY_GIVE_UP_LOG_LEVEL")
    return [line for line in done.stderr.splitlines() if quiet or "Gave up retrying" not in line]


def words(done: Done) -> list[str]:
    return [line.split()[0] for line in done.stdout.splitlines()]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that does what a check must not: a pipeline, a feed, a job, requests of its own."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = town.settings\n")
    (tmp_path / "town").mkdir()
    (tmp_path / "town" / "__init__.py").touch()
    (tmp_path / "town" / "settings.py").write_text(
        "BOT_NAME = 'town'\n"
        "ROBOTSTXT_OBEY = False\n"
        "USER_AGENT = 'FooBot/1.0'\n"
        "LOG_STDOUT = True\n"
        "JOBDIR = 'job'\n"
        "CLOSESPIDER_TIMEOUT = 1\n"
        "FEEDS = {'items.json': {'format': 'json', 'overwrite': True}}\n"
        "ITEM_PIPELINES = {'town.parts.Pipeline': 300}\n"
        "SPIDER_MIDDLEWARES = {'town.parts.Starter': 300}\n"
        "DOWNLOADER_MIDDLEWARES = {'town.parts.Signer': 300}\n"
    )
    (tmp_path / "town" / "parts.py").write_text(
        "from pathlib import Path\n"
        "class Pipeline:\n"
        "    def open_spider(self, spider): Path('opened').touch()\n"
        "    def process_item(self, item, spider): return item\n"
        "class Starter:\n"
        "    def __init__(self): Path('started').touch()\n"
        "class Signer:\n"
        "    def process_request(self, request, spider=None): request.headers['X-Signed'] = 'yes'\n"
    )
    (tmp_path / "items.json").write_text("[]")
    return tmp_path


# Both


@pytest.mark.parametrize("name", ["robots-check", "robots-lint"])
def test_options_of_a_crawl_write_over_nothing(tmp_path: Path, name: str) -> None:
    """As when a user puts them behind the command of a crawl that is paused."""
    queue = tmp_path / "job" / "requests.queue"
    queue.mkdir(parents=True)
    (queue / "active.json").write_text('{"0": "what is left to do"}')
    options = {
        "JOBDIR": "job",
        "FEEDS": '{"items.json": {"format": "json"}}',
        "ITEM_PIPELINES": '{"no.such.Pipeline": 1}',
        "SPIDER_MIDDLEWARES": '{"no.such.Middleware": 1}',
        "SCHEDULER": "no.such.Scheduler",
        "ROBOTSTXT_OBEY": "False",
        "NOROBOTS_DRY_RUN": "True",
        "NOROBOTS_REPORT": "report.json",
        "NOROBOTS_STORE": "sqlite:///robots.sqlite",
    }
    with Site(ROBOTS) as site:
        done = run(
            tmp_path,
            name,
            *(f"--set={key}={value}" for key, value in options.items()),
            f"{site.url}/robots.txt",
        )
    assert done.returncode in (0, 1), done.stderr
    assert site.targets() == ["/robots.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["job"]
    assert [path.name for path in (tmp_path / "job").iterdir()] == ["requests.queue"]
    assert (queue / "active.json").read_text() == '{"0": "what is left to do"}'


def test_scrapy_lists_both_outside_a_project(tmp_path: Path) -> None:
    listed = run(tmp_path, "-h").stdout
    assert "no active project" in listed
    assert re.search(r"^  robots-check +\w.*\n  robots-lint +\w", listed, re.MULTILINE)


def test_scrapy_lists_both_inside_a_project(project: Path) -> None:
    listed = run(project, "-h").stdout
    assert "active project: town" in listed
    assert re.search(r"^  robots-check +\w.*\n  robots-lint +\w", listed, re.MULTILINE)


@pytest.mark.parametrize("name", ["robots-check", "robots-lint"])
def test_help_says_how_it_ends(tmp_path: Path, name: str) -> None:
    done = run(tmp_path, name, "-h")
    assert "exit status is 2 if" in " ".join(done.stdout.split())
    assert "--json" in done.stdout


def test_loading_them_installs_no_reactor() -> None:
    code = (
        "import sys, scrapy_norobots.commands.robots_check, scrapy_norobots.commands.robots_lint; "
        "sys.exit('twisted.internet.reactor' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


BAD_INPUT = {
    "robots-check": "nothing to do: give URL... ('-' is standard input)",
    "robots-check --nonsense http://a/": "no such option: --nonsense",
    "robots-check - -": "standard input can be read once only",
    "robots-check --file - -": "standard input cannot be both a robots.txt and a list of URLs",
    "robots-check --robot '' http://a/": "--robot names no robot: ''",
    "robots-check --file missing http://a/": "missing: No such file or directory",
    "robots-check --file . http://a/": ".: Is a directory",
    "robots-check --file big.txt -s NOROBOTS_MAXSIZE=9 http://a/": "big.txt: has more than 9 bytes",
    "robots-check -": "<stdin>: there is no URL",
    "robots-check -s NOROBOTS_TIMEOUT=soon http://a/": "NOROBOTS_TIMEOUT = 'soon': must be a number",
    "robots-check -s NOROBOTS http://a/": "Invalid -s value",
    "robots-lint": "nothing to do: give FILE|URL... ('-' is standard input)",
    "robots-lint --nonsense big.txt": "no such option: --nonsense",
    "robots-lint missing": "missing: No such file or directory",
    "robots-lint 'a\x1b[31m'": "a\\x1b[31m: No such file or directory",
    "robots-lint .": ".: Is a directory",
    "robots-lint big.txt -s NOROBOTS_MAXSIZE=9": "big.txt: has more than 9 bytes",
    "robots-lint ftp://a/robots.txt": "ftp://a/robots.txt: only http and https URLs",
    "robots-lint http://a:b/": "http://a:b/: 'b' is no port",
    "robots-lint http:///": "http:///: only http and https URLs with a host",
    "robots-lint http://127.0.0.1:1/": "http://127.0.0.1:1/robots.txt: could not be had (",
    "robots-lint -s NOROBOTS_MAXSIZE=0 big.txt": "NOROBOTS_MAXSIZE = '0': must be a number",
}


@pytest.mark.parametrize("line", BAD_INPUT)
def test_bad_input_gets_a_clear_answer(tmp_path: Path, line: str) -> None:
    (tmp_path / "big.txt").write_text(ROBOTS)
    done = run(tmp_path, *shlex.split(line))
    assert done.returncode == 2
    assert done.stdout == ""
    assert BAD_INPUT[line] in done.stderr.splitlines()[-1]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").touch(mode=0)
    for args in (["robots-lint", "robots.txt"], ["robots-check", "--file", "robots.txt", "http://a/"]):
        done = run(tmp_path, *args)
        assert (done.returncode, done.stderr) == (2, "robots.txt: Permission denied\n")


def test_a_setting_that_does_not_exist_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text(ROBOTS)
    done = run(tmp_path, "robots-lint", "-s", "NOROBOTS_MAXSIZ=1", "robots.txt")
    assert done.stderr == "There is no setting NOROBOTS_MAXSIZ; is it NOROBOTS_MAXSIZE?\n"


def test_a_closed_standard_input(tmp_path: Path) -> None:
    for name in ("robots-check", "robots-lint"):
        done = subprocess.run(
            ["sh", "-c", f"exec {shlex.join(command(name, '-'))} <&-"],
            cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (2, "<stdin>: is closed\n")


@pytest.mark.parametrize("name", ["robots-check", "robots-lint"])
def test_a_reader_who_has_seen_enough(tmp_path: Path, name: str) -> None:
    # More than a pipe holds.
    text = "".join(f"http://a.example/{number}\n" for number in range(20_000))
    (tmp_path / "robots.txt").write_text(text)
    args = ["--file", os.devnull, "-"] if name == "robots-check" else ["-"]
    with (
        (tmp_path / "robots.txt").open() as file,
        (tmp_path / "err").open("w") as err,
        subprocess.Popen(
            command(name, *args),
            cwd=tmp_path,
            env=environment(),
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=err,
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 0
    assert (tmp_path / "err").read_text() == ""


def on_terminal(cwd: Path, *command: str, **variables: str) -> str:
    """Run a command whose output and errors go to a terminal, and return what it wrote there."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command, cwd=cwd, env=environment(**variables), stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    ):
        os.close(theirs)
        seen = b""
        while True:
            try:
                data = os.read(ours, 65536)
            except OSError:  # how Linux says that the other end was closed
                break
            if not data:
                break
            seen += data
    os.close(ours)
    return seen.decode()


def test_colours_and_progress_are_for_terminals(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text("hm\n")
    with Site("User-agent: *\nDisallow: /x") as one, Site(Answer(status=503)) as two:
        check = command("robots-check", f"{one.url}/", f"{one.url}/x", f"{two.url}/")
        seen = on_terminal(tmp_path, *check)
        plain = on_terminal(tmp_path, *check, NO_COLOR="1")
        no_ansi = on_terminal(tmp_path, *check, TERM="dumb")
    assert re.findall("\x1b\\[(\\d+)m(\\w+) *\x1b\\[0m", seen) == [
        ("32", "allowed"),
        ("31", "forbidden"),
        ("33", "unknown"),
    ]
    assert "1 of 2 to go" in seen
    assert "\x1b[3" not in plain + no_ansi
    assert "\x1b" not in no_ansi
    lint = command("robots-lint", "robots.txt")
    assert ": \x1b[31merror\x1b[0m: " in on_terminal(tmp_path, *lint)
    assert "\x1b" not in on_terminal(tmp_path, *lint, NO_COLOR="1")


HOSTILE = (
    "User-agent: \x1b]0;gone\x07*\nDisallow: /\x1b[2J\x9b2J\n\nUser-agent: *\n"
    "Disallow: /a\u202e \x1b[31m /b\nDissallow: /\x1b[1m\n\x1b[0m\n"
)


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_text_from_a_site_never_gets_through_as_it_is(tmp_path: Path, options: list[str]) -> None:
    with Site(HOSTILE) as site:
        check = run(
            tmp_path, "robots-check", *options, f"{site.url}/a%E2%80%AE%20%1B[31m%20/b", f"{site.url}/"
        )
        lint = run(tmp_path, "robots-lint", *options, site.url)
    assert (check.returncode, lint.returncode) == (1, 1)
    assert "line 5" in check.stdout
    assert lint.stdout
    for text in (check.stdout, lint.stdout, check.stderr, lint.stderr):
        assert all(line.isprintable() for line in text.splitlines()), text
        assert not set(text) & set("\x1b\x07\x9b\u202e")


# robots-check


def test_check_says_by_which_line_of_which_record(tmp_path: Path, mode: str) -> None:
    with Site(ROBOTS) as site:
        urls = [f"{site.url}{path}" for path in ("/", "/staff/rota?day=1", "/%73taff/#top", "/robots.txt")]
        done = run(tmp_path, "robots-check", *urls, mode=mode)
    source = f"{site.url}/robots.txt"
    record = "in the record of line 4 for '*'"
    rule = f"line 5 of {source}, 'Disallow: /staff/', {record}"
    assert done.stdout.splitlines() == [
        f"allowed   {urls[0]} for 'Scrapy': no line of {source} forbids it, {record}",
        f"forbidden {urls[1]} for 'Scrapy': {rule}",
        f"forbidden {urls[2]} for 'Scrapy': {rule}",
        f"allowed   {urls[3]} for 'Scrapy': robots.txt itself may always be fetched",
    ]
    assert done.stderr == ""
    assert done.returncode == 1
    assert site.targets() == ["/robots.txt"]


def test_check_decides_as_a_crawl_does(tmp_path: Path, mode: str) -> None:
    paths = ("/", "/x.gif", "/staff/open", "/a/../%73taff/;", "/sta%66f/b", "/staff;", "/FOO/", "/staff%2F")
    with Site(ROBOTS) as site:
        urls = [site.url + path for path in paths]
        done = run(tmp_path, "robots-check", *urls, mode=mode)
        assert site.pages() == []
        seen = crawl(*urls, mode=mode)
    dropped = {drop.url for drop in seen.drops}
    told = dict(zip(urls, words(done), strict=True))
    assert dropped == {url for url, word in told.items() if word == "forbidden"}
    assert len(dropped) == 3
    assert set(told.values()) == {"allowed", "forbidden"}


STATUSES = {
    "rules": (Answer("User-agent: *\nDisallow: /x"), 0, "allowed", "no line of "),
    "no record": (Answer("User-agent: FooBot\nDisallow: /"), 0, "allowed", "no record for this robot"),
    "missing": (Answer(status=404), 0, "allowed", "answered 404, and NOROBOTS_STATUS_POLICY allows '4xx'"),
    "locked": (Answer(status=403), 1, "forbidden", "answered 403, and NOROBOTS_STATUS_POLICY denies '403'"),
    "busy": (Answer(status=429), 2, "unknown", "answered 429, and NOROBOTS_STATUS_POLICY denies '429'"),
    "broken": (Answer(status=503), 2, "unknown", "answered 503, and NOROBOTS_STATUS_POLICY denies '5xx'"),
}


@pytest.mark.parametrize("name", STATUSES)
def test_check_says_why_there_is_no_rule(tmp_path: Path, name: str) -> None:
    answer, status, word, why = STATUSES[name]
    with Site(answer) as site:
        done = run(tmp_path, "robots-check", f"{site.url}/")
    assert done.stdout.startswith(f"{word:<9} {site.url}/ for 'Scrapy': ")
    assert why in done.stdout
    assert done.returncode == status
    assert errors(done) == []
    assert site.pages() == []


def test_check_goes_by_the_settings_of_a_crawl(tmp_path: Path) -> None:
    with Site(Answer(status=503)) as site:
        options = ["-s", "NOROBOTS_STATUS_POLICY=allow", "-s", "RETRY_ENABLED=0"]
        done = run(tmp_path, "robots-check", *options, f"{site.url}/")
    assert words(done) == ["allowed"]
    assert "answered 503, and NOROBOTS_STATUS_POLICY allows '5xx'" in done.stdout
    assert (done.returncode, len(site.hits)) == (0, 1)


def test_check_of_a_site_that_does_not_answer(tmp_path: Path, mode: str) -> None:
    release = threading.Event()
    with Site(Answer("", before=release.wait)) as site:
        options = ["-s", "NOROBOTS_TIMEOUT=0.5", "-s", "NOROBOTS_RETRY_TIMES=0"]
        done = run(tmp_path, "robots-check", *options, f"{site.url}/", "http://127.0.0.1:1/", mode=mode)
        release.set()
    assert words(done) == ["unknown", "unknown"]
    assert done.stdout.count("could not be had (") == 2
    assert done.returncode == 2


def test_check_follows_a_redirect_and_names_where_it_led(tmp_path: Path) -> None:
    with Site(ROBOTS) as other, Site(Answer(status=301, headers={"Location": f"{other.url}/r.txt"})) as site:
        other.answers["/r.txt"] = Answer(ROBOTS)
        done = run(tmp_path, "robots-check", f"{site.url}/staff/")
    assert f": line 5 of {other.url}/r.txt, " in done.stdout
    assert (site.targets(), other.targets()) == (["/robots.txt"], ["/r.txt"])


def test_check_tells_bad_urls_from_good_ones(tmp_path: Path) -> None:
    bad = [
        "a.example/x",
        "/x",
        "",
        "http://[::1/",
        "http://127.0.0.1:99999/",
        "ftp://a.example/",
        "http:///x",
    ]
    with Site("User-agent: *\nDisallow: /") as site:
        done = run(tmp_path, "robots-check", *bad, f"{site.url}/")
    assert words(done) == ["unknown"] * len(bad) + ["forbidden"]
    assert done.stdout.count("this is no URL that can be crawled (") == 5
    assert done.stdout.count("only http and https URLs with a host have a robots.txt") == 2
    assert done.returncode == 2


def test_check_reads_urls_from_standard_input_and_keeps_their_order(tmp_path: Path) -> None:
    with Site(ROBOTS) as one, Site("User-agent: *\nDisallow: /a") as two:
        urls = [f"{site.url}/{path}" for path in ("a", "staff/", "\udce9") for site in (one, two)]
        listed = "\ufeff" + "\r\n\n  ".join(urls[1:]) + "\n"
        done = run(tmp_path, "robots-check", urls[0], "-", stdin=listed)
    assert words(done) == ["allowed", "forbidden", "forbidden", "allowed", "unknown", "unknown"]
    assert [line.split()[1] for line in done.stdout.splitlines()[:4]] == urls[:4]
    assert one.targets() == two.targets() == ["/robots.txt"]


def test_check_of_many_urls_downloads_each_robots_txt_once(tmp_path: Path, mode: str) -> None:
    with Site(ROBOTS, host="0.0.0.0") as site:
        urls = [f"{site.url_of(f'127.0.1.{n % 40 + 1}')}/{'staff/' * (n % 3 == 0)}{n}" for n in range(2000)]
        done = run(tmp_path, "robots-check", "-", stdin="\n".join(urls), mode=mode)
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [
        ["forbidden" if "/staff/" in url else "allowed", url] for url in urls
    ]
    assert sorted(hit.host for hit in site.hits) == sorted(f"127.0.1.{n + 1}" for n in range(40))
    assert site.pages() == []


@pytest.mark.parametrize("robot", ["FooBot", "Mozilla/5.0 (compatible; foobot/1.2; +http://foo.example/)"])
def test_check_asks_as_another_robot(tmp_path: Path, robot: str) -> None:
    with Site(ROBOTS) as site:
        done = run(tmp_path, "robots-check", "--robot", robot, f"{site.url}/staff/", f"{site.url}/foo/")
    assert words(done) == ["allowed", "forbidden"]
    assert "in the record of line 1 for 'FooBot'" in done.stdout
    (hit,) = site.hits
    assert hit.headers["user-agent"].startswith("Scrapy/")  # it does not pretend to be that robot


@pytest.mark.parametrize("path", ["my robots.txt", "-"])
def test_check_by_a_local_file(tmp_path: Path, path: str) -> None:
    (tmp_path / "my robots.txt").write_text(ROBOTS)
    with Site("User-agent: *\nDisallow: /") as site:
        urls = [f"{site.url}/", "http://nowhere.invalid/staff/"]
        done = run(tmp_path, "robots-check", "--file", path, *urls, stdin=ROBOTS)
    name = "<stdin>" if path == "-" else path
    assert words(done) == ["allowed", "forbidden"]
    assert f": line 5 of {name}, 'Disallow: /staff/'" in done.stdout
    assert (done.returncode, done.stderr, site.hits) == (1, "", [])


def test_check_compares_with_rfc_9309(tmp_path: Path) -> None:
    with Site(ROBOTS) as site, Site(Answer(status=403)) as locked, Site(Answer(status=503)) as broken:
        urls = [site.url + path for path in ("/", "/staff/", "/staff/open", "/x.gif")]
        urls += [f"{locked.url}/", f"{broken.url}/", "nonsense"]
        done = run(tmp_path, "robots-check", "--compare", *urls)
        as_json = run(tmp_path, "robots-check", "--compare", "--json", *urls)
        only_robots = run(tmp_path, "robots-check", "--compare", f"{broken.url}/robots.txt")
    same = "[RFC 9309: the same]"
    assert [line.partition(" [RFC")[1:] for line in done.stdout.splitlines()] == [
        (" [RFC", same.removeprefix("[RFC")),
        (" [RFC", same.removeprefix("[RFC")),
        (" [RFC", " 9309 differs: allowed]"),
        (" [RFC", " 9309 differs: forbidden]"),
        (" [RFC", " 9309 differs: allowed]"),
        (" [RFC", same.removeprefix("[RFC")),
        ("", ""),
    ]
    facts = list(map(json.loads, as_json.stdout.splitlines()))
    assert [fact["rfc9309"] for fact in facts] == [
        "allowed", "forbidden", "allowed", "forbidden", "allowed", "unknown", None,
    ]  # fmt: skip
    assert [fact["differs"] for fact in facts] == [False, False, True, True, True, False, False]
    assert (done.returncode, as_json.returncode) == (2, 2)
    assert only_robots.stdout.rstrip().endswith(same)


def test_check_answers_programs(tmp_path: Path) -> None:
    with Site(ROBOTS) as site:
        done = run(tmp_path, "robots-check", "--json", f"{site.url}/staff/#x", f"{site.url}/", "\u2028")
    forbidden, allowed, bad = map(json.loads, done.stdout.splitlines())
    source = f"{site.url}/robots.txt"
    record = {"line": 4, "names": ["*"]}
    assert forbidden == {
        "url": f"{site.url}/staff/#x",
        "answer": "forbidden",
        "robot": "Scrapy",
        "reason": "rule",
        "why": f"line 5 of {source}, 'Disallow: /staff/', in the record of line 4 for '*'",
        "source": source,
        "rule": {"line": 5, "value": "/staff/"},
        "record": record,
        "rfc9309": None,
        "differs": False,
    }
    assert (allowed["answer"], allowed["reason"], allowed["rule"]) == ("allowed", "no_rule_matches", None)
    assert allowed["record"] == record
    assert (bad["answer"], bad["reason"], bad["url"]) == ("unknown", "bad_url", "\u2028")
    assert list(bad) == list(allowed) == list(forbidden)


def test_check_in_a_project_goes_by_it_and_leaves_it_alone(project: Path) -> None:
    before = sorted(path for path in project.rglob("*") if "__pycache__" not in path.parts)
    with Site(ROBOTS) as site:
        done = run(project, "robots-check", f"{site.url}/foo/", f"{site.url}/staff/")
    assert words(done) == ["forbidden", "allowed"]  # FooBot's record: USER_AGENT counts
    assert "for 'FooBot'" in done.stdout
    (hit,) = site.hits
    assert (hit.headers["user-agent"], hit.headers["x-signed"]) == ("FooBot/1.0", "yes")
    after = sorted(path for path in project.rglob("*") if "__pycache__" not in path.parts)
    assert after == before
    assert (project / "items.json").read_text() == "[]"


def test_check_in_a_project_with_the_add_on_and_another_parser(project: Path) -> None:
    with (project / "town" / "settings.py").open("a") as settings:
        settings.write(
            "ADDONS = {'scrapy_norobots.Addon': 500}\n"
            "ROBOTSTXT_PARSER = 'scrapy.robotstxt.ProtegoRobotParser'\n"
        )
    (project / "robots.txt").write_text("User-agent: *\nDisallow: /a*z\n")
    with Site("User-agent: *\nDisallow: /a*z\n") as site:
        downloaded = run(project, "robots-check", "--compare", f"{site.url}/abcz")
        read = run(project, "robots-check", "--file", "robots.txt", "http://a.example/abcz")
    assert words(downloaded) == words(read) == ["forbidden"]
    assert "robots.txt as read by ProtegoRobotParser [RFC 9309: the same]" in downloaded.stdout
    assert site.targets() == ["/robots.txt"]


def test_check_says_so_if_the_crawl_does_not_start(project: Path) -> None:
    with (project / "town" / "settings.py").open("a") as settings:
        settings.write("DOWNLOADER_MIDDLEWARES = {'town.parts.Missing': 300}\n")
    done = processes.run("scrapy", "robots-check", "http://127.0.0.1:1/", cwd=project, env=environment())
    assert done.returncode == 2
    assert done.stdout == ""
    assert "town.parts" in done.stderr  # Scrapy's own words
    assert "the crawl did not start; its log says why" in done.stderr


def test_check_that_is_interrupted_tells_what_it_knows(tmp_path: Path) -> None:
    asked, release = threading.Event(), threading.Event()

    def wait() -> None:
        asked.set()
        release.wait()

    with Site(Answer(ROBOTS, before=wait)) as slow, Site(ROBOTS) as other:
        args = ["-s", "CONCURRENT_REQUESTS=1", f"{slow.url}/", f"{other.url}/"]
        with subprocess.Popen(
            command("robots-check", *args, "-L", "INFO"),
            cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            assert asked.wait(60)
            process.send_signal(signal.SIGINT)
            assert process.stderr is not None
            log = ""
            while "Closing spider" not in log and (line := process.stderr.readline()):
                log += line
            release.set()
            out, _ = process.communicate(timeout=60)
    assert "SIGINT" in log
    assert [line.split()[0] for line in out.splitlines()] == ["allowed", "unknown"]
    assert "the crawl was stopped before its robots.txt was had" in out
    assert process.returncode == 2
    assert other.hits == []


# robots-lint

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
{0}:1: warning: The value is one robot's name, blanks and all, not several. [several-names]
{0}:1: hint: Write a line for each: 'User-agent: FooBot', 'User-agent: BarBot'.
{0}:1: warning: The record has no Disallow line: it lets its robots fetch all. [no-disallow]
{0}:1: hint: Write 'Disallow:' below it, if that is what is meant.
{0}:3: error: The line stands in no record (a blank line ends one) and counts for nobody. [stray-disallow]
{0}:3: hint: Take out the blank line before it, if it is meant for the robots of line 1.
{0}:4: error: The field is not known, so the line is ignored; is it Disallow? [misspelt-field]
{0}:4: hint: Write 'Disallow: /x'.
{0}:7: error: The line is neither a field nor a comment and is ignored. [no-colon]
{0}:7: hint: Write 'Disallow: /y'.
{0}:8: error: The value is one path, blanks and all, not several. [several-paths]
{0}:8: hint: Write a line for each: 'Disallow: /b', 'Disallow: /c'.
{0}:9: info: '*' and '$' are ordinary characters; patterns came with a later extension. [wildcard]
{0}:9: hint: Write 'Disallow: /z': a rule counts for all that begins with it.
{0}: 4 errors, 2 warnings, 1 info; 4 of 5 rules without effect
"""


@pytest.mark.parametrize("path", ["my robots.txt", "-"])
def test_lint_writes_as_compilers_do(tmp_path: Path, path: str) -> None:
    (tmp_path / "my robots.txt").write_text(BAD_FILE)
    done = run(tmp_path, "robots-lint", path, stdin=BAD_FILE)
    assert done.stdout == BAD_FILE_FINDINGS.format("<stdin>" if path == "-" else path)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("User-agent: *\nDisallow: /\n", "nothing found; 0 of 1 rule without effect"),
        ("User-agent: *\nDisallow: a\n", "1 warning; 0 of 1 rule without effect"),
        ("", "nothing found; no rules"),
        ("# hello", "nothing found; no rules"),
    ],
)
def test_lint_of_files_without_errors(tmp_path: Path, text: str, last: str) -> None:
    done = run(tmp_path, "robots-lint", "-", stdin=text)
    assert done.stdout.splitlines()[-1] == f"<stdin>: {last}"
    assert done.returncode == 0


def test_lint_downloads_as_a_crawl_would(project: Path, mode: str) -> None:
    with Site(BAD_FILE, {"/draft/robots?v=2": Answer("User-agent: *\nDisallow: /\n")}) as site:
        bare = site.url.replace("http://", "HTTP://ann:secret@")
        done = run(project, "robots-lint", bare, f"{site.url}/", f"{site.url}/draft/robots?v=2#x", mode=mode)
    linted = BAD_FILE_FINDINGS.format(f"{site.url}/robots.txt")
    draft = f"{site.url}/draft/robots?v=2: nothing found; 0 of 1 rule without effect\n"
    assert done.stdout == linted + linted + draft
    assert done.returncode == 1
    assert sorted(site.targets()) == ["/draft/robots?v=2", "/robots.txt"]
    for hit in site.hits:
        assert (hit.headers["user-agent"], hit.headers["x-signed"]) == ("FooBot/1.0", "yes")
        assert not {"authorization", "cookie", "referer"} & set(hit.headers)


def test_lint_goes_on_after_what_could_not_be_had(tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("User-agent: *\nDisallow: /\n")
    with Site() as site, Site(Answer(status=301, headers={"Location": f"{site.url}/moved"})) as moved:
        site.answers["/moved"] = Answer(status=410)
        args = ["missing.txt", site.url, moved.url, "http://127.0.0.1:1", "good.txt"]
        done = run(tmp_path, "robots-lint", *args)
        as_json = run(tmp_path, "robots-lint", "--json", *args)
    *problems, refused = errors(done)
    assert problems == [
        "missing.txt: No such file or directory",
        f"{site.url}/robots.txt: answered 404",
        f"{site.url}/moved: answered 410",
    ]
    assert refused.startswith("http://127.0.0.1:1/robots.txt: could not be had (")
    assert done.stdout == "good.txt: nothing found; 0 of 1 rule without effect\n"
    assert (done.returncode, as_json.returncode) == (2, 2)
    *bad, good = map(json.loads, as_json.stdout.splitlines())
    assert bad[1] == {"path": f"{site.url}/robots.txt", "problem": "answered 404"}
    assert good == {"path": "good.txt", "findings": [], "rules": 1, "without_effect": []}


def test_lint_answers_programs(tmp_path: Path) -> None:
    done = run(tmp_path, "robots-lint", "--json", "-", stdin=BAD_FILE)
    (file,) = map(json.loads, done.stdout.splitlines())
    assert (file["path"], file["rules"], file["without_effect"]) == ("<stdin>", 5, [3, 4, 7, 8])
    assert len(file["findings"]) == 7
    assert file["findings"][3] == {
        "line": 4,
        "severity": "error",
        "kind": "misspelt-field",
        "clause": "F7",
        "message": "The field is not known, so the line is ignored; is it Disallow?",
        "hint": "Write 'Disallow: /x'.",
        "text": "Dissallow: /x # not for you",
    }
    assert done.returncode == 1


# The page about them

PAGE = (ROOT / "docs" / "commands.md").read_text("utf-8")


@pytest.mark.parametrize("shown", re.findall(r"^```console\n\$ (.*?)```", PAGE, re.DOTALL | re.MULTILINE))
def test_the_page_shows_what_they_write(tmp_path: Path, shown: str) -> None:
    (robots,) = re.findall(r"^```robots.txt\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / "robots.txt").write_text(robots)
    line, _, expected = shown.partition("\n")
    with Site(robots) as site:
        done = run(tmp_path, *shlex.split(line.replace("http://town.example", site.url))[1:])
    assert done.stdout.replace(site.url, "http://town.example") == expected


# What was found by attacking them


def test_a_page_limit_of_the_project_ends_no_check(tmp_path: Path) -> None:
    options = [
        "--set=CLOSESPIDER_PAGECOUNT=1",
        "--set=CLOSESPIDER_ITEMCOUNT=1",
        "--set=CONCURRENT_REQUESTS=1",
    ]
    with Site(ROBOTS, host="0.0.0.0") as site:
        done = run(
            tmp_path, "robots-check", *options, *(f"{site.url_of(f'127.0.0.{n}')}/" for n in range(2, 6))
        )
    assert words(done) == ["allowed"] * 4


def test_the_log_of_a_crawl_stays(project: Path) -> None:
    (project / "crawl.log").write_text("of yesterday\n")
    with (project / "town" / "settings.py").open("a") as settings:
        settings.write("LOG_FILE = 'crawl.log'\nLOG_FILE_APPEND = False\n")
    (project / "robots.txt").write_text("User-agent: *\nDisallow: /x\n")
    run(project, "robots-lint", "robots.txt")
    assert (project / "crawl.log").read_text() == "of yesterday\n"


def run_in_shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_status_is_that_of_all_answers_read_or_not(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text("User-agent: *\nDisallow: /x\n")
    urls = [f"http://town.example/{number}" for number in range(5000)] + ["http://town.example/x"]
    (tmp_path / "urls").write_text("\n".join(urls))
    shell = f"{shlex.join(command('robots-check', '--file', 'robots.txt', '-'))} < urls | head -1; "
    done = run_in_shell(tmp_path, shell + 'echo "${PIPESTATUS[0]}"')
    assert done.stdout.splitlines()[-1] == "1", done.stderr


@pytest.mark.parametrize("where", ["> /dev/full", ">&-"])
def test_answers_that_cannot_be_written(tmp_path: Path, where: str) -> None:
    (tmp_path / "robots.txt").write_text("User-agent: *\nDisallow: /x\n")
    done = run_in_shell(tmp_path, f"{shlex.join(command('robots-lint', 'robots.txt'))} {where}")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "standard output" in done.stderr


def test_what_could_not_be_had_stands_above_errors_that_come_later(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text("Disallow: /x\n")
    assert run(tmp_path, "robots-lint", "missing.txt", "robots.txt").returncode == 2


def test_rules_below_a_misspelt_name_count_for_others_than_was_meant(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text("User-agent: A\nDisallow: /a\nUser agent: *\nDisallow: /\n")
    done = run(tmp_path, "robots-lint", "robots.txt")
    assert done.stdout.splitlines()[-1].endswith("; 1 of 2 rules without effect")
