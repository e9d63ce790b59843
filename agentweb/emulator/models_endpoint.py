"""`GET /v1/models` and `/v1/models/{id}`."""

from __future__ import annotations

from urllib.parse import parse_qs

from agentweb.emulator import json_codec
from agentweb.emulator.errors import ApiError, Invalid
from agentweb.emulator.http_exchange import HttpExchange
from agentweb.emulator.model_catalogue import MODELS, Model, find_model


async def handle(exchange: HttpExchange) -> None:
    name = exchange.path.removeprefix("/v1/models").strip("/")
    if name:
        model = find_model(name)
        if model is None:
            raise ApiError(404, f"model: {name}")
        await exchange.answer_json(describe(model))
        return
    await exchange.answer_json(_page(parse_qs(exchange.scope["query_string"].decode("latin-1"))))


def _page(query: dict[str, list[str]]) -> json_codec.Object:
    limit = query.get("limit", ["20"])[0]
    if not limit.isdigit() or not 1 <= int(limit) <= 1000:
        raise Invalid("limit: Input should be between 1 and 1000")
    rows = [describe(model) for model in sorted(MODELS, key=lambda m: m.released, reverse=True)]
    ids = [row["id"] for row in rows]
    size = int(limit)
    if after := query.get("after_id"):
        rows = rows[ids.index(after[0]) + 1 :] if after[0] in ids else []
    if before := query.get("before_id"):
        # The page before the cursor.
        rows = rows[: ids.index(before[0])] if before[0] in ids else []
        return _slice(rows[-size:], more=len(rows) > size)
    return _slice(rows[:size], more=len(rows) > size)


def _slice(page: list[json_codec.Object], *, more: bool) -> json_codec.Object:
    return {
        "data": page,
        "has_more": more,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
    }


def describe(model: Model) -> json_codec.Object:
    return {
        "type": "model",
        "id": model.id,
        "display_name": model.name,
        "created_at": _midnight(model.released),
        "line": model.line,
        "lifecycle": model.lifecycle,
        "deprecated_at": _midnight(model.deprecated),
        "retires_at": _midnight(model.retires),
        "max_input_tokens": model.window,
        "max_tokens": model.max_output,
        "capabilities": _capabilities(model),
    }


def _midnight(day: str | None) -> str | None:
    return f"{day}T00:00:00Z" if day else None


def _capabilities(model: Model) -> json_codec.Object:
    yes = _supported(True)
    levels = {
        level: _supported(level in model.efforts)
        for level in ("low", "medium", "high", "xhigh", "max")
    }
    kinds = ("adaptive", "between_tools", "disabled", "enabled")
    return {
        "batch": yes,
        "citations": yes,
        "code_execution": yes,
        "compaction": _supported(model.on_demand_compaction)
        | {"summarize": _supported(model.on_demand_compaction)},
        "context_management": {
            "supported": True,
            "clear_thinking_20251015": yes,
            "clear_tool_uses_20250919": yes,
            "compact_20260112": _supported(model.auto_compaction),
        },
        "effort": {"supported": bool(model.efforts)} | levels,
        "image_input": yes,
        "pdf_input": yes,
        "server_tools": {"supported": True, "web_search": yes, "code_execution": yes},
        "structured_outputs": yes,
        "thinking": {
            "supported": True,
            "types": {kind: _supported(kind in model.thinking) for kind in kinds},
        },
    }


def _supported(value: bool) -> json_codec.Object:
    return {"supported": value}
