"""System messages in the middle: only on some models, only behind a user's turn, only last or
before an answer.
"""

from __future__ import annotations

from agentweb.emulator import wire
from agentweb.emulator.blocks import as_blocks
from agentweb.emulator.catalogue import Model
from agentweb.emulator.errors import Invalid


def check_system_messages(messages: list[wire.Object], model: Model) -> None:
    for index, message in enumerate(messages):
        if message["role"] != "system":
            continue
        if not model.system_messages:
            raise Invalid(
                'messages: Unexpected role "system". The Messages API accepts a '
                "top-level `system` parameter, "
                'not "system" as an input message role.'
            )
        if index == 0:
            raise Invalid("messages.0: a `system` message cannot be the first message")
        if not _may_follow(messages[index - 1]):
            raise Invalid(
                f"messages.{index}: a `system` message must follow a `user` message, or "
                f"an `assistant` message "
                "that ends with a server tool result"
            )
        if index + 1 < len(messages) and messages[index + 1]["role"] != "assistant":
            raise Invalid(
                f"messages.{index}: a `system` message must be the last message or be "
                f"followed by an `assistant` message"
            )


def _may_follow(before: wire.Object) -> bool:
    if before["role"] == "user":
        return True
    content = as_blocks(before["content"])
    return (
        before["role"] == "assistant"
        and bool(content)
        and content[-1]["type"].endswith("_tool_result")
    )
