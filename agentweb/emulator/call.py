"""One validated call to the Messages API: its parameters, account, model and view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentweb.emulator import json_codec
from agentweb.emulator.api_accounts import Account
from agentweb.emulator.canonical_blocks import as_blocks
from agentweb.emulator.ids import digest
from agentweb.emulator.model_catalogue import Model
from agentweb.emulator.prices import Tariff
from agentweb.emulator.prompt_units import Level, Lifetime
from agentweb.emulator.scenes.view import Request

#: The API's own choice is not known; any model will do.
_DEFAULT_FALLBACK = "claude-sonnet-5-5"


@dataclass(frozen=True, slots=True)
class Call:
    body: json_codec.Object
    model: Model
    account: Account
    betas: frozenset[str]
    is_batched: bool = False

    @property
    def streaming(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def thinking_type(self) -> str:
        config = self.body.get("thinking")
        if config:
            return str(config["type"])
        if not self.model.thinks_by_default:
            return "disabled"
        # Adaptive thinking skips easy requests: here, those without a system prompt.
        is_easy = not self.body.get("system") and self.model.thinking > {"adaptive"}
        return "disabled" if is_easy else "adaptive"

    @property
    def thinks(self) -> bool:
        return self.thinking_type in {"adaptive", "enabled"}

    @property
    def display(self) -> str:
        return str((self.body.get("thinking") or {}).get("display") or self.model.display)

    @property
    def effort(self) -> str:
        config: Mapping[str, str] = self.body.get("output_config") or {}
        return config.get("effort") or self.model.default_effort

    @property
    def automatic_cache(self) -> Lifetime | None:
        control = self.body.get("cache_control")
        return (control.get("ttl") or "5m") if control else None

    @property
    def geo(self) -> str:
        """Return where the model runs: as requested, or where the workspace keeps it."""
        if not self.model.regional:
            return "not_available"
        home = "us" if self.account.workspace == "us" else "global"
        return str(self.body.get("inference_geo") or home)

    @property
    def tier(self) -> str:
        """Return the service tier; priority only for an organization that has and wants it."""
        if self.is_batched:
            return "batch"
        is_plain = self.body.get("service_tier") == "standard_only"
        return (
            "priority" if self.account.organization == "priority" and not is_plain else "standard"
        )

    @property
    def speed(self) -> str:
        """Return the speed; empty if the request does not choose."""
        asked = str(self.body.get("speed") or "")
        return "standard" if asked == "fast" and self.model.fast_rate == 1 else asked

    @property
    def tariff(self) -> Tariff:
        return Tariff(
            us_only=self.geo == "us",
            fast_rate=self.model.fast_rate if self.speed == "fast" else 1,
            is_batch=self.is_batched,
        )

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """Return the models that continue when this one declines."""
        hops = self.body.get("fallbacks") or ()
        names = (_DEFAULT_FALLBACK,) if hops == "default" else tuple(hop["model"] for hop in hops)
        return tuple(name for name in names if name != self.model.id)


def is_server_tool(kind: str) -> bool:
    return kind.startswith(("web_search_", "web_fetch_", "code_execution_"))


def view_of(body: json_codec.Object) -> Request:
    """Return the request as the scenes see it."""
    system = "\n".join(str(block.get("text", "")) for block in as_blocks(body.get("system") or []))
    return Request(
        model=body["model"],
        system=system,
        tools=tuple(str(tool.get("name", "")) for tool in body.get("tools") or ()),
        messages=tuple(message for message in body["messages"] if message["role"] != "system"),
        max_tokens=body.get("max_tokens", 0),
        server_tools=tuple(
            tool for tool in body.get("tools") or () if is_server_tool(str(tool.get("type", "")))
        ),
        forced_tool=_find_forced_tool(body),
        output_schema=((body.get("output_config") or {}).get("format") or {}).get("schema"),
    )


def _find_forced_tool(body: json_codec.Object) -> json_codec.Object | None:
    """Return the tool that must be called: the named one, or the client's first for `any`."""
    choice = body.get("tool_choice") or {}
    if choice.get("type") not in ("any", "tool"):
        return None
    own = [tool for tool in body.get("tools") or () if "input_schema" in tool]
    named = (tool for tool in own if choice["type"] == "any" or tool["name"] == choice.get("name"))
    return next(named, None)


def cache_salts(call: Call) -> dict[Level, bytes]:
    """Return, for each level, what a cached prefix depends on besides its blocks."""
    body = call.body
    images = any(_has_image(block) for m in body["messages"] for block in as_blocks(m["content"]))
    toggles = {
        "search": any(
            str(t.get("type", "")).startswith("web_search") for t in body.get("tools") or ()
        ),
        "citations": any(_cites(b) for m in body["messages"] for b in as_blocks(m["content"])),
        "speed": body.get("speed"),
    }
    choices = {
        "tool_choice": body.get("tool_choice"),
        "thinking": body.get("thinking"),
        "effort": call.effort,
        "images": images,
    }
    home = [call.account.organization, call.account.workspace, call.model.id]
    return {
        "tools": digest(json_codec.encode(home)),
        "system": digest(json_codec.encode(toggles)),
        "messages": digest(json_codec.encode(choices)),
    }


def _has_image(block: json_codec.Object) -> bool:
    if block.get("type") == "image":
        return True
    content = block.get("content") if block.get("type") == "tool_result" else None
    return isinstance(content, list) and any(_has_image(part) for part in content)


def _cites(block: json_codec.Object) -> bool:
    if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
        return any(_cites(part) for part in block["content"])
    switch = block.get("citations")
    return isinstance(switch, dict) and bool(switch.get("enabled"))
