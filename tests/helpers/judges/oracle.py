"""A second, simple implementation of docs/standard.md, to compare with the parser.

It shares no code with the package, is not fast, and only decides: ``allowed(body, url, robot)``. Each
function is one group of clauses. `comparison` compares both.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"
HEX = DIGITS + "ABCDEFabcdef"
UNRESERVED = LETTERS + DIGITS + "-._~"
NOT_ALLOWED = '"<>[\\]^`{|}'
NO_HOST = ["about", "blob", "data", "file", "ftp", "gopher", "javascript", "mailto", "news", "sms", "tel"]
NO_HOST += ["urn"]


class Record(NamedTuple):
    """The values of a record's lines."""

    names: list[str]
    rules: list[str]


class Place(NamedTuple):
    """The target of a URL: an origin, None for a bare path, and path with query."""

    scheme: str
    host: str
    port: int | None
    target: str


def lower(text: str) -> str:
    """Return `text` with ASCII letters in lower case."""
    return "".join(chr(ord(letter) + 32) if "A" <= letter <= "Z" else letter for letter in text)


# --- the file


def decode(body: bytes | str) -> str:
    """F1."""
    if isinstance(body, bytes):
        zeros = [place for place, byte in enumerate(body[:4]) if byte == 0] if len(body) > 3 else []
        if body[:4] == b"\xff\xfe\0\0" or zeros == [1, 2, 3]:
            body = decode_utf_32(body, "little")
        elif body[:4] == b"\0\0\xfe\xff" or zeros == [0, 1, 2]:
            body = decode_utf_32(body, "big")
        elif body[:2] == b"\xff\xfe" or zeros == [1, 3]:
            body = decode_utf_16(body, "little")
        elif body[:2] == b"\xfe\xff" or zeros == [0, 2]:
            body = decode_utf_16(body, "big")
        else:
            body = body.decode("utf-8", "surrogateescape")
    while body[:1] == "\ufeff":
        body = body[1:]
    return body


def decode_utf_32(body: bytes, order: Literal["little", "big"]) -> str:
    """F1: decode groups of four bytes; an error is U+FFFD, and fewer bytes at the end are dropped."""
    numbers = [int.from_bytes(body[place : place + 4], order) for place in range(0, len(body) - 3, 4)]
    return "".join(
        chr(number) if number < 0xD800 or 0xE000 <= number < 0x110000 else "\ufffd" for number in numbers
    )


def decode_utf_16(body: bytes, order: str) -> str:
    """F1: decode pairs of bytes; an error is U+FFFD, and a single last byte is dropped."""
    units = []
    for place in range(0, len(body) - 1, 2):
        first, second = body[place], body[place + 1]
        units.append(second * 256 + first if order == "little" else first * 256 + second)
    text = ""
    while units:
        unit = units.pop(0)
        if 0xD800 <= unit < 0xDC00 and units and 0xDC00 <= units[0] < 0xE000:
            text += chr(0x10000 + (unit - 0xD800) * 0x400 + units.pop(0) - 0xDC00)
        elif 0xD800 <= unit < 0xE000:
            text += "\ufffd"
        else:
            text += chr(unit)
    return text


def split_lines(text: str) -> list[str]:
    """F2."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def is_page(text: str) -> bool:
    """F8."""
    text = lower(text)
    while True:
        text = text.lstrip()
        if text.startswith("<?") and "?>" in text[2:]:
            text = text[text.index("?>", 2) + 2 :]
        elif text.startswith("<!--") and "-->" in text[4:]:
            text = text[text.index("-->", 4) + 3 :]
        else:
            break
    words = text.replace(">", " > ").replace("/", " / ").split()[:2]
    return words[:1] in (["<html"], ["<head"], ["<body"]) or words == ["<!doctype", "html"]


def field_of(line: str) -> str:
    """F3, F6: the name of a line's field in lower case; empty if there is none."""
    field, colon, _ = line.split("#", maxsplit=1)[0].partition(":")
    return lower(field.strip(" \t")) if colon else ""


