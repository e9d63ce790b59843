"""Refusals and acceptances that are documented or that others observed live, each with its source.

A row has the change to a small valid request, the model, the API version, and the exact error text.
A text that ends in an ellipsis is the beginning of the message; no text means that the request is
accepted. Where the refusal is documented but its text is not, the row says so.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.emulator.samples import (
    RESULT,
    SERVER_RESULT,
    SERVER_USE,
    TEXT,
    THOUGHT,
    TOOL,
    USE,
    assistant,
    talk,
    user,
    words,
)

OLD, NEW = "2023-06-01", "2026-10-21"
LIVE = "live measurements of others, collected"
SCHEMAS = "a probe of each keyword on claude-opus-5-5 by a third party"
MCP_BETA = "mcp-client-2025-11-20"
NOT_JSON = "The request body is not valid JSON:"
STOPS = "stop_sequences: each stop sequence must {}"
NO_WORDS = "; its words are not known"


class Known(NamedTuple):
    rule: str
    change: dict[str, Any]
    words: str
    source: str
    date: str
    model: str = "claude-haiku-5-5"
    version: str = OLD
    beta: str = ""


def effort(level: str, **more: Any) -> dict[str, Any]:
    return words(output_config={"effort": level}, **more)


def think(kind: str, **more: Any) -> dict[str, Any]:
    return words(thinking={"type": kind}, **more)


def sized(kind: str) -> dict[str, Any]:
    size = {"display_width_px": 800, "display_height_px": 600} if "computer" in kind else {}
    return words(tools=[{"type": kind, "name": kind.partition("_")[0]} | size])


USE_ADAPTIVE = (
    'is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort"'
    " to control thinking behavior."
)
FORCED = 'tool_choice: type "tool" and "any" are not supported for this model.'
LEVELS = "This model does not support effort level '{}'. Supported levels: {}."
NOT_OFF = (
    "output_config.effort '{}' is not supported when thinking is disabled on this model. Use"
    " effort '{}' or below, or enable thinking."
)
FINAL = "messages.1: The final block in an assistant message cannot be `thinking`."
OFF = (
    "messages.1.content.0: When thinking is disabled, an `assistant` message in the final position"
    " cannot contain `thinking`. To use thinking blocks, enable `thinking` in your request."
)
EXTRA = "{}: Extra inputs are not permitted"
PLACE = "'{}' does not support inference_geo."
LACKS = "'{}' does not support tool types: {}. Did you mean one of {}…"
PREFILL = (
    "This model does not support assistant message prefill. The conversation must end with a user"
    " message."
)
NAMED = {"type": "tool", "name": "read_file"}
FORCE_ANY = words(tools=[TOOL], tool_choice={"type": "any"})
FORCE_ONE = words(tools=[TOOL], tool_choice=NAMED)
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
NOTES = {
    "type": "document",
    "source": {"type": "text", "media_type": "text/plain", "data": "Some notes."},
}
CITED = {"citations": {"enabled": True}}
QUOTE = {
    "type": "char_location",
    "cited_text": "Some",
    "document_index": 0,
    "document_title": None,
    "start_char_index": 0,
    "end_char_index": 4,
}
SERVER = {"type": "url", "name": "wiki", "url": "https://wiki.example/mcp"}
MCP_USE = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "ask", "input": {}}
MCP_USED = talk(
    user(TEXT),
    assistant(
        MCP_USE | {"server_name": "wiki"},
        {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False},
        TEXT,
    ),
    user(TEXT),
)

THINKING = [
    *(
        Known(
            f"13 effort {level}", effort(level), LEVELS.format(level, known), LIVE, "2026-11-24",
            model,
        )
        for model, level, known in (
            ("claude-opus-4-6", "xhigh", "high, low, max, medium"),
            ("claude-sonnet-4-6", "xhigh", "high, low, max, medium"),
            ("claude-opus-4-5", "max", "high, low, medium"),
            ("claude-opus-4-5", "xhigh", "high, low, medium"),
        )
    ),
    Known("13 no effort", effort("high"), "This model does not support the effort parameter.",
          LIVE, "2026-11-24", "claude-haiku-4-5"),
    *(
        Known("13 thinking off", think("disabled"), f'"thinking.type.disabled" {USE_ADAPTIVE}',
              "what is new, model pages; met live", "2026-11-24", model)
        for model in ("claude-sonnet-5-5", "claude-opus-5-5", "claude-fable-5-1", "claude-fable-5")
    ),
    *(
        Known("13 thinking off at a high effort", effort(level, thinking={"type": kind}),
              NOT_OFF.format(level, most), source, date, model)
        for model, kind, level, most, source, date in (
            ("claude-opus-5", "disabled", "xhigh", "high", LIVE, "2026-11-24"),
            ("claude-haiku-5-5", "disabled", "max", "xhigh", f"model page{NO_WORDS}",
             "2026-10-07"),
            ("claude-sonnet-5-5", "between_tools", "xhigh", "high", f"model page{NO_WORDS}",
             "2026-10-07"),
        )
    ),
    Known("13 thinking off", think("disabled"), "", LIVE, "2026-11-24"),
    Known("13 thinking off", think("disabled"), "", LIVE, "2026-11-24", "claude-opus-5"),
    Known("13 thinking between tools", think("between_tools"), "", LIVE, "2026-11-24",
          "claude-sonnet-5-5"),
    Known("13 a budget", think("enabled") | {"thinking": {"type": "enabled",
          "budget_tokens": 1_024}}, f'"thinking.type.enabled" {USE_ADAPTIVE}',
          "migration guide; met live", "2026-09-22", "claude-opus-5-5"),
    *(
        Known("13 thinking at the end", words(messages=[user(TEXT), assistant(TEXT, THOUGHT)]),
              FINAL, "a probe of message shapes by a third party", "2026-07-25", model)
        for model in ("claude-sonnet-4-5", "claude-opus-4-8")
    ),
    Known("13 thinking at the end of a message before the last",
          words(messages=[user(TEXT), assistant(TEXT, THOUGHT), user(TEXT)]),
          FINAL, "met live by a third party", "2026-07-25", "claude-sonnet-4-5"),
    Known("13 thinking switched off before the end",
          words(messages=[user(TEXT), assistant(THOUGHT, TEXT)]), OFF, "met live by a third party",
          "2026-01-31", "claude-haiku-4-5"),
    Known("13 words to go on from", words(messages=[user(TEXT), assistant(TEXT)]), PREFILL,
          "a probe of message shapes by a third party", "2026-07-25", "claude-opus-4-8"),
]  # fmt: skip


def offered(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    return words(tools=[{"name": "a", "input_schema": {"type": "object"} | schema} | more])


def shaped(**properties: Any) -> dict[str, Any]:
    """Return the schema of a closed object with these properties."""
    return {"type": "object", "properties": properties, "additionalProperties": False}


def formatted(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    return words(output_config={"format": {"type": "json_schema", "schema": schema}}, **more)


STRING, NUMBER = {"type": "string"}, {"type": "number"}
COMBINED = "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at {}"
KEYS = "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"
CLOSED = "For 'object' type, 'additionalProperties' must be explicitly set to false"
EMPTY = "Empty schema ({}) that accepts any JSON value is not supported."
NODE = shaped(child={"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]})
LISTS = {"type": "array", "items": STRING}
#: A schema that is not supported, and the reason in the error after the path.
UNHELD: dict[str, tuple[dict[str, Any], str]] = {
    "a choice of one": (shaped(u={"oneOf": [STRING, NUMBER]}),
                        "Schema type 'oneOf' is not supported"),
    "not": (shaped(u=STRING | {"not": NUMBER}), "Schema keyword 'not' is not supported"),
    "a tuple": (shaped(a={"type": "array", "prefixItems": [STRING]}),
                "For 'array' type, property 'prefixItems' is not supported"),
    "a list of items": (shaped(a={"type": "array", "items": [STRING, NUMBER]}),
                        ("Invalid schema: Array types must be specified with a single object schema"
                        " for 'items'.")),
    "contains": (shaped(a=LISTS | {"contains": STRING}),
                 "For 'array' type, property 'contains' is not supported"),
    "if": (shaped(a=STRING) | {"if": {"properties": {}}},
           "For 'object' type, property 'if' is not supported"),
    "dependentRequired": (shaped(a=STRING) | {"dependentRequired": {"a": ["b"]}},
                          "For 'object' type, property 'dependentRequired' is not supported"),
    "unevaluatedProperties": (shaped(a=STRING) | {"unevaluatedProperties": False},
                              ("For 'object' type, property 'unevaluatedProperties' is not"
                              " supported")),
    "a least number": (shaped(n={"type": "integer", "minimum": 0}),
                       "For 'integer' type, property 'minimum' is not supported"),
    "a range": (shaped(n=NUMBER | {"minimum": 0, "maximum": 9}),
                "For 'number' type, properties maximum, minimum are not supported"),
    "a longest list": (shaped(a=LISTS | {"maxItems": 3}),
                       "For 'array' type, property 'maxItems' is not supported"),
    "a shortest list": (shaped(a=LISTS | {"minItems": 6}),
                        ("For 'array' type, 'minItems' values other than 0 or 1 are not supported"
                        " (got: [6, ∞])")),
    "an empty schema": (shaped(a={}), EMPTY),
    "a title alone": (shaped(a={"title": "A"}), EMPTY),
    "an open object": ({"type": "object", "properties": {"a": STRING}}, CLOSED),
    "an open object inside": (shaped(o={"type": "object", "properties": {}}), CLOSED),
    "a map": ({"type": "object", "additionalProperties": STRING},
              ("For 'object' type, 'additionalProperties: object' is not supported. Please set"
              " 'additionalProperties' to false")),
    "a type beside a choice": (shaped(u=STRING | {"anyOf": [STRING, NUMBER]}),
                               "For 'anyOf', 'type' is not supported"),
    "an object beside a choice": (shaped(a=STRING) | {"anyOf": [STRING]},
                                  ("For 'anyOf', 'additionalProperties, properties, type' is not"
                                  " supported")),
    "a circle": (shaped(n={"$ref": "#/$defs/N"}) | {"$defs": {"N": NODE}},
                 "Circular reference detected in schema definitions: N -> N"),
}  # fmt: skip

SCHEMA_ROWS = [
    *(
        Known(f"13 {word} at the top level", offered({word: [STRING]}),
              COMBINED.format("the top level"), LIVE, "2026-11-24", version=version)
        for word in ("oneOf", "allOf", "anyOf")
        for version in (OLD, NEW)
    ),
    *(
        Known("13 the key of a property", offered({"properties": {key: STRING}}),
              f"tools.0.custom.input_schema.properties: {KEYS}", LIVE, "2026-11-24")
        for key in ("a b", "ä", "a" * 65, "$ref?")
    ),
    Known("13 keys that are allowed", offered({"properties": {"a.b-c_D9": STRING}}), "", LIVE,
          "2026-11-24"),
    *(
        Known(f"13 a format with {name}", formatted(schema),
              f"output_config.format.schema: {reason}", SCHEMAS, "2026-09-27")
        for name, (schema, reason) in UNHELD.items()
    ),
    *(
        Known(f"13 a strict tool with {name}", words(tools=[
                  {"name": "a", "input_schema": schema, "strict": True}]),
              f"tools.0.custom: {reason}", "refusals of strict tools met by third parties",
              "2026-09-12")
        for name, (schema, reason) in UNHELD.items()
        if "anyOf" not in schema
    ),
    Known("13 a strict tool that is closed", words(tools=[
              {"name": "a", "input_schema": shaped(o=shaped()), "strict": True}]), "",
          "a live request of a third party", "2026-09-12"),
    Known("13 an open tool that is not strict", offered({"properties": {"n": NUMBER}}), "",
          "a live request of a third party", "2026-09-12"),
]  # fmt: skip

TOOL_ROWS = [
    *(
        Known("13 a forced tool", change, FORCED, "what is new, model pages; met live",
              "2026-11-24", model, version)
        for model in ("claude-fable-5-1", "claude-fable-5-2", "claude-opus-5-5",
                      "claude-sonnet-5-5")
        for change, version in ((FORCE_ANY, OLD), (FORCE_ONE, NEW))
    ),
    Known("13 a forced tool", FORCE_ONE, "", LIVE, "2026-11-24", "claude-opus-5"),
    Known("13 a tool type it lacks", sized("computer_20251124"),
          LACKS.format("claude-opus-5-5", "computer_20251124", "bash_20250124, "),
          "what is new in Opus 5.5, docs; met live", "2026-09-22", "claude-opus-5-5"),
    Known("13 a tool type it lacks", sized("computer_20241022"),
          LACKS.format("claude-opus-4-7", "computer_20241022", "bash_20250124, "),
          "computer use on a cloud, docs", "2026-09-30", "claude-opus-4-7"),
    Known("13 two tool types it lacks",
          words(tools=[*sized("computer_20241022")["tools"],
                       {"type": "bash_20241022", "name": "bash"}]),
          LACKS.format("claude-haiku-4-5-20251001", "computer_20241022, bash_20241022",
                       "bash_20250124, "),
          "met live by a third party", "2025-11-30", "claude-haiku-4-5"),
    Known("13 a toolset it lacks", words(tools=[{"type": "browser_toolset_20260801"}]),
          LACKS.format("claude-haiku-4-5-20251001", "browser_toolset_20260801", "bash_20250124, "),
          "met live by a third party", "2026-09-22", "claude-haiku-4-5"),
    Known("13 a tool type it has", sized("computer_20251124"), "",
          "a live request of a third party", "2026-09-22", "claude-fable-5-1"),
    Known("13 a server that no toolset names", words(mcp_servers=[SERVER]),
          "MCP server 'wiki' is defined but not referenced by any mcp_toolset in tools",
          "met live by third parties", "2026-08-31", beta=MCP_BETA),
    Known("13 a server that a toolset names",
          words(mcp_servers=[SERVER],
                tools=[{"type": "mcp_toolset", "mcp_server_name": "wiki"}]),
          "", "MCP connector, docs", "2026-08-31", beta=MCP_BETA),
    Known("13 a result of a server without content", MCP_USED, "", LIVE, "2026-11-24",
          beta=MCP_BETA),
    Known("13 an error with an image",
          talk(user(TEXT), assistant(USE),
               user(RESULT | {"is_error": True, "content": [TEXT, IMAGE]})),
          "messages.2.content.0.tool_result: all content must be type `text` if `is_error` is true",
          "met live by third parties", "2026-11-24"),
]  # fmt: skip

OTHERS = [
    *(
        Known(f"13 {name}", words(**{name: value}), EXTRA.format(name),
              "live requests of others under both versions", "2026-10-31", model, NEW)
        for name, value in (("temperature", 1.0), ("top_p", 0.5), ("top_k", 5))
        for model in ("claude-sonnet-4-6", "claude-sonnet-5-5", "claude-haiku-4-5")
    ),
    *(
        Known(f"13 {name}", words(**{name: value}), "",
              "live requests of others under both versions", "2026-10-31", "claude-sonnet-4-6")
        for name, value in (("temperature", 1.0), ("top_p", 0.5), ("top_k", 5))
    ),
    Known("13 a document by the assistant",
          words(messages=[user(TEXT), assistant(NOTES, TEXT), user(TEXT)]),
          "messages.1: `document` blocks can only be in `user` messages",
          f"API versions, docs{NO_WORDS}", "2026-10-21", version=NEW),
    Known("13 a document by the assistant",
          words(messages=[user(TEXT), assistant(NOTES, TEXT), user(TEXT)]), "",
          "live requests of others under both versions", "2026-10-31"),
    Known("13 citations by the user",
          words(messages=[user(NOTES, TEXT | {"citations": [QUOTE]})]),
          EXTRA.format("messages.0.content.1.text.citations"), f"API versions, docs{NO_WORDS}",
          "2026-10-21", version=NEW),
    Known("13 citations by the user",
          words(messages=[user(NOTES, TEXT | {"citations": [QUOTE]})]), "",
          "live requests of others under both versions", "2026-10-31"),
    Known("13 empty citations by the user", words(messages=[user(TEXT | {"citations": []})]), "",
          "API versions, docs", "2026-10-21", version=NEW),
    Known("13 citations on some documents", words(messages=[user(NOTES | CITED, NOTES, TEXT)]),
          "messages: citations must be enabled on all or none of the documents",
          f"citations, docs{NO_WORDS}", "2026-11-10"),
    Known("13 citations and a format",
          formatted(shaped(a=STRING), messages=[user(NOTES | CITED, TEXT)]),
          "output_config.format: citations are not supported with structured outputs",
          f"structured outputs, docs{NO_WORDS}", "2026-11-10"),
    Known("13 citations on all documents",
          words(messages=[user(NOTES | CITED, NOTES | CITED, TEXT)]), "", "citations, docs",
          "2026-11-10"),
    *(
        Known("13 a place", words(inference_geo=place), PLACE.format(told), source, date, model)
        for model, told, place, source, date in (
            ("claude-haiku-4-5", "claude-haiku-4-5-20251001", "global", "met live", "2026-10-09"),
            ("claude-opus-4-5", "claude-opus-4-5-20251101", "us", "data residency, docs",
             "2026-11-10"),
        )
    ),
    Known("13 a place", words(inference_geo="us"), "", "met live", "2026-10-09"),
    Known("13 an assistant first", words(messages=[assistant(TEXT), user(TEXT)]), "",
          "a recorded exchange", "2026-11-24", "claude-sonnet-4-5"),
    Known("13 whitespace by the assistant",
          words(messages=[user(TEXT), assistant(TEXT, TEXT | {"text": "\n\n"}, TEXT), user(TEXT)]),
          "", "recorded exchanges", "2026-11-24", version=NEW),
    Known("13 one id in two turns",
          talk(user(TEXT), assistant(USE), user(RESULT), assistant(USE), user(RESULT)), "",
          "recorded exchanges", "2026-11-24"),
    Known("13 two system messages at the end",
          words(messages=[user(TEXT), *[{"role": "system", "content": "Be brief."}] * 2]), "",
          "recorded exchanges", "2026-11-24"),
    Known("13 a search that waits beside a tool",
          talk(user(TEXT), assistant(SERVER_USE, USE), user(RESULT)), "", "recorded exchanges",
          "2026-11-24"),
    Known("13 a result at the beginning of the next answer",
          talk(user(TEXT), assistant(SERVER_USE), assistant(SERVER_RESULT, TEXT), user(TEXT)), "",
          "recorded exchanges", "2026-11-24"),
    Known("13 a high surrogate alone", words(messages=[user(TEXT | {"text": "half \ud83d"})]),
          f"{NOT_JSON} no low surrogate in string: line 1 column…", "met live by third parties",
          "2026-05-19"),
    Known("13 a low surrogate alone", words(messages=[user(TEXT | {"text": "half \ude00"})]),
          f"{NOT_JSON} invalid high surrogate in string: line 1 column…",
          "met live by third parties", "2025-10-15"),
    Known("13 a stop sequence of whitespace", words(stop_sequences=["\n"]),
          STOPS.format("contain non-whitespace"), "met live by a third party", "2026-09-30",
          "claude-haiku-4-5"),
    Known("13 an empty stop sequence", words(stop_sequences=["", "\n"]),
          STOPS.format("be non-empty"), "met live by a third party", "2025-04-08"),
]  # fmt: skip

KNOWN = [*THINKING, *SCHEMA_ROWS, *TOOL_ROWS, *OTHERS]
