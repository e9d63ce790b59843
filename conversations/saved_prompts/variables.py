r"""Variables in saved prompts: a text is parsed into pieces, and filled in. Pure.

    {{topic}}               has to be filled in
    {{tone=friendly}}       has a default, which may be empty
    {{length:short|long}}   is one of several choices
    \{{                     are two braces as they are; \\{{ is a backslash before a variable

A variable stands in one line, and the last two braces of several open it. One that is named again,
in whatever case, is the same variable, and is described once. Braces that open nothing are text.
What is filled in is not parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

MOST_NAME, MOST_VARIABLES, MOST_CHOICES = 40, 20, 20
#: Characters of a wrong place that an error quotes.
_QUOTED = 40
#: From the first of the signs before it on, so that a long row of them is looked at once.
_OPENS = re.compile(r"(?<!\\)(\\*)\{\{")
_NAME = re.compile(r"[^\W_][^\\|]*")


class VariableError(ValueError):
    """A variable is malformed: `code` says how, `line` where, and `found` is what stands there."""

    def __init__(self, code: str, line: int, found: str) -> None:
        super().__init__(f"{code} in line {line}: {found}")
        self.code, self.line, self.found = code, line, found


@dataclass(frozen=True, slots=True)
class Variable:
    """What is asked for: freely, with a default (None: it has to be filled in), or by choice."""

    name: str
    default: str | None = None
    choices: tuple[str, ...] = ()

    @property
    def is_bare(self) -> bool:
        return self.default is None and not self.choices


@dataclass(frozen=True, slots=True)
class ParsedPrompt:
    """A text in pieces: strings as they are, and the number of a variable where one stands."""

    pieces: tuple[str | int, ...]
    variables: tuple[Variable, ...]


def parse_prompt(text: str) -> ParsedPrompt:
    """Split a text at its variables; raises VariableError."""
    pieces: list[str | int] = []
    variables: list[Variable] = []
    numbers: dict[str, int] = {}
    for piece in _split(text):
        if isinstance(piece, str):
            pieces.append(piece)
            continue
        line, found = piece
        read = _read_variable(found, line)
        number = numbers.setdefault(read.name.casefold(), len(variables))
        if number == len(variables):
            variables.append(read)
        elif variables[number].is_bare:
            variables[number] = replace(read, name=variables[number].name)
        elif not read.is_bare and (read.default, read.choices) != _describe(variables[number]):
            raise VariableError("differs", line, found[:_QUOTED])
        if len(variables) > MOST_VARIABLES:
            raise VariableError("too_many", line, found[:_QUOTED])
        pieces.append(number)
    return ParsedPrompt(tuple(pieces), tuple(variables))


def fill_in(prompt: ParsedPrompt, values: Sequence[str]) -> str:
    """Return the text with each variable's value."""
    return "".join(each if isinstance(each, str) else values[each] for each in prompt.pieces)


def _describe(variable: Variable) -> tuple[str | None, tuple[str, ...]]:
    return variable.default, variable.choices


def _split(text: str) -> Iterator[str | tuple[int, str]]:
    """Yield the text between variables, and of each variable its line and what is in its braces."""
    at = 0
    while opened := _OPENS.search(text, at):
        backslashes = len(opened[1])
        yield text[at : opened.start()] + "\\" * (backslashes // 2)
        at = opened.end()
        if backslashes % 2:
            yield "{{"
            continue
        while text.startswith("{", at):
            yield "{"
            at += 1
        line = text.count("\n", 0, at) + 1
        rest = text[at:].partition("\n")[0]
        found, closing, _ = rest.partition("}}")
        if not closing:
            raise VariableError("unclosed", line, rest[:_QUOTED])
        yield line, found
        at += len(found) + len(closing)
    yield text[at:]


def _read_variable(found: str, line: int) -> Variable:
    mark = re.search(r"[=:]", found)
    name = (found[: mark.start()] if mark else found).strip()
    if not _NAME.fullmatch(name) or not name.isprintable() or re.search(r"[{}]", found):
        raise VariableError("name", line, found[:_QUOTED])
    if len(name) > MOST_NAME:
        raise VariableError("long_name", line, found[:_QUOTED])
    if mark is None:
        return Variable(name)
    rest = found[mark.end() :]
    if mark[0] == "=":
        return Variable(name, default=rest.strip())
    return Variable(name, choices=_read_choices(rest, line, found))


def _read_choices(rest: str, line: int, found: str) -> tuple[str, ...]:
    choices = tuple(each.strip() for each in rest.split("|"))
    if len(choices) < 2 or not all(choices) or len(set(choices)) < len(choices):
        raise VariableError("choices", line, found[:_QUOTED])
    if len(choices) > MOST_CHOICES:
        raise VariableError("many_choices", line, found[:_QUOTED])
    return choices
