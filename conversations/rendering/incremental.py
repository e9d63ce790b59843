"""Rendering a running answer: each block once when it is closed, and the unfinished tail.

A top-level block is closed when a blank line has ended it, or when the next one has begun on a
complete line: nothing that follows can change it (except a reference definition, which is why the
finished answer is rendered once in full). The total cost is linear in the answer whatever its
shape: a long code block is closed in slices, which are coloured as they close, a long list item by
item, a long table row by row, and any other long tail is rendered again only when it has grown by a
sixteenth (by a half when it is of an expensive kind). Beyond `MAX_BLOCK` it is shown as written.
The parts of a block are joined in the page (`static/streamed.js`), so that a reader sees one block
that grows.

Most of what arrives are words of a sentence. Words that go on a line which ends with a word change
no markup: they are put where the text of a short tail ends, without parsing, which takes a
twentieth of the time. What they are must be certain whatever stands before them: letters, digits,
single spaces, and marks of a sentence that stand behind a word. In a code block that is open,
without colours as yet, that is all of ASCII but what may close it.
"""

from __future__ import annotations

import re

from django.utils.safestring import SafeString, mark_safe
from markdown_it.token import Token

from conversations.rendering.continued import Part, is_loose, mark
from conversations.rendering.markdown import (
    MAX_BLOCK,
    MAX_MATH,
    Parsed,
    TooCostly,
    find_limits,
    parse_markdown,
    render_tokens,
)
from conversations.rendering.plain import escape_text, render_plain, replace_controls
from conversations.rendering.sanitise import clean_html

#: Tails up to this many characters are rendered each time; longer ones wait.
SHORT = 800
#: Code blocks, lists and tables with more characters are closed in part.
WHOLE = 300
_EMPTY = SafeString("")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
#: Words of a sentence, with signs inside of a word and a mark behind it: nothing to the parser.
_WORD = r"[^\W_]+(?:['’-][^\W_]+)*[.,;:!?]?"
_WORDS = re.compile(rf"{_WORD}(?: {_WORD})* ?")
#: The word with which a line ends, its mark, and the space behind it.
_LAST_WORD = re.compile(rf"(?:^|[ \t])({_WORD})( ?)\Z", re.MULTILINE)
#: What goes on a code block that is open, and the tags behind that.
_CODE = re.compile(r"[\t\n -_a-}]*")
_CODE_TAGS = "</code></pre></div>\n"
#: Tails that are one heading or paragraph.
_ALONE = [[f"{name}_open", "inline", f"{name}_close"] for name in ("paragraph", "heading")]
_BLANK = re.compile(r"[ \t]*\n")
#: Blocks that a blank line ends for good.
_ENDED = {"paragraph_open", "heading_open", "hr", "fence", "blockquote_open", "html_block"}
#: The tags behind the last text of a tail; of code more than its text may change.
_TAGS = re.compile(r"(?:</(?!code)[a-z0-9]+>|\n)*\Z")
#: Characters in which the last word, and the last tags, are looked for.
_NEAR = 80
#: The beginning of a line that is no words yet: "- *" would be a list in a list for a moment.
_SIGNS = re.compile(r"(?:[ \t>+*_=#|~`:-]|\d{1,9}[.)]){1,40}")


