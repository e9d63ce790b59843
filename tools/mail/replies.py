"""Answers of an IMAP server as values: atoms, strings and lists, parsed in one pass.

An answer is one logical line whose literals were read by their length. Nesting is bounded here,
items and literals by the session, so no answer costs more than its caps.
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
    """Return the length of the literal that a line announces at its end, or None."""
    found = ANNOUNCED.search(line)
    return int(found[1]) if found else None


def parse_values(pieces: list[bytes]) -> list[Value]:
    """Parse an answer: lines at even indexes, the literals between them at odd ones."""
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
    """Return an atom or a string as text; "" for a list."""
    match value:
        case Atom(text):
            return text.decode("utf-8", errors="replace")
        case bytes():
            return value.decode("utf-8", errors="replace")
        case _:
            return ""


def parse_pairs(items: Value) -> dict[str, Value]:
    """Parse the list of a FETCH: names and values in turn; section names lose their offset."""
    if not isinstance(items, list):
        raise MailError("The mail server's answer cannot be read.")
    names = [decode_value(each).upper().partition("<")[0] for each in items[::2]]
    return dict(zip(names, items[1::2], strict=False))


def parse_number(value: Value | None) -> int:
    """Parse a number; 0 for anything else."""
    text = decode_value(value) if value is not None else ""
    return int(text) if text.isdecimal() and len(text) < 19 else 0
