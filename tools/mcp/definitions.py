"""The definition of a tool as text: what is approved, compared and shown.

The text keeps the order the server wrote; the digest does not depend on it, because a server that
builds its schemas at each start may order them differently. Icons and metadata are in neither: the
model does not read them and no decision depends on them. A definition with a flaw can be shown but
not approved.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass, replace
from typing import Any

from tools.framework.clean_text import UNSTORABLE
from tools.mcp.rewritten_schemas import rewrite_schema
from tools.mcp.schemas import find_flaw

MOST_BYTES = 64_000
LONGEST_NAME = 200
LONGEST_CALL_NAME = 128
#: The fields that the model reads or decisions depend on, by their names in the protocol.
PARTS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
OTHER = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass(frozen=True, slots=True)
class Listed:
    """A tool as a server lists it."""

    name: str
    call_name: str
    text: str
    digest: str
    #: why it cannot be approved, "" if it can
    flaw: str = ""


def read_definitions(server: str, tools: Iterable[dict[str, Any]]) -> tuple[Listed, ...]:
    """Read a full list; two tools that would get the same name for the model are both flawed."""
    found = [_read_definition(server, tool) for tool in tools]
    names = Counter(each.call_name for each in found)
    shared = "Another tool of this server has the same name, as the model would call it."
    return tuple(
        replace(each, flaw=each.flaw or shared) if names[each.call_name] > 1 else each
        for each in _drop_repeated(found)
    )


def list_definitions(server: str, tools: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Do the same and return the fields of each."""
    return [astuple(each) for each in read_definitions(server, tools)]


def make_call_name(server: str, tool: str) -> str:
    """Return `mcp__<server>__<tool>`, the name for the model, in characters the API takes."""
    return f"mcp__{server}__{OTHER.sub('_', tool)}"


def compute_digest(definition: dict[str, Any]) -> str:
    text = json.dumps(definition, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _read_definition(server: str, tool: dict[str, Any]) -> Listed:
    definition = {part: tool[part] for part in PARTS if tool.get(part) is not None}
    if hints := definition.get("annotations"):
        definition["annotations"] = {name: hints[name] for name in hints if hints[name] is not None}
    # Escaped, so that any text of the server can be stored, sent and shown.
    text = json.dumps(definition, separators=(",", ":"))
    name, digest = str(definition.get("name", "")), compute_digest(definition)
    flaw = _find_flaw(server, name, definition, text)
    shown = UNSTORABLE.sub("\ufffd", name[:LONGEST_NAME])
    kept = text if len(text) <= MOST_BYTES else ""
    return Listed(shown, make_call_name(server, shown)[:LONGEST_CALL_NAME], kept, digest, flaw)


def _find_flaw(server: str, name: str, definition: dict[str, Any], text: str) -> str:
    if not name:
        return "It has no name."
    if len(name) > LONGEST_NAME or len(make_call_name(server, name)) > LONGEST_CALL_NAME:
        return (
            f"Its name is longer than {LONGEST_CALL_NAME} characters, as the model would call it."
        )
    if len(text) > MOST_BYTES:
        return f"Its definition has {len(text):,} bytes; {MOST_BYTES:,} are taken at most."
    if any(UNSTORABLE.search(each) for each in _walk_strings(definition)):
        return "Its definition has characters that cannot be stored."
    return find_flaw(rewrite_schema(definition.get("inputSchema")).schema)


def _walk_strings(value: Any) -> Iterable[str]:
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                yield text
            case dict() as held:
                waiting.extend(held)
                waiting.extend(held.values())
            case list() as held:
                waiting.extend(held)


def _drop_repeated(found: Iterable[Listed]) -> Iterable[Listed]:
    """Drop repeated names, since rows are stored by name."""
    return {each.name: each for each in found}.values()
