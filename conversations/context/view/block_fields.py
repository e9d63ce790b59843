"""Which fields the API accepts in a content block; it refuses a request with any other.

Types that are not listed keep all their fields: results of the API's own tools differ by tool, and
what the API wrote there it accepts back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CALL = frozenset({"type", "id", "name", "input", "cache_control", "caller", "toolset_name"})
_FIELDS = {
    "text": frozenset({"type", "text", "cache_control", "citations"}),
    "image": frozenset({"type", "source", "cache_control", "transformations"}),
    "document": frozenset({"type", "source", "cache_control", "citations", "context", "title"}),
    "search_result": frozenset(
        {"type", "source", "title", "content", "cache_control", "citations"}
    ),
    "tool_result": frozenset(
        {"type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"}
    ),
    "tool_use": _CALL,
    "server_tool_use": _CALL,
    "mcp_tool_use": _CALL | {"server_name"},
}
_SOURCE_FIELDS = {
    "base64": frozenset({"type", "media_type", "data"}),
    "text": frozenset({"type", "media_type", "data"}),
    "url": frozenset({"type", "url"}),
    "content": frozenset({"type", "content"}),
}


def keep_fields(role: str, value: dict[str, Any]) -> dict[str, Any]:
    """Return a block with the fields that the API accepts in a message of this role."""
    kept = _keep(_FIELDS, value)
    if role == "user" and value["type"] == "text" and kept.get("citations"):
        # The API cites in its answers alone.
        del kept["citations"]
    if value["type"] in ("image", "document") and isinstance(kept.get("source"), dict):
        kept["source"] = _keep(_SOURCE_FIELDS, kept["source"])
    return kept


def find_extra_field(role: str, value: dict[str, Any]) -> str:
    """Return the first field of a block that `keep_fields` removes or changes; "" without one."""
    kept = keep_fields(role, value)
    return next((key for key in value if key not in kept or kept[key] != value[key]), "")


def _keep(fields: Mapping[str, frozenset[str]], value: dict[str, Any]) -> dict[str, Any]:
    known = fields.get(str(value.get("type")), value.keys())
    return {key: part for key, part in value.items() if key in known}
