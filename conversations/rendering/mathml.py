"""MathML Core, written from a parsed formula: a closed list of elements, attributes and values.

The parser's own output is unescaped (`\\text{<img>}` would be an element) and aims at MathML 3, of
which browsers support less: styled letters become Unicode characters, limits are placed where the
operator wants them, a matrix and its fences are one base. Colours, links, classes and lengths of
the formula are left out: it can neither imitate the page nor be drawn over it.
"""

from __future__ import annotations

import re
import unicodedata
from xml.etree.ElementTree import Element

from django.utils.html import escape

from conversations.rendering.alphabets import style_text

#: Most nested elements.
MAX_DEPTH = 60


class NotMath(Exception):
    """The formula is malformed, too long, or uses something unknown."""


#: How many children an element has; extra ones are grouped, missing ones are filled up.
_ARITY = {
    "mfrac": 2, "mroot": 2, "msub": 2, "msup": 2, "msubsup": 3, "munder": 2, "mover": 2,
    "munderover": 3,
}  # fmt: skip
_ROWS = {"math", "mrow", "msqrt", "mstyle", "mphantom", "mtd"}
_TOKENS = {"mi", "mn", "mo", "mtext"}
ELEMENTS = frozenset((*_ARITY, *_ROWS, *_TOKENS, "mspace", "mtable", "mtr"))

_SIZES = {"1.2em", "1.623em", "2.047em", "2.470em"}
_SWITCH = {"true", "false"}
_SPACES = {
    "-0.17em": -0.17, "0": 0.0, "0.17em": 0.17, "0.22em": 0.22, "0.28em": 0.28, "0.5em": 0.5,
    "1em": 1.0, "2em": 2.0,
}  # fmt: skip
ATTRIBUTES: dict[str, dict[str, set[str]]] = {
    "math": {"display": {"block"}},
    "mi": {"mathvariant": {"normal"}},
    "mo": {
        "stretchy": _SWITCH, "fence": _SWITCH, "movablelimits": _SWITCH, "largeop": _SWITCH,
        "form": {"prefix", "postfix"}, "minsize": _SIZES, "maxsize": _SIZES,
        "lspace": {"0", "0.17em"}, "rspace": {"0", "0.17em"},
    },
    "mspace": {"width": set(_SPACES)},
    "mfrac": {"linethickness": {"0"}},
    "mover": {"accent": {"true"}},
    "mstyle": {"displaystyle": _SWITCH, "scriptlevel": {"0", "1", "2"}},
    "mtable": {"displaystyle": {"true"}},
}  # fmt: skip
CLASSES = {
    "mrow": {"boxed", "struck", "lined", "underlined"},
    "mtable": {"aligned"},
    "mtd": {"start", "end", "bar", "under"},
}

_NAMED_SPACES = {
    "thinmathspace": 0.17, "mediummathspace": 0.22, "thickmathspace": 0.28,
    "negativethinmathspace": -0.17, "negativemediummathspace": -0.22,
    "negativethickmathspace": -0.28,
}  # fmt: skip
_UNITS = {"em": 1.0, "ex": 0.43, "mu": 1 / 18, "pt": 0.1, "px": 0.0625, "cm": 2.8, "mm": 0.28}
_LENGTH = re.compile(r"([+-]?\d{0,3}(?:\.\d{1,6})?)(em|ex|mu|pt|px|cm|mm)")
_CHARACTER = re.compile(r"&#x([0-9a-fA-F]{1,6});")
_INVALID = re.compile("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")

_LARGE = set("∑∏∐⋀⋁⋂⋃⨀⨁⨂⨃⨄⨅⨆")
_ABOVE_AND_BELOW = {
    "lim", "max", "min", "sup", "inf", "det", "gcd", "Pr", "arg max", "arg min", "lim sup",
    "lim inf", "inj lim", "proj lim", "plim",
}  # fmt: skip
#: Symbols that are identifiers, like letters.
_ORDINARY = set("∞∅∂∇∀∃∄⊤∠△ℏ′″‴⁗⋮⋱⋯…°")
_ACCENTS = set("´¯˘ˇ˙¨`^˚→←↔~ˆ˜‾\u20db\u20dc")
_OPENING = set("([{⟨⌊⌈|‖")


def write_mathml(row: Element, *, is_display: bool) -> str:
    """Write a formula as MathML; raises NotMath for an unknown element."""
    attributes = {"display": "block"} if is_display else {}
    return _element("math", attributes, _row(_lines(row), 0))


def _lines(row: Element) -> list[Element]:
    """Return a formula with line breaks as a table of one column."""
    if not any(_is_break(child) for child in row):
        return list(row)
    table = Element("mtable", {"displaystyle": "true"})
    cell = _cell(table)
    for child in row:
        if _is_break(child):
            cell = _cell(table)
        else:
            cell.append(child)
    return [table]


def _cell(table: Element) -> Element:
    row, cell = Element("mtr"), Element("mtd")
    row.append(cell)
    table.append(row)
    return cell


def _is_break(node: Element) -> bool:
    return node.tag == "mspace" and node.get("linebreak") is not None


def _row(nodes: Element | list[Element], depth: int) -> str:
    """Write nodes side by side, with a space between a function and its argument."""
    found = []
    for at, node in enumerate(nodes):
        found.append(_written(node, depth + 1))
        after = nodes[at + 1 : at + 2]
        if len(after) and _is_function(node) and _first(after[0]) not in _OPENING:
            found.append('<mspace width="0.17em"></mspace>')
    return "".join(found)


