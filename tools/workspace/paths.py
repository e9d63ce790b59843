"""A path of a workspace is a short list of plain names.

Everything that could mean something else to a file system, a shell, another platform or a reader is
refused before a file is touched; nothing is decoded (`%2e` is three ordinary characters). Names are
normalised to NFC, so that two spellings of one word are one file. A plain name says nothing about
what is on the disk: links, pipes and races are handled by directories.py.
"""

from __future__ import annotations

import re
import unicodedata

from tools.framework.clean_text import quote
from tools.framework.errors import PathRefusedError

LONGEST_PATH = 1_024
LONGEST_NAME = 255
DEEPEST = 16
#: Prefix of our own unfinished files, hidden from tools.
UNFINISHED = ".agentweb-"
RESERVED = re.compile(r"(CON|PRN|AUX|NUL|COM[0-9¹²³]|LPT[0-9¹²³])(\.|$)", re.IGNORECASE)
INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
JOINERS = "\u200c\u200d"


def split_path(path: str) -> tuple[str, ...]:
    """Return the names of a path below the workspace; the empty tuple is the workspace itself."""
    path = unicodedata.normalize("NFC", path)
    if path.startswith("/"):
        raise _refusal(
            path, "absolute", "it is absolute; paths start at the workspace, like notes/plan.md"
        )
    if path.startswith("~"):
        raise _refusal(path, "home", "there is no home folder; paths start at the workspace")
    if any(unicodedata.category(each) in INVISIBLE and each not in JOINERS for each in path):
        raise _refusal(path, "invisible", "it has control or invisible characters")
    if "\\" in path:
        raise _refusal(path, "backslash", "folders are separated by /, not by a backslash")
    if len(path.encode()) > LONGEST_PATH:
        raise _refusal(path, "long_path", f"it is longer than {LONGEST_PATH:,} bytes")
    names = tuple(name for name in path.split("/") if name not in ("", "."))
    if len(names) > DEEPEST:
        raise _refusal(path, "deep", f"it is more than {DEEPEST} folders deep")
    for name in names:
        _check_name(path, name)
    return names


def _check_name(path: str, name: str) -> None:
    if name == "..":
        raise _refusal(path, "above", "'..' is not allowed; paths stay inside the workspace")
    if name.endswith((".", " ")):
        raise _refusal(path, "ending", "a name must not end with a dot or a space")
    if len(name.encode()) > LONGEST_NAME:
        raise _refusal(path, "long_name", f"a name is longer than {LONGEST_NAME} bytes")
    if RESERVED.match(name) or name.startswith(UNFINISHED):
        raise _refusal(path, "reserved", f"the name {quote(name)} is reserved")


def _refusal(path: str, reason: str, words: str) -> PathRefusedError:
    error = PathRefusedError(f"The path {quote(path)} is refused: {words}.")
    return error.because(reason, path=quote(path))
