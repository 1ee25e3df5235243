"""Robots META tags and ``X-Robots-Tag`` in real crawls."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers.running.crawling import ADDON, Crawl, crawl
from tests.helpers.running.processes import ROOT
from tests.helpers.sites import Answer, Site

META = {**ADDON, "NOROBOTS_META": True}


def page(head: str, *links: str, **headers: str) -> Answer:
    anchors = "".join(f'<a href="{link}">x</a>' for link in links)
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(f"<head>{head}</head><body>{anchors}", headers={"Content-Type": "text/html", **fields})


def tagged(content: str, name: str = "robots") -> str:
    return f'<meta name="{name}" content="{content}">'


def town() -> Site:
    """A site whose pages have META tags or headers, and each a link that no other page has."""
    pages = {
        "/": page("", "/nofollow", "/noindex", "/none", "/all", "/header", "/ours", "/theirs", "/mirror"),
        "/nofollow": page(tagged("nofollow"), "/nofollow/next", "/marked/next"),
        "/noindex": page(tagged("NOINDEX"), "/noindex/next"),
        "/none": page(tagged("none"), "/none/next"),
        "/all": page(tagged("all, noindex"), "/all/next"),
        # Two headers: header names ignore case, but dictionary keys do not.
        "/header": page("", "/header/next", X_Robots_Tag="potto: noindex", x_robots_tag="nofollow"),
        "/ours": page(tagged("nofollow", "tamarin"), "/ours/next", X_Robots_Tag="tamarin: noindex"),
        "/theirs": page(tagged("none", "potto"), "/theirs/next", X_Robots_Tag="potto: none"),
        "/mirror": page(tagged("dynamic", "document-state") + tagged("http://main.example/", "url")),
    }
    return Site(answers=pages)


SETTINGS = {**META, "USER_AGENT": "Tamarin/1.0 (+http://town.example/tamarin)"}

FOLLOWED = {"/noindex/next", "/all/next", "/theirs/next", "/marked/next"}
NOT_FOLLOWED = {"/nofollow/next", "/none/next", "/header/next", "/ours/next"}
INDEXED = {"/", "/nofollow", "/all", "/header", "/theirs", "/mirror"}
NOT_INDEXED = {"/noindex", "/none", "/ours"}


def follow(site: Site, *paths: str, spider: str = "Collecting", **job: Any) -> Crawl:
    requests = [f"{site.url}{path}" for path in paths or ("/",)]
    job = {"settings": SETTINGS, **job}
    return crawl(*requests, spider=f"items.{spider}", arguments={"follow": True}, **job)


@pytest.mark.parametrize("spider", ["Collecting", "CollectingSlowly"])
def test_a_crawl_obeys_tags_and_headers(spider: str, mode: str) -> None:
    with town() as site:
        seen = follow(site, spider=spider)
    assert set(site.pages()) == INDEXED | NOT_INDEXED | FOLLOWED
    assert set(seen.notes["items"]) == INDEXED | FOLLOWED
    assert seen.notes["asked"] == {
        **{path: [True, True, "STATIC", None] for path in {"/", "/all", "/theirs"} | FOLLOWED},
        "/nofollow": [True, False, "STATIC", None],
        "/noindex": [False, True, "STATIC", None],
        "/none": [False, False, "STATIC", None],
        "/header": [True, False, "STATIC", None],
        "/ours": [False, False, "STATIC", None],
        "/mirror": [True, True, "DYNAMIC", "http://main.example/"],
    }
    assert seen.stats["norobots/meta/nofollow"] == len(NOT_FOLLOWED)
    assert seen.stats["norobots/meta/noindex"] == len(NOT_INDEXED)


def test_the_docs_show_real_log_lines() -> None:
    shown = (ROOT / "docs" / "usage.md").read_text().splitlines()
    answers = {"/": page(tagged("nofollow"), "/staff"), "/rota": page("", X_Robots_Tag="noindex")}
    with Site(answers=answers) as site:
        seen = follow(site, "/", "/rota")
    lines = [line for line in shown if line.startswith(("DEBUG: Request dropped", "DEBUG: Item dropped"))]
    assert len(lines) == 2
    for line in lines:
        assert len(seen.log_lines(line.replace("http://town.example", site.url))) == 1, line


def test_start_requests_pass() -> None:
    with town() as site:
        seen = follow(site, "/none", "/none/next")
    assert site.pages() == ["/none", "/none/next"]
    assert seen.notes["items"] == ["/none/next"]


@pytest.mark.parametrize("word", ["nofollow", "noindex"])
def test_only_nofollow_or_only_noindex_can_be_obeyed(word: str) -> None:
    with town() as site:
        seen = follow(site, settings={**SETTINGS, "NOROBOTS_META": word})
    followed = FOLLOWED | NOT_FOLLOWED if word == "noindex" else FOLLOWED
    indexed = INDEXED | NOT_INDEXED if word == "nofollow" else INDEXED
    assert set(site.pages()) == INDEXED | NOT_INDEXED | followed
    assert set(seen.notes["items"]) == indexed | followed
    assert ("norobots/meta/nofollow" in seen.stats) == (word == "nofollow")
    assert ("norobots/meta/noindex" in seen.stats) == (word == "noindex")
    assert seen.notes["asked"]["/none"] == [False, False, "STATIC", None]


def test_meta_tags_are_ignored_by_default() -> None:
    with town() as site:
        seen = follow(site, settings=ADDON)
    assert set(seen.notes["items"]) == INDEXED | NOT_INDEXED | FOLLOWED | NOT_FOLLOWED
    assert set(seen.notes["asked"].values()) == {None}
    assert not [name for name in seen.stats if name.startswith("norobots/meta")]
    assert not seen.log_lines("RobotsMetaMiddleware")


ENABLED: dict[str, dict[str, Any]] = {
    "a spider's own settings": {"spider": "Considerate", "settings": ADDON},
    "no robots.txt": {"settings": {**META, "ROBOTSTXT_OBEY": False}},
    "by hand": {
        "settings": {
            "NOROBOTS_META": True,
            "SPIDER_MIDDLEWARES": {"scrapy_norobots.RobotsMetaMiddleware": 950},
        }
    },
    "a name for rules": {"settings": {**META, "ROBOTSTXT_USER_AGENT": "Potto", "USER_AGENT": "Tamarin"}},
}


@pytest.mark.parametrize("way", ENABLED)
def test_each_way_to_enable_it_works(way: str) -> None:
    answers = {
        "/": page(tagged("noindex"), "/next"),
        "/next": page(tagged("noindex", "potto") + tagged("none", "tamarin"), "/last"),
    }
    with Site(answers=answers) as site:
        seen = follow(site, **ENABLED[way])
    potto = way == "a name for rules"
    assert site.pages() == ["/", "/last", "/next"]
    assert set(seen.notes["items"]) == ({"/last"} if potto else {"/next", "/last"})


def test_a_subclass_replaces_the_middleware_of_the_add_on() -> None:
    subclass = "tests.helpers.components.derived.ExceptOwnPages"
    settings = {**SETTINGS, "SPIDER_MIDDLEWARES": {subclass: 100}}
    answers = {path: page(tagged("none"), f"{path}/next") for path in ("/own", "/other")}
    with Site(answers=answers) as site:
        seen = follow(site, *answers, settings=settings)
    assert site.pages() == ["/other", "/own", "/own/next"]
    assert sorted(seen.notes["items"]) == ["/own", "/own/next"]
    assert seen.log_lines("INFO", f"{subclass} replaces scrapy_norobots.RobotsMetaMiddleware")


def test_dont_obey_robotstxt_exempts_the_items_of_a_page_but_not_its_links() -> None:
    with Site(answers={"/": page(tagged("none"), "/next", "/marked")}) as site:
        start = {"url": f"{site.url}/", "meta": {"dont_obey_robotstxt": True}}
        seen = crawl(start, settings=SETTINGS, spider="items.Collecting", arguments={"follow": True})
    assert site.pages() == ["/", "/marked"]
    assert sorted(seen.notes["items"]) == ["/", "/marked"]


def test_the_tags_of_a_redirect_target_apply() -> None:
    answers = {
        "/old": Answer(status=302, headers={"Location": "/new", "X-Robots-Tag": "none"}),
        "/new": page(tagged("nofollow"), "/next"),
    }
    with Site(answers=answers) as site:
        seen = follow(site, "/old")
    assert site.pages() == ["/new", "/old"]
    assert seen.notes["items"] == ["/new"]


def test_the_output_of_errbacks_passes(mode: str) -> None:
    gone = Answer(tagged("none"), status=404, headers={"Content-Type": "text/html"})
    with Site(answers={"/": page("", "/gone"), "/gone": gone}) as site:
        seen = follow(site)
        handled = follow(site, settings={**SETTINGS, "HTTPERROR_ALLOWED_CODES": [404]})
    assert seen.notes["items"] == ["/", "failure of /gone"]
    assert handled.notes["items"] == ["/"]


def test_a_dry_run_logs_and_drops_nothing() -> None:
    with Site(answers={"/": page(tagged("none"), "/next")}) as site:
        seen = follow(site, settings={**META, "NOROBOTS_DRY_RUN": True})
    assert site.pages() == ["/", "/next"]
    assert seen.stats["norobots/meta/nofollow"] == 1
    assert seen.log_lines(f"DEBUG: Request would be dropped by nofollow: <GET {site.url}/next>")


def test_an_override_that_ended_at_a_redirect_exempts_no_item() -> None:
    with Site() as site, Site(answers={"/": page(tagged("noindex"))}, host="127.0.0.2") as other:
        site.answers["/"] = Answer(status=302, headers={"Location": f"{other.url}/"})
        start = {"url": f"{site.url}/", "meta": {"dont_obey_robotstxt": True}}
        seen = crawl(start, spider="items.Items", settings=META)
    assert seen.stats["norobots/meta/noindex"] == 1
