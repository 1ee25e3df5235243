"""A robots.txt that the end of its connection may have cut off; `test_fault_lab` has more of them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.running.commands import run
from tests.helpers.running.crawling import ADDON, crawl, uses_httpx
from tests.helpers.sites import Answer, Site
from tests.helpers.sites.faults import FAULTS, Exchange, Fault, FaultLab

PLAN = "asking.Asking"
LONGER_THAN_TTL = 250
SHORT = {**ADDON, "RETRY_ENABLED": False, "NOROBOTS_TTL": 200, "NOROBOTS_TTL_MIN": 0}
HEAD = b"HTTP/1.0 200 OK\r\n\r\nUser-agent: *\n"


def cut_off_by_reset(exchange: Exchange, head: bytes = HEAD) -> None:
    exchange.send(head)
    exchange.lab.closing.wait(1)  # a reset drops what the client has not read yet
    exchange.reset()


@pytest.mark.parametrize("failures", [0, 1], ids=["first try", "retry"])
def test_a_file_that_a_reset_cuts_off_replaces_no_rules(mode: str, failures: int) -> None:
    def play(exchange: Exchange) -> None:
        number = len(exchange.lab.asked["changing"])
        if number == 1:
            exchange.send(HEAD + b"Disallow: /back/\n")
        elif number <= 1 + failures:
            exchange.send(b"HTTP/1.0 503 Busy\r\n\r\n")
        else:
            cut_off_by_reset(exchange)

    with FaultLab([Fault("changing", "rules", play)]) as lab, Site() as start:
        url = f"{lab.origin(lab.faults[0])}/back/"
        plan = [(0, url), (LONGER_THAN_TTL, url)]
        settings = {**SHORT, "RETRY_ENABLED": bool(failures)}
        seen = crawl(f"{start.url}/", spider=PLAN, settings=settings, arguments={"plan": plan})
        assert len(lab.asked["changing"]) == 2 + failures
    assert seen.notes["results"] == ["RobotsForbidden", "RobotsForbidden"]


@pytest.mark.parametrize("command", ["robots-check", "robots-lint"])
def test_a_command_does_not_read_a_file_that_a_reset_cuts_off(tmp_path: Path, command: str) -> None:
    with FaultLab([Fault("cut off", "closed", cut_off_by_reset)]) as lab:
        done = run(tmp_path, command, f"{lab.origin(lab.faults[0])}/")
    assert "the response is incomplete" in done.stdout + done.stderr
    assert done.returncode == 2


def test_a_target_of_a_redirect_that_a_reset_cuts_off_is_not_obeyed(mode: str) -> None:
    with FaultLab([Fault("target", "closed", cut_off_by_reset)]) as lab:
        location = f"{lab.origin(lab.faults[0])}/files/robots.txt?of=%7Etown"
        with Site(Answer(status=301, headers={"Location": location})) as site:
            seen = crawl(f"{site.url}/", settings=SHORT)
    assert [drop.type for drop in seen.drops] == ["RobotsUnreachable"]
    assert uses_httpx(mode) or "the response is incomplete" in seen.drops[0].text


ENDS = [fault for fault in FAULTS if "with the connection" in fault.name]
IDENTITY = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nUser-agent: *\n"
ENDS += [Fault("an encoding without an end", "closed", partial(cut_off_by_reset, head=IDENTITY))]


@pytest.mark.parametrize("fault", ENDS, ids=lambda fault: str(fault.name))
def test_aiohttp_beside_a_reactor_shows_how_a_connection_ends(fault: Fault) -> None:
    pytest.importorskip("scrapy.core.downloader.handlers._aiohttp")
    handler = "tests.helpers.components.handlers.AiohttpBesideReactor"
    settings: dict[str, Any] = {**SHORT, "DOWNLOAD_HANDLERS": {"http": handler, "https": handler}}
    with FaultLab([fault]) as lab:
        origin = lab.origin(fault)
        seen = crawl(f"{origin}/open", f"{origin}/back/", settings=settings, mode="asyncio")
    wanted = {"rules": ["/open"], "open": ["/open", "/back/"], "closed": []}
    assert sorted(seen.pages) == sorted(origin + path for path in wanted[fault.outcome])