def _written(node: Element, depth: int) -> str:
    if depth > MAX_DEPTH or _is_break(node):
        raise NotMath
    match node.tag:
        case "mi" | "mn" | "mo" | "mtext":
            return _token(node)
        case "mspace":
            return _element("mspace", {"width": _space(node.get("width", ""))}, "")
        case "mtable":
            return _table(node, depth)
        case "menclose":
            shown = "boxed" if node.get("notation") == "box" else "struck"
            return _element("mrow", {"class": shown}, _row(node, depth))
        case tag if tag in _ARITY:
            return _script(node, _ARITY[tag], depth)
        case "mstyle" | "msqrt" | "mphantom" | "mtd":
            return _element(node.tag, _allowed_attributes(node), _row(node, depth))
        case "mrow" | "mpadded":
            return _element("mrow", {}, _row(node, depth))
    raise NotMath


def _script(node: Element, arity: int, depth: int) -> str:
    """Write an element whose children are positional."""
    children = list(node)
    if len(children) == 2 and _text(children[1]) == "―":
        shown = "lined" if node.tag == "mover" else "underlined"
        return _element("mrow", {"class": shown}, _written(children[0], depth + 1))
    spare = len(children) - arity + 1
    base = _row(children[:spare], depth) if spare > 1 else ""
    parts = [f"<mrow>{base}</mrow>"] if spare > 1 else []
    parts += [_written(child, depth + 1) for child in children[spare if parts else 0 :]]
    parts += ["<mrow></mrow>"] * (arity - len(parts))
    tag, attributes = node.tag, _allowed_attributes(node)
    if _has_limits(children[0] if children else node):
        tag = {"msub": "munder", "msup": "mover", "msubsup": "munderover"}.get(tag, tag)
    if tag == "mover" and len(children) == 2 and _text(children[1]) in _ACCENTS:
        attributes["accent"] = "true"
    return _element(tag, attributes, "".join(parts))


def _table(node: Element, depth: int) -> str:
    bars = node.get("columnlines", "").split()
    unders = node.get("rowlines", "").split()
    rows = []
    for at, row in enumerate(node):
        cells = []
        for column, cell in enumerate(row):
            sides = {"left": "start", "right": "end"}
            shown = [sides.get(cell.get("columnalign", ""), "")]
            shown.append("bar" if bars[column : column + 1] == ["solid"] else "")
            shown.append("under" if unders[at : at + 1] == ["solid"] else "")
            named = {"class": " ".join(filter(None, shown))} if any(shown) else {}
            cells.append(_element("mtd", named, _row(cell, depth + 2)))
        rows.append(_element("mtr", {}, "".join(cells)))
    attributes = _allowed_attributes(node)
    if node.get("columnspacing", "").startswith("0em"):
        attributes["class"] = "aligned"
    return _element("mtable", attributes, "".join(rows))


def _token(node: Element) -> str:
    text, tag, attributes = _text(node), node.tag, _allowed_attributes(node)
    if text.startswith("\\") and len(text) > 1:
        raise NotMath
    text = style_text(text, node.get("mathvariant", ""))
    if tag == "mo" and text in _ORDINARY:
        tag, attributes = "mi", {}
    elif tag == "mi" and text == "&":
        raise NotMath
    elif tag == "mi" and len(text) == 1 and unicodedata.category(text) in {"Sm", "Po", "So"}:
        tag, attributes = ("mi", attributes) if text in _ORDINARY else ("mo", {})
    elif tag == "mo" and len(text) > 1 and text[0].isalpha():
        attributes |= {"lspace": "0.17em", "rspace": "0"}
        if text in _ABOVE_AND_BELOW:
            attributes["movablelimits"] = "true"
    return _element(tag, attributes, escape(text))


def _text(node: Element) -> str:
    """Return a token's text; the parser writes characters as references."""
    if node.tag not in _TOKENS:
        return ""
    text = _CHARACTER.sub(lambda found: chr(min(int(found[1], 16), 0x10FFFF)), node.text or "")
    if _INVALID.search(text):
        raise NotMath
    return text.replace("\u2009", " ").replace("\u2006", " ")


def _has_limits(base: Element) -> bool:
    text = _text(base)
    return text in _LARGE or text in _ABOVE_AND_BELOW or base.get("movablelimits") == "true"


def _is_function(node: Element) -> bool:
    """Return whether a node is the name of a function, with its scripts."""
    while node.tag in _ARITY and node.tag != "mfrac" and len(node):
        node = node[0]
    text = _text(node)
    return node.tag in {"mi", "mo"} and len(text) > 1 and text[0].isalpha()


def _first(node: Element) -> str:
    while len(node):
        node = node[0]
    return _text(node)[:1]


def _space(width: str) -> str:
    """Return the nearest known width."""
    found = _LENGTH.fullmatch(width)
    size = _NAMED_SPACES.get(width, 0.0)
    if found and found[1].strip("+-."):
        size = float(found[1]) * _UNITS[found[2]]
    return min(_SPACES, key=lambda name: abs(_SPACES[name] - size))


def _allowed_attributes(node: Element) -> dict[str, str]:
    allowed = ATTRIBUTES.get(node.tag, {})
    return {name: value for name, value in node.items() if value in allowed.get(name, ())}


def _element(tag: str, attributes: dict[str, str], inside: str) -> str:
    named = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f"<{tag}{named}>{inside}</{tag}>"