def values_in(value: str) -> list[str]:
    """D1: the values in a line; a comma or semicolon at the end of one is punctuation."""
    words = [word.rstrip(",;") for word in value.replace("\t", " ").split(" ")]
    return [word for word in words if word != ""]


@lru_cache(maxsize=100)
def read(body: bytes | str, *, multivalue: bool = False) -> list[Record]:
    """F3 to F9, R1 to R4; D1 if `multivalue` is true."""
    text = decode(body)
    records: list[Record] = []
    is_open = False
    for line in [] if is_page(text) else split_lines(text):
        kept = line.split("#")[0].strip(" \t")
        if not kept:
            if "#" not in line:
                is_open = False
            continue
        field = field_of(line)
        value = kept.partition(":")[2].strip(" \t")
        values = values_in(value) or [""] if multivalue else [value]
        if field == "user-agent":
            if not is_open or records[-1].rules:
                records.append(Record([], []))
                is_open = True
            records[-1].names.extend(values)
        elif field == "disallow" and is_open:
            records[-1].rules.extend(values)
    return records


# --- records for a robot


def is_version(word: str) -> bool:
    """A1: whether `word` is a dotted number, as in ``1.2`` and ``v1.2b``."""
    first, *others = word[1:].split(".") if word[:1] in ("v", "V") else word.split(".")
    if not others or first == "" or first.strip(DIGITS):
        return False
    return all(part != "" and not part.strip(LETTERS + DIGITS + "_") for part in others)


def compatible_with(header: str) -> str:
    """A1: the name after ``compatible;`` in a header, up to the next ``;`` or ``)``; or None."""
    word = "compatible;"
    for place in range(len(header)):
        stands_alone = header[:place].rstrip(" \t").endswith(("(", ";"))
        if stands_alone and lower(header[place : place + len(word)]) == word:
            robot = (
                header[place + len(word) :].split(";", maxsplit=1)[0].split(")", maxsplit=1)[0].strip(" \t")
            )
            if robot:
                return robot
    return ""


def name_of(robot: str) -> str:
    """A1: the name in a header, or in the value of a line."""
    name = robot.strip(" \t")
    if lower(name).startswith("mozilla/"):
        name = compatible_with(name) or "Mozilla"
    name = name.split("/")[0]
    for bracket in "([":
        for blank in " \t":
            name = name.split(blank + bracket)[0]
    name = name.strip(" \t")
    words = name.replace("\t", " ").split(" ")
    if len(words) > 1 and is_version(words[-1]):
        name = name[: -len(words[-1])].strip(" \t")
    return name


def rules_for(records: list[Record], robot: str) -> list[str]:
    """A2 to A5, R5, R6."""
    name = name_of(robot)
    if name != "*":
        for record in records:
            for value in record.names:
                part = name_of(value)
                if value != "*" and part != "" and part.casefold() in name.casefold():
                    return record.rules
    return [rule for record in records if "*" in record.names for rule in record.rules]


# --- which URLs


def to_bytes(character: str) -> bytes:
    """F1, U6: a byte that was not UTF-8 stays the same byte."""
    return character.encode("utf-8", "surrogateescape")


def written(target: str) -> str:
    """U6: escape what cannot be sent, and nothing else."""
    return "".join(
        character if "\x20" < character < "\x7f" else "".join(f"%{byte:02X}" for byte in to_bytes(character))
        for character in target
    )


def tokens(target: str) -> Iterator[str]:
    """U6: the characters and escapes of a written target, each in normal form."""
    while target:
        if target[0] == "%" and len(target) > 2 and target[1] in HEX and target[2] in HEX:
            decoded = chr(int(target[1:3], 16))
            yield decoded if decoded in UNRESERVED else target[:3].upper()
            target = target[3:]
        else:
            yield f"%{ord(target[0]):02X}" if target[0] in NOT_ALLOWED + "%" else target[0]
            target = target[1:]


def octets(target: str) -> str:
    """U6: the normal form, with its dot segments."""
    return "".join(tokens(written(target)))


