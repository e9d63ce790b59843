"""Citations that are switched on for the documents of a request: for all of them, or for none.

Both rules are documented; the words of the refusals are ours.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentweb.emulator import json_codec
from agentweb.emulator.canonical_blocks import as_blocks
from agentweb.emulator.errors import Invalid


def check_document_citations(body: json_codec.Object) -> None:
    switches = {_has_citations(block) for block in _list_documents(body["messages"])}
    if len(switches) > 1:
        raise Invalid("messages: citations must be enabled on all or none of the documents")
    if True in switches and (body.get("output_config") or {}).get("format"):
        raise Invalid("output_config.format: citations are not supported with structured outputs")


def _has_citations(block: json_codec.Object) -> bool:
    return bool((block.get("citations") or {}).get("enabled"))


def _list_documents(messages: list[json_codec.Object]) -> Iterator[json_codec.Object]:
    for message in messages:
        for block in as_blocks(message["content"]):
            if block["type"] == "document":
                yield block
