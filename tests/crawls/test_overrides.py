"""The meta keys of requests: `norobots_url`, and overrides after a redirect."""

from __future__ import annotations

from tests.helpers.running.crawling import ADDON, crawl
from tests.helpers.sites import Answer, Site

RULES = "User-agent: *\nDisallow: /back/\n"


def test_a_rendering_service_is_checked_by_the_rules_of_the_rendered_page(mode: str) -> None:
    with Site("User-agent: *\nDisallow: /render\n") as service, Site(RULES, host="127.0.0.2") as site:
        seen = crawl(
            *(
                {
                    "url": f"{service.url}/render?{number}",
                    "meta": {"norobots_url": site.url + path, "splash": {"args": {}}},
                }
                for number, path in enumerate(("/open", "/back/1", "/%62ack/2"))
            )
        )
    assert service.targets() == ["/render?0"]
    assert site.targets() == ["/robots.txt"]
    assert [drop.line for drop in seen.drops] == [2, 2]
    assert f"{site.url}/back/1 is forbidden" in "".join(drop.text for drop in seen.drops)


def test_a_page_that_a_middleware_names_is_checked_by_its_own_rules() -> None:
    """Even if the rules of the service, for which the request has waited, have expired meanwhile."""
    with Site("") as service, Site(RULES, host="127.0.0.2") as site:
        settings = {
            **ADDON,
            "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.NamesThePage": 50},
            "PAGE": f"{site.url}/back/1",
            "NOROBOTS_TTL": 0,
            "NOROBOTS_TTL_MIN": 0,
        }
        seen = crawl(f"{service.url}/render", settings=settings)
    assert service.pages() == []
    assert [drop.line for drop in seen.drops] == [2]


def test_a_request_with_a_bad_url_ends_with_an_error_and_is_not_sent() -> None:
    with Site() as service:
        seen = crawl({"url": f"{service.url}/render", "meta": {"norobots_url": "/back/"}})
    [drop] = seen.drops
    assert drop.type == "ValueError"
    assert drop.text.startswith(f"norobots_url = '/back/' in the meta of <GET {service.url}/render>: ")
    assert service.hits == []


def test_an_override_applies_only_to_the_origin_of_the_request() -> None:
    with Site(RULES) as other, Site(RULES, host="127.0.0.2") as site:
        site.answers["/back/here"] = Answer(status=302, headers={"Location": "/back/there"})
        site.answers["/back/away"] = Answer(status=302, headers={"Location": f"{other.url}/back/1"})
        site.answers["/back/open"] = Answer(status=302, headers={"Location": f"{other.url}/open"})
        meta = {"dont_obey_robotstxt": True}
        seen = crawl(*({"url": f"{site.url}/back/{name}", "meta": meta} for name in ("here", "away", "open")))
    assert sorted(seen.pages) == sorted([f"{site.url}/back/there", f"{other.url}/open"])
    assert [drop.url for drop in seen.drops] == [f"{other.url}/back/1"]
    assert other.pages() == ["/open"]
    assert site.robots_hits() == []


def test_a_redirect_of_a_service_to_another_origin_is_checked_by_its_target() -> None:
    third_site = Site("User-agent: *\nDisallow: /private\n", host="127.0.0.3")
    with third_site as third, Site() as service, Site(RULES, host="127.0.0.2") as site:
        service.answers["/render"] = Answer(status=302, headers={"Location": f"{third.url}/private/x"})
        service.answers["/again"] = Answer(status=302, headers={"Location": "/rendered"})
        meta = {"norobots_url": f"{site.url}/open"}
        seen = crawl(*({"url": service.url + path, "meta": meta} for path in ("/render", "/again")))
    assert third.targets() == ["/robots.txt"]
    assert [drop.url for drop in seen.drops] == [f"{third.url}/private/x"]
    assert seen.pages == [f"{service.url}/rendered"]
