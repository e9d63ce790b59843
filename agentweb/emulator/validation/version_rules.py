"""What one version of the API takes in messages and another refuses.

That these are refused is documented; the words of the refusal of documents are ours, after those
for other blocks of the wrong role.
"""

from __future__ import annotations

from agentweb.emulator import json_codec
from agentweb.emulator.canonical_blocks import as_blocks
from agentweb.emulator.errors import Invalid
from agentweb.emulator.versions import Version


def check_version_rules(body: json_codec.Object, version: Version) -> None:
    for index, message in enumerate(body["messages"]):
        role = message["role"]
        for at, block in enumerate(as_blocks(message["content"])):
            kind = block["type"]
            if role == "assistant" and kind == "document" and not version.takes_assistant_documents:
                raise Invalid(f"messages.{index}: `document` blocks can only be in `user` messages")
            is_cited = role == "user" and kind == "text" and bool(block.get("citations"))
            if is_cited and not version.takes_user_citations:
                path = f"messages.{index}.content.{at}.text.citations"
                raise Invalid(f"{path}: Extra inputs are not permitted")