def normal(target: str, *, is_rule: bool) -> str:
    """U6: the normal form; the last segment of a rule, and its last escape, may be incomplete and stay."""
    cut = target[-2:] if target[-2:-1] == "%" and target[-1] in HEX else "%" if target[-1:] == "%" else ""
    cut = cut if is_rule else ""
    path, mark, query = octets(target.removesuffix(cut)).partition("?")
    segments = path.split("/")[1:]
    last = segments.pop() if is_rule and not mark else None
    kept: list[str] = []
    for segment in segments:
        if segment == "..":
            kept = kept[:-1]
        elif segment != ".":
            kept.append(segment)
    if last is not None:
        kept.append(last)
    elif segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept) + mark + query + cut.upper()


def split_scheme(text: str) -> tuple[str, str]:
    """Return the scheme in lower case, or an empty string, and the rest."""
    scheme, colon, rest = text.partition(":")
    if colon and scheme[:1] and scheme[0] in LETTERS and not scheme.strip(LETTERS + DIGITS + "+-."):
        return lower(scheme), rest
    return "", text


def split_place(scheme: str, rest: str) -> Place | None:
    """U1, U8: split ``//host:port/path?query``; None without a host, ValueError for an invalid port."""
    rest = rest.split("#", maxsplit=1)[0]
    if not rest.startswith("//"):
        return None
    end = 2
    while end < len(rest) and rest[end] not in "/?":
        end += 1
    authority, target = rest[2:end], rest[end:]
    authority = authority.split("@")[-1]
    host, port = authority, ""
    if ":" in authority and not authority.endswith("]"):
        host, _, port = authority.rpartition(":")
    if port and (port.strip(DIGITS) or int(port) > 65535):
        raise ValueError(f"invalid port {port}")
    if not host:
        return None
    try:
        host = lower(host.lower().encode("idna").decode())
    except UnicodeError:
        host = host.lower()
    default = {"http": 80, "https": 443}.get(scheme)
    if not target.startswith("/"):
        target = "/" + target
    return Place(scheme, host, int(port) if port else default, target)


def cleaned(url: str) -> str:
    """U1: remove blanks and control characters around a URL, and tabs and line ends within."""
    for character in "\t\r\n":
        url = url.replace(character, "")
    while url[:1] and url[0] <= " ":
        url = url[1:]
    while url[-1:] and url[-1] <= " ":
        url = url[:-1]
    return url


def place_of_url(url: str) -> Place | None:
    """U1, U9: the target of a URL; None if no robots.txt applies to it."""
    url = cleaned(url)
    if url.startswith("/"):
        target = url.split("#")[0]
        if target.startswith("//"):
            target = target[2:]
            while target[:1] not in ("", "/", "?"):
                target = target[1:]
        return Place("", "", None, target if target.startswith("/") else "/" + target)
    scheme, rest = split_scheme(url)
    if not scheme:
        raise ValueError("neither a URL nor a path")
    return split_place(scheme, rest) if scheme in ("http", "https") else None


def target_of_rule(value: str, place: Place) -> str | None:
    """U2 to U5: the prefix that a value means at the origin of `place`; None if it does not apply there."""
    if value == "":
        return None
    if value.startswith("/"):
        return value
    scheme, rest = split_scheme(value)
    if scheme in ("http", "https") and rest.startswith("//"):
        try:
            named = split_place(scheme, cleaned(rest))
        except ValueError:
            return None
        return named.target if named and named[:3] == place[:3] else None
    if scheme in NO_HOST or (scheme and rest.startswith("//")):
        return None
    return "/" + value


def allowed(body: bytes | str, url: str, robot: str, *, multivalue: bool = False) -> bool:
    """U1, U6, U7, U9: return whether `robot` may fetch `url`; by D1 too if `multivalue` is true."""
    place = place_of_url(url)
    if place is None or normal(place.target, is_rule=False) == "/robots.txt":
        return True
    asked = [written(place.target), octets(place.target), normal(place.target, is_rule=False)]
    for value in rules_for(read(body, multivalue=multivalue), robot):
        rule = target_of_rule(value, place)
        if rule is not None:
            for form in written(rule), normal(rule, is_rule=True):
                if any(target.startswith(form) for target in asked):
                    return False
    return True
