"""Find the names in a text: addresses, files, identifiers, numbers, symbols of code.

The text is split at spaces and punctuation first and each piece is judged by itself, so the work is
linear and no regular expression can backtrack over a long blob.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

_PIECES = re.compile(r"""[^\s"'`<>()\[\]{},;|*\\]+""")
_NUMBER = re.compile(r"[$€£¥]?\d[\d.]*%?")
_FILE = re.compile(
    r"[\w.-]+\.(?:txt|md|json|ya?ml|toml|csv|tsv|xml|html?|css|[cm]?[jt]sx?|py|rb|go|rs|java|kt|cs"
    r"|cpp|cc|h|sh|sql|ini|cfg|conf|log|lock|pdf|png|jpe?g|gif|svg|docx?|xlsx?|pptx?|zip|tar|gz"
    r"|ipynb|php|swift)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\w-]+", re.ASCII)
#: A symbol of code: words joined by case or underscores.
_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]{5,60}")
_JOINED = re.compile(r"[a-z][A-Z]|[A-Za-z0-9]_+[A-Za-z0-9]")
#: The line number behind a file's name, and what follows it.
_PLACE = re.compile(r"(?<=[\w.]):\d+(?::.*)?$")
_EDGES = ".:!?…-–—"
_LONGEST, _SHORTEST_ID, _LEAST_DIGITS = 200, 6, 3


def count_names(text: str) -> Counter[str]:
    """Count the names in a text."""
    return Counter(filter(None, map(_read_name, _PIECES.findall(text))))


def list_names(text: str) -> list[str]:
    """Return the distinct names of a text in order, symbols of code too, without short ones."""
    found: dict[str, None] = {}
    for piece in dict.fromkeys(_PIECES.findall(text)):
        if len(piece) > _LONGEST:
            continue
        name = _read_name(_PLACE.sub("", piece))
        if name:
            found |= dict.fromkeys([name] if len(name) >= _SHORTEST_ID else [])
        else:
            found |= dict.fromkeys(filter(_JOINED.search, _SYMBOL.findall(piece)))
    return list(found)


def find_required_names(
    zone: Iterable[str], tail: Iterable[str], carried: str, most: int
) -> list[str]:
    """Return the zone's names that the tail uses and no other text in view contains.

    At most `most`: addresses and files before numbers, then those the tail uses most.
    """
    used: Counter[str] = Counter()
    for text in tail:
        used.update(count_names(text))
    wanted = {name for name in used if name not in carried}
    known = {name for text in zone for name in _find_wanted(text, wanted)} if wanted else set()
    found = [name for name in used if name in known]
    return sorted(found, key=lambda name: (_rank(name), -used[name], name))[:most]


def _find_wanted(text: str, wanted: set[str]) -> Iterator[str]:
    """Yield the names of the text that are in `wanted`; other pieces are not examined."""
    for piece in set(_PIECES.findall(text)):
        bare = piece.strip(_EDGES)
        if bare in wanted or ("=" in bare and bare.rpartition("=")[2].strip(_EDGES) in wanted):
            yield _read_name(bare)


def _read_name(piece: str) -> str:
    piece = piece.strip(_EDGES)
    if piece.startswith(("http://", "https://")):
        return piece if 10 < len(piece) <= _LONGEST else ""
    piece = piece.rpartition("=")[2].strip(_EDGES)
    if not 3 <= len(piece) <= _LONGEST:
        return ""
    if "/" in piece and any(map(str.isalnum, piece)) and ("." in piece or piece.count("/") > 1):
        return piece
    if "@" in piece[1:-1] and "." in piece:
        return piece
    digits = sum(map(str.isdigit, piece))
    if _FILE.fullmatch(piece) or (digits and len(piece) >= _SHORTEST_ID and _is_id(piece)):
        return piece
    return piece if digits >= _LEAST_DIGITS and _NUMBER.fullmatch(piece) else ""


def _is_id(piece: str) -> bool:
    return any(map(str.isalpha, piece)) and _WORD.fullmatch(piece) is not None


def _rank(name: str) -> int:
    if "/" in name or "@" in name:
        return 0
    return 1 if any(map(str.isalpha, name)) else 2
