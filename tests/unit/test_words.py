"""`words`: the purposes and the vocabularies, as the docs show them."""

from __future__ import annotations

import re

from scrapy_norobots.features.usage.words import PURPOSES, REFUSALS, USES, WORDS
from tests.helpers.running.processes import ROOT

PAGE = (ROOT / "docs" / "usage.md").read_text()


def words_in(cell: str) -> set[str]:
    return set(re.findall(r"`([\w-]+)(?:: 1)?`", cell))


def test_the_docs_map_the_words_of_the_vocabularies_as_the_code_does() -> None:
    rows = {
        cells[0].strip("` "): cells[1:]
        for line in PAGE.splitlines()
        if len(cells := line.strip("|").split("|")) == 4
    }
    for purpose in PURPOSES:
        signal, usage, pages = map(words_in, rows[purpose])
        assert signal == {word for word, about in WORDS["content-signal"].items() if purpose in about}
        assert usage == {word for word, about in WORDS["content-usage"].items() if purpose in about}
        assert pages == {kind for kind, about in REFUSALS.items() if about == purpose}


def test_the_docs_have_every_value_of_the_word_use() -> None:
    assert set(re.findall(r"`use=(\w+)`", PAGE)) == set(USES)
