"""Tables: bounded in cells, aligned by class, in a box that scrolls.

The parser fills short rows up to the width of the heading, so 20 KB of one-letter rows under a
heading of a thousand columns is half a second of work. A table with more than `MAX_CELLS` cells
stays a paragraph. A refused run of lines is remembered, because the rule runs at every line.
"""

from __future__ import annotations

from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.table import table
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

MAX_CELLS = 4_000


def parse_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a table, unless it has too many cells."""
    if start + 2 > end or state.sCount[start + 1] < state.blkIndent:
        return False
    at = state.bMarks[start + 1] + state.tShift[start + 1]
    if state.src[at : at + 1] not in {"|", "-", ":"} or _is_too_large(state, start, end):
        return False
    return table(state, start, end, silent)


def _is_too_large(state: StateBlock, start: int, end: int) -> bool:
    if start < state.env.get("no_table_before", 0):
        return True
    columns = 1 + state.src.count("|", state.bMarks[start], state.eMarks[start])
    rows = MAX_CELLS // columns
    last = min(end, start + rows + 1)
    if last < end and not any(state.isEmpty(line) for line in range(start, last)):
        while last < end and not state.isEmpty(last):
            last += 1
        state.env["no_table_before"] = last
        return True
    return False


def finish_tables(state: StateCore) -> None:
    """Wrap tables, whose columns run as their text does, and set alignments by class.

    Styles are not allowed.
    """
    if not any(token.type == "table_open" for token in state.tokens):
        return
    done: list[Token] = []
    for token in state.tokens:
        match token.type:
            case "table_open":
                done += (_html('<div class="table" dir="auto">', token), token)
            case "table_close":
                done += (token, _html("</div>", token))
            case "th_open" | "td_open":
                style = str(token.attrs.pop("style", ""))
                token.attrs = {"class": _CLASSES[style]} if style in _CLASSES else {}
                done.append(token)
            case _:
                done.append(token)
    state.tokens = done


_CLASSES = {
    "text-align:left": "start",
    "text-align:center": "center",
    "text-align:right": "end",
}


def _html(content: str, beside: Token) -> Token:
    return Token("html_block", "", 0, content=content, level=beside.level, map=beside.map)
