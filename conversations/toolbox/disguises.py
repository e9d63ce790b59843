"""Texts in other characters: look-alikes, leet, Braille, Morse, spelled, unseen, packed.

The forms are those of published tools that hide what a model is told or tells. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, partial

#: What Unicode's table of confusables (15.1) has for letters and digits, without what NFKC folds.
_CONFUSED = {
    "2": "\u01a7\u03e8\u14bf\ua644\ua6ef\ua75a",
    "3": "\u01b7\u021c\u0417\u04e0\u2ccc\ua76a\ua7ab\U000118ca\U00016f3b\U0001d206",
    "4": "\u13ce\U000118af",
    "5": "\u01bc\U000118bb",
    "6": "\u0431\u13ee\u2cd2\U000118d5",
    "7": "\U000104d2\U000118c6\U0001d212",
    "8": "\u0222\u0223\u0b03\U0001031a",
    "9": "\u2cca\ua76e\U000118ac\U000118cc\U000118d6",
    "a": (
        "\u0251\u0391\u03b1\u0410\u0430\u13aa\u15c5\u237a\ua4ee\U000102a0"
        "\U00016f40"
    ),
    "b": (
        "\u0184\u0392\u0412\u042c\u13cf\u13f4\u1472\u15af\u15f7\ua4d0\ua7b4"
        "\U00010282\U000102a1\U00010301"
    ),
    "c": (
        "\u03a3\u03c2\u0421\u0441\u13df\u1d04\u2ca4\u2ca5\ua4da\uabaf\U000102a2"
        "\U00010302\U00010415\U0001043d\U0001051c\U000118f2\U0001f74c"
    ),
    "d": "\u0501\u13a0\u13e7\u146f\u15de\u15ea\ua4d2\ua4d3",
    "e": (
        "\u0395\u0415\u0435\u04bd\u13ac\u212e\u22ff\u2d39\ua4f0\uab32\U00010286"
        "\U000118a6\U000118ae"
    ),
    "f": (
        "\u03dc\u0584\u15b4\u1e9d\ua4dd\ua798\ua799\uab35\U00010287\U000102a5"
        "\U00010525\U000118a2\U000118c2\U0001d213"
    ),
    "g": "\u018d\u0261\u050c\u0581\u13c0\u13f3\u1d83\ua4d6",
    "h": "\u0397\u041d\u04bb\u0570\u13bb\u13c2\u157c\u2c8e\ua4e7\U000102cf",
    "i": (
        "\u0131\u0269\u026a\u02db\u037a\u03b9\u0456\u04cf\u13a5\u2373\ua647\uab75"
        "\U000118c3"
    ),
    "j": "\u037f\u03f3\u0408\u0458\u13ab\u148d\ua4d9\ua7b2",
    "k": "\u039a\u041a\u13e6\u16d5\u2c94\ua4d7\U00010518",
    "l": (
        "\u0196\u01c0\u0399\u0406\u04c0\u13de\u14aa\u16c1\u2223\u23fd\u2502\u2c92"
        "\u2cd0\u2d4f\ua4e1\ua4f2\U0001028a\U00010309\U00010320\U0001041b"
        "\U00010526\U000118a3\U000118b2\U00016f16\U00016f28\U0001d22a"
    ),
    "m": "\u039c\u03fa\u041c\u13b7\u15f0\u16d6\u2c98\ua4df\U000102b0\U00010311",
    "n": "\u039d\u0578\u057c\u2c9a\ua4e0\U00010513",
    "o": (
        "\u039f\u03bf\u03c3\u041e\u043e\u0555\u0585\u0b20\u0c02\u0c82\u0d02\u0d20"
        "\u0d82\u101d\u10ff\u12d0\u1d0f\u1d11\u2c9e\u2c9f\u2d54\u3007\ua4f3\uab3d"
        "\U00010292\U000102ab\U00010404\U0001042c\U000104c2\U000104ea\U00010516"
        "\U000118b5\U000118c8\U000118d7"
    ),
    "p": "\u03a1\u03c1\u0420\u0440\u13e2\u146d\u2374\u2ca2\u2ca3\ua4d1\U00010295",
    "q": "\u051b\u0563\u0566\u2d55",
    "r": (
        "\u01a6\u0433\u13a1\u13d2\u1587\u1d26\u2c85\ua4e3\uab47\uab48\uab81"
        "\U000104b4\U00016f35\U0001d216"
    ),
    "s": (
        "\u01bd\u0405\u0455\u054f\u13d5\u13da\ua4e2\ua731\uabaa\U00010296"
        "\U00010420\U00010448\U000118c1\U00016f3a"
    ),
    "t": (
        "\u03a4\u0422\u13a2\u22a4\u27d9\u2ca6\ua4d4\U00010297\U000102b1\U00010315"
        "\U000118bc\U00016f0a\U0001f768"
    ),
    "u": (
        "\u028b\u03c5\u054d\u057d\u1200\u144c\u1d1c\u222a\u22c3\ua4f4\ua79f\uab4e"
        "\uab52\U000104ce\U000104f6\U000118b8\U000118d8\U00016f42"
    ),
    "v": (
        "\u03bd\u0474\u0475\u13d9\u142f\u1d20\u2228\u22c1\u2d38\ua4e6\ua6df\uaba9"
        "\U0001051d\U00011706\U000118a0\U000118c0\U00016f08\U0001d20d"
    ),
    "w": (
        "\u026f\u0461\u051c\u051d\u0561\u13b3\u13d4\u1d21\ua4ea\uab83\U0001170a"
        "\U0001170e\U0001170f\U000118ef"
    ),
    "x": (
        "\u00d7\u03a7\u0425\u0445\u1541\u157d\u166d\u166e\u16b7\u2573\u292b\u292c"
        "\u2a2f\u2cac\u2d5d\ua4eb\ua7b3\U00010290\U000102b4\U00010317\U00010322"
        "\U00010527\U000118ec"
    ),
    "y": (
        "\u0263\u028f\u03a5\u03b3\u0423\u0443\u04ae\u04af\u10e7\u13a9\u13bd\u1d8c"
        "\u1eff\u2ca8\ua4ec\uab5a\U000102b2\U000118a4\U000118dc\U00016f43"
    ),
    "z": "\u0396\u13c3\u1d22\ua4dc\uab93\U000102f5\U000118a9\U000118c4",
}  # fmt: skip
_LOOKALIKES = {ord(other): plain for plain, others in _CONFUSED.items() for other in others}
#: Dots of the six places of a Braille cell by letter; with the sign of numbers, a to j are digits.
_CELLS = dict(zip(
    "abcdefghijklmnopqrstuvwxyz",
    "\u2801\u2803\u2809\u2819\u2811\u280b\u281b\u2813\u280a\u281a\u2805\u2807\u280d"
    "\u281d\u2815\u280f\u281f\u2817\u280e\u281e\u2825\u2827\u283a\u282d\u283d\u2835",
    strict=True,
))  # fmt: skip
_LETTERS = {cell: letter for letter, cell in _CELLS.items()}
_CAPITAL, _NUMBER = "\u2820", "\u283c"
_BRAILLE = re.compile("[\u2801-\u283f]{2,}")
_MORSE = {
    signal: sign
    for row in (
        "a.- b-... c-.-. d-.. e. f..-. g--. h.... i.. j.--- k-.- l.-.. m-- n-. o--- p.--. q--.-",
        "r.-. s... t- u..- v...- w.-- x-..- y-.-- z--..",
        "0----- 1.---- 2..--- 3...-- 4....- 5..... 6-.... 7--... 8---.. 9----.",
    )
    for sign, signal in ((each[0], each[1:]) for each in row.split(" "))
}
_SIGNALS = re.compile(r"(?:[.-]{1,5}[\s/|+]+){4,}[.-]{1,5}")
_NAMES = re.findall(
    r"\w+",
    "alfa alpha bravo charlie delta echo foxtrot golf hotel india juliett juliet kilo lima mike"
    " november oscar papa quebec romeo sierra tango uniform victor whiskey xray yankee zulu",
)
_DIGITS = re.findall(r"\w+", "zero one two three four five six seven eight nine")
_SPELLED = {name: name[0] for name in _NAMES} | {name: str(at) for at, name in enumerate(_DIGITS)}
_SPELLING = re.compile(rf"(?:\b(?:{'|'.join(_SPELLED)}|x-ray)\b[\s,.+-]*){{5,}}", re.IGNORECASE)
#: More unseen characters in a row than by accident.
_UNSEEN = re.compile("[\u200b-\u200d\u2060-\u2064\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]{16,}")
#: Bytes packed into characters: so many in a row have so many scripts (Base2048), or so many signs
#: that are not the same (Ecoji), as no text of people has.
_ROW, _SCRIPTS, _SIGNS = 16, 6, 12
_OTHERS = re.compile(r"(?:[^\x00-\x7f][ \t\r\n]?){16,}")
#: As Wikipedia's table of leet has them; a one is an `i` or an `l`.
_LEET = tuple(str.maketrans("013457@$", f"o{letter}eastas") for letter in "il")
_LEET_WORD = re.compile(r"[A-Za-z0-9@$]+")


def replace_lookalikes(text: str) -> str:
    """Return a text with what looks like an ASCII letter or digit as that one, without marks."""
    if text.isascii():
        return text
    apart = unicodedata.normalize("NFD", text)
    plain = "".join(c for c in apart if unicodedata.category(c) != "Mn")
    digits = {c: unicodedata.decimal(c, None) for c in {*plain} if not c.isascii()}
    shown = {ord(c): str(digit) for c, digit in digits.items() if digit is not None}
    return plain.translate(_LOOKALIKES | shown)


def is_unclear(text: str) -> bool:
    """Return whether a text has characters that nobody reads, whatever they say."""
    return _UNSEEN.search(text) is not None or (not text.isascii() and _is_packed(text))


def _is_packed(text: str) -> bool:
    return any(_is_row_packed(row) for row in _OTHERS.findall(text))


def _is_row_packed(others: str) -> bool:
    letters = [_name_script(c) for c in others if c.isalnum()]
    signs = [c for c in others if unicodedata.category(c) == "So"]
    return any(
        len({*row[at : at + _ROW]}) >= most
        for row, most in ((letters, _SCRIPTS), (signs, _SIGNS))
        for at in range(0, len(row) - _ROW + 1, _ROW // 4)
    )


@cache
def _name_script(character: str) -> str:
    return unicodedata.name(character, "").partition(" ")[0]


def read_leet(text: str) -> Iterator[str]:
    """Yield what words with digits for letters say: `pa55p0rt`."""
    yield from {_LEET_WORD.sub(partial(_read_leet_word, table), text) for table in _LEET} - {text}


def _read_leet_word(table: dict[int, int], match: re.Match[str]) -> str:
    word = match[0]
    return word if word.isalpha() or word.isdecimal() else word.translate(table)


def read_unseen(text: str) -> Iterator[str]:
    """Yield what unseen characters say: tags, and variation selectors in both ways of counting."""
    for run in _UNSEEN.findall(text):
        codes = [ord(c) for c in run]
        yield "".join(chr(code - 0xE0000) for code in codes if 0xE0020 <= code < 0xE007F)
        selectors = [code - 0xE0100 for code in codes if code >= 0xE0100]
        for more in (0, 16):
            yield "".join(chr(each + more) for each in selectors)


def read_signs(text: str) -> Iterator[str]:
    """Yield what Braille, Morse signals and spelled letters say."""
    if _BRAILLE.search(text):
        yield _BRAILLE.sub(lambda match: _read_cells(match[0]), text)
    for run in _SIGNALS.findall(text):
        words = re.split("[/|]", run)
        yield " ".join("".join(_MORSE.get(each, "") for each in word.split()) for word in words)
    for match in _SPELLING.finditer(text):
        names = re.findall(r"[a-z]+", match[0].casefold().replace("x-ray", "xray"))
        yield "".join(_SPELLED.get(name, "") for name in names)


def _read_cells(run: str) -> str:
    found, is_number = [], False
    for cell in run:
        letter = _LETTERS.get(cell, "")
        if cell == _NUMBER:
            is_number = True
        elif is_number and letter and letter in "abcdefghij":
            found.append("1234567890"["abcdefghij".index(letter)])
        elif cell != _CAPITAL:
            found.append(letter)
            is_number = False
    return "".join(found)