class Incremental:
    """Accepts text in pieces; returns the HTML to append and the HTML of the tail after it."""

    def __init__(self) -> None:
        self._text = ""
        #: A carriage return that may be the first half of a line end, or signs before any word.
        self._held = ""
        #: The length at which a long text is rendered again.
        self._due = 0
        self._tail = _EMPTY
        self._closed: list[SafeString] = []
        #: Characters of all pieces that were added.
        self._fed = 0
        #: Whether it is shown as the complete text will be, but for a code block that is open.
        self._is_final = True
        self._is_open = False
        #: Whether the tail shows all of the text.
        self._is_shown = True
        #: Where the tail can go on without parsing, if anywhere, the last word there with the space
        #: behind it, and whether both are of this tail.
        self._place: int | None = None
        self._word = ""
        self._is_placed = False
        #: Whether the tail is an open code block; whether it is one heading or paragraph.
        self._is_code = self._is_alone = False
        #: Whether the tail continues a block whose beginning is closed.
        self._part = Part()
        #: Whether code is coloured now; in the finished answer it always is.
        self.is_coloured = True
        #: Code of the tail as it was coloured, which takes longer than all else of it.
        self._coloured: dict[tuple[str, str], str] = {}
        #: Steps of the parser so far, of those that are limited.
        self._taken = {"lines": 0, "steps": 0}
        #: Characters parsed so far: the measure of the cost.
        self.parsed = 0

    @property
    def unfinished(self) -> int:
        """Characters of the tail, which is rendered again with the next text."""
        return len(self._text)

    def find_whole(self, source: str) -> SafeString | None:
        """Return all that was rendered of a text, if rendering it at once certainly gives the same.

        A reference definition may change that, and so may the limits for the text as a whole. It is
        not whole where a turn was stopped before a piece was added, or an error left one out.
        """
        if len(source) != self._fed:
            return None
        is_final = self._is_final and self._is_shown and not (self._is_open or self._held)
        limits, lines = find_limits(len(source)), 2 * source.count("\n") + 2
        # What was not parsed takes at most two steps for each line, and for each of these signs.
        signs = lines + 2 * sum(map(source.count, "!:-"))
        is_cheap = lines <= limits["lines"] - self._taken["lines"]
        is_cheap = is_cheap and signs <= limits["steps"] - self._taken["steps"]
        if not (is_final and is_cheap) or "]:" in source or len(source) > MAX_MATH:
            return None
        return SafeString("".join((*self._closed, self._tail)))

    def feed(self, text: str) -> tuple[SafeString, SafeString]:
        """Add text; the tail is unchanged when there was too little of it."""
        closed = _EMPTY
        if not self._goes_on(text):
            closed = self._add(text)
            if self._is_final:
                self._closed.append(closed)
            else:
                self._closed.clear()
        self._fed += len(text)
        return closed, self._tail

    def _add(self, text: str) -> SafeString:
        """Add text with which the tail does not just go on; return what it closes."""
        ended = _EMPTY
        head, blank, rest = text.partition("\n\n")
        if blank and self._is_alone and self._goes_on(head):
            ended, self._text, text = self._tail, "", rest
            self._tail, self._part, self._is_alone, self._due = _EMPTY, Part(), False, 0
        if not (self._text or self._held) and self._begin_paragraph(text):
            return ended
        closed = self._parse(text)
        return SafeString(ended + closed) if ended else closed

    def _parse(self, text: str) -> SafeString:
        """Add any text; return what it closes."""
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        self._text += replace_controls(text.removesuffix(self._held))
        if not (self._is_code and _CODE.fullmatch(text)):
            self._hold_signs()
        self._is_shown = not SHORT < len(self._text) < self._due
        if not self._is_shown:
            return _EMPTY
        self.parsed += len(self._text)
        is_costly = self._is_placed = self._is_code = self._is_alone = self._is_open = False
        try:
            parsed = parse_markdown(self._text)
            for kind, limit in find_limits(len(self._text)).items():
                self._taken[kind] += limit - parsed.env[kind]
            is_costly = parsed.env["steps"] < 0
            closed = self._advance(parsed)
        except TooCostly:
            is_costly, closed = True, self._as_written()
        self._due = len(self._text) * (24 if is_costly else 17) // 16
        self._is_final = self._is_final and self.is_coloured and not is_costly
        return closed

    def _begin_paragraph(self, words: str) -> bool:
        """Begin a paragraph with words and nothing else; return whether that was so."""
        if not (words[:1].isalpha() and _WORDS.fullmatch(words)) or len(words) > SHORT:
            return False
        shown = words.rstrip(" ")
        self._text, self._tail = words, SafeString(f"<p>{shown}</p>\n")
        self._word = words[shown.rfind(" ") + 1 :]
        self._place, self._is_placed, self._is_alone = len("<p>") + len(shown), True, True
        self._is_shown, self._is_code, self._is_open = True, False, False
        return True

    def _goes_on(self, text: str) -> bool:
        """Add words, or code, where nothing else can change; return whether that was so."""
        whole = len(self._text) + len(text)
        most = WHOLE if not self._is_alone and len(self._text) <= WHOLE else SHORT
        if not self._is_shown or self._held or whole > most:
            return False
        if not self._is_placed:
            self._find_place()
        if self._place is None:
            return False
        if self._is_code:
            if not _CODE.fullmatch(text) or _ends_with_space(self._text + text):
                return False
            shown = escape_text(text)
        else:
            words = self._word + text
            # A number may be that of an item, with a full stop behind it.
            if self._word.isdigit() or not _WORDS.fullmatch(words):
                return False
            gap = " " if self._word.endswith(" ") else ""
            shown = f"{gap}{text}".rstrip(" ")
            self._word = words[words.rstrip(" ").rfind(" ") + 1 :]
        at = self._place
        self._tail = SafeString(f"{self._tail[:at]}{shown}{self._tail[at:]}")
        self._place = at + len(shown)
        self._text += text
        return True

    def _find_place(self) -> None:
        """Find where the tail can go on without parsing, and the last word there."""
        self._place, self._is_placed = None, True
        if self._is_code:
            if not _ends_with_space(self._text):
                self._place = len(self._tail) - len(_CODE_TAGS)
            return
        last = _LAST_WORD.search(self._text, max(0, len(self._text) - _NEAR))
        tags = _TAGS.search(self._tail, max(0, len(self._tail) - _NEAR))
        if last and tags and self._tail.endswith(last[1], 0, tags.start()):
            self._place, self._word = tags.start(), last[1] + last[2]

    def _hold_signs(self) -> None:
        begun = self._text.rfind("\n") + 1
        if begun < len(self._text) and _SIGNS.fullmatch(self._text, begun):
            self._held, self._text = self._text[begun:] + self._held, self._text[:begun]

    def _advance(self, parsed: Parsed) -> SafeString:
        tokens, env = parsed
        env["is_coloured"], env["coloured"] = self.is_coloured, self._coloured
        lines = _LINE.findall(self._text)
        last, line = _last_block(tokens, lines)
        closed = _safe(render_tokens(mark(tokens[:last], self._part), env)) if last else _EMPTY
        if last:
            self._text, self._part = "".join(lines[line:]), Part()
            self._coloured.clear()
        if len(self._text) > WHOLE and (cut := self._cut(tokens[last:], lines)):
            return SafeString(closed + cut)
        if len(self._text) > MAX_BLOCK:
            return SafeString(closed + self._as_written())
        self._is_open = _is_open(tokens[last:], lines)
        env["is_coloured"] = self.is_coloured and not self._is_open
        self._tail = _safe(render_tokens(mark(tokens[last:], self._part), env))
        self._is_code = self._is_open and _goes_on_as_written(tokens[last], lines)
        self._is_alone = [one.type for one in tokens[last:]] in _ALONE
        return closed

    def _cut(self, tokens: list[Token], lines: list[str]) -> SafeString:
        """Close the finished part of a long block, leaving the rest as a block of its kind."""
        if not tokens or not tokens[0].map:
            return _EMPTY
        block, own = tokens[0], lines[tokens[0].map[0] :]
        further = Part(is_continued=True)
        if block.type == "fence" and (rest := _open_fence(block, own)):
            head, tail = "".join(own[:-1]), rest
        elif block.type.endswith("list_open") and (at := _last_item(tokens, lines)):
            head, tail = "".join(own[:-at]), "".join(own[-at:])
            further = Part(is_continued=True, is_loose=self._part.is_loose or is_loose(tokens))
        elif tokens[1:] and tokens[1].type == "table_open" and (rows := _count_lines(block)) > 3:
            # The last row and what follows the table, with the blank line between them.
            head, tail = "".join(own[: rows - 1]), "".join((*own[:2], *own[rows - 1 :]))
        else:
            return _EMPTY
        try:
            closed = self._slice(head, self._part._replace(is_loose=further.is_loose))
            is_code = block.type == "fence"
            self._tail = self._slice(tail, further, is_coloured=not is_code)
        except TooCostly:
            return _EMPTY
        self._text, self._part, self._is_final = tail, further, False
        self._is_code = is_code and own[0].startswith(block.markup)
        self._coloured.clear()
        return closed

    def _slice(self, text: str, part: Part, *, is_coloured: bool = True) -> SafeString:
        self.parsed += len(text)
        tokens, env = parse_markdown(text)
        env["is_coloured"] = is_coloured and self.is_coloured
        return _safe(render_tokens(mark(tokens, part), env))

    def _as_written(self) -> SafeString:
        self._is_final = False
        if len(self._text) > MAX_BLOCK:
            closed, self._text, self._tail = render_plain(self._text), "", _EMPTY
            return closed
        self._tail = render_plain(self._text)
        return _EMPTY


