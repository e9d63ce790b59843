"""The shape of one message; fields of system messages need the header of their beta."""

from __future__ import annotations

from agentweb.emulator.json_codec import Value
from agentweb.emulator.validation.blocks import block
from agentweb.emulator.validation.schema import (
    Check,
    Misfit,
    either,
    listing,
    nullable,
    one_of,
    record,
    string,
)

TOOL_CHANGES_BETA = "mid-conversation-tool-changes-2026-07-01"
CLEAR_AT_BETA = "mid-conversation-system-clear-at-2026-08-21"
OUTPUT_CONFIG_BETA = "mid-conversation-output-config-2026-07-01"

_role = one_of("user", "assistant", "system")
_content = either(string, listing(block))
_spoken = record({"role": _role, "content": _content})
_effort = record({}, {"effort": nullable(one_of("low", "medium", "high", "xhigh", "max"))})


def message_shape(betas: frozenset[str]) -> Check:
    """Return the check of a message for the requested betas."""
    more: dict[str, Check] = {}
    if CLEAR_AT_BETA in betas:
        more["clear_at"] = nullable(one_of("next_user_message", "never"))
    if OUTPUT_CONFIG_BETA in betas:
        more["output_config"] = nullable(_effort)
    with_content = record({"role": _role, "content": _content}, more)
    settings_only = record({"role": _role}, more)

    def check(value: Value) -> None:
        if type(value) is not dict or value.get("role") != "system":
            _spoken(value)
        elif "content" in value or not value.get("output_config"):
            with_content(value)
        elif OUTPUT_CONFIG_BETA in betas:
            settings_only(value)
        else:
            raise Misfit("Field required", "content")

    return check
