"""What the meta of a request overrides, and for which origin."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request

from scrapy_norobots.question import checked_url, is_overridden

HERE = "http://town.example/back/"
ELSEWHERE = "http://garden.example/"

# The URLs that a request came by -> whether what its meta overrides still applies.
REDIRECTS = {
    "none": (None, True),
    "an empty list": ([], True),
    "within the origin": (["http://town.example/"], True),
    "within the origin, spelt another way": (["HTTP://ann@Town.Example:80/"], True),
    "away and back": (["http://town.example/", ELSEWHERE], True),
    "from another host": ([ELSEWHERE], False),
    "from another scheme": (["https://town.example/"], False),
    "from another port": (["http://town.example:8080/"], False),
    "from another host, then here": ([ELSEWHERE, "http://town.example/"], False),
    "from what has no origin": (["http://town.example:no/"], False),
    "from a file": (["data:,"], False),
    "from what is no text": ([7], False),
    "from what has no order": ({HERE}, False),
    "from what has no first URL": ({"url": HERE}, False),
}


@pytest.mark.parametrize("case", REDIRECTS)
def test_an_override_applies_to_the_origin_that_the_request_was_sent_to(case: str) -> None:
    urls, applies = REDIRECTS[case]
    meta: dict[str, Any] = {"norobots_url": ELSEWHERE, "dont_obey_robotstxt": True, "redirect_urls": urls}
    request = Request(HERE, meta=meta)
    assert is_overridden(request) is applies
    assert checked_url(request) == (ELSEWHERE if applies else HERE)


@pytest.mark.parametrize(
    ("meta", "is_exempt", "url"),
    [
        ({}, False, HERE),
        ({"dont_obey_robotstxt": False}, False, HERE),
        ({"dont_obey_robotstxt": None}, False, HERE),
        ({"dont_obey_robotstxt": 1}, True, HERE),
        ({"norobots_url": None}, False, HERE),
        *(
            ({"norobots_url": url}, False, url)  # as it is
            for url in ["https://garden.example:8443/a?b#c", "HTTP://Garden.Example", "http://[::1]/"]
        ),
        ({"norobots_url": "nonsense", "redirect_urls": [ELSEWHERE]}, False, HERE),
    ],
    ids=str,
)
def test_the_meta_may_exempt_a_request_or_name_another_url(
    meta: dict[str, Any], is_exempt: bool, url: str
) -> None:
    request = Request(HERE, meta=meta)
    assert is_overridden(request) is is_exempt
    assert checked_url(request) == url


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("", "'' is neither a URL nor a path that starts with '/'"),
        (7, "it must be an http or https URL"),
        (b"http://town.example/", "it must be an http or https URL"),
        ("http:\t//me:secret@town.example/", "it must be an http or https URL"),
        ("ftp://town.example/", "it must be an http or https URL"),
        ("http:///back/", "it must be an http or https URL"),
        ("/back/", "it must be an http or https URL"),
        ("http://town.example:99999/", "port '99999' in 'town.example:99999' is not a number up to 65535"),
        ("http://[::1/", "Invalid IPv6 URL"),
        ("town.example/page", "'town.example/page' is neither a URL nor a path that starts with '/'"),
    ],
)
def test_a_bad_norobots_url_is_an_error_that_names_value_and_request(value: object, problem: str) -> None:
    with pytest.raises(ValueError, match="norobots_url") as error:
        checked_url(Request(HERE, meta={"norobots_url": value}))
    assert str(error.value) == f"norobots_url = {value!r} in the meta of <GET {HERE}>: {problem}"
