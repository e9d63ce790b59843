"""What an IMAP server says, as values: atoms, strings and lists, read in one pass.

An answer is one logical line whose literals were taken by their length. Nesting, items and literals
are counted by the reader, so no answer costs more than its caps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from tools.mail.errors import MailError

DEEPEST = 30
TOKEN = re.compile(
    rb' *+(?:(?P<open>\()|(?P<close>\))|"(?P<string>[^"\\]*+(?>(?:\\.[^"\\]*+)*))"'
    rb'|(?P<atom>[^\s()"\[]++(?:\[[^\]]*+\][^\s()"]*+)?|\[[^\]]*+\]))'
)
ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
ANNOUNCED = re.compile(rb"\{(\d{1,10})\+?\}$")


@dataclass(frozen=True, slots=True)
class Atom:
    text: bytes


#: bytes: a string or a literal.
Value: TypeAlias = Atom | bytes | list["Value"]


def literal_length(line: bytes) -> int | None:
    """Give the length of the literal that a line ends with."""
    found = ANNOUNCED.search(line)
    return int(found[1]) if found else None


def parse_values(pieces: list[bytes]) -> list[Value]:
    """Read an answer: lines at even places, the literals between them at odd ones."""
    top: list[Value] = []
    stack = [top]
    for number, piece in enumerate(pieces):
        if number % 2:
            stack[-1].append(piece)
            continue
        line = ANNOUNCED.sub(b"", piece) if number + 1 < len(pieces) else piece
        _parse_line(line, stack)
    return top


def _parse_line(line: bytes, stack: list[list[Value]]) -> None:
    at, end = 0, len(line.rstrip(b" "))
    while at < end:
        found = TOKEN.match(line, at)
        if found is None:
            raise MailError("The mail server's answer cannot be read.")
        at = found.end()
        match found.lastgroup:
            case "open":
                inner: list[Value] = []
                stack[-1].append(inner)
                stack.append(inner)
                if len(stack) > DEEPEST:
                    raise MailError("The mail server's answer is nested too deeply.")
            case "close":
                if len(stack) == 1:
                    raise MailError("The mail server's answer cannot be read.")
                stack.pop()
            case "string":
                stack[-1].append(ESCAPED.sub(rb"\1", found["string"]))
            case _:
                stack[-1].append(Atom(found["atom"]))


def decode_value(value: Value) -> str:
    """Give an atom or a string as text; a list is none."""
    match value:
        case Atom(text):
            return text.decode("utf-8", errors="replace")
        case bytes():
            return value.decode("utf-8", errors="replace")
        case _:
            return ""


def parse_pairs(items: Value) -> dict[str, Value]:
    """Read the list of a FETCH: names, each followed by its value; sections without offsets."""
    if not isinstance(items, list):
        raise MailError("The mail server's answer cannot be read.")
    names = [decode_value(each).upper().partition("<")[0] for each in items[::2]]
    return dict(zip(names, items[1::2], strict=False))


def parse_number(value: Value | None) -> int:
    """Read a number; what is none is 0."""
    text = decode_value(value) if value is not None else ""
    return int(text) if text.isdecimal() and len(text) < 19 else 0