def _safe(fragment: str) -> SafeString:
    return mark_safe(clean_html(fragment))  # noqa: S308 - cleaned in this line


def _last_block(tokens: list[Token], lines: list[str]) -> tuple[int, int]:
    """Return token and line of the first top-level block that what follows may change.

    Those before are ended by a blank line, or by the first line of the next one if it is complete.
    """
    starts: dict[int, int] = {}
    for at, token in enumerate(tokens):
        if token.level == 0 and token.nesting >= 0 and token.map:
            starts.setdefault(token.map[0], at)
    found, following = (0, 0), [*starts.values(), len(tokens)]
    for (line, at), after in zip(starts.items(), following[1:], strict=True):
        if lines[line].endswith("\n"):
            found = at, line
        end = (tokens[at].map or (0, 0))[1]
        if tokens[at].type in _ENDED and end < len(lines) and _BLANK.fullmatch(lines[end]):
            found = after, end + 1
    return found


def _is_open(tokens: list[Token], lines: list[str]) -> bool:
    """Return whether a text is one code block that is not closed."""
    if not tokens or tokens[0].type != "fence" or not tokens[0].map:
        return False
    return not _is_closed(tokens[0], lines[tokens[0].map[0] :])


def _goes_on_as_written(block: Token, lines: list[str]) -> bool:
    """Return whether what follows in an open code block is shown as it is written."""
    opening = lines[block.map[0]] if block.map else ""
    return opening.startswith(block.markup) and opening.endswith("\n")


def _ends_with_space(code: str) -> bool:
    """Return whether the last line has nothing but space as yet, which the parser leaves out."""
    return code.rpartition("\n")[2].isspace()


def _is_closed(block: Token, lines: list[str]) -> bool:
    closing = re.compile(rf" {{0,3}}{re.escape(block.markup)}{re.escape(block.markup[0])}*\s*")
    return any(closing.fullmatch(line) for line in lines[1:])


def _open_fence(block: Token, lines: list[str]) -> str:
    """Return the continuation of an open code block: its opening line and its last line."""
    return "" if _is_closed(block, lines) or len(lines) < 3 else lines[0] + lines[-1]


def _last_item(tokens: list[Token], lines: list[str]) -> int:
    """Return the number of lines of a list's last item, if it is complete and not the first."""
    items = [token.map[0] for token in tokens if _is_item(token) and token.map]
    whole = [line for line in items if lines[line].endswith("\n")]
    return len(lines) - whole[-1] if len(whole) > 1 else 0


def _count_lines(block: Token) -> int:
    return block.map[1] - block.map[0] if block.map else 0


def _is_item(token: Token) -> bool:
    return token.type == "list_item_open" and token.level == 1
