"""Blocks shown in parts: a part after the first is marked, to be joined to the one before.

A long block of a running answer is closed in parts, and each part is parsed by itself. `mark` gives
the outermost element of a further part the class "further", by which the page joins it to the block
before, and makes the part look as the whole will: a list has room between its items if it had
before, and a table has its heading only once.
"""

from __future__ import annotations

from typing import NamedTuple

from markdown_it.token import Token

CLASS = "further"


class Part(NamedTuple):
    """What is known of a block from the parts before."""

    is_continued: bool = False
    is_loose: bool = False


def is_loose(tokens: list[Token]) -> bool:
    """Return whether these are of a list with room between its items."""
    return any(token.type == "paragraph_open" and not token.hidden for token in _of_items(tokens))


def mark(tokens: list[Token], part: Part) -> list[Token]:
    """Mark the first block of the tokens as a further part; return them without what it repeats."""
    if not part.is_continued or not tokens:
        return tokens
    first = tokens[0]
    if first.type.endswith("list_open"):
        first.attrJoin("class", CLASS)
        for token in _of_items(tokens) if part.is_loose else ():
            if token.type.startswith("paragraph"):
                token.hidden = False
    elif first.type == "fence":
        first.meta["is_continued"] = True
    elif len(tokens) > 1 and tokens[1].type == "table_open":
        first.content = first.content.replace('"table"', f'"table {CLASS}"')
        return _without_heading(tokens)
    return tokens


def _of_items(tokens: list[Token]) -> list[Token]:
    """Return the tokens that stand in the items of the list at the beginning."""
    end = next((at for at, one in enumerate(tokens) if one.level == 0 and one.nesting < 0), 0)
    return [token for token in tokens[:end] if token.level == 2]


def _without_heading(tokens: list[Token]) -> list[Token]:
    types = [token.type for token in tokens]
    return tokens[: types.index("thead_open")] + tokens[types.index("thead_close") + 1 :]
