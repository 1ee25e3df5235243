"""Find the lines of a robots.txt that have no effect, although their author intended one.

They are the lines with findings of severity `ERROR`, and rules that such a line takes from their robots.
With the strict reading, a crawl may fetch what these lines were meant to forbid, so it reports them. Only the
start of a file is searched: findings take longer than parsing, about 1.5 ms for 32 KiB of rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from scrapy_norobots.standard import Finding, RobotsTxt, Severity
from scrapy_norobots.standard.decision import quoted
from scrapy_norobots.standard.findings import find_all, rules_of
from scrapy_norobots.standard.lines import to_lines, to_text

# How many characters and lines are searched: at most about 0.1 s of work, for any content. A file of more
# than 8 KiB is searched in a thread.
_CHARACTERS_MAX = 32 * 1024
_LINES_MAX = 2_000

# Kinds of findings that change nothing for any robot.
_HARMLESS = ("robots-txt",)

# Listed among the kinds of findings: a rule without a finding that a line above it takes from its robots.
MISPLACED = "misplaced-rule"


def errors_of(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings on lines without effect; these lines and the rules that they take are all."""
    return [one for one in findings if one.severity is Severity.ERROR and one.kind not in _HARMLESS]


@dataclass(frozen=True, slots=True)
class IneffectiveRules:
    """The lines of a file without effect.

    `lines` is how many there are, `kinds` lists the kinds of findings, and `text` says for the log how many
    rules have no effect, or none for the robots they were meant for, with a message for each kind.
    """

    lines: int
    kinds: str
    text: str

    @classmethod
    def of(cls, body: bytes, *, multivalue: bool = False) -> IneffectiveRules | None:
        """Search the first 32 KiB of a file; return None if it has no such lines."""
        text, is_truncated = _start(body)
        errors = errors_of(find_all(text, multivalue=multivalue, severities=(Severity.ERROR,)))
        if not errors:
            return None
        rules, idle = rules_of(errors, RobotsTxt.parse(text, multivalue=multivalue).records)
        kinds: dict[str, list[Finding]] = {}
        for finding in errors:
            kinds.setdefault(finding.kind, []).append(finding)
        faulty = {finding.line for finding in errors}
        misplaced = [line for line in idle if line not in faulty]
        lines = len(faulty) + len(misplaced)
        beginning = " at its start" if is_truncated else ""
        details = "; ".join(_detail(found) for found in kinds.values())
        if idle:
            said = (
                f"{len(idle)} of {len(rules)} Disallow {'line' if len(rules) == 1 else 'lines'}{beginning}, "
                f"so the strict reading allows pages that the site meant to forbid ({details})"
            )
        else:
            said = f"{lines} {'line' if lines == 1 else 'lines'}{beginning} ({details})"
        places = {kind: _place([one.line for one in found]) for kind, found in kinds.items()}
        if misplaced:
            places[MISPLACED] = _place(misplaced)
        return cls(lines, ", ".join(f"{kind} ({place})" for kind, place in places.items()), said)


def _detail(found: list[Finding]) -> str:
    place = _place([one.line for one in found])
    return f"{place}, {quoted(found[0].text.strip())}: {found[0].message.rstrip('.')}"


def _place(lines: list[int]) -> str:
    return f"line {lines[0]}" + (f" and {len(lines) - 1} more" if len(lines) > 1 else "")


def _start(body: bytes) -> tuple[str, bool]:
    """Return the first whole lines of a file, and whether there are more."""
    text = to_text(body[: 4 * _CHARACTERS_MAX])  # no character has more than four bytes
    start = text[:_CHARACTERS_MAX]
    if len(start) < len(text):
        start = start[: max(start.rfind("\n"), start.rfind("\r")) + 1]
    lines = to_lines(start)
    if len(lines) > _LINES_MAX:
        start = "\n".join(lines[:_LINES_MAX])
    return start, len(start) < len(text)
