"""Files in a prompt, referenced by digest instead of their data: stored once, sent in full.

A stored block refers to the text (the base64 of an image or a PDF, or a text itself) by its digest:
`"source":{"type":"base64","media_type":"image/png","data":"blob:sha256:..."}`. This is a reference
only as the source of an image or document block at the top level of a prompt, written exactly so;
anywhere else the same characters are ordinary text. A block from outside that looks like a
reference is refused (`demand_no_references`), so every reference was written here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conversations.context.errors import ContextError
from conversations.context.tokens.images import TYPES as IMAGES
from conversations.context.tokens.media import PDF, TEXT
from conversations.context.view import wire
from conversations.context.view.edits import Edit, SpliceBlocks

#: What a text with a reference contains.
HINT = "blob:sha256:"
_SOURCE = '"source":{"type":'
_NAME = re.compile(
    r'("source":\{"type":"(?:base64|text)","media_type":"[a-z/+.-]+","data":)"blob:(sha256:[0-9a-f]{64})"\}'
)
#: Block type, source type and media type of what can be referenced.
_KINDS = frozenset(
    {("image", "base64", name) for name in IMAGES}
    | {("document", "base64", PDF), ("document", "text", TEXT)}
)


class MissingFile(ContextError):
    """A message refers to a file whose text is not stored."""

    code = "missing_file"

    def __init__(self, digest: str) -> None:
        super().__init__(f"A file of this conversation is missing: {digest}.")
        self.digest = digest


class ForgedName(ContextError):
    """A block from outside looks like a reference to a stored file."""

    code = "forged_name"


@dataclass(frozen=True, slots=True)
class FileReference:
    """A file that a prompt refers to; `title` is its name for the model."""

    digest: str
    media_type: str
    title: str = ""


def write_block(media_type: str, digest: str, title: str) -> str:
    """Write the block that refers to a file; an image has no title in the API."""
    kind = "text" if media_type == TEXT else "base64"
    source = {"type": kind, "media_type": media_type, "data": f"blob:{digest}"}
    if media_type in IMAGES:
        return wire.encode({"type": "image", "source": source})
    return wire.encode({"type": "document", "source": source, "title": title})


def may_hold_reference(text: str) -> bool:
    """Return whether a stored text can contain a reference, by a quick check."""
    return HINT in text


def list_references(content: str) -> tuple[FileReference, ...]:
    """Return the files that the content of a prompt refers to, in order."""
    if HINT not in content:
        return ()
    found = (_read_reference(text) for text in wire.split(content))
    return tuple(one for one in found if one is not None)


def find_reference(block: Mapping[str, Any]) -> FileReference | None:
    """Return the file that a decoded block refers to."""
    return _read_reference(wire.encode(block)) if _is_kind(block) else None


def expand_references(content: str, texts: Mapping[str, str]) -> str:
    """Replace the references by their texts; raises MissingFile."""
    return (
        _map_blocks(content, lambda one: _expand_block(one, texts)) if HINT in content else content
    )


def expand_known(content: str, texts: Mapping[str, str]) -> str:
    """Replace the references whose texts are in `texts`; the others stay, and break a rule."""

    def expand(text: str) -> str:
        one = _read_reference(text)
        return text if one is None or one.digest not in texts else _expand_block(text, texts)

    return _map_blocks(content, expand) if HINT in content else content


def collapse_files(content: str, known: Callable[[str], bool]) -> str:
    """Replace texts whose digest is `known` by references; the inverse of `expand_references`."""
    return _map_blocks(content, lambda one: _collapse_block(one, known))


def list_sources(content: str) -> Iterator[tuple[str, str, str]]:
    """Yield media type, title and text of each file whose data is in the content itself."""
    for text in wire.split(content):
        value = _decode_file_block(text)
        if value is not None and _read_reference(text) is None:
            source = value["source"]
            yield source["media_type"], str(value.get("title") or ""), source["data"]


def demand_no_references(content: str) -> None:
    """Refuse blocks from outside that look like references; raises ForgedName."""
    if HINT in content and any(map(_NAME.search, _list_media(wire.split(content)))):
        raise ForgedName("a block names a stored file instead of holding its data")


def list_references_in_edits(edits: Iterable[Edit]) -> tuple[FileReference, ...]:
    return tuple(
        one for content in map(_read_prompt_blocks, edits) for one in list_references(content)
    )


def expand_edits(edits: Iterable[Edit], texts: Mapping[str, str]) -> tuple[Edit, ...]:
    return tuple(
        _map_edit(edit, lambda content: expand_references(content, texts)) for edit in edits
    )


def collapse_edits(edits: Iterable[Edit], known: Callable[[str], bool]) -> tuple[Edit, ...]:
    return tuple(_map_edit(edit, lambda content: collapse_files(content, known)) for edit in edits)


def _read_prompt_blocks(edit: Edit) -> str:
    """Return the blocks that an edit inserts into prompts."""
    if isinstance(edit, SpliceBlocks):
        return wire.join(edit.blocks)
    texts = (
        text
        for _, kind, content in edit.messages
        if kind == "prompt"
        for text in wire.split(content)
    )
    return wire.join(texts)


def _map_edit(edit: Edit, change: Callable[[str], str]) -> Edit:
    if isinstance(edit, SpliceBlocks):
        return replace(edit, blocks=tuple(wire.split(change(wire.join(edit.blocks)))))
    put = tuple(
        (seq, kind, change(content) if kind == "prompt" else content)
        for seq, kind, content in edit.messages
    )
    return replace(edit, messages=put)


def _map_blocks(content: str, change: Callable[[str], str]) -> str:
    texts = wire.split(content)
    changed = [change(text) for text in texts]
    return content if changed == texts else wire.join(changed)


def _expand_block(text: str, texts: Mapping[str, str]) -> str:
    one = _read_reference(text)
    if one is None:
        return text
    if one.digest not in texts:
        raise MissingFile(one.digest)
    data = wire.encode(texts[one.digest])
    # A function, because a replacement string would be interpreted as a pattern.
    return _NAME.sub(lambda match: f"{match[1]}{data}}}", text)


def _collapse_block(text: str, known: Callable[[str], bool]) -> str:
    value = _decode_file_block(text) if _SOURCE in text else None
    if value is None or _read_reference(text) is not None:
        return text
    digest = wire.digest(value["source"]["data"])
    if not known(digest):
        return text
    source = value["source"] | {"data": f"blob:{digest}"}
    made = wire.encode({**value, "source": source})
    # Only a reference that expands to the same bytes is kept.
    return (
        made
        if _read_reference(made) and _expand_block(made, {digest: value["source"]["data"]}) == text
        else text
    )


def _read_reference(text: str) -> FileReference | None:
    """Read the reference in a block's text; None when there is none."""
    if HINT not in text or len(found := _NAME.findall(text)) != 1:
        return None
    value = _decode_file_block(text)
    digest = found[0][1]
    if value is None or value["source"]["data"] != f"blob:{digest}":
        return None
    return FileReference(digest, value["source"]["media_type"], str(value.get("title") or ""))


def _decode_file_block(text: str) -> dict[str, Any] | None:
    """Decode a block of the kinds that can be references."""
    value = wire.decode(text)
    return value if isinstance(value, dict) and _is_kind(value) else None


def _is_kind(value: Mapping[str, Any]) -> bool:
    source = value.get("source")
    if not isinstance(source, dict) or list(source) != ["type", "media_type", "data"]:
        return False
    kind = (value.get("type"), source["type"], source["media_type"])
    return (
        isinstance(source["data"], str)
        and all(isinstance(one, str) for one in kind)
        and kind in _KINDS
    )


def _list_media(texts: Sequence[str]) -> list[str]:
    return [
        text
        for text in texts
        if isinstance(value := wire.decode(text), dict)
        and value.get("type") in ("image", "document")
    ]
