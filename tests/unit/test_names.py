"""Names of robots in headers and values, without version."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_norobots.standard.names import names_robot, robot_name, to_name


@pytest.mark.parametrize(
    ("given", "name"),
    [
        # bare names
        ("", ""),
        ("Tamarin", "Tamarin"),
        ("  Tamarin\t", "Tamarin"),
        ("*", "*"),
        ("Golden Tamarin", "Golden Tamarin"),
        ("Tamarin-Images", "Tamarin-Images"),
        ("Tamarin_(Leo)", "Tamarin_(Leo)"),
        ("Tamarin2", "Tamarin2"),
        ("tamarin.example", "tamarin.example"),
        # versions
        ("Tamarin/1.2", "Tamarin"),
        ("Tamarin/", "Tamarin"),
        ("Tamarin /1.2", "Tamarin"),
        ("Tamarin/1/2", "Tamarin"),
        ("/1.2", ""),
        ("Tamarin 1.2", "Tamarin"),
        ("Tamarin\t1.2.3", "Tamarin"),
        ("Tamarin  1.2", "Tamarin"),
        ("Tamarin \t (x)", "Tamarin"),
        ("Tamarin v1.2b", "Tamarin"),
        ("Tamarin V1.2", "Tamarin"),
        ("Tamarin 1.x", "Tamarin"),
        ("Tamarin 2", "Tamarin 2"),
        ("Tamarin 1.2 beta", "Tamarin 1.2 beta"),
        ("Tamarin 1.", "Tamarin 1."),
        ("Tamarin1.2", "Tamarin1.2"),
        ("Area 51.5 Tamarin", "Area 51.5 Tamarin"),
        ("1.2", "1.2"),
        # white space other than blanks (F6), characters that resemble digits
        ("Tamarin\xa01.2", "Tamarin\xa01.2"),
        ("Tamarin\x0b(x)", "Tamarin\x0b(x)"),
        ("\xa0Tamarin\u3000", "\xa0Tamarin\u3000"),
        ("Tamarin \u0661.2", "Tamarin \u0661.2"),
        # comments
        ("Tamarin (+http://tamarin.example/)", "Tamarin"),
        ("Tamarin [tamarin.example]", "Tamarin"),
        ("Tamarin/1.2 (compatible; Potto/1.0)", "Tamarin"),
        ("Tamarin_(Leo)/1.0 libfetch/3.1", "Tamarin_(Leo)"),
        ("(Tamarin)", "(Tamarin)"),
        ("Tamarin 1.2 (+http://tamarin.example/)", "Tamarin"),
        ("Tamarin v1.2b [tamarin.example]", "Tamarin"),
        # in the form of browsers
        ("Mozilla/5.0 (compatible; Tamarin/1.2; +http://tamarin.example/)", "Tamarin"),
        ("Mozilla/5.0 (compatible; Tamarin/1.2)", "Tamarin"),
        ("Mozilla/5.0 (compatible; Tamarin)", "Tamarin"),
        ("Mozilla/5.0 (compatible;Tamarin 1.2;x)", "Tamarin"),
        ("Mozilla/5.0 ( compatible;  Golden Tamarin ; x)", "Golden Tamarin"),
        ("mozilla/4.0 (COMPATIBLE; Tamarin/1.2)", "Tamarin"),
        ("Mozilla/5.0 (compatible; Tamarin", "Tamarin"),
        ("Mozilla/5.0 X/1 (KHTML, like Gecko; compatible; Tamarin/1.2; +x) Chrome/1.0", "Tamarin"),
        ("Mozilla/5.0 (Linux) X/1 (compatible; Tamarin/1.2; +x)", "Tamarin"),
        ("Mozilla/5.0 (X11; Linux) Gecko/2010 Firefox/1.0", "Mozilla"),
        ("Mozilla/5.0 (incompatible; Tamarin/1.2)", "Mozilla"),
        ("Mozilla/5.0 (compatible;) Tamarin/1.2", "Mozilla"),
        ("Mozilla/5.0 (compatible; ) Tamarin/1.2", "Mozilla"),
        ("Mozilla/5.0 (compatible; ; Tamarin/1.2)", "Mozilla"),
        ("Mozilla/5.0 (compatible; ) (compatible; Tamarin/1.2)", "Tamarin"),
        ("Mozilla/5.0 (compat\u0131ble; Tamarin/1.2)", "Mozilla"),
        (" Mozilla/5.0 (compatible; Tamarin/1.2)", "Tamarin"),
        ("Mozilla (compatible; Tamarin/1.2)", "Mozilla"),
        ("NotMozilla/5.0 (compatible; Tamarin/1.2)", "NotMozilla"),
    ],
)
def test_robot_name(given: str, name: str) -> None:
    assert robot_name(given) == name


def test_any_bytes_are_decoded_as_utf8() -> None:
    assert to_name(b"Tamarin/1.2") == "Tamarin"
    assert to_name("Ägypten/1".encode()) == "Ägypten"
    assert to_name(b"\xe9/1") == "\udce9"


@pytest.mark.parametrize("given", [None, 1, bytearray(b"x"), memoryview(b"x"), ["x"], object()])
def test_other_types_are_type_errors(given: Any) -> None:
    with pytest.raises(TypeError, match=f"must be a str or bytes, not {type(given).__name__}"):
        to_name(given)


@pytest.mark.parametrize(
    ("value", "folded_name", "named"),
    [
        ("tamarin", "tamarin", True),
        ("TamaRin/3", "golden tamarin", True),
        ("marin", "tamarin", True),
        ("tamarins", "tamarin", False),
        ("", "tamarin", False),
        ("/1", "tamarin", False),
        ("", "", False),
        ("*", "*", False),
        ("*", "tama*rin", False),
        ("a*", "tama*rin", True),
        ("STRASSE", "straße".casefold(), True),
    ],
)
def test_names_robot(value: str, folded_name: str, named: bool) -> None:
    assert names_robot(value, folded_name) is named
