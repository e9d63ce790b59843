"""The text of a page under construction: finished blocks, the open line, open lists and tables.

A line becomes a block when a block element starts or ends; inside a table cell it becomes a space
only. A link is written around its words when it closes, or around its first words when a block ends
inside.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import urljoin

from tools.html.tables import Table

DEEPEST_INDENT = 8
LONGEST_LINK = 2_000
SPACE = re.compile(r"\s+")
UNSAFE = re.compile(r"[\s()<>\"]")


def resolve_link(base: str, href: str) -> str | None:
    """Return the absolute target of a link; None if it is no http, https or mailto address."""
    href = href.strip()
    if not href or href.startswith("#"):
        return None
    try:
        target = urljoin(base, href)
    except ValueError:
        return None
    if len(target) > LONGEST_LINK or not target.startswith(("http://", "https://", "mailto:")):
        return None
    return UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", target)


def collapse_spaces(text: str) -> str:
    return SPACE.sub(" ", text).strip()


@dataclass(slots=True)
class Page:
    base: str
    #: the address it was read from
    address: str = ""
    title: str = ""
    #: its date of publication and its canonical address, as the page names them
    published: str = ""
    canonical: str = ""
    #: text, and whether no empty line separates it from a neighbour of its kind
    blocks: list[tuple[str, bool]] = field(default_factory=list)
    line: list[str] = field(default_factory=list)
    prefix: str = ""
    link: tuple[int, str] | None = None
    #: the next number of each open list, None for bullets
    lists: list[int | None] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    is_verbatim: bool = False

    @property
    def is_in_cell(self) -> bool:
        return bool(self.tables) and self.tables[-1].is_in_cell

    def finished(self) -> str:
        """Close what is open and return the full text."""
        while self.tables:
            self.close_table()
        self.close_verbatim()
        self.flush()
        fields = {"Title": self.title, "Published": self.published, "Canonical": self.canonical}
        head = "\n".join(f"{name}: {value}" for name, value in fields.items() if value)
        parts = [head] if head else []
        was_tight = False
        for block, is_tight in self.blocks:
            if parts:
                parts.append("\n" if is_tight and was_tight else "\n\n")
            parts.append(block)
            was_tight = is_tight
        return "".join(parts)

    def add(self, text: str) -> None:
        self.line.append(text if self.is_verbatim else SPACE.sub(" ", text))

    def break_line(self) -> None:
        self.line.append(" " if self.is_in_cell else "\n")

    def flush(self) -> None:
        """End the open line."""
        if self.is_in_cell or self.is_verbatim:
            self.break_line()
            return
        waiting = self.waiting_link()
        self.close_link()
        pieces = "".join(self.line).split("\n")
        self.line.clear()
        if text := "\n".join(filter(None, map(collapse_spaces, pieces))):
            self.blocks.append((self.prefix + text, bool(self.prefix) and self.prefix[0] != "#"))
            self.prefix = ""
        if waiting is not None:
            self.link = (0, waiting)

    def begin(self, prefix: str) -> None:
        """End the open line and start one with a prefix."""
        self.flush()
        if not self.is_in_cell:
            self.prefix = prefix

    def open_link(self, href: str) -> None:
        self.close_link()
        self.link = (len(self.line), href)

    def waiting_link(self) -> str | None:
        """Return the address of an open link that has no words yet."""
        if self.link is None or "".join(self.line[self.link[0] :]).strip():
            return None
        return self.link[1]

    def close_link(self) -> None:
        if self.link is None:
            return
        start, href = self.link
        self.link = None
        words = "".join(self.line[start:])
        target = resolve_link(self.base, href)
        if target is None or not words.strip() or self.is_verbatim:
            return
        before, after = (" " if edge.isspace() else "" for edge in (words[0], words[-1]))
        self.line[start:] = [f"{before}[{collapse_spaces(words)}]({target}){after}"]

    def open_list(self, first: int | None) -> None:
        self.flush()
        self.lists.append(first)

    def open_item(self) -> None:
        number = self.lists[-1] if self.lists else None
        indent = "  " * min(max(len(self.lists) - 1, 0), DEEPEST_INDENT)
        if number is None:
            self.begin(f"{indent}- ")
        else:
            self.lists[-1] = number + 1
            self.begin(f"{indent}{number}. ")

    def close_list(self) -> None:
        self.begin("")
        if self.lists:
            self.lists.pop()

    def open_verbatim(self) -> None:
        self.flush()
        self.is_verbatim = not self.is_in_cell

    def close_verbatim(self) -> None:
        if not self.is_verbatim:
            return
        self.close_link()
        self.is_verbatim = False
        text = "".join(self.line).strip("\n")
        self.line.clear()
        fence = "````" if "```" in text else "```"
        self.blocks.append((f"{fence}\n{text}\n{fence}", False))

    def open_table(self) -> None:
        self.close_verbatim()
        if self.is_in_cell:
            outer = self.tables[-1]
            outer.is_layout, outer.is_in_cell = True, False
            self.blocks += [(text, False) for text in outer.take_paragraphs()]
        self.flush()
        self.tables.append(Table())

    def open_row(self) -> None:
        self.close_cell()
        if self.tables:
            self.tables[-1].add_row()

    def open_cell(self) -> None:
        self.close_cell()
        if self.tables and not self.tables[-1].is_layout:
            self.tables[-1].is_in_cell = True

    def close_cell(self) -> None:
        if not self.is_in_cell:
            self.flush()
            return
        self.close_link()
        self.tables[-1].add_cell(collapse_spaces("".join(self.line)))
        self.tables[-1].is_in_cell = False
        self.line.clear()

    def close_table(self) -> None:
        self.close_cell()
        if self.tables and (lines := self.tables.pop().take_lines()):
            self.blocks.append(("\n".join(lines), False))
