"""What came of a request, as far as two services can be compared: no words of a model."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentweb.emulator import json_codec

#: Figures that depend on what the model samples.
_OF_THE_MODEL = frozenset({"output_tokens", "output_tokens_details", "iterations"})


@dataclass(slots=True)
class Outcome:
    status: int
    error_type: str = ""
    error_text: str = ""
    stop_reason: str = ""
    #: The types of its content blocks, in order.
    blocks: list[str] = field(default_factory=list)
    #: Its usage; of a figure that depends on sampling only whether it is present.
    usage: json_codec.Object = field(default_factory=dict)

    def as_json(self) -> json_codec.Object:
        return {name: getattr(self, name) for name in Outcome.__slots__}


def read_outcome(status: int, content_type: str, body: bytes) -> Outcome:
    """Parse a response; one that is not JSON has only its status."""
    found = Outcome(status)
    for value in _list_values(content_type, body):
        if isinstance(value, dict):
            _take(found, value)
    return found


def _list_values(content_type: str, body: bytes) -> list[json_codec.Value]:
    lines = [body]
    if content_type.startswith("text/event-stream"):
        lines = [
            line.removeprefix(b"data:") for line in body.splitlines() if line.startswith(b"data:")
        ]
    try:
        return [json_codec.decode(line) for line in lines if line.strip()]
    except json_codec.NotJson:
        return []


def _take(found: Outcome, value: json_codec.Object) -> None:
    """Add a complete message, or one event of a stream."""
    match value.get("type"):
        case "error":
            error = value.get("error") or {}
            found.error_type, found.error_text = str(error.get("type")), str(error.get("message"))
        case "message_start":
            _take(found, value["message"])
        case "content_block_start":
            found.blocks.append(str(value["content_block"].get("type")))
        case "message_delta":
            found.stop_reason = str(value["delta"].get("stop_reason"))
            _take_usage(found, value)
        case "message":
            found.stop_reason = str(value.get("stop_reason"))
            found.blocks += [str(block.get("type")) for block in value.get("content") or ()]
            _take_usage(found, value)
        case None if "input_tokens" in value:
            found.usage = {"input_tokens": value["input_tokens"]}
        case _:
            pass


def _take_usage(found: Outcome, value: json_codec.Object) -> None:
    for name, figure in (value.get("usage") or {}).items():
        if figure is not None:
            found.usage[name] = "told" if name in _OF_THE_MODEL else figure
