"""Compare the parser with simple implementations of the same clauses, in `tests.helpers.judges`."""

from __future__ import annotations

import random
import re
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_norobots.standard import RobotsTxt
from tests.helpers.judges import comparison, oracle, rfc9309
from tests.helpers.judges.comparison import answer, compare, differences
from tests.helpers.worlds import nasty
from tests.unit.test_clauses import EXAMPLES, HOST

SEEDS = {"1994": range(3), "multivalue": range(1), "rfc9309": range(3)}


@pytest.mark.parametrize(
    ("reading", "seed"), [(reading, seed) for reading, seeds in SEEDS.items() for seed in seeds]
)
def test_both_implementations_agree_on_random_files(reading: str, seed: int) -> None:
    """``python -m tests.helpers.judges.comparison`` asks about more of them."""
    assert list(compare(reading, seed, 400)) == []


@given(st.randoms(use_true_random=False))
def test_both_implementations_agree_on_files_of_hypothesis(some: random.Random) -> None:
    """The same kind of files; Hypothesis shrinks an example that differs."""
    assert not list(differences(nasty.case(some, questions=1)))


# --- the oracle itself


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_oracle_passes_the_examples_of_the_sources(name: str) -> None:
    text, forbidden, allowed = EXAMPLES[name]
    for robot, targets in forbidden.items():
        for target in targets.split():
            assert not oracle.allowed(text, HOST + target, robot)
        for target in set(allowed.split()) - set(targets.split()):
            assert oracle.allowed(text, HOST + target, robot)


def test_both_answers_occur() -> None:
    """Files that allow everything would prove nothing."""
    some = random.Random(0)
    cases = [nasty.case(some) for _ in range(300)]
    given = [
        answer(lambda: oracle.allowed(body, url, robot))  # noqa: B023  # called at once
        for body, questions in cases
        for url, robot in questions
    ]
    for text, at_least in {"True": 0.3, "False": 0.15, "ValueError": 0.01}.items():
        assert given.count(text) > at_least * len(given)


def test_the_oracle_finds_injected_bugs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slipping(RobotsTxt):
        def allowed(self, url: str, robot: str | bytes) -> bool:
            return super().allowed(re.sub("%7e", "~", url), robot)

    some = random.Random(0)
    cases = [nasty.case(some) for _ in range(300)]
    monkeypatch.setattr(comparison, "RobotsTxt", Slipping)
    found = [difference for case in cases for difference in differences(case)]
    assert found
    assert all(difference.startswith("allowed ") and "%7e" in difference for difference in found)


@pytest.mark.parametrize("module", [oracle, rfc9309])
def test_the_second_implementations_share_no_code_with_the_package(module: ModuleType) -> None:
    assert "scrapy_norobots" not in Path(str(module.__file__)).read_text()
