"""The shapes of blocks from users and tools: text, images, documents, results."""

from __future__ import annotations

from agentweb.emulator.json_codec import Value
from agentweb.emulator.validation.citations import citation
from agentweb.emulator.validation.schema import (
    Misfit,
    boolean,
    either,
    listing,
    mapping,
    matching,
    nullable,
    one_of,
    record,
    string,
    tagged,
)

cache_control = nullable(
    record({"type": one_of("ephemeral")}, {"ttl": nullable(one_of("5m", "1h"))})
)

identifier = matching("^[a-zA-Z0-9_-]+$")
_citation_switch = nullable(record({}, {"enabled": boolean}))
_text_fields = record(
    {"type": one_of("text"), "text": string},
    {"cache_control": cache_control, "citations": nullable(listing(citation))},
)


def text_block(value: Value) -> None:
    _text_fields(value)
    if value.get("cache_control") and not value["text"]:
        raise Misfit("cache_control cannot be set for empty text blocks")


image = record(
    {
        "type": one_of("image"),
        "source": tagged(
            {
                "base64": record(
                    {
                        "type": one_of("base64"),
                        "media_type": one_of("image/jpeg", "image/png", "image/gif", "image/webp"),
                        "data": string,
                    }
                ),
                "url": record({"type": one_of("url"), "url": string}),
                "file": record({"type": one_of("file"), "file_id": string}),
            }
        ),
    },
    {"cache_control": cache_control, "transformations": nullable(mapping)},
)

_source_content = tagged({"text": text_block, "image": image})
document = record(
    {
        "type": one_of("document"),
        "source": tagged(
            {
                "base64": record(
                    {
                        "type": one_of("base64"),
                        "media_type": one_of("application/pdf"),
                        "data": string,
                    }
                ),
                "text": record(
                    {"type": one_of("text"), "media_type": one_of("text/plain"), "data": string}
                ),
                "content": record(
                    {"type": one_of("content"), "content": either(string, listing(_source_content))}
                ),
                "url": record({"type": one_of("url"), "url": string}),
                "file": record({"type": one_of("file"), "file_id": string}),
            }
        ),
    },
    {
        "cache_control": cache_control,
        "citations": _citation_switch,
        "context": nullable(string),
        "title": nullable(string),
    },
)
search_result = record(
    {
        "type": one_of("search_result"),
        "content": listing(tagged({"text": text_block})),
        "source": string,
        "title": string,
    },
    {"cache_control": cache_control, "citations": _citation_switch},
)
tool_reference = record(
    {"type": one_of("tool_reference"), "tool_name": string}, {"cache_control": cache_control}
)
